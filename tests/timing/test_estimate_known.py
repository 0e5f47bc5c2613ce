"""Times and traffic worked out by hand."""

from __future__ import annotations

import pytest

import iomodel
from iomodel import InfeasibleError, hardware
from tests.studies.test_estimate_input import W
from tests.support.device_edits import edited
from tests.support.estimate_calls import A100, H100


def test_bare_devices_are_bounded_by_their_memory() -> None:
    """Without a kernel's layout, the footprint must do: it bounds tiles, and how many an SM takes."""
    device, w = hardware("mi300x"), W.model_copy(update={"batch": 64})
    limit = device.sram_per_block  # and a CU has no more
    taken = []
    for block_kv in range(16, 1024, 16):
        tiles = {"block_q": 32, "block_kv": block_kv}
        footprint = iomodel.cost("flash2", w, tiles).footprint_bytes
        if footprint > limit:
            break
        taken.append(limit // footprint)
        blocks, per_unit = 64 * 8 * 16, 27  # 8192 blocks on 304 CUs
        found = iomodel.estimate("flash2", w, device, tiles, implementation="textbook").kernels[0]
        assert (found.blocks, found.waves) == (blocks, -(-per_unit // taken[-1]))
    assert taken[0] > 2
    assert taken[-1] == 1
    with pytest.raises(InfeasibleError, match=f"{footprint:,} B are more than the {limit:,} B of a block") as refused:
        iomodel.estimate("flash2", w, device, tiles, implementation="textbook")
    assert refused.value.least == footprint
    assert iomodel.estimate("flash2", w, device, implementation="textbook").seconds > 0


def test_each_kernel_has_its_own_room() -> None:
    """A kernel whose tiles stay finds as much room beside a greedy kernel as beside a small one."""
    w = iomodel.Attention(batch=8, heads=16, q_len=4096, head_dim=64, dtype="bf16")

    def waves(block_q: int) -> tuple[int, int]:
        tiles = {"block_q": block_q, "block_kv": 64, "block_proj": 64}
        hashed, _, attended, _ = iomodel.estimate("reformer", w, "mi300x", tiles).kernels
        assert (hashed.blocks, hashed.waves) == (8192, 9)  # 27 a CU; three of 20,480 B fit into 65,536 B
        return attended.blocks, attended.waves

    assert waves(16) == (131072, 216)  # 432 a CU; Q, K, V, S and O are 26,624 B and some columns: two at once
    assert waves(64) == (32768, 108)  # 57,344 B and some columns: one at once


def test_flash_attention_2_on_an_a100_by_hand() -> None:
    """16 heads of 4096, head dimension 64, tiles of 128 x 64 by four warps: 512 blocks on 108 SMs."""
    w = iomodel.Attention(heads=16, q_len=4096, head_dim=64, dtype="bf16")
    device = edited(A100, {"limits.blocks_per_sm": 2})
    found = iomodel.estimate("flash2", w, device, {"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1})
    (kernel,) = found.kernels
    clock, units, scores = 1.41e9, 108, 16 * 4096**2
    trips, blocks = 16 * 32 * 64, 16 * 32
    size = 16 * 4096 * 64 * 2
    assert kernel.blocks == blocks
    assert found.requested_bytes == 2 * size + 2 * size * 32 + 16 * 4096 * 4
    expected = {
        "matrix": 4 * scores * 64 / (units * 2048 * clock),
        "exp": (scores + trips * 128) / (units * 16 * clock),
        "fp32": 4 * scores / (units * 64 * clock),
        "hbm": (4 * size + 16 * 4096 * 4) / found.rates.hbm,
        "steps": 240 * trips / units / clock,
        "launch": 2.62e-6,  # as measured
    }
    assert found.rates.l2 is not None
    expected["l2"] = found.requested_bytes / found.rates.l2
    # K and V are loaded at each trip; it reads Q once, K and V once a warp. P stays in registers.
    tile_q, tile_kv = 128 * 64 * 2, 64 * 64 * 2
    expected["shared memory"] = trips * (2 * tile_kv + tile_q + 8 * tile_kv) / (units * 128 * clock)
    products, softmax = max(expected["matrix"], expected["shared memory"]), max(expected["exp"], expected["fp32"])
    two = products + softmax + expected["steps"]  # per block and SM, as the cost of a trip was read
    one = two + (two - products**2 / two - softmax**2 / two) / 2  # no other block to queue for the same unit
    assert kernel.waves == 3  # an SM has five of 512 blocks: two, two, one
    busiest = (4 * two + one) * units / blocks + 5 * 2500 / clock  # blocks start one after another
    busiest += (2 * size + 16 * 4096 * 4) / 2 / (found.rates.hbm * 2)  # half of Q, O and LSE, for which two blocks wait
    expected["tail"] = busiest - products - softmax - expected["steps"]
    assert dict(found.breakdown) == pytest.approx(expected)
    assert found.seconds == pytest.approx(busiest + 2.62e-6)


def test_gradients_random_numbers_and_atomics_by_hand() -> None:
    """FlashAttention-2 backward with dropout, two tiles either way: what comes on top of the products."""
    w = iomodel.Attention(q_len=128, kv_len=128, head_dim=64, dtype="bf16", direction="backward", dropout=0.1)
    found = iomodel.estimate("flash2", w, A100, {"block_q": 64, "block_kv": 64})
    main = next(kernel for kernel in found.kernels if kernel.title == "flash2 backward")
    rate = 108 * 64 * 1.41e9
    assert main.breakdown["matrix"] == pytest.approx(10 * 128 * 128 * 64 / (108 * 2048 * 1.41e9))
    assert main.breakdown["fp32"] == pytest.approx(128 * 128 * (4 + 8 + 10) / rate)
    assert main.breakdown["exp"] == pytest.approx(128 * 128 / (108 * 16 * 1.41e9))
    assert found.rates.l2 is not None
    atomic = 4 * 2 * 128 * 64  # each key tile adds to all of dQ, in fp32
    assert main.breakdown["atomics"] == pytest.approx(atomic / found.rates.l2)
    assert main.breakdown["l2"] == pytest.approx(main.requested_bytes / found.rates.l2)
    plain = iomodel.estimate("flash2", w, A100, {"block_q": 64, "block_kv": 64}, deterministic=True)
    alone = next(kernel for kernel in plain.kernels if kernel.title == main.title)
    assert alone.breakdown["atomics"] == main.breakdown["atomics"]  # in turn, not atomically
    assert alone.seconds >= main.seconds


def test_four_warps_together_multiply_faster_than_one() -> None:
    """On Hopper one warp's instruction does a part of what a warp group's does; FlashAttention-2 uses the former."""
    w = iomodel.Attention(heads=16, q_len=4096, head_dim=128)
    second, third = (
        iomodel.estimate(name, w, H100, {"block_q": 128, "block_kv": 128, "warps": 8}) for name in ("flash2", "flash3")
    )
    flops = 4 * 16 * 4096**2 * 128
    assert third.breakdown["matrix"] == pytest.approx(flops / 989.4e12)
    assert second.breakdown["matrix"] == pytest.approx(flops / (132 * 2378 * 1.83e9))
    assert second.breakdown["matrix"] > 1.4 * third.breakdown["matrix"]


def test_what_fits_the_l2_is_fetched_once() -> None:
    """Keys of a head that fit are fetched once; with a small L2 again in each wave, with none for each block."""
    w = iomodel.Attention(q_len=128 * 216, kv_len=4096, head_dim=128, dtype="bf16")
    tiles = {"block_q": 128, "block_kv": 64, "warps": 4}

    def streamed(capacity: float | None) -> int:
        device = edited(A100, {"memory.l2.capacity": capacity, "limits.blocks_per_sm": 1})
        (kernel,) = iomodel.estimate("flash2", w, device, tiles).kernels
        return kernel.streamed_bytes

    keys, rest = 2 * 4096 * 128 * 2, 2 * w.q_len * 128 * 2 + 4 * w.q_len
    assert streamed(4e7) == keys + rest
    assert streamed(2**16) in (2 * keys + w.q_len * 128 * 4 + 4 * w.q_len, 2 * keys + rest)
    assert streamed(None) == 216 * keys + rest


def test_waves_up_and_down_find_what_the_l2_holds() -> None:
    """Two waves over keys of 2 MiB: the second misses what the L2 cannot hold, N + (W - 1) (N - C) in all."""
    w = iomodel.Attention(q_len=128 * 216, kv_len=4096, head_dim=128, dtype="bf16")
    keys, rest = 2 * 4096 * 128 * 2, 2 * w.q_len * 128 * 2 + 4 * w.q_len
    for capacity in (2**12, 2**16, 2**19, 2**20 - 2):
        device = edited(A100, {"memory.l2.capacity": capacity, "limits.blocks_per_sm": 1})
        tiles = {"block_q": 128, "block_kv": 64, "warps": 4}
        found = [
            iomodel.estimate("flash2", w, device, tiles, order=order).kernels[0] for order in ("plain", "serpentine")
        ]
        assert [kernel.streamed_bytes for kernel in found] == [2 * keys + rest, keys + (keys - capacity) + rest]
        plain, turning = found
        assert plain.lock_step_bytes == 2 * keys + rest
        # In phase, queries and outputs take room as well: of 108 blocks too much for more than the last tile of 32 KiB.
        tile, queries = 2 * 64 * 128 * 2, 2 * 128 * 128 * 2 + 4 * 128
        assert turning.lock_step_bytes == 2 * keys + rest - (tile if capacity >= tile + queries else 0)
