"""Answer to a question on a device: the fastest tiles of its kernels, or those of proven least traffic."""

from __future__ import annotations

from fractions import Fraction

from iomodel.algorithms import name_of
from iomodel.common.validation import as_integer
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.nests.implementation import DIRECTIONS, TEXTBOOK
from iomodel.placement.budget import budget_of
from iomodel.placement.implementations import no_kernel
from iomodel.solving.both_directions import solve_both
from iomodel.solving.fastest import solve_fastest
from iomodel.solving.fastest_layer import solve_layer
from iomodel.solving.on_device import solve_resident
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.solving.textbook import solve_textbook
from iomodel.solving.textbook_times import solve_on_textbook
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear


def answer(question: Question, objective: str | None = None, share: Fraction = Fraction(0), top: int = 1) -> Solution:
    """Find the best tiles of a question.

    Parameters
    ----------
    question : Question
        The call on a device.
    objective : {"time", "traffic"}, optional
        The quantity minimised; the time by default, where kernels of the device run the call.
    share : Fraction
        The share of the least traffic that may be given up for the largest block_kv [-].
    top : int
        Number of choices listed [-].
    """
    by_traffic = objective == "traffic" or bool(share)
    if not by_traffic and _runs_a_pass(question):
        return solve_both(question, lambda part: answer(part, top=top), top)
    kernels, wanted = question.kernels, question.implementation
    if isinstance(question.call, Linear) and (by_traffic or question.min_block_kv is not None):
        if wanted is not None and kernels:
            raise InputError(
                f"implementation: {kernels[0].name!r} given for least traffic; allowed: 'textbook', or by time"
            )
        kernels, wanted = [], TEXTBOOK
    if objective == "time" and (share or not kernels):
        obstacle = f"epsilon {float(share)}" if share else f"no implementation of {name_of(question.algorithm)}"
        raise InputError(
            f"objective: 'time' given with {obstacle}; allowed: with an implementation and without epsilon"
        )
    if as_integer("top", top) > 1 and (by_traffic or not kernels):
        raise InputError(f"top: {top} given; allowed: 1, unless an implementation is solved by time")
    failure: InfeasibleError | None = None
    for asked in map(question.by, kernels):
        if isinstance(question.call, Linear):
            return solve_layer(asked, top)
        try:
            return solve_resident(asked, share) if by_traffic else solve_fastest(asked, top)
        except InfeasibleError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    if as_integer("min_blocks_per_sm", question.min_blocks_per_sm) != 1:
        raise InputError(
            f"min_blocks_per_sm: {shown(question.min_blocks_per_sm)} given; allowed: with an implementation"
        )
    solution = solve_on_textbook(question) if wanted is None and objective is None and not share else None
    if solution is not None:
        return solution
    algorithm, call, device = question.algorithm, question.call, question.device
    notes = () if wanted is not None else (no_kernel(algorithm, call, device),)
    budget = budget_of(device, None, None, None)
    return solve_textbook(algorithm, call, budget, question.min_block_kv, share, question.options, notes)


def _runs_a_pass(question: Question) -> bool:
    """Check that a call goes in both directions, and that a kernel of the device runs one of them."""
    if not isinstance(question.call, Call) or question.call.direction != "both":
        return False
    return any(question.in_direction(direction, question.options).kernels for direction in DIRECTIONS)
