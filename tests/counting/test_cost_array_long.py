"""Long arrays, which are looked through when they are used, and machine code, which runs them: the same answers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.counting.arrays.integers import LONG
from iomodel.counting.cost_array import cost_array
from tests.support.inside import LARGEST
from tests.support.strategies import fraction_of_examples

ENGINES = ["numpy", pytest.param("numba", marks=pytest.mark.skipif(find_spec("numba") is None, reason="no numba"))]
SIZES = {"block_q": 64, "block_kv": 32}
MANY = LONG + 3
LENGTHS = np.random.default_rng(0).integers(1, 10**5, MANY)


def refused(quantity: str = "hbm_bytes", **arguments: Any) -> str:
    """With what a call is refused, at the latest when a quantity is asked for; ever again if asked again."""
    with pytest.raises(iomodel.InputError) as caught:
        getattr(cost_array("flash2", **{"head_dim": 8, **SIZES, **arguments}), quantity)
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("where", [0, 1, 16_384, LONG, MANY - 1])
@pytest.mark.parametrize("value", [0, -1, LARGEST + 1, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrong_element_of_a_long_array_is_found(value: int, where: int, engine: str) -> None:
    q_len = LENGTHS.copy()
    q_len[where] = value
    said = refused(q_len=q_len, backend=engine)
    assert said.startswith(f"q_len: {value} given")
    assert f"({where},)" in said
    said = refused(q_len=7, kv_len=q_len.reshape(-1, 1), block_q=np.array([[1]]), backend=engine)
    assert said.startswith(f"kv_len: {value} given")
    assert f"({where}, 0)" in said


@pytest.mark.parametrize("field", ["q_len", "kv_len", "batch", "head_dim", "value_dim", "heads", "block_q", "block_kv"])
@pytest.mark.parametrize("quantity", ["hbm_bytes", "footprint_bytes", "flops", "peak_hbm_bytes"])
def test_no_quantity_is_counted_for_a_wrong_call(field: str, quantity: str) -> None:
    # Not even one that does not depend on the field at fault.
    values = np.full(MANY, 8)
    values[77_777] = 0
    said = refused(quantity, **{"q_len": 8, **SIZES, field: values})
    assert said.startswith(f"{field}: 0 given")
    assert "77777" in said


def test_a_call_once_refused_is_refused_again() -> None:
    q_len = LENGTHS.copy()
    q_len[5] = 0
    found = cost_array("flash2", q_len=q_len, head_dim=8, **SIZES)
    for quantity in ("footprint_bytes", "hbm_bytes", "footprint_bytes"):
        with pytest.raises(iomodel.InputError, match=r"^q_len: 0 given"):
            getattr(found, quantity)


@pytest.mark.parametrize("engine", ENGINES)
def test_heads_that_do_not_divide_are_found_in_long_arrays(engine: str) -> None:
    kv_heads = np.full(MANY, 4)
    kv_heads[70_001] = 3
    heads = np.full(MANY, 8)
    for given_as in ({"heads": heads, "kv_heads": kv_heads}, {"heads": 8, "kv_heads": kv_heads}):
        for quantity in ("hbm_bytes", "footprint_bytes"):
            said = refused(quantity, q_len=8, **given_as, backend=engine)
            assert said.startswith("kv_heads: 3 does not divide heads = 8")
            assert "70001" in said
    heads[9] = 6
    said = refused(q_len=8, heads=heads, kv_heads=np.array([2, 4])[:, None], backend=engine)
    assert said.startswith("kv_heads: 4 does not divide heads = 6")
    assert "(1, 9)" in said


@pytest.mark.parametrize("make", [np.uint64, np.int32, np.uint8, object])
def test_long_arrays_of_any_make(make: Any) -> None:
    lengths = (LENGTHS % 250 + 1).astype(make)
    plain = cost_array("flash2", q_len=lengths.astype(np.int64), head_dim=8, mask="causal", **SIZES).hbm_bytes
    assert np.array_equal(cost_array("flash2", q_len=lengths, head_dim=8, mask="causal", **SIZES).hbm_bytes, plain)
    one = iomodel.Attention(q_len=int(lengths[77]), head_dim=8, mask="causal")
    assert plain[77] == iomodel.cost("flash2", one, SIZES).hbm_bytes
    if make is np.uint64:
        lengths[3] = 2**64 - 1
        assert refused(q_len=lengths).startswith("q_len: ")


def test_long_arrays_of_another_kind_are_refused() -> None:
    for values in (LENGTHS.astype(float), LENGTHS > 5, LENGTHS.astype(str)):
        assert refused(q_len=values).startswith("q_len: ")


# Machine code.


@pytest.mark.parametrize("mask", ["full", "causal", iomodel.Window(left=300, right=5)], ids=str)
@pytest.mark.parametrize("name", ["flash2", "flash1"])
def test_machine_code_says_the_same(name: str, mask: Any) -> None:
    pytest.importorskip("numba")
    draw = np.random.default_rng(1)
    size = 100_003
    kv_heads = draw.integers(1, 9, size)
    fields: dict[str, Any] = {
        "q_len": draw.integers(1, 2**17, size),
        "kv_len": draw.integers(1, 2**17, size),
        "kv_heads": kv_heads,
        "heads": kv_heads * draw.integers(1, 9, size),
        "batch": draw.integers(1, 65, size),
        "head_dim": draw.integers(1, 300, size),
        "block_q": draw.integers(1, 300, size),
        "block_kv": draw.integers(1, 300, size),
        "mask": mask,
    }
    ours, other = (cost_array(name, **fields, backend=engine).hbm_bytes for engine in ("numba", "numpy"))
    assert ours.dtype == other.dtype == np.int64
    assert np.array_equal(ours, other)


@pytest.mark.parametrize("power", [52, 53, 54, 62, 63])
def test_machine_code_rounds_nothing(power: int) -> None:
    # Quotients on both sides of what a float holds, with the dividend next to a multiple of the divisor.
    pytest.importorskip("numba")
    batch = -(-(2**power) // 10**17)
    for divisor in (3, 2**20 - 1, 94906265, 94906266):
        q_len = (2**power // batch // divisor) * divisor + np.array([-1, 0, 1])
        point = {"q_len": q_len, "kv_len": 1, "head_dim": 1, "batch": batch, "dtype": "int8", "lse": False}
        found = cost_array("flash2", **point, block_q=np.full(3, divisor), block_kv=1, backend="numba").hbm_bytes
        assert found.tolist() == [batch * (2 * n + 2 * -(-n // divisor)) for n in map(int, q_len)]


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("length", [2**53 + 1, 10**15, 10**18])
def test_a_late_element_beyond_the_bounds_of_earlier_blocks_is_exact(length: int, mask: Any) -> None:
    # Machine code writes values on the bounds of the blocks before; they must not stand where these bounds are broken.
    pytest.importorskip("numba")
    q_len = np.tile(LENGTHS[:1000], 500)
    for _ in range(2):  # with bounds that are known from the first run, too
        q_len[400_000] = length
        found = cost_array("flash2", q_len=q_len, head_dim=64, mask=mask, **SIZES, backend="numba").hbm_bytes
        for place in (399_999, 400_000, 400_001):
            one = iomodel.Attention(q_len=int(q_len[place]), head_dim=64, mask=mask)
            assert found[place] == iomodel.cost("flash2", one, SIZES).hbm_bytes
        q_len[400_000] = 7
        assert (
            cost_array("flash2", q_len=q_len, head_dim=64, mask=mask, **SIZES, backend="numba").hbm_bytes.dtype == int
        )


points = st.fixed_dictionaries(
    {
        **dict.fromkeys(("q_len", "kv_len"), st.integers(0, 59).map(lambda k: 2**k) | st.integers(1, 10**18)),
        **dict.fromkeys(("block_q", "block_kv"), st.integers(1, 300) | st.integers(0, 59).map(lambda k: 2**k)),
    }
)


@fraction_of_examples(2)
@given(
    mask=st.sampled_from(["full", "causal"]), many=st.lists(points, min_size=1, max_size=3), repeat=st.integers(1, 2)
)
def test_machine_code_at_integers_of_any_size(mask: Any, many: list[dict[str, int]], repeat: int) -> None:
    pytest.importorskip("numba")
    columns = {field: np.array([point[field] for point in many] * repeat) for field in many[0]}
    found = cost_array("flash2", **columns, head_dim=64, heads=32, mask=mask, backend="numba")
    for values in (found.hbm_bytes, found.flops):
        for i, point in enumerate(many):
            fields = {name: point[name] for name in ("q_len", "kv_len")}
            tiles = {name: point[name] for name in ("block_q", "block_kv")}
            one = iomodel.cost("flash2", iomodel.Attention(**fields, head_dim=64, heads=32, mask=mask), tiles)
            assert values[i] == (one.hbm_bytes if values is found.hbm_bytes else one.flops)


@pytest.mark.parametrize("shape", [(3, 40_000), (40_000, 3), (2, 1, 70_001)])
@pytest.mark.parametrize("engine", ENGINES)
def test_machine_code_takes_any_layout(shape: tuple[int, ...], engine: str) -> None:
    table = np.random.default_rng(0).integers(1, 10**4, shape)
    rows = 8 * np.arange(1, shape[0] + 1).reshape(-1, *[1] * (len(shape) - 1))
    plain = cost_array("flash2", q_len=table, head_dim=rows, mask="causal", **SIZES, backend="numpy").hbm_bytes
    for given_as in (
        np.asfortranarray(table),
        table[..., ::-1],
        np.repeat(table, 2, axis=-1)[..., ::2],
        table.astype("i4"),
    ):
        values = given_as[..., ::-1] if given_as.strides[-1] < 0 else given_as
        found = cost_array("flash2", q_len=values, head_dim=rows, mask="causal", **SIZES, backend=engine).hbm_bytes
        assert np.array_equal(found, plain)


@pytest.mark.parametrize("value", ["cuda", "", None, 3, ["numba"], np.array(["numba", "numpy"])], ids=repr)
def test_an_unknown_engine_is_refused(value: Any) -> None:
    with pytest.raises(iomodel.IOModelError, match=r"^backend: "):
        cost_array("flash2", q_len=8, head_dim=8, **SIZES, backend=value)


def test_a_wrong_number_among_long_options_is_found() -> None:
    buffers = np.full(LONG, 3)
    buffers[-2] = 0
    point = {"q_len": 8, "head_dim": 8, "block_q": 16, "block_kv": 16, "direction": "backward"}
    found = cost_array("flash2", **point, deterministic=True, dq_buffers=buffers)
    with pytest.raises(iomodel.InputError, match=rf"dq_buffers: 0 given, at index \({LONG - 2},\)"):
        _ = found.hbm_bytes


@pytest.mark.parametrize(("where", "value"), [(0, -1), (3, -100), (LONG - 1, 2 * 10**18)])
def test_a_wrong_width_of_a_long_array_is_found(where: int, value: int) -> None:
    widths = np.full(LONG, 5)
    widths[where] = value
    said = refused(q_len=1000, mask=iomodel.Window(left=1, right=0), window_left=widths)
    assert said.startswith(f"window_left: {value} given, at index ({where},); allowed: integers from 0")
    widths[where] = 0
    point = {"q_len": 1000, "head_dim": 8, "mask": iomodel.Window(left=1, right=0), **SIZES}
    assert cost_array("flash2", **point, window_left=widths)[where].workload.mask.left == 0
