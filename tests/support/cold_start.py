"""A program that asks for many answers at once, from a cold start; run by test_embedding in a process of its own.

`python -m tests.support.cold_start 8` asks from eight threads, each in another order, and prints one digest of them.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable

import iomodel

W = {"heads": 4, "kv_heads": 2, "q_len": 300, "head_dim": 64}
TILES = {"block_q": 64, "block_kv": 32}


def questions() -> dict[str, Callable[[], str]]:
    """By name, so that each thread may take them in an order of its own; nothing is imported yet."""
    asked: dict[str, Callable[[], str]] = {
        "optimum": lambda: str(iomodel.optimum("flash2").leading),
        "device": lambda: iomodel.hardware("a100-sxm4-80gb").to_yaml(),
        "bounds": lambda: str(iomodel.lower_bounds(call("causal"), algorithm="flash2", sram_elements=5000)),
        "time": lambda: iomodel.estimate("flash2", call("causal"), "h100-sxm5").to_json(),
        "refusal": refusal,
        "documents": lambda: cost("flash2", iomodel.Documents([100, 200])),
    }
    for name in ("flash2", "tiled_query"):
        asked[f"{name} formula"] = lambda name=name: str(iomodel.expressions(name, "causal").to_dict())  # type: ignore[misc]
        asked[f"{name} cost"] = lambda name=name: cost(name, "causal")  # type: ignore[misc]
        asked[f"{name} tiles"] = lambda name=name: solve(name, iomodel.Window(left=37, right=5))  # type: ignore[misc]
    return asked


def call(mask: object) -> iomodel.Attention:
    return iomodel.Attention(**W, mask=mask)


def cost(name: str, mask: object) -> str:
    return iomodel.cost(name, call(mask), TILES).to_json()


def solve(name: str, mask: object) -> str:
    return iomodel.solve(name, call(mask), sram_bytes=100_000).to_json()


def refusal() -> str:
    try:
        iomodel.solve("flash2", call("full"), sram_bytes=10)
    except iomodel.InfeasibleError as error:
        return f"{error} {error.least}"
    raise AssertionError("ten bytes hold no tile")


def answers(threads: int) -> list[dict[str, str]]:
    """What each thread was told."""
    start, found = threading.Barrier(threads), [dict[str, str]() for _ in range(threads)]

    def ask(number: int) -> None:
        asked = questions()
        names = sorted(asked)
        start.wait()
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[number][name] = asked[name]()

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)  # so that threads meet in the middle of things
    told = answers(int(sys.argv[1]))
    assert all(one == told[0] for one in told[1:])
    assert told[0].keys() == questions().keys()
    sys.stdout.write(hashlib.sha256(str(sorted(told[0].items())).encode()).hexdigest())
