"""Launches of an `.ncu-rep` file, read by NVIDIA's reader in a process of its own.

The reader is native code: a damaged file may end the process that reads it, and its messages go to the standard error.
Run as a script, this file prints the launches of one report as JSON; it imports nothing of the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SECONDS = 600
"""Time limit of the reader [s]."""


def read_launches(path: Path) -> list[tuple[Any, str, dict[str, tuple[float, str]]]]:
    """Return the name, the identifier and the counters of each launch, a counter with its unit.

    Raises
    ------
    ModuleNotFoundError
        The reader `ncu_report` is not installed.
    ValueError
        The reader refuses the file, or ends without an answer.
    """
    try:
        known = find_spec("ncu_report")
    except ValueError:  # a module without a spec
        known = None
    if known is None:
        raise ModuleNotFoundError("ncu_report")
    command = [sys.executable, "-P", __file__, str(path.resolve())]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        reader = subprocess.run(
            command, capture_output=True, text=True, env=surroundings, timeout=SECONDS, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"its reader has not ended within {SECONDS} s") from None
    if reader.returncode < 0:
        raise ValueError(f"its reader was ended by signal {-reader.returncode}; the file may be damaged")
    lines = reader.stdout.splitlines()
    if reader.returncode or not lines:
        raise ValueError(reader.stderr.strip().rpartition("\n")[2] or "its reader gave no answer")
    launches: list[tuple[Any, str, dict[str, tuple[float, str]]]] = json.loads(lines[-1])
    return launches


def _launches(path: str) -> list[tuple[Any, str, dict[str, tuple[float, str]]]]:
    import ncu_report

    context = ncu_report.load_report(path)
    launches = []
    for place in range(context.num_ranges()):
        part = context.range_by_idx(place)
        for number in range(part.num_actions()):
            action = part.action_by_idx(number)
            launches.append((action.name(), f"{place}.{number}", _counters(action)))
    return launches


def _counters(action: Any) -> dict[str, tuple[float, str]]:
    counters = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = None if metric is None else metric.value()
        if isinstance(value, int | float) and not isinstance(value, bool):
            # The reader knows the units of the chips that were sold when it was made. Reports are in ns.
            counters[name] = value, metric.unit() or ("ns" if "__time_duration" in name else "")
    return counters


if __name__ == "__main__":
    print(json.dumps(_launches(sys.argv[1])))  # noqa: T201
