"""The exact cost of one algorithm at arrays of shapes, widths and tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.arrays.calls import SIDES, Calls, calls
from iomodel.arrays.engine import exact_ratio
from iomodel.arrays.engines import ENGINES
from iomodel.arrays.integers import as_integers, at_place
from iomodel.arrays.points import Points
from iomodel.cost import Cost, cost, tally_for, with_followers
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.expressions import NUMBERS, check_kind, kind_of
from iomodel.frozen import FrozenDict
from iomodel.requirements import check_numbers
from iomodel.show import Shown, table
from iomodel.symbols import LAUNCH_NAMES, NAME_OF, TILES
from iomodel.validation import index as in_digits
from iomodel.workload import Attention, Mask

Array = NDArray[Any]
TILE_NAMES = frozenset(entry.name for entry in TILES)


class Counted:
    """A quantity of :class:`CostArray`, counted when it is first asked for."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, costs: None, owner: type) -> Counted: ...
    @overload
    def __get__(self, costs: CostArray, owner: type) -> Array: ...
    def __get__(self, costs: CostArray | None, owner: type) -> Counted | Array:
        if costs is None:
            return self
        found: Array = costs.points.array(self.name)
        return found


class Moved(Mapping[str, Array]):
    """What is moved of each tensor, counted when it is first asked for."""

    def __init__(self, points: Points, side: str) -> None:
        self._points, self._side = points, side

    def __getitem__(self, tensor: str) -> Array:
        if tensor not in self._points.tensors(self._side):
            raise UnknownNameError(f"tensor of {self._side}", tensor, self._points.tensors(self._side))
        found: Array = self._points.array(self._side, tensor)
        return found

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._points.tensors(self._side)

    def get(self, tensor: str, default: Any = None) -> Any:
        """What is moved of a tensor, or the default if the algorithm has none of this name."""
        return self[tensor] if tensor in self._points.tensors(self._side) else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._points.tensors(self._side))

    def __len__(self) -> int:
        return len(self._points.tensors(self._side))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{tensor!r}: ...' for tensor in self)}}}"


@dataclass(frozen=True, eq=False)
class CostArray(Shown):
    """The quantities of :class:`~iomodel.Cost` as arrays of one shape, each counted when it is first asked for.

    They are int64, or Python integers in an array of objects where a value exceeds 64 bits; they cannot be written to.

    Attributes
    ----------
    shape : tuple of int
        What all arguments broadcast to.
    reads, writes : mapping of tensor name to array
        HBM accesses [elements].
    """

    algorithm: str
    calls: Calls
    tiles: Mapping[str, Any]
    options: Mapping[str, Any]
    points: Points

    hbm_bytes = Counted("Traffic [B].")
    hbm_reads = Counted("Elements read from HBM [elements].")
    hbm_writes = Counted("Elements written to HBM [elements].")
    hbm_elements = Counted("HBM accesses, reads and writes [elements].")
    atomics = Counted("Atomic additions to HBM [elements].")
    flops = Counted("Matrix FLOPs of the visited tiles [FLOP].")
    useful_flops = Counted("Matrix FLOPs of the visible pairs alone [FLOP].")
    exps = Counted("Exponentials [-].")
    tanhs = Counted("Hyperbolic tangents [-].")
    randoms = Counted("Random numbers [-].")
    footprint_elements = Counted("The most that is live on chip at once [elements].")
    footprint_bytes = Counted("The most that is live on chip at once [B].")
    peak_hbm_elements = Counted("The most that is allocated in HBM at once [elements].")
    peak_hbm_bytes = Counted("The most that is allocated in HBM at once [B].")

    @property
    def shape(self) -> tuple[int, ...]:
        """What all arguments broadcast to."""
        return self.calls.shape

    @property
    def size(self) -> int:
        """How many points there are [-]."""
        return int(np.prod(self.shape, dtype=object))

    @cached_property
    def reads(self) -> Mapping[str, Array]:
        """Elements read from HBM, by tensor [elements]."""
        return Moved(self.points, "reads")

    @cached_property
    def writes(self) -> Mapping[str, Array]:
        """Elements written to HBM, by tensor [elements]."""
        return Moved(self.points, "writes")

    @property
    def intensity(self) -> NDArray[np.float64]:
        """Arithmetic intensity, FLOPs of the visited tiles over traffic [FLOP/B]."""
        return exact_ratio(self.flops, self.hbm_bytes)

    def at(self, *index: int) -> Cost:
        """The cost at one index, by :func:`iomodel.cost`.

        >>> import iomodel
        >>> found = iomodel.cost_array("flash2", q_len=[1024, 4096], head_dim=64, block_q=128, block_kv=64)
        >>> bool(found.at(1).hbm_bytes == found.hbm_bytes[1])
        True
        """
        whole = [in_digits(i) for i in index]
        place = tuple(i if isinstance(i, int) and not isinstance(i, bool) else -1 for i in whole)
        if len(place) != len(self.shape) or not all(0 <= i < n for i, n in zip(place, self.shape, strict=True)):
            raise InputError(f"index: {shown(index)} given; allowed: one index for each axis of {self.shape}")
        sizes, options = (
            {name: at_place(value, place, self.shape) for name, value in given.items()}
            for given in (self.tiles, self.options)
        )
        return cost(self.algorithm, self.calls.call(place), sizes or None, **options)

    def to_dict(self) -> dict[str, Any]:
        """Every quantity as nested lists, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "shape": list(self.shape),
            "tiles": {name: _plain(value) for name, value in self.tiles.items()},
            "options": {name: _plain(value) for name, value in self.options.items()},
            "reads": {tensor: _plain(self.reads[tensor]) for tensor in self.reads},
            "writes": {tensor: _plain(self.writes[tensor]) for tensor in self.writes},
            **{name: _plain(getattr(self, name)) for name in QUANTITIES},
            "intensity": _plain(self.intensity),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal: from where to where the main quantities go."""
        shown = {
            "HBM traffic": ("hbm_bytes", "B"),
            "HBM accesses": ("hbm_elements", "elements"),
            "FLOPs (visited tiles)": ("flops", "FLOP"),
            "SRAM footprint": ("footprint_bytes", "B"),
        }
        rows = [("points", f"{self.size:,}", "", "-")]
        for label, (name, unit) in shown.items() if self.size else ():
            values = getattr(self, name)
            rows.append((label, f"{values.min():,}", f"{values.max():,}", unit))
        return table(f"{self.algorithm}: {self.shape}", ("quantity", ">least", ">most", "unit"), rows)


QUANTITIES = tuple(name for name, value in vars(CostArray).items() if isinstance(value, Counted))
"""The quantities of a CostArray that are counts, tensors apart."""


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def cost_array(
    algorithm: str,
    *,
    q_len: Any,
    head_dim: Any,
    kv_len: Any = None,
    batch: Any = 1,
    heads: Any = 1,
    kv_heads: Any = None,
    value_dim: Any = None,
    dtype: Any = "bf16",
    mask: Mask = "full",
    direction: str = "forward",
    engine: str = "auto",
    **more: Any,
) -> CostArray:
    """Count what an algorithm moves and computes at many shapes, widths and tiles at once, exactly.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    q_len, kv_len, head_dim, value_dim, batch, heads, kv_heads : int or array of int
        As for :class:`iomodel.Attention`; all arguments broadcast as NumPy's do.
    dtype : str or array of str
        Types of elements.
    mask, direction :
        As for :class:`iomodel.Attention`, one for all; ``window_left`` and ``window_right`` may be arrays that stand in
        for the widths of a :class:`iomodel.Window`.
    engine : {"auto", "numpy", "numba"}
        What evaluates the formulas. "auto" takes Numba, if it is installed (extra ``fast``), for four million points
        and more, and NumPy below.
    **more
        Tiles (``block_q``, ``block_kv``, ...), integers or arrays; further fields of :class:`iomodel.Attention`
        (``page_size`` may be an array); options of the algorithm, of which those that are numbers may be arrays.

    Returns
    -------
    CostArray
        The attributes of :class:`iomodel.Cost` as arrays, each counted when it is first asked for. Memory beside a
        result is that of some blocks which fit a cache.

    Raises
    ------
    UnknownNameError, InputError
        What :func:`iomodel.cost` refuses, with the index of the first element at fault; shapes that do not broadcast.
        An array of 2**20 elements or more is not copied, and its range is looked at when it is used, so that it is
        read but once.

    Examples
    --------
    >>> import iomodel
    >>> found = iomodel.cost_array("flash2", q_len=[1024, 4096], head_dim=64, block_q=[[64], [128]], block_kv=64)
    >>> found.hbm_bytes
    array([[ 4460544, 68173824],
           [ 2363392, 34619392]])
    >>> found.reads["K"].tolist()  # 16 and 64, then 8 and 32 passes over K
    [[1048576, 16777216], [524288, 8388608]]
    """
    if not isinstance(engine, str) or engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    taken = {name: more.pop(name) for name in list(more) if name in Attention.model_fields or name in SIDES}
    fields = {"q_len": q_len, "kv_len": kv_len, "head_dim": head_dim, "value_dim": value_dim, "batch": batch}
    fields |= {"heads": heads, "kv_heads": kv_heads, "dtype": dtype, "mask": mask, "direction": direction, **taken}
    given = {name: more.pop(name) for name in list(more) if name in TILE_NAMES | LAUNCH_NAMES}
    sizes = {name: as_integers(name, size, late=True) for name, size in given.items()}
    sizes = {name: size for name, size in sizes.items() if name not in LAUNCH_NAMES}
    numbers = {name: as_integers(name, more[name], late=True) for name in NUMBERS & more.keys()}
    called = calls(fields, {**sizes, **numbers}, late=True)
    scalars = {**more, **{name: _some(value) for name, value in numbers.items()}}
    _check_names(algorithm, called.first, scalars)
    _check_numbers(algorithm, called, {**numbers, **sizes})
    tally, complete = tally_for(algorithm, called.first, scalars, tiled=bool(sizes))
    tiles = with_followers(algorithm, tally.tiles, sizes)
    options = FrozenDict({**complete, **numbers})
    points = Points(tally.formulas, called, tiles, options, engine)
    return CostArray(algorithm, called, FrozenDict(tiles), options, points)


def _some(value: Any) -> Any:
    """One of the elements."""
    return value if not isinstance(value, np.ndarray) else int(value.flat[0]) if value.size else 1


def _check_names(algorithm: str, first: Attention, options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError with the nearest of all that might have been meant."""
    found = find_algorithm(algorithm)
    check_kind(found, kind_of(first))
    taken = {**found.takes(first.direction), **found.common}
    known = [*Attention.model_fields, *SIDES, *TILE_NAMES, *taken]
    for name in options:
        if name not in taken:
            likely = [*Attention.model_fields, *SIDES, *taken, "block_q", "block_kv"]
            raise UnknownNameError(f"argument for {algorithm}", name, sorted(known), likely)


def _check_numbers(algorithm: str, called: Calls, given: Mapping[str, Any]) -> None:
    """Raise InputError with the first place where options, lengths and tiles do not go together."""
    found = find_algorithm(algorithm)
    spoken = {NAME_OF[symbol] for requirement in found.requires for symbol in requirement.holds.free_symbols}
    chosen = {**found.takes(called.first.direction), **given}
    tiles = {name for name in spoken if name not in chosen and name in TILE_NAMES}  # missing: found out later
    numbers = {name: chosen[name] if name in chosen else called.number(name) for name in spoken - tiles}
    checked = {name: as_integers(name, value) for name, value in numbers.items()}  # whatever their length
    check_numbers(found, {**chosen, "mask": called.first.mask, **checked})
