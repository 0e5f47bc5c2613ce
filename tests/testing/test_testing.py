"""What `iomodel.testing` gives to others: a memory that counts, strategies, a comparison that explains."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import iomodel
from iomodel import testing
from iomodel.algorithms import algorithm
from iomodel.testing import HBM, SRAM, Machine, SRAMOverflowError, assert_traffic
from iomodel.testing.drawn_masks import KINDS
from iomodel.testing.machine import WIDTHS
from tests.support.inside import CACHE_ONLY, FEATURES
from tests.support.strategies import EXACT, VARIANTS, Variant, cases

TILE = {"block_q": 16, "block_kv": 8}
DIRECTIONS: list[Any] = ["forward", "backward", "both"]


def fresh(code: str) -> str:
    """What a program prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


# The counting memory


def test_the_memory_loads_no_formula_and_no_library_but_numpy() -> None:
    code = (
        "import sys, iomodel.testing.machine\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in"
        " {'iomodel', 'sympy', 'pydantic', 'hypothesis'}))"
    )
    parts = ("counted_run", "hbm", "machine", "sram", "widths")
    assert fresh(code) == str(
        sorted(["iomodel", "iomodel.errors", "iomodel.testing", *(f"iomodel.testing.{part}" for part in parts)])
    )


@given(
    n=st.integers(1, 9),
    moves=st.lists(st.tuples(st.sampled_from(["load", "store", "add"]), st.integers(0, 12), st.integers(0, 12))),
)
def test_every_element_moved_is_counted_once(n: int, moves: list[tuple[str, int, int]]) -> None:
    hbm, loaded, stored, added = HBM(), 0, 0, 0
    hbm.alloc("X", (n, 3), np.zeros((n, 3)))
    for move, start, stop in moves:
        size = 3 * len(range(n)[start:stop])
        if move == "load":
            assert hbm.load("X", slice(start, stop)).size == size
            loaded += size
        elif move == "store":
            hbm.store("X", slice(start, stop), 1.0)
            stored += size
        else:
            hbm.add("X", slice(start, stop), np.ones((len(range(n)[start:stop]), 3)), atomic=start % 2 == 0)
            loaded, stored, added = loaded + size, stored + size, added + (size if start % 2 == 0 else 0)
    assert (hbm.reads["X"], hbm.writes["X"], hbm.atomics) == (loaded, stored, added)
    assert hbm.live == dict.fromkeys(WIDTHS, 0) | {"io": 3 * n}


def test_what_is_loaded_is_a_copy_and_what_is_not_stored_is_nan() -> None:
    hbm = HBM()
    hbm.alloc("O", (4,))
    hbm.store("O", slice(2), 5.0)
    hbm.load("O", slice(2))[:] = 7.0
    assert np.array_equal(hbm.arrays["O"], [5.0, 5.0, np.nan, np.nan], equal_nan=True)


def test_a_load_under_another_name_has_the_width_of_the_tensor() -> None:
    machine = Machine()
    machine.hbm.alloc("K", (4, 2), np.ones((4, 2)), "kv")
    machine.hbm.load("K", slice(3), counted="V")
    run = machine.result()
    assert (dict(run.reads), run.hbm_bytes(2, 1), run.sram_peak, run.sram_bytes(2)) == ({"V": 6}, 6, 0, 0)


MISTAKES = [
    (lambda hbm: hbm.load("k", 0), "tensor in HBM: 'k' is unknown; allowed: K, O"),
    (lambda hbm: hbm.free("k"), "tensor in HBM: 'k' is unknown"),
    (lambda hbm: hbm.load("K", 9), r"K: shape \(4, 2\), and 9 given as an index"),
    (lambda hbm: hbm.store("O", (slice(2), slice(1), 0), 0.0), r"O: shape \(4,\), and .* given as an index"),
    (lambda hbm: hbm.store("K", slice(2), np.ones((3, 2))), r"K: could not broadcast"),
    (lambda hbm: hbm.add("K", slice(2), np.ones((3, 2))), r"K: operands could not be broadcast"),
    (lambda hbm: hbm.alloc("K", (1,)), r"K is already in HBM; allowed: another name, or free\('K'\) first"),
    (lambda hbm: hbm.alloc("V", (2, 3), np.ones((3, 2))), r"V: data of shape \(3, 2\) given; allowed: \(2, 3\)"),
    (lambda hbm: hbm.alloc("V", (2,), ["a", "b"]), r"V: could not convert"),
    (lambda hbm: hbm.alloc("V", (2.5,)), r"V: shape \(2.5,\) given; allowed: a tuple of integers from 0 up"),
    (lambda hbm: hbm.alloc("V", (2,), width="bf16"), r"width: 'bf16' is unknown; .*allowed: io, kv, fp32"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_a_mistake_is_told_and_changes_nothing(mistake: Any, message: str) -> None:
    hbm = HBM()
    hbm.alloc("K", (4, 2), np.ones((4, 2)))
    hbm.alloc("O", (4,))
    before = copy.deepcopy(vars(hbm))
    with pytest.raises(iomodel.IOModelError, match=message) as caught:
        mistake(hbm)
    assert "\n" not in str(caught.value)
    arrays, kept = vars(hbm).pop("arrays"), before.pop("arrays")
    assert vars(hbm) == before
    assert all(np.array_equal(arrays.pop(name), kept[name], equal_nan=True) for name in list(kept))
    assert not arrays


def test_mistakes_on_chip() -> None:
    sram = SRAM(capacity=10)
    sram.alloc("K", (2, 4))
    with pytest.raises(SRAMOverflowError, match=r"V: brings 11 elements on chip; allowed: up to the capacity of 10"):
        sram.alloc("V", (3,))
    with pytest.raises(iomodel.InputError, match=r"K is already on chip; allowed: another name, or free\('K'\) first"):
        sram.alloc("K", (1,))
    with pytest.raises(iomodel.UnknownNameError, match=r"buffer on chip: 'V' is unknown; allowed: K"):
        sram.free("K", "V")
    assert sram.buffers == {"K": (8, "io")}
    with pytest.raises(iomodel.InputError, match=r"matmul: shapes \(2, 3\) and \(2, 3\) given; allowed: \(m, k\)"):
        Machine().matmul(np.ones((2, 3)), np.ones((2, 3)))
    machine = Machine()
    machine.sram.alloc("K", (1,))
    with pytest.raises(iomodel.InputError, match=r"still on chip at the end: K; allowed: after sram.free\(\)"):
        machine.result()


def test_an_overflow_is_a_memory_error_and_one_of_ours() -> None:
    assert issubclass(SRAMOverflowError, MemoryError)
    assert issubclass(SRAMOverflowError, iomodel.IOModelError)


def test_a_run_keeps_what_was_counted_then() -> None:
    machine = Machine(Q=np.ones((2, 2)))
    machine.hbm.load("Q", 0)
    run = machine.result(O=machine.hbm.arrays["Q"])
    machine.hbm.load("Q", 0)
    assert run.reads == {"Q": 2}
    assert pickle.loads(pickle.dumps(run)).reads == run.reads


# Strategies


@given(data=st.data())
def test_calls_keep_to_their_bounds(data: st.DataObject) -> None:
    features = data.draw(st.lists(st.sampled_from(list(FEATURES)), unique=True))
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1))
    ways = data.draw(st.lists(st.sampled_from(DIRECTIONS), min_size=1))
    w = data.draw(
        testing.workloads(
            max_len=7,
            max_width=3,
            max_batch=4,
            max_kv_heads=3,
            max_group=2,
            dtypes=["fp16", "fp8"],
            masks=kinds,
            features=features,
            directions=ways,
        )
    )
    assert max(w.q_len, w.kv_len) <= 7
    assert max(w.head_dim, w.value_dim) <= 3
    assert w.batch <= 4
    assert w.latent or (w.kv_heads <= 3 and w.group <= 2)
    assert w.dtype in {"fp16", "fp8"}
    assert w.direction in ways
    assert set(w.features) <= set(features)
    assert kind_of(w.mask) in kinds
    assert iomodel.Attention(**w.to_dict()) == w


def kind_of(mask: Any) -> str:
    names = {iomodel.Window: "window", iomodel.Documents: "documents", iomodel.BlockMask: "blocks"}
    return mask if isinstance(mask, str) else names[type(mask)]


@pytest.mark.parametrize("way", DIRECTIONS)
def test_every_feature_and_mask_is_drawn(way: Any) -> None:
    features, kinds = set(), set()

    @settings(max_examples=250, derandomize=True, database=None)
    @given(testing.workloads(masks=KINDS, features=FEATURES, directions=[way]))
    def draw(w: iomodel.Attention) -> None:
        features.update(w.features)
        kinds.add(kind_of(w.mask))

    draw()
    assert kinds == set(KINDS)
    assert features == (set(FEATURES) if way == "forward" else set(FEATURES) - set(CACHE_ONLY))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_masks_fit_the_lengths(kind: Any, data: st.DataObject) -> None:
    q_len = data.draw(st.integers(1, 9))
    kv_len = q_len if kind == "documents" else data.draw(st.integers(1, 9))
    mask = data.draw(testing.masks(q_len, kv_len, kinds=[kind]))
    assert kind_of(mask) == kind
    assert iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=1, mask=mask).mask == mask


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=4)
@given(data=st.data())
def test_an_algorithm_takes_its_calls_and_tiles(name: str, data: st.DataObject) -> None:
    w = data.draw(testing.workloads(name, features=FEATURES, directions=["forward", "backward"]))
    tiles = data.draw(testing.tiles(name, w))
    c = iomodel.cost(name, w, tiles)
    assert c.tiles == tiles
    assert max(tiles.values(), default=0) <= max(w.q_len, w.kv_len) + 2


@settings(max_examples=10)
@given(data=st.data())
def test_splits_have_tiles_enough(data: st.DataObject) -> None:
    w = data.draw(testing.workloads("split_kv", masks=["full"]))
    splits = data.draw(st.integers(1, w.kv_len))
    tiles = data.draw(testing.tiles("split_kv", w, options={"splits": splits}))
    assert iomodel.cost("split_kv", w, tiles, splits=splits).options["splits"] == splits


def test_tiles_of_several_sequences() -> None:
    w = iomodel.VarlenAttention(q_lens=[3, 20], head_dim=2)
    assert find(testing.tiles("flash2", w), lambda tile: tile["block_q"] > 21) == {"block_q": 22, "block_kv": 1}


@given(data=st.data())
def test_algorithms_have_what_is_asked_for(data: st.DataObject) -> None:
    way = data.draw(st.sampled_from(DIRECTIONS))
    feature = data.draw(st.sampled_from([name for name in FEATURES if name not in CACHE_ONLY]))
    name = data.draw(testing.algorithms(direction=way, features=[feature]))
    assert way in algorithm(name).directions
    for part in ("forward", "backward") if way == "both" else (way,):
        assert feature not in algorithm(name).without.get(part, frozenset())


@given(gpu=testing.hardware())
def test_devices_are_real(gpu: iomodel.Hardware) -> None:
    assert not gpu.simulated


def test_simulated_devices_are_drawn_when_asked_for() -> None:
    assert find(testing.hardware(simulated=True), lambda gpu: gpu.simulated).simulated


REFUSED = [
    (lambda: testing.workloads(max_len=0), "max_len: 0 given; allowed: an integer from 1"),
    (lambda: testing.workloads("flash"), "algorithm: 'flash' is unknown"),
    (lambda: testing.workloads(features=["biased"]), "feature: 'biased' is unknown; did you mean 'bias'"),
    (lambda: testing.workloads(masks=[]), "masks: none given; allowed: some of full, causal"),
    (lambda: testing.workloads(masks=["casual"]), "mask: 'casual' is unknown; did you mean 'causal'"),
    (lambda: testing.workloads(dtypes=["half"]), "dtypes: 'half' is unknown"),
    (lambda: testing.workloads("two_pass"), "directions: forward given for two_pass; allowed: backward"),
    (lambda: testing.masks(kinds=["blocks"]), "q_len: not given, but required for blocks"),
    (lambda: testing.masks(3, 4, kinds=["documents"]), "kv_len: 4 given for documents; allowed: 3"),
    (lambda: testing.tiles("flash2", 5), "workload: 5 given"),
    (lambda: testing.tiles("flash2", CALL, options={"packd": True}), "packd"),
    (
        lambda: testing.tiles("split_kv", CALL, options={"splits": 65}),
        "splits: 65 given for 64 keys; allowed: up to 64",
    ),
    (lambda: testing.algorithms(direction="sideways"), "direction: 'sideways' is unknown"),
    (lambda: testing.algorithms(direction="backward", features=["paged"]), "features: paged given; allowed: those of"),
]
CALL = iomodel.Attention(heads=4, kv_heads=2, q_len=64, head_dim=8)


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_what_cannot_be_drawn_is_refused_at_once(ask: Any, message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_without_hypothesis_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from iomodel.testing import Machine, assert_traffic\n"
        "try:\n    from iomodel.testing import workloads\n"
        "except ValueError as error: print(type(error).__name__, error)"
    )
    assert fresh(code) == ("InputError hypothesis: not installed; strategies need it: pip install 'iomodel[testing]'")


@pytest.mark.parametrize("rtol", [0, 0.01, 0.25])
@pytest.mark.parametrize("beyond", [False, True])
def test_a_tolerance_allows_its_share_of_each_predicted_number(rtol: float, beyond: bool) -> None:
    cost = iomodel.cost("flash2", CALL, {"block_q": 16, "block_kv": 16})
    for name, reads in cost.reads.items():
        for sign in (-1, 1):
            away = sign * (int(reads * rtol) + beyond)
            counted = {"reads": {**cost.reads, name: reads + away}}
            if not beyond:
                assert_traffic(cost, counted, rtol=rtol)
                continue
            with pytest.raises(AssertionError, match=f"reads {name} ") as caught:
                assert_traffic(cost, counted, rtol=rtol)
            assert (f"{100 * away / reads:+.3g} %" in str(caught.value)) == bool(rtol)


@pytest.mark.parametrize("rtol", [-0.1, 1, float("nan"), "2 %", True])
def test_a_tolerance_is_a_share(rtol: Any) -> None:
    cost = iomodel.cost("flash2", CALL, {"block_q": 16, "block_kv": 16})
    with pytest.raises(iomodel.InputError, match=r"rtol: .* given; allowed: a share of the predicted numbers from 0"):
        assert_traffic(cost, {"reads": cost.reads}, rtol=rtol)


def test_the_names_are_there() -> None:
    assert set(testing.__all__) <= set(dir(testing))
    assert all(getattr(testing, name).__doc__ for name in testing.__all__)
    with pytest.raises(AttributeError, match=r"module 'iomodel.testing' has no attribute 'workload'"):
        testing.workload  # noqa: B018


# The comparison


def message_of(*arguments: Any, **more: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_traffic(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.algorithm == "flash2"], ids=str)
@settings(max_examples=3)
@given(data=st.data())
def test_a_reference_kernel_agrees(variant: Variant, data: st.DataObject) -> None:
    case = data.draw(cases(variant))
    assert_traffic(case.cost(), case.run())


@given(data=st.data())
def test_one_element_more_or_less_is_seen(data: st.DataObject) -> None:
    w = data.draw(testing.workloads("flash2", max_len=30, masks=["full", "causal"]))
    c = iomodel.cost("flash2", w, data.draw(testing.tiles("flash2", w)))
    counted = {"reads": dict(c.reads), "writes": dict(c.writes)}
    assert_traffic(c, counted)
    kind = data.draw(st.sampled_from(["reads", "writes"]))
    name = data.draw(st.sampled_from(sorted(counted[kind])))
    counted[kind][name] += data.draw(st.sampled_from([1, -1] if counted[kind][name] else [1]))
    text = message_of(c, counted)
    assert f"{kind} {name} " in text
    assert f"{counted[kind][name]:,}" in text
    assert f"{getattr(c, kind)[name]:,}" in text


BAND = iomodel.Attention(
    heads=6, kv_heads=2, batch=5, q_len=61, kv_len=93, head_dim=10, mask=iomodel.Window(left=9, right=3)
)
WHAT_IF: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"mask": "full"}, {}, {}, 'no tile is skipped: mask="full"'),
    ({"mask": iomodel.Window(left=10, right=3)}, {}, {}, "a window one key wider: left=10"),
    ({"mask": iomodel.Window(left=9, right=2)}, {}, {}, "a window one key narrower: right=2"),
    ({"mask": iomodel.Window(left=9, right=3, align="top-left")}, {}, {}, "diagonal at top-left"),
    ({}, {"packed": True}, {}, "packed=True"),
    ({}, {"lse": False}, {}, "lse=False"),
    ({}, {"padded_statistics": True}, {}, "padded_statistics=True"),
    ({}, {"unskipped_window": True}, {}, "unskipped_window=True"),
    ({}, {}, {"block_q": 1, "block_kv": 2}, "block_q and block_kv are exchanged"),
]


@pytest.mark.parametrize(("changed", "options", "tiles", "hint"), WHAT_IF)
def test_another_call_explains_it_all(
    changed: dict[str, Any], options: dict[str, Any], tiles: dict[str, int], hint: str
) -> None:
    asked = {"block_q": 2, "block_kv": 1}
    other = iomodel.cost("flash2", BAND.model_copy(update=changed), tiles or asked, **options)
    text = message_of(iomodel.cost("flash2", BAND, asked), {"reads": other.reads, "writes": other.writes})
    assert text.endswith(f"\n\npossible explanation of all differences: {hint}")


def test_a_causal_loop_that_runs_one_key_too_far() -> None:
    causal = iomodel.Attention(q_len=64, head_dim=8, mask="causal")
    further = causal.model_copy(update={"mask": iomodel.Window(right=1)})
    text = message_of(iomodel.cost("flash2", causal, TILE), {"reads": iomodel.cost("flash2", further, TILE).reads})
    assert text.endswith("possible explanation of all differences: a window one key wider: right=1")


def test_ragged_tiles_that_count_whole() -> None:
    ragged = iomodel.Attention(q_len=61, kv_len=93, head_dim=8)
    whole = iomodel.cost("flash2", ragged.model_copy(update={"q_len": 64, "kv_len": 96}), TILE)
    text = message_of(iomodel.cost("flash2", ragged, TILE), {"reads": whole.reads, "writes": whole.writes})
    assert text.endswith("possible explanation of all differences: ragged tiles are counted in full")
    several = iomodel.VarlenAttention(q_lens=[61, 5], head_dim=8)
    whole = iomodel.cost(
        "flash2", iomodel.VarlenAttention(q_lens=[64, 8], kv_lens=[64, 8], head_dim=8), {"block_q": 8, "block_kv": 8}
    )
    text = message_of(iomodel.cost("flash2", several, {"block_q": 8, "block_kv": 8}), {"reads": whole.reads})
    assert text.endswith("possible explanation of all differences: ragged tiles are counted in full")


FACTORS = [
    ("K", 1, 3, "1/3     1/3, as group"),
    ("K", 1, 6, "1/6     1/6, as heads"),
    ("K", 5, 1, "5     5, as batch"),
    ("K", 1, 30, "1/30    1/30, as batch x heads"),
    ("Q", 4, 1, "4     bytes, 4 per element"),
    ("Q", 16, 10, "8/5     rows padded from 10 to 16 elements"),
    ("O", 2, 1, "2     moved twice; 2, as kv_heads"),
    ("V", 0, 1, "0     nothing was counted"),
]


@pytest.mark.parametrize(("name", "times", "over", "hint"), FACTORS)
def test_a_ratio_is_explained(name: str, times: int, over: int, hint: str) -> None:
    w = iomodel.Attention(heads=6, kv_heads=2, batch=5, q_len=64, head_dim=10, dtype="fp32")
    c = iomodel.cost("flash2", w, TILE)
    kind = "writes" if name == "O" else "reads"
    counted = {"reads": dict(c.reads), "writes": dict(c.writes)}
    counted[kind][name] = counted[kind][name] * times // over
    (line,) = [line for line in message_of(c, counted).splitlines() if name in line.split()]
    assert " ".join(hint.split()) in " ".join(line.split())


def test_whole_tiles_are_numbered() -> None:
    c = iomodel.cost("flash2", CALL, TILE)
    text = message_of(c, {"reads": {**c.reads, "V": c.reads["V"] + 3 * 8 * 8}})
    assert "3 tiles of 8 x 8 too many" in text
    assert "1 tile of 16 x 8 too few" in message_of(c, {"reads": {**c.reads, "Q": c.reads["Q"] - 16 * 8}})


def test_names_are_translated_and_added_up() -> None:
    c = iomodel.cost("flash2", CALL, TILE)
    half = c.reads["K"] // 2
    counted = {"reads": {"Q": c.reads["Q"], "k_even": half, "k_odd": np.int64(half), "V": c.reads["V"]}}
    assert_traffic(c, counted, names={"k_even": "K", "k_odd": "K"})
    text = message_of(c, counted)
    assert "names={'k_even': ...} maps it to one of them" in text
    assert "flash2 reads K, Q, V" in text


def test_what_is_not_given_is_not_compared() -> None:
    c = iomodel.cost("flash2", CALL, TILE)
    assert_traffic(c, {"reads": c.reads})
    assert_traffic(c, {"writes": c.writes})
    assert "writes O" in message_of(c, {"reads": c.reads, "writes": {}})


def test_atomics_and_widths_of_a_memory_are_compared() -> None:
    w = iomodel.Attention(q_len=8, head_dim=2)
    c = iomodel.cost("flash2", w, {"block_q": 8, "block_kv": 8})
    machine = Machine(*[np.ones((8, 2))] * 3)
    for name in ("Q", "K", "V"):
        machine.hbm.load(name, slice(None))
    machine.hbm.alloc("O", (8, 2))
    machine.hbm.alloc("LSE", (8,))  # fp32 in the model
    machine.hbm.store("O", slice(None), 1.0)
    machine.hbm.store("LSE", slice(None), 1.0)
    for counted in (machine, machine.hbm, machine.result()):
        assert message_of(c, counted) == (
            "flash2: 144 B counted, 160 B predicted, though the elements agree: LSE has width 'io', 'fp32' in the model"
        )
    machine.hbm.widths["LSE"] = "fp32"
    assert_traffic(c, machine)
    machine.hbm.atomics = 5
    assert "atomics 5 0 - flash2 has none" in " ".join(message_of(c, machine).split())


@pytest.mark.parametrize(
    ("cost", "counted", "message"),
    [
        (5, {"reads": {}}, "cost: 5 given; allowed: a result of iomodel.cost"),
        (None, {"K": 5}, "counted: {'K': 5} given; allowed: a counting memory, or {'reads'"),
        (None, {}, "counted: {} given"),
        (None, 5, "counted: 5 given; allowed: a mapping"),
        (None, {"reads": {"K": 1.5}}, r"reads K: 1.5 given; allowed: an integer from 0 up \[elements\]"),
        (None, {"reads": {"K": -1}}, "reads K: -1 given"),
    ],
)
def test_what_cannot_be_compared_is_refused(cost: Any, counted: Any, message: str) -> None:
    with pytest.raises(iomodel.InputError, match=message):
        assert_traffic(cost or iomodel.cost("flash2", CALL, TILE), counted)


def test_blocks_of_triton_are_powers_of_two() -> None:
    w = iomodel.Attention(q_len=40, head_dim=2)

    @settings(max_examples=20)
    @given(tile=iomodel.testing.tiles("flash2", w, powers_of_two=True))
    def law(tile: dict[str, int]) -> None:
        assert all(size & (size - 1) == 0 and size <= 42 for size in tile.values())

    law()
