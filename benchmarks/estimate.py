"""Estimates against costs, least time against least traffic, arrays of times against loops: ratios in one run.

    python benchmarks/estimate.py [--repeats 15] [--points 1000000] [--checked 300] [--arrays]

A cost counts; an estimate folds the nests once more and times every way to run the tile. What is not the time is
computed when it is read: the column "every field" reads the cost, the breakdown, the bounds of what crosses the bus and
those of each level too, and "new length" has calls that differ in length from all before. The solver of least traffic
proves; that of least time looks at every tile that fits, and searches for the tiles of its certificate when the
certificate is read: the last rows have the time with it, too. All calls are warm. The
points of `estimate_array` differ in length and batch; the loop takes the first of them, and its times are compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import iomodel
from benchmarks.solve_and_cost import timed

GPU = "h100-sxm5"
TILES = {"block_q": 128, "block_kv": 64, "warps": 4}
PREFILL = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
BACKWARD = PREFILL.model_copy(update={"direction": "backward"})
LATENT = iomodel.Attention(
    batch=4, heads=128, kv_heads=1, q_len=1, kv_len=32768, head_dim=576, value_dim=512, latent=True
)
DECODE = iomodel.Attention(batch=4, heads=32, kv_heads=8, q_len=1, kv_len=32768, head_dim=128)

SOLVED = (
    ("causal", "flash3", GPU, PREFILL),
    ("causal", "flash2", "a100-sxm4-80gb", PREFILL),
    ("causal backward", "flash3", GPU, BACKWARD),
    ("causal backward", "flash2", "a100-sxm4-80gb", BACKWARD),
    ("decoding", "split_kv", GPU, DECODE),
    ("decoding of latents (MLA)", "split_kv", GPU, LATENT),
)
"""Calls whose warm solutions are timed beside a cost."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--checked", type=int, default=300, help="points of each row compared with `estimate`")
    parser.add_argument("--arrays", action="store_true", help="print the table of arrays alone")
    given = parser.parse_args()
    if given.arrays:
        Console(width=120).print(arrays(given.points, given.checked))
        return
    repeats = given.repeats
    table = Table(
        "call", "estimate [us]", "/ cost", "every field [us]", "new length [us]", "least time [ms]", "/ least traffic"
    )
    for mask in ("full", "causal"):
        for direction in ("forward", "backward"):
            w = iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask=mask, direction=direction)
            tiles = TILES if direction == "forward" else {"block_q": 64, "block_kv": 128, "warps": 8}
            estimate = timed(lambda w=w, tiles=tiles: iomodel.estimate("flash2", w, GPU, tiles), repeats)
            every = timed(lambda w=w, tiles=tiles: read(iomodel.estimate("flash2", w, GPU, tiles)), repeats)
            others = iter(
                [
                    iomodel.Attention(heads=32, q_len=8192 - n, head_dim=128, mask=mask, direction=direction)
                    for n in range(1, repeats + 2)
                ]
            )
            new = timed(
                lambda others=others, tiles=tiles: iomodel.estimate("flash2", next(others), GPU, tiles), repeats
            )
            cost = timed(lambda w=w, tiles=tiles: iomodel.cost("flash2", w, tiles), repeats)
            fastest = timed(lambda w=w: iomodel.solve("flash2", w, GPU, objective="time"), max(3, repeats // 5))
            least = timed(lambda w=w: iomodel.solve("flash2", w, GPU, objective="traffic"), max(3, repeats // 5))
            table.add_row(
                f"flash2 {direction}, {mask}",
                f"{estimate * 1e6:,.0f}",
                f"{estimate / cost:,.1f}",
                f"{every * 1e6:,.0f}",
                f"{new * 1e6:,.0f}",
                f"{fastest * 1e3:,.1f}",
                f"{fastest / least:,.1f}",
            )
    for label, name, device, w in SOLVED:
        fastest = timed(lambda name=name, w=w, device=device: iomodel.solve(name, w, device), max(3, repeats // 5))
        tiles = {"block_q": 64, "block_kv": 64}
        cost = timed(lambda name=name, w=w, tiles=tiles: iomodel.cost(name, w, tiles), repeats)
        whole = timed(lambda name=name, w=w, device=device: iomodel.solve(name, w, device).certificate, 5)
        shown = f"{fastest * 1e3:,.1f} ({whole * 1e3:,.1f} with certificate)"
        table.add_row(f"solve {name}, {label}", *4 * ("",), shown, f"{fastest / cost:,.0f} costs")
    Console().print(table)
    Console(width=120).print(arrays(given.points, given.checked))


def read(found: iomodel.Estimate) -> list[object]:
    """Read every field of an estimate."""
    return [getattr(found, field.name) for field in fields(found)]


def arrays(points: int, checked: int) -> Table:
    """Rates of times at arrays of calls, beside a loop of estimates and beside the counts of the same array."""
    table = Table("estimate_array", "points", "points/s", "/ a loop of estimate", "/ cost_array, one quantity", "equal")
    draw = np.random.default_rng(0)
    lengths, batches = draw.integers(1, 32_769, points), draw.integers(1, 65, points)
    call = {"q_len": lengths, "batch": batches, "heads": 16, "head_dim": 128}
    tiles = {"block_q": 128, "block_kv": 64}
    launch = {**tiles, "warps": 4, "stages": 1}
    documents = iomodel.Documents([100, 3000, 5000, 92])
    sizes = {"block_q": draw.choice([64, 128], points), "block_kv": draw.choice([32, 64], points)}
    layers = {"rows": lengths, "in_features": draw.choice([4096, 8192], points), "out_features": 4096}
    decode = {**call, "q_len": 1, "kv_len": lengths, "heads": 32, "kv_heads": 8}
    a100, h100 = "a100-sxm4-80gb", "h100-sxm5"
    rows = [
        ("full", "flash2", a100, 1, {**call, **launch, "mask": "full"}),
        ("causal", "flash2", a100, 1, {**call, **launch, "mask": "causal"}),
        ("causal, launch searched", "flash2", a100, 4, {**call, **tiles, "mask": "causal"}),
        ("causal, both directions", "flash2", a100, 8, {**call, **tiles, "mask": "causal", "direction": "both"}),
        ("documents", "flash2", a100, 8, {**call, **sizes, "q_len": 8192, "mask": documents}),
        ("causal, no tiles", "flash2", a100, 4, {**call, "mask": "causal"}),
        ("grouped causal, no tiles", "flash3", h100, 8, {**call, "kv_heads": 4, "mask": "causal"}),
        ("decoding, no tiles", "split_kv", h100, 100, decode),
        ("linear layers", "gemm", h100, 2, {**layers, "block_m": 128, "block_n": 128, "block_k": 64}),
        ("linear layers, no tiles", "gemm", h100, 20, layers),
    ]
    for label, name, device, fewer, asked in rows:
        size = points // fewer
        arguments = {key: value[:size] if isinstance(value, np.ndarray) else value for key, value in asked.items()}
        iomodel.estimate_array(
            name, None, device, **{k: v[:2] if isinstance(v, np.ndarray) else v for k, v in asked.items()}
        )
        start = time.process_time()
        found = iomodel.estimate_array(name, None, device, **arguments)
        rate = size / (time.process_time() - start)
        counts = iomodel.cost_array(name, **found.costs.arguments)
        start = time.process_time()
        assert counts.hbm_bytes.shape == (size,)
        counted = size / (time.process_time() - start)
        number = min(checked, size)
        some = [found[place] for place in range(3)]  # warm
        start = time.process_time()
        some = [found[place].seconds for place in range(number)]
        looped = number / (time.process_time() - start)
        equal = np.isclose(some, found.seconds[:number], rtol=1e-9).sum()
        table.add_row(
            label, f"{size:,}", f"{rate:,.0f}", f"{rate / looped:,.0f}", f"{rate / counted:,.2f}",
            f"{equal:,} of {number:,}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
