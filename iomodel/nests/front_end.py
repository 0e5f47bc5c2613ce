"""Front ends: the calls and options that the kernels of an implementation take, as the checks of its source state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iomodel.common.results import Record
from iomodel.nests.division import Division


@dataclass(frozen=True)
class FrontEnd(Record):
    """The calls and options that the kernels of an implementation take.

    Attributes
    ----------
    cite : str
        The source that has the checks, with its commit.
    features, backward : tuple of str, optional
        Features of a call that the forward and the backward pass take; None for any.
    exclusive : tuple of str
        Features of which a call has at most one.
    masks : tuple of str, optional
        Kinds of mask: "full", "causal", "window", "left window" (without keys after the query), "blocks", "documents";
        None for any.
    windowed_backward : tuple of str, optional
        The types in which a backward pass skips the tiles outside a window; None for any.
    pages : tuple of int
        The page sizes; empty for any [keys].
    page_step : int
        Pages are multiples of it [keys].
    packs : {"any", "always", "one query", "never"}
        The calls whose query heads with the same keys share a tile: as the caller wishes, all of them, all of one query
        without a window, dropout and slopes and no others, none.
    splits : {"any", "packed"}
        The rows of tiles with several splits: any, or packed alone.
    queries, rows : int, optional
        Most queries of a sequence, and most query rows with the same keys; None for any [rows].
    prompts : bool
        True if the kernels take several queries of a sequence alone, as those for prompts.
    grouped : bool
        True if query heads may share keys.
    deterministic : int, optional
        The width below which a backward pass without atomic additions exists; 0 for none, None for any [elements].
    last : bool
        True if libraries launch the kernels only where no others of the algorithm run the call.
    behind : tuple of str
        Implementations that a library launches in place of these kernels wherever they run the call.
    served : tuple of str
        Serving engines that run the kernels in place of all others of the algorithm that run the call; "any" for all.
    division : Division, optional
        The rule by which it chooses `splits` where the caller does not; without one they are the fastest.
    """

    cite: str = ""
    features: tuple[str, ...] | None = None
    backward: tuple[str, ...] | None = None
    exclusive: tuple[str, ...] = ()
    masks: tuple[str, ...] | None = None
    windowed_backward: tuple[str, ...] | None = None
    pages: tuple[int, ...] = ()
    page_step: int = 1
    packs: Literal["any", "always", "one query", "never"] = "any"
    splits: Literal["any", "packed"] = "any"
    queries: int | None = None
    rows: int | None = None
    prompts: bool = False
    grouped: bool = True
    deterministic: int | None = None
    last: bool = False
    behind: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    division: Division | None = None
