"""Calls to estimate, with devices and tiles: what the tests of the time model draw from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import Phase, reject, settings
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.errors import InfeasibleError, InputError, SpecError
from tests.support.strategies import EXACT
from tests.support.tile_names import tile_names

DEVICES = [hardware(name) for name in list_hardware()]


GPUS = [device for device in DEVICES if device.vendor == "NVIDIA"]


A100, H100 = hardware("a100-sxm4-80gb"), hardware("h100-sxm5")


WAYS = [(name, way) for name in EXACT for way in algorithm(name).directions]
TILED = [(name, way) for name, way in WAYS if tile_names(name, direction=way)]


NEAR = 1 + 1e-9
"""Sums of the same seconds in another order."""


def some(share: int) -> settings:
    """The profile's number of examples divided by `share`, for a test whose examples are slow: too slow to shrink."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=max(4, settings().max_examples // share), phases=phases)


@dataclass(frozen=True)
class Asked:
    """What `iomodel.estimate` takes."""

    algorithm: str
    workload: iomodel.Attention
    device: Hardware
    tiles: Mapping[str, int] | None
    options: Mapping[str, Any]
    implementation: str | None = None

    def estimate(self, **more: Any) -> iomodel.Estimate:
        """The answer; an example without one is none."""
        asked = {"implementation": self.implementation, **self.options, **more}
        try:
            return iomodel.estimate(self.algorithm, self.workload, self.device, self.tiles, **asked)
        except (InfeasibleError, SpecError, InputError):
            reject()

    def grown(self, **changes: Any) -> Asked:
        return replace(self, workload=self.workload.model_copy(update=changes))


lengths = st.integers(1, 300) | st.sampled_from([512, 1000, 1024, 4096, 5000])


sides = st.none() | st.integers(0, 300)


windows = st.builds(iomodel.Window, left=st.integers(0, 300), right=st.just(0)) | st.builds(
    iomodel.Window, right=st.integers(0, 300), align=st.just("top-left")
)


masks = st.sampled_from(["full", "causal"]) | windows


rows = st.sampled_from([16, 32, 64, 128])


DTYPES = ("bf16", "fp16", "fp8", "int8", "fp32")


FEATURES = {"bias": True, "dropout": 0.1, "sinks": True}


@st.composite
def calls(
    draw: st.DrawFn, devices: list[Hardware] = DEVICES, ways: list[tuple[str, str]] = WAYS, features: bool = True
) -> Asked:
    """A call with tiles; masks, packing and features that are folded anew only where FlashAttention-2 meets them.

    A call that no kernel runs is asked of the textbook's machine: a device would refuse it.
    """
    name, direction = draw(st.sampled_from(ways))
    device = draw(st.sampled_from(devices))
    every = (name, direction) == ("flash2", "forward")
    dtypes = [dtype for dtype in DTYPES if f"compute.peak.{dtype}" in device.quantities] or ["bf16"]
    kv_heads = draw(st.sampled_from([1, 2, 8]))
    asked: dict[str, Any] = {
        "batch": draw(st.sampled_from([1, 1, 3, 16])),
        "heads": kv_heads * draw(st.sampled_from([1, 1, 4])),
        "kv_heads": kv_heads,
        "q_len": draw(lengths),
        "kv_len": draw(lengths),
        "head_dim": draw(st.sampled_from([8, 64, 80, 128, 256])),
        "dtype": draw(st.sampled_from(dtypes)),
        "mask": draw(masks if every else st.sampled_from(["full", "causal"])),
        "direction": direction,
    }
    asked["value_dim"] = draw(st.sampled_from([asked["head_dim"], 64]))
    if features and every:
        asked |= {field: FEATURES[field] for field in draw(st.sets(st.sampled_from(sorted(FEATURES)), max_size=1))}
    options: dict[str, Any] = {"packed": draw(st.booleans()) if every else False}
    tiled = algorithm(name).tiled_by
    switches = {tiled: draw(st.booleans())} if tiled else {}
    tiles = {tile: draw(rows) for tile in tile_names(name, direction=direction, **switches)}
    if "splits" in algorithm(name).takes(direction):
        options["splits"] = min(draw(st.integers(1, 3)), -(-asked["kv_len"] // tiles["block_kv"]))
    call = iomodel.Attention(**asked)
    (first, *_) = iomodel.list_implementations(name, device, call)
    return Asked(name, call, device, tiles, options, first if first == "textbook" else None)


FAST = [("flash2", "forward"), ("flash2", "backward"), ("flash3", "forward"), ("split_kv", "forward")]
