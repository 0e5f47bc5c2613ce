"""Masks of FlexAttention as masks of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown
from iomodel.torch.mask_kinds import Visible, mask_from_pairs
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window

LARGEST = 2**28
"""Most pairs of a query and a key that a function is evaluated at."""
ROWS = 2**24
"""Pairs that are evaluated at once, in whole rows."""
DEEPEST = 8
"""Deepest nesting of functions whose captured values are looked at."""

MaskMod = Callable[[Any, Any, Any, Any], Any]


def mask_of(
    mask_mod: MaskMod,
    q_len: int,
    kv_len: int,
    *,
    batch: int | None = None,
    heads: int | None = None,
    data: bool = False,
) -> str | Window | Documents | BlockMask:
    """Evaluate a `mask_mod` function of FlexAttention, and return the mask of a call that hides the same pairs.

    The answer is exact: "full", "causal", a Window or Documents where one of them hides the same pairs, else a
    BlockMask with the largest blocks that are visible or hidden as a whole, down to single pairs. Without PyTorch the
    function is evaluated on arrays of NumPy, which comparisons, arithmetic and lookups take alike.

    Parameters
    ----------
    mask_mod : function
        A function of batch, head, query and key that returns booleans, as for
        `torch.nn.attention.flex_attention.create_block_mask`.
    q_len, kv_len : int
        Queries and keys [rows].
    batch, heads : int, optional
        Sequences and heads for which the function has to be the same; by default it is evaluated at the first of
        each, as FlexAttention does where B and H are None.
    data : bool
        Accept a function that captures tensors, such as the documents of tokens, at their present values.

    Raises
    ------
    InputError
        The function captures tensors or arrays, fails, needs PyTorch and lacks it, differs among sequences or heads,
        or returns no booleans; there are too many pairs, or a table of blocks would be too large.

    Examples
    --------
    ``mask_of(lambda b, h, q, k: q >= k, 4096, 4096)`` is "causal".
    """
    queries, keys = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
    if not callable(mask_mod):
        raise InputError(f"mask_mod: {shown(mask_mod)} given; allowed: a function of batch, head, query and key")
    if queries * keys > LARGEST:
        raise InputError(
            f"mask_mod: {queries:,} x {keys:,} pairs given; allowed: up to {LARGEST:,}; name the mask itself "
            "('causal', iomodel.Window, iomodel.Documents)"
        )
    captured = next(_captured(mask_mod), None)
    if captured is not None and not data:
        raise InputError(
            f"mask_mod: captures a tensor ({captured}), so it depends on data; allowed: data=True, for its present "
            "values"
        )
    first = _evaluated(mask_mod, 0, 0, queries, keys)
    for sequence in range(1 if batch is None else as_integer("batch", batch)):
        for head in range(1 if heads is None else as_integer("heads", heads)):
            if (sequence or head) and _evaluated(mask_mod, sequence, head, queries, keys) != first:
                raise InputError(
                    f"mask_mod: differs between sequence 0, head 0 and sequence {sequence}, head {head}; "
                    "allowed: one mask for the whole call"
                )
    return mask_from_pairs(first)


def block_mask_of(block_mask: Any) -> BlockMask:
    """Convert a `BlockMask` of FlexAttention to the table of the blocks that its kernels visit.

    A block that holds a visible pair is visited as a whole, so traffic and FLOPs of visited tiles are exact. Pairs
    that the kernel hides inside a block count as visible; :func:`mask_of` has the pairs.

    Parameters
    ----------
    block_mask : torch.nn.attention.flex_attention.BlockMask
        A block mask that is the same for all sequences and heads.

    Raises
    ------
    InputError
        PyTorch is not installed; another object; the blocks differ among sequences or heads.
    """
    _torch("block_mask_of")
    from torch.nn.attention.flex_attention import BlockMask as TorchBlockMask

    if not isinstance(block_mask, TorchBlockMask):
        raise InputError(
            f"block_mask: {shown(block_mask)} given; allowed: a BlockMask of torch.nn.attention.flex_attention"
        )
    masks = visited_blocks(block_mask.as_tuple())
    if len(masks) > 1:
        raise InputError(
            f"block_mask: {len(masks)} different masks among sequences and heads given; allowed: one mask for the call"
        )
    return masks[0][1]


def visited_blocks(parts: tuple[Any, ...]) -> list[tuple[int, BlockMask]]:
    """List the different tables of visited blocks, each with the sequences and heads that have it.

    `parts` is the tuple of a block mask: the lengths, numbers and places of partial and of full blocks by block of
    queries, ..., the rows and columns of a block, the function.
    """
    rows, columns = int(parts[-3]), int(parts[-2])
    shape = -(-int(parts[0]) // rows), -(-int(parts[1]) // columns)
    dense: NDArray[np.bool_] | None = None
    for numbers, places in (parts[2:4], parts[4:6]):
        if numbers is None:
            continue
        counts, places = (tensor.numpy(force=True).reshape(-1, *tensor.shape[2:]) for tensor in (numbers, places))
        if dense is None:
            dense = np.zeros((len(counts), *shape), dtype=bool)
        live = np.arange(places.shape[-1]) < counts[..., None]
        head, row, _ = np.nonzero(live)
        dense[head, row, places[live]] = True
    times: dict[BlockMask, int] = {}
    for table in () if dense is None else dense:
        mask = BlockMask(table, rows, columns)
        times[mask] = times.get(mask, 0) + 1
    return [(count, mask) for mask, count in times.items()]


def _torch(name: str) -> Any:
    try:
        import torch
    except (ImportError, OSError):
        raise InputError(f"torch: not installed; {name} needs it: pip install 'iomodel[torch]'") from None
    return torch


def _arrays() -> tuple[type[Any], ...]:
    """Return the types of tensors and arrays of the libraries that are installed."""
    try:
        return (_torch("mask_of").Tensor, np.ndarray)
    except InputError:
        return (np.ndarray,)


def _captured(function: Any, depth: int = 0) -> Iterator[str]:
    """Name the tensors that a function captures, also through functions that it captures."""
    if depth > DEEPEST:
        return
    try:
        scope = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return
    values: Mapping[str, Any] = {**scope.globals, **scope.nonlocals}
    for name, value in values.items():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, _arrays()):
                yield name
            elif inspect.isfunction(part):
                yield from _captured(part, depth + 1)


def _evaluated(mask_mod: MaskMod, sequence: int, head: int, queries: int, keys: int) -> Visible:
    """Evaluate a function at all pairs of a sequence and a head."""
    table = np.empty((queries, keys), dtype=bool)
    step = max(1, ROWS // keys)
    evaluated = _on_tensors if len(_arrays()) > 1 else _on_arrays
    for start in range(0, queries, step):
        rows = np.arange(start, min(start + step, queries), dtype=np.int32)
        try:
            part = evaluated(mask_mod, sequence, head, rows, np.arange(keys, dtype=np.int32))
        except Exception as error:
            raise InputError(f"mask_mod: fails on tensors of queries and keys: {shown(error, limit=200)}") from error
        if part.dtype != np.bool_:
            raise InputError(f"mask_mod: values of type {part.dtype} returned; allowed: booleans")
        table[start : start + len(rows)] = part
    return Visible(table)


def _on_tensors(mask_mod: MaskMod, sequence: int, head: int, rows: Any, columns: Any) -> Any:
    import torch

    first, second = (torch.tensor(number, dtype=torch.int32) for number in (sequence, head))
    visible = mask_mod(first, second, torch.from_numpy(rows)[:, None], torch.from_numpy(columns))
    return torch.broadcast_to(torch.as_tensor(visible), (len(rows), len(columns))).numpy(force=True)


def _on_arrays(mask_mod: MaskMod, sequence: int, head: int, rows: Any, columns: Any) -> Any:
    visible = mask_mod(np.int32(sequence), np.int32(head), rows[:, None], columns)
    return np.broadcast_to(np.asarray(visible), (len(rows), len(columns)))
