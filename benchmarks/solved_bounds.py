"""Solve random calls at random memories, and compare the traffic with every bound that holds for it.

    python -m benchmarks.solved_bounds 20000 --seed 1

Calls are drawn in groups of one algorithm, direction, mask, type and set of features and options, whose formulas are
compiled once; shapes and memories differ within a group, half of the memories in bytes. A line of JSON for each bound
above the traffic, then the counts by direction and mask and by feature, and the least traffic over each bound.
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
from iomodel.algorithms import algorithm, exact_algorithms
from iomodel.nests.features import FEATURES
from iomodel.testing.drawn_calls import SCALES

GROUP = 400
"""Calls of one kind that follow each other; of masks given by data, whose tiles are counted one by one, an eighth."""
BY_DATA = ("documents", "blocks")


def fields_of(features: list[str], rng: random.Random) -> dict[str, Any]:
    """Return the fields of a call that set its features."""
    fields: dict[str, Any] = {name: True for name in ("bias", "alibi", "sinks", "latent") if name in features}
    numbers = {"softcap": 30.0, "dropout": 0.5, "paged": rng.choice([16, 64])}
    fields |= {"page_size" if name == "paged" else name: numbers[name] for name in features if name in numbers}
    scales = [{"kv_scales": name.removesuffix("_scales")} for name in SCALES if name in features]
    if "kv_dtype" in features or scales:
        fields["kv_dtype"] = rng.choice(["int8", "fp8"])
    return fields | (scales[0] if scales else {})


def mask_of(kind: str, queries: int, keys: int, rng: random.Random) -> Any:
    """Draw the numbers of a mask of a kind."""
    if kind == "window":
        left, right = (rng.choice([0, 7, rng.randint(0, keys)]) for _ in range(2))
        return iomodel.Window(left=left, right=right)
    if kind == "documents":
        cuts = sorted(rng.sample(range(1, keys), min(keys - 1, rng.randint(0, 4))))
        return iomodel.Documents([end - start for start, end in zip([0, *cuts], [*cuts, keys], strict=True)])
    if kind == "blocks":
        rows, columns = -(-queries // 16), -(-keys // 16)
        return iomodel.BlockMask([[rng.random() < 0.5 for _ in range(columns)] for _ in range(rows)], 16, 16)
    return kind


def problems(rng: random.Random) -> Iterator[tuple[str, iomodel.Attention, dict[str, Any], dict[str, int]]]:
    """Draw algorithms, calls, options and memories without end."""
    found = [(name, algorithm(name)) for name in sorted(exact_algorithms())]
    ways = [(name, way) for name, one in found for way in one.directions if one.answers == "attention"]
    while True:
        name, way = rng.choice(ways)
        one = algorithm(name)
        lacked = one.without.get(way, frozenset())
        known = sorted(set(FEATURES) - lacked)
        fields = fields_of(rng.sample(known, min(len(known), rng.choice([0, 0, 1, 2]))), rng)
        kind = rng.choice(["full", "full", "causal", "causal", "window", "window", "documents", "blocks"])
        switches = [option for option, value in one.takes(way).items() if isinstance(value, bool)]
        options: dict[str, Any] = {option: rng.random() < 0.5 for option in switches}
        options |= {"packed": True} if rng.random() < 0.3 else {}
        dtype = rng.choice(["bf16", "bf16", "fp32"])
        for _ in range(GROUP // 8 if kind in BY_DATA else GROUP):
            kv_heads = 1 if "latent" in fields else rng.choice([1, 1, 2])
            longest = 100 if kind in BY_DATA else 3000
            queries, keys = (int(longest ** rng.random()) for _ in range(2))
            keys = queries if kind == "documents" else keys
            width, values = (int(2 ** rng.uniform(0, 7)) for _ in range(2))
            rest = (width + values, values) if "latent" in fields else (width, values)
            try:
                w = iomodel.Attention(
                    **fields, batch=rng.choice([1, 1, 3]), heads=kv_heads * rng.choice([1, 1, 4]), kv_heads=kv_heads,
                    q_len=queries, kv_len=keys, head_dim=rest[0], value_dim=rest[1], dtype=dtype,
                    mask=mask_of(kind, queries, keys, rng), direction=way,
                )  # fmt: skip
            except iomodel.InputError:
                continue
            most = 4 * (queries + keys) * sum(rest)
            size = int(8 * max(2, most / 8) ** rng.random())
            yield name, w, options, {"sram_elements": size} if rng.random() < 0.5 else {"sram_bytes": 2 * size}


def main() -> int:
    """Run a campaign; exit with 1 where a bound is above the traffic of a schedule of its class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    ratios: dict[str, float] = {}
    start, drawn = time.monotonic(), problems(random.Random(asked.seed))
    while counts["solved"] < asked.problems:
        name, w, options, memory = next(drawn)
        try:
            cost = iomodel.solve(name, w, alignment=1, **memory, **options).cost
        except iomodel.IOModelError:
            counts["refused"] += 1
            continue
        mask = w.mask if isinstance(w.mask, str) else type(w.mask).__name__
        counts.update(["solved", f"{w.direction}, {mask}", *w.features])
        for bound in iomodel.lower_bounds(w, algorithm=name, **memory).values():
            for moved, least in ((cost.hbm_elements, bound.elements), (cost.hbm_bytes, bound.bytes)):
                ratios[bound.name] = min(ratios.get(bound.name, moved / least), moved / least)
                if least > moved:
                    counts["below"] += 1
                    print(json.dumps([name, w.to_dict(), options, memory, bound.name, least, moved]), flush=True)
        if counts["solved"] % 200 == 0:
            print(f"{dict(counts)}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{dict(counts)}, {time.monotonic() - start:.0f} s")
    print({name: round(ratio, 4) for name, ratio in sorted(ratios.items())})
    return int(counts["below"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
