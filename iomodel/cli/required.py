"""Options that a command cannot do without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.errors import InputError

EXAMPLES = {
    "hardware": "h100-sxm5",
    "prompt": "2048",
    "output": "256",
    "load": "20",
    "ttft": "500ms",
    "tpot": "50ms",
    "time": "0.183ms",
    "batch": "64",
    "seq_len": "4096",
    "prefill": "h100-sxm5",
    "decode": "h200-sxm",
    "link": "50GB/s",
    "pattern": "flash_fwd",
    "q_len": "1",
    "kv_len": "4096",
}
"""A value of each option that some command requires."""


def require(arguments: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise InputError with all of these options that are not given, and a value of each.

    >>> require({"ttft": None, "tpot": None, "load": "20"}, ("load", "ttft", "tpot"))
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: ttft, tpot: not given, but required; allowed: values, such as --ttft 500ms --tpot 50ms
    """
    missing = [name for name in names if arguments[name] is None]
    if missing:
        example = " ".join(f"--{name.replace('_', '-')} {EXAMPLES[name]}" for name in missing)
        raise InputError(f"{', '.join(missing)}: not given, but required; allowed: values, such as {example}")
