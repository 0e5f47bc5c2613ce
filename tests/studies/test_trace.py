"""A trace adds up to what the formulas say, event by event, for every algorithm, direction, mask and feature."""

from __future__ import annotations

import csv
import json
import pickle
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import iomodel
from iomodel.nests import B, G, H, H_kv, N_k, N_q
from iomodel.studies.trace.compile import programs
from iomodel.studies.trace.events import Event
from iomodel.studies.trace.machine import TraceMachine
from iomodel.studies.trace.rates import TraceRates
from tests.nests.test_language import CORNERS, Scene, points, scenes
from tests.reference.masks import visible
from tests.support import interpreter
from tests.support.inside import H_k, MaskSpans, View, main
from tests.support.strategies import (
    APPROXIMATE,
    EXACT,
    VARIANTS,
    Case,
    Variant,
    bounds,
    cases,
    data_masks,
    fraction_of_examples,
    mask_kinds,
    masks,
)

SUMS = ("atomics", "flops", "exps", "tanhs", "randoms", "hbm_bytes", "hbm_elements")
WORK = {"flops": "MatMul", "exps": "Exp", "tanhs": "Tanh", "randoms": "Random"}


def traced(case: Case, **more: Any) -> iomodel.results.Trace:
    return iomodel.trace(case.algorithm, case.workload, None, case.tiles, **more, **case.options)


def without_zeros(moved: Any) -> dict[str, int]:
    return {name: n for name, n in moved.items() if n}


def added(events: Iterable[Event]) -> dict[str, Any]:
    """What events add up to, by another way than the library's."""
    found = list(events)
    reads, writes = Counter[str](), Counter[str]()
    for event in found:
        reads[event.tensor] += event.reads
        writes[event.tensor] += event.writes
    return {
        "reads": +reads,
        "writes": +writes,
        "atomics": sum(event.elements for event in found if event.atomic),
        "hbm_bytes": sum(event.hbm_bytes for event in found),
        "hbm_elements": sum(event.reads + event.writes for event in found),
        **{name: sum(event.work for event in found if event.op == op) for name, op in WORK.items()},
    }


@pytest.mark.parametrize("variant", APPROXIMATE, ids=str)
@fraction_of_examples(16)
@given(data=st.data())
def test_a_trace_of_an_approximation_adds_up_to_the_cost(variant: Variant, data: st.DataObject) -> None:
    case = data.draw(cases(variant))
    cost = case.cost()
    found = traced(case, traced_heads="all")
    whole = found.whole
    assert whole.events == found.count
    assert without_zeros(cost.reads) == whole.reads
    assert without_zeros(cost.writes) == whole.writes
    assert {name: getattr(cost, name) for name in SUMS} == {name: getattr(whole, name) for name in SUMS}


@pytest.mark.parametrize("name", EXACT)
@fraction_of_examples(16)
@given(data=st.data())
def test_a_trace_adds_up_to_the_cost(name: str, data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from([variant for variant in VARIANTS if variant.algorithm == name]))
    case = data.draw(cases(variant))
    assume(case.workload.numbers.get("kv_size", 32) % 32 == 0)  # a trace moves whole bytes
    cost, found = case.cost(), traced(case, traced_heads="all")
    whole = found.whole
    assert without_zeros(cost.reads) == whole.reads
    assert without_zeros(cost.writes) == whole.writes
    assert {name: getattr(cost, name) for name in SUMS} == {name: getattr(whole, name) for name in SUMS}
    assert whole.peak_hbm == cost.peak_hbm_bytes
    # Where no query sees a key, a formula still has room for the tiles of a loop that never runs.
    assert whole.peak_sram <= cost.footprint_bytes
    if cost.useful_flops:
        assert whole.peak_sram == cost.footprint_bytes

    events = list(found.events)
    assert len(events) == found.count == found.summary.events == whole.events
    assert added(events) == {
        **{name: getattr(whole, name) for name in SUMS},
        "reads": whole.reads,
        "writes": whole.writes,
    }
    assert max(event.sram for event in events) == whole.peak_sram
    for event in events:
        assert all(start < stop for _, start, stop in event.tile)
        assert sum(size for _, size in event.buffers) == event.sram
        if event.hbm_bytes:
            assert event.elements == np.prod([stop - start for _, start, stop in event.tile], dtype=int)

    every = case.workload.batch * case.workload.heads
    heads = data.draw(st.integers(1, every))
    part = traced(case, traced_heads=heads)
    assert part.whole == whole
    assert part.count == len(list(part.events)) == part.summary.events
    kept = {event[:3] for event in part.events}
    assert list(part.events) == [event for event in events if event[:3] in kept]
    assert len({(e.batch, e.head) for e in part.events if e.kernel == events[-1].kernel}) in (
        heads,
        -(-heads // case.workload.group),
    )


def interpreted(scene: Scene) -> tuple[Counter[str], tuple[int, int]]:
    """What a slow machine counts that runs the nest statement by statement, and the bytes on chip and in HBM."""
    machine = interpreter.Machine(scene.values, rows_seen(scene), scene.packed)
    machine.run(scene.nest)
    return +machine.counters, (max(size for _, size in machine.live), machine.peak_hbm(scene.nest)[1])


def rows_seen(scene: Scene) -> np.ndarray:
    return np.repeat(scene.visible(), scene.values[G], axis=0) if scene.packed else scene.visible()


@given(
    scene=scenes(exact=True)  # a table of the mask has no sides to skip
    | st.builds(Scene, st.sampled_from(list(CORNERS.values())), mask_kinds, st.booleans(), points())
)
def test_a_nest_that_no_algorithm_has_runs_as_well(scene: Scene) -> None:
    values, view = scene.values, View(scene.kind, scene.packed)
    table = iomodel.BlockMask(scene.visible(), 1, 1)
    mask = MaskSpans(table, values[N_q], values[N_k], values[G] if scene.packed else 1)
    found, sram, hbm = Counter[str](), [0], [0]
    for program in programs(scene.nest, values, view):
        heads = {"head": values[H_kv if scene.packed else H], "kv_head": values[H_kv], "key_head": values[H_k]}
        repeated = 1 if program.per == "call" else values[B] * heads.get(program.per, 1)
        hbm.append(program.allocated)
        for event in TraceMachine(program, mask, TraceRates(), 0, 0).events():
            sram.append(event.sram)
            moved = {f"reads {event.tensor}": event.reads, f"writes {event.tensor}": event.writes}
            kind = "flops" if event.op == "MatMul" else event.op
            atomics = event.elements if event.atomic else 0
            for name, n in {**moved, kind: event.work, "atomics": atomics}.items():
                found[name] += n * repeated
    expected, (live, allocated) = interpreted(scene)
    assert +found == expected
    assert max(hbm) == allocated
    assert max(sram) <= live


@pytest.mark.parametrize(
    ("name", "fields", "options"),
    [
        ("flash2", {"page_size": 4, "mask": "causal", "kv_scales": "token", "kv_dtype": "fp8"}, {"packed": True}),
        ("split_kv", {"page_size": 4, "sinks": True}, {"splits": 3}),
        ("tiled_query", {"page_size": 3, "mask": iomodel.Window(left=5, right=2)}, {}),
        ("flash3", {"latent": True, "kv_heads": 1, "value_dim": 3}, {}),
        ("flash1", {"alibi": True, "bias": True, "softcap": 9.0, "dropout": 0.5}, {"packed": True}),
        ("standard", {"kv_scales": "head", "alibi": True}, {"tiled": True, "packed": True}),
        ("flash2", {"mask": iomodel.BlockMask([[1, 0, 1, 0, 1, 1, 0], [0] * 7, [0, 0, 0, 1, 0, 0, 1]], 4, 2)}, {}),
        ("flash2", {"kv_len": 11, "mask": iomodel.Documents([3, 6, 2], causal=True)}, {"packed": True}),
        ("flash1", {"kv_len": 11, "mask": iomodel.Documents([3, 6, 2])}, {}),
    ],
)
def test_features(name: str, fields: dict[str, Any], options: dict[str, Any]) -> None:
    """Where a last page is not full, where a group is packed, where V is a part of K."""
    w = iomodel.Attention(**{"heads": 4, "kv_heads": 2, "q_len": 11, "kv_len": 14, "head_dim": 5, **fields})
    tiles = dict.fromkeys(iomodel.expressions(name, **options).tiles, 5)
    case = Case(name, w, tiles, options)
    cost, found = case.cost(), traced(case, traced_heads="all").summary
    assert without_zeros(cost.reads) == found.reads
    assert without_zeros(cost.writes) == found.writes
    assert {quantity: getattr(cost, quantity) for quantity in SUMS} == {q: getattr(found, q) for q in SUMS}
    assert (found.peak_sram, found.peak_hbm) == (cost.footprint_bytes, cost.peak_hbm_bytes)


def test_the_passes_of_both_directions_follow_each_other() -> None:
    w = iomodel.Attention(heads=4, kv_heads=2, q_len=30, head_dim=4, mask="causal", direction="both", dropout=0.5)
    tiles = {"block_q": 8, "block_kv": 7, "bwd_block_q": 5, "bwd_block_kv": 9}
    cost, found = iomodel.cost("flash2", w, tiles), iomodel.trace("flash2", w, None, tiles, traced_heads=3)
    assert without_zeros(cost.reads) == found.whole.reads
    assert (cost.flops, cost.peak_hbm_bytes) == (found.whole.flops, found.whole.peak_hbm)
    assert cost.footprint_bytes == found.whole.peak_sram == found.summary.peak_sram
    kernels = list(dict.fromkeys(event.kernel for event in found.events))
    assert kernels.index("flash2") < kernels.index("flash2 backward") < kernels.index("dQ in its own dtype")
    programs = {event[:3] for event in found.events}
    assert {(b, h) for kernel, b, h in programs if kernel == "flash2"} == {(0, 0), (0, 1), (0, 2)}
    assert {(b, h) for kernel, b, h in programs if kernel == "dK summed over the group"} == {(0, 0), (0, 1)}


SMALL = iomodel.Attention(q_len=3, kv_len=5, head_dim=4, mask="causal")
EVENTS = """
Hold O[0:2, 0:4] 32
Hold l[0:2] 40
Hold m[0:2] 48
Load Q[0:2, 0:4] 64
Load K[0:3, 0:4] 88
Load V[0:3, 0:4] 112
Hold S[0:2, 0:3] 136
MatMul query 0:2, key 0:3, depth 0:4 136
Exp query 0:2, key 0:3 136
Exp query 0:2 136
MatMul query 0:2, value 0:4, key 0:3 136
Load K[3:5, 0:4] 88
Load V[3:5, 0:4] 112
Hold S[0:2, 3:5] 136
MatMul query 0:2, key 3:5, depth 0:4 136
Exp query 0:2, key 3:5 136
Exp query 0:2 136
MatMul query 0:2, value 0:4, key 3:5 136
Store O[0:2, 0:4] 64
Store LSE[0:2] 64
"""


def test_the_heads_of_a_program_are_traced_together() -> None:
    """Packed heads of a group share their programs, so that the first heads of a group have the events of all."""
    w = iomodel.Attention(batch=2, heads=6, kv_heads=2, q_len=6, kv_len=10, head_dim=4)
    tiles = {"block_q": 3, "block_kv": 4}
    packed = [iomodel.trace("flash2", w, None, tiles, traced_heads=n, packed=True).count for n in range(1, 13)]
    alone = [iomodel.trace("flash2", w, None, tiles, traced_heads=n).count for n in range(1, 13)]
    assert packed == [packed[-1] // 4 * group for group in (1, 2, 3, 4) for _ in range(3)]
    assert alone == [alone[0] * n for n in range(1, 13)]


def test_the_events_of_a_small_case() -> None:
    """Two queries of three see the keys up to 2 and 3: both key tiles; a buffer is as large as a full tile."""
    found = list(iomodel.trace("flash2", SMALL, None, {"block_q": 2, "block_kv": 3}).events)
    first = [f"{event.op} {event.where} {event.sram}" for event in found[:20]]
    assert first == EVENTS.split("\n")[1:-1]
    assert [event.where for event in found[20:] if event.op == "Load"][:2] == ["Q[2:3, 0:4]", "K[0:3, 0:4]"]
    assert [event.work for event in found if event.op == "MatMul"] == [48, 48, 32, 32, 24, 24, 16, 16]
    assert dict(found[4].buffers) == {"O": 32, "l": 8, "m": 8, "Q": 16, "K": 24}
    assert found[4].bytes == found[4].hbm_bytes == 24
    assert {event.hbm for event in found} == {3 * 4 * 2 * 2 + 5 * 4 * 2 * 2 + 3 * 4}


PIECES = iomodel.Attention(q_len=24, head_dim=2, mask="causal")


def tiles_of(name: str, tensor: str, call: iomodel.Attention, axis: str, **options: Any) -> list[tuple[int, int]]:
    """The ranges of an axis of a tensor that a trace moves, in order."""
    tiles = dict.fromkeys(iomodel.expressions(name, "causal", **options).tiles, 4)
    moves = iomodel.trace(name, call, tiles=tiles, **options).events
    return [event.tile[[axis for axis, _, _ in event.tile].index(axis)][1:] for event in moves
            if event.tensor == tensor and event.op in ("Load", "Store") and axis in {name for name, _, _ in event.tile}
            ]  # fmt: skip


def test_the_rows_of_pieces_follow_each_other() -> None:
    """Sections of ten rows, causal among themselves; remainders modulo ten, of which four have three positions."""
    fixed = {"stride": 10, "fixed": True}
    assert tiles_of("sparse_transformer", "O", PIECES, "query", **fixed) == [
        (0, 4), (4, 8), (8, 10), (10, 14), (14, 18), (18, 20), (20, 24),
    ]  # fmt: skip
    keys = [[(0, 4)], [(0, 4), (4, 8)], [(0, 4), (4, 8), (8, 10)]]
    sections = [(start + low, start + high) for start in (0, 10) for seen in keys for low, high in seen]
    assert tiles_of("sparse_transformer", "K", PIECES, "key", **fixed) == [*sections, (20, 24)]
    remainders = [(0, 3), (3, 6), (6, 9), (9, 12), (12, 14), (14, 16), (16, 18), (18, 20), (20, 22), (22, 24)]
    for tensor, axis in (("K", "key"), ("O", "query")):
        assert tiles_of("sparse_transformer", tensor, PIECES, axis, stride=10, second=True) == remainders


def test_rows_that_pieces_share_count_from_each_piece() -> None:
    """Every query of DSA gathers rows of its own, even where those of two pieces are as many as the keys."""
    options = {"index_heads": 1, "index_dim": 2, "top_k": 12}
    gathered = tiles_of("dsa", "K", PIECES, "key", **options)
    assert max(stop for _, stop in gathered) == 12
    assert sum(stop - start for start, stop in gathered) == 12 * 12 + sum(range(1, 13))
    queries = [start for start, _ in tiles_of("dsa", "O", PIECES, "query", **options)]
    assert queries == [*range(12), *range(12, 24)]
    stored = tiles_of("reformer", "LSE_acc", PIECES, "query", buckets=6, rounds=1)[:6]
    assert stored == [(start, start + 4) for start in range(0, 24, 4)]


def visible_pairs(w: iomodel.Attention) -> Any:
    found = {"left": None, "right": None, "align": "bottom-right", **bounds(w)}
    return found["seen"] if "seen" in found else visible(w.q_len, w.kv_len, **found)


@fraction_of_examples(1)
@given(data=st.data())
def test_a_tile_sees_what_some_pair_of_positions_sees(data: st.DataObject) -> None:
    lengths = st.integers(1, 14)
    q_len, group = data.draw(lengths), data.draw(st.integers(1, 3))
    kv_len = data.draw(st.just(q_len) | lengths)
    cuts = sorted({0, q_len} | data.draw(st.sets(st.integers(0, q_len))))
    documents = st.builds(iomodel.Documents, st.just(np.diff(cuts).tolist()), st.booleans())
    mask = data.draw(documents if q_len == kv_len and data.draw(st.booleans()) else masks | data_masks(q_len, kv_len))
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=1, mask=mask)
    seen = np.repeat(visible_pairs(w), group, axis=0)
    for axis, table in (("key", seen), ("query", seen.T)):
        start = data.draw(st.integers(0, len(table) - 1))
        stop = data.draw(st.integers(start + 1, len(table)))
        spans = MaskSpans(w.mask, q_len, kv_len, group).spans(axis, start, stop)
        rows = np.zeros(table.shape[1], dtype=bool)
        for low, high in [(0, len(rows))] if spans is None else spans:
            assert 0 <= low < high <= len(rows)
            rows[low:high] = True
        assert (rows == table[start:stop].any(axis=0)).all()


W = iomodel.Attention(batch=2, heads=4, kv_heads=2, q_len=100, head_dim=8, mask="causal")
TILES = {"block_q": 16, "block_kv": 32}


def test_a_trace_is_a_value_and_its_events_start_anew() -> None:
    found = iomodel.trace("flash2", W, "sim-a100", TILES, traced_heads=3)
    assert (
        found
        == iomodel.trace("flash2", W, "sim-a100", TILES, traced_heads=3)
        != iomodel.trace("flash2", W, None, TILES)
    )
    assert pickle.loads(pickle.dumps(found)) == deepcopy(found) == found
    assert hash(found) == hash(deepcopy(found))
    one, other = found.events, found.events
    assert all(a == next(other) for a in one)  # by turns: neither moves the other's tiles
    plain = json.loads(json.dumps(found.to_dict()))
    assert len(plain["events"]) == found.count
    assert plain["events"][3]["tile"] == {"query": [0, 16], "depth": [0, 8]}
    assert len(found.to_dict(events=7)["events"]) == 7
    assert plain["summary"]["hbm_bytes"] == found.summary.hbm_bytes
    assert "3 of 8 heads" in str(found)


@pytest.mark.parametrize(("device", "unit"), [("sim-a100", "clk"), ("h100-sxm5", "clk"), ("h200-sxm", "s")])
def test_times_follow_from_the_rates_of_the_device(device: str, unit: str) -> None:
    w = W.model_copy(update={"direction": "backward"})  # which adds in HBM, both ways
    gpu, found = iomodel.hardware(device), iomodel.trace("flash2", w, device, TILES, traced_heads="all")
    clock = gpu.compute.clock.boost.value if unit == "clk" else 1
    cost, total = iomodel.cost("flash2", w, TILES), found.summary
    assert total.unit == unit
    assert total.hbm_time == pytest.approx(cost.hbm_bytes / gpu.memory.hbm.bandwidth.value * clock)
    assert total.compute_time == pytest.approx(cost.flops / gpu.compute.peak.bf16.value * clock)
    assert total.hbm_time == pytest.approx(sum(event.hbm_time for event in found.events))
    assert total.compute_time == pytest.approx(sum(event.compute_time for event in found.events))
    assert total.hbm_share == total.hbm_time / (total.hbm_time + total.compute_time)


def test_no_time_without_a_device_or_a_figure() -> None:
    bare = iomodel.trace("flash2", W, None, TILES)
    assert (bare.summary.hbm_time, bare.summary.compute_time, bare.summary.hbm_share) == (None, None, None)
    apple = iomodel.trace("flash2", W, "apple-m1", TILES)  # which gives no rate of bf16
    assert apple.summary.hbm_time is not None
    assert apple.summary.compute_time is None is next(apple.events).compute_time
    assert "time on products" not in str(apple)


def test_standard_attention_on_the_simulated_a100() -> None:
    """A clock moves one element: S and P go out and come back, 4 N^2 of the 4 N^2 + 4 N d elements."""
    n, d = 4096, 64
    found = iomodel.trace("standard", iomodel.Attention(q_len=n, head_dim=d), "sim-a100")
    total = found.summary
    assert total.reads == {"Q": n * d, "K": n * d, "S": n * n, "P": n * n, "V": n * d}
    assert total.writes == {"S": n * n, "P": n * n, "O": n * d}
    assert total.hbm_time == 4 * n * n + 4 * n * d
    assert total.compute_time == 4 * n * n * d / 150
    tiled = iomodel.trace("standard", iomodel.Attention(q_len=n, head_dim=d), "sim-a100", tiled=True, most_events=10**8)
    assert tiled.tiles == iomodel.solve("standard", tiled.workload, "sim-a100").tiles


def test_without_tiles_those_of_the_solver_are_traced() -> None:
    found = iomodel.trace("flash2", W, "sim-v100", lse=False)
    best = iomodel.solve("flash2", W, "sim-v100", lse=False)
    assert (found.tiles, found.whole.reads["K"]) == (best.tiles, best.cost.reads["K"])
    assert found.summary.peak_sram <= iomodel.hardware("sim-v100").sram_per_block == found.rates.sram


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": None}, "tiles: none given; allowed: tiles, or a hardware"),
        ({"traced_heads": 9}, "traced_heads: 9 given; allowed: 1 to 8, or 'all'"),
        ({"traced_heads": "some"}, "traced_heads: 'some' given"),
        ({"traced_heads": 0}, "traced_heads: 0 given"),
        ({"hardware": 3}, "hardware: 3 given"),
        ({"hardware": "sim-p100"}, "hardware: 'sim-p100' is unknown; did you mean"),
        ({"most_events": 10}, "most_events: 10 given; allowed: from 154 up, the events of this trace"),
        ({"workload": iomodel.VarlenAttention(q_lens=[3], head_dim=4)}, "workload: Varlen"),
        ({"tiles": {"block_q": 16}}, "block_kv"),
        ({"splits": 3}, "option of flash2: 'splits' is unknown"),
        ({"workload": iomodel.Attention(q_len=8, head_dim=8, kv_dtype="int4")}, "kv_dtype: int4 given; allowed in a"),
    ],
)
def test_bad_input_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    given = {"algorithm": "flash2", "workload": W, "hardware": None, "tiles": TILES, **change}
    with pytest.raises(iomodel.IOModelError) as caught:
        iomodel.trace(**given)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_trace_that_is_too_long_is_refused_at_once() -> None:
    w = iomodel.Attention(q_len=10**12, head_dim=128, mask=iomodel.Window(left=4095, right=0))
    with pytest.raises(
        iomodel.InputError, match=r"most_events: 1,000,000 given; allowed: from 1,\d{3},\d{3},\d{3},\d{3} up"
    ):
        iomodel.trace("flash2", w, None, {"block_q": 128, "block_kv": 128})


def test_a_file_of_events(tmp_path: Path) -> None:
    found, path = iomodel.trace("flash2", W, "sim-a100", TILES), tmp_path / "events.csv"
    found.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found.count
    assert rows[3] | {"tile": "query 0:16, depth 0:8", "op": "Load", "tensor": "Q", "bytes": "256"} == rows[3]
    assert sum(int(row["work"]) for row in rows if row["op"] == "MatMul") == found.summary.flops
    for target, more in ((tmp_path, {}), (tmp_path / "no" / "a.csv", {}), (path, {"overwrite": False})):
        with pytest.raises(iomodel.InputError, match=r"csv: .* cannot be written"):
            found.to_csv(target, **more)


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from tests.support.inside import visits

    found = iomodel.trace("flash2", W, "sim-a100", TILES, traced_heads=2)
    seen = visits(found.events)
    assert seen[:3] == [(0, 16, 0, 32), (16, 32, 0, 32), (32, 48, 0, 32)]
    area = 2 * sum((b - a) * (d - c) * (8 + 8) for a, b, c, d in seen)
    assert area == iomodel.trace("flash2", W, None, TILES).summary.flops
    figure = found.plot(tmp_path / "trace.svg")
    drawn = {artist.get_gid() for axes in figure.axes for artist in axes.get_children()}
    assert {"visits", *(f"buffer {name}" for name in ("O", "l", "m", "Q", "K", "V", "S"))} <= drawn
    assert "buffer S" in (tmp_path / "trace.svg").read_text(encoding="utf-8")
    iomodel.trace("standard", W).plot(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(iomodel.InputError, match=r"plot: .* already exists"):
        found.plot(tmp_path / "trace.svg", overwrite=False)
    with pytest.raises(iomodel.InputError, match=r"plot: .*allowed: a file that ends in \.png, \.svg, \.pdf or \.pgf"):
        found.plot(tmp_path / "trace.gif")


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # a narrower terminal wraps a long line
    shape = "--q-len 256 --head-dim 64 --block-q 64 --block-kv 64"
    line = f"trace flash2 --hardware sim-a100 {shape} --csv {tmp_path / 'a.csv'}".split()
    assert main([*line, "--events", "5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = iomodel.trace("flash2", iomodel.Attention(q_len=256, head_dim=64), "sim-a100", told["tiles"])
    assert told == json.loads(json.dumps(expected.to_dict(events=5)))
    assert len((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()) == told["count"] + 1
    assert main([*line, "--events", "5"]) == 2  # the file is there
    assert "csv: " in capsys.readouterr().err
    assert main([*line, "--events", "4", "--force"]) == 0
    out = capsys.readouterr().out
    (row,) = (line.split() for line in out.splitlines() if line.startswith("  Load"))
    assert " ".join(row) == "Load Q[0:64, 0:64] 8.0 KiB 24.5 KiB (9.6 %) 129.0 KiB 4,096"
    assert "MatMul" not in out
    assert main(f"trace flash2 {shape} --heads 4 --heads-traced all --json --events 0".split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["heads"], told["events"]) == (4, [])
    assert main(f"trace flash2 {shape} --most-events 5".split()) == 2
    assert capsys.readouterr().err.startswith("iomodel: most_events: 5 given")


def test_a_serpentine_walk_loads_nothing_at_its_turns() -> None:
    window = iomodel.Window(left=3, right=None, align="top-left")
    w = iomodel.Attention(head_dim=1, value_dim=5, mask=window, direction="backward", q_len=11, kv_len=1)
    tiles = {"block_q": 11, "block_kv": 3, "dq_block_q": 3, "dq_block_kv": 10}
    trace = iomodel.trace("two_pass", w, None, tiles, order="serpentine")
    assert trace.count == len(list(trace.events))


@given(
    n=st.integers(1, 40), keys=st.integers(1, 40), block_q=st.integers(1, 12), block_kv=st.integers(1, 12),
    sides=st.sampled_from([(None, None), (None, 0), (3, 0), (5, 2)]),
    direction=st.sampled_from(["forward", "backward"]),
)  # fmt: skip
def test_visited_tiles_are_those_with_a_visible_pair(
    n: int, keys: int, block_q: int, block_kv: int, sides: tuple[int | None, int | None], direction: Any
) -> None:
    left, right = sides
    mask: Any = "full" if sides == (None, None) else iomodel.Window(left=left, right=right)
    call = iomodel.Attention(q_len=n, kv_len=keys, head_dim=2, mask=mask, direction=direction)
    seen = visible(n, keys, left, right, "bottom-right")
    tiles = {(i // block_q, j // block_kv) for i, j in np.argwhere(seen)}
    found = iomodel.trace("flash2", call, tiles={"block_q": block_q, "block_kv": block_kv})
    assert found.summary.visited_tiles == len(tiles)


@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_each_head_visits_as_many_tiles(kv_heads: int, mask: Any) -> None:
    """Of a call without data of its own in a head: tiles visited and FLOPs grow with the heads alike."""
    call = iomodel.Attention(batch=2, heads=4, kv_heads=kv_heads, q_len=256, head_dim=16, mask=mask)
    tiles = {"block_q": 64, "block_kv": 32}
    one, *more = (
        iomodel.trace("flash2", call, None, tiles, traced_heads=heads).summary for heads in (1, 2, 3, 5, "all")
    )
    for heads, found in zip((2, 3, 5, 8), more, strict=True):
        assert (found.visited_tiles, found.flops) == (heads * one.visited_tiles, heads * one.flops)
    assert one.flops == one.visited_tiles * 2 * 2 * 64 * 32 * 16  # two products of each tile
