"""Sweeps: equal to `cost` at every point, however they are cut and wherever they run; what plans are refused."""

import sys
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import InputError, IOModelError
from iomodel.studies.sweeps.point_question import QUANTITIES
from iomodel.studies.sweeps.sweep import planned, sweep
from tests.support.inside import TILES
from tests.support.strategies import at_most

xarray = pytest.importorskip("xarray")

SHAPE = {"q_len": 256, "head_dim": 64, "block_q": 32, "block_kv": 32}
TILE_NAMES = {entry.name for entry in TILES}
FIELDS = iomodel.Attention.model_fields.keys()
MASKS = ["full", "causal", iomodel.Window(left=5, right=0), iomodel.Window(left=3, right=2, align="top-left")]


def direct(name, point):
    """The cost at one point, by the scalar engine."""
    workload = iomodel.Attention(**{field: value for field, value in point.items() if field in FIELDS})
    tiles = {field: value for field, value in point.items() if field in TILE_NAMES}
    options = {field: value for field, value in point.items() if field not in FIELDS and field not in TILE_NAMES}
    return iomodel.cost(name, workload, tiles or None, **options)


def value(found, name):
    side, _, tensor = name.partition("_")
    return getattr(found, side).get(tensor, 0) if side in ("reads", "writes") else getattr(found, name)


lengths = st.lists(st.integers(1, 70), min_size=1, max_size=4)
widths = st.lists(st.integers(1, 9), min_size=1, max_size=2)
tiles = st.lists(st.integers(1, 40), min_size=1, max_size=3)
plans = st.fixed_dictionaries(
    {
        "q_len": lengths | st.integers(1, 50),
        "head_dim": widths | st.integers(1, 9),
        "block_q": tiles,
        "block_kv": tiles,
    },
    optional={
        "kv_len": lengths,
        "batch": widths,
        "heads": st.lists(st.sampled_from([2, 4]), min_size=1, max_size=2),
        "value_dim": widths,
        "mask": st.lists(st.sampled_from(MASKS), min_size=1, max_size=3) | st.sampled_from(MASKS),
        "dtype": st.lists(st.sampled_from(["bf16", "fp32", "int8"]), min_size=1, max_size=2),
        "lse": st.just([True, False]),
        "page_size": st.integers(1, 9),
        "sinks": st.just([False, True]),
    },
)
pytestmark = pytest.mark.filterwarnings("ignore:.*NumPy.*:DeprecationWarning:dask")


@given(plans, st.sampled_from(["flash2", "flash1"]), st.data())
@at_most(25)
def test_every_point_is_the_direct_answer(fields, name, data):
    if name == "flash1":
        fields.pop("lse", None)
    quantities = data.draw(
        st.lists(st.sampled_from([*QUANTITIES, "reads_K", "writes_O", "reads"]), min_size=1, max_size=3)
    )
    swept = sweep(name, quantities=quantities, chunk=data.draw(st.integers(1, 500)), **fields)
    ranges = {field: given for field, given in fields.items() if isinstance(given, list)}
    assert swept.sizes == {field: len(given) for field, given in ranges.items()}
    for _ in range(4):
        places = {field: data.draw(st.integers(0, len(given) - 1)) for field, given in ranges.items()}
        point = {**fields, **{field: ranges[field][place] for field, place in places.items()}}
        found, here = direct(name, point), swept.isel(places)
        assert {each: here[each].item() for each in swept} == {each: value(found, each) for each in swept}


def test_algorithms_side_by_side_take_what_they_know():
    axes = {"algorithm": ["flash2", "standard", "tiled_query"], "block_q": [16, 64], "lse": [True, False]}
    swept = sweep(quantities=["reads_S", "hbm_bytes", "footprint_bytes"], block_kv=32, q_len=100, head_dim=8, **axes)
    for name, block_q, lse in product(*axes.values()):
        tiles = {} if name == "standard" else {"block_q": block_q, "block_kv": 32}
        options = {"lse": lse} if name == "flash2" else {}
        found = direct(name, {"q_len": 100, "head_dim": 8, **tiles, **options})
        here = swept.sel(algorithm=name, block_q=block_q, lse=lse)
        assert here.hbm_bytes == found.hbm_bytes
        assert here.footprint_bytes == found.footprint_bytes
        assert here.reads_S == found.reads.get("S", 0)


def test_fields_of_one_group_share_a_dimension():
    groups = {"shape": ("q_len", "kv_len"), "kind": ["mask", "block_q"]}
    fields = {"q_len": [1, 128, 300], "kv_len": [4096, 128, 77], "mask": ["causal", "full"], "block_q": [16, 32]}
    swept = sweep("flash2", zipped=groups, **fields, head_dim=[8, 16], block_kv=64)
    assert swept.hbm_bytes.dims == ("shape", "kind", "head_dim")
    assert swept.coords["kv_len"].dims == ("shape",)
    assert swept.coords["mask"].values.tolist() == ["causal", "full"]
    for i, j, head_dim in product(range(3), range(2), [8, 16]):
        point = {name: fields[name][i] for name in groups["shape"]} | {name: fields[name][j] for name in groups["kind"]}
        found = direct("flash2", {**point, "block_kv": 64, "head_dim": head_dim})
        assert swept.hbm_bytes.isel(shape=i, kind=j).sel(head_dim=head_dim) == found.hbm_bytes
    unnamed = sweep(
        "flash2", zipped=[("q_len", "kv_len")], head_dim=8, block_kv=64, **{**fields, "block_q": 8, "mask": "full"}
    )
    assert unnamed.hbm_bytes.dims == ("q_len",)


@given(st.integers(1, 200) | st.fixed_dictionaries({"mask": st.integers(1, 3), "q_len": st.integers(1, 9)}))
@at_most(15)
def test_the_answer_is_the_same_however_it_is_cut(chunk):
    plan = {"mask": ["full", "causal"], "q_len": range(1, 40, 7), "block_q": [8, 16, 24], "block_kv": 8, "head_dim": 4}
    assert sweep("flash2", **plan, chunk=chunk).identical(sweep("flash2", **plan))


def test_every_number_has_a_unit_and_what_is_constant_is_told():
    plan = {"q_len": [64, 128], "block_q": [16, 32], "lse": False, "mask": iomodel.Window(left=3, right=0)}
    swept = sweep("flash2", quantities=["reads", "writes", *QUANTITIES], block_kv=16, head_dim=[8], **plan)
    assert {variable.dtype for variable in swept.values()} == {np.dtype(np.int64)}
    assert all(array.attrs["units"] and array.attrs["long_name"] for array in [*swept.values(), *swept.coords.values()])
    assert swept.hbm_bytes.attrs["units"] == swept.footprint_bytes.attrs["units"] == "B"
    assert (swept.flops.attrs["units"], swept.reads_K.attrs["units"]) == ("FLOP", "elements")
    assert (swept.q_len.attrs["units"], swept.head_dim.attrs["units"]) == ("rows", "elements")
    known = {"algorithm": "flash2", "dtype": "bf16", "heads": 1, "block_kv": 16, "lse": 0}
    assert swept.attrs.items() >= known.items()
    assert swept.attrs["mask"] == "Window(left=3, right=0, align='bottom-right')"


@given(
    st.fixed_dictionaries(
        {"q_len": lengths, "sram_bytes": st.lists(st.integers(40, 20_000), min_size=1, max_size=3)},
        optional={"mask": st.just(["full", "causal"]), "head_dim": widths, "min_block_kv": st.integers(1, 9)},
    )
)
@at_most(20)
def test_solved_tiles_are_those_of_the_solver(fields):
    plan = {"head_dim": 3, **fields}
    swept = sweep(["flash2", "tiled_query"], quantities=["hbm_bytes", "flops", "writes_O"], solve=True, **plan)
    assert list(swept) == ["hbm_bytes", "flops", "writes_O", "block_q", "block_kv"]
    assert swept.block_q.attrs["units"] == "rows"
    stacked = swept.stack(point=swept.dims)
    for i in range(stacked.sizes["point"]):
        here = stacked.isel(point=i)
        at = {**plan, **{name: here.coords[name].item() for name in swept.dims}}
        budget = {name: at.pop(name) for name in ("sram_bytes", "min_block_kv") if name in at}
        answer = {name: here[name].item() for name in swept}
        try:
            best = iomodel.solve(at.pop("algorithm"), iomodel.Attention(**at), implementation="textbook", **budget)
        except iomodel.InfeasibleError:
            assert set(answer.values()) == {0}
            continue
        named = {"hbm_bytes": best.cost.hbm_bytes, "flops": best.cost.flops, "writes_O": best.cost.writes["O"]}
        assert answer == {**named, **best.tiles}


def test_devices_are_a_dimension(tmp_path):
    plan = {"q_len": [512, 4096], "head_dim": 64, "mask": "causal", "hardware": ["h100-sxm5", "a100-sxm4-80gb"]}
    swept = sweep("flash2", solve=True, store=tmp_path / "solved", chunk=1, **plan)
    for device in plan["hardware"]:
        best = iomodel.solve(
            "flash2", iomodel.Attention(q_len=4096, head_dim=64, mask="causal"), device, implementation="textbook"
        )
        here = swept.sel(q_len=4096, hardware=device)
        assert {"block_q": here.block_q, "block_kv": here.block_kv} == best.tiles
        assert here.hbm_bytes == best.cost.hbm_bytes


def test_widths_of_a_window_are_a_dimension():
    swept = sweep("flash2", mask=iomodel.Window(left=0, right=0), window_left=[0, 7, 100], **SHAPE)
    for left in (0, 7, 100):
        found = direct("flash2", {**SHAPE, "mask": iomodel.Window(left=left, right=0)})
        assert swept.hbm_bytes.sel(window_left=left) == found.hbm_bytes
    assert swept.window_left.attrs["units"] == "keys"


def test_a_plan_without_a_dimension_is_one_point():
    assert sweep("flash2", **SHAPE).hbm_bytes.item() == direct("flash2", SHAPE).hbm_bytes


def test_a_number_beyond_64_bits_is_refused_with_its_point():
    with pytest.raises(InputError, match=r"^flops: \d{20,} at q_len = 10000000, heads = 1000000; .* 64 bits"):
        sweep("flash2", quantities=["hbm_bytes", "flops"], **{**SHAPE, "heads": [1, 10**6], "q_len": [64, 10**7]})
    hidden = {"q_len": [10**7, 10**8], "heads": [10**6, 1]}  # the longest call is not the largest
    with pytest.raises(InputError, match=r"^flops: \d{20,} at q_len = 10000000, heads = 1000000; .* 64 bits"):
        sweep("flash2", quantities="flops", zipped=[("q_len", "heads")], chunk=1, **{**SHAPE, **hidden})


BAD = [
    ({"q_lenn": 3}, "field of a sweep: 'q_lenn' is unknown; did you mean 'q_len'"),
    ({"warps": 3}, "field of a sweep: 'warps' is unknown"),
    ({"algorithm": "flash9"}, "algorithm: 'flash9' is unknown"),
    ({"algorithm": ["flash2", "flash9"]}, "algorithm: 'flash9' is unknown"),
    ({"q_len": []}, "q_len: no value given"),
    ({"mask": []}, "mask: no value given"),
    ({"q_len": [64, -1]}, "q_len: -1 given, at index"),
    ({"q_len": [64, 0]}, "q_len: 0 given, at index"),
    ({"q_len": 0}, "q_len: 0 given"),
    ({"q_len": [64, 2.5]}, "q_len: .* integers"),
    ({"q_len": [64, True]}, "q_len: .* integers"),
    ({"q_len": [[64], [32]]}, "q_len: .* along one dimension"),
    ({"q_len": [64, 10**30]}, "q_len: .* integers"),
    ({"q_len": "64"}, "q_len: '64' given"),
    ({"q_len": range(10**9)}, "q_len: 1,000,000,000 values given"),
    ({"mask": ["full", "casual"]}, "mask: 'casual' is unknown; did you mean 'causal'"),
    ({"dtype": ["bf16", "bf17"]}, "dtype: 'bf17' is unknown"),
    ({"lse": ["yes"]}, "lse: 'yes' given; allowed: bool"),
    ({"deterministic": [True, False]}, "option of flash2: 'deterministic' is unknown"),
    ({"gemm1_m": [16, 32]}, "tile of flash2: 'gemm1_m' is unknown"),
    ({"block_q": None}, "block_q: flash2 needs this tile"),
    ({"head_dim": None}, "head_dim: not given, but required"),
    ({"heads": [4, 6], "kv_heads": [2, 4]}, "kv_heads: 4 does not divide heads = 6"),
    ({"heads": [6, 12], "kv_heads": 4}, "kv_heads: 4 does not divide heads = 6"),
    ({"algorithm": "split_kv", "splits": [1, 8], "q_len": 1, "kv_len": [4096, 64]}, "splits: 8 .*kv_len = 64"),
    ({"q_len": [1, 2], "kv_len": [1, 2, 3], "zipped": [("q_len", "kv_len")]}, "q_len has 2, kv_len has 3 values"),
    ({"zipped": [("q_len", "kv_len")]}, "zipped: 'q_len' has no sequence"),
    ({"q_len": [1], "zipped": "q_len"}, "zipped: 'q_len' given; allowed: groups"),
    ({"q_len": [1], "zipped": [("q_len",), ("q_len",)]}, "q_len is in two groups"),
    ({"q_len": [1], "batch": [1], "zipped": {"batch": ["q_len"]}}, "two dimensions are named batch"),
    ({"quantities": ["hbm_byte"]}, "quantity: 'hbm_byte' is unknown; did you mean 'hbm_bytes'"),
    ({"quantities": ["reads_S"]}, "quantity: 'reads_S' is unknown"),
    ({"quantities": []}, "quantities: .* allowed: names"),
    ({"chunk": 0}, "chunk: 0 given"),
    ({"chunk": {"q_lem": 1}, "q_len": [1]}, "chunk: 'q_lem' is unknown; did you mean 'q_len'"),
    ({"scheduler": "thread"}, "scheduler: 'thread' given"),
    ({"window_left": [1, 2]}, "window_left: given with mask 'full'"),
    ({"window_left": [1, -2], "mask": MASKS[2]}, "window_left: -2 given, at index .1,.; allowed: integers from 0"),
    ({"solve": True, "sram_bytes": 2**17}, "block_q: given with solve"),
    ({"solve": "yes"}, "solve: 'yes' given"),
    ({"solve": True, "block_q": None, "block_kv": None}, "0 values given; allowed: exactly one"),
    ({"solve": True, "block_q": None, "block_kv": None, "hardware": ["h100-sxm9"]}, "hardware: 'h100-sxm9' is unknown"),
    ({"sram_bytes": 2**17}, "sram_bytes: given without solve"),
    ({"q_len": range(1, 20_000), "heads": range(1, 20_000)}, "store: none given for 399,960,001 points"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change)[:50] for change, _ in BAD])
def test_a_bad_plan_is_refused_in_one_line(change, message, tmp_path):
    given = {"algorithm": "flash2", **SHAPE, **change}
    with pytest.raises(IOModelError, match=message) as caught:
        sweep(**given)
    assert "\n" not in str(caught.value)
    if "store: none" not in message:
        with pytest.raises(IOModelError, match=message):
            sweep(**given, store=tmp_path / "there")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["xarray", "zarr", "distributed"])
def test_a_library_that_is_missing_is_named(library, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"{library}: not installed.*pip install 'iomodel\[sweep\]'"):
        sweep("flash2", **SHAPE, store=tmp_path / "there", scheduler="tcp://127.0.0.1:1" if library[0] == "d" else None)
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.integers(1, 50), max_size=4), st.integers(1, 10**5))
def test_chunks_cover_the_grid_once(sizes, chunk):
    names = ["q_len", "batch", "block_q", "heads"]
    axes = {name: range(1, size + 1) for name, size in zip(names, sizes, strict=False)}
    plan = planned("flash2", chunk=chunk, **{**SHAPE, "kv_heads": 1, **axes})
    assert prod(plan.chunks) <= chunk
    assert plan.block_count == len(list(plan.blocks()))
    times = np.zeros(plan.shape, dtype=int)
    for block in plan.blocks() if plan.points < 10**4 else ():
        times[plan.slices(block)] += 1
    assert plan.points >= 10**4 or (times == 1).all()


def test_a_group_has_a_name_of_its_own():
    point = {"q_len": [64, 128], "kv_len": [1, 2], "head_dim": 64, "block_q": 64, "block_kv": 64}
    for name in ("hbm_bytes", "heads", "block_q"):
        with pytest.raises(InputError, match=f"zipped: a group of q_len, kv_len is named {name}"):
            sweep("flash2", zipped={name: ["q_len", "kv_len"]}, **point)
    assert sweep("flash2", zipped={"length": ["q_len", "kv_len"]}, **point).hbm_bytes.dims == ("length",)


def test_a_number_beyond_64_bits_is_said_whatever_the_shapes():
    lengths = {"q_len": [1, 2], "kv_len": [10**18, 1], "zipped": [("q_len", "kv_len")]}
    with pytest.raises(InputError, match=r"hbm_bytes: .* 64 bits"):
        sweep(["standard", "flash2"], **lengths, block_q=[1, 2], block_kv=64, head_dim=64, batch=1000)
    with pytest.raises(InputError, match="algorithm: None given"):
        sweep(None, q_len=1)
    with pytest.raises(InputError, match="store: 5 given"):
        sweep("flash2", q_len=[64, 128], head_dim=64, block_q=64, block_kv=64, store=5)
