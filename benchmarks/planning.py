"""Time of a fleet search over five devices, of a Pareto search, and of warm plans: of a known load, and of new ones.

    python benchmarks/planning.py [--model llama-3-8b]

Each search runs in a process of its own, so that no step is known. The reference is the same search with the tiles of
linear layers timed one at a time and with attention timed for each division of heads anew; both give the same fleet.
A loop of ten million additions in the same process tells machines apart. Times are of the processor [s].
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

DEVICES = ("h100-sxm5", "h200-sxm", "a100-sxm4-80gb", "b200", "mi300x")
LENGTHS = "prompt=2048, output=256"
ONE_BY_ONE = """
from iomodel.planning.step import attention_clock
from iomodel.timing import layer_clock
layer_clock.MOST_ROWS = 0
attention_clock._one_head = lambda call: call
"""
PROGRAM = """
import itertools, json, time
import iomodel
prompts = itertools.count(2049)
import iomodel.planning.fleet, iomodel.planning.pareto, iomodel.planning.plan, iomodel.models.registry
{before}
def timed(call, runs=1):
    times = []
    for _ in range(runs):
        start = time.process_time()
        answer = call()
        times.append(time.process_time() - start)
    return min(times), answer

def loop():
    total = 0
    for number in range(10_000_000):
        total += number
    return total

seconds, answer = timed(lambda: {call}, {runs})
print(json.dumps([seconds, timed(loop, 3)[0], {shown}]))
"""


def run(call: str, runs: int = 1, before: str = "", shown: str = "None") -> tuple[float, float, object]:
    """The time of a call in a fresh process, that of the loop [s], and what the process shows of the answer."""
    program = PROGRAM.format(before=before, call=call, runs=runs, shown=shown)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, loop, answer = json.loads(done.stdout)
    return seconds, loop, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-3-8b", help="model to serve (default llama-3-8b)")
    model = parser.parse_args().model
    targets = f"{LENGTHS}, load=20, ttft=2, tpot=0.1"
    fleet = f"iomodel.fleet({model!r}, {list(DEVICES)!r}, {targets})"
    best = "[answer.best.device, answer.best.devices]"
    reference = run(fleet, before=ONE_BY_ONE, shown=best)
    search = run(fleet, shown=best)
    assert search[2] == reference[2], "the same fleet"
    front = run(f"iomodel.pareto({model!r}, {list(DEVICES)!r}, {LENGTHS})")
    plan = run(f"iomodel.plan({model!r}, 'h100-sxm5', count=8, {LENGTHS})", runs=4)
    new = f"iomodel.plan({model!r}, 'h100-sxm5', count=8, prompt=next(prompts), output=256)"
    rates, whole = (run(f"{new}.{read}", runs=8) for read in ("tokens_per_second", "to_dict()"))
    shown = Table(title=f"{model}, {LENGTHS}", title_justify="left")
    for column in ("search", "time [s]", "of the reference", "of the loop"):
        shown.add_column(column, justify="left" if column == "search" else "right")
    rows = (
        ("fleet of five devices, one tile at a time", reference),
        ("fleet of five devices", search),
        ("Pareto front of five devices", front),
        ("plan, warm", plan),
        ("rates of a plan of a new load", rates),
        ("all of a plan of a new load", whole),
    )
    for name, (seconds, loop, _) in rows:
        shown.add_row(name, f"{seconds:.3g}", f"{seconds / reference[0]:.3f}", f"{seconds / loop:.3f}")
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
