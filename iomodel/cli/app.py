"""Commands of the command line; every result is computed by the library.

Exit codes: 0 for success; 1 with one line if no tile fits; 2 with one line for invalid input; 70 with one line for an
error that is not of the input; 130 after Ctrl-C; 141 if the reader of a pipe has closed it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from iomodel.cli.commands import DamagedModuleError, LazyGroup
from iomodel.cli.output import ReaderLeftError, emit, refuse
from iomodel.errors import InfeasibleError, InputError, IOModelError, UnknownNameError

INTERNAL = 70
"""Exit code of an error that is not of the input."""

app = typer.Typer(
    cls=LazyGroup,
    help="Example: iomodel tiles flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            emit(f"iomodel {version('iomodel')}")
        except PackageNotFoundError:
            emit("iomodel (not installed)")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - used by the callback
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        names = ", ".join(getattr(context.command, "commands", ()))
        raise InputError(f"command: none given; allowed: {names}; see 'iomodel --help'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _exit_code(app(arguments, prog_name="iomodel", standalone_mode=False))
        except (ReaderLeftError, KeyboardInterrupt, typer.Abort):
            raise
        except Exception as error:
            code, kind, message = _refusal(error)
            if code == INTERNAL and "IOMODEL_TRACEBACK" in os.environ:
                raise
            refuse(message, kind, as_json)
            return code
    except ReaderLeftError:
        return 141
    except (KeyboardInterrupt, typer.Abort):
        return 130


def _refusal(error: Exception) -> tuple[int, str, object]:
    """Return the exit code of an error, its kind in one word, and its message."""
    if isinstance(error, IOModelError):
        if isinstance(error, UnknownNameError):
            from iomodel.cli.usage import misplaced

            return 2, error.code, misplaced(error) or error
        return (1 if isinstance(error, InfeasibleError) else 2), error.code, error
    if hasattr(error, "format_message"):  # from the option parser: click, or typer's copy of it
        from iomodel.cli.usage import usage_fault

        return 2, "usage", usage_fault(error)
    if isinstance(error, DamagedModuleError):
        return INTERNAL, "internal", error
    hint = "set IOMODEL_TRACEBACK=1 for details; please report it"
    return INTERNAL, "internal", f"internal error, {type(error).__name__}: {error}; {hint}"


def _exit_code(returned: object) -> int:
    return returned if isinstance(returned, int) else 0
