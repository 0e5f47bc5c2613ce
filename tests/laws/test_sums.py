"""A call of several parts costs what its parts cost: both directions, sequences that differ in length."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.options import only_taken
from iomodel.counting.quantities import SUMS
from iomodel.nests.alphabet import (
    FOLLOWS,
)
from iomodel.workloads.call import Call
from tests.support.enumeration import pages_of
from tests.support.strategies import VARIANTS, Case, Variant, cases, fraction_of_examples
from tests.support.tile_names import tile_names

each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str, scope="module")
BOTH = [variant for variant in VARIANTS if "both" in algorithm(variant.algorithm).directions]
BOTH = [variant for variant in BOTH if variant.direction == "backward"]
FOOTPRINTS = ("footprint_elements", "footprint_bytes")


def added(parts: list[Any]) -> dict[str, Any]:
    """The traffic by tensor and all that adds up."""
    found: dict[str, Any] = {side: sum((Counter(getattr(part, side)) for part in parts), Counter()) for side in MOVES}
    return found | {name: sum(getattr(part, name) for part in parts) for name in (*SUMS, "hbm_reads", "hbm_writes")}


MOVES = ("reads", "writes")


@pytest.mark.parametrize("variant", BOTH, ids=str)
@fraction_of_examples(10)
@given(data=st.data())
def test_both_directions_are_the_forward_pass_and_the_backward_pass(variant: Variant, data: st.DataObject) -> None:
    """At the tiles given, or at those that a follower follows; rows are packed in the forward pass alone."""
    case, found = data.draw(cases(variant)), algorithm(variant.algorithm)
    lacked = frozenset().union(*found.without.values())
    assume(not lacked & set(case.workload.features))
    forward = case.workload.model_copy(update={"direction": "forward"})
    both = case.workload.model_copy(update={"direction": "both"})
    kept = only_taken(found, "forward", case.options)
    names = iomodel.expressions(
        found.name, direction="both", packed=case.options["packed"], **{found.tiled_by: True} if found.tiled_by else {}
    ).tiles
    sizes = {name: data.draw(st.integers(1, 20)) for name in names}
    if found.tiled_by and not case.options[found.tiled_by]:
        names, sizes = (), {}
    given = {name: size for name, size in sizes.items() if name not in FOLLOWS or data.draw(st.booleans())}
    complete = {name: given.get(name, given.get(FOLLOWS.get(name, ""))) for name in names}
    backward = {name.removeprefix("bwd_"): size for name, size in complete.items() if f"bwd_{name}" not in names}
    shared = set(taken(found.name, "backward", names)) & set(taken(found.name, "forward", names))
    assert {f"bwd_{name}" for name in shared} <= set(names)  # each direction has tiles of its own
    parts = [
        iomodel.cost(
            found.name, forward, {n: complete[n] for n in taken(found.name, "forward", names)}, **kept | found.saved
        ),
        iomodel.cost(
            found.name,
            case.workload,
            {n: backward[n] for n in taken(found.name, "backward", names)},
            **case.options | {"packed": False},
        ),
    ]
    whole = iomodel.cost(found.name, both, given, **case.options | found.saved)
    assert dict(whole.tiles.items()) == complete
    assert added([whole]) == added(parts)
    for name in FOOTPRINTS:
        assert getattr(whole, name) == max(getattr(part, name) for part in parts)
    for name in ("peak_hbm_elements", "peak_hbm_bytes"):  # what backward is an input, such as P, may be freed here
        peaks = [getattr(part, name) for part in parts]
        assert peaks[0] <= getattr(whole, name) <= sum(peaks)


def taken(name: str, direction: str, all_tiles: tuple[str, ...]) -> tuple[str, ...]:
    """The tiles of a direction, if there are tiles."""
    if not all_tiles:
        return ()
    tiled_by = algorithm(name).tiled_by
    return tile_names(name, direction=direction, **({tiled_by: True} if tiled_by else {}))


@st.composite
def calls(draw: st.DrawFn, variant: Variant) -> tuple[Case, list[Case]]:
    """A call of sequences that differ in length, and each of them as a call of its own."""
    case = draw(cases(variant))
    fields = {name: getattr(case.workload, name) for name in Call.model_fields}
    if not isinstance(case.workload.mask, str | iomodel.Window):
        fields["mask"] = draw(st.sampled_from(["full", "causal"]))
    longest = max(case.workload.q_len, case.workload.kv_len)
    lengths = st.tuples(st.integers(1, longest), st.integers(1, longest))
    pairs = draw(st.lists(lengths | st.just((1, longest)), min_size=1, max_size=5))
    parts = [replace(case, workload=iomodel.Attention(**fields, q_len=q, kv_len=k)) for q, k in pairs]
    whole = iomodel.VarlenAttention(**fields, q_lens=[q for q, _ in pairs], kv_lens=[k for _, k in pairs])
    if "splits" in case.options:  # for the longest; a shorter one may have splits without keys
        options = {**case.options, "splits": draw(st.integers(1, -(-max(whole.kv_lens) // case.tiles["block_kv"])))}
        parts = [replace(part, options=options) for part in parts]
        case = replace(case, options=options)
    return replace(case, workload=whole), parts


def summed(whole: Any, runs: list[Any], size: tuple[int, int]) -> dict[str, Any]:
    """What the reference kernels count for each sequence, together; the state of the generator is there once."""
    reads, writes = (sum((getattr(run, side) for run in runs), Counter()) for side in MOVES)
    again = 2 * (len(runs) - 1) if writes["R"] else 0
    writes["R"] -= again
    totals = {
        name: sum(getattr(run, name) for run in runs) for name in ("atomics", "flops", "exps", "tanhs", "randoms")
    }
    return {
        "reads": +reads,
        "writes": +writes,
        "hbm_bytes": sum(run.hbm_bytes(*size) for run in runs) - 8 * again,
        **totals,
        "footprint_elements": max(run.sram_peak for run in runs),
        "footprint_bytes": max(run.sram_bytes(*size) for run in runs),
    }


@each_variant
@fraction_of_examples(5)
@given(data=st.data())
def test_sequences_of_different_lengths_add_up(variant: Variant, data: st.DataObject) -> None:
    whole, parts = data.draw(calls(variant))
    cost, w = whole.cost(), whole.workload
    expected = summed(whole, [part.run() for part in parts], (w.element_size, w.kv_element_size))
    assert {name: getattr(cost, name) for name in expected} | {
        side: +Counter(getattr(cost, side)) for side in MOVES
    } == expected
    alone = [cost_of(part) for part in parts]
    assert cost.useful_flops == sum(part.useful_flops for part in alone)
    assert cost.to_dict()["workload"]["q_lens"]


def cost_of(part: Case) -> iomodel.Cost:
    """The cost of one sequence, whose splits may be more than its key tiles."""
    return BoundCall.bind(part.algorithm, part.workload, part.options, tiled=bool(part.tiles)).at(part.tiles)


@each_variant
@fraction_of_examples(10)
@given(data=st.data())
def test_the_allocations_of_sequences_add_up_kernel_by_kernel(variant: Variant, data: st.DataObject) -> None:
    """All sequences are in the same kernel at once; slopes, sinks and the state of the generator are there once."""
    whole, parts = data.draw(calls(variant))
    cost, w = whole.cost(), whole.workload
    bound = BoundCall.bind(whole.algorithm, w, whole.options, tiled=bool(whole.tiles))
    tiles = [tuple(part.tiles[name] for name in bound.tiles) for part in parts]
    values = [bound.compiled.at(part.workload, bound.options, own) for part, own in zip(parts, tiles, strict=True)]
    moved = Counter(cost.reads) + Counter(cost.writes)
    once = {"slopes": (w.heads, 4), "sinks": (w.heads, w.element_size), "R": (2, 8)}
    for name, width in (("allocated", False), ("allocated_bytes", True)):
        each = np.sum([getattr(value, name) for value in values], axis=0)
        shared = sum(n * (size if width else 1) for tensor, (n, size) in once.items() if moved[tensor])
        peak = cost.peak_hbm_bytes if width else cost.peak_hbm_elements
        assert peak == max(each) - (len(parts) - 1) * shared


LENGTHS, BLOCKS = st.integers(1, 5000), st.integers(1, 600)
SIDES = st.none() | st.integers(0, 3000)
MASKS = st.sampled_from(["full", "causal"]) | st.builds(
    iomodel.Window, left=SIDES, right=SIDES, align=st.sampled_from(["bottom-right", "top-left"])
)


def interval(w: iomodel.Attention, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first key that each query sees and one past the last; nothing where these cross."""
    mask = iomodel.Window(right=0) if w.mask == "causal" else iomodel.Window() if w.mask == "full" else w.mask
    assert isinstance(mask, iomodel.Window)
    at = query + (w.kv_len - w.q_len if mask.align == "bottom-right" else 0)
    low = np.zeros_like(query) if mask.left is None else np.clip(at - mask.left, 0, w.kv_len)
    high = np.full_like(query, w.kv_len) if mask.right is None else np.clip(at + mask.right + 1, 0, w.kv_len)
    return low, high


def touched(w: iomodel.Attention, block_kv: int) -> np.ndarray:
    """Pages of each key tile."""
    assert w.page_size is not None
    tiles = range(0, w.kv_len, block_kv)
    return np.array([pages_of(slice(start, start + block_kv), w.page_size, w.kv_len) for start in tiles])


@example((3, 100), 4, 2, 7, iomodel.Window(right=2, align="top-left"), 1, False)  # nobody sees the last keys
@example((5, 4), 3, 2, 2, iomodel.Window(right=9), 1, False)  # a window that goes on beyond the last key
@example((100, 50), 4, 8, 12, iomodel.Window(left=3, align="top-left"), 2, True)  # the last queries see nothing
@given(
    lengths=st.tuples(LENGTHS, LENGTHS),
    page=BLOCKS,
    block_q=BLOCKS,
    block_kv=BLOCKS,
    mask=MASKS,
    group=st.integers(1, 3),
    packed=st.booleans(),
)
def test_pages_equal_enumeration_at_length(
    lengths: tuple[int, int], page: int, block_q: int, block_kv: int, mask: Any, group: int, packed: bool
) -> None:
    w = iomodel.Attention(
        q_len=lengths[0], kv_len=lengths[1], head_dim=1, heads=group, kv_heads=1, mask=mask, page_size=page
    )
    tiles, pages = {"block_q": block_q, "block_kv": block_kv}, touched(w, block_kv)
    rows = np.repeat(np.arange(w.q_len), group if packed else 1)
    low, high = interval(w, rows)
    by_queries = by_keys = 0
    for start in range(0, len(rows), block_q):
        here = slice(start, start + block_q)
        seeing = low[here] < high[here]
        if seeing.any():
            first, last = low[here][seeing].min() // block_kv, (high[here][seeing].max() - 1) // block_kv
            by_queries += int(pages[first : last + 1].sum())
    if (seeing := low < high).any():  # what anyone sees has no gap
        first, last = low[seeing].min() // block_kv, (high[seeing].max() - 1) // block_kv
        by_keys = int(pages[first : last + 1].sum())
    heads = 1 if packed else group
    for name, count in (("flash2", by_queries), ("tiled_query", 2 * by_queries), ("flash1", by_keys)):
        assert iomodel.cost(name, w, tiles, packed=packed).reads.get("block_table", 0) == heads * count, name
