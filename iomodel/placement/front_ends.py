"""Calls and options that the front end of an implementation refuses, and the values of its options that are legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iomodel.errors import InputError
from iomodel.nests.front_end import FrontEnd
from iomodel.nests.implementation import Implementation
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.window import Window

FIELDS = {"head_scales": "kv_scales", "token_scales": "kv_scales", "paged": "page_size"}
"""Fields of a call by the features that they set, where the names differ."""


def launched_first(kernels: Sequence[Implementation]) -> tuple[list[Implementation], list[Implementation]]:
    """Divide kernels into those that libraries launch for a call, and those for calls that no other runs."""
    usual = [known for known in kernels if not _stands_back(known, kernels)]
    return (usual, [known for known in kernels if _stands_back(known, kernels)]) if usual else (list(kernels), [])


def _stands_back(known: Implementation, kernels: Sequence[Implementation]) -> bool:
    """Check that libraries launch other kernels of a sequence in place of these."""
    return known.front_end.last or any(other.name in known.front_end.behind for other in kernels)


def refused(kernels: Implementation, call: Attention, options: Mapping[str, Any], label: str) -> InputError | None:
    """Return the reason for which a front end does not take a call with options; None if it does."""
    reason = next(_reasons(kernels.front_end, call, options), None)
    return None if reason is None else InputError(f"{reason}, for {label}")


def _reasons(front: FrontEnd, call: Attention, options: Mapping[str, Any]) -> Iterator[str]:
    taken = front.features if call.direction == "forward" else front.backward
    for name in call.features:
        if taken is not None and name not in taken:
            field = FIELDS.get(name, name)
            allowed = repr(call.dtype) if name == "kv_dtype" else "none"
            yield f"{field}: {getattr(call, field)!r} given; allowed: {allowed}"
    if len(both := [name for name in front.exclusive if name in call.features]) > 1:
        yield f"{both[0]}: given with {both[1]}; allowed: one of both"
    if front.prompts and call.q_len == 1:
        yield "q_len: 1 given; allowed: from 2 up"
    if front.queries is not None and call.q_len > front.queries:
        yield f"q_len: {call.q_len} given; allowed: up to {front.queries}"
    if front.rows is not None and call.q_len * call.group > front.rows:
        yield f"heads: {call.group} for each of kv_heads given; allowed: up to {front.rows // call.q_len}"
    if not front.grouped and call.group > 1:
        yield f"kv_heads: {call.kv_heads} given; allowed: {call.heads}, as many as heads"
    if front.masks is not None and (kind := mask_kind(call, front.masks)) not in front.masks:
        yield f"mask: {kind} given; allowed: {', '.join(front.masks)}"
    types = front.windowed_backward
    if types is not None and call.direction == "backward" and isinstance(call.mask, Window) and call.dtype not in types:
        yield f"mask: window given; allowed: {' or '.join(types)} rows in a backward pass, or no window"
    if call.page_size is not None and (call.page_size % front.page_step or call.page_size not in _pages(front, call)):
        allowed = " or ".join(map(str, front.pages)) or f"a multiple of {front.page_step}"
        yield f"page_size: {call.page_size} given; allowed: {allowed}"
    if options.get("packed") and True not in packings(front, call, options):
        yield f"packed: True given; allowed: {_packs(front, call)}"
    width = front.deterministic
    if options.get("deterministic") and width is not None and max(call.head_dim, call.value_dim) >= width:
        yield f"deterministic: True given; allowed: {f'with rows below {width} elements' if width else False}"


def _pages(front: FrontEnd, call: Attention) -> Sequence[int | None]:
    return front.pages or (call.page_size,)


def with_legal_pages(front: FrontEnd, call: Attention) -> Attention:
    """Return a call with the nearest page size that a front end takes: engines set that of their kernels."""
    size = call.page_size
    if size is None or (size % front.page_step == 0 and size in _pages(front, call)):
        return call
    legal = front.pages[0] if front.pages else -(-size // front.page_step) * front.page_step
    return call.model_copy(update={"page_size": legal})


def mask_kind(call: Attention | VarlenAttention, known: Sequence[str]) -> str:
    """Name the kind of mask of a call, in the words of a front end."""
    mask = call.mask
    if isinstance(mask, BlockMask):
        return "blocks"
    if isinstance(mask, Documents):
        return "documents"
    if not isinstance(mask, Window):
        return str(mask)
    if mask.left is None:
        return "causal" if mask.right == 0 else "window"
    return "left window" if "left window" in known and mask.right == 0 else "window"


def _packs(front: FrontEnd, call: Attention) -> str:
    if front.packs == "one query" and call.direction == "forward":
        return "with one query of heads that share keys, without a window, dropout and slopes"
    return "False"


def packings(front: FrontEnd, call: Attention | VarlenAttention, options: Mapping[str, Any]) -> tuple[bool, ...]:
    """List the packings of query heads that a front end has for a call; True first is forced.

    A call whose heads share no keys has nothing to pack.
    """
    if call.group == 1:
        return (False,) if front.packs == "never" else (False, True)
    if front.packs == "never" or (call.direction != "forward" and front.backward is not None):
        return (False,)
    if front.packs == "one query":
        swapped = call.longest.q_len == 1 and not isinstance(call.mask, Window)
        return (swapped and "dropout" not in call.features and "alibi" not in call.features,)
    if front.packs == "always" or (front.splits == "packed" and options.get("splits", 1) > 1):
        return (True,)
    return (False, True)
