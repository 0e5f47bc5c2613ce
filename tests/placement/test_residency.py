"""What fits a GPU: tiles that kernels ship do, those that their sources call too large do not; a compiler agrees."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Max

import iomodel
from iomodel.algorithms import algorithm
from iomodel.kernels import Implementation, Residency
from iomodel.nests import K, O, Q, S, V, dK, dP, dQ, dV
from iomodel.placement.check import Check, checked
from iomodel.placement.implementations import implementation_for
from iomodel.placement.placement import Placement, placements, residency_formulas
from tests.shipped import DEVICES, OTHER_DEVICES, table
from tests.support.inside import (
    CAUSAL,
    FormulaKind,
    Fragment,
    Reused,
    Shared,
    as_device,
    check_options,
    kind_of,
    stages,
    structural,
)
from tests.support.strategies import fraction_of_examples

KIB = 1024
ALL_DEVICES = {**DEVICES, **OTHER_DEVICES}
OPTIONS: dict[str, dict[str, Any]] = {
    "forward": {"lse": True, "packed": False},
    "backward": {"deterministic": False, "accumulate": False, "packed": False},
}


def call(row: dict[str, str], kv_heads: int = 1) -> iomodel.Attention:
    head_dim = int(row["head_dim"])
    return iomodel.Attention(
        q_len=4096,
        heads=16,
        kv_heads=kv_heads,
        latent=head_dim == 576,
        head_dim=head_dim,
        value_dim=int(row.get("value_dim", head_dim)),
        dtype=row.get("dtype", "bf16"),
        direction=row.get("direction", "forward"),
    )


def tiles(row: dict[str, str]) -> dict[str, int]:
    return {name: int(row[name]) for name in ("block_q", "block_kv", "warps", "stages") if name in row}


def layouts(name: str, device: str) -> str | None:
    """FlashAttention-2 on Hopper too, where split-KV is that of FlashAttention-3 by default."""
    return "flash-attention-2" if name == "split_kv" and device == "h100-sxm5" else None


def placed(name: str, w: iomodel.Attention, device: str, residency: Residency | None = None) -> list[Placement]:
    options = {
        key: value for key, value in OPTIONS[w.direction].items() if key in {**algorithm(name).options, "packed": 0}
    }
    gpu = as_device(device)
    chosen = implementation_for(name, w, gpu, layouts(name, device))
    kernels = chosen if residency is None else Implementation.of(residency)
    return placements(algorithm(name), w, gpu, kernels, options, kind_of(w))


def shown(row: dict[str, str]) -> str:
    return "-".join(row.values())


FLASH2 = table("flash-attention-2")


@pytest.mark.parametrize("row", FLASH2, ids=shown)
def test_what_flashattention_2_ships_fits(row: dict[str, str]) -> None:
    w, device = call(row), DEVICES[row["architecture"]]
    assert iomodel.check(row["algorithm"], w, device, tiles(row), layouts(row["algorithm"], device)).fits
    # And to the byte: one of the ways that the kernels lie in shared memory occupies what theirs do.
    sizes = {
        p.memory(int(row["block_q"]), int(row["block_kv"]), int(row["stages"]), 1)[0]
        for p in placed(row["algorithm"], w, device)
    }
    assert int(row["shared_bytes"]) in sizes


@pytest.mark.parametrize("row", table("flash-attention-1") + table("flash-attention-1-2023"), ids=shown)
def test_what_flashattention_1_ships_fits(row: dict[str, str]) -> None:
    """To the byte, in a layout that fits: K or V alone in shared memory, or both in a backward pass on an A100."""
    w = call(row, kv_heads=16)
    checks = [
        checked(placement, launch, "flash1", w, tiles(row))
        for placement in placed("flash1", w, ALL_DEVICES[row["architecture"]])
        for launch in placement.launches()
        if launch.warps == int(row["warps"])
    ]
    assert int(row["shared_bytes"]) in {check.resources["shared memory"].used for check in checks if check.fits}


@pytest.mark.parametrize("row", table("flash-attention-3"), ids=shown)
def test_what_flashattention_3_ships_fits(row: dict[str, str]) -> None:
    assert iomodel.check("flash3", call(row), DEVICES[row["architecture"]], tiles(row)).fits


FLASH3_BACKWARD = table("flash-attention-3-backward")


@pytest.mark.parametrize("row", FLASH3_BACKWARD, ids=shown)
def test_what_flashattention_3_ships_for_the_backward_pass_fits(row: dict[str, str]) -> None:
    w = call({**row, "direction": "backward"})
    assert iomodel.check("flash3", w, "h100-sxm5", tiles(row)).fits
    # To the byte, but for D and LSE_log2: the first of two stages is padded to 64 rows.
    (placement,) = placed("flash3", w, "h100-sxm5")
    rows = int(row["block_q"])
    padding = 2 * 4 * (-rows % 64)
    assert placement.memory(rows, int(row["block_kv"]), int(row["stages"]), 1)[0] + padding == int(row["shared_bytes"])
    # Each width has a kernel of its own, whose tiles are multiples of what its warp groups multiply.
    assert placement.residency.head_dims == (w.head_dim,)
    assert int(row["warps"]) in placement.residency.warps


def backward_registers(head_dim: int, **change: Any) -> Placement:
    """The placement of FlashAttention-3's backward kernel for a width, with other tiles in registers."""
    w = iomodel.Attention(q_len=4096, head_dim=head_dim, direction="backward")
    (placement,) = placed("flash3", w, "h100-sxm5")
    (changed,) = placed("flash3", w, "h100-sxm5", replace(placement.residency, **change))
    return changed


def test_what_its_sources_say_of_registers() -> None:
    """Where they say that a tile spills, or what saves registers.

    At 64, causal with a softcap, 96 x 128 is taken for 128 x 128: the derivative of the cap is live beside S and dP.
    At 256 half of dQ is made at a time.
    """
    scores = (Fragment(S), Fragment(S), Fragment(dP), Fragment(dK), Fragment(dV))
    capped = backward_registers(64, phases=(scores,))
    assert capped.registers_of(96, 128, 8) <= capped.registers_limit(8) == 240 < capped.registers_of(128, 128, 8)
    wide = backward_registers(256, phases=((Fragment(dQ), Fragment(dK), Fragment(dV)),))
    assert wide.registers_of(64, 80, 8) > wide.registers_limit(8) == 240
    assert backward_registers(256).registers_of(64, 80, 8) <= 240
    assert backward_registers(192).registers_limit(12) == 160


def test_warp_groups_share_out_the_keys_of_a_backward_pass() -> None:
    """As rows of S^T, 64 each, or as columns of S, 8 each; both tiles are summed over, 16 elements at a time."""
    steps = {}
    for row in FLASH3_BACKWARD:
        w = call({**row, "direction": "backward"})
        (placement,) = placed("flash3", w, "h100-sxm5")
        steps |= {w.head_dim: {launch.warps: placement.steps(launch) for launch in placement.launches()}}
    rows = {8: (16, 128), 12: (16, 192)}
    assert steps == {64: rows, 96: rows, 128: rows, 192: {12: (64, 48)}, 256: {8: (64, 16)}}


@pytest.mark.parametrize("row", table("too_large"), ids=shown)
def test_what_the_sources_call_too_large_does_not_fit(row: dict[str, str]) -> None:
    """In the residency that the source speaks of: P or V may lie in registers or in shared memory."""
    # FlashAttention-1 takes one head of keys and values per query head.
    w = call(row, kv_heads=16 if row["algorithm"] == "flash1" else 1)
    device = DEVICES[row["architecture"]]
    named = {
        "V too": "V too",
        "Q P": "Q, P, two stages",
        "P and O": "S, P and O",
    }.get(row["residency"], row["residency"])
    spoken_of = [p.residency for p in placed(row["algorithm"], w, device) if named in p.residency.title]
    assert spoken_of
    for residency in spoken_of:
        found = iomodel.check(row["algorithm"], w, device, tiles(row), Implementation.of(residency))
        assert not found.fits
        assert found.slack[row["resource"]] < 0


# (algorithm, direction, head_dim, block_q, block_kv, stages, KiB): the figures in the comments of the sources.
KILOBYTES = [
    ("flash2", "forward", 64, 128, 128, 1, 48),
    ("flash2", "forward", 128, 128, 32, 1, 48),
    ("flash2", "forward", 128, 128, 64, 1, 64),
    ("flash2", "forward", 256, 64, 64, 1, 96),
    ("flash2", "forward", 256, 128, 64, 1, 128),
    ("flash2", "backward", 32, 128, 128, 2, 104),
    ("flash2", "backward", 64, 128, 128, 2, 144),
    ("flash2", "backward", 96, 64, 128, 2, 116),
    ("flash2", "backward", 128, 64, 128, 2, 144),
    ("flash2", "backward", 192, 64, 64, 2, 136),
    ("flash2", "backward", 256, 64, 64, 1, 144),
    ("flash2", "backward", 256, 64, 64, 2, 176),
    ("flash3", "forward", 192, 128, 112, 2, 216),
    ("flash3", "forward", 256, 128, 80, 2, 224),
]


@pytest.mark.parametrize(("name", "direction", "head_dim", "block_q", "block_kv", "copies", "kib"), KILOBYTES)
def test_kilobytes_of_shared_memory(
    name: str, direction: str, head_dim: int, block_q: int, block_kv: int, copies: int, kib: int
) -> None:
    w = iomodel.Attention(q_len=4096, head_dim=head_dim, direction=direction)
    first = placed(name, w, "h100-sxm5")[0]
    assert first.memory(block_q, block_kv, copies, 1)[0] == kib * KIB


@pytest.mark.parametrize(("head_dim", "block_q", "kib"), [(32, 128, 96), (96, 64, 92)])
def test_kilobytes_with_v_in_registers(head_dim: int, block_q: int, kib: int) -> None:
    w = iomodel.Attention(q_len=4096, head_dim=head_dim, direction="backward")
    _, in_registers = placed("flash2", w, "h100-sxm5")
    assert in_registers.memory(block_q, 128, 2, 1)[0] == kib * KIB


# --- against a compiler

RECORDS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "measured" / "triton-compile-sm90.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]
VARIANTS = [record for record in RECORDS if not record["check"]]
COMMON: dict[str, Any] = {
    "cite": "plain Triton kernels of the three algorithms, compiled for compute capability 9.0",
    "split": "tile",
    "head_dims": (64, 128),
    "stages": (1, 2, 3, 4),
}


def triton(record: dict[str, Any]) -> Residency:
    """How Triton lays a plain kernel out.

    Below 64 query rows it has no warp group instruction: one copy of a streamed tile fewer, and P by way of shared
    memory unless the query tile is as high as the head is wide. Without pipelining a 16-bit tile waits in registers
    and V takes the place of K; the constants are the registers of addresses, statistics and operands.
    """
    one, grouped = record["stages"] == 1, record["block_q"] >= 64
    waiting = (Fragment(K, "io"),)
    if record["kernel"] == "flash2":
        copies = stages if grouped else Max(1, stages - 1)
        p = () if grouped or record["block_q"] >= record["head_dim"] else (Shared(S, dtype="io"),)
        keys = (Reused((Shared(K),), (Shared(V),)),) if one else (Shared(K, copies), Shared(V, copies))
        phase = (Fragment(S), Fragment(O), *(waiting if one else ()))
        return Residency("flash2 in Triton", shared=(Shared(Q), *keys, *p), phases=(phase,), overhead=64, **COMMON)
    if record["kernel"] == "flash1":
        phase = (Fragment(S), Fragment(O), *(() if one else waiting))
        shared = (Shared(K), Shared(V), Shared(Q, stages))
        return Residency("flash1 in Triton", shared=shared, phases=(phase,), overhead=80, **COMMON)
    strip = (Fragment(S), Fragment(O))
    return Residency("tiled_query in Triton", shared=(Shared(Q), Shared(K)), phases=(strip,), overhead=58, **COMMON)


def judged(record: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Whether it compiles within the limits without spilling, whether it is said to, whether the bytes are equal."""
    w = iomodel.Attention(
        q_len=record["q_len"],
        kv_len=record["kv_len"],
        head_dim=record["head_dim"],
        mask="causal" if record["causal"] else "full",
    )
    (placement,) = placed(record["kernel"], w, "h100-sxm5", triton(record))
    at = record["block_q"], record["block_kv"]
    shared, registers = placement.memory(*at, record["stages"], 1)[0], placement.registers_of(*at, record["warps"])
    device = placement.device
    fits = shared <= device.shared_per_block and registers <= placement.registers_limit(record["warps"])
    compiles = (
        "error" not in record and record["stack_bytes"] == 0 and record["shared_bytes"] <= device.shared_per_block
    )
    return compiles, fits, shared == record["shared_bytes"]


@pytest.mark.parametrize("kernel", ["flash2", "flash1", "tiled_query"])
def test_a_compiler_agrees_on_what_fits(kernel: str) -> None:
    """On 95 of 100 variants, both ways; what is left is explained on the page about residency."""
    found = Counter(judged(record)[:2] for record in VARIANTS if record["kernel"] == kernel)
    agreed = found[True, True] + found[False, False]
    assert agreed >= 0.95 * found.total()
    assert min(found[True, True], found[False, False]) > 0  # neither answer is always the same


def test_shared_memory_of_flash2_is_the_compilers_to_the_byte() -> None:
    assert all(judged(record)[2] for record in VARIANTS if record["kernel"] == "flash2")


# --- the solver


def exhaustive(name: str, w: iomodel.Attention, device: str, least_kv: int) -> tuple[list[int], set[tuple[int, ...]]]:
    """The traffic of all tiles that fit, and every way to have the least with the largest block_kv."""
    rows = {"block_q": w.q_len, "block_kv": w.kv_len}
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for placement in placed(name, w, device):
        for launch in placement.launches():
            steps = placement.steps(launch)
            ends = [-(-rows[tile] // step) * step for tile, step in zip(placement.tiles, steps, strict=True)]
            least = min(ends[1], -(-min(least_kv, rows["block_kv"]) // steps[1]) * steps[1])
            for bq, bkv in product(range(steps[0], ends[0] + 1, steps[0]), range(least, ends[1] + 1, steps[1])):
                if placement.fit(bq, bkv, launch).fits:
                    cost = iomodel.cost(name, w, {"block_q": bq, "block_kv": bkv}).hbm_bytes
                    found.setdefault((cost, -bkv), []).append((bq, bkv, launch.warps, launch.stages))
    best = min(found)
    return sorted({cost for cost, _ in found}), set(found[best])


@given(
    case=st.tuples(st.sampled_from(["flash2", "flash3"]), st.sampled_from(["forward", "backward"])),
    q_len=st.integers(1, 700),
    kv_len=st.integers(1, 500),
    head_dim=st.sampled_from([32, 64, 80, 128, 256]),
    mask=st.sampled_from(["full", "causal"]),
    device=st.sampled_from(sorted(DEVICES.values())),
    least_kv=st.sampled_from([1, 32, 64]),
)
@fraction_of_examples(20)
def test_the_solver_finds_what_exhaustive_search_finds(
    case: tuple[str, str], q_len: int, kv_len: int, head_dim: int, mask: Any, device: str, least_kv: int
) -> None:
    name, direction = case
    device = "h100-sxm5" if name == "flash3" else device
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=head_dim, mask=mask, direction=direction)
    kernels = {"flash2": "flash-attention-2", "flash3": "flash-attention-3"}[name]
    solution = iomodel.solve(name, w, device, implementation=kernels, objective="traffic", min_block_kv=least_kv)
    (least, *more), ways = exhaustive(name, w, device, least_kv)
    why = solution.certificate
    assert solution.cost.hbm_bytes == why.least_hbm_bytes == least
    assert (why.runner_up and why.runner_up.hbm_bytes) == (more[0] if more else None)
    if why.runner_up:
        assert iomodel.check(name, w, device, why.runner_up.tiles).fits
        assert iomodel.cost(name, w, why.runner_up.tiles).hbm_bytes == more[0]
    assert why.ratio == least / why.lower_bound.bytes >= 1
    assert tuple(solution.tiles[tile] for tile in ("block_q", "block_kv", "warps", "stages")) in ways
    assert solution.placed is not None
    assert solution.placed.fits
    assert iomodel.check(name, w, device, solution.tiles).fits


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_the_next_step_does_not_fit(direction: str, head_dim: int) -> None:
    w = iomodel.Attention(q_len=8192, head_dim=head_dim, direction=direction)
    s = iomodel.solve("fa2", w, "a100-sxm4-80gb", objective="traffic")
    step = s.certificate.next_step
    assert s.placed is not None
    residency = next(r for r in algorithm("flash2").residency[direction] if r.title == s.placed.residency)
    larger = iomodel.check(
        "flash2", w, "a100-sxm4-80gb", {**s.tiles, step.tile: step.size}, Implementation.of(residency)
    )
    assert not larger.fits
    assert larger.slack[step.resource] == -step.excess
    assert s.certificate.binding in {"shared memory", "registers", "MMA shape"}
    assert s.certificate.ratio >= 1


def test_one_tile_covers_a_short_sequence() -> None:
    s = iomodel.solve("flash2", iomodel.Attention(q_len=60, head_dim=64), "h100-sxm5", objective="traffic")
    assert s.certificate.binding == "extent"
    assert s.saturated


def test_more_traffic_may_be_given_up_for_a_larger_key_tile() -> None:
    w = iomodel.Attention(q_len=8192, head_dim=64)
    exact, loose = (iomodel.solve("fa2", w, "h100-sxm5", objective="traffic", epsilon=e) for e in (0, 0.3))
    assert loose.tiles["block_kv"] > exact.tiles["block_kv"]
    assert exact.cost.hbm_bytes < loose.cost.hbm_bytes <= 1.3 * exact.cost.hbm_bytes


def test_shipped_tiles_have_the_least_traffic_at_their_occupancy() -> None:
    """At the shipped occupancy and block_kv or more: the forward tiles without dropout, full and causal."""
    equal, free = {}, 0
    for row in FLASH2:
        if (row["algorithm"], row["direction"]) != ("flash2", "forward") or row["dropout"] == "yes":
            continue
        for mask in ("full", "causal") if row["mask"] == "any" else (row["mask"],):
            w = iomodel.Attention(q_len=8192, head_dim=int(row["head_dim"]), mask=mask)
            device, tile = DEVICES[row["architecture"]], tiles(row)
            blocks = iomodel.check("fa2", w, device, tile).blocks_per_sm
            wish: dict[str, Any] = {"objective": "traffic", "min_block_kv": tile["block_kv"]}
            ours = iomodel.solve("fa2", w, device, min_blocks_per_sm=blocks, **wish)
            theirs = iomodel.cost("flash2", w, tile)
            assert ours.cost.hbm_bytes <= theirs.hbm_bytes
            assert ours.placed is not None
            assert ours.placed.blocks_per_sm >= blocks
            equal[row["architecture"], w.head_dim, mask] = ours.cost.hbm_bytes == theirs.hbm_bytes
            unbound = iomodel.solve("fa2", w, device, min_blocks_per_sm=blocks, objective="traffic")
            free += unbound.cost.hbm_bytes == theirs.hbm_bytes
    # Measured choices, 64 x 64 where 128 x 64 would leave an SM as many blocks; sm_120 has the tiles of an A100.
    measured = {("sm_86", 96, "causal"), ("sm_89", 96, "causal")}
    inherited = {("sm_120", 128, "full"), ("sm_120", 128, "causal")}
    assert {case for case, same in equal.items() if not same} == measured | inherited
    assert len(equal) == 72
    assert free == 27  # given the occupancy alone


def test_occupancy_by_hand() -> None:
    # A100: 164 KiB of shared memory an SM, 65,536 registers. 128 x 128 at d = 64: 48 KiB and 1 KiB reserved a block: 3;
    # 192 + 48 registers a thread, 240 x 32 = 7680 = 30 granules of 256 a warp, 30,720 for 4 warps: 2.
    # 8 warps: 96 + 48 registers a thread, 144 x 32 = 4608 = 18 granules a warp, 36,864 for 8 warps: 1.
    for warps, registers, blocks in ((4, 240, 2), (8, 144, 1)):
        c = iomodel.check(
            "fa2",
            iomodel.Attention(q_len=4096, head_dim=64),
            "a100-sxm4-80gb",
            {"block_q": 128, "block_kv": 128, "warps": warps},
        )
        assert (c.blocks_per_sm, c.limited_by) == (blocks, "registers")
        assert {name: resource.used for name, resource in c.resources.items()} == {
            "shared memory": 49152, "registers": registers, "threads": 32 * warps, "MMA shape": 0
        }  # fmt: skip
    # FlashAttention-3: 8 warps compute and 4 load; all registers of the SM belong to one block.
    c = iomodel.check(
        "flash3",
        iomodel.Attention(q_len=4096, head_dim=128),
        "h100-sxm5",
        {"block_q": 128, "block_kv": 128, "warps": 8},
    )
    assert (c.resources["threads"].used, c.resources["registers"].limit, c.blocks_per_sm) == (384, 240, 1)


def scarcest(blocks: dict[str, int]) -> tuple[int, str]:
    """Return the least blocks per SM, and the resource that allows no more."""
    return min((number, name) for name, number in blocks.items())


def test_what_limits_the_blocks_of_an_sm() -> None:
    """An H100 SM takes 64 warps and 32 blocks; neither depends on the tiles."""
    w = iomodel.Attention(q_len=4096, head_dim=32)
    (placement,) = placed("flash2", w, "h100-sxm5")
    assert scarcest(placement.blocks(1024, 16, 4)) == (16, "warps")
    assert scarcest(placement.blocks(1024, 16, 1)) == (32, "blocks")
    # 227 KiB and the reserved one fill the SM; half of it, less the reserve of two, makes two blocks.
    assert scarcest(placement.blocks(227 * KIB, 16, 4)) == (1, "shared memory")
    assert scarcest(placement.blocks(113 * KIB, 16, 4)) == (2, "shared memory")
    assert scarcest(placement.blocks(113 * KIB + 1, 16, 4)) == (1, "shared memory")
    # A warp takes registers by 256: 8 a thread, so 65 registers are 72.
    assert scarcest(placement.blocks(1024, 72, 8)) == scarcest(placement.blocks(1024, 65, 8)) == (3, "registers")
    assert scarcest(placement.blocks(1024, 64, 8)) == (4, "registers")


def test_the_steps_of_tiles() -> None:
    """16 rows a warp or 64 a warp group; keys in whole matrix instructions of 8 columns that sum over 32 B."""
    forward, fp8 = (iomodel.Attention(q_len=4096, head_dim=64, dtype=dtype) for dtype in ("bf16", "fp8"))
    steps = {}
    for name, w in (("flash2", forward), ("flash3", forward), ("flash3", fp8)):
        placement = placed(name, w, "h100-sxm5")[0]
        steps[name, w.dtype] = {launch.warps: placement.steps(launch) for launch in placement.launches()}
    assert steps["flash2", "bf16"] == {4: (64, 16), 8: (128, 16)}
    assert steps["flash3", "bf16"] == {4: (64, 16), 8: (128, 16), 12: (192, 16)}
    assert steps["flash3", "fp8"] == {4: (64, 32), 8: (128, 32), 12: (192, 32)}
    backward = iomodel.Attention(q_len=4096, head_dim=64, direction="backward")
    placement = placed("flash2", backward, "h100-sxm5")[0]
    layouts = {placement.steps(launch) for launch in placement.launches() if launch.warps == 8}
    assert layouts == {(16, 64), (32, 32), (64, 16), (128, 16)}


@pytest.mark.parametrize(
    ("head_dim", "least_kv", "blocks", "binding", "step"),
    [
        # 256 x 64 by 8 warps: 272 rows would do, but are no multiple of 128; 384 take 336 registers.
        (128, 64, 1, "MMA shape", ("block_q", 384, "registers", 336 - 255)),
        # 128 x 64 by 4 warps: 192 rows take as many.
        (128, 64, 2, "registers", ("block_q", 192, "registers", 336 - 255)),
        # 192 x 16 by 4 warps: 256 rows take 208 registers, and the SM then has room for two blocks.
        (64, 16, 3, "blocks per SM", ("block_q", 256, "blocks per SM", 1)),
    ],
)
def test_what_binds_is_named(head_dim: int, least_kv: int, blocks: int, binding: str, step: tuple[Any, ...]) -> None:
    w = iomodel.Attention(q_len=8192, head_dim=head_dim)
    wish: dict[str, Any] = {"min_block_kv": least_kv, "min_blocks_per_sm": blocks}
    why = iomodel.solve("fa2", w, "h100-sxm5", objective="traffic", **wish).certificate
    assert why.binding == binding
    assert (why.next_step.tile, why.next_step.size, why.next_step.resource, why.next_step.excess) == step


def test_a_misfit_of_the_matrix_instruction() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64)
    c = iomodel.check("fa2", w, "a100-sxm4-80gb", {"block_q": 96, "block_kv": 64, "warps": 4})
    assert (c.fits, c.binding, c.slack["MMA shape"], c.blocks_per_sm) == (False, "MMA shape", -32, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head_dim": 300}, "head_dim: 300 given; allowed: up to 256"),
        ({"dtype": "fp32"}, "dtype: 'fp32' given; allowed: fp16, bf16, for flash-attention-2 of flash2"),
    ],
)
def test_what_no_kernel_supports(change: dict[str, Any], message: str) -> None:
    w = iomodel.Attention(**{"q_len": 1024, "head_dim": 64, **change})
    block = {"block_q": 64, "block_kv": 64}
    kernels: dict[str, Any] = {"implementation": "flash-attention-2"}
    with pytest.raises(iomodel.InputError, match=message):
        iomodel.check("flash2", w, "a100-sxm4-80gb", block, **kernels)
    with pytest.raises(iomodel.InputError, match=f"{message}.*; implementations that run: .*textbook"):
        iomodel.solve("flash2", w, "a100-sxm4-80gb", **kernels)


@pytest.mark.parametrize(
    ("name", "device", "tile", "message"),
    [
        (
            "flash3",
            "h100-sxm5",
            {"warps": 6},
            "tiles: warps 6 given; allowed: warps and stages 4 and 2, 8 and 2, 12 and 2",
        ),
        ("fa2", "h100-sxm5", {"stages": 2}, "tiles: stages 2 given; allowed: warps and stages 4 and 1, 8 and 1"),
        ("flash2", "h100-sxm5", {"stages": 9}, "tiles: stages 9 given; allowed: warps and stages 4 and "),
        ("flash2", "h100-sxm5", {"warps": 0}, "warps: 0 given; allowed: an integer from 1"),
        ("flash2", "h100-sxm5", {"block": 1}, "tile of flash2: 'block' is unknown"),
        ("standard", "h100-sxm5", {}, "tile of standard: 'block_q' is unknown"),
    ],
)
def test_bad_questions(name: str, device: str, tile: dict[str, int], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message):
        iomodel.check(name, iomodel.Attention(q_len=512, head_dim=64), device, {"block_q": 64, "block_kv": 64, **tile})


def assert_textbook_answers(name: str, w: iomodel.Attention, device: str) -> None:
    """The textbook that is asked for answers without a note, and `check` takes its tiles and refuses larger ones."""
    solution = iomodel.solve(name, w, device, implementation="textbook")
    assert (solution.implementation, solution.placed, solution.timed) == ("textbook", None, False)
    assert solution.notes == ()
    checked = iomodel.check(name, w, device, solution.tiles, "textbook")
    assert checked.fits
    assert checked.resources["shared memory"].used == solution.footprint
    larger = {tile: 64 * size for tile, size in solution.tiles.items()}
    assert not iomodel.check(name, w, device, larger, "textbook").fits


@pytest.mark.parametrize(
    ("name", "device", "reason"),
    [
        (
            "flash3",
            "b200",
            "FlashAttention-3 has no kernel for NVIDIA B200 SXM 180GB; [a-z0-9-]+: '(flash2|split_kv)'; allowed:",
        ),
        ("flash2", "v100-sxm2-32gb", "FlashAttention-2 has no kernel for NVIDIA V100 SXM2 32GB; nor has another"),
    ],
)
def test_a_device_without_a_kernel_is_refused_unless_the_textbook_is_asked_for(
    name: str, device: str, reason: str
) -> None:
    w = iomodel.Attention(q_len=512, head_dim=64, dtype="fp16")
    for verb in (iomodel.solve, iomodel.estimate, iomodel.check):
        with pytest.raises(iomodel.InputError, match=f"^algorithm: {reason}.*implementation='textbook'") as refused:
            verb(name, w, device)
        assert "\n" not in str(refused.value)
    assert_textbook_answers(name, w, device)


def test_the_textbook_stands_in_for_an_algorithm_without_kernels() -> None:
    """Its answer says so, and `check` takes the tiles that `solve` answers."""
    w, reason = iomodel.Attention(q_len=512, head_dim=64), "small_cache declares no kernel"
    solution = iomodel.solve("small_cache", w, "h100-sxm5")
    assert (solution.implementation, solution.placed, solution.timed) == ("textbook", None, False)
    assert reason in solution.notes[0]
    checked = iomodel.check("small_cache", w, "h100-sxm5", solution.tiles)
    assert checked.fits
    assert reason in checked.residency
    assert iomodel.solve("small_cache", w, "h100-sxm5", implementation="textbook").tiles == solution.tiles
    assert_textbook_answers("small_cache", w, "h100-sxm5")


@pytest.mark.parametrize(
    ("device", "kernel"), [("b200", "cutlass-mla"), ("mi300x", "triton-mla"), ("h100-sxm5", "flashmla")]
)
def test_the_kernel_of_the_device_states_the_missing_feature(device: str, kernel: str) -> None:
    """Rows of 576 fit no other kernel; the refusal names the field that says that V is part of K."""
    w = iomodel.Attention(batch=8, heads=128, kv_heads=1, q_len=1, kv_len=16384, head_dim=576, value_dim=512)
    with pytest.raises(iomodel.InputError, match=f"latent: False given; allowed: True, for {kernel} of split_kv"):
        iomodel.solve("split_kv", w, device)
    latent = w.model_copy(update={"latent": True})
    kernels = iomodel.list_implementations("split_kv", device, latent)[:-1]
    assert kernel in kernels
    times = {each: iomodel.estimate("split_kv", latent, device, implementation=each).seconds for each in kernels}
    assert iomodel.solve("split_kv", latent, device).implementation == min(times, key=times.__getitem__)


@pytest.mark.parametrize(("device", "keys"), [("mi300x", 32), ("mi355x", 64)])
def test_latents_in_fp8_on_amd_take_the_rows_of_their_heads(device: str, keys: int) -> None:
    """AITER has kernels of 16, 32, 64 and 128 rows, of which the smallest that holds the heads is launched."""
    latents = {"kv_heads": 1, "q_len": 1, "head_dim": 576, "value_dim": 512, "latent": True}
    taken = {}
    for heads in (8, 16, 24, 64, 128):
        call = iomodel.Attention(batch=16, heads=heads, kv_len=8192, dtype="fp8", **latents)
        found = iomodel.estimate("split_kv", call, device)
        assert found.implementation == "aiter-mla"
        taken[heads] = found.tiles["block_q"]
    assert taken == {8: 16, 16: 16, 24: 32, 64: 64, 128: 128}
    assert found.tiles["block_kv"] == keys


def test_an_implementation_needs_a_device() -> None:
    w = iomodel.Attention(q_len=512, head_dim=64)
    with pytest.raises(iomodel.InputError, match="0 values given"):
        iomodel.solve("flash2", w, objective="traffic")
    with pytest.raises(iomodel.InputError, match="objective: 'time' given with no implementation"):
        iomodel.solve("flash2", w, sram_bytes=10**5, objective="time")
    with pytest.raises(iomodel.InputError, match="implementation: given with sram_bytes"):
        iomodel.solve("flash2", w, "h100-sxm5", sram_bytes=10**5, implementation="flash-attention-2")
    with pytest.raises(iomodel.InputError, match="min_blocks_per_sm: 2 given; allowed: with an implementation"):
        iomodel.solve("flash2", w, "h100-sxm5", implementation="textbook", min_blocks_per_sm=2)
    with pytest.raises(iomodel.InfeasibleError, match=r"no tile fits.*the smallest, 64 x 16, exceeds: blocks per SM"):
        iomodel.solve("fa2", w, "h100-sxm5", objective="traffic", min_blocks_per_sm=30)
    with pytest.raises(iomodel.UnknownNameError, match="implementation of flash2: 'cpu' is unknown"):
        iomodel.check("flash2", w, "h100-sxm5", {"block_q": 64, "block_kv": 64}, "cpu")
    with pytest.raises(iomodel.UnknownNameError, match="implementation of flash2: 'cpu' is unknown"):
        iomodel.solve("flash2", w, "h100-sxm5", implementation="cpu")


def test_every_way_to_launch_is_judged_alike() -> None:
    """The check of a tile is that of one of its ways; none that fits is passed over."""
    w = iomodel.Attention(q_len=4096, head_dim=256, direction="backward")
    sizes = {"block_q": 64, "block_kv": 32}
    ways: list[Check] = [
        checked(placement, launch, "flash2", w, sizes)
        for placement in placed("flash2", w, "rtx4090")
        for launch in placement.launches()
        if launch.warps == 8 and launch.stages == 1
    ]
    assert any(way.fits for way in ways)
    assert not all(way.fits for way in ways)
    assert iomodel.check("flash2", w, "rtx4090", {**sizes, "warps": 8}).fits


def test_a_copy_of_a_shipped_layout_does_not_take_the_place_of_its_stored_formulas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An equal copy has formulas built with sympy; those of the layout that ships are looked up."""
    declared, kind = algorithm("flash2"), FormulaKind(CAUSAL)
    layout = declared.residency["forward"][0]
    copy = replace(layout)
    assert copy == layout
    assert hash(copy) == hash(layout)
    options = structural(check_options(declared, {}))
    residency_formulas.cache_clear()
    modules: list[str | None] = []
    monkeypatch.setattr("iomodel.placement.placement.obtain", lambda module, *_: modules.append(module) or len(modules))
    assert [residency_formulas(declared, kind, options, each) for each in (copy, layout, copy)] == [1, 2, 1]
    assert modules == [None, "flash2"]
    residency_formulas.cache_clear()
