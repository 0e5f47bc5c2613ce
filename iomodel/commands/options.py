"""The options of the command line, each declared once and shared by the commands that take it.

Tiles come from the alphabet and options from the algorithms, so that a new tile name or a new algorithm needs no edit
here. All values arrive as text: what they may be is checked in one place, by the library.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from iomodel.algorithms import algorithm, list_algorithms
from iomodel.commands.masks import MASKS
from iomodel.commands.signature import option, switch
from iomodel.expressions import known_options
from iomodel.hardware import list_hardware
from iomodel.show import escape_markup
from iomodel.symbols import LAUNCH, OPTIONS, TILES, Entry
from iomodel.workload import Align, Call, Direction, DType

Algorithm = Annotated[
    str, typer.Argument(help=", ".join(list_algorithms()), autocompletion=list_algorithms, show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")]

DTYPES = get_args(DType)
SCALES = tuple(name for part in get_args(Call.model_fields["kv_scales"].annotation) for name in get_args(part))
LENGTHS = "LIST|@FILE"
"""Integers with commas between them, or a file of such."""
MEANINGS = {
    "lse": "store the log-sum-exp",
    "deterministic": "add to dQ in a fixed order, without atomics",
    "accumulate": "where heads share keys, add dK and dV to fp32 sums, and expand no copies",
    "tiled": "products in tiles, read again for each tile",
    "mask_pass": "the mask is added to S in a kernel of its own",
    "dropout_pass": "P is dropped out in a kernel of its own, which stores a mask",
    "packed": "the query heads that share keys are rows of one tile",
    **{entry.name: entry.meaning for entry in OPTIONS},
    "shared": "one matrix projects keys and values",
    "carry": "the state comes from HBM and goes back there",
    "fixed": "the fixed pattern, not the strided one",
    "second": "the second factor of the pattern, not the first",
}
"""What the algorithms' options do; an option without a line here is named all the same."""


def takers(name: str) -> str:
    """The algorithms that know an option, with the direction where it is only one of two.

    >>> takers("dq_buffers")
    'flash2 backward'
    """
    if all(name not in algorithm(taker).options for taker in list_algorithms()):
        return "every exact algorithm"  # how a nest is read, whatever it declares
    found = []
    for taker in list_algorithms():
        ways = [way for way in algorithm(taker).directions if way != "both"]
        taking = [way for way in ways if name in algorithm(taker).takes(way)]
        found += [taker] if taking == ways else [f"{taker} {way}" for way in taking]
    return ", ".join(found)


def _follows(entry: Entry) -> str:
    return f"; as --{entry.follows.replace('_', '-')} if not given" if entry.follows else ""


def _of_an_algorithm(name: str, default: Any) -> Any:
    by_default = {True: "on", False: "off"}.get(default, default) if isinstance(default, bool) else default
    help = ": ".join(filter(None, [takers(name), MEANINGS.get(name)])) + f" ({by_default})."
    if isinstance(default, bool):
        return switch(name, help, "Options of the algorithm", both_ways=True)
    return option(name, help, "Options of the algorithm", "INTEGER" if type(default) is int else "TEXT")


MASK = [
    option("mask", f"Which keys a query sees: {', '.join(MASKS)} (full).", "Mask", "NAME", MASKS),
    option("window_left", "Keys seen to the left of the diagonal; unbounded if not given.", "Mask"),
    option("window_right", "Keys seen to the right of the diagonal; unbounded if not given.", "Mask"),
    option("align", "Where the diagonal lies: bottom-right (default) or top-left.", "Mask", "NAME", get_args(Align)),
    option("document_lengths", "Documents packed into the sequence, such as 512,1024,512.", "Mask", LENGTHS),
    switch("document_causal", "In its document, a position sees up to itself.", "Mask"),
    option("block_mask", "A .npy file: which block of queries sees which block of keys.", "Mask", "FILE"),
    option("mask_block_q", "Queries of a block of the mask, such as 128.", "Mask"),
    option("mask_block_kv", "Keys of a block of the mask, such as 128.", "Mask"),
]
DIRECTION = option(
    "direction",
    "forward (default), backward, or both, one after the other.",
    "Workload",
    "NAME",
    get_args(Direction),
)
SHAPE = [
    option("q_len", "Queries a head (needed, or --q-lens).", "Workload"),
    option("head_dim", "Width of a row of Q and K (needed).", "Workload"),
    option("batch", "Sequences (1).", "Workload"),
    option("heads", "Query heads (1).", "Workload"),
    option("kv_heads", "Key/value heads, which divide --heads (as --heads).", "Workload"),
    option("kv_len", "Keys a head (as --q-len).", "Workload"),
    option("q_lens", "Queries of each sequence, as 100,200; or with its keys, as '1 900, 1 80'.", "Workload", LENGTHS),
    option("kv_lens", "Keys of each sequence (as --q-lens).", "Workload", LENGTHS),
    option("value_dim", "Width of a row of V and O (as --head-dim).", "Workload"),
    option("dtype", f"{', '.join(DTYPES)} (bf16).", "Workload", "NAME", DTYPES),
]
SWITCHES = [
    switch("bias", "An additive bias of the scores is read.", "Features"),
    switch("alibi", "A slope a head is read (ALiBi).", "Features"),
    switch("sinks", "A logit a head joins the softmax denominator.", "Features"),
    switch("latent", "V is the first columns of K, which all heads share (MLA).", "Features"),
]
VALUED = [
    option("softcap", "Scores s become C tanh(s / C), such as 30.", "Features", "C"),
    option("dropout", "Share of P that is dropped, from 0 to below 1, such as 0.1.", "Features", "SHARE"),
    option("kv_dtype", "Type of K and V in HBM (as --dtype), such as fp8.", "Features", "NAME", DTYPES),
    option("kv_scales", "fp32 scales of K and V: one a head, or one a token.", "Features", "NAME", SCALES),
    option("page_size", "K and V lie in pages of so many keys, such as 16.", "Features"),
]
NAMED = [
    switch("softcap", "A hyperbolic tangent of every score.", "Features"),
    switch("dropout", "A random number an element of P.", "Features"),
    switch("kv_dtype", "K and V have a dtype of their own, e_kv bytes wide.", "Features"),
    switch("head_scales", "fp32 scales of K and V, one a head.", "Features"),
    switch("token_scales", "fp32 scales of K and V, one a key.", "Features"),
    switch("paged", "K and V lie in pages of p keys.", "Features"),
]
WORKLOAD = [*SHAPE, DIRECTION, *MASK, *SWITCHES, *VALUED]
"""All that a call has, with numbers."""
KIND = [*MASK, DIRECTION, *SWITCHES, *NAMED]
"""What a formula depends on, without numbers: features by their names."""
BUDGET = [
    option("hardware", "A device, or its YAML file.", "Budget: exactly one", "NAME|FILE", tuple(list_hardware())),
    option("sram_bytes", "On-chip memory, such as 232448 or '227 KiB'.", "Budget: exactly one", "SIZE"),
    option("sram_elements", "On-chip memory in elements, the papers' M.", "Budget: exactly one"),
    option("alignment", "Tiles are multiples of it (the device's; 1 without).", "Solver"),
    option("min_block_kv", "The least block_kv allowed (1).", "Solver"),
    option("epsilon", "Share of the least traffic offered for a larger block_kv (0).", "Solver", "SHARE"),
]
OBJECTIVE = option(
    "objective", "traffic (default), proven; or time on the device.", "Solver", "NAME", ("traffic", "time")
)
APPROXIMATE = switch("approximate", "List those too that approximate attention, marked; none is the best.", "Solver")
RESIDENCY = [
    option(
        "residency",
        "gpu: tiles lie in shared memory and registers; chooses warps and stages.",
        "Solver",
        "NAME",
        ("gpu",),
    ),
    OBJECTIVE,
    option("min_blocks_per_sm", "With --residency, the least number of blocks an SM is to take (1).", "Solver"),
]
DEVICE = option("hardware", "A device, or its YAML file (needed).", "Device", "NAME|FILE", tuple(list_hardware()))
LAUNCHED = [option(e.name, f"{e.meaning} {escape_markup(f'[{e.unit}]')}.", "Tiles") for e in LAUNCH]
TILE = [option(e.name, f"{e.meaning} {escape_markup(f'[{e.unit}]')}{_follows(e)}.", "Tiles") for e in TILES]
ALGORITHM = [_of_an_algorithm(name, default) for name, default in known_options(list_algorithms()).items()]
