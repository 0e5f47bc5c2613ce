"""Speed of readers of files as ratios in one run: traces against their simulation, an index against `json.load`.

    python -m benchmarks.files [--requests 1000000] [--long 10000000]

Each trace is written in the columns and units of its program, with 1,024 + 128 tokens in the mean, read by
:func:`read_trace`, and simulated with its hash ids, whose time is that of `iomodel.simulate` less the reading, both the
best of five, with the loop compiled before. The peak of memory of reading a file of --long requests is that of a
process of its own, beside one that reads a hundredth of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import iomodel
from benchmarks.solve_many import best
from iomodel.models.weight_files import read_weights
from iomodel.planning.simulation.arrivals import read_trace

MODEL, GPU, LOAD = "llama-3-8b", "h100-sxm5", 12.0
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
TENSORS = 100_000
REPEATS = 5


def azure(moment: float, prompt: int, output: int) -> str:
    """Write a row of Azure's traces of 2024."""
    return f"{np.datetime64('2024-05-10', 'us') + int(1e6 * moment)}+00:00,{prompt},{output}\n".replace("T", " ")


def burst(moment: float, prompt: int, output: int) -> str:
    """Write a row of BurstGPT."""
    return f"{moment:.3f},ChatGPT,{prompt},{output},{prompt + output},Conversation log\n"


def mooncake(moment: float, prompt: int, output: int) -> str:
    """Write a row of Mooncake, with a block for 512 tokens."""
    blocks = [prompt // 7 + place for place in range(-(-prompt // 512))]
    row = {"timestamp": int(1e3 * moment), "input_length": prompt, "output_length": output, "hash_ids": blocks}
    return json.dumps(row) + "\n"


FORMATS: dict[str, tuple[str, Callable[[float, int, int], str]]] = {
    "azure.csv": (AZURE, azure), "burstgpt.csv": (BURST, burst), "mooncake.jsonl": ("", mooncake),
}  # fmt: skip


def rows(requests: int) -> Iterator[tuple[float, int, int]]:
    """Draw requests, a part of them at a time."""
    rng, now = np.random.default_rng(0), 0.0
    for start in range(0, requests, 1 << 16):
        size = min(1 << 16, requests - start)
        moments = now + rng.exponential(1 / LOAD, size).cumsum()
        now = float(moments[-1])
        columns = moments, rng.integers(512, 1537, size), rng.integers(64, 193, size)
        yield from zip(*(column.tolist() for column in columns), strict=True)


def written(folder: Path, name: str, requests: int) -> Path:
    """Write a trace of some requests."""
    header, line = FORMATS[name]
    path = folder / name
    with path.open("w", encoding="utf-8") as file:
        file.write(header)
        file.writelines(line(*row) for row in rows(requests))
    return path


def traces(folder: Path, requests: int) -> None:
    """Print the time of reading each trace beside that of simulating it."""
    iomodel.simulate(MODEL, GPU, prompt=512, output=64, load=LOAD, batch=256, requests=100_000)  # compiles the loop
    for name in FORMATS:
        path = written(folder, name, requests)
        reading, _ = best(lambda path=path: read_trace(path, timed=True), REPEATS)  # type: ignore[misc]
        whole, _ = best(lambda path=path: iomodel.simulate(MODEL, GPU, arrivals=path, batch=256), REPEATS)  # type: ignore[misc]
        simulating = whole - reading
        size = path.stat().st_size / 1e6
        print(
            f"{name}: {requests:,} requests, {size:,.0f} MB: read {reading:.2f} s, simulated {simulating:.2f} s, ratio "
            f"{reading / simulating:.2f} (allowed: 1)"
        )
        path.unlink()


def index(folder: Path) -> None:
    """Print the time of reading an index of safetensors beside that of `json.load`."""
    path = folder / "model.safetensors.index.json"
    where = {f"model.layers.{n % 61}.mlp.experts.{n}.up_proj.weight": f"model-{n % 163:05}.safetensors"
             for n in range(TENSORS)}  # fmt: skip
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}, indent=2), encoding="utf-8")

    def plain() -> Any:
        with path.open(encoding="utf-8") as file:
            return json.load(file)

    (loaded, _), (own, _) = best(plain, 7), best(lambda: read_weights(str(path)), 7)
    ratio = own / loaded
    print(f"index of {TENSORS:,} tensors: read {own:.3f} s, json.load {loaded:.3f} s, ratio {ratio:.2f} (allowed: 2)")


def peak(path: Path) -> float:
    """Return the peak of memory of a process that reads a trace [MiB]."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); from benchmarks.files import reader; reader(sys.argv[1])"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return float(run.stdout)


def reader(path: str) -> None:
    """Read a trace, and print the peak of memory of this process [MiB]."""
    read_trace(path, timed=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def long(folder: Path, requests: int) -> None:
    """Print the peak of memory of reading a long trace."""
    for name in FORMATS:
        found = []
        for number in (requests // 100, requests):
            path = written(folder, name, number)
            found.append((number, path.stat().st_size, peak(path)))
            path.unlink()
        text = "; ".join(f"{number:,} requests, {size / 1e6:,.0f} MB: {most:,.0f} MiB" for number, size, most in found)
        each = (found[1][2] - found[0][2]) * 2**20 / (found[1][0] - found[0][0])
        print(f"{name}: peak of {text}; {each:.0f} B a request")


def main() -> None:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--long", type=int, default=10_000_000, help="0 leaves the long files out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index(Path(folder))
        traces(Path(folder), given.requests)
        if given.long:
            long(Path(folder), given.long)


if __name__ == "__main__":
    main()
