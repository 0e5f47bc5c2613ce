"""The options of the command line, each declared once and shared by the commands that take it.

Tiles come from the alphabet and options from the algorithms, so that a new tile name or a new algorithm needs no edit
here. All values arrive as text: what they may be is checked in one place, by the library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args

import typer

from iomodel.algorithms import list_algorithms
from iomodel.cli_values import MASKS
from iomodel.compare import known_options
from iomodel.hardware import list_hardware
from iomodel.symbols import TILES
from iomodel.workload import Align, Attention, DType

Function = TypeVar("Function", bound=Callable[..., Any])
Options = list[inspect.Parameter]

Algorithm = Annotated[
    str, typer.Argument(help=", ".join(list_algorithms()), autocompletion=list_algorithms, show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")]


def option(
    name: str, help: str, panel: str, metavar: str = "INTEGER", names: tuple[str, ...] = (), *, flag: bool = False
) -> inspect.Parameter:
    """One option: a text, or an on/off switch; None where it is not typed. `names` are offered by completion."""
    dashed = name.replace("_", "-")

    def complete() -> list[str]:
        return list(names)

    info = typer.Option(
        f"--{dashed}/--no-{dashed}" if flag else f"--{dashed}",
        help=help,
        rich_help_panel=panel,
        metavar=None if flag else metavar,
        autocompletion=complete if names else None,
        show_default=False,
    )
    kind: Any = bool if flag else str
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, info]
    )


def with_options(*groups: Options) -> Callable[[Function], Function]:
    """Give a command whose last parameter is `**given` the options of some groups."""

    def decorate(command: Function) -> Function:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        positional = [p for p in own if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        last = [p for p in own if p.kind is inspect.Parameter.KEYWORD_ONLY]
        shared = [parameter for group in groups for parameter in group]
        command.__signature__ = signature.replace(parameters=[*positional, *shared, *last])  # type: ignore[attr-defined]
        return command

    return decorate


def _takers(name: str) -> str:
    """The algorithms that know an option."""
    return ", ".join(taker for taker in list_algorithms() if name in known_options([taker]))


DIRECTIONS = get_args(Attention.model_fields["direction"].annotation)

MASK = [
    option("mask", "Which keys a query sees: full (default), causal or window.", "Mask", "NAME", MASKS),
    option("window_left", "Keys seen to the left of the diagonal; unbounded if not given.", "Mask"),
    option("window_right", "Keys seen to the right of the diagonal; unbounded if not given.", "Mask"),
    option("align", "Where the diagonal lies: bottom-right (default) or top-left.", "Mask", "NAME", get_args(Align)),
]
DIRECTION = option("direction", "What is computed: forward.", "Workload", "NAME", DIRECTIONS)
WORKLOAD = [
    option("q_len", "Queries a head (needed).", "Workload"),
    option("head_dim", "Width of a row of Q and K (needed).", "Workload"),
    option("batch", "Sequences (1).", "Workload"),
    option("heads", "Query heads (1).", "Workload"),
    option("kv_heads", "Key/value heads, which divide --heads (as --heads).", "Workload"),
    option("kv_len", "Keys a head (as --q-len).", "Workload"),
    option("value_dim", "Width of a row of V and O (as --head-dim).", "Workload"),
    option("dtype", f"{', '.join(get_args(DType))} (bf16).", "Workload", "NAME", get_args(DType)),
    DIRECTION,
    *MASK,
]
BUDGET = [
    option("hardware", "A device, or its YAML file.", "Budget: exactly one", "NAME|FILE", tuple(list_hardware())),
    option("sram_bytes", "On-chip memory, such as 232448 or '227 KiB'.", "Budget: exactly one", "SIZE"),
    option("sram_elements", "On-chip memory in elements, the papers' M.", "Budget: exactly one"),
    option("alignment", "Tiles are multiples of it (the device's; 1 without).", "Solver"),
    option("min_block_kv", "The least block_kv allowed (1).", "Solver"),
    option("epsilon", "Share of the least traffic offered for a larger block_kv (0).", "Solver", "SHARE"),
]
TILE = [option(entry.name, f"{entry.meaning} [{entry.unit}].", "Tiles") for entry in TILES]
ALGORITHM = [
    option(
        name,
        f"{_takers(name)}; {'on' if default is True else 'off' if default is False else default} by default.",
        "Options of the algorithm",
        metavar=type(default).__name__.upper(),
        flag=isinstance(default, bool),
    )
    for name, default in known_options(list_algorithms()).items()
]
