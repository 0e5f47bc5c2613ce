"""What `import iomodel` costs, in time and memory, and how long the command line takes to answer from nothing.

    python benchmarks/startup.py [--runs 15]

Fresh interpreters, the ways taken in turn so that a busy machine weighs on all alike; medians. Time of an import is
that of the whole process less that of an interpreter that imports nothing; memory is the process's high-water mark.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

from rich.console import Console
from rich.table import Table

IMPORTS = {
    "nothing": "pass",
    "numpy, pydantic": "import numpy, pydantic",
    "iomodel": "import iomodel",
    "iomodel, then Attention and cost": "import iomodel; iomodel.Attention, iomodel.cost",
    "iomodel, then cost_array": "import iomodel; iomodel.cost_array",
    "sympy": "import sympy",
}
TILES = ["tiles", "flash2", "--hardware", "h100-sxm5", "--q-len", "8192", "--head-dim", "128"]
COMMANDS = {
    "iomodel tiles flash2 --hardware h100-sxm5 ...": TILES,
    "iomodel cost flash2 ...": ["cost", "flash2", *TILES[4:], "--block-q", "128", "--block-kv", "64"],
    "iomodel hardware": ["hardware"],
    "iomodel --help": ["--help"],
}
HEAVY = ("numpy", "pydantic", "sympy", "yaml", "typer", "rich", "matplotlib", "numba", "xarray", "pandas", "pyarrow",
         "dask", "distributed", "torch", "psutil", "mpmath")  # fmt: skip
LOADED = "import json, sys; print(json.dumps([len(sys.modules), sorted({name.split('.')[0] for name in sys.modules})]))"


def run(arguments: list[str]) -> tuple[float, float]:
    """Seconds and the most memory [MiB] of one fresh interpreter."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return took, used.ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)


def medians(ways: dict[str, list[str]], runs: int) -> dict[str, tuple[float, float]]:
    """Median time and memory of each way, the ways taken in turn."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for round_ in range(runs + 1):
        for name, arguments in ways.items():
            measured = run(arguments)
            if round_:  # the first run fills the caches of files and bytecode
                found[name].append(measured)
    return {name: (median(t for t, _ in rows), median(m for _, m in rows)) for name, rows in found.items()}


def loaded(code: str) -> tuple[int, list[str]]:
    """How many modules a program has loaded at its end, and which of the heavy libraries."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True)
    number, names = json.loads(done.stdout.splitlines()[-1])
    return number, [name for name in HEAVY if name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="fresh interpreters per median (default 15)")
    runs = parser.parse_args().runs
    console = Console(width=130)
    found = medians({name: ["-c", code] for name, code in IMPORTS.items()}, runs)
    base, peer = found["nothing"], found["numpy, pydantic"]
    table = Table(title="imports in a fresh interpreter; ratios to numpy and pydantic, beyond an empty interpreter")
    for column in ("import", "s", "ratio", "peak [MiB]", "ratio ", "modules", "heavy libraries"):
        table.add_column(column, justify="left" if column in ("import", "heavy libraries") else "right")
    for name, (seconds, memory) in found.items():
        number, heavy = loaded(IMPORTS[name])
        ratio = (seconds - base[0]) / (peer[0] - base[0])
        more = (memory - base[1]) / (peer[1] - base[1])
        cells = (f"{seconds - base[0]:.3f}", f"{ratio:.2f}", f"{memory:,.0f}", f"{more:.2f}", str(number))
        table.add_row(name, *cells, " ".join(heavy) or "-")
    console.print(table)
    answers = medians({name: ["-m", "iomodel", *arguments] for name, arguments in COMMANDS.items()}, runs)
    table = Table(title="the command line from a cold start")
    for column in ("command", "s", "peak [MiB]", "heavy libraries"):
        table.add_column(column, justify="left" if column in ("command", "heavy libraries") else "right")
    for name, (seconds, memory) in answers.items():
        code = "import contextlib, io, runpy, sys\nsys.argv[1:] = " + repr(COMMANDS[name])
        code += "\nwith contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):"
        code += "\n    runpy.run_module('iomodel', run_name='__main__')"
        table.add_row(name, f"{seconds:.3f}", f"{memory:,.0f}", " ".join(loaded(code)[1]) or "-")
    console.print(table)


if __name__ == "__main__":
    main()
