"""Algorithms: one file per shipped algorithm, and those announced by installed packages.

Every ALGORITHM, or tuple ALGORITHMS, of a module in this folder is discovered. A package announces an algorithm by an
entry point of the group ``iomodel.algorithms``, with the name of the algorithm, that refers to an
:class:`iomodel.nests.Algorithm`, or to a module with an ALGORITHM.

The catalogue says of each what can be said without sympy. It is derived from the declarations once
(:mod:`iomodel.common.derived`).
"""

from __future__ import annotations

from functools import cache
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any
from warnings import warn

from iomodel.algorithms._shipped import ShippedAlgorithm, declared_in, listed, plain, unplain
from iomodel.common import derived
from iomodel.common.keywords import strict
from iomodel.common.yaml_files import place_of
from iomodel.errors import InputError, UnknownNameError, hinted, shown
from iomodel.nests.algorithm import Algorithm, AlgorithmLike, DeclaredName

__all__ = [
    "AlgorithmLike",
    "algorithm",
    "answering",
    "discovered",
    "exact_algorithms",
    "list_algorithms",
    "name_of",
    "replacing",
    "schedule_and_kernels",
]

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from iomodel.workloads.workload import Workload

LISTING = "iomodel.list_algorithms() or 'iomodel algorithms'"
"""Listings of the names of algorithms, for messages."""
GROUP = "iomodel.algorithms"
"""The group of entry points by which packages announce algorithms."""


@cache
def discovered() -> dict[str, Algorithm]:
    """Collect all shipped algorithms by name."""
    return {name: ShippedAlgorithm(entry) for name, entry in sorted(_catalogue().items())}


def _catalogue() -> dict[str, dict[str, Any]]:
    """Return what is known of each shipped algorithm without its declaration, by name."""
    stored = derived.read("catalogue")
    if stored is not None:
        return unplain(stored)  # type: ignore[no-any-return]
    names = (info.name for info in iter_modules(__path__) if not info.name.startswith("_"))
    entries = {declared.name: listed(name, declared) for name in names for declared in declared_in(name)}
    if derived.pending is not None:
        derived.pending["catalogue"] = lambda: plain(entries)
    return entries


@cache
def announced() -> dict[str, Algorithm | InputError]:
    """Load the algorithms that installed packages announce, by name: each, or the error for which it is left out."""
    from importlib.metadata import entry_points  # slow to import, and for announced algorithms alone

    loaded: dict[str, Algorithm | InputError] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        source = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
        if entry.name in discovered():
            outcome: Algorithm | InputError = _refused(entry.name, source, "has the name of a shipped algorithm")
        elif entry.name in loaded:
            outcome = _refused(entry.name, source, "has the name of another announced algorithm")
        else:
            outcome = _loaded(entry, source)
        if isinstance(outcome, InputError):
            warn(str(outcome), stacklevel=2)
        loaded[entry.name] = outcome
    return {name: outcome for name, outcome in loaded.items() if name not in discovered()}


def _loaded(entry: EntryPoint, source: str) -> Algorithm | InputError:
    try:
        value = entry.load()
    except Exception as error:  # any exception of a module of another package
        return _refused(entry.name, source, f"does not load: {type(error).__name__}: {' '.join(str(error).split())}")
    value = getattr(value, "ALGORITHM", value)
    if not isinstance(value, Algorithm):
        return _refused(entry.name, source, f"is {shown(value)}, neither an Algorithm nor a module with an ALGORITHM")
    if value.name != entry.name:
        return _refused(entry.name, source, f"is named {value.name!r} in its declaration")
    return value


def _refused(name: str, source: str, reason: str) -> InputError:
    return InputError(f"algorithm: {name!r}, announced by {source}, {reason}")


def _known() -> dict[str, Algorithm]:
    """Collect all algorithms by name, the shipped ones first."""
    return {
        **discovered(),
        **{name: outcome for name, outcome in announced().items() if isinstance(outcome, Algorithm)},
    }


@strict
def list_algorithms(workload: object = "attention") -> list[str]:
    """List the algorithms for a workload, or for a kind of workload.

    Parameters
    ----------
    workload : Attention, VarlenAttention, Linear or str
        A workload, or "attention", "linear" or "elementwise".

    Raises
    ------
    UnknownNameError
        The workload is of no kind that an algorithm answers.

    Examples
    --------
    >>> "flash2" in list_algorithms()
    True
    >>> list_algorithms("linear")
    ['gemm']
    """
    kind = workload if isinstance(workload, str) else getattr(type(workload), "operation", workload)
    known = {declaration.answers for declaration in _known().values()}
    if not isinstance(kind, str) or kind not in known:
        raise UnknownNameError("workload", kind, sorted(known))
    return [name for name, declaration in _known().items() if declaration.answers == kind]


def answering(workload: Workload) -> list[Algorithm]:
    """List the algorithms that are tried for a workload where none is named, in their declared order of preference.

    Those that packages announce are taken by name alone.

    >>> from iomodel.workloads.attention import Attention
    >>> [algorithm.name for algorithm in answering(Attention(q_len=64, head_dim=64, direction="backward"))]
    ['flash3', 'flash2']
    """
    return [algorithm for algorithm in _preferred(workload.operation) if workload.direction in algorithm.directions]


@cache
def _preferred(operation: str) -> tuple[Algorithm, ...]:
    ranked = [
        (algorithm.preference, algorithm)
        for algorithm in discovered().values()
        if algorithm.answers == operation and algorithm.preference is not None
    ]
    return tuple(algorithm for _, algorithm in sorted(ranked, key=lambda entry: entry[0]))


@cache
def replacing(chain: str) -> Algorithm | None:
    """Return the algorithm that declares a chain of operators of PyTorch, if there is one.

    >>> replacing("product softmax product").name
    'flash2'
    """
    return next((known for known in discovered().values() if chain in known.replaces), None)


def exact_algorithms() -> list[str]:
    """List the names of the algorithms that compute exact attention."""
    return [name for name in list_algorithms() if not algorithm(name).approximates]


ABSENT = {"aiter": "ck, triton-amd", "trtllm": "trtllm-gen, flashinfer"}
"""Kernels that people run and that are not on file, each with the nearest that are."""


SEPARATORS = str.maketrans("", "", "-_. ")


@cache
def kernel_names() -> dict[str, tuple[str, str]]:
    """Map every name of the kernels of a library to their schedule and their implementation.

    Kernels of several schedules name the one that declares their aliases, else the last in the order of preference.
    """
    names: dict[str, tuple[str, str]] = {}
    ranked = sorted(discovered().values(), key=lambda known: known.preference or 0)
    for declaration in ranked:
        for kernels in declaration.implementations:
            home = kernels.name not in names or kernels.aliases or not _aliased(kernels.name)
            names |= dict.fromkeys((kernels.name,) * bool(home) + kernels.aliases, (declaration.name, kernels.name))
    return names


def _aliased(kernels: str) -> bool:
    """Check that a schedule declares further names of kernels."""
    return any(
        known.aliases
        for declaration in discovered().values()
        for known in declaration.implementations
        if known.name == kernels
    )


def schedule_and_kernels(name: AlgorithmLike, kernels: Any = None) -> tuple[Algorithm, Any]:
    """Return the algorithm of a name, and the implementation if the name is that of kernels.

    Raises
    ------
    UnknownNameError, InputError
        As for :func:`algorithm`; the name of kernels beside other kernels.

    Examples
    --------
    >>> declaration, kernels = schedule_and_kernels("flash4")
    >>> declaration.name, kernels
    ('flash2', 'flash-attention-4')
    """
    declaration = algorithm(name)
    if not isinstance(name, str) or declaration.name == name:
        return declaration, kernels
    own = _kernels_folded()[_folded(name)][1]
    if kernels is not None and implementation_name(kernels) != own:
        raise InputError(f"implementation: {shown(kernels)} given; allowed: {own!r}, which algorithm {name!r} names")
    return declaration, own


def implementation_name(name: Any, declaration: Algorithm | None = None) -> Any:
    """Return the name under which kernels are declared, from one of their aliases; another value unchanged.

    Of kernels that share an alias, those of a given algorithm are meant.
    """
    if isinstance(name, str) and declaration is not None:
        for known in declaration.implementations:
            if _folded(name) in map(_folded, (known.name, *known.aliases)):
                return known.name
    return _kernels_folded().get(_folded(name), ("", name))[1] if isinstance(name, str) else name


def sharing(name: AlgorithmLike) -> list[Any]:
    """List the kernels of different devices that share a name, for each of their algorithms; empty for other names.

    >>> [kernels.name for kernels in sharing("cuDNN")]
    ['cudnn-blackwell', 'cudnn-hopper']
    """
    kernels = _aliases().get(_folded(name), []) if isinstance(name, str) else []
    return kernels if len({known.name for known in kernels}) > 1 else []


@cache
def _aliases() -> dict[str, list[Any]]:
    """Collect the kernels of every alias."""
    listed: dict[str, list[Any]] = {}
    for declaration in discovered().values():
        for kernels in declaration.implementations:
            for alias in kernels.aliases:
                listed.setdefault(_folded(alias), []).append(kernels)
    return listed


@cache
def _kernels_folded() -> dict[str, tuple[str, str]]:
    return {_folded(name): home for name, home in kernel_names().items()}


def _folded(name: str) -> str:
    """Return the name of kernels without its separators and in lower case, as people write it in any way."""
    return name.lower().translate(SEPARATORS)


def algorithm(algorithm_like: AlgorithmLike) -> Algorithm:
    """Look up an algorithm by its name or by that of kernels that run it, or return a declaration unchanged.

    Raises
    ------
    UnknownNameError
        No algorithm has this name.
    InputError
        The argument is neither a name nor an :class:`iomodel.nests.Algorithm`; the algorithm is announced by a package
        and does not load.

    Examples
    --------
    >>> algorithm("flash2").title
    'FlashAttention-2'
    >>> algorithm(algorithm("flash2")).name
    'flash2'
    """
    if isinstance(algorithm_like, Algorithm):
        return _canonical(algorithm_like)
    if isinstance(algorithm_like, DeclaredName):
        return algorithm_like.declaration
    if not isinstance(algorithm_like, str):
        raise InputError(f"algorithm: {shown(algorithm_like)} given; allowed: a name, as 'flash2', or an Algorithm")
    if algorithm_like in discovered():
        return discovered()[algorithm_like]
    if _folded(algorithm_like) in _kernels_folded():
        return discovered()[_kernels_folded()[_folded(algorithm_like)][0]]
    other = announced().get(algorithm_like)
    if isinstance(other, InputError):
        raise InputError(str(other))
    if other is None:
        check_on_file("algorithm", algorithm_like)
        known = _known()
        names = sorted(known, key=lambda name: known[name].answers != "attention")
        likely = names if hinted(algorithm_like, tuple(names)) else [*names, *kernel_names()]
        place = place_of(algorithm_like, "algorithm")
        raise UnknownNameError("algorithm", algorithm_like, names, likely, listing=LISTING, place=place)
    return other


def check_on_file(field: str, name: str) -> None:
    """Raise InputError for kernels that are known and not on file."""
    nearest = ABSENT.get(name.lower())
    if nearest is not None:
        raise InputError(f"{field}: {name!r} given, which is not on file; nearest: {nearest}")


def _canonical(declaration: Algorithm) -> Algorithm:
    """Return the algorithm of the catalogue with this declaration, or the declaration itself."""
    shipped = discovered().get(declaration.name)
    return shipped if isinstance(shipped, ShippedAlgorithm) and shipped.declares(declaration) else declaration


def name_of(algorithm_like: AlgorithmLike) -> str:
    """Return the name of an algorithm in results; it also resolves to a declaration that is not shipped."""
    declaration = algorithm(algorithm_like)
    return declaration.name if discovered().get(declaration.name) is declaration else DeclaredName(declaration)
