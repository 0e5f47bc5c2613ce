"""Implementations: which run where, which is the default, and the tiles that each ships."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.kernels import Implementation
from iomodel.placement.contents import contents
from iomodel.placement.implementations import implementation_for, list_implementations
from iomodel.placement.shipped_tile import shipped_tile
from tests.shipped import DEVICES, OTHER_DEVICES
from tests.support.inside import TEXTBOOK, ShippedTile, rates, shipped_tiles

W = iomodel.Attention(heads=8, kv_heads=2, q_len=4096, head_dim=128)
DECODE = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128)
MASKS: dict[str, Any] = {"full": "full", "causal": "causal", "window": iomodel.Window(left=127, right=0)}
TABLES = [
    (name, implementation.name, row)
    for name in ("flash1", "flash2", "flash3", "split_kv")
    for implementation in algorithm(name).implementations
    for row in implementation.tiles
]


def call_of(row: ShippedTile, variant: list[str]) -> tuple[iomodel.Attention, dict[str, Any]]:
    """A call, and its options, that a variant of a row speaks of."""
    mask = next((MASKS[word] for word in variant if word in MASKS), "full")
    features: dict[str, Any] = {"dropout": 0.1} if "dropout" in variant else {}
    features |= {"page_size": 256} if "paged" in variant else {}
    features |= {"softcap": 30.0} if "softcap" in variant else {}
    rows = min((int(word.split()[2]) for word in variant if word.startswith("up to")), default=512)
    w = iomodel.Attention(
        q_len=rows,
        kv_len=4096,
        head_dim=row.head_dim,
        value_dim=row.value_dim,
        dtype=row.dtypes[-1],
        direction=row.direction,
        mask=mask,
        **features,
    )
    return w, {"splits": 4} if "several splits" in variant else {}


@pytest.mark.parametrize(("name", "kernels", "row"), TABLES, ids=lambda value: str(value)[:24])
def test_every_row_of_a_table_is_found(name: str, kernels: str, row: ShippedTile) -> None:
    device = iomodel.hardware({**DEVICES, **OTHER_DEVICES}[row.architecture or "sm_90"])
    for variant in row.variants:
        if "pair" in variant:  # two blocks that share a tile, which a caller asks for
            continue
        w, options = call_of(row, variant.split(" with "))
        chosen = shipped_tile(iomodel.kernels.implementation(name, kernels), w, device, options)
        assert chosen == row.tiles


def test_a_table_speaks_of_no_other_call() -> None:
    kernels, device = iomodel.kernels.implementation("flash2", "flash-attention-2"), iomodel.hardware("a100-sxm4-80gb")
    assert shipped_tile(kernels, W, device, {}) == {"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}
    narrow = W.model_copy(update={"head_dim": 72, "value_dim": 72})
    assert shipped_tile(kernels, narrow, device, {}) == {"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}
    for change in ({"head_dim": 512}, {"dtype": "fp8"}):
        assert shipped_tile(kernels, W.model_copy(update=change), device, {}) is None
    for other in ("b200", "rtx5090"):  # the launch templates tell 8.6 and 8.9 from all others
        assert shipped_tile(kernels, W, iomodel.hardware(other), {}) == shipped_tile(kernels, W, device, {})
    blocks = iomodel.BlockMask([[True] * 32] * 32, block_q=128, block_kv=128)
    assert shipped_tile(kernels, W.model_copy(update={"mask": blocks}), device, {}) is None


def test_the_first_implementation_that_runs_is_the_default() -> None:
    known = [implementation.name for implementation in algorithm("flash2").implementations]
    assert list_implementations("flash2") == [*known, "textbook"]
    for name in ("flash2", "flash3", "split_kv", "standard"):
        for device in ("h100-sxm5", "a100-sxm4-80gb", "v100-sxm2-32gb"):
            names = list_implementations(name, device, W)
            assert implementation_for(name, W, iomodel.hardware(device)).name == names[0]
            assert names[-1] == TEXTBOOK.name
    assert "flash-attention-3" not in list_implementations("flash3", "b200")
    assert list_implementations("flash3", "h100-sxm5", W.model_copy(update={"dtype": "fp32"})) == ["textbook"]


def test_a_device_without_a_layout_is_named_with_those_that_have_one() -> None:
    """A missing figure of the device is no reason that a reader can mend."""
    call = W.model_copy(update={"dtype": "fp16"})
    with pytest.raises(iomodel.InputError, match=r"hardware: v100-sxm2-16gb \(compute capability 7.0\) given; allowed"):
        iomodel.estimate("flash2", call, "v100-sxm2-16gb", implementation="flash-attention-2")


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("flash1", "flash-attention-1"),
        ("flash1", "flash-attention-1-2023"),
        ("flash2", "flash-attention-2"),
        ("flash2", "ck"),
        ("split_kv", "flash-attention-2"),
    ],
)
def test_a_check_reports_the_layout_that_ships(name: str, kernels: str) -> None:
    """A tile that several layouts hold, as those of a backward pass with V in registers or not, has the stated one."""
    checks = 0
    for row in iomodel.kernels.implementation(name, kernels).tiles:
        device = iomodel.hardware({**DEVICES, **OTHER_DEVICES}[row.architecture])
        for variant in row.variants:
            w, options = call_of(row, variant.split(" with "))
            outcome = iomodel.check(name, w, device, row.tiles, kernels, **options)
            assert (outcome.fits, outcome.resources["shared memory"].used) == (True, row.shared_bytes), (w, device)
            drawn = contents(name, w, device, row.tiles, kernels, **options)
            assert drawn.check == outcome
            checks += 1
    assert checks >= 12


def test_an_estimate_takes_the_shipped_tile() -> None:
    for name, device in (("fa2", "a100-sxm4-80gb"), ("fa2", "rtx4090"), ("fa3", "h100-sxm5")):
        kernels = iomodel.kernels.implementation(name, name)
        tile = shipped_tile(kernels, W, iomodel.hardware(device), {})
        assert tile is not None
        assert tile.items() <= iomodel.estimate(name, W, device).tiles.items()
        best = iomodel.solve(name, W, device)
        assert best.certificate.shipped is not None
        assert best.seconds <= best.certificate.shipped.seconds
        assert tile.items() <= best.certificate.shipped.tiles.items()


def test_splits_and_packing_are_chosen_for_a_decode() -> None:
    """At 128 k keys the time is that of the bytes at the bandwidth that a kernel reaches; what is given is kept."""
    device = iomodel.hardware("h100-sxm5")
    least = DECODE.kv_len * 8 * 2 * 128 * 2 / rates(device, "bf16").hbm
    s = iomodel.solve("split_kv", DECODE, device)
    assert (s.options["packed"], s.searched) == (True, ("splits", "packed"))
    assert s.options["splits"] > 4
    assert s.seconds == pytest.approx(least, rel=0.1)
    assert least < s.seconds
    e = iomodel.estimate("split_kv", DECODE, device)
    assert e.cost.options["packed"]
    assert e.seconds == pytest.approx(least, rel=0.1)
    kept = iomodel.solve("split_kv", DECODE, device, splits=2, packed=False)
    assert (kept.options["splits"], kept.options["packed"], kept.searched) == (2, False, ())
    assert kept.seconds > s.seconds
    tiles = {"block_q": 64, "block_kv": 128}
    times = {
        (splits, packed): iomodel.estimate("split_kv", DECODE, device, tiles, splits=splits, packed=packed).seconds
        for splits in iomodel.kernels.implementation("split_kv", "flash-attention-2").searched["splits"]
        for packed in (False, True)
    }
    assert iomodel.estimate("split_kv", DECODE, device, tiles).seconds == min(times.values())


def test_an_implementation_of_ones_own() -> None:
    """A kernel declared by its user answers like a shipped one; what is no layout is refused."""
    shipped = iomodel.kernels.implementation("flash2", "flash-attention-2")
    mine = Implementation.of(*shipped.residency["forward"])
    assert (
        iomodel.solve("flash2", W, "h100-sxm5", implementation=mine).tiles
        == iomodel.solve("flash2", W, "h100-sxm5").tiles
    )
    with pytest.raises(iomodel.InputError, match=r"residency: .* allowed: a tuple of Residency per direction"):
        Implementation("mine", residency={"forward": 3})  # type: ignore[dict-item]
    with pytest.raises(iomodel.InputError, match="name: '' given"):
        Implementation("")
    with pytest.raises(iomodel.UnknownNameError, match="implementation of flash2: 'cutlass9' is unknown"):
        iomodel.kernels.implementation("flash2", "cutlass9")


def test_tables_that_nobody_has_are_empty() -> None:
    assert shipped_tiles("flash-attention-9", "flash2") == ()
