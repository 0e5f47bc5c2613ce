"""How an option of the command line is declared, and how commands share groups of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])
Options = list[inspect.Parameter]


def option(
    name: str, help: str, panel: str, metavar: str = "INTEGER", names: tuple[str, ...] = ()
) -> inspect.Parameter:
    """One option that takes a text, None where it is not typed; completion offers `names`."""

    def complete() -> list[str]:
        return list(names)

    info = typer.Option(
        _dashed(name),
        help=help,
        rich_help_panel=panel,
        metavar=metavar,
        autocompletion=complete if names else None,
        show_default=False,
    )
    return _parameter(name, Annotated[str | None, info])


def switch(name: str, help: str, panel: str, *, both_ways: bool = False) -> inspect.Parameter:
    """One option without a value; `both_ways` for what may be on by default. None where it is not typed."""
    typed = f"{_dashed(name)}/--no-{name.replace('_', '-')}" if both_ways else _dashed(name)
    info = typer.Option(typed, help=help, rich_help_panel=panel, show_default=False)
    return _parameter(name, Annotated[bool | None, info])


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


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
