"""Commands by name, each imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "tiles": "tiles",
    "check": "tiles",
    "cost": "cost",
    "compare": "tiles",
    "formula": "cost",
    "algorithms": "lists",
    "hardware": "lists",
    "crossover": "crossover",
    "estimate": "estimate",
    "judge": "estimate",
    "explore": "explore",
    "diagnose": "diagnose",
    "calibrate": "calibrate",
    "trace": "trace",
    "model": "model",
    "sweep": "sweep",
    "plan": "plan",
    "fleet": "plan",
    "plot": "plot",
}
"""The module of each command, in the order of the help page; the function has the name of the command."""


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


class LazyGroup(TyperGroup):
    """The root command, which imports its subcommands one at a time."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()


def _parser(name: str, command: Any) -> Any:
    app = command
    if not isinstance(command, typer.Typer):
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        app.command(name)(command)
    parser = typer.main.get_command(app)
    parser.name = name
    for parameter in getattr(parser, "params", ()):
        if not parameter.required and parameter.callback is None and parameter.nargs == 1 and not parameter.multiple:
            parameter.process_value = _if_given(parameter.process_value)
    return parser


def _if_given(process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Convert only the values that are given: Typer builds the validator of a parameter on its first use."""
    return lambda context, value: None if value is None else process(context, value)
