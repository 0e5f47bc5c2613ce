"""One-line messages for words of a command line that name no command, no option and no argument."""

from __future__ import annotations

import re
import sys
from ast import literal_eval
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from iomodel.cli.commands import COMMANDS, Commands
from iomodel.cli.spellings import forms
from iomodel.devices.device import names_meant
from iomodel.errors import UnknownNameError, nearest_names, shown_name
from iomodel.errors.synonyms import absence, key, meant

LONGEST = 300
"""Longest message of the option parser, which quotes the input [characters]."""
EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((\S+)(?: .*)?\)")
UNKNOWN_COMMAND = re.compile(r"No such command ('.*?'|\".*?\")(\. Did you mean .*)?")


def usage_fault(error: Any) -> str:
    """Format an error of the option parser in one line, with the allowed names."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    message = str(error.format_message()).rstrip(".")
    message = message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."
    if context is None:
        return message
    help_page = f"'{context.command_path} --help'"
    parameter, commands = getattr(error, "param", None), getattr(context.command, "commands", None)
    if message.startswith("No such option") and option:
        return f"{shown_name(option)}: {_unknown_option(option, context)} allowed: the options of {help_page}"
    if message.startswith("Missing") and parameter is not None:
        takes = str(getattr(parameter, "help", None) or f"see {help_page}").rstrip(".")
        return f"{parameter.name}: not given, but required; allowed: {takes[:1].lower()}{takes[1:]}"
    extra = EXTRA.fullmatch(message)
    if extra and "--hardware" in forms(context.command.params) and names_meant(extra[1]):
        return f"{shown_name(extra[1])}: given without an option; did you mean --hardware {extra[1]}?"
    switch = _switch_before(extra, context)
    if switch:
        return f"{switch[2:]}: {shown_name(switch)} given with a value; allowed: without one, because it is a switch"
    command = UNKNOWN_COMMAND.fullmatch(message)
    if commands and command:
        return str(UnknownNameError("command", literal_eval(command[1]), commands))
    return f"{message}; allowed: {', '.join(commands) if commands else f'see {help_page}'}"


def misplaced(error: UnknownNameError) -> str | None:
    """Format the error for the name of a device where an algorithm is expected; None for any other."""
    if error.field != "algorithm" or not isinstance(error.given, str) or not names_meant(error.given):
        return None
    return (
        f"algorithm: {shown_name(error.given)} is a device; did you mean --hardware {error.given}? allowed: algorithms"
    )


def _switch_before(extra: re.Match[str] | None, context: Any) -> str | None:
    """Return the switch behind which an argument stands that a command does not take, as a value of the switch."""
    if extra is None:
        return None
    switches = {form for taker in context.command.params if getattr(taker, "is_flag", False) for form in taker.opts}
    return next((before for before, word in pairwise(sys.argv) if before in switches and word == extra[1]), None)


def _unknown_option(option: str, context: Any) -> str:
    """Describe an option that a command lacks: an option with such a value, one of another command, or the nearest."""
    name = option.lstrip("-").partition("=")[0]
    parameters = [parameter for parameter in context.command.params if parameter.opts[0].startswith("--")]
    known = [form.lstrip("-") for form in forms(parameters)]
    likely = meant(name, [other.replace("-", "_") for other in known])
    if likely:
        why = f" {absence(name)};" if absence(name) else ""
        return f"no option of {context.command_path}; did you mean {_options(likely)}?{why}"
    valued = [f"{taker.opts[0]} {name}" for taker in parameters if name in _values(taker, context)]
    if valued:
        return f"no option of {context.command_path}; did you mean {' or '.join(valued[:2])}?"
    takers = [] if context.command.name not in COMMANDS else _takers(f"--{name}")
    if takers and context.command.name not in takers:
        return f"no option of {context.command_path}, but of {', '.join(takers)};"
    near = nearest_names(key(name), [other.replace("-", "_") for other in known])[:3]
    said = f" did you mean {_options(near)}?" if near else f" {absence(name)};" if absence(name) else ""
    return f"no option of {context.command_path};{said}"


def _options(names: Iterable[str]) -> str:
    return " or ".join(f"--{name.replace('_', '-')}" for name in names)


def _values(parameter: Any, context: Any) -> list[str]:
    """List the names that an option takes, as a shell completes them."""
    try:
        return [str(item.value) for item in parameter.shell_complete(context, "")]
    except Exception:  # completion belongs to the option parser, and a message does not depend on it
        return []


def _takers(option: str) -> list[str]:
    """List the commands that take an option, hyphens aside."""
    letters = option.replace("-", "")
    return [name for name, known in _letters().items() if letters in known]


@lru_cache(maxsize=1)
def _letters() -> dict[str, frozenset[str]]:
    """Return the options of every command, hyphens aside, whose parsers take long to build."""
    commands = Commands()
    return {
        name: frozenset(form.replace("-", "") for taker in commands[name].params for form in taker.opts)
        for name in COMMANDS
    }
