"""Hints that explain a difference between counted and predicted traffic."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import chain

from iomodel.counting.cost import Cost
from iomodel.nests import tensors
from iomodel.nests.language import Tensor
from iomodel.testing.what_if import alternatives, other_tiles, pairs
from iomodel.testing.widths import Width
from iomodel.workloads.attention import Attention
from iomodel.workloads.linear import Linear

Key = tuple[str, str]
Counts = dict[Key, int]
"""Moved elements by ("reads" or "writes", tensor); ("", "atomics") are atomic additions."""

TENSORS = {value.name: value for value in vars(tensors).values() if isinstance(value, Tensor)}
PADDED = (8, 16, 32, 64, 128)
"""Common multiples to which rows are padded [elements]."""


def moved(cost: Cost) -> Counts:
    """Collect the predicted counts."""
    counts = {(kind, name): n for kind in ("reads", "writes") for name, n in getattr(cost, kind).items()}
    return {**counts, ("", "atomics"): cost.atomics}


def hints(cost: Cost, counted: Counts, predicted: Counts, wrong: list[Key]) -> tuple[dict[Key, str], str]:
    """Explain each wrong count, and all of them at once by one change or by two, if possible."""
    explanations: dict[Key, str] = {}
    singles = []
    for explanation, other in alternatives(cost):
        expected = moved(other)
        for key in wrong:
            if expected.get(key, 0) == counted.get(key, 0):
                explanations.setdefault(key, explanation)
        if _explains(expected, counted, predicted):
            return dict.fromkeys(wrong, ""), explanation
        singles.append((explanation, other))
    singles += other_tiles(cost)
    for explanation, other in chain(singles, pairs(cost, singles, wrong, moved)):
        if _explains(moved(other), counted, predicted):
            return dict.fromkeys(wrong, ""), explanation
    for key in wrong:
        if key not in explanations:
            explanations[key] = _ratio(cost, key, counted.get(key, 0), predicted.get(key, 0))
    return explanations, ""


def _explains(expected: Counts, counted: Counts, predicted: Counts) -> bool:
    """Check whether every count is the expected one; only kinds of counts that are compared matter."""
    return all(expected.get(key, 0) == counted.get(key, 0) for key in {*counted, *predicted})


def _ratio(cost: Cost, key: Key, counted: int, predicted: int) -> str:
    """Explain a count from its ratio to the prediction."""
    kind, name = key
    if not predicted:
        known = sorted(getattr(cost, kind)) if kind else []
        if not kind or name in known:
            return f"{cost.algorithm} has none"
        return f"{cost.algorithm} {kind} {', '.join(known)}; names={{{name!r}: ...}} maps it to one of them"
    if not counted:
        return "nothing was counted"
    w, ratio = cost.workload, Fraction(counted, predicted)
    if isinstance(w, Linear):
        return "moved twice" if ratio == 2 else ""
    batch = w.batch if isinstance(w, Attention) else 1
    counts = {
        "group": w.group,
        "heads": w.heads,
        "kv_heads": w.kv_heads,
        "batch": batch,
        "batch x heads": batch * w.heads,
    }
    factor = max(ratio, 1 / ratio)
    same = [label for label, n in counts.items() if n == factor]
    findings = ["moved twice"] if ratio == 2 else []
    findings += [f"{'1/' if ratio < 1 else ''}{factor}, as {' = '.join(same)}"] if same else []
    if name in TENSORS and ratio == _sizes(cost).get(_dtype(name)):
        findings.append(f"bytes, {ratio} per element")
    findings += _padding(cost, name, ratio)
    return "; ".join(findings) or _whole_tiles(cost, name, counted - predicted)


def _dtype(name: str) -> str:
    """Return the width of a tensor in the model."""
    return "kv" if name in {"K", "V"} else TENSORS[name].dtype


def _sizes(cost: Cost) -> dict[str, int | Fraction]:
    """Return the element size of each width [B]."""
    w = cost.workload.longest
    return {
        "io": w.element_size,
        "kv": Fraction(w.numbers.get("kv_size", 32 * w.element_size), 32),
        "fp32": 4,
        "int32": 4,
        "int64": 8,
        "bool": 1,
    }


def _padding(cost: Cost, name: str, ratio: Fraction) -> list[str]:
    """Explain the ratio by padded rows."""
    width = _width(cost, name)
    if width is None:
        return []
    powers = 1 << (width - 1).bit_length()
    wider = sorted({powers, *(-(-width // n) * n for n in PADDED)} - {width})
    return [f"rows padded from {width} to {wide} elements" for wide in wider if ratio == Fraction(wide, width)]


def _whole_tiles(cost: Cost, name: str, excess: int) -> str:
    """Express the difference as a number of complete tiles."""
    width, tensor = _width(cost, name), TENSORS.get(name)
    axis = {"query": "block_q", "key": "block_kv"}.get(tensor.axes[0].name) if tensor and tensor.axes else None
    tile = cost.tiles.get(axis) if axis else None
    if width is None or tile is None or excess % (tile * width):
        return ""
    number = abs(excess) // (tile * width)
    return f"{number} tile{'s' if number > 1 else ''} of {tile} x {width} too {'many' if excess > 0 else 'few'}"


def _width(cost: Cost, name: str) -> int | None:
    """Return the row width of a tensor with two axes, the last of which is a width."""
    tensor = TENSORS.get(name)
    axes = tensor.axes if tensor else ()
    widths = {"depth": cost.workload.head_dim, "value": cost.workload.value_dim}
    return widths.get(axes[-1].name) if len(axes) == 2 else None


def wrong_widths(cost: Cost, widths: Mapping[str, Width]) -> str:
    """List the tensors with another element size in the counting memory than in the model."""
    sizes = _sizes(cost)
    return "; ".join(
        f"{name} has width {widths[name]!r}, {_dtype(name)!r} in the model"
        for name in sorted({*cost.reads, *cost.writes} & widths.keys() & TENSORS.keys())
        if sizes.get(_dtype(name)) != sizes[widths[name]]
    )


def wrong_sizes(cost: Cost, element_bytes: Mapping[str, int]) -> str:
    """List the tensors whose elements have another size in a counted kernel than in the model [B]."""
    sizes = _sizes(cost)
    return "; ".join(
        f"{name} has {element_bytes[name]} B an element, {sizes[_dtype(name)]} in the model"
        for name in sorted({*cost.reads, *cost.writes} & element_bytes.keys() & TENSORS.keys())
        if sizes.get(_dtype(name)) != element_bytes[name]
    )
