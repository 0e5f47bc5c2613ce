"""Counted traffic against predicted traffic, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from iomodel.cost import Cost
from iomodel.errors import InputError, shown
from iomodel.show import as_text, table
from iomodel.testing.hbm import HBM
from iomodel.testing.hints import Counts, Key, hints, moved, wrong_widths
from iomodel.testing.machine import Machine
from iomodel.testing.run import Run
from iomodel.testing.widths import WIDTHS, in_bytes
from iomodel.validation import as_mapping, index

KINDS = ("reads", "writes")
_EXAMPLE = "{'reads': {'K': 512}, 'writes': {'O': 64}}"


def assert_traffic(
    cost: Cost,
    counted: Run | Machine | HBM | Mapping[str, Mapping[str, int]],
    *,
    names: Mapping[str, str] | None = None,
) -> None:
    """Fail unless a kernel moved exactly what the model says, tensor by tensor.

    Parameters
    ----------
    cost : Cost
        What :func:`iomodel.cost` answers for the call, tiles and options of the kernel.
    counted : Run, Machine, HBM, or mapping
        What the kernel moved, over all batches and heads [elements]: a counting memory, whose atomic additions and
        bytes are compared too, or ``{"reads": {"K": 512, ...}, "writes": {"O": 64, ...}}``. A tensor that is not
        named counts 0; of a mapping without "writes" the reads alone are compared, and the other way round.
    names : mapping of str to str, optional
        The model's name for each of yours, as ``{"key_cache": "K"}``; counts under the same name are added.

    Raises
    ------
    AssertionError
        The counts differ; the message is a table of those that do, with what would explain them.
    InputError
        The arguments are of another kind.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=4, kv_heads=1, q_len=64, head_dim=8)
    >>> c = iomodel.cost("flash2", w, {"block_q": 16, "block_kv": 16})
    >>> assert_traffic(c, {"reads": {"Q": 2048, "K": 8192, "V": 8192}})
    >>> assert_traffic(c, {"reads": {"Q": 2048, "K": 6144, "V": 8192}})
    Traceback (most recent call last):
    ...
    AssertionError: flash2 at block_q = 16, block_kv = 16: counted traffic differs from the predicted [elements]
    <BLANKLINE>
      tensor    counted   predicted   ratio   hint
     ────────────────────────────────────────────────────────────────────
      reads K     6,144       8,192     3/4   16 tiles of 16 x 8 too few
    """
    __tracebackhide__ = True
    if not isinstance(cost, Cost):
        raise InputError(f"cost: {shown(cost)} given; allowed: what iomodel.cost returns")
    found, kinds = _counts(counted, names or {})
    predicted = {key: n for key, n in moved(cost).items() if key[0] in kinds}
    wrong = [key for key in predicted | found if found.get(key, 0) != predicted.get(key, 0)]
    if wrong:
        raise AssertionError(_report(cost, found, predicted, wrong))
    if not isinstance(counted, Mapping):
        _assert_bytes(cost, counted.hbm if isinstance(counted, Machine) else counted, names or {})


def _counts(counted: object, names: Mapping[str, str]) -> tuple[Counts, set[str]]:
    """What was counted under the model's names, and which kinds of counts there are."""
    names = as_mapping("names", names, "{'key_cache': 'K'}")
    memory = counted.hbm if isinstance(counted, Machine) else counted
    given: dict[str, Any]
    if isinstance(memory, HBM | Run):
        given = {"reads": memory.reads, "writes": memory.writes, "": {"atomics": memory.atomics}}
    else:
        given = as_mapping("counted", memory, _EXAMPLE)
        if not given or not given.keys() <= set(KINDS) or not all(isinstance(n, Mapping) for n in given.values()):
            raise InputError(f"counted: {shown(memory)} given; allowed: a counting memory, or {_EXAMPLE}")
    found: Counts = {}
    for kind, tensors in given.items():
        for name, value in tensors.items():
            number = index(value)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InputError(f"{kind} {name}: {shown(value)} given; allowed: an integer from 0 up [elements]")
            key = kind, str(names.get(name, name))
            found[key] = found.get(key, 0) + number
    return found, set(given)


def _report(cost: Cost, counted: Counts, predicted: Counts, wrong: list[Key]) -> str:
    """The table of what differs."""
    why, everything = hints(cost, counted, predicted, wrong)
    rows = []
    for key in wrong:
        here, there = counted.get(key, 0), predicted.get(key, 0)
        ratio = str(Fraction(here, there)) if there and Fraction(here, there).denominator < 100 else ""
        ratio = ratio or (f"{here / there:.4g}" if there else "-")
        rows.append((" ".join(key).strip(), f"{here:,}", f"{there:,}", ratio, why[key]))
    columns = ("tensor", ">counted", ">predicted", ">ratio", *(["hint"] if any(why.values()) else []))
    tiles = ", ".join(f"{name} = {size}" for name, size in cost.tiles.items()) or "no tiles"
    title = f"{cost.algorithm} at {tiles}: counted traffic differs from the predicted [elements]"
    text = as_text(table("", columns, [row[: len(columns)] for row in rows])).lstrip("\n")
    return "\n\n".join([title, text, *([f"all of it would be so if: {everything}"] if everything else [])])


def _assert_bytes(cost: Cost, memory: HBM | Run, names: Mapping[str, str]) -> None:
    """Fail where the elements agree and their widths do not."""
    __tracebackhide__ = True
    w, live = cost.workload, dict.fromkeys(WIDTHS, 0)
    for name, count in (memory.reads + memory.writes).items():
        live[memory.widths[name]] += count
    found = in_bytes(tuple(live.values()), w.element_size, w.kv_element_size)
    if found != cost.hbm_bytes:
        widths = {names.get(name, name): width for name, width in memory.widths.items()}
        raise AssertionError(
            f"{cost.algorithm}: {found:,} B counted, {cost.hbm_bytes:,} B predicted, though the elements agree: "
            f"{wrong_widths(cost, widths)}"
        )
