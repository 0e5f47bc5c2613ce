"""The implementations of an algorithm: those that a device can run, and the one that is taken by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iomodel.algorithms import (
    AlgorithmLike,
    answering,
    check_on_file,
    implementation_name,
    schedule_and_kernels,
    sharing,
)
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import has_rates
from iomodel.errors import InputError, IOModelError, SpecError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import DIRECTIONS, TEXTBOOK, Implementation
from iomodel.placement.front_ends import refused
from iomodel.placement.implementation_file import is_file, read_implementation
from iomodel.placement.placement import KernelKey, layouts_for
from iomodel.placement.supported import runs_on
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.linear import Linear, as_linear
from iomodel.workloads.workload import Workload


@strict
def implementation(algorithm: AlgorithmLike, name: str) -> Implementation:
    """Look up an implementation of an algorithm by name.

    Raises
    ------
    UnknownNameError
        The algorithm has no implementation of this name.

    Examples
    --------
    >>> sorted(implementation("flash3", "flash-attention-3").residency)
    ['backward', 'forward']
    """
    declaration = find_algorithm(algorithm)
    name = implementation_name(name, declaration)
    known = {known.name: known for known in (*declaration.implementations, TEXTBOOK)}
    if isinstance(name, str) and name not in known:
        check_on_file("implementation", name)
    return known[as_choice(f"implementation of {declaration}", name, known)]


@strict
def list_implementations(
    algorithm: AlgorithmLike, hardware: Hardware | str | None = None, workload: Attention | Linear | None = None
) -> list[str]:
    """List the implementations of an algorithm, in the order of declaration.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    hardware : Hardware or str, optional
        A device; only what it can run is listed, without releases that a later one replaced.
    workload : Attention or Linear, optional
        A call; only what supports its direction, dtype and widths is listed. By default a call of 128-wide rows in
        bf16.

    Raises
    ------
    UnknownNameError
        An unknown algorithm or device.

    Examples
    --------
    >>> list_implementations("flash3", "h100-sxm5")
    ['flash-attention-3', 'cudnn-hopper', 'textbook']
    >>> list_implementations("flash3", "b200")
    ['textbook']
    >>> list_implementations("gemm", "b200")
    ['vendor-blas', 'textbook']
    """
    declaration = find_algorithm(algorithm)
    if hardware is None:
        return [known.name for known in (*declaration.implementations, TEXTBOOK)]
    device = as_device(hardware)
    call: Attention | Linear
    if declaration.answers == "linear":
        call = Linear(rows=1, in_features=128, out_features=128) if workload is None else as_linear(workload)
    else:
        call = Attention(q_len=1, head_dim=128) if workload is None else as_attention(workload)
    return [*(known.name for known in current(_running(device, declaration, call))), TEXTBOOK.name]


def named(algorithm: AlgorithmLike, kernels: Any, hardware: Hardware | str | None) -> tuple[Algorithm, Any]:
    """Return the algorithm of a name, and its kernels if it names some: of several that share it, those of a device.

    >>> [named("cudnn", None, name)[1] for name in ("h100-sxm5", "b200")]
    ['cudnn-hopper', 'cudnn-blackwell']
    """
    if hardware is not None and (shared := sharing(algorithm)):
        device = as_device(hardware)
        algorithm = next((known.name for known in shared if _has_layout(known, DIRECTIONS, device)), algorithm)
    return schedule_and_kernels(algorithm, kernels)


def current(kernels: Sequence[Implementation]) -> list[Implementation]:
    """Leave out superseded implementations, unless there are no others."""
    return [known for known in kernels if not known.superseded] or list(kernels)


def refusal(
    algorithm: Algorithm,
    workload: Attention,
    hardware: Hardware,
    implementation: Implementation,
    options: Mapping[str, Any] = FrozenDict(),
) -> InputError | SpecError | None:
    """Return the reason for which an implementation does not run a workload on a device; None if it does."""
    try:
        layouts_for(algorithm, workload, hardware, implementation)
    except (InputError, SpecError) as error:
        return error
    return refused(implementation, workload, options, f"{implementation.name} of {algorithm}")


def implementations_for(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware,
    requested: object = None,
    options: Mapping[str, Any] = FrozenDict(),
) -> list[Implementation]:
    """Return the implementations to try for a workload on a device, in order; none for the textbook's.

    A requested implementation that does not run there is refused in an error that names those that do.
    """
    declaration, longest = find_algorithm(algorithm), workload.longest
    chosen = _requested(declaration, requested)
    if chosen is None:
        able = current(_running(hardware, declaration, longest))
        if not options or not isinstance(longest, Attention):
            return able
        return [known for known in able if refused(known, longest, options, known.name) is None]
    if chosen == TEXTBOOK or (isinstance(longest, Attention) and not chosen.residency):
        return []
    if not isinstance(longest, Attention):
        running = _running(hardware, declaration, longest)
        if chosen not in running:
            others = ", ".join(repr(known.name) for known in (*running, TEXTBOOK))
            raise InputError(f"implementation: {chosen.name!r} given; allowed: {others}, for {declaration}")
        return [chosen]
    reason = refusal(declaration, longest, hardware, chosen, options)
    if reason is not None:
        others = ", ".join(list_implementations(declaration, hardware, longest))
        raise type(reason)(f"{reason}; implementations that run: {others}{_elsewhere(declaration, longest, hardware)}")
    return [chosen]


def _elsewhere(algorithm: Algorithm, call: Attention, hardware: Hardware) -> str:
    """Name the kernels of other algorithms that run a call where an algorithm has none."""
    if _running(hardware, algorithm, call):
        return ""
    running = {known.name: current(_running(hardware, known, call)) for known in answering(call)}
    named = {name: ", ".join(known.name for known in kernels) for name, kernels in running.items()}
    return "".join(f"; of {name}: {kernels}" for name, kernels in named.items() if kernels)


def _running(hardware: Hardware, algorithm: Algorithm, call: Workload) -> tuple[Implementation, ...]:
    """Return the implementations that run a call on a device, those of a linear layer if its products have a rate."""
    if isinstance(call, Attention):
        able = _able(hardware, algorithm, KernelKey.of(call))
        return tuple(known for known in able if refused(known, call, FrozenDict(), known.name) is None)
    rated = isinstance(call, Linear) and has_rates(hardware, call.dtype)
    return tuple(algorithm.implementations) if rated else ()


@per_device
def _able(hardware: Hardware, algorithm: Algorithm, asked: KernelKey) -> tuple[Implementation, ...]:
    """Return the implementations that run a kind of call on a device."""
    call = asked.example
    # Kernels for other devices are left out first: their refusals name every device that runs them.
    here = (known for known in algorithm.implementations if _has_layout(known, (call.direction,), hardware))
    return tuple(able for able in here if _laid_out(algorithm, call, hardware, able))


def _laid_out(algorithm: Algorithm, call: Attention, hardware: Hardware, kernels: Implementation) -> bool:
    """Check that an implementation has layouts of a call for a device."""
    try:
        layouts_for(algorithm, call, hardware, kernels)
    except (InputError, SpecError):
        return False
    return True


def _has_layout(kernels: Implementation, passes: Sequence[str], hardware: Hardware) -> bool:
    """Check that an implementation has a layout of one of these passes for a device."""
    layouts = (layout for name in passes for layout in kernels.residency.get(name, ()))
    return any(runs_on(layout, hardware) for layout in layouts)


def _requested(algorithm: Algorithm, requested: object) -> Implementation | None:
    if requested is None or isinstance(requested, Implementation):
        return requested
    if not isinstance(requested, str):
        allowed = "a name, as 'textbook', a YAML file, or an iomodel.kernels.Implementation"
        raise InputError(f"implementation: {shown(requested)} given; allowed: {allowed}")
    return read_implementation(requested) if is_file(requested) else implementation(algorithm, requested)


def implementation_for(
    algorithm: AlgorithmLike, workload: Workload, hardware: Hardware, requested: object = None
) -> Implementation:
    """Return the requested implementation, by default the first that runs a workload on a device.

    The textbook's is taken where no kernel is known.
    """
    return next(iter(implementations_for(algorithm, workload, hardware, requested)), TEXTBOOK)


def check_layer_kernels(algorithm: AlgorithmLike, layer: Linear, hardware: Hardware, requested: object) -> None:
    """Raise InputError for an implementation that gives no time of a linear layer."""
    if requested is not None and not implementations_for(algorithm, layer, hardware, requested):
        allowed = ", ".join(list_implementations(algorithm, hardware, layer)[:-1]) or "none"
        raise InputError(f"implementation: 'textbook' given; allowed: {allowed}, for a time of a linear layer")


def lacks_kernels(algorithm: AlgorithmLike, workload: Workload, hardware: Hardware) -> bool:
    """Check that an algorithm declares kernels of attention, and none of them runs a pass of a call on a device."""
    declaration, longest = find_algorithm(algorithm), workload.longest
    if not declaration.implementations or not isinstance(longest, Attention):
        return False
    passes = DIRECTIONS if longest.direction == "both" else (longest.direction,)
    return not all(
        _running(hardware, declaration, longest.model_copy(update={"direction": direction})) for direction in passes
    )


def refusal_on(algorithm: Algorithm, workload: Workload, hardware: Hardware) -> IOModelError | None:
    """Return the reason for which the kernels of an algorithm for a device refuse a call; None without any for it."""
    longest = workload.longest
    assert isinstance(longest, Attention)
    passes = DIRECTIONS if longest.direction == "both" else (longest.direction,)
    kernels = [known for known in algorithm.implementations if _has_layout(known, passes, hardware)]
    kernels.sort(key=lambda known: _of_other_calls(known, passes, longest))
    parts = [longest.model_copy(update={"direction": direction}) for direction in passes]
    refusals = (refusal(algorithm, part, hardware, known) for known in kernels for part in parts)
    return next(filter(None, refusals), None)


def _of_other_calls(known: Implementation, passes: Sequence[str], call: Attention) -> bool:
    """Check that every layout requires a feature, such as latents, that a call lacks, and has not its widths either."""
    layouts = [layout for direction in passes for layout in known.residency.get(direction, ())]
    return all(
        set(layout.features).difference(call.features)
        and (call.head_dim not in layout.head_dims or call.value_dim not in (layout.value_dims or layout.head_dims))
        for layout in layouts
    )


def stand_in(algorithm: AlgorithmLike, workload: Workload, hardware: Hardware) -> str | None:
    """Return the textbook's name where kernels of an algorithm exist and none runs a call on a device; else None.

    A step of a model needs a time for every call; an answer about one call is refused there.
    """
    return TEXTBOOK.name if lacks_kernels(algorithm, workload, hardware) else None


def no_kernel(algorithm: AlgorithmLike, workload: Workload, hardware: Hardware) -> str:
    """State why the textbook's machine replaces the kernels of a device."""
    declaration, longest = find_algorithm(algorithm), workload.longest
    reason = f"{declaration} declares no kernel"
    if declaration.implementations and isinstance(longest, Linear):
        reason = f"no rate of products in {longest.dtype} on file"
    if declaration.implementations and isinstance(longest, Attention):
        direction = longest.direction
        passes = DIRECTIONS if direction == "both" else (direction,)
        kernels = [known for known in declaration.implementations if not known.residency.keys().isdisjoint(passes)]
        # A kernel of this device needs another call, which is nearer than another device.
        kernels.sort(key=lambda k: (not _has_layout(k, passes, hardware), _of_other_calls(k, passes, longest)))
        reasons = (refusal(declaration, longest, hardware, known) for known in kernels)
        reason = str(next(filter(None, reasons), f"{reason} for the {direction} pass"))
    return f"one memory for all live data of a block ({reason})"
