"""Solve random calls on random devices, and check the tiles of each answer without any other argument.

    python -m benchmarks.checked_tiles 10000 --seed 1
    python -m benchmarks.checked_tiles 100000 --against-others --seed 1

Calls are drawn in groups of one algorithm, direction, mask, type and width, whose formulas are compiled once; shapes,
devices and kernels differ within a group. A line of JSON for each failure, then the counts of calls that fit, were
refused (nothing runs them, or no tile fits) and failed.

With --against-others, so many tiles that fit are drawn without the candidates of `solve`, on each device in turn, for
all kinds of workloads: a line for each question in which one of them is better than the answer beyond a tie, then the
counts of tiles by quantity, and of the questions that are beaten by algorithm and kernels.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import iomodel
from iomodel.algorithms import algorithm
from tests.support.other_tiles import drawn as against_others

GROUP = 40
"""Calls of one kind that follow each other."""


def kinds() -> list[tuple[str, str]]:
    """List the algorithms that answer attention and choose tiles, each with its directions."""
    known = [(name, algorithm(name)) for name in iomodel.list_algorithms()]
    return [(name, way) for name, one in known if one.answers == "attention" for way in one.directions]


def calls(rng: random.Random) -> Iterator[tuple[str, str, iomodel.Attention, dict[str, Any]]]:
    """Draw algorithms, devices, calls and kernels without end."""
    ways, devices = kinds(), iomodel.list_hardware()
    launched = [way for way in ways if algorithm(way[0]).implementations]
    while True:
        name, way = rng.choice(launched if rng.random() < 0.8 else ways)
        width = rng.choice([64, 64, 80, 96, 128, 128, 128, 192, 256])
        kind: dict[str, Any] = {
            "head_dim": width,
            "value_dim": 128 if width == 192 and rng.random() < 0.5 else width,
            "mask": rng.choice(["full", "causal", iomodel.Window(left=rng.choice([127, 1023, 4095]), right=0)]),
            "dtype": rng.choice(["bf16", "bf16", "fp16", "fp8"]),
            "direction": way,
        }
        for _ in range(GROUP):
            heads, queries = rng.choice([1, 2, 8]), rng.choice([1, rng.randint(2, 600), rng.randint(600, 16384)])
            shape = {
                "batch": rng.choice([1, 3, 16]),
                "kv_heads": heads,
                "heads": heads * rng.choice([1, 4, 5]),
                "q_len": queries,
                "kv_len": queries + rng.choice([0, rng.randint(0, 16384)]),
            }
            call = iomodel.Attention(**kind, **shape)
            for _ in range(12):  # most devices have no kernel of most algorithms
                device = rng.choice(devices)
                listed = [each for each in iomodel.list_implementations(name, device, call) if each != "textbook"]
                if listed:
                    break
            kernels = {"implementation": rng.choice(listed)} if listed and rng.random() < 0.3 else {}
            yield name, device, call, kernels


def outcome(name: str, device: str, call: iomodel.Attention, kernels: dict[str, Any]) -> str:
    """Solve a call and check its tiles: fits, refused, or what is wrong."""
    try:
        solution = iomodel.solve(name, call, device, **kernels)
    except iomodel.IOModelError:
        return "refused"
    try:
        answer = iomodel.check(name, call, device, solution.tiles)
    except iomodel.IOModelError as error:
        return f"{solution.implementation}, {dict(solution.tiles)}: {error}"
    return "fits" if answer.fits else f"{solution.implementation}, {dict(solution.tiles)}: binding {answer.binding}"


def beaten(tiles: int, seed: int) -> int:
    """Draw other tiles until so many fit; exit with 1 where one of them beats an answer."""
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    number, start = 0, time.monotonic()
    while counts["fit"] < tiles:
        found = against_others(seed, number)
        number += 1
        if found is None:
            counts["refused"] += 1
            continue
        counts.update({"questions": 1, "drawn": found.tried, "fit": found.fitting, found.quantity: found.fitting})
        counts.update({f"questions of {found.quantity}": 1})
        if not found.holds:
            lost[f"{found.question[0]}, {found.implementation}"] += 1
            told = [found.device, *found.question, found.implementation, found.chosen, found.other]
            print(
                f"question {number - 1}: {found.ratio:.4f} times the {found.quantity}; {json.dumps(told)}", flush=True
            )
        if number % 500 == 0:
            print(f"{dict(counts)}, {sum(lost.values())} beaten, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{dict(counts)}, {sum(lost.values())} beaten: {dict(lost)}, {time.monotonic() - start:.0f} s")
    return int(bool(lost))


def main() -> int:
    """Run a campaign; exit with 1 where a tile does not fit, or is beaten."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=int, help="how many calls, or other tiles")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against-others", action="store_true", help="compare the answers with other tiles")
    asked = parser.parse_args()
    if asked.against_others:
        return beaten(asked.calls, asked.seed)
    counts: Counter[str] = Counter()
    start, drawn = time.monotonic(), calls(random.Random(asked.seed))
    while counts["fits"] + counts["failed"] < asked.calls:
        name, device, call, kernels = next(drawn)
        found = outcome(name, device, call, kernels)
        counts[found if found in ("fits", "refused") else "failed"] += 1
        if found not in ("fits", "refused"):
            print(json.dumps([name, device, call.to_dict(), kernels, found]), flush=True)
        if counts.total() % 200 == 0:
            print(f"{dict(counts)}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{dict(counts)}, {time.monotonic() - start:.0f} s")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
