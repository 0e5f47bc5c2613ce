"""Options of the command line, each declared once and shared by commands.

Tiles come from the alphabet and options from the algorithms, so that a new tile name or algorithm needs no edit here.
All values arrive as text; the library validates them in one place.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, get_args

import typer

from iomodel.algorithms import algorithm, discovered
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.documented import of
from iomodel.cli.masks import MASKS
from iomodel.cli.signature import option, switch
from iomodel.common.display import escape_markup
from iomodel.counting.options import known_options
from iomodel.nests.alphabet import LAUNCH, OPTIONS, SHAPES, SHIPPED, TILES, Entry
from iomodel.nests.feature_names import WORDS
from iomodel.nests.implementation import TEXTBOOK
from iomodel.workloads.call import Call, Direction, DType, KVType
from iomodel.workloads.linear import WEIGHT_QUARTERS
from iomodel.workloads.recurrence import Gate
from iomodel.workloads.window import Align


def algorithm_names() -> list[str]:
    """List the algorithms that a shell completes: those of attention."""
    return list_algorithms()


def implementation_names() -> list[str]:
    """List the implementations that a shell completes."""
    names = (kernels.name for name in list_algorithms() for kernels in algorithm(name).implementations)
    return [*dict.fromkeys(names), TEXTBOOK.name]


Algorithm = Annotated[
    str, typer.Argument(help=", ".join(list_algorithms()), autocompletion=algorithm_names, show_default=False)
]


def tiled_names() -> list[str]:
    """List the algorithms of commands that ask for tiles."""
    return [name for name in list_algorithms() if not algorithm(name).untiled]


Tiled = Annotated[str, typer.Argument(help=", ".join(tiled_names()), autocompletion=tiled_names, show_default=False)]


def letters(known: Iterable[Entry]) -> list[Entry]:
    """Select the letters of the package and of the algorithms of this command line.

    A process may declare others, which no option of a command names.
    """
    announced = {entry for name in {*list_algorithms()} - {*discovered()} for entry in algorithm(name).symbols}
    return [entry for entry in known if entry in SHIPPED or entry in announced]


DTYPES = get_args(DType)
KV_DTYPES = get_args(KVType)
SCALES = tuple(name for part in get_args(Call.model_fields["kv_scales"].annotation) for name in get_args(part))
SOLVE = "solving.solve:solve"
LENGTHS = "LIST|@FILE"
"""Integers separated by commas, or a file of integers."""
MEANINGS = {
    "lse": "store the log-sum-exp",
    "deterministic": "add to dQ in a fixed order, without atomics",
    "accumulate": "with shared key/value heads, accumulate dK and dV in fp32 instead of expanding copies",
    "begin_once": "make D and begin dQ at the first visit of a query tile, and load both at later ones",
    "tiled": "tile the products, reloading operands for each tile",
    "mask_pass": "add the mask to S in a separate kernel",
    "dropout_pass": "apply dropout to P in a separate kernel, which stores a mask",
    "packed": "pack the query heads that share keys into one tile",
    **{entry.name: entry.meaning for entry in letters(OPTIONS)},
    "shared": "project keys and values with one matrix",
    "carry": "load the state from HBM and store it there",
    "resident": "keep whole rows of X and of the sums on chip",
    "materialize": "store the state before each chunk, and compute outputs in a kernel of their own",
    "adds_dw": "add to the dW of earlier rows",
    "separate_activation": "store the products with gate and up, and apply the activation in a kernel of its own",
    "fixed": "use the fixed pattern instead of the strided one",
    "second": "use the second factor of the pattern instead of the first",
    "padded_statistics": "move statistics of rows for whole tiles",
    "masked_loads": "load no keys after the last one that a query tile sees",
    "eager_loads": "load the stationary tile also where it sees nothing",
    "unskipped_window": "mask the keys before a window without skipping their tiles",
    "padded_queries": "let the rows that pad the last query tile see keys",
    "bias_vector": "load one row of the bias for all queries",
    "order": "plain, or serpentine: every second query tile walks the keys backwards and keeps the tile at the turn",
    "two_statistics": "keep m and l in place of the log-sum-exp",
    "value_slabs": "make O a slab of --block-value columns at a time",
    "drop_empty_splits": "leave nothing of a split without keys",
    "combine_one_split": "combine one split too",
    "delta_twice": "load D in both calls for dQ",
    "wrapped_edges": "load whole tiles of X and W at the edge of Y",
    "wrapped_columns": "load whole tiles of the weights at the last columns of a product",
    "separate_label": "move the logit of the label by itself",
    "stored_gates": "sum the gates in a kernel of their own, which stores the sums",
    "stored_inverse": "store the inverses of the delta rule, and make W and U in a kernel of their own",
    "future_blocks": "read the importance of later blocks too",
}
"""Meanings of the algorithms' options; an option without an entry is listed by name only."""


def takers(name: str) -> str:
    """List the algorithms with an option, with the direction if only one of two has it.

    >>> takers("dq_buffers")
    'flash2 backward'
    """
    if name == "packed":
        return "every exact algorithm"  # an option of the evaluation, not of a nest
    labels = []
    for taker, names in _taken().items():
        supporting = [direction for direction, own in names.items() if name in own]
        labels += [taker] if len(supporting) == len(names) else [f"{taker} {direction}" for direction in supporting]
    return ", ".join(labels)


@lru_cache(maxsize=1)
def _taken() -> dict[str, dict[str, set[str]]]:
    """Collect the options that each algorithm takes in each direction."""
    known = {name: algorithm(name) for name in list_algorithms()}
    return {
        name: {
            direction: {*declaration.takes(direction), *declaration.written(direction)}
            for direction in declaration.directions
            if direction != "both"
        }
        for name, declaration in known.items()
    }


def _follows(entry: Entry) -> str:
    return f"; default: --{entry.follows.replace('_', '-')}" if entry.follows else ""


def _of_an_algorithm(name: str, default: Any) -> Any:
    by_default = {True: "on", False: "off"}.get(default, default) if isinstance(default, bool) else default
    help = ": ".join(filter(None, [takers(name), MEANINGS.get(name)])) + f" ({by_default})."
    if isinstance(default, bool):
        return switch(name, help, "Options of the algorithm", both_ways=True)
    if name in WORDS:
        return option(name, help, "Options of the algorithm", "NAME", WORDS[name])
    return option(name, help, "Options of the algorithm", "INTEGER" if type(default) is int else "TEXT")


MASK = [
    option(
        "mask",
        f"Keys visible to each query: {', '.join(MASKS)} (full, or that of the options below).",
        "Mask",
        "NAME",
        MASKS,
    ),
    option(
        "window_left",
        "Visible keys to the left of the diagonal (unbounded); --sliding-window N is N - 1, causal.",
        "Mask",
    ),
    option("window_right", "Visible keys to the right of the diagonal (unbounded).", "Mask"),
    option("align", "Alignment of the diagonal: bottom-right (default) or top-left.", "Mask", "NAME", get_args(Align)),
    option("document_lengths", "Documents packed into the sequence, such as 512,1024,512.", "Mask", LENGTHS),
    switch("document_causal", "Apply a causal mask within each document.", "Mask"),
    option("block_mask", "A .npy file with one boolean per block of queries and block of keys.", "Mask", "FILE"),
    option("mask_block_q", "Queries per block of the mask, such as 128.", "Mask"),
    option("mask_block_kv", "Keys per block of the mask, such as 128.", "Mask"),
]
DIRECTION = option(
    "direction", "forward (default), backward, or both in sequence.", "Workload", "NAME", get_args(Direction)
)
SHAPE = [
    option("q_len", "Queries per head (required, or --q-lens).", "Workload"),
    option("head_dim", "Width of a row of Q and K (required).", "Workload"),
    option("batch", "Sequences (1).", "Workload"),
    option("heads", "Query heads (1).", "Workload"),
    option("kv_heads", "Key/value heads, a divisor of --heads (--heads).", "Workload"),
    option("kv_len", "Keys per head (--q-len).", "Workload"),
    option(
        "q_lens",
        "Queries of each sequence, such as 100,200; or queries and keys, such as '1 900, 1 80'.",
        "Workload",
        LENGTHS,
    ),
    option("kv_lens", "Keys of each sequence (--q-lens).", "Workload", LENGTHS),
    option("value_dim", "Width of a row of V and O (--head-dim).", "Workload"),
    option("dtype", f"{', '.join(DTYPES)} (bf16).", "Workload", "NAME", DTYPES),
]
SWITCHES = [
    switch("bias", "Add a bias to the scores, or to the rows of a linear layer.", "Features"),
    switch("alibi", "Add ALiBi, with one slope per head.", "Features"),
    switch("sinks", "Add one logit per head to the softmax denominator.", "Features"),
    switch("latent", "V is the first columns of K, shared by all heads (MLA).", "Features"),
]
VALUED = [
    option("softcap", "Scores s become C tanh(s / C), such as 30.", "Features", "C"),
    option("dropout", "Dropout probability of P, from 0 to below 1, such as 0.1.", "Features", "SHARE"),
    option("kv_dtype", "Type of K and V in HBM (--dtype), such as fp8.", "Features", "NAME", KV_DTYPES),
    option("kv_scales", "fp32 scales of K and V: one per head, or one per token.", "Features", "NAME", SCALES),
    option("page_size", "Keys per page of K and V, such as 16.", "Features"),
]
NAMED = [
    switch("softcap", "Apply a hyperbolic tangent to every score.", "Features"),
    switch("dropout", "Draw a random number per element of P.", "Features"),
    switch("kv_dtype", "K and V have a separate dtype, b_kv quarters of a bit wide.", "Features"),
    switch("head_scales", "fp32 scales of K and V, one per head.", "Features"),
    switch("token_scales", "fp32 scales of K and V, one per key.", "Features"),
    switch("paged", "K and V are stored in pages of p keys.", "Features"),
]
LAYER = [
    option("rows", "Rows of X, such as tokens; with the widths, a linear layer in place of attention.", "Linear layer"),
    option("in_features", "Width of a row of X.", "Linear layer"),
    option("out_features", "Width of a row of Y.", "Linear layer"),
    option("groups", "Products of this shape (1).", "Linear layer"),
    option("weight_dtype", "Type of W (--dtype), such as int4.", "Linear layer", "NAME", tuple(WEIGHT_QUARTERS)),
    option("out_dtype", "Type of Y (--dtype).", "Linear layer", "NAME", DTYPES),
    option("scale_block", "Terms per scale of a column of W (no scales).", "Linear layer"),
    switch("gated", "Two products of one X: act(X W_gate) * (X W_up).", "Linear layer", both_ways=True),
]
OF_MLP = [
    option("hidden_features", "Width of a hidden row; with it, an MLP in place of a linear layer.", "MLP"),
    option("loads", "Rows of each expert in place of --rows, such as 100,1,30.", "MLP", LENGTHS),
]
OF_LOSS = [
    option("vocab_size", "Words of a vocabulary; with it, a cross-entropy in place of a layer.", "Cross-entropy"),
    switch("gradients", "Make dX and dW with the losses.", "Cross-entropy"),
]
SECOND_WIDTHS = {
    "others": "the width of V in append, of a row of angles in rotary, of K and of V in rotary_append; the experts of "
    "a token in combine_experts",
    "angles": "the width of a row of angles in rotary_append",
}
"""Widths of kernels of rows beside that of a row, with their meaning."""
OF_ROWS = [
    option("channels", "Width of a row of copy, add, softmax, norm, activation and other kernels of rows.", "Rows"),
    *(option(name, f"Of some of them {meaning}.", "Rows") for name, meaning in SECOND_WIDTHS.items()),
]
RECURRENT = [
    option("tokens", "Positions of a sequence; with --head-dim, a recurrence in place of attention.", "Recurrence"),
    option("key_heads", "Heads of Q and K, a divisor of --heads (--heads).", "Recurrence"),
    option("gate", f"Decay: {', '.join(get_args(Gate))} (none).", "Recurrence", "NAME", get_args(Gate)),
    switch("delta", "The delta rule.", "Recurrence"),
    switch("stateful", "Load the state before the first position, store that after the last.", "Recurrence"),
]
WORKLOAD = [*SHAPE, DIRECTION, *MASK, *SWITCHES, *VALUED, *LAYER, *OF_MLP, *OF_LOSS, *OF_ROWS, *RECURRENT]
"""Fields of a call with numbers."""
OF_LAYER = [
    switch("gated", "A linear layer or an MLP makes two products of one X.", "Features"),
    switch("scaled", "A linear layer has scales of W.", "Features"),
    switch("gradients", "A cross-entropy makes dX and dW too.", "Features"),
]
OF_RECURRENCE = [
    switch("constant_decay", "A recurrence decays by a constant per head.", "Features"),
    switch("head_decay", "A recurrence decays by a number per position and head.", "Features"),
    switch("channel_decay", "A recurrence decays by a number per position and element of a key.", "Features"),
    switch("delta", "A recurrence follows the delta rule.", "Features"),
    switch("stateful", "A recurrence loads and stores its state.", "Features"),
]
KIND = [*MASK, DIRECTION, *SWITCHES, *NAMED, *OF_LAYER, *OF_RECURRENCE]
"""Fields that a formula depends on, without numbers, with features by name."""
BUDGET = of(SOLVE, "Budget: exactly one", "hardware sram_bytes sram_elements")
MEMORY = of(SOLVE, "Budget: exactly one", "sram_bytes sram_elements")
LIMITS = of(SOLVE, "Solver", "alignment min_block_kv epsilon")
OBJECTIVE = of(SOLVE, "Solver", "objective")
APPROXIMATE = switch(
    "approximate", "Include algorithms that approximate attention; they are marked and never the best.", "Solver"
)
IMPLEMENTATION = option(
    "implementation",
    "The kernels, such as flash-attention-3, or textbook for one memory (the fastest that runs on the device).",
    "Solver",
    "NAME",
    implementation_names,
)
KERNELS = [
    IMPLEMENTATION,
    option(
        "emit",
        "Print the choices within 5 % of the least time as source text: triton.Config of a Triton kernel, Helion's "
        "seeds, FlexAttention's kernel options, CuTe, JSON.",
        "Output",
        "FORM",
        ("triton", "helion", "flex-attention", "cute", "json"),
    ),
]
RANKED = of(SOLVE, "Solver", "objective min_blocks_per_sm top")
LAUNCHED = [option(e.name, f"{e.meaning} {escape_markup(f'[{e.unit}]')}.", "Tiles") for e in LAUNCH]
TILE = [option(e.name, f"{e.meaning} {escape_markup(f'[{e.unit}]')}{_follows(e)}.", "Tiles") for e in letters(TILES)]
ALGORITHM = [_of_an_algorithm(name, default) for name, default in known_options(list_algorithms()).items()]
_TAKEN = {"page_size", *(parameter.name for parameter in (*KIND, *ALGORITHM))}
_ASKED = [entry for kind, shape in SHAPES.items() if kind != "elementwise" for entry in shape]
SYMBOLS = [
    option(entry.name, f"{entry.meaning} {escape_markup(f'[{entry.unit}]')}.", "Symbols")
    for entry in {entry.name: entry for entry in _ASKED}.values()
    if entry.name not in _TAKEN
]
"""Numbers in place of the symbols of a formula."""
