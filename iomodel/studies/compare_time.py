"""Estimates of algorithms on a device, in order of time."""

from __future__ import annotations

from collections.abc import Sequence

from iomodel.errors import InfeasibleError, InputError
from iomodel.solving.default_tiles import absence
from iomodel.solving.question import Question
from iomodel.studies.comparison import Absent, Comparison, approximations, ordered
from iomodel.studies.estimate import estimated
from iomodel.timing.estimate_result import Estimate


def by_time(questions: Sequence[Question], others: Sequence[Absent] = ()) -> Comparison:
    """Estimate each contender that a kernel runs, equal ones once; InfeasibleError if no exact algorithm fits.

    `others` do not answer the call.
    """
    estimates, absent = list[Estimate](), [*others]
    least, refused = list[InfeasibleError](), list[InputError]()
    for question in questions:
        name, device = question.name, question.device
        if question.implementation is None and question.lacks_kernels:
            absent.append(Absent(name, device.label, question.no_kernel, runs=False))
            continue
        try:
            answer = estimated(question)
            if all(_told(answer) != _told(other) for other in estimates):
                estimates.append(answer)
        except InfeasibleError as error:
            absent.append(Absent(name, device.label, str(error), error.least))
            if not question.algorithm.approximates:
                least.append(error)
        except InputError as error:
            if question.implementation is None or _runs(question):
                raise
            absent.append(Absent(name, device.label, str(error), runs=False))
            refused.append(error)
    inexact = approximations(question.name for question in questions)
    if all(candidate.algorithm in inexact for candidate in estimates):
        if not least and refused:
            raise refused[0]
        if not least:
            raise InputError(absence(next(q for q in questions if not q.algorithm.approximates)))
        raise min(least, key=lambda error: error.least)
    absent.sort(key=lambda one: not one.runs)
    return Comparison(questions[0].call, "time", ordered(estimates, "time"), tuple(absent), inexact)


def _runs(question: Question) -> bool:
    """Check whether the kernels that a question names run its call on its device."""
    try:
        return bool(question.kernels)
    except InputError:
        return False


def _told(answer: Estimate) -> tuple[object, ...]:
    """Return what tells the answers of a comparison apart: two names may mean the same kernel."""
    return answer.algorithm, answer.implementation, answer.tiles, answer.seconds
