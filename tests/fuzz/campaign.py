"""The campaign: input `i` of seed `s` is always the same one, whatever went before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import iomodel
from tests.fuzz import calls, checkpoints, files, lines, questions, reports, serving, tools
from tests.fuzz.law import LIMIT, BrokenError, Case, held

SURFACES: dict[str, tuple[int, Callable[[Random], Case]]] = {
    "hardware files": (12, files.hardware),
    "model files": (8, files.model),
    "configs": (10, files.config),
    "sweep plans": (10, files.plan),
    "command lines": (6, lines.line),
    "quantisations": (6, checkpoints.quantisation),
    "stores": (1, checkpoints.store),
    "traces": (3, checkpoints.trace),
    "workloads": (9, calls.workload),
    "triton": (5, calls.triton),
    "simulations": (2, calls.simulation),
    "reports": (8, reports.report),
    "streams": (5, reports.stream),
    "engines": (6, reports.command),
    "serving": (4, serving.serving),
    "maps": (2, questions.tile_map),
    "formulas": (4, questions.formula),
    "requests": (5, questions.request),
    "tools": (5, tools.tool),
}
"""How often each surface is drawn, and what draws from it."""

OUTCOMES = {"exit 0": "answered", "exit 1": "refused", "exit 2": "refused", "taken, and its use refused": "refused"}
"""What tables call them."""


@dataclass
class Found:
    """What came of a campaign."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: list[tuple[int, Case, BaseException]] = field(default_factory=list)


def case(seed: int, number: int) -> Case:
    """One input of a campaign."""
    rng = Random(f"{seed}:{number}")
    weights = [weight for weight, _ in SURFACES.values()]
    _, draw = rng.choices(list(SURFACES.values()), weights)[0]
    return draw(rng)


def campaign(
    seed: int,
    numbers: range,
    found: Found,
    watch_every: int = 500,
    limit: float = LIMIT,
    begin: Callable[[int], object] = lambda number: None,
) -> Iterator[int]:
    """Run inputs one after the other; every so often, see that what is right is still answered the same.

    `begin` is told the number of each input before it is run.
    """
    before = still()
    for number in numbers:
        begin(number)
        drawn = case(seed, number)
        outcome, error = held(drawn, limit)
        found.outcomes[drawn.surface, OUTCOMES.get(outcome, outcome)] += 1
        if error is not None:
            found.broken.append((number, drawn, error))
        if number % watch_every == watch_every - 1 and still() != before:
            fault = BrokenError(
                f"an input from {number - watch_every + 1} on has changed what later calls are answered"
            )
            found.broken.append((number, drawn, fault))
            before = still()
        yield number


def still() -> tuple[object, ...]:
    """Answers that no other call may change."""
    call = iomodel.Attention(q_len=100, head_dim=16, heads=4, kv_heads=2, mask="causal")
    return (
        *(tuple(names()) for names in (iomodel.list_algorithms, iomodel.list_hardware, iomodel.list_models)),
        tuple(iomodel.__all__),
        *(
            iomodel.cost(name, call, {"block_q": 16, "block_kv": 8}).to_json()
            for name in ("flash1", "flash2", "split_kv")
        ),
        iomodel.solve("flash2", call, "h100-sxm5").to_json(),
        iomodel.estimate(
            "flash2",
            call.model_copy(update={"head_dim": 64, "value_dim": 64}),
            "h100-sxm5",
            {"block_q": 64, "block_kv": 32},
        ).to_json(),
        str(iomodel.expressions("flash2", "causal").hbm_bytes),
        iomodel.model("llama-3-8b").to_json(),
        str(iomodel.hardware("a100-sxm4-80gb")),
    )
