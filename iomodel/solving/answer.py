"""Answer to a question: the fastest tiles of the kernels of a device, or those of proven least traffic."""

from __future__ import annotations

from fractions import Fraction

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown
from iomodel.nests.implementation import TEXTBOOK
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear


def answer(question: Question, objective: str | None = None, share: Fraction = Fraction(0), top: int = 1) -> Solution:
    """Find the best tiles of a question.

    Parameters
    ----------
    question : Question
        The call, on a device or under a budget.
    objective : {"time", "traffic"}, optional
        The quantity minimised; the time by default, where kernels of the device run the call.
    share : Fraction
        The share of the least traffic that may be given up for the largest block_kv [-].
    top : int
        Number of choices listed [-].
    """
    by_traffic = objective == "traffic" or bool(share)
    if not by_traffic and isinstance(question.call, Call):
        from iomodel.solving.default_tiles import check_kernels  # imports the time model

        check_kernels(question)
    if not by_traffic and question.runs_a_pass:
        _check_memory(question)
        from iomodel.solving.both_directions import solve_both  # imports the time model

        return solve_both(question, lambda part: answer(part, top=top), top)
    kernels, wanted = question.kernels, question.implementation
    if isinstance(question.call, Linear) and (by_traffic or question.min_block_kv is not None):
        if wanted is not None and kernels:
            raise InputError(
                f"implementation: {kernels[0].name!r} given for least traffic; allowed: 'textbook', or by time"
            )
        question, kernels, wanted = question.by(TEXTBOOK), [], TEXTBOOK
    if kernels:
        _check_memory(question)
    if objective == "time" and (share or not kernels):
        obstacle = f"epsilon {float(share)}" if share else f"no implementation of {question.name}"
        able = "with an implementation and without epsilon"
        allowed = able if question.algorithm.implementations else "'traffic' (iomodel.estimate has the time)"
        raise InputError(f"objective: 'time' given with {obstacle}; allowed: {allowed}")
    if as_integer("top", top) > 1 and (by_traffic or not kernels):
        raise InputError(f"top: {top} given; allowed: 1, unless an implementation is solved by time")
    if kernels:
        return _by_kernels(question, share, top, by_traffic)
    from iomodel.solving.textbook import solve_textbook

    if question.least_blocks != 1:
        raise InputError(
            f"min_blocks_per_sm: {shown(question.min_blocks_per_sm)} given; allowed: with an implementation"
        )
    if wanted is not None:
        return solve_textbook(question, share)
    if objective is None and not share:
        from iomodel.solving.descent import solve_on_textbook  # imports the time model

        solution = solve_on_textbook(question)
        if solution is not None:
            return solution
    return solve_textbook(question, share, notes=(question.no_kernel,))


def _by_kernels(question: Question, share: Fraction, top: int, by_traffic: bool) -> Solution:
    """Find the best tiles of the default implementation, or of the next in which one fits."""
    if isinstance(question.call, Linear):
        from iomodel.solving.fastest_layer import solve_layer  # imports the time model

        return solve_layer(question.by(question.kernels[0]), top)
    from iomodel.solving.fastest import solve_fastest  # imports the time model
    from iomodel.solving.on_device import solve_resident

    return question.by_first(lambda asked: solve_resident(asked, share) if by_traffic else solve_fastest(asked, top))


def _check_memory(question: Question) -> None:
    """Raise InputError for a bare budget beside the kernels of a device."""
    if question.memory:
        raise InputError("implementation: given with sram_bytes, sram_elements or alignment; allowed: with hardware")
