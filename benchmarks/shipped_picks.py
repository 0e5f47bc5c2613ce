"""Predicted time of the tile that a library ships over that of the solver's pick, for every CUDA tile on file.

    python benchmarks/shipped_picks.py [--each]

Each row of `specs/tiles` of an NVIDIA architecture is asked once per pass, width and type, as a causal call of 8,192
rows and 32 heads in the kernels of its own library. Kernels that divide keys and earlier releases have the same tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from iomodel.algorithms import discovered  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from tests.shipped import DEVICES, OTHER_DEVICES  # noqa: E402

NEAR = 0.05
"""Excess of the shipped tile's predicted time over the pick's up to which the two count as one."""
CUDA = {name: device for name, device in (DEVICES | OTHER_DEVICES).items() if name.startswith("sm_")}


def asked() -> Iterator[tuple[str, str, str, iomodel.Attention]]:
    """Algorithm, kernels, device and call of each shipped tile, without repetitions."""
    seen = set()
    for algorithm in discovered().values():
        for kernels in () if "splits" in algorithm.options else algorithm.implementations:
            for tile in kernels.tiles:
                for dtype in tile.dtypes[:1] or ("bf16",):
                    key = algorithm.name, kernels.name, tile.architecture, tile.head_dim, tile.value_dim, tile.direction
                    if (*key, dtype) in seen or tile.architecture not in CUDA or kernels.superseded:
                        continue
                    seen.add((*key, dtype))
                    sizes: dict[str, Any] = {"head_dim": tile.head_dim, "value_dim": tile.value_dim}
                    call = iomodel.Attention(
                        batch=2, heads=32, q_len=8192, mask="causal", direction=tile.direction, dtype=dtype, **sizes
                    )
                    yield algorithm.name, kernels.name, CUDA[tile.architecture], call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="print every row")
    each, excess, refused = parser.parse_args().each, [], 0
    for algorithm, kernels, device, call in asked():
        try:
            shipped = iomodel.estimate(algorithm, call, device, implementation=kernels)
            pick = iomodel.solve(algorithm, call, device, implementation=kernels)
        except IOModelError as error:
            refused += 1
            if each:
                print(f"{kernels} {device} {call.head_dim} {call.direction} {call.dtype}: {error}")
            continue
        excess.append(shipped.seconds / pick.seconds - 1)
        if each and excess[-1] > NEAR:
            print(
                f"{kernels} {device} {call.head_dim} {call.direction} {call.dtype}: {excess[-1]:.1%} for "
                f"{shipped.tiles} against {pick.tiles}"
            )
    near = sum(one <= NEAR for one in excess)
    share = f"{near} of {len(excess)} ({near / len(excess):.0%})"
    print(f"{share} shipped tiles within {NEAR:.0%} of the pick; {refused} calls refused")


if __name__ == "__main__":
    main()
