"""Ten million attention calls, at once and in ten parts: `cost_array` against the same formulas written by hand.

    python benchmarks/arrays.py [--calls 10000000] [--repeats 5]

The traffic of flash2 [B] on as many random calls, with every argument an array and with lengths alone as arrays, full
and causal. Beside the engine that `cost_array` chooses, the same numbers from NumPy, from one compiled loop (numba;
left out where it is not installed) and from a plain NumPy expression. All on one thread and one core, in CPU time. At
once: rates are the best of some runs taken in turn. In ten parts: the first ten calls of the process with this formula,
any by NumPy before it is compiled included; compilation apart, which is what the slowest of these calls takes beyond
the same call later. What travels is the ratio. How time and memory grow with an array is the matter of array_growth.py.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import iomodel

os.environ["NUMBA_NUM_THREADS"] = "1"
try:
    import numba
except ImportError:
    numba = None

Arguments = dict[str, Any]
Way = Callable[[Arguments], Any]

# The loops count for bf16, and key/value heads count for nothing in this traffic.


def one_core() -> str:
    """Keep to one core, where the system lets us."""
    if not hasattr(os, "sched_setaffinity"):
        return "one thread"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"core {core} alone"


def random_calls(number: int, every: bool) -> Arguments:
    """Random calls, hardly two alike; only lengths differ unless `every` argument is an array."""
    draw = np.random.default_rng(0)
    q_len = draw.integers(1, 2**17, number)
    calls: Arguments = {"q_len": q_len, "kv_len": draw.integers(q_len, 2**18)}
    if not every:
        return {**calls, "batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128, "block_q": 128, "block_kv": 64}
    kv_heads = draw.integers(1, 17, number)
    tiles = np.arange(16, 257, 16)
    return {
        **calls,
        "batch": draw.integers(1, 257, number),
        "heads": kv_heads * draw.integers(1, 9, number),
        "kv_heads": kv_heads,
        "head_dim": draw.choice([64, 80, 96, 128, 192, 256], number),
        "block_q": draw.choice(tiles, number),
        "block_kv": draw.choice(tiles, number),
    }


def in_numpy(batch: Any, heads: Any, q_len: Any, kv_len: Any, head_dim: Any, block_q: Any) -> Any:
    """The full mask as a NumPy expression."""
    trips = -(-q_len // block_q)
    return batch * heads * (2 * (2 * q_len * head_dim + 2 * kv_len * head_dim * trips) + 4 * q_len)


def full(batch, heads, q_len, kv_len, head_dim, block_q, out):  # type: ignore[no-untyped-def]
    """One loop over the calls, everything fused."""
    for i in range(out.size):
        trips = -(-q_len[i] // block_q[i])
        moved = 2 * q_len[i] * head_dim[i] + 2 * kv_len[i] * head_dim[i] * trips
        out[i] = batch[i] * heads[i] * (2 * moved + 4 * q_len[i])


def full_lengths(batch, heads, q_len, kv_len, head_dim, block_q, out):  # type: ignore[no-untyped-def]
    """The same where only lengths are arrays."""
    for i in range(out.size):
        trips = -(-q_len[i] // block_q)
        out[i] = batch * heads * (2 * (2 * q_len[i] * head_dim + 2 * kv_len[i] * head_dim * trips) + 4 * q_len[i])


def streamed(q_len, kv_len, block_q, block_kv):  # type: ignore[no-untyped-def]
    """Keys that the query tiles stream under a causal mask, kv_len >= q_len, in closed form.

    Tile i streams up to key (i + 1) block_q + off, in whole tiles: a sum of floors, taken as Euclid's algorithm runs.
    """
    off = kv_len - q_len
    tiles, key_tiles = -(-q_len // block_q), -(-kv_len // block_kv)
    partial = max(0, (key_tiles - 1) * block_kv - off) // block_q  # tiles that stop before the last key tile
    partial = min(partial, tiles)
    n, m, a, b = partial, block_kv, block_q, block_q + off + block_kv - 1
    total = 0
    while n > 0:
        total += (a // m) * (n * (n - 1) // 2) + (b // m) * n
        a, b = a % m, b % m
        top = a * n + b
        if top < m:
            break
        n, b, m, a = top // m, top % m, a, m
    return total * block_kv + (tiles - partial) * kv_len


def causal(batch, heads, q_len, kv_len, head_dim, block_q, block_kv, out):  # type: ignore[no-untyped-def]
    """One loop over the calls, and a sum of floors in each."""
    for i in range(out.size):
        seen = streamed(q_len[i], kv_len[i], block_q[i], block_kv[i])
        out[i] = batch[i] * heads[i] * (2 * head_dim[i] * (2 * q_len[i] + 2 * seen) + 4 * q_len[i])


def causal_lengths(batch, heads, q_len, kv_len, head_dim, block_q, block_kv, out):  # type: ignore[no-untyped-def]
    """The same where only lengths are arrays."""
    for i in range(out.size):
        seen = streamed(q_len[i], kv_len[i], block_q, block_kv)
        out[i] = batch * heads * (2 * head_dim * (2 * q_len[i] + 2 * seen) + 4 * q_len[i])


def causal_tiles(batch, heads, q_len, kv_len, head_dim, block_q, block_kv, out):  # type: ignore[no-untyped-def]
    """What one would write first: a loop over the query tiles of each call."""
    for i in range(out.size):
        seen, last = 0, block_q[i] + kv_len[i] - q_len[i]
        for _ in range(-(-q_len[i] // block_q[i])):
            seen += min(kv_len[i], -(-last // block_kv[i]) * block_kv[i])
            last = min(last + block_q[i], kv_len[i])
        out[i] = batch[i] * heads[i] * (2 * head_dim[i] * (2 * q_len[i] + 2 * seen) + 4 * q_len[i])


def named(way: Callable[..., Any], calls: Arguments) -> list[Any]:
    """The arguments that a way takes."""
    return [calls[name] for name in signature(way).parameters if name != "out"]


def compiled(loop: Callable[..., None]) -> Way:
    """A loop as machine code, that takes the calls and returns the traffic."""
    globals()["streamed"] = numba.njit(error_model="numpy")(getattr(streamed, "py_func", streamed))
    fast = numba.njit(error_model="numpy")(loop)

    def run(calls: Arguments) -> Any:
        out = np.empty(len(calls["q_len"]), dtype=np.int64)
        fast(*named(loop, calls), out)
        return out

    return run


def asked(mask: str, engine: str) -> Way:
    """Our way, with an engine."""
    return lambda calls: iomodel.cost_array("flash2", mask=mask, engine=engine, **calls).hbm_bytes  # type: ignore[arg-type]


def seconds(way: Way, calls: Arguments) -> tuple[float, Any]:
    """CPU seconds of one run, and its result."""
    start = time.process_time()
    found = way(calls)
    return time.process_time() - start, found


def rates(ways: dict[str, Way], calls: Arguments, repeats: int) -> dict[str, float]:
    """Calls a second by each way, the best of some runs taken in turn, all results equal."""
    best = dict.fromkeys(ways, 0.0)
    expected = None
    for _ in range(repeats):
        for name, way in ways.items():
            taken, found = seconds(way, calls)
            best[name] = max(best[name], len(calls["q_len"]) / taken)
            expected = found if expected is None else expected
            assert found.dtype == np.int64
            assert np.array_equal(found, expected), name
            del found
    return best


def parts(calls: Arguments, number: int = 10) -> list[Arguments]:
    """Cut calls into as many equal parts."""
    size = len(calls["q_len"]) // number
    starts = range(0, number * size, size)
    return [{name: v[i : i + size].copy() if np.ndim(v) else v for name, v in calls.items()} for i in starts]


def in_parts(way: Way, calls: Arguments) -> tuple[float, float]:
    """Calls a second of the first calls of a process, compilation apart, and the seconds of the compilation."""
    way({name: value[:10] if np.ndim(value) else value for name, value in calls.items()})  # loads what is stored
    first = [seconds(way, part)[0] for part in parts(calls)]
    slowest = max(first)
    again = min(seconds(way, parts(calls)[first.index(slowest)])[0] for _ in range(3))
    return len(calls["q_len"]) / (sum(first) - slowest + again), slowest - again


def compare(number: int, repeats: int, console: Console) -> None:
    """One table: ours and theirs, by mask and by what is an array."""
    table = Table(title=f"traffic of flash2 on {number:,} calls, {one_core()}")
    for column in ("mask", "arrays", "way", "in ten calls/s", "ours / it", "at once/s", "ours / it", "compiled [s]"):
        table.add_column(column, justify="left" if column in ("mask", "arrays", "way") else "right")
    if numba is not None:  # which takes half a second before its first loop
        compiled(full_lengths)(random_calls(10, every=False))
    loops = {("full", True): full, ("full", False): full_lengths}
    loops |= {("causal", True): causal, ("causal", False): causal_lengths}
    for (mask, every), loop in loops.items():
        calls = random_calls(number, every)
        ways: dict[str, Way] = {"cost_array": asked(mask, "auto"), "engine numpy": asked(mask, "numpy")}
        if numba is not None:
            ways["compiled loop"] = compiled(loop)
        if mask == "full":
            ways["NumPy"] = lambda calls: in_numpy(*named(in_numpy, calls))
        ten = {name: in_parts(way, calls) for name, way in ways.items()}
        once = rates(ways, calls, repeats)
        if mask == "causal" and every and numba is not None:  # too slow for all of them
            few = {name: value[: max(1, number // 100)] for name, value in calls.items()}
            tiles = compiled(causal_tiles)
            tiles(few)
            once["compiled loop over tiles"] = rates({"tiles": tiles}, few, repeats)["tiles"]
        for name, rate in once.items():
            cells = [f"{ten[name][0]:.3g}", f"{ten['cost_array'][0] / ten[name][0]:.2f}"] if name in ten else ["", ""]
            cells += [f"{rate:.3g}", f"{once['cost_array'] / rate:.2f}"]
            made = f"{ten[name][1]:.2f}" if name == "cost_array" else ""
            table.add_row(mask, "all eight" if every else "lengths", name, *cells, made)
        table.add_section()
    console.print(table)
    if numba is None:
        console.print("numba is not installed: no compiled loop; pip install numba")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10**7, help="calls in an array (default ten million)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the best counts (default 5)")
    told = parser.parse_args()
    compare(told.calls, told.repeats, Console(width=110))


if __name__ == "__main__":
    main()
