"""Predicted against measured figures of serving engines, row by row."""

from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

from benchmarks.serving_accuracy import engine, judged
from iomodel import plots

FILES = {"serving.csv": False, "serving_held_out.csv": True}
NAMES = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}


def times() -> Any:
    """Draw times per output token and to the first token, by engine."""
    return drawn(("tpot", "engine ttft"), by_engine, title="Times of engines")


def rates() -> Any:
    """Draw output tokens per second, by kind of model."""
    kinds = ("throughput", "fp4", "moe")
    return drawn(kinds, lambda row: row["kind"], unit="tok/s", title="Output tokens per second of engines")


def by_engine(row: dict[str, str]) -> str:
    """Name the family of a row."""
    return f"{row['kind'].removeprefix('engine ')}, {NAMES.get(engine(row), engine(row))}"


def drawn(kinds: tuple[str, ...], family: Callable[[dict[str, str]], str], **style: str) -> Any:
    """Draw every row of some kinds that the library answers; each file takes one core."""
    with get_context("fork").Pool(len(FILES)) as forks:
        files = forks.starmap(judged, [(name, kinds) for name in FILES])
    rows = [
        (row, new) for file, new in zip(files, FILES.values(), strict=True) for row in file if row.predicted is not None
    ]
    return plots.parity(
        [row.predicted for row, _ in rows],
        [row.measured for row, _ in rows],
        family=[family(row.row) for row, _ in rows],
        held_out=[new for _, new in rows],
        **style,
    )
