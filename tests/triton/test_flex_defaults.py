"""The tiles that PyTorch ships for FlexAttention, against the configs that are ranked first."""

from __future__ import annotations

from functools import cache
from itertools import product
from statistics import median

import iomodel
from iomodel.triton.pruner import Judged
from iomodel.triton.shipped_configs import shipped_configs
from tests.support import autotuner

DEVICES = {80: "a100-sxm4-80gb", 86: "a10", 90: "h100-sxm5", 100: "b200", 120: "rtx5090"}
SPACE = tuple(product((16, 32, 64, 128), (32, 64, 128), (4, 8), (1, 3, 4)))
"""Half of the tiles, warps and stages that PyTorch searches exhaustively."""
Config = tuple[int, int, int, int]


def shipped() -> dict[tuple[str, int, int], Config]:
    """The config of each direction, architecture and width: rows, keys, warps, stages."""
    passes = {"block_sparse": "forward", "backward": "backward"}
    return {(passes[kernel], arch, width): config for (kernel, arch, width), config in shipped_configs().items()}


@cache
def judged(direction: str, arch: int, width: int) -> dict[Config, Judged]:
    """Check and time the space of PyTorch and its default, for 8,192 causal rows in bf16."""
    call = iomodel.Attention(
        batch=4, heads=16, q_len=8192, head_dim=width, dtype="bf16", mask="causal", direction=direction
    )
    kernel = "block_sparse" if direction == "forward" else "backward"
    keep = iomodel.triton.pruner(call, DEVICES[arch], kernel=kernel, top=None, version="3.9.0")
    space = {*SPACE, shipped()[direction, arch, width]}
    chosen = [each for each in space if direction == "forward" or each[1] % each[0] == 0]
    configs = [autotuner.Config({"BLOCK_M": m, "BLOCK_N": n}, warps, stages) for m, n, warps, stages in chosen]
    return dict(zip(chosen, keep.judge(configs, {}), strict=True))


def regrets(direction: str) -> dict[tuple[str, int, int], float]:
    """The predicted time of each default that fits over the least, less one."""
    found = {}
    for key, config in shipped().items():
        every = judged(*key)
        if key[0] == direction and every[config].check.fits:
            found[key] = every[config].seconds / min(each.seconds for each in every.values()) - 1
    return found


def test_defaults_fit() -> None:
    """But one of the backward pass, as the compile of PyTorch's template says."""
    misfits = {
        (key, judged(*key)[config].check.shared)
        for key, config in shipped().items()
        if not judged(*key)[config].check.fits
    }
    assert misfits == {(("backward", 120, 256), 114_688)}


def test_defaults_are_among_the_configs_that_are_predicted_to_be_fast() -> None:
    forward, backward = regrets("forward"), regrets("backward")
    assert (len(forward), len(backward)) == (12, 12)
    # Of 12 forward tiles, six are within 3 % of the least predicted time of 72.
    assert sum(regret < 0.0305 for regret in forward.values()) >= 6
    assert median(forward.values()) <= 0.05
    assert median([*forward.values(), *backward.values()]) <= 0.075


def test_a_fifth_of_the_list_keeps_a_config_within_5_percent() -> None:
    """Prune from the arguments alone: a plain kernel, full rows, fp16, where the times are of causal rows in bf16."""
    for key in (("forward", 90, 128), ("forward", 120, 64), ("forward", 80, 256)):
        every = judged(*key)
        times = {id(each.config): each.seconds for each in every.values()}
        keep = iomodel.triton.pruner(None, DEVICES[key[1]], top=len(every) // 5, version="3.9.0")
        launch = {"N_CTX": 8192, "HEAD_DIM": key[2], "H": 16, "Z": 4}
        kept = keep([each.config for each in every.values()], launch)
        assert 5 * len(kept) <= len(every)
        assert min(times[id(config)] for config in kept) <= 1.05 * min(times.values())


def test_a_default_that_fits_is_kept_however_short_the_list() -> None:
    for (direction, arch, width), config in shipped().items():
        call = iomodel.Attention(
            batch=4, heads=16, q_len=8192, head_dim=width, dtype="bf16", mask="causal", direction=direction
        )
        kernel = "block_sparse" if direction == "forward" else "backward"
        keep = iomodel.triton.pruner(call, DEVICES[arch], kernel=kernel, top=1, version="3.9.0")
        default, other = (
            {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages}
            for m, n, warps, stages in (config, (64, 64, 4, 1))
        )
        pruned = keep.pruned([other, default])
        assert (default in pruned.kept) == (judged(direction, arch, width)[config].check.fits or pruned.too_large == 2)
