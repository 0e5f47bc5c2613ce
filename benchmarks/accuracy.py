"""Hold the time model against published measurements: the error of each curve, and the order of kernels.

    python benchmarks/accuracy.py [--held-out] [--defaults] [--excluded]
    python benchmarks/accuracy.py --machines [--cudnn | --gathered | --inference | --paged | --latents | --served]
                                  [--judging | --each]

The rows are the calibration rows of tests/measured/published.csv, which served to choose the parameters; --held-out
takes tests/measured/published_held_out.csv, which did not. By default every kernel is timed at the tiles that it ships
and with the options of its framework; --defaults names the kernel and leaves the rest at its defaults. Every row of a
curve counts; those left out are listed with the reason.

--machines takes tests/measured/published_2.csv: nine GPUs, asked as a newcomer asks (the algorithm, the call and the
device alone) and as told (its page size, determinism and implementation). Its working half may choose parameters; the
judging half is shown with --judging alone. With --cudnn the rows are those of published_3.csv, of cuDNN on a GB200, a
GB300 and an H200; with --gathered those of published_4.csv and published_5.csv, of public threads and repositories;
with --inference those of published_6.csv, of decoding and prefills in cuDNN and the open engines of its frontend;
with --paged those of published_7.csv, of decoding with pages in AITER on an MI350X; with --latents those of
published_8.csv, of decoding on latents (MLA) in AITER; with --served those of published_9.csv, of prefills and decoding
in vLLM, SGLang and TensorRT-LLM.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from iomodel.algorithms import algorithm  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.planning.engines import ENGINES  # noqa: E402
from iomodel.planning.step.setting import rotation_seconds  # noqa: E402
from iomodel.timing.error_interval import ANY, Place, place_of  # noqa: E402
from iomodel.timing.kernel_time import DEPENDENT  # noqa: E402
from iomodel.timing.parameters import DEFAULT, Parameters  # noqa: E402
from iomodel.workloads.elementwise import Elementwise  # noqa: E402
from tests.shipped import table  # noqa: E402

MEASURED = ROOT / "tests" / "measured"
REPEATED = replace(DEFAULT, dirty_l2=0, warm_l2=1.01)
"""Calls replayed on the same tensors: the L2 holds what fits, and nothing of others. Keys of 134.2 MB, with Q and O
0.02 % more than the L2 of an RTX PRO 6000, are read from there (working rows of published_9.csv)."""
AUTOGRAD = replace(DEFAULT, host_launch=3.5e-5)
"""Kernels called through an autograd framework: what it takes to launch one shows at short lengths."""
FRAMEWORK = {"pytorch-eager", "megatron"}
"""Implementations of standard attention that the operations of eager PyTorch stand for."""
FUSED = {"flash-attn-1", "flash-attn-2", "flash-attn-3"}


@dataclass(frozen=True)
class Judged:
    """A published time beside a predicted one [s]."""

    row: dict[str, str]
    predicted: float
    floor: float = 0.0

    @property
    def measured(self) -> float:
        return float(self.row["seconds"])

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def rows(name: str) -> list[dict[str, str]]:
    with (MEASURED / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def left_out(row: dict[str, str]) -> str | None:
    """Why a row is not judged: by the file, or because nothing here speaks of it."""
    if row["excluded"]:
        return row["excluded"]
    if row["implementation"] in FRAMEWORK and row["padding"] == "yes":
        return "what kernels the framework runs for a padding mask is not published"
    directions = ("forward", "backward") if row["direction"] == "both" else (row["direction"],)
    if any(direction not in algorithm(row["algorithm"]).directions for direction in directions):
        return f"{row['algorithm']} declares no {row['direction']} pass"
    if row["mask"].startswith("window"):
        return "windows are not judged"
    return None


@cache
def shipped(name: str) -> list[dict[str, str]]:
    return table(name)


def tiles(row: dict[str, str], direction: str) -> dict[str, int]:
    """The tiles that the kernel of a row ships."""
    name, head_dim, dropout = declared(row), row["head_dim"], row["dropout"]
    if name == "eager":
        return {}
    if name == "flash3" and direction == "backward":
        variant = "causal" if row["mask"] == "causal" else "plain"
        found = [
            r for r in shipped("flash-attention-3-2024-backward")
            if r["head_dim"] == head_dim and any(word in r["variant"].split() for word in (variant, "any"))
        ]  # fmt: skip
        return {key: int(found[0][key]) for key in ("block_q", "block_kv", "warps", "stages")}
    if name == "flash3":
        variant = "causal" if row["mask"] == "causal" else "plain"
        dtype = "fp8" if row["dtype"] == "fp8" else "bf16"
        found = [
            r for r in shipped("flash-attention-3-2024")
            if (r["head_dim"], r["value_dim"], r["dtype"]) == (head_dim, row["value_dim"], dtype)
            and any(word in r["variant"].split() for word in (variant, "any"))
        ]  # fmt: skip
        return {key: int(found[0][key]) for key in ("block_q", "block_kv", "warps")}
    architecture = "sm_90" if "h100" in row["device"] else "sm_80"
    found = [
        r
        for r in shipped(how(row)[1]["implementation"])
        if (r["algorithm"], r["direction"], r["architecture"], r["head_dim"])
        == (name, direction, architecture, head_dim)
        and r["mask"] in ("any", row["mask"])
        and r["dropout"] in ("any", dropout)
    ]
    (one,) = found[:1]
    taken = {key: int(one[key]) for key in ("block_q", "block_kv", "warps", "stages") if key in one}
    if name == "flash1" and int(row["kv_len"]) <= 128:
        taken["block_kv"] = 128
    return taken


def how(row: dict[str, str]) -> tuple[Parameters, dict[str, Any]]:
    """What is peculiar to an implementation: launches through autograd, a split of the sequence, an order of blocks."""
    if row["algorithm"] == "flash1":
        first = "2205.14135" in row["source"]  # the kernels of 2022, timed through autograd
        kernels = "flash-attention-1" if first else "flash-attention-1-2023"
        return (AUTOGRAD if first else DEFAULT), {"implementation": kernels}
    if row["algorithm"] == "flash3":  # the kernels of the paper start blocks in the order of the grid
        return DEFAULT, {"implementation": "flash-attention-3-2024"}
    if row["algorithm"] == "flash2":
        return DEFAULT, {"implementation": "flash-attention-2"}
    return DEFAULT, {}


def options(row: dict[str, str]) -> dict[str, bool]:
    return {"dropout_pass": row["dropout"] == "yes"} if declared(row) == "eager" else {}


def declared(row: dict[str, str]) -> str:
    """Return the algorithm of a row: that of a framework is its operations."""
    return "eager" if row["implementation"] in FRAMEWORK else row["algorithm"]


def predicted(row: dict[str, str], defaults: bool = False) -> tuple[float, float]:
    """Predict the time of a row and its lower bound [s], at the shipped tiles or with everything at its defaults."""
    directions = ("forward", "backward") if row["direction"] == "both" else (row["direction"],)
    total = floor = 0.0
    for direction in directions:
        parameters, more = how(row)
        drops = row["dropout"] == "yes"
        call = iomodel.Attention(
            **{
                name: int(row[name])
                for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim")
            },
            dtype="bf16" if row["dtype"] == "unknown" else row["dtype"],
            mask=row["mask"],
            direction=direction,
            dropout=0.1 if drops else 0.0,
        )
        if defaults:
            found = iomodel.estimate(declared(row), call, row["device"], **more)
        else:
            found = iomodel.estimate(
                declared(row), call, row["device"], tiles(row, direction), parameters=parameters, **more,
                **options(row),
            )  # fmt: skip
        total, floor = total + found.seconds, floor + found.floor
    return total, floor


def judged(name: str, defaults: bool = False) -> Iterator[Judged]:
    for row in rows(name):
        if left_out(row) is None:
            yield Judged(row, *predicted(row, defaults))


def summary(found: list[Judged]) -> str:
    errors = np.abs([one.error for one in found])
    return f"{len(found)} rows, median {np.median(errors):.1%}, 90th percentile {np.quantile(errors, 0.9):.1%}"


def ideal(row: dict[str, str]) -> float:
    """Time the FLOPs of a row at the matrix peak; a causal mask halves them, as in the papers [s]."""
    sizes = {name: int(row[name]) for name in ("batch", "heads", "q_len", "kv_len", "head_dim", "value_dim")}
    passes = {"forward": 1.0, "backward": 2.5, "both": 3.5}[row["direction"]] * (0.5 if row["mask"] == "causal" else 1)
    flops = 2 * sizes["batch"] * sizes["heads"] * sizes["q_len"] * sizes["kv_len"]
    flops *= sizes["head_dim"] + sizes["value_dim"]
    peak = iomodel.hardware(row["device"]).quantities[
        f"compute.peak.{'bf16' if row['dtype'] == 'unknown' else row['dtype']}"
    ]
    return passes * flops / float(peak.value)


def guesses(found: list[Judged]) -> dict[str, list[Judged]]:
    """Make two guesses beside the model: 60 % of the peak, and one share of it per kernel and pass."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("published.csv"):
        if left_out(row) is None:
            shares[row["implementation"], row["direction"]].append(ideal(row) / float(row["seconds"]))
    usual = {key: float(np.median(values)) for key, values in shares.items()}
    every = float(np.median([value for values in shares.values() for value in values]))
    kernels = [(one.row, (one.row["implementation"], one.row["direction"])) for one in found]
    return {
        "60 % of the peak": [Judged(row, ideal(row) / 0.6) for row, _ in kernels],
        "one share of the peak per kernel and pass": [
            Judged(row, ideal(row) / usual.get(key, every)) for row, key in kernels
        ],
    }


def overview(splits: dict[str, list[Judged]]) -> Iterator[str]:
    """Tabulate median and 90th percentile of the errors by implementation, beside those of the guesses."""
    columns = ["time model", *guesses([])]
    yield f"| rows | kernels | number | {' | '.join(columns)} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(columns)}"
    for split, found in splits.items():
        every = {"time model": found, **guesses(found)}
        for kernel in [None, *dict.fromkeys(one.row["implementation"] for one in found)]:
            errors = [
                np.abs([one.error for one in part if kernel in (None, one.row["implementation"])])
                for part in every.values()
            ]
            cells = [f"{np.median(part):.1%}, {np.quantile(part, 0.9):.1%}".replace("%", "\u00a0%") for part in errors]
            yield f"| {split} | {kernel or 'all'} | {len(errors[0])} | {' | '.join(cells)} |"


def order(found: list[Judged]) -> tuple[int, int]:
    """Pairs of kernels at one (device, direction, mask, shape) that differ by more than a tenth: ranked right, all."""
    groups: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in found:
        keys = ("device", "direction", "mask", "head_dim", "q_len", "batch", "heads", "dropout", "padding", "dtype")
        groups[tuple(one.row[key] for key in keys)].append(one)
    right = every = 0
    for group in groups.values():
        for a, b in combinations(group, 2):
            if a.row["implementation"] != b.row["implementation"] and not 1 / 1.1 <= a.measured / b.measured <= 1.1:
                every += 1
                right += (a.predicted < b.predicted) == (a.measured < b.measured)
    return right, every


def beyond(found: list[Judged], limit: float = 0.2) -> str:
    """Count the rows beyond an error by implementation and device."""
    worse = [one for one in found if abs(one.error) > limit]
    groups = Counter(f"{one.row['implementation']} on {one.row['device']}, {one.row['direction']}" for one in worse)
    listed = "; ".join(f"{count} {group}" for group, count in groups.most_common())
    return f"beyond {limit:.0%}: {len(worse)} rows" + f" ({listed})" * bool(worse)


def report(name: str, excluded: bool, defaults: bool = False) -> Iterator[str]:
    found = list(judged(name, defaults))
    curves: dict[str, list[Judged]] = defaultdict(list)
    for one in found:
        curves[one.row["curve"]].append(one)
    yield f"| curve ({name}) | rows | median error | worst error |"
    yield "| --- | ---: | ---: | ---: |"
    for curve, ones in curves.items():
        errors = [one.error for one in ones]
        worst = max(errors, key=abs)
        yield f"| {curve} | {len(ones)} | {np.median(errors):+.0%} | {worst:+.0%} |"
    yield ""
    yield f"all: {summary(found)}"
    yield f"fused kernels: {summary([one for one in found if one.row['implementation'] in FUSED])}"
    yield f"too fast: {np.mean([one.error < 0 for one in found]):.0%} of the rows"
    yield beyond(found)
    yield from (f"guess, {name}: {summary(part)}" for name, part in guesses(found).items())
    for key in ("implementation", "device", "direction"):
        for value in dict.fromkeys(one.row[key] for one in found):
            yield f"{key} {value}: {summary([one for one in found if one.row[key] == value])}"
    right, every = order(found)
    yield f"order of kernels: {right} of {every} pairs that differ by more than a tenth ({right / max(1, every):.1%})"
    reasons = Counter(reason for row in rows(name) if (reason := left_out(row)) is not None)
    yield f"left out: {sum(reasons.values())} rows"
    if excluded:
        yield from (f"  {count:4} {reason}" for reason, count in reasons.most_common())


@dataclass(frozen=True)
class Asked:
    """A published time beside those that a newcomer and a caller told more are given [s]; None if refused."""

    row: dict[str, str]
    newcomer: iomodel.results.Estimate
    told: iomodel.results.Estimate | None
    beside: float = 0.0

    @property
    def measured(self) -> float:
        return float(self.row["seconds"])

    @property
    def ratio(self) -> float:
        """Time of the newcomer's call, with what an engine launches beside it, over the measured time [-]."""
        return (self.newcomer.seconds + self.beside) / self.measured

    @property
    def told_ratio(self) -> float | None:
        """Time of the told call, with what an engine launches beside it, over the measured time [-]."""
        return None if self.told is None else (self.told.seconds + self.beside) / self.measured

    @property
    def inside(self) -> bool:
        """True if the measured time lies in the interval of the newcomer's call."""
        low, high = (end + self.beside for end in self.newcomer.error)
        return low <= self.measured <= high

    @property
    def place(self) -> Place:
        """Architecture, direction and regime."""
        found = self.newcomer
        return place_of(found.hardware, found.workload, found.seconds)


def asked(row: dict[str, str]) -> Asked | None:
    """Ask for the time of a row as a newcomer, and with what its source states; None where no kernel runs the call."""
    names = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim")
    sizes: dict[str, Any] = {name: int(row[name]) for name in names}
    words = row["mask"].split()
    mask: Any = iomodel.Window(left=int(words[1]) - 1, right=0) if words[0] == "window" else row["mask"]
    direction = "backward" if row["direction"] == "backward" else "forward"
    sizes |= {"dtype": row["dtype"], "mask": mask, "direction": direction, "latent": row["latent"] == "yes"}
    if row.get("kv_dtype"):
        sizes["kv_dtype"] = row["kv_dtype"]
    call = iomodel.Attention(**sizes)
    try:
        newcomer = iomodel.estimate(row["algorithm"], call, row["device"])
    except (iomodel.InputError, iomodel.InfeasibleError):
        return None
    options: dict[str, Any] = {"deterministic": True} if row["deterministic"] == "yes" else {}
    if row["page_size"] and (row["implementation"] or not served(row)):  # of a closed kernel no page is priced
        call = iomodel.Attention(**sizes, page_size=int(row["page_size"]))
    try:
        listed = iomodel.list_implementations(row["algorithm"], row["device"], call)
        if row["implementation"] in (*listed, "flash-attention-2-2023"):  # superseded kernels answer by name alone
            options["implementation"] = row["implementation"]
        if served(row):
            options["parameters"] = REPEATED
        return Asked(row, newcomer, iomodel.estimate(row["algorithm"], call, row["device"], **options), beside(row))
    except iomodel.InputError:
        return Asked(row, newcomer, None, beside(row))


def served(row: dict[str, str]) -> bool:
    """Check that a row is a layer in a serving engine, replayed on the same tensors."""
    return row["source"].startswith("aiconfigurator")


def beside(row: dict[str, str]) -> float:
    """Time the kernels that a serving engine launches with attention [s], as their sources have it.

    All write the new keys and values to the cache; kernels beyond that cost a node of a graph. TensorRT-LLM rotates Q
    and K on the way, head by head, and counts the tokens of a prefill before it (applyBiasRopeUpdateKVCache,
    buildDecoderInfo).
    SGLang converts K, V and Q for a cache in fp8 (set_kv_buffer, its backends), and schedules each call of
    FlashAttention-3 (prepare_varlen_num_blocks). vLLM does this once for all layers, but combines splits in a step of
    up to 512 tokens whatever their number; its copy of FlashAttention-2 copies packed heads back.
    """
    if not served(row):
        return 0.0
    heads, kv_heads, head_dim = (int(row[name]) for name in ("heads", "kv_heads", "head_dim"))
    tokens, engine = int(row["batch"]) * int(row["q_len"]), row["kernel"].split(" of ")[1].split()[0]
    cache, name, decodes = row["kv_dtype"] or row["dtype"], row["implementation"], row["direction"] == "decode"
    rows = {"rows": tokens, "kv_dtype": cache}
    keys = {"channels": kv_heads * head_dim, "others": kv_heads * head_dim}
    launched = [("append", Elementwise(**rows, **keys))]
    if engine == "TRTLLM":
        launched = [("rotary_append", Elementwise(**rows, **keys | {"channels": heads * head_dim, "angles": head_dim}))]
    queries = ("copy", Elementwise(rows=tokens, channels=heads * head_dim))
    if engine == "SGLang" and cache == "fp8":
        launched += [queries, *[("copy", Elementwise(rows=tokens, channels=kv_heads * head_dim))] * 2]
    if name == "flash-attention-2-vllm" and decodes and heads > kv_heads:
        launched.append(queries)
    fa3 = name == "flash-attention-3"
    if (
        (engine == "TRTLLM" and not decodes)
        or (engine == "SGLang" and fa3)
        or (engine == "VLLM" and fa3 and tokens <= 512)
    ):
        launched.append(("copy", Elementwise(rows=1, channels=1)))
    known = rates(iomodel.hardware(row["device"]), "bf16")
    launch = REPEATED.kernel_launch if known.launch is None else known.launch
    node = DEPENDENT * launch if known.node is None else known.node
    times = [iomodel.estimate(kernel, on, row["device"], parameters=REPEATED).seconds for kernel, on in launched]
    if engine == "TRTLLM":
        times[0] = max(times[0], rotation_seconds(ENGINES["tensorrt-llm"].rotation_clocks, tokens * heads, known))
    return sum(times) + (node - launch) * (len(times) - 1)


OTHERS = {
    "machines": ("published_2.csv",),
    "cudnn": ("published_3.csv",),
    "gathered": ("published_4.csv", "published_5.csv"),
    "inference": ("published_6.csv",),
    "paged": ("published_7.csv",),
    "latents": ("published_8.csv",),
    "served": ("published_9.csv",),
}
"""Files of other machines by the option that asks for them."""


def machines(role: str, *names: str) -> list[Asked]:
    """Ask for the rows of files in one role, those of calls that a kernel runs; by default of published_2.csv."""
    listed = [row for name in names or OTHERS["machines"] for row in rows(name) if row["role"] == role]
    return [one for row in listed for one in [asked(row)] if one is not None]


def shares_of(working: list[Asked]) -> dict[tuple[str, str], float]:
    """Fit one share of the roofline to each direction and architecture."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in working:
        for architecture in (one.place[0], "all"):
            shares[architecture, one.place[1]].append(one.newcomer.floor / one.measured)
    return {key: float(np.median(values)) for key, values in shares.items()}


def spread_of(ratios: list[float | None]) -> str:
    """State the median and the 90th percentile of the errors, and the sign of their median."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return "-"
    errors = sorted(abs(ratio - 1) for ratio in known)
    median, nine_in_ten, sign = np.median(errors), errors[int(0.9 * len(errors))], np.median(known) - 1
    text = f"{100 * median:.1f} / {100 * nine_in_ten:.1f} / {100 * sign:+.0f}"
    return text if len(known) == len(ratios) else f"{text} ({len(ratios) - len(known)} refused)"


def _at_share(one: Asked, shares: dict[tuple[str, str], float]) -> float | None:
    """Return the ratio that one share of the peak predicts; None without a working row of the direction."""
    share = shares.get(one.place[:2], shares.get(("all", one.place[1])))
    return None if share is None else one.newcomer.floor / share / one.measured


def machine_table(found: list[Asked], working: list[Asked]) -> Iterator[str]:
    """Tabulate the errors by architecture, direction and regime, beside two naive guesses."""
    shares = shares_of(working)
    columns = "architecture", "direction", "regime", "newcomer", "told", "60 % of the peak", "one share each"
    yield f"| {' | '.join(columns)} | rows | in interval | half-width |"
    yield f"|{' --- |' * len(columns)} ---: | ---: | ---: |"
    places = sorted({one.place for one in found})
    groups = [("all", "all", "all")]
    groups += [(name, "all", "all") for name in dict.fromkeys(place[0] for place in places)]
    groups += [(name, way, "all") for name, way in dict.fromkeys(place[:2] for place in places)]
    groups += [("all", way, "all") for way in dict.fromkeys(place[1] for place in places)] + places
    for group in sorted(dict.fromkeys(groups), key=lambda g: tuple((word != "all", word) for word in g)):
        ones = [one for one in found if all(a in ("all", b) for a, b in zip(group, one.place, strict=True))]
        inside = sum(one.inside for one in ones)
        widths = np.median([one.place.half_width for one in ones])
        columns = (
            [one.ratio for one in ones],
            [one.told_ratio for one in ones],
            [one.newcomer.floor / 0.6 / one.measured for one in ones],
            [_at_share(one, shares) for one in ones],
        )
        cells = [spread_of(list(column)) for column in columns]
        yield f"| {' | '.join((*group, *cells))} | {len(ones)} | {inside / len(ones):.0%} | {widths:.0%} |"


def each_row(found: list[Asked]) -> Iterator[str]:
    """List the ratios of predicted to measured time by row."""
    for one in found:
        row, told = one.row, one.told_ratio
        ratio = "refused" if told is None else f"{told:.2f}"
        yield (
            f"{row['curve']:48} q {row['q_len']:>6} kv {row['kv_len']:>6} b {row['batch']:>3} "
            f"{one.measured * 1e6:10.1f} us {one.ratio:.2f} told {ratio} "
            f"{one.newcomer.limited_by:14} {dict(one.newcomer.tiles)}"
        )


IN_SIGHT = 1.4
"""Error of a new row over that of a row in sight [-]: the geometric mean of 1, of lines of the same figures, and of 2,
of other laboratories' rows on the same GPUs (medians of 4.3 and 8.4 % in an evaluation of an earlier version)."""
FEWEST = 8
"""Fewest rows of a place that has a half-width of its own."""


def half_widths(working: list[Asked]) -> dict[Place, float]:
    """Return the half-width of each place: the one that holds eight in ten of its rows.

    The rows are the working rows of published_2.csv to published_5.csv, as told where they state their kernel, those of
    published_6.csv whose kernel is declared, the calibration rows of FlashAttention-2 and -3, asked with default
    options, and the working half of a measured GPU: attention in PyTorch whose kernel is declared, and products in
    bf16. Of n distances between the logarithms of a predicted and a measured time, the one at 0.8 (n + 1) counts, the
    larger neighbour where that lies between two; rows in sight err less than new ones (`IN_SIGHT`). A place of all
    architectures has rows of several.
    """
    from benchmarks.gpu_accuracy import gpu_ratios  # which imports this module

    closed = (one for one in machines("working", *OTHERS["inference"]) if one.row["implementation"])
    known = [
        (one.place, found.seconds / one.measured)
        for one in (*working, *machines("working", *OTHERS["cudnn"], *OTHERS["gathered"]), *closed)
        for found in [one.told if one.row["implementation"] and one.told is not None else one.newcomer]
        if "block scales" not in one.row["note"]  # which no call states
    ]
    for row in rows("published.csv"):
        if left_out(row) is None and row["implementation"] in FUSED - {"flash-attn-1"}:
            seconds, _ = predicted(row, defaults=True)
            call = iomodel.Attention(q_len=2, head_dim=64, direction=row["direction"])
            known.append((place_of(iomodel.hardware(row["device"]), call, seconds), seconds / float(row["seconds"])))
    known += gpu_ratios()
    around: dict[Place, list[float]] = defaultdict(list)
    seen: dict[Place, set[str]] = defaultdict(set)
    for place, ratio in known:
        for wider in place.wider:
            around[wider].append(abs(float(np.log(ratio))))
            seen[wider].add(place.architecture)
    widths = {}
    for place, found in sorted(around.items()):
        if len(found) >= FEWEST and (place.architecture != ANY or len(seen[place]) > 1):
            at = min(len(found) - 1, int(np.ceil(0.8 * (len(found) + 1))) - 1)
            widths[place] = round(IN_SIGHT * float(np.expm1(sorted(found)[at])), 3)
    return widths


OUTSIDE = MEASURED / "outside_intervals.txt"
"""Rows of the working half whose measured time lies outside the interval of its estimate."""


def outside(working: list[Asked]) -> list[str]:
    """Name the rows whose measured time lies outside the interval of its estimate."""
    names = ("curve", "batch", "q_len", "kv_len")
    return sorted(
        " ".join(one.row[name] for name in names)
        for one in working
        for low, high in [one.newcomer.error]
        if not low <= one.measured <= high
    )


def written(text: str) -> None:
    """Write half-widths into the module of the intervals, then the rows outside, asked of a new process."""
    module = ROOT / "iomodel" / "timing" / "error_interval.py"
    before, rest = module.read_text(encoding="utf-8").split("HALF_WIDTHS: ", 1)
    kind, rest = rest.split("{\n", 1)
    module.write_text(f"{before}HALF_WIDTHS: {kind}{{\n{text}}}\n{rest.split('}' + chr(10), 1)[1]}", encoding="utf-8")
    code = "from benchmarks.accuracy import machines, outside; print(*outside(machines('working')), sep=chr(10))"
    found = run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    OUTSIDE.write_text(found.stdout, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="the held-out curves")
    parser.add_argument("--defaults", action="store_true", help="leave tiles, options and parameters at their defaults")
    parser.add_argument("--excluded", action="store_true", help="list why rows are left out")
    parser.add_argument("--machines", action="store_true", help="the GPUs and kernels of published_2.csv")
    parser.add_argument("--cudnn", action="store_true", help="with --machines: the rows of published_3.csv")
    parser.add_argument("--gathered", action="store_true", help="with --machines: those of public threads")
    parser.add_argument("--inference", action="store_true", help="with --machines: decoding and prefills in cuDNN")
    parser.add_argument("--paged", action="store_true", help="with --machines: decoding with pages in AITER")
    parser.add_argument("--latents", action="store_true", help="with --machines: decoding on latents in AITER")
    parser.add_argument("--served", action="store_true", help="with --machines: attention in serving engines")
    parser.add_argument("--judging", action="store_true", help="with --machines: the judging half")
    parser.add_argument("--each", action="store_true", help="with --machines: each row of the working half")
    parser.add_argument("--intervals", action="store_true", help="the half-widths of iomodel/timing/error_interval.py")
    parser.add_argument("--write", action="store_true", help="with --intervals: write them, and the rows outside")
    given = parser.parse_args()
    if given.intervals:
        lines = [f"    {tuple(place)}: {width},\n" for place, width in half_widths(machines("working")).items()]
        text = "".join(lines).replace("'", '"')
        print(text, end="")
        if given.write:
            written(text)
        return
    if given.machines:
        names = OTHERS[next(name for name in reversed(OTHERS) if getattr(given, name))]
        working = machines("working", *names)
        role = "judging" if given.judging else "working"
        shown = machines(role, *names) if given.judging else working
        every = sum(row["role"] == role for name in names for row in rows(name))
        print(f"{every - len(shown)} of {every} rows are left out: no kernel on file runs the call")
        for line in [*machine_table(shown, working), *(each_row(working) if given.each else ())]:
            print(line)
        return
    print(DEFAULT)
    for line in report("published_held_out.csv" if given.held_out else "published.csv", given.excluded, given.defaults):
        print(line)


if __name__ == "__main__":
    main()
