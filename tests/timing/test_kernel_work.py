"""What a kernel asks of each resource, folded from its nest, against a walk over every tile of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from heapq import heapreplace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.nests import Accumulate, Axis, Exp, Fill, G, Lookup, MatMul, Random, Store, Tanh
from iomodel.nests import Load as LoadTile
from iomodel.timing.balance import MOST_TILES, Grid, Spread, spread, visits
from iomodel.timing.edge_visits import EdgeVisits
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.work_at_point import demands, widened
from tests.reference.masks import visible
from tests.support.inside import BY_NAME, PIPELINED, BoundCall, Nest, Statement, declared, kind_of, structural
from tests.support.interpreter import Here, Machine
from tests.support.strategies import VARIANTS, Case, Variant, bounds, cases, masks, workloads

WAYS = sorted({(variant.algorithm, variant.direction) for variant in VARIANTS})
PAIR = {"block_q", "block_kv"}
SAMPLE = list({(variant.algorithm, variant.direction): variant for variant in VARIANTS}.values())
"""One way to run each algorithm in each direction."""


def some(share: int) -> settings:
    """The profile's number of examples divided by `share`: each may fold a nest, which takes a while."""
    return settings(max_examples=max(4, settings().max_examples // share))


@dataclass
class Clocked(Machine):
    """A machine that counts as a clock does: every tile full, and how often a body that multiplies is gone through.

    Of the loops around a statement the first `grid` are blocks.
    """

    grid: int = 1

    def full(self, axis: Axis, here: Here) -> int:
        if axis in here.loops:
            return self.size(here.loops[axis].tile)
        whole = next((loop for walked, loop in here.loops.items() if walked.name == "query"), None)
        if axis.name == "head" and self.packed and whole is not None:  # as many as a full tile of packed rows has
            return min(self.size(whole.tile), self.values[G])
        return self.extent(axis, here)

    def area(self, axes: tuple[Axis, ...], here: Here) -> int:
        return int(np.prod([self.full(axis, here) for axis in axes], dtype=object))

    def body(self, block: Any, here: Here) -> None:
        if any(isinstance(statement, MatMul) for statement in block.body):
            self.counters["trips"] += 1
        super().body(block, here)

    def execute(self, statement: Statement, here: Here) -> None:
        before = Counter(self.counters)
        super().execute(statement, here)
        match statement:
            case MatMul(m=m, n=n, k=k):
                extents = tuple(self.full(axis, here) for axis in (m, n, k))
                self.counters[f"product {(m.name, n.name, k.name)} {extents}"] += 1
                if k.name == "value" and {m.name, n.name} == {"query", "key"}:
                    self.counters["gradients"] += extents[0] * extents[1]
            case Exp(axes=axes) | Tanh(axes=axes):
                self.counters["exps"] += self.area(axes, here)
                if isinstance(statement, Exp) and {"query", "key"} <= {axis.name for axis in axes}:
                    self.counters["scores"] += self.area(axes, here)
            case Random(axes=axes):
                self.counters["randoms"] += self.area(axes, here)
            case LoadTile(tensor=tensor) if self.in_turn(statement, here):
                # What a block loads once is no part of its trips, nor what a walk finds where it turns.
                if len(here.loops) > self.grid and not self.stayed(tensor, here):
                    self.counters["loaded"] += self.width(tensor.dtype) * self.area(tensor.axes, here)
            case Accumulate(tensor=tensor):  # in any order or in a fixed one
                written = f"{MOVES[-1]} {tensor.name}"
                self.counters["atomic_bytes"] += 4 * (self.counters[written] - before[written])
        if isinstance(statement, LoadTile | Lookup | Store | Fill | Accumulate):
            tensor = statement.tensor
            moved = sum(self.counters[f"{way} {tensor.name}"] - before[f"{way} {tensor.name}"] for way in MOVES)
            self.counters[f"moved {tensor.name}"] += self.width(tensor.dtype) * moved


MOVES = ("reads", "writes")
PLAIN = ("exps", "scores", "gradients", "randoms", "atomic_bytes", "trips")


def seen(w: iomodel.Attention) -> np.ndarray:
    """Which query sees which key."""
    told: dict[str, Any] = {"left": None, "right": None, "align": "bottom-right"} | bounds(w)
    found: np.ndarray = told["seen"] if "seen" in told else visible(w.q_len, w.kv_len, **told)
    return found


def complete(case: Case) -> dict[str, Any]:
    return dict(BoundCall.bind(case.algorithm, case.workload, case.options, tiled=bool(case.tiles)).options)


def asked(case: Case, padded: iomodel.Attention | None = None) -> dict[str, KernelWork]:
    """The demand of each kernel, by its title."""
    w, options = case.workload, complete(case)
    how = algorithm(case.algorithm).execution.get(w.direction, PIPELINED)
    folded = demands(algorithm(case.algorithm), kind_of(w), structural(options), how)
    return {demand.title: demand for demand in folded.at(w, padded or w, options, case.tiles)}


def depth(case: Case) -> int:
    """How many loops deal out blocks: the two of a tiled product, query tiles and splits, none of flash1."""
    if case.algorithm in {"standard", "eager"}:
        return 2 if case.tiles else -1
    slabs = int(case.options.get("value_slabs", False))  # of columns, outside the query tiles
    return slabs + {"flash1": 0, "split_kv": 2}.get(case.algorithm, 1)


def walked(case: Case) -> dict[str, Counter[str]]:
    """The same by walking the nest."""
    w, options = case.workload, complete(case)
    nest: Nest = declared(algorithm(case.algorithm), kind_of(w), dict(structural(options)))
    numbers = {name: value for name, value in options.items() if name in ("splits", "dq_buffers")}
    values = {BY_NAME[name]: n for name, n in {**w.numbers, **numbers, **case.tiles}.items()}
    packed = bool(options["packed"])
    shown = np.repeat(seen(w), w.group, axis=0) if packed else seen(w)

    def sighted(left: bool) -> np.ndarray:
        told: dict[str, Any] = {"left": None, "right": None, "align": "bottom-right"} | bounds(w)
        rows = visible(w.q_len, w.kv_len, **told | ({} if left else {"left": None}), more=64)
        return np.repeat(rows, w.group, axis=0) if packed else rows

    found = {}
    for kernel in nest:
        machine = Clocked(values, shown, packed, sighted=sighted, grid=depth(case))
        machine.run((kernel,))
        found[kernel.title] = machine.counters
    assert len(found) == len(nest)
    return found


def products(demand: KernelWork) -> Counter[str]:
    found: Counter[str] = Counter()
    for product in demand.products:
        found[f"product {product.axes} {product.extents}"] += product.runs
    return +found


def requested(demand: KernelWork) -> Counter[str]:
    """Reads and writes by tensor [B]."""
    found: Counter[str] = Counter()
    for moved in demand.moved:
        found[f"moved {moved.name}"] += moved.requested
    return +found


def blocks_of(case: Case) -> dict[str, int]:
    """Thread blocks of the kernels that multiply, by hand; a new kernel needs a line here."""
    w, tiles = case.workload, case.tiles
    group = w.group if case.options["packed"] else 1
    slabs = -(-w.value_dim // tiles.get("block_value", w.value_dim))
    instances, rows = w.batch * w.heads // group, w.q_len * group
    q, kv = (-(-size // tiles.get(name, 1)) for size, name in ((rows, "block_q"), (w.kv_len, "block_kv")))
    dq = -(-rows // tiles.get("dq_block_q", 1))
    scores, outputs, dps, dqs = (-(-rows // tiles.get(f"gemm{number}_m", 1)) for number in (1, 2, 4, 5))
    dvs, dks = (-(-w.kv_len // tiles.get(f"gemm{number}_m", 1)) for number in (3, 6))
    slices = {number: tiles.get(f"gemm{number}_n", 1) for number in (3, 5, 6)}
    return {
        "P": instances * dps,
        "dP = dO V^T": instances * dps,
        "dV = P^T dO": instances * dvs * -(-w.value_dim // slices[3]),
        "dQ = dS K": instances * dqs * -(-w.head_dim // slices[5]),
        "dK = dS^T Q": instances * dks * -(-w.head_dim // slices[6]),
        "flash1": instances,
        "flash1 backward": instances,
        "flash2": instances * q * slabs,
        "flash3": instances * q,
        "tiled_query": instances * q,
        "small_cache": instances * q,
        "S": instances * scores,
        "O": instances * outputs * -(-w.value_dim // tiles.get("gemm2_n", 1)),
        "flash2 on each split": instances * q * case.options.get("splits", 1),
        "flash2 backward": instances * kv,
        "flash3 backward": instances * kv,
        "dK, dV": instances * kv,
        "dQ": instances * dq,
    }


def nothing(counters: Counter[str]) -> bool:
    return not +counters


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@some(10)
@given(data=st.data())
def test_a_fold_counts_what_a_walk_counts(way: tuple[str, str], data: st.DataObject) -> None:
    holds(data.draw(st.sampled_from([v for v in VARIANTS if (v.algorithm, v.direction) == way]).flatmap(cases)))


@pytest.mark.parametrize("block_q", [2, 4])
def test_a_last_tile_of_packed_rows_has_room_for_as_many_heads_as_the_others(block_q: int) -> None:
    w = iomodel.Attention(heads=3, kv_heads=1, head_dim=1, q_len=3, kv_len=5, sinks=True)
    holds(Case("flash1", w, {"block_q": block_q, "block_kv": 1}, {"packed": True}))


def holds(case: Case) -> None:
    """Compare what is folded with what is counted on a walk."""
    folded, counted = asked(case), walked(case)
    assert {title for title, counters in counted.items() if not nothing(counters)} <= folded.keys() <= counted.keys()
    for title, demand in folded.items():
        counters = counted[title]
        assert {name: getattr(demand, name) for name in PLAIN} == {name: counters[name] for name in PLAIN}, title
        expected = Counter({name: n for name, n in counters.items() if name.startswith("product ")})
        assert products(demand) == +expected, title
        assert requested(demand) == {name: n for name, n in counters.items() if name.startswith("moved ") and n}, title
        if demand.products:
            assert demand.staged == counters["loaded"], title
        assert demand.products or not demand.staged
        if demand.products and case.algorithm not in {"standard", "eager"}:
            assert demand.blocks == blocks_of(case)[title], title
            assert demand.parts == (case.options.get("splits", 1) if "split" in title else 1)
    cost = case.cost()
    assert sum(demand.requested_bytes for demand in folded.values()) == cost.hbm_bytes
    footprint = max((demand.footprint for demand in folded.values()), default=0)
    assert footprint == cost.footprint_bytes or (footprint < cost.footprint_bytes and folded.keys() < counted.keys())
    added = sum(demand.atomic_bytes for demand in folded.values())
    assert added == 4 * cost.atomics or (added > 4 * cost.atomics and case.options["deterministic"])
    assert sum(product.flops for demand in folded.values() for product in demand.products) >= cost.flops
    assert sum(demand.exps for demand in folded.values()) >= cost.exps + cost.tanhs
    assert sum(demand.randoms for demand in folded.values()) >= cost.randoms


@pytest.mark.parametrize("variant", SAMPLE, ids=str)
@some(8)
@given(data=st.data(), times=st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_full_tiles_compute_what_the_cost_says(variant: Variant, data: st.DataObject, times: tuple[int, int]) -> None:
    """Without ragged tiles nothing is padded, whatever the mask."""
    case = data.draw(cases(variant, plain=True))
    tiles = {
        name: case.tiles["block_q" if name.endswith("_q") else "block_kv"] for name in case.tiles if "block" in name
    }
    tiles |= dict.fromkeys(case.tiles.keys() - tiles.keys(), 1)  # products without an attention tile: rows of one
    q_len, kv_len = (times[i] * tiles.get(name, 3) for i, name in enumerate(("block_q", "block_kv")))
    w = case.workload.model_copy(update={"q_len": q_len, "kv_len": kv_len})
    options = {**case.options, **({"splits": 1} if "splits" in case.options else {})}
    case = replace(case, workload=w, tiles=tiles, options=options)
    cost, folded = case.cost(), asked(case).values()
    assert sum(product.flops for demand in folded for product in demand.products) == cost.flops
    assert sum(demand.exps for demand in folded) == cost.exps + cost.tanhs
    assert sum(demand.randoms for demand in folded) == cost.randoms


def up(size: int, step: int) -> int:
    return -(-size // step) * step


@pytest.mark.parametrize("variant", [v for v in SAMPLE if set(v.tiles) == PAIR], ids=str)
@some(8)
@given(data=st.data())
def test_ragged_tiles_compute_as_much_as_full_ones(variant: Variant, data: st.DataObject) -> None:
    """Without a mask: as much as sequences that are longer by what the last tiles lack."""
    case = data.draw(cases(variant, plain=True))
    w = case.workload.model_copy(update={"mask": "full"})
    block_q, block_kv = case.tiles["block_q"], case.tiles["block_kv"]
    options = {name: on for name, on in case.options.items() if name != "splits"} | {"packed": False}
    case = replace(case, workload=w, options=options)
    longer = w.model_copy(update={"q_len": up(w.q_len, block_q), "kv_len": up(w.kv_len, block_kv)})
    padded = sum(product.flops for demand in asked(case).values() for product in demand.products)
    assert case.cost().flops <= padded == replace(case, workload=longer).cost().flops


@given(case=cases(Variant("flash2", "forward", {"lse": True}), plain=True), wider=st.integers(0, 9))
def test_wider_rows_widen_products_alone(case: Case, wider: int) -> None:
    w = case.workload
    (plain,) = asked(case).values()
    (padded,) = asked(case, widened(w, w.head_dim + wider, w.value_dim + wider)).values()
    assert replace(padded, products=plain.products) == plain
    for one, other in zip(plain.products, padded.products, strict=True):
        more = tuple(wider if axis in ("depth", "value") else 0 for axis in one.axes)
        assert other.extents == tuple(size + extra for size, extra in zip(one.extents, more, strict=True))
        assert (other.runs, other.axes) == (one.runs, one.axes)


@given(case=cases(Variant("flash2", "forward", {"lse": True}), plain=True))
def test_each_tensor_is_in_memory_once(case: Case) -> None:
    w = case.workload
    (demand,) = asked(case).values()
    keys, heads, size = w.batch * w.kv_heads, w.batch * w.heads, w.element_size
    there = {
        "Q": (size * heads * w.q_len * w.head_dim, heads),
        "K": (size * keys * w.kv_len * w.head_dim, keys),
        "V": (size * keys * w.kv_len * w.value_dim, keys),
        "O": (size * heads * w.q_len * w.value_dim, heads),
        "LSE": (4 * heads * w.q_len, heads),
    }
    for moved in demand.moved:
        distinct, instances = there[moved.name]
        assert (moved.distinct, moved.instances) == (min(distinct, moved.requested), instances)
        assert not moved.again
    assert {moved.name for moved in demand.moved} >= {"O", "LSE"}


def enumerated(shown: np.ndarray, u: int, v: int) -> list[int]:
    """Tiles of v columns that each tile of u rows sees something of."""
    return [
        sum(bool(shown[i : i + u, j : j + v].any()) for j in range(0, shown.shape[1], v))
        for i in range(0, shown.shape[0], u)
    ]


BLIND = iomodel.Attention(q_len=12, kv_len=3, head_dim=1, mask="causal")  # its first rows see nothing
sizes = st.integers(1, 9)


@example(BLIND, "query", 4, 2, False)
@example(BLIND, "key", 4, 2, False)
@example(BLIND.model_copy(update={"heads": 3, "kv_heads": 1}), "query", 5, 2, True)
@example(iomodel.Attention(q_len=3, kv_len=12, head_dim=1, mask=iomodel.Window(left=1, right=0)), "key", 2, 2, False)
@example(BLIND.model_copy(update={"heads": 3, "kv_heads": 1, "mask": iomodel.Window(left=1)}), "key", 1, 2, True)
@example(BLIND.model_copy(update={"mask": iomodel.Window()}), "query", 4, 2, False)
@given(
    w=st.builds(lambda w, mask: w.model_copy(update={"mask": mask}), workloads(30), masks),
    outer=st.sampled_from(["query", "key"]),
    u=sizes,
    v=sizes,
    packed=st.booleans(),
)
def test_a_spread_is_that_of_the_tiles(w: iomodel.Attention, outer: str, u: int, v: int, packed: bool) -> None:
    shown = np.repeat(seen(w), w.group if packed else 1, axis=0)
    visits = enumerated(shown if outer == "query" else shown.T, u, v)
    found = spread(w, outer, u, v, packed)
    assert [visits for visits, many in found.runs for _ in range(many)] == sorted(visits, reverse=True)
    assert (found.longest, found.total, found.blocks) == (max(visits), sum(visits), len(visits))


shares_of = st.lists(st.floats(0.5, 1), max_size=3).map(
    lambda falls: list(np.cumprod([1.0, *(max(fall, (n - 1) / n) for n, fall in enumerate(falls, 2))]))
)
"""Times per block with 1, 2, ... at once, each not above the one before; n of them take no less than n - 1."""


one_edge = st.one_of(
    st.just("causal"),
    st.builds(iomodel.Window, left=st.integers(0, 40)),
    st.builds(iomodel.Window, right=st.integers(0, 40), align=st.sampled_from(["top-left", "bottom-right"])),
)


@example(BLIND, "causal", "query", 1, 4, False)
@given(
    w=workloads(60),
    mask=one_edge,
    outer=st.sampled_from(["query", "key"]),
    u=st.integers(1, 16),
    v=st.integers(1, 16),
    packed=st.booleans(),
)
def test_the_formula_of_one_edge_ranks_the_tiles(
    w: iomodel.Attention, mask: Any, outer: str, u: int, v: int, packed: bool
) -> None:
    """Every rank, the ends, the empty tiles and the sum are exact."""
    w = w.model_copy(update={"mask": mask})
    found, enumerated_ = visits(w, outer, u, v, packed), spread(w, outer, u, v, packed)
    assert isinstance(found, EdgeVisits)
    in_order = [n for n, many in enumerated_.runs for _ in range(many)]
    assert [float(found.ranked(float(rank))) for rank in range(int(found.blocks))] == in_order
    assert found.ends == enumerated_.ends
    assert found.shares - found.total == pytest.approx(enumerated_.shares - enumerated_.total)
    assert found.total == enumerated_.total


@example(
    blocks=1, more_keys=5000, rows=(64, 128), outer="key", copies=1, units=40, order="grid", start=0.0, falls=[1.0]
)
@given(
    blocks=st.integers(1, 300),
    more_keys=st.sampled_from([0, 0, 500, 5000]),
    rows=st.sampled_from([(128, 64), (64, 128), (128, 128), (64, 32)]),
    outer=st.sampled_from(["query", "key"]),
    copies=st.integers(1, 64),
    units=st.sampled_from([40, 108, 132, 264]),
    order=st.sampled_from(["grid", "longest first"]),
    start=st.sampled_from([0.0, 3.0]),
    falls=shares_of,
)
def test_the_formula_of_one_edge_takes_as_long_as_the_list(
    blocks: int, more_keys: int, rows: tuple[int, int], outer: str, copies: int, units: int, order: Any, start: float,
    falls: list[float],
) -> None:  # fmt: skip
    u, v = rows
    w = iomodel.Attention(q_len=blocks * u, kv_len=blocks * u + more_keys, head_dim=64, mask="causal")
    both = [
        Grid(tiles(w, outer, u, v), copies, units).busiest(order, block=start, shares=falls)
        for tiles in (visits, spread)
    ]
    assert both[0] == pytest.approx(both[1], rel=0.02)


@given(length=st.integers(1, 40), u=sizes, v=sizes, causal=st.booleans())
def test_masks_given_by_data_spread_evenly(length: int, u: int, v: int, causal: bool) -> None:
    w = iomodel.Attention(q_len=length, head_dim=1, mask=iomodel.Documents([length], causal=causal))
    q, kv = -(-length // u), -(-length // v)
    assert spread(w, "query", u, v) == Spread(((kv, q),))


def best_makespan(lengths: list[int], units: int) -> int:
    """Visits of the busiest of so many SMs if blocks are shared out as well as can be, by trying every way."""
    loads = {(0,) * units}
    for length in lengths:
        loads = {tuple(sorted((*load[:i], load[i] + length, *load[i + 1 :]))) for load in loads for i in range(units)}
    return min(map(max, loads))


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def runs(visits: list[int]) -> Spread:
    counted = tuple((n, visits.count(n)) for n in sorted(set(visits), reverse=True))
    return Spread(counted, (visits[0], visits[-1]))


def listed(lengths: list[int], units: int) -> float:
    """The end of the last block if each starts on the first SM that is free, in this order."""
    ends = [0] * units
    for length in lengths:
        heapreplace(ends, ends[0] + length)
    return max(ends)


@given(visits=lengths, copies=st.integers(1, 2), units=st.integers(1, 4))
def test_the_longest_first_are_bounded_and_near(visits: list[int], copies: int, units: int) -> None:
    """No way to share blocks out takes less, and a third more than it says is enough."""
    found = Grid(runs(visits), copies, units).busiest("longest first")
    best = best_makespan(visits * copies, units)
    assert found <= best + 1e-9
    assert found >= best * 3 / 4 - 1e-9


@example(544, (128, 64), 0, "key", 19, 40)  # 1.03e-4 above, by the sample of 512 tiles
@given(
    blocks=st.integers(1, 700),
    rows=st.sampled_from([(128, 64), (64, 128), (128, 128), (64, 32)]),
    more_keys=st.sampled_from([0, 0, 500, 5000]),
    outer=st.sampled_from(["query", "key"]),
    copies=st.integers(1, 64),
    units=st.sampled_from([40, 108, 132, 216, 264]),
)
def test_blocks_in_the_order_of_the_grid_end_when_a_list_schedule_does(
    blocks: int, rows: tuple[int, int], more_keys: int, outer: str, copies: int, units: int
) -> None:
    u, v = rows
    w = iomodel.Attention(q_len=blocks * u, kv_len=blocks * u + more_keys, head_dim=64, mask="causal")
    found = spread(w, outer, u, v)
    ascending = range(found.blocks)
    if outer == "query":
        visits = [-(-(more_keys + (tile + 1) * u) // v) for tile in ascending]
    else:
        visits = [-(-w.q_len // v) - max(0, tile * u - more_keys) // v for tile in ascending]
    assert found.ends == (visits[0], visits[-1])
    exact = listed(visits * copies, units)
    assert Grid(found, copies, units).busiest() == pytest.approx(exact, rel=0.2)
    sampled = 1e-9 if found.blocks <= MOST_TILES else 2e-4
    assert Grid(found, copies, units).busiest("longest first") <= exact * (1 + sampled)


def test_nine_in_ten_list_schedules_are_within_a_twentieth() -> None:
    rng, errors = np.random.default_rng(0), []
    for _ in range(150):
        length, copies = int(rng.choice([512, 1000, 2048, 4096, 16384])), int(rng.integers(1, 65))
        units = int(rng.choice([108, 132, 216, 264]))
        w = iomodel.Attention(q_len=length, head_dim=64, mask="causal")
        visits = [-(-min(length, (tile + 1) * 128) // 64) for tile in range(-(-length // 128))]
        ends = Grid(spread(w, "query", 128, 64), copies, units).busiest()
        errors.append(abs(ends / listed(visits * copies, units) - 1))
    assert np.median(errors) <= 0.01
    assert np.quantile(errors, 0.9) <= 0.05


@given(
    visits=lengths,
    more=st.integers(0, 9),
    at=st.integers(0, 5),
    copies=st.integers(1, 50),
    units=st.integers(1, 40),
)
def test_more_work_never_takes_the_busiest_sm_less(
    visits: list[int], more: int, at: int, copies: int, units: int
) -> None:
    least = Grid(runs(visits), copies, units).busiest("longest first")
    longer = [n + more if i == at else n for i, n in enumerate(visits)]
    assert Grid(runs(longer), copies, units).busiest("longest first") >= least
    assert Grid(runs([*visits, more]), copies, units).busiest("longest first") >= least
    assert Grid(runs(visits), copies + 1, units).busiest("longest first") >= least
    assert Grid(runs(visits), copies, units + 1).busiest("longest first") <= least


@given(visit=st.integers(1, 9), blocks=st.integers(1, 30), copies=st.integers(1, 30), units=st.integers(1, 200))
def test_blocks_of_one_length_go_in_whole_waves(visit: int, blocks: int, copies: int, units: int) -> None:
    deep = -(-blocks * copies // units)
    one = Spread(((visit, blocks),))
    assert Grid(one, copies, units).busiest() == visit * deep
    two = Grid(one, copies, units).busiest(shares=(1.0, 0.75))  # two at once take three quarters of their times in turn
    assert two == pytest.approx(visit * (deep // 2 * 1.5 + deep % 2))


@given(visits=lengths, copies=st.integers(1, 50), units=st.integers(1, 40), falls=shares_of)
def test_more_blocks_at_once_never_take_longer(visits: list[int], copies: int, units: int, falls: list[float]) -> None:
    for many in range(1, len(falls)):
        less, more = (Grid(runs(visits), copies, units).busiest(shares=falls[:n]) for n in (many, many + 1))
        assert more <= less * (1 + 1e-12)


@pytest.mark.parametrize("length", [10**10, 10**18])
def test_long_sequences_take_no_longer_to_count(length: int) -> None:
    """Of more than 512 outer tiles as many stand for all: the ends are exact, the total is near."""
    w = iomodel.Attention(q_len=length, head_dim=64, mask="causal")
    found = spread(w, "query", 128, 64)
    assert len(found.runs) <= 512
    assert found.blocks == -(-length // 128)
    assert found.ends == (2, -(-length // 64))
    assert found.total == pytest.approx(length / 128 * length / 128, rel=0.01)


def test_the_loop_that_blocks_share_out_is_known() -> None:
    """FlashAttention-2 shares queries out in the forward pass, keys in the backward pass."""
    w = iomodel.Attention(q_len=100, kv_len=70, head_dim=8, mask="causal")
    tiles, options = {"block_q": 16, "block_kv": 32}, {"packed": False}
    (forward,) = asked(Case("flash2", w, tiles, options)).values()
    assert (forward.outer, forward.inner) == (("query", 16), 32)
    backward = asked(Case("flash2", w.model_copy(update={"direction": "backward"}), tiles, options))["flash2 backward"]
    assert (backward.outer, backward.inner) == (("key", 32), 16)
    (first,) = asked(Case("flash1", w, tiles, options)).values()
    assert first.outer is None  # a block goes over all keys by itself
    assert all(moved.again for moved in first.moved)


def test_heads_that_share_keys_are_rows_of_one_product() -> None:
    """An indexer of 5 heads over 8 queries and 48 keys, in tiles of 2 and 16: 12 trips, each of two products."""
    w = iomodel.Attention(batch=3, heads=2, kv_heads=1, q_len=8, kv_len=48, head_dim=64)
    options = {"index_heads": 5, "index_queries": 2, "index_dim": 32, "top_k": 4}
    tiles = {"block_q": 2, "block_kv": 4, "block_sum": 16}
    bound = BoundCall.bind("dsa", w, options)
    how = algorithm("dsa").execution["forward"]
    scores, *_ = demands(algorithm("dsa"), kind_of(w), structural(bound.options), how).at(w, w, bound.options, tiles)
    assert scores.trips == 3 * 4 * 3
    assert [product.extents for product in scores.products] == [(2 * 5, 16, 32), (2, 16, 5)]
    assert [product.runs for product in scores.products] == [scores.trips, scores.trips]
    assert scores.flops == 3 * 8 * 48 * 5 * 2 * (32 + 1)
