"""What to test a kernel on, as Hypothesis strategies: calls, tiles, algorithms, devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import exact_algorithms
from iomodel.cost import tally_for
from iomodel.errors import InputError, UnknownNameError
from iomodel.hardware import Hardware, list_hardware
from iomodel.hardware import hardware as find_hardware
from iomodel.testing.drawing import st
from iomodel.testing.drawn_calls import Bounds, calls, known_features
from iomodel.testing.drawn_masks import BY_FORMULA, Kind, known_kinds, masks
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import CACHE_ONLY, Attention, Direction, DType, VarlenAttention, as_call

__all__ = ["algorithms", "hardware", "masks", "tiles", "workloads"]


def workloads(
    algorithm: str | None = None,
    *,
    max_len: int = 14,
    max_width: int = 5,
    max_batch: int = 2,
    max_kv_heads: int = 2,
    max_group: int = 3,
    dtypes: Iterable[DType] = get_args(DType),
    masks: Iterable[Kind] = BY_FORMULA,
    features: Iterable[str] = (),
    directions: Iterable[Direction] = ("forward",),
) -> st.SearchStrategy[Attention]:
    """Attention calls that are valid, and small enough to run by hand.

    Parameters
    ----------
    algorithm : str, optional
        Leave out the features and directions that this one does not have; one that is exact.
    max_len : int
        The most queries and the most keys a head [rows].
    max_width : int
        The largest head_dim and value_dim [elements].
    max_batch, max_kv_heads, max_group : int
        The most sequences, key/value heads, query heads for each of these [-].
    dtypes : iterable of str
        Types of the elements.
    masks : iterable of {"full", "causal", "window", "documents", "blocks"}
        Kinds of masks; one named twice is drawn twice as often.
    features : iterable of str
        What a call may have beside, up to three at once: names of `iomodel.features.FEATURES`, such as "bias" or
        "paged". Those that do not go together are not drawn together.
    directions : iterable of {"forward", "backward", "both"}
        Which way.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a bound that is no positive integer; nothing left to draw from.

    Examples
    --------
    >>> from hypothesis import find
    >>> w = find(workloads(masks=["causal"], max_kv_heads=1), lambda w: w.group > 1 and w.kv_len > w.q_len)
    >>> w.heads, w.kv_heads, w.q_len, w.kv_len, w.mask
    (2, 1, 1, 2, 'causal')
    """
    ways = _known("directions", directions, get_args(Direction))
    names = known_features(features)
    if algorithm is not None:
        found = find_algorithm(algorithm)
        if found.approximates:
            raise InputError(f"algorithm: {algorithm} given; allowed: one that is exact: its sizes must go together")
        left = [way for way in ways if way in found.directions]
        if not left:
            raise InputError(
                f"directions: {', '.join(ways)} given for {algorithm}; allowed: {', '.join(found.directions)}"
            )
        ways = left
        lacked = {name: found.without.get(name, frozenset()) for name in ("forward", "backward")}
    else:
        lacked = {}
    bounds = Bounds(
        max_len=as_integer("max_len", max_len),
        max_width=as_integer("max_width", max_width),
        max_batch=as_integer("max_batch", max_batch),
        max_kv_heads=as_integer("max_kv_heads", max_kv_heads),
        max_group=as_integer("max_group", max_group),
        dtypes=_known("dtypes", dtypes, get_args(DType)),
        masks=known_kinds(masks),
        features=names,
        directions=ways,
        lacked=lacked,
    )
    return calls(bounds)


def algorithms(*, direction: Direction = "forward", features: Iterable[str] = ()) -> st.SearchStrategy[str]:
    """Names of algorithms that go a direction and have some features.

    Raises
    ------
    UnknownNameError, InputError
        An unknown direction or feature; no algorithm has them all.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(algorithms(direction="backward", features=["bias"]), lambda name: name.startswith("flash"))
    'flash1'
    """
    (way,) = _known("direction", [direction], get_args(Direction))
    wanted = known_features(features)
    passes = ("forward", "backward") if way == "both" else (way,)
    found = [
        name
        for name in exact_algorithms()
        if (way == "forward" or not set(wanted) & set(CACHE_ONLY))
        and way in find_algorithm(name).directions
        and not any(find_algorithm(name).without.get(part, frozenset()) & set(wanted) for part in passes)
    ]
    if not found:
        raise InputError(f"features: {', '.join(wanted)} given; allowed: what one algorithm has in direction {way}")
    return st.sampled_from(found)


def tiles(
    algorithm: str,
    workload: Attention | VarlenAttention,
    *,
    max_tile: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> st.SearchStrategy[dict[str, int]]:
    """Tiles of an algorithm on a call: a size for each, ragged or larger than the sequence as it comes.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The call.
    max_tile : int, optional
        The largest tile [rows]; two more than the longest length where not given.
    options : mapping, optional
        Options of the algorithm; with `splits` the key tiles are as many at least.

    Raises
    ------
    UnknownNameError, InputError
        Whatever `iomodel.cost` refuses; fewer keys than splits.

    Examples
    --------
    >>> from hypothesis import find
    >>> w = Attention(q_len=4, head_dim=2)
    >>> find(tiles("flash2", w), lambda tile: tile["block_q"] > w.q_len)
    {'block_q': 5, 'block_kv': 1}
    """
    call = as_call(workload)
    chosen = {} if options is None else as_mapping("options", options, "{'packed': True}")
    found, complete = tally_for(algorithm, call, chosen, tiled=True)
    q_len, kv_len = (call.q_len, call.kv_len) if isinstance(call, Attention) else (max(call.q_lens), max(call.kv_lens))
    most = max(q_len, kv_len) + 2 if max_tile is None else as_integer("max_tile", max_tile)
    sizes = dict.fromkeys(found.tiles, most)
    if (splits := complete.get("splits", 1)) > 1:
        if splits > kv_len:
            raise InputError(f"splits: {splits} given for {kv_len} keys; allowed: up to {kv_len}")
        sizes["block_kv"] = min(most, (kv_len - 1) // (splits - 1))
    return st.fixed_dictionaries({name: st.integers(1, largest) for name, largest in sizes.items()})


def hardware(*, simulated: bool = False) -> st.SearchStrategy[Hardware]:
    """The devices shipped, those that are made up for teaching only if asked for.

    >>> from hypothesis import find
    >>> find(hardware(), lambda gpu: gpu.id == "h100-sxm5").sram_per_block
    232448
    """
    found = [name for name in list_hardware() if simulated or not find_hardware(name).simulated]
    return st.sampled_from(found).map(find_hardware)


def _known(field: str, given: Iterable[str], allowed: Iterable[str]) -> list[Any]:
    """The names as a list, or an error."""
    found = [given] if isinstance(given, str) else list(given)
    for name in found:
        if name not in allowed:
            raise UnknownNameError(field, name, allowed)
    if not found:
        raise InputError(f"{field}: none given; allowed: some of {', '.join(allowed)}")
    return found
