"""Declaration of command-line options, and their sharing among commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])
Options = list[inspect.Parameter]
FORMER = {"max_devices": ("--max-count",), "replica_devices": ("--max-count",), "arrivals": ("--trace",)}
"""Spellings of options in release 0.1, which are still taken."""


def option(
    name: str,
    help: str,
    panel: str,
    metavar: str = "INTEGER",
    names: tuple[str, ...] | Callable[[], Iterable[str]] = (),
) -> inspect.Parameter:
    """Declare an option with a text value, None by default; completion offers `names`, or those that a call returns."""

    def complete() -> list[str]:
        return list(names() if callable(names) else names)

    info = typer.Option(
        _dashed(name),
        *FORMER.get(name, ()),
        help=help,
        rich_help_panel=panel,
        metavar=metavar,
        autocompletion=complete if names else None,
        show_default=False,
    )
    return _parameter(name, Annotated[str | None, info])


def several(
    name: str, help: str, panel: str, metavar: str = "FILE", names: Callable[[], list[str]] | None = None
) -> inspect.Parameter:
    """Declare an option that may be repeated, None by default; completion offers what `names` returns."""
    info = typer.Option(
        _dashed(name), help=help, rich_help_panel=panel, metavar=metavar, autocompletion=names, show_default=False
    )
    return _parameter(name, Annotated[list[str] | None, info])


def switch(name: str, help: str, panel: str, *, both_ways: bool = False) -> inspect.Parameter:
    """Declare an option without a value, None by default; `both_ways` adds a --no- form."""
    typed = f"{_dashed(name)}/--no-{name.replace('_', '-')}" if both_ways else _dashed(name)
    info = typer.Option(typed, help=help, rich_help_panel=panel, show_default=False)
    return _parameter(name, Annotated[bool | None, info])


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def with_options(*groups: Options | Callable[[], Options]) -> Callable[[Function], Function]:
    """Add the options of some groups to a command whose last parameter is a `**` mapping, when its parser is built."""

    def decorate(command: Function) -> Function:
        command.groups = groups  # type: ignore[attr-defined]
        return command

    return decorate


def with_signature(command: Function) -> Function:
    """List the options of a command's groups in its signature, once."""
    if hasattr(command, "__signature__"):
        return command
    signature = inspect.signature(command, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    last = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    groups = (group() if callable(group) else group for group in getattr(command, "groups", ()))
    shared = [parameter for group in groups for parameter in group]
    command.__signature__ = signature.replace(parameters=[*positional, *shared, *last])  # type: ignore[attr-defined]
    return command
