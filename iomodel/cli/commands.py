"""Commands by name, each imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from traceback import walk_tb
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from iomodel.cli.signature import with_signature
from iomodel.cli.spellings import check_once, command_meant, respelled

READERS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Tile: I have a call of a kernel": {
        "tiles": ("call_commands", "the fastest tiles"),
        "check": ("call_commands", "does a tile fit?"),
        "estimate": ("call_commands", "time and what limits it"),
        "compare": ("call_commands", "algorithms side by side"),
        "diagnose": ("call_commands", "why a call is slow"),
        "trace": ("call_commands", "a run, tile by tile"),
        "triton": ("program_commands", "a kernel's configs"),
        "rule": ("rule_command", "launches, as a function"),
    },
    "GPUs: I have a model and a load": {
        "plan": ("serving_commands", "memory, speed, price"),
        "step": ("serving_commands", "the time of one step"),
        "fleet": ("serving_commands", "how many GPUs?"),
        "pareto": ("serving_commands", "throughput by latency"),
        "disaggregate": ("serving_commands", "prefill apart"),
        "simulate": ("serving_commands", "latencies under load"),
        "train": ("serving_commands", "a training step"),
        "model": ("catalogue_commands", "layers and cache"),
    },
    "Formulas: I have a schedule": {
        "cost": ("call_commands", "bytes and operations"),
        "formula": ("call_commands", "the exact formulas"),
        "optimum": ("theory_commands", "best tiles, as formulas"),
        "bounds": ("theory_commands", "lower bounds on traffic"),
        "crossover": ("call_commands", "where one overtakes"),
        "staircase": ("call_commands", "traffic by memory"),
        "sweep": ("sweep_command", "many points, to a file"),
    },
    "Mine: I have a GPU or measurements": {
        "audit": ("call_commands", "a profile, explained"),
        "bound": ("program_commands", "a PyTorch program, at best"),
        "calibrate": ("catalogue_commands", "measure this GPU"),
        "judge": ("call_commands", "estimates, measured"),
        "hardware": ("catalogue_commands", "devices, with sources"),
        "algorithms": ("catalogue_commands", "what can be asked"),
    },
    "Tools": {
        "plot": ("plot_commands", "pictures, to a file"),
        "explore": ("explore_command", "a page for a browser"),
        "mcp": ("catalogue_commands", "a server for agents"),
        "occupancy": ("call_commands", "blocks of an SM"),
    },
}
"""The module of each command and what it answers, by the reader of the front page; the function bears its name."""
COMMANDS = {name: module for commands in READERS.values() for name, (module, _) in commands.items()}


WORDS, HELPED, ALL = "iomodel.words", "iomodel.helped", "iomodel.all"
"""Keys of a parser's context: the words of the command line, whether they ask for help, and for all options."""


class DamagedModuleError(Exception):
    """A compiled module (.pyc) that ends too early, as an interrupted copy leaves it."""


class Commands(MutableMapping[str, Any]):
    """The command parsers by name, each built on first use."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _parser(name, getattr(import_module(f"iomodel.cli.{COMMANDS[name]}"), name))
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._built})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._built})

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS or name in self._built


class PlainText:
    """A parser whose options take text and switches unchanged.

    The library validates them all, and the validators that Typer builds for a parameter on its first use load slowly.
    """

    def get_params(self, context: Any) -> list[Any]:
        """Return the parameters, the option --help included."""
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.nargs == 1 and not parameter.multiple and "process_value" not in vars(parameter):
                parameter.process_value = _as_typed(parameter)
        return parameters

    def format_help(self, context: Any, formatter: Any) -> None:
        """Write the help page, whose names are never cut."""
        from typer import rich_utils

        from iomodel.cli.help_tables import HelpTable

        context.meta[HELPED] = True
        rich_utils.Table = HelpTable  # type: ignore[attr-defined]
        super().format_help(context, formatter)  # type: ignore[misc]


class LazyGroup(PlainText, TyperGroup):
    """The root command, which imports its subcommands one at a time."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def list_commands(self, context: Any) -> list[str]:  # noqa: ARG002 - as of the base class
        """Return the names of the commands, whose parsers are not built."""
        return [*self.commands]

    def format_help(self, context: Any, formatter: Any) -> None:  # noqa: ARG002 - as of the base class
        """Write the front page, which imports no command."""
        from iomodel.cli.help_tables import front_page

        told = {reader: {name: text for name, (_, text) in listed.items()} for reader, listed in READERS.items()}
        formatter.write(front_page(str(self.help), told))

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Parse the words of the root command, of which the first may be a synonym of a command."""
        first = [command_meant(word, self.commands) for word in arguments[:1]]
        if first == ["--help"] and arguments[1:]:  # iomodel help tiles
            return self.parse_args(context, [arguments[1], "--help"])
        return super().parse_args(context, [*first, *arguments[1:]])

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Parse the words of the root command."""
        with _whole_modules():
            return super().make_context(*arguments, **settings)

    def invoke(self, context: Any) -> Any:
        """Run a command."""
        with _whole_modules():
            return super().invoke(context)


@contextmanager
def _whole_modules() -> Iterator[None]:
    """Name a compiled module that ends too early; the parser would take its EOFError for Ctrl-D."""
    try:
        yield
    except EOFError as error:
        *_, (innermost, _) = walk_tb(error.__traceback__)
        file = innermost.f_locals.get("bytecode_path", "a compiled module")
        raise DamagedModuleError(f"{file} is damaged ({error}); delete it, and Python writes it anew") from error


class PlainCommand(PlainText, TyperCommand):
    """One command, whose help page shows the options of the algorithm that precedes --help, the first 40 of them."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Keep the words for the help page, and parse them."""
        context.meta[WORDS], context.meta[ALL] = tuple(arguments), "--help-all" in arguments
        words = ["--help" if word == "--help-all" else word for word in arguments]
        return super().parse_args(context, respelled(words, self.params))

    def make_parser(self, context: Any) -> Any:
        """Return the parser of the words, which refuses an option that is given twice."""
        parser: Any = super().make_parser(context)
        parse = parser.parse_args

        def parse_once(**words: Any) -> Any:
            values, rest, order = parse(**words)
            check_once(order)
            return values, rest, order

        parser.parse_args = parse_once
        return parser

    def get_params(self, context: Any) -> list[Any]:
        """Return the parameters; on a help page those of the named algorithm."""
        parameters = super().get_params(context)
        if not context.meta.get(HELPED):
            return parameters
        from iomodel.cli.algorithm_help import named_algorithm, relevant
        from iomodel.cli.help_tables import first, shown

        takes_one = any(parameter.name == "algorithm" for parameter in parameters)
        declaration = named_algorithm(context.meta.get(WORDS, ())) if takes_one else None
        concerned = parameters if declaration is None else relevant(parameters, declaration)
        listed = concerned if context.meta.get(ALL) else first(concerned, own=declaration is not None)
        more = len(concerned) - len(listed)
        asked = " ".join([context.command_path, *([] if declaration is None else [declaration.name]), "--help-all"])
        self.epilog = f"{more} more options: {asked}" if more else None
        return shown(listed)


def _parser(name: str, command: Any) -> Any:
    app = command
    if not isinstance(command, typer.Typer):
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        app.command(name)(command)
    for registered in app.registered_commands:
        with_signature(registered.callback)
        registered.cls = PlainCommand
    parser: Any = typer.main.get_command(app)
    parser.name = name
    return parser


def _as_typed(parameter: Any) -> Callable[[Any, Any], Any]:
    process = parameter.process_value

    def value_of(context: Any, value: Any) -> Any:
        plain = not parameter.required if value is None else isinstance(value, str | bool) and not parameter.callback
        return value if plain else process(context, value)

    return value_of
