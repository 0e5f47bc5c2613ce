"""Hypothesis strategies for tests of a kernel: calls, tiles, algorithms, devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, get_args

from iomodel.algorithms import AlgorithmLike, exact_algorithms
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.option_groups import check_names, listing, options_in
from iomodel.common.validation import as_integer, as_mapping
from iomodel.counting.bound_call import BoundCall
from iomodel.devices.device import Hardware, list_hardware
from iomodel.devices.device import hardware as find_hardware
from iomodel.errors import InputError, UnknownNameError
from iomodel.testing.drawing import st
from iomodel.testing.drawn_calls import USUAL, CallLimits, SizeLimits, calls, known_features
from iomodel.testing.drawn_masks import BY_FORMULA, Kind, known_kinds, masks
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import CACHE_ONLY, Direction, DType
from iomodel.workloads.varlen import VarlenAttention, as_call

__all__ = ["algorithms", "hardware", "masks", "tiles", "workloads"]


@listing(options_in(SizeLimits, defaults=USUAL).values())
def workloads(
    algorithm: AlgorithmLike | None = None,
    *,
    dtypes: Iterable[DType] = get_args(DType),
    masks: Iterable[Kind] = BY_FORMULA,
    features: Iterable[str] = (),
    directions: Iterable[Direction] = ("forward",),
    **sizes: Unpack[SizeLimits],
) -> st.SearchStrategy[Attention]:
    """Draw valid attention calls small enough to run by hand.

    Parameters
    ----------
    algorithm : str or Algorithm, optional
        An exact algorithm; features and directions that it does not support are not drawn.
    dtypes : iterable of str
        Types of the elements.
    masks : iterable of {"full", "causal", "window", "documents", "blocks"}
        Kinds of masks; a kind listed twice is drawn twice as often.
    features : iterable of str
        Names of `iomodel.nests.features.FEATURES`, such as "bias" or "paged", up to three at once; incompatible
        features are not combined.
    directions : iterable of {"forward", "backward", "both"}
        Directions to draw.
    **sizes

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown; a bound is not a positive integer; there is nothing left to draw from.

    Examples
    --------
    >>> from hypothesis import find
    >>> w = find(workloads(masks=["causal"], max_kv_heads=1), lambda w: w.group > 1 and w.kv_len > w.q_len)
    >>> w.heads, w.kv_heads, w.q_len, w.kv_len, w.mask
    (2, 1, 1, 2, 'causal')
    """
    check_names(workloads, sizes)
    choices = _known("directions", directions, get_args(Direction))
    names = known_features(features)
    if algorithm is not None:
        target = find_algorithm(algorithm)
        if target.approximates:
            raise InputError(f"algorithm: {algorithm} given; allowed: an exact algorithm")
        left = [direction for direction in choices if direction in target.directions]
        if not left:
            raise InputError(
                f"directions: {', '.join(choices)} given for {algorithm}; allowed: {', '.join(target.directions)}"
            )
        choices = left
        lacked = {name: target.without.get(name, frozenset()) for name in ("forward", "backward")}
    else:
        lacked = {}
    bounds = CallLimits(
        **{name: as_integer(name, value) for name, value in {**USUAL, **sizes}.items()},
        dtypes=_known("dtypes", dtypes, get_args(DType)),
        masks=known_kinds(masks),
        features=names,
        directions=choices,
        lacked=lacked,
    )
    return calls(bounds)


def algorithms(*, direction: Direction = "forward", features: Iterable[str] = ()) -> st.SearchStrategy[str]:
    """Draw names of algorithms that support a direction and some features.

    Raises
    ------
    UnknownNameError, InputError
        A direction or feature is unknown; no algorithm supports them all.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(algorithms(direction="backward", features=["bias"]), lambda name: name.startswith("flash"))
    'flash1'
    """
    (requested,) = _known("direction", [direction], get_args(Direction))
    required = known_features(features)
    passes = ("forward", "backward") if requested == "both" else (requested,)
    supporting = [
        name
        for name in exact_algorithms()
        if (requested == "forward" or not set(required) & set(CACHE_ONLY))
        and requested in find_algorithm(name).directions
        and not any(find_algorithm(name).without.get(part, frozenset()) & set(required) for part in passes)
    ]
    if not supporting:
        raise InputError(
            f"features: {', '.join(required)} given; allowed: those of one algorithm in direction {requested}"
        )
    return st.sampled_from(supporting)


def tiles(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    *,
    max_tile: int | None = None,
    options: Mapping[str, Any] | None = None,
    powers_of_two: bool = False,
) -> st.SearchStrategy[dict[str, int]]:
    """Draw tiles of an algorithm for a call, including ragged tiles and tiles larger than the sequence.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The call.
    max_tile : int, optional
        Largest tile [rows]; two more than the longest length by default.
    options : mapping, optional
        Options of the algorithm; with `splits`, there are at least as many key tiles.
    powers_of_two : bool
        Draw only powers of two, as the blocks of Triton's language are.

    Raises
    ------
    UnknownNameError, InputError
        `iomodel.cost` rejects the call; there are fewer keys than splits.

    Examples
    --------
    >>> from hypothesis import find
    >>> w = Attention(q_len=4, head_dim=2)
    >>> find(tiles("flash2", w), lambda tile: tile["block_q"] > w.q_len)
    {'block_q': 5, 'block_kv': 1}
    """
    call = as_call(workload)
    chosen = {} if options is None else as_mapping("options", options, "{'packed': True}")
    bound = BoundCall.bind(algorithm, call, chosen)
    q_len, kv_len = (call.q_len, call.kv_len) if isinstance(call, Attention) else (max(call.q_lens), max(call.kv_lens))
    most = max(q_len, kv_len) + 2 if max_tile is None else as_integer("max_tile", max_tile)
    sizes = dict.fromkeys(bound.tiles, most)
    if (splits := bound.options.get("splits", 1)) > 1:
        if splits > kv_len:
            raise InputError(f"splits: {splits} given for {kv_len} keys; allowed: up to {kv_len}")
        sizes["block_kv"] = min(most, (kv_len - 1) // (splits - 1))
    return st.fixed_dictionaries({name: _size(largest, powers_of_two) for name, largest in sizes.items()})


def _size(largest: int, powers_of_two: bool) -> st.SearchStrategy[int]:
    if powers_of_two:
        return st.sampled_from([1 << power for power in range(largest.bit_length())])
    return st.integers(1, largest)


def hardware(*, simulated: bool = False) -> st.SearchStrategy[Hardware]:
    """Draw shipped devices; simulated ones for teaching only on request.

    >>> from hypothesis import find
    >>> find(hardware(), lambda gpu: gpu.id == "h100-sxm5").sram_per_block
    232448
    """
    names = [name for name in list_hardware() if simulated or not find_hardware(name).simulated]
    return st.sampled_from(names).map(find_hardware)


def _known(field: str, requested: Iterable[str], allowed: Iterable[str]) -> list[Any]:
    """Validate names and return them as a list, or raise an error."""
    names = [requested] if isinstance(requested, str) else list(requested)
    for name in names:
        if name not in allowed:
            raise UnknownNameError(field, name, allowed)
    if not names:
        raise InputError(f"{field}: none given; allowed: some of {', '.join(allowed)}")
    return names
