"""Comparison of algorithms on one workload: at their best tiles under one budget, or by their time on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from iomodel.algorithms import AlgorithmLike, implementation_name, list_algorithms, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import check_options, known_options, only_taken
from iomodel.counting.requirements import check_numbers
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import has_rates
from iomodel.errors import InfeasibleError, InputError, IOModelError, UnknownKeywordError, UnknownNameError, shown
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.placement.budget import Budget, BudgetOptions, budget_in, budget_of, takes_budget
from iomodel.placement.implementations import named
from iomodel.solving.answer import answer
from iomodel.solving.default_tiles import absence
from iomodel.solving.question import Question
from iomodel.solving.solve import share_of
from iomodel.studies.comparison import Absent, Comparison, approximations, ordered
from iomodel.studies.estimate import estimated
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.call import Call
from iomodel.workloads.workload import Shape, Workload, as_workload

NAMED = 5
"""Most algorithms that an error names."""


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
            absent.append(Absent(name, device.label, str(error), error.least, implementation=_asked(question)))
            if not question.algorithm.approximates:
                least.append(error)
        except InputError as error:
            if question.implementation is None or _runs(question):
                raise
            absent.append(Absent(name, device.label, str(error), runs=False, implementation=_asked(question)))
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


def having(implementation: str, algorithms: Sequence[AlgorithmLike]) -> list[AlgorithmLike]:
    """Select the algorithms that have an implementation; UnknownNameError if none has."""
    names = {name: [known.name for known in find_algorithm(name).implementations] for name in algorithms}
    chosen = [
        name
        for name in algorithms
        if isinstance(implementation, str) and implementation_name(implementation, find_algorithm(name)) in names[name]
    ]
    if not chosen:
        known = sorted({known for each in names.values() for known in each})
        raise UnknownNameError("implementation", implementation, [*known, TEXTBOOK.name])
    return chosen


def _named(algorithms: object, hardware: Hardware | str | None) -> list[AlgorithmLike]:
    """Return the names of a sequence of algorithms; InputError if two have the same name."""
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence) or not algorithms:
        raise InputError(f"algorithms: {shown(algorithms)} given; allowed: a list of names or of Algorithm objects")
    names = [_label(algorithm, hardware) for algorithm in algorithms]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"algorithms: {name!r} given twice; allowed: each name once")
    return [*names]


def _label(algorithm: AlgorithmLike, hardware: Hardware | str | None) -> str:
    """Return the name of an algorithm, or that of kernels as their declaration spells it."""
    kernels = named(algorithm, None, hardware)[1]
    return name_of(algorithm) if kernels is None else str(kernels)


@strict
@takes_budget
def compare(
    workload: Workload,
    hardware: Hardware | str | Sequence[Hardware | str] | None = None,
    *,
    implementation: str | None = None,
    objective: Literal["traffic", "time"] | None = None,
    min_block_kv: int | None = None,
    epsilon: float = 0.0,
    approximate: bool = False,
    algorithms: Sequence[AlgorithmLike] | None = None,
    **options: Any,
) -> Comparison:
    """Solve every algorithm that supports the direction and features of a call, on one device or under one budget.

    Parameters
    ----------
    workload : Attention, VarlenAttention or Linear
        The call; a linear layer has the algorithm "gemm".
    hardware : Hardware, str, or several, optional
        A device, or a bare budget in its place; or several devices in a list, compared in one order.
    min_block_kv, epsilon
        As in :func:`iomodel.solve`; min_block_kv concerns the algorithms that have a block_kv.
    implementation : str, optional
        An implementation; the algorithms that have it are compared. By default each algorithm takes the default one of
        :func:`iomodel.estimate`; algorithms whose kernels do not run the call there have no time. ``"textbook"``
        compares the traffic of all, each in one memory of the same size.
    objective : {"time", "traffic"}, optional
        The quantity minimised: the time of :func:`iomodel.estimate` on `hardware`, or the bytes on the textbook's
        machine. The time by default on a device, where budgets and options of the solver are refused; the traffic under
        a bare budget, with options of the solver, for sequences of different lengths, and on a device whose file lacks
        the matrix peak of the dtype or the bandwidth.
    approximate : bool
        List approximate algorithms beside the exact ones, marked; they are never the `best`. By default those that
        `algorithms` does not name are left out, because they change the outputs of the model.
    algorithms : sequence of str or Algorithm, optional
        The algorithms, or kernels as "flash4", to compare, each with an answer or the reason why it has none; all of
        :func:`iomodel.list_algorithms` by default, for traffic those with tiles.
    **options
        Options, each passed to the algorithms that take it.

    Raises
    ------
    InfeasibleError
        No exact algorithm fits; its `least` is the smallest feasible budget.
    UnknownNameError, InputError
        An option that no algorithm takes; a value out of range; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> c = compare(iomodel.Attention(q_len=4096, head_dim=64), sram_elements=51200)
    >>> c.by, c.entries[0].algorithm
    ('traffic', 'flash2')
    >>> w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    >>> [(one.hardware, one.algorithm) for one in compare(w, ["h100-sxm5", "b200"]).entries[:2]]
    [('b200', 'flash2'), ('b200', 'split_kv')]
    """
    workload = as_workload(workload)
    if isinstance(hardware, Sequence) and not isinstance(hardware, str):
        more: dict[str, Any] = {"implementation": implementation, "approximate": approximate, **options}
        more |= {"algorithms": algorithms, "min_block_kv": min_block_kv, "epsilon": epsilon}
        return _on_devices(workload, hardware, objective, partial(compare, **more))
    if objective is not None and (not isinstance(objective, str) or objective not in ("traffic", "time")):
        raise UnknownNameError("objective", objective, ["traffic", "time"])
    memory, share = budget_in(options), share_of(epsilon)
    others = {"min_block_kv": min_block_kv, "epsilon": share or None}
    typed = [*memory, *(name for name, value in others.items() if value is not None)]
    textbook = isinstance(implementation, str) and implementation == TEXTBOOK.name
    if objective is None and not textbook and not typed and isinstance(workload, Shape) and hardware is not None:
        by_default = implementation is not None or has_rates(as_device(hardware), workload.dtype)
        objective = "time" if by_default else "traffic"
    names: list[AlgorithmLike] = [*list_algorithms(workload)] if algorithms is None else _named(algorithms, hardware)
    listed = algorithms is not None
    wanted = True if listed and isinstance(approximate, bool) else approximate
    if implementation is not None and not textbook:
        names, listed = having(implementation, names), True
    if objective == "time":
        if typed or hardware is None or textbook:
            obstacle = typed or ("implementation 'textbook'" if textbook else "no hardware")
            raise InputError(f"objective: 'time' given with {obstacle}; allowed: with hardware alone")
        call = as_attention(workload) if isinstance(workload, Call) else workload
        asked = {name: Question.ask(name, call, hardware, implementation) for name in names}
        return by_time(*contenders(asked, wanted, listed, options))
    if implementation is not None and not textbook:
        raise InputError(f"implementation: {implementation!r} given for traffic; allowed: 'textbook', or by time")
    budget = budget_of(hardware, *(memory.get(name) for name in BudgetOptions.__annotations__))
    asked = {name: Question.ask(name, workload, hardware, TEXTBOOK, memory=FrozenDict(memory)) for name in names}
    able, refused = contenders(asked, wanted, listed, options)
    tiled = [question for question in able if listed or question.bound.tiles]
    return by_traffic([replace(question, min_block_kv=min_block_kv) for question in tiled], budget, share, refused)


def contenders(
    asked: Mapping[AlgorithmLike, Question], approximate: bool, listed: bool, options: Mapping[str, Any]
) -> tuple[list[Question], tuple[Absent, ...]]:
    """Select the questions whose algorithm answers the call, each with the options that the algorithm takes.

    Approximate algorithms are included on request. `listed` is true if the caller named the algorithms or their
    kernels: those that do not answer the call are then returned too, with the reason.

    Raises
    ------
    InputError, UnknownKeywordError
        No algorithm answers the call, or none takes an option.
    """
    if not isinstance(approximate, bool):
        raise InputError(f"approximate: {shown(approximate)} given; allowed: True or False")
    call = next(iter(asked.values())).call
    exact = {name: each for name, each in asked.items() if approximate or not each.algorithm.approximates}
    able = {name: each for name, each in exact.items() if _covered(each) is None}
    if listed and all(each.algorithm.approximates for each in able.values()):
        reasons = {name: _covered(each) or "approximates attention" for name, each in asked.items()}
        told = "; ".join(f"{name}, {reason}" for name, reason in reasons.items())
        raise InputError(f"algorithms: none of those given answers the call exactly ({told}); allowed: one that does")
    if not able:
        kind = kind_of(call)
        features = ", ".join(kind.features)
        raise InputError(f"direction: {kind.direction} given with {features}; no algorithm has all of it")
    known = known_options(able, call.direction)
    for option in options:
        if option not in known:
            named = [*able] if len(able) <= NAMED else [*[*able][: NAMED - 1], f"{len(able) - NAMED + 1} others"]
            raise UnknownKeywordError(f"option of {', '.join(map(str, named))}", option, known)
    chosen = [each.choosing(only_taken(each.algorithm, call.direction, options)) for each in able.values()]
    obstacles = [(each, _covered(each) or _unmet(each)) for each in (*chosen, *exact.values())]
    absent = {name_of(each.algorithm): _absent(each, reason) for each, reason in obstacles if reason} if listed else {}
    return [each for each in chosen if _unmet(each) is None], tuple(absent.values())


def _asked(question: Question) -> str | None:
    """Return the name of the kernels that were asked for, if any were."""
    wanted = question.implementation
    return wanted.name if isinstance(wanted, Implementation) else wanted


def _absent(question: Question, reason: str) -> Absent:
    device = None if question.hardware is None else question.hardware.label
    return Absent(name_of(question.algorithm), device, reason, runs=False, defined=False)


def by_traffic(
    questions: Sequence[Question], budget: Budget, share: Fraction, refused: tuple[Absent, ...]
) -> Comparison:
    """Solve each contender under the budget for its traffic; InfeasibleError if no exact algorithm fits."""
    inexact = approximations(question.name for question in questions)
    solutions, infeasible = [], []
    for question in questions:
        least_kv = question.min_block_kv if "block_kv" in question.bound.tiles else None
        try:
            solutions.append(answer(replace(question, min_block_kv=least_kv), share=share))
        except InfeasibleError as error:
            label = None if question.hardware is None else question.hardware.label
            infeasible.append(Absent(question.name, label, str(error), error.least))
    infeasible.sort(key=lambda unfit: unfit.least or 0)
    if all(solution.algorithm in inexact for solution in solutions):
        least, unit = next(unfit for unfit in infeasible if unfit.algorithm not in inexact), budget.unit
        none = "none that is exact" if inexact else "none"
        raise InfeasibleError(
            f"algorithm: {none} fits {budget}; the smallest feasible budget is {least.least:,} {unit} "
            f"({least.algorithm})",
            least=least.least or 0,
            unit=unit,
        )
    absent = (*infeasible, *refused)
    return Comparison(questions[0].call, "traffic", ordered(solutions, "traffic"), absent, inexact, budget)


def _on_devices(
    workload: Workload, devices: Sequence[Hardware | str], objective: str | None, one: Callable[..., Comparison]
) -> Comparison:
    """Compare on each device by the same quantity; raise the first error if no device has an answer."""
    if not devices:
        raise InputError(f"hardware: {shown(devices)} given; allowed: at least one device")
    known = [as_device(device) for device in devices]
    labels = [device.label for device in known]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"hardware: {label!r} given twice; allowed: each device once")
    timed = objective is None and any(has_rates(device, workload.dtype) for device in known)
    parts, refused, errors = [], [], []
    for device in known:
        try:
            parts.append(one(workload, device, objective="time" if timed else objective))
        except IOModelError as error:
            if not isinstance(error, InfeasibleError) and (not timed or has_rates(device, workload.dtype)):
                raise
            refused.append(Absent(None, device.label, str(error)))
            errors.append(error)
    if not parts:
        raise errors[0]
    return Comparison.joined(parts, refused)


def _covered(question: Question) -> str | None:
    """Return the reason why an algorithm does not cover the direction, mask or features of the call."""
    return _reason(partial(check_kind, question.algorithm, kind_of(question.call)))


def _unmet(question: Question) -> str | None:
    """Return the reason why an approximate algorithm refuses these lengths, such as self-attention of few rows."""
    declaration, call = question.algorithm, question.call
    if not declaration.approximates:
        return None
    if not isinstance(call, Attention):
        return f"sequences of different lengths given; {name_of(declaration)} takes one length"
    complete = check_options(declaration, question.options, direction=call.direction)
    return _reason(partial(check_numbers, declaration, {**call.numbers, "mask": call.mask, **complete}))


def _reason(check: Callable[[], None]) -> str | None:
    """Return the message of a check that refuses; None where the check passes."""
    try:
        check()
    except InputError as error:
        return str(error)
    return None
