"""Plans, fronts and pools with prefixes, drafts, prices and types that are nearly right, or never were."""

from __future__ import annotations

from random import Random
from typing import Any

import iomodel
from tests.fuzz.calls import changed
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import SCALARS

MODELS = ("llama-3-8b",) * 6 + ("gpt-oss-20b", "llama-3-70b", "x", 7)
DEVICES = ("h100-sxm5",) * 6 + ("a100-sxm4-80gb", "mi300x", "tpu-v5e", "h100", None)
REQUEST: dict[str, Any] = {"prompt": 512, "output": 16, "batch": 4}
CHOICES: dict[str, tuple[Any, ...]] = {
    "precision": ("fp8", "w4a16", "w8a8", "bf16", "nvfp4", "mxfp4", "int8", "x", 3, ""),
    "engine": ("vllm", "sglang", "trtllm", "x", 7),
    "dtype": ("bf16", "fp16", "fp8", "fp32", "x"),
    "weight_dtype": ("fp8", "int4", "mxfp4", "x"),
    "kv_dtype": ("fp8", "int8", "bf16", "nvfp4", "x"),
    "linear_dtype": ("fp8", "int8", "fp4", "x"),
    "page_size": (1, 16, 64, 0, -1, 10**30, "x"),
    "memory_utilization": (0.9, 0.5, 0, 1, 2, float("nan"), "x"),
    "overhead_bytes": (0, 10**9, 10**12, -1, 10**40, 1.5),
}
PREFIX: dict[str, Any] = {"shared_tokens": 128, "hit_rate": 0.5, "cascade": True, "host_rate": 0.25, "disk_rate": 0.25}
DRAFTS: dict[str, Any] = {"tokens": 3, "acceptance": 0.8, "draft": "ngram"}
LAYOUT: dict[str, Any] = {
    "tensor_parallel": 2, "pipeline_parallel": 1, "expert_parallel": 1,
    "devices_per_node": 2, "network_bandwidth": 5e10,
}  # fmt: skip


def _fields(rng: Random) -> dict[str, Any]:
    """Arguments that plans share."""
    names = rng.sample(list(CHOICES), rng.choice((0, 0, 1, 1, 2)))
    return {name: rng.choice(CHOICES[name][:2] if rng.random() < 0.6 else CHOICES[name]) for name in names}


def _prices(rng: Random) -> Any:
    """A mapping of prices by device, or what is none."""
    if rng.random() < 0.15:
        return rng.choice(SCALARS)
    names = ("h100-sxm5", "a100-sxm4-80gb", "h200-sxm", "x", "", 3)
    amounts = (2.5, 1, 3.9, 0, -1, float("nan"), 10**400, "2", None, True, 1e-300)
    right = rng.random() < 0.6
    return {
        rng.choice(names[:3] if right else names): rng.choice(amounts[:3] if right else amounts)
        for _ in range(rng.randrange(4))
    }


def serving(rng: Random) -> Case:
    """A plan, a front or two pools."""
    model, device, use = rng.choice(MODELS), rng.choice(DEVICES), rng.randrange(8)
    request, fields = changed(rng, REQUEST) if rng.random() < 0.4 else REQUEST, _fields(rng)
    prefix = changed(rng, PREFIX) if rng.random() < 0.25 else None
    drafts = changed(rng, DRAFTS) if rng.random() < 0.25 else None
    layout = changed(rng, LAYOUT) if rng.random() < 0.25 else None
    prices, rate = (
        None if rng.random() < 0.4 else _prices(rng),
        rng.choice((25e9,) * 6 + (1e9, 0, -1, 1e30, "x", float("inf"))),
    )
    if drafts is not None and rng.random() < 0.5:
        drafts["draft"] = rng.choice(("mtp", "ngram", "llama-3.2-1b", "x", "", 5))
    engine = rng.choice(("vllm", "sglang", "trtllm", "x"))
    request = {**REQUEST, **{name: entry for name, entry in request.items() if name in REQUEST}}

    def run() -> object:
        given = {**request, **fields}
        if layout is not None:
            given["layout"] = iomodel.Layout(**layout)
        if use < 7 and prefix is not None:
            given["prefix_cache"] = iomodel.PrefixCache(**prefix)
        if use < 7 and drafts is not None:
            given["speculation"] = iomodel.Speculation(**drafts)
        if use == 6:  # a front takes long
            given.pop("layout", None), given.pop("batch", None), given.pop("weight_dtype", None)
            batches, kv = rng.choice(([1, 8], [1], [], [0], "x", None)), given.pop("kv_dtype", None)
            layouts = [iomodel.Layout()] if batches is None else None
            found = iomodel.pareto(
                model, device, batches=batches, replica_devices=1, layouts=layouts, price=prices,
                kv_dtypes=None if kv is None else [kv], **given,
            )  # fmt: skip
            return str(found), found.to_json()
        if use == 7:
            given.pop("layout", None)
            pools = iomodel.disaggregate(model, device, "h100-sxm5", link=rate, price=prices, **given)  # type: ignore[arg-type]
            return str(pools), pools.to_json()
        if use == 5:
            given["price"] = rate
        count = given["layout"].devices if "layout" in given else 1
        plan = iomodel.plan(model, device, count=count, **given)  # type: ignore[arg-type]
        return plan.to_json() if use < 3 else str(iomodel.planning.engine_flags(plan, engine))

    told = f"{model}, {device}, {request!r:.500}, {fields!r:.300}, {prefix!r:.300}, {drafts!r:.300}, {layout!r:.300}"
    return Case("serving", f"use {use}: {told}, {prices!r:.200}, {rate!r}, {engine}", lambda: answered(run))
