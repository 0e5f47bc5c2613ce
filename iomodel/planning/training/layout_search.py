"""The search over the layouts of a training step, where none is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.models.spec import ModelSpec
from iomodel.planning.formatting import layout_text
from iomodel.planning.layouts import MOST_RANKS, SERVER, every_layout
from iomodel.planning.step.layout import Layout, has_experts
from iomodel.planning.step.links import has_link
from iomodel.planning.training.training_result import TrainingStep

Timer = Callable[[Layout, int], TrainingStep]
"""The step of a layout and a number of replicas; InputError where the model or the batch does not divide."""


def fastest(
    step: Timer, model: ModelSpec, device: Hardware, start: Layout, count: int | None, replicas: int | None
) -> TrainingStep:
    """Return the fastest step that fits `count` devices, by default the least power of two.

    Where no step fits, it is that with the least memory of `count` devices, or that of one device for each replica.
    Layouts are in nodes like those of `start`.
    """
    one = start.divided(tensor_parallel=1)
    if not has_link(device):
        return step(one, replicas or count or 1)
    alone = step(one, 1)
    if alone.fits is not False and count is None and replicas is None:
        return alone
    kept = alone.memory.parameters + alone.memory.gradients + alone.memory.optimizer
    numbers = [(replicas or 1) << power for power in range(MOST_RANKS.bit_length())] if count is None else [count]
    for number in numbers:
        if count is None and alone.capacity is not None and kept > alone.capacity * number:
            continue
        steps = list(_steps(step, model, start, number, replicas))
        if fits := [each for each in steps if each.fits is not False]:
            best = min(fits, key=lambda each: (each.seconds, each.layout.devices))
            found = f"{layout_text(best.layout)}, {best.data_parallel:,} replica{'s' * (best.data_parallel > 1)}"
            if count is not None:
                return replace(best, assumed=(f"{found}: the fastest of {len(fits):,} layouts that fit",))
            if number == replicas:
                return best
            return replace(best, assumed=(f"{number:,} devices ({found}), for half as many do not hold the step",))
        if count is not None and steps:
            return min(steps, key=lambda each: each.memory.total)
    return step(one, replicas or count or 1)


def _steps(step: Timer, model: ModelSpec, start: Layout, number: int, replicas: int | None) -> Iterator[TrainingStep]:
    """Time the layouts that divide some devices, and the model and the batch among them; sequences if nothing else."""
    divided = [layout for layout in every_layout(model, number, start) if layout.tensor_parallel <= SERVER]
    pieces = [1] if has_experts(model) else [1 << power for power in range(SERVER.bit_length())]
    for piece in pieces:
        found = False
        for layout in divided:
            whole = layout.model_copy(update={"context_parallel": piece})
            if number % whole.devices or replicas not in (None, number // whole.devices):
                continue
            with suppress(InputError):
                timed = step(whole, number // whole.devices)
                found = found or timed.fits is not False
                yield timed
        if found:
            return
