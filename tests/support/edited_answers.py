"""Times of drawn questions on devices with one figure that is better or worse."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import iomodel
from iomodel import Hardware, IOModelError
from iomodel.kernels import implementation
from tests.support.answers import made
from tests.support.device_edits import bettered, directed
from tests.support.drawn_questions import KINDS, Draw, Question
from tests.support.public_names import PUBLIC

SHARES = {"estimate": 8, "layers": 8, "solve time": 2, "step": 3, "train_step": 1, "plan": 0.5}
"""Share of the kinds of questions in a campaign."""
EXACT = 1e-9
"""Rounding of a time at fixed tiles [-]."""
TIES = 1.005**2 - 1
"""Most by which a chosen kernel at a chosen tile is slower than the fastest: a tie margin of `solve` for each [-]."""
DTYPES = ("bf16", "fp16", "fp8", "int8", "tf32", "fp32")
WHAT_FITS = ("limits.", "memory.sram.", "memory.accumulator.", "memory.registers.", "compute.units")
"""Figures by which the rules of libraries choose tiles and splits, which are not always the fastest."""


@dataclass(frozen=True)
class Edit:
    """An edit of a figure of a device, a question, and the times before and after, in the better direction [s]."""

    device: str
    path: str
    factor: float
    question: Question
    worse: float
    better: float
    slack: float

    @property
    def ratio(self) -> float:
        """The time on the better device over that on the worse one [-]."""
        return self.better / self.worse

    @property
    def holds(self) -> bool:
        """True unless the better device is slower beyond the slack."""
        return self.ratio <= 1 + self.slack


@dataclass(frozen=True)
class Side:
    """A device, and its answer to a question; None where it refuses the question."""

    device: Hardware
    found: Any


def drawn(r: Draw, kind: str) -> Question:
    """Draw a question of a kind that has a time."""
    while True:
        question = KINDS[kind][1](r)
        name, _, named = question
        if name in ("estimate", "step", "train_step", "plan") or (name == "solve" and "objective" not in named):
            return question


def on(question: Question, r: Draw, device: Hardware) -> Question:
    """Put a question in a type that the device multiplies, if it has the place for it."""
    name, arguments, named = question
    on_file = [dtype for dtype in DTYPES if f"compute.peak.{dtype}" in device.quantities]
    if on_file and name in ("estimate", "solve") and arguments[1].get("dtype", "bf16") not in on_file:
        arguments[1]["dtype"] = r.choice(on_file)
    elif on_file and name in ("step", "plan", "train_step") and "bf16" not in on_file:
        named["dtype"] = on_file[0]
    return question


def answer(question: Question, device: Hardware, **more: Any) -> Any:
    """The answer to a question on a device, or None where it is refused."""
    name, arguments, named = question
    place = 1 if name in ("step", "train_step", "plan") else 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PUBLIC[name](*made(arguments[:place]), device, **{**made(named), **more})
    except IOModelError:
        return None


def seconds(question: Question, found: Any, without_attention: bool) -> float:
    """The time of an answer; of a plan and a step, whose devices may be searched, that on each of its devices [s]."""
    if question[0] == "plan":
        return found.count / float(found.tokens_per_second)
    devices = found.layout.devices if question[0] == "step" else 1
    return float(devices * (found.seconds - (found.attention_seconds if without_attention else 0)))


def compared(question: Question, worse: Side, better: Side, path: str) -> tuple[float, float] | None:
    """The times of a question on two devices; None where one of them refuses it, or has no time.

    A library's rule may choose a slower tile on the better device: the better device then runs that of the worse one.
    The parts of a step beside attention, which has such rules, are compared where a figure is one that they ask.
    """
    name, by_rules = question[0], path.startswith(WHAT_FITS)
    if worse.found is None or better.found is None or (by_rules and name in ("train_step", "plan")):
        return None
    if name == "solve" and better.found.known_seconds is None:
        return None
    if name == "step" and worse.found.layout.devices == 1 < better.found.layout.devices:
        return None  # no layout of the worse device holds the model, which is then timed as if one device held it
    beside = by_rules and name == "step"
    slow, fast = (seconds(question, each.found, beside) for each in (worse, better))
    if name == "estimate" and fast > slow and (ruled(worse.found) or ruled(better.found)):
        found = worse.found
        kernels = {"implementation": found.implementation, "tiles": found.tiles, **found.cost.options}
        at_same = answer(question, better.device, **kernels)
        return None if at_same is None else (slow, at_same.seconds)
    return slow, fast


def ruled(found: Any) -> bool:
    """Check that the tile of an estimate is that of a library that has a rule for tiles."""
    known = (implementation(found.algorithm, name) for name in iomodel.list_implementations(found.algorithm))
    return any(each.tiles and each.name in found.implementation for each in known)


def slack(question: Question) -> float:
    """The most by which a better device may be slower: rounding, or ties where tiles or kernels are chosen."""
    name, _, named = question
    return EXACT if name == "estimate" and "tiles" in named and "implementation" in named else TIES


def edits(seed: int, number: int, each: int = 8, kind: str | None = None) -> Iterator[Edit]:
    """Draw a question and a device, and edit figures of the device one at a time."""
    r = Draw(f"edits {seed} {number}")
    kind = kind or r.choices(list(SHARES), list(SHARES.values()))[0]
    name = r.choice(iomodel.list_hardware())
    device = iomodel.hardware(name)
    question = on(drawn(r, kind), r, device)
    known = Side(device, answer(question, device))
    if known.found is None or (question[0] == "solve" and known.found.implementation == "textbook"):
        return
    if question[0] == "solve":  # the fastest tile of the same kernel
        question[2]["implementation"] = known.found.implementation
    paths = directed(device)
    for path in r.sample(paths, min(each, len(paths))):
        factor = math.exp(r.uniform(-2, 2)) if r.chance(0.7) else r.choice((0.5, 2, 4))
        changed = bettered(device, path, factor)
        other = Side(changed, answer(question, changed))
        times = compared(question, *((known, other) if factor > 1 else (other, known)), path)
        if times is not None:
            yield Edit(name, path, factor, question, *times, slack(question))
