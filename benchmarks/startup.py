"""Time of a process that starts cold: imports, and commands of the command line, against the libraries they need.

    python benchmarks/startup.py [--runs 9]

Every run is a fresh interpreter, and the runs of all programs are interleaved, so that a busy machine slows all alike.
Modules are read from bytecode and formulas from the data of the package, as in a release or after
``python -m iomodel.prebuild``. Times are the best of the runs; the time of an import is that of the process less that
of an interpreter that imports nothing. Commands are compared with the whole process of
``import numpy, pydantic, typer, rich.table``: the libraries that any command line of this kind loads. Memory is the
high-water mark of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

LIBRARIES = "import numpy, pydantic, typer, rich.table"
CALLED = (
    "iomodel.cost('flash2', iomodel.Attention(q_len=8192, head_dim=128, mask='causal'), "
    "{'block_q': 128, 'block_kv': 64})"
)
IMPORTS = {
    "nothing": "pass",
    "numpy, pydantic": "import numpy, pydantic",
    "iomodel": "import iomodel",
    "iomodel, then Attention and cost": "import iomodel; iomodel.Attention, iomodel.cost",
    "iomodel, then cost_array": "import iomodel; iomodel.cost_array",
    "iomodel, then a call of cost": f"import iomodel; {CALLED}",
    "iomodel, then a call of cost without stored formulas": (
        f"import iomodel; from iomodel.counting import store; store._table = lambda _: {{'records': {{}}}}; {CALLED}"
    ),
    "sympy": "import sympy",
}
CALL = ["--q-len", "8192", "--head-dim", "128", "--heads", "32", "--kv-heads", "8", "--dtype", "bf16"]
CALL += ["--mask", "causal"]
REQUEST = ["--hardware", "h100-sxm5", "--prompt", "2048", "--output", "256", "--price", "2.5"]
COMMANDS = {
    "iomodel --version": ["--version"],
    "iomodel --help": ["--help"],
    "iomodel hardware": ["hardware"],
    "iomodel cost flash2 ...": ["cost", "flash2", *CALL, "--block-q", "128", "--block-kv", "64"],
    "iomodel tiles flash3 --hardware h100-sxm5 ...": ["tiles", "flash3", "--hardware", "h100-sxm5", *CALL],
    "iomodel plan llama-3-8b ...": ["plan", "llama-3-8b", *REQUEST],
}
"""`tiles` as in the README, `plan` as in docs/cli.md."""
HEAVY = ("numpy", "pydantic", "sympy", "yaml", "typer", "rich", "matplotlib", "numba", "xarray", "pandas", "pyarrow",
         "dask", "distributed", "torch", "psutil", "mpmath")  # fmt: skip
LOADED = "import json, sys; print(json.dumps([len(sys.modules), sorted({name.split('.')[0] for name in sys.modules})]))"


def run(arguments: list[str]) -> tuple[float, float]:
    """Seconds and the most memory [MiB] of one fresh interpreter."""
    start = time.perf_counter()
    keeping = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=keeping) as process:
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return took, used.ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)


def best(programs: dict[str, list[str]], runs: int) -> dict[str, tuple[float, float]]:
    """Least time and least memory of each program, their runs interleaved."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for round_ in range(runs + 1):
        for name, arguments in programs.items():
            row = run(arguments)
            if round_:  # the first run fills the caches of files and bytecode
                measured[name].append(row)
    return {name: (min(t for t, _ in rows), min(m for _, m in rows)) for name, rows in measured.items()}


def loaded(code: str) -> tuple[int, list[str]]:
    """How many modules a program has loaded at its end, and which of the heavy libraries."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True)
    number, names = json.loads(done.stdout.splitlines()[-1])
    return number, [name for name in HEAVY if name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="fresh interpreters per program (default 9)")
    runs = parser.parse_args().runs
    programs = {("import", name): ["-c", code] for name, code in IMPORTS.items()}
    programs["libraries", LIBRARIES] = ["-c", LIBRARIES]
    programs |= {("command", name): ["-m", "iomodel", *arguments] for name, arguments in COMMANDS.items()}
    measured = best(programs, runs)
    console = Console(width=130)
    console.print(_imports({name: measured["import", name] for name in IMPORTS}))
    console.print(_commands(measured["libraries", LIBRARIES], {name: measured["command", name] for name in COMMANDS}))


def _imports(measured: dict[str, tuple[float, float]]) -> Table:
    base, peer = measured["nothing"], measured["numpy, pydantic"]
    table = Table(title="imports in a fresh interpreter; ratios to numpy and pydantic, beyond an empty interpreter")
    for column in ("import", "s", "ratio", "peak [MiB]", "ratio ", "modules", "heavy libraries"):
        table.add_column(column, justify="left" if column in ("import", "heavy libraries") else "right")
    for name, (seconds, memory) in measured.items():
        number, heavy = loaded(IMPORTS[name])
        ratio = (seconds - base[0]) / (peer[0] - base[0])
        more = (memory - base[1]) / (peer[1] - base[1])
        cells = (f"{seconds - base[0]:.3f}", f"{ratio:.2f}", f"{memory:,.0f}", f"{more:.2f}", str(number))
        table.add_row(name, *cells, " ".join(heavy) or "-")
    return table


def _commands(libraries: tuple[float, float], measured: dict[str, tuple[float, float]]) -> Table:
    table = Table(title=f"commands from a cold start; ratios to {LIBRARIES!r}, {libraries[0]:.3f} s")
    for column in ("command", "s", "ratio", "peak [MiB]", "heavy libraries"):
        table.add_column(column, justify="left" if column in ("command", "heavy libraries") else "right")
    for name, (seconds, memory) in measured.items():
        code = "import contextlib, io, runpy, sys\nsys.argv[1:] = " + repr(COMMANDS[name])
        code += "\nwith contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):"
        code += "\n    runpy.run_module('iomodel', run_name='__main__')"
        heavy = " ".join(loaded(code)[1]) or "-"
        table.add_row(name, f"{seconds:.3f}", f"{seconds / libraries[0]:.2f}", f"{memory:,.0f}", heavy)
    return table


if __name__ == "__main__":
    main()
