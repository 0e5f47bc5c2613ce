"""Estimates of algorithms on a device, in order of time."""

from __future__ import annotations

from collections.abc import Sequence

from iomodel.algorithms import name_of
from iomodel.errors import InfeasibleError, InputError
from iomodel.placement.implementations import no_kernel
from iomodel.solving.default_kernel import absence, without_kernels
from iomodel.solving.question import Question
from iomodel.studies.comparison import Absent, Comparison, approximations, ordered
from iomodel.studies.estimate import estimated


def by_time(questions: Sequence[Question]) -> Comparison:
    """Estimate each contender that a kernel runs; InfeasibleError if no exact algorithm fits."""
    estimates, absent = [], []
    least: list[InfeasibleError] = []
    for question in questions:
        name, device = name_of(question.algorithm), question.device
        if question.implementation is None and without_kernels(question):
            absent.append(Absent(name, device.label, no_kernel(question.algorithm, question.call, device), runs=False))
            continue
        try:
            estimates.append(estimated(question))
        except InfeasibleError as error:
            absent.append(Absent(name, device.label, str(error), error.least))
            if not question.algorithm.approximates:
                least.append(error)
    inexact = approximations(name_of(question.algorithm) for question in questions)
    if all(candidate.algorithm in inexact for candidate in estimates):
        if not least:
            raise InputError(absence(next(q for q in questions if not q.algorithm.approximates)))
        raise min(least, key=lambda error: error.least)
    absent.sort(key=lambda one: not one.runs)
    return Comparison(questions[0].call, "time", ordered(estimates, "time"), tuple(absent), inexact)
