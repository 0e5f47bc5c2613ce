"""Order of the search: what people ask for, beside the words of the pages.

A page is found by the words of its phrases too, and comes first where a query has all words of one; guides come before
pages of functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

PHRASES: dict[str, tuple[str, ...]] = {
    "install": ("install", "pip", "setup"),
    "five-minutes": ("quick start", "getting started", "tutorial", "introduction"),
    "notebooks/2-pick-a-tile": ("best tile", "tile size", "block size", "optimal tile", "choose tile"),
    "notebooks/3-bytes-to-seconds": ("time of a call", "latency of a kernel"),
    "triton": ("autotune", "triton config", "prune", "num_warps", "num_stages"),
    "triton-count": ("count triton",),
    "rule": ("heuristic", "num_splits", "split heuristic", "rule in a file", "vendored function"),
    "plan": ("how many gpu", "token per second", "throughput", "ttft", "tpot", "capacity planning", "cost per token"),
    "own-algorithm": ("own algorithm", "custom attention", "new variant"),
    "testing": ("test kernel", "hypothesis", "unit test"),
    "accuracy": ("accuracy", "error of time", "validation"),
    "hardware": ("h100", "a100", "h200", "b200", "mi300x", "gpu spec", "device file", "bandwidth", "supported gpu"),
    "models": ("llama", "deepseek", "qwen", "config json", "supported model"),
    "diagnose": ("bottleneck", "slow kernel", "why slow", "remedy", "optimize kernel"),
    "audit": ("nsight compute", "ncu", "profiler", "ncu rep"),
    "calibrate": ("measure gpu", "calibration", "benchmark gpu"),
    "pictures": ("roofline", "plot", "picture", "figure paper", "matplotlib"),
    "nomenclature": ("arithmetic intensity", "hbm traffic", "dram traffic", "request", "symbol", "notation"),
    "features": ("kv cache", "fp8 kv", "paged", "sliding window", "alibi", "softcap", "sink", "dropout", "mla"),
    "theory": ("lower bound", "io complexity", "proof of the solver"),
    "paper": ("theorem",),
    "residency": ("shared memory", "register", "occupancy"),
    "torch": ("pytorch", "flexattention", "torch compile"),
    "engines": ("vllm", "sglang", "tensorrt", "prefix cache", "speculative decoding"),
    "training": ("training step", "mfu"),
    "explorer": ("browser", "interactive"),
    "context-parallel": ("ring attention", "ulysses"),
    "arrays": ("sweep", "grid search", "dask", "million of call"),
    "mcp": ("agent", "mcp", "tool for an agent"),
}
"""Phrases by page, each word in the singular."""
RANKS = {"api": -6, "algorithms": -1, "notebooks": 1}
"""Points of the pages of a folder; other pages have 3."""
SCORER = """
const PHRASES = %s, RANKS = %s;
const singular = (word) => (word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word);
const wordsOf = (text) => text.toLowerCase().split(/[^\\p{L}\\p{N}_]+/u).filter(Boolean).map(singular);
var Scorer = {
  score: ([page, , , , score]) => {
    const asked = new Set(wordsOf(new URLSearchParams(location.search).get("q") ?? ""));
    const phrases = (PHRASES[page] ?? []).map(wordsOf);
    const lengths = phrases.map((words) => (words.every((word) => asked.has(word)) ? words.length : 0));
    return score + 100 * Math.max(0, ...lengths) + (RANKS[page.split("/")[0]] ?? 3);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
"""


def write_scorer(app: Sphinx, config: Any) -> None:
    """Write the scorer of the search beside the built docs."""
    file = Path(app.doctreedir) / "scorer.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCORER % (json.dumps(PHRASES), json.dumps(RANKS)), encoding="utf-8")
    config.html_search_scorer = str(file)


def add_keywords(app: Sphinx, doctree: nodes.document) -> None:
    """Give a page the words of its phrases, which the search indexes; the phrases are its keywords."""
    from docutils.nodes import meta

    phrases = PHRASES.get(app.env.docname, ())
    for content in filter(None, [", ".join(phrases), ", ".join(sorted({w for one in phrases for w in one.split()}))]):
        doctree.insert(0, meta(name="keywords", content=content))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", write_scorer)
    app.connect("doctree-read", add_keywords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
