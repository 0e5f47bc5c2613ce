"""TF32 is a type of products: whatever is counted or stored is that of fp32, and a kernel that takes fp32 takes it."""

from dataclasses import replace

import pytest

from iomodel import Attention, cost, estimate, hardware, list_algorithms, solve
from iomodel.algorithms import algorithm
from iomodel.devices.rates import rates
from iomodel.errors import IOModelError
from iomodel.placement.implementations import implementations_for

CALL = Attention(batch=4, q_len=1024, head_dim=64, heads=8, kv_heads=2, dtype="fp32")
DEVICES = ("a100-sxm4-80gb", "h100-sxm5", "rtx4090", "mi300x")


def tf32(call=CALL, **changed):
    return Attention(**{**call.model_dump(exclude_unset=True), "dtype": "tf32", **changed})


def counted(name, call):
    """Count an algorithm by every formula; None where it does not answer attention."""
    try:
        found = cost(name, call)
    except IOModelError:
        return None
    return {key: value for key, value in found.to_dict().items() if key != "workload"}


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_counts_of_every_algorithm_are_those_of_fp32(direction):
    call = CALL.model_copy(update={"direction": direction})
    found = {name: counted(name, call) for name in list_algorithms()}
    assert {name: counted(name, tf32(call)) for name in found} == found
    assert any(found.values())


def test_a_cache_in_fp32_is_of_the_type_of_the_call():
    assert tf32(kv_dtype="fp32").features == tf32().features == ()
    assert (
        solve("flash2", tf32(kv_dtype="fp32"), "a100-sxm4-80gb").seconds
        == solve("flash2", tf32(), "a100-sxm4-80gb").seconds
    )


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_that_take_fp32_take_tf32_in_the_same_tiles(device):
    gpu, flash2 = hardware(device), algorithm("flash2")
    kernels = [[known.name for known in implementations_for(flash2, call, gpu, None)] for call in (CALL, tf32())]
    assert kernels[0] == kernels[1] != []
    assert solve("flash2", CALL, device).tiles == solve("flash2", tf32(), device).tiles


def test_products_of_a_kernel_that_follows_the_call_are_at_the_rate_of_tf32():
    """Triton's kernel on an MI300X."""
    tile = {"block_q": 64, "block_kv": 64}
    wide, narrow = (estimate("flash2", call, "mi300x", tile) for call in (CALL, tf32()))
    peaks = [rates(hardware("mi300x"), name).matrix for name in ("fp32", "tf32")]
    assert wide.breakdown["matrix"] / narrow.breakdown["matrix"] == pytest.approx(peaks[1] / peaks[0], rel=1e-3)
    assert {**wide.breakdown, "matrix": 0, "tail": 0} == {**narrow.breakdown, "matrix": 0, "tail": 0}


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "rtx4090"])
def test_products_of_cutlass_are_three_of_tf32_whatever_the_framework_allows(device):
    found = [estimate("flash2", call, device) for call in (CALL, tf32())]
    assert found[0].implementation == "xformers"
    assert found[0].breakdown == found[1].breakdown
    assert found[0].assumed[-2:] == found[1].assumed[-2:]
    split, known = found[0].rates, rates(hardware(device), "tf32")
    assert (split.matrix, split.warp_matrix) == (known.matrix / 3, known.warp_matrix / 3)
    assert all(one.seconds >= one.floor for one in found)
    assert split.peak == max(known.peak / 3, rates(hardware(device), "fp32").peak)


def test_a_call_of_another_type_keeps_its_rates():
    bf16 = replace(rates(hardware("a100-sxm4-80gb"), "bf16"))
    assert (
        estimate("flash2", CALL.model_copy(update={"dtype": "bf16", "kv_dtype": "bf16"}), "a100-sxm4-80gb").rates
        == bf16
    )
