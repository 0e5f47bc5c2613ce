"""One answer to one question: a config checked and timed by `iomodel.triton`, and by the verbs of any kernel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
import iomodel.triton
from iomodel.triton.pruner import DEVICES

POWERS = (16, 32, 64, 128, 256)
VERSION = "3.9.0"
launches = st.fixed_dictionaries(
    {
        "block_q": st.sampled_from(POWERS),
        "block_kv": st.sampled_from(POWERS),
        "warps": st.sampled_from((1, 2, 4, 8, 16)),
        "stages": st.integers(1, 5),
    }
)
calls = st.builds(
    iomodel.Attention,
    batch=st.integers(1, 8),
    heads=st.integers(1, 32),
    q_len=st.integers(1, 10_000),
    head_dim=st.sampled_from((16, 40, 64, 96, 128, 192, 256)),
    mask=st.sampled_from(("full", "causal")),
    dtype=st.sampled_from(("fp16", "bf16")),
)


@given(call=calls, tiles=launches, arch=st.sampled_from([arch for arch in DEVICES if arch not in (103, 121)]))
def test_a_config_has_one_check_and_one_time(call: iomodel.Attention, tiles: dict[str, int], arch: int) -> None:
    device = DEVICES[arch]
    config = {"BLOCK_M": tiles["block_q"], "BLOCK_N": tiles["block_kv"]}
    config |= {"num_warps": tiles["warps"], "num_stages": tiles["stages"]}
    (judged,) = iomodel.triton.pruner(call, device, version=VERSION).judge([config], {})
    check = iomodel.check("flash2", call, device, tiles, implementation="triton")
    assert judged.check is not None
    assert judged.check.fits is check.fits
    assert judged.check.shared == check.resources["shared memory"].used
    assert judged.check.tmem == (check.resources["tensor memory"].used if "tensor memory" in check.resources else 0)
    assert (judged.check.spilled > 0) == (check.spilled > 0)
    if check.fits:
        estimated = iomodel.estimate("flash2", call, device, tiles, implementation="triton").kernels
        assert judged.seconds == pytest.approx(sum(kernel.seconds for kernel in estimated), rel=1e-12)
    else:
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.estimate("flash2", call, device, tiles, implementation="triton")


def test_the_fastest_tile_is_that_of_all_configs() -> None:
    call = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, mask="causal", dtype="bf16")
    for device in ("a100-sxm4-80gb", "h100-sxm5", "rtx4090"):
        solution = iomodel.solve("flash2", call, device, implementation="triton")
        configs = [
            {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages}
            for m in POWERS for n in POWERS for warps in (1, 2, 4, 8, 16) for stages in range(1, 6)
        ]  # fmt: skip
        judged = iomodel.triton.pruner(call, device, version=VERSION).judge(configs, {})
        assert solution.seconds == pytest.approx(min(each.seconds for each in judged), rel=1e-9)
