"""FlexAttention's templates as PyTorch ships them, with the places filled that PyTorch's code generator fills.

`triton_compiles.py` compiles them: the forward and the backward pass and the decode kernel, for a batch of 4, 16 heads
and 8,192 rows. With a causal mask four query heads share a head of keys, and a list of blocks that the mask sees whole
follows the list of the others; without a mask there is one list. The folder of the templates, `torch/_inductor/kernel/
flex/templates`, is named by `FLEX_TEMPLATES`, or found in the PyTorch that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

BATCH, HEADS, LENGTH, GROUP, SPARSE_BLOCK = 4, 16, 8192, 4, 128
FILES = {
    "flex_forward": ("flex_attention", "utilities", "common"),
    "flex_decode": ("flex_decode", "utilities", "common"),
    "flex_backward": ("flex_backwards", "utilities"),
}
TYPES = {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "fp8": "fp8e4nv"}
LISTS = {"KV_NUM_BLKS", "KV_IDX", "Q_NUM_BLKS", "Q_IDX"}


def folder() -> Path:
    """Find the templates."""
    if named := os.environ.get("FLEX_TEMPLATES"):
        return Path(named)
    found = importlib.util.find_spec("torch")
    assert found is not None, "FLEX_TEMPLATES: name the folder of the templates"
    return Path(str(found.origin)).parent / "_inductor/kernel/flex/templates"


def tensors(kernel: str, width: int, causal: bool) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of a kernel: kind of element, and sizes."""
    group, splits = GROUP if causal else 1, 8
    keys = ("data", (BATCH, HEADS // group, LENGTH, width))
    rows = ("data", (BATCH, HEADS, LENGTH, width))
    blocks = LENGTH // SPARSE_BLOCK
    counts, indices = ("i32", (1, 1, blocks)), ("i32", (1, 1, blocks, blocks))
    lists = {"KV_NUM_BLKS": counts, "KV_IDX": indices}
    full = {f"FULL_{name}": sizes for name, sizes in lists.items()}
    if kernel == "flex_backward":
        statistics = ("fp32", (BATCH, HEADS, LENGTH))
        backward = {"Q_NUM_BLKS": counts, "Q_IDX": indices}
        full |= {f"FULL_{name}": sizes for name, sizes in backward.items()}
        return {
            "Q": rows, "K": keys, "V": keys, "LSE": statistics, "DELTA": statistics, "DO": rows, "DQ": rows,
            "DV": keys, **lists, **backward, **(full if causal else {}), "OUT": keys,
        }  # fmt: skip
    if kernel == "flex_decode":
        statistics = ("fp32", (BATCH, splits, HEADS, 1))
        lists = {"KV_NUM_BLKS": ("i32", (1, 1, 1)), "KV_IDX": ("i32", (1, 1, 1, blocks))}
        full = {f"FULL_{name}": sizes for name, sizes in lists.items()}
        queries = ("data", (BATCH, HEADS // group, group, 1, width))
        out = ("fp32", (BATCH, splits, HEADS, 1, width))
        return {"Q": queries, "K": keys, "V": keys, "M": statistics, "L": statistics, **lists,
                **(full if causal else {}), "OUT": out}  # fmt: skip
    statistics = ("fp32", (BATCH, HEADS, LENGTH))
    return {"Q": rows, "K": keys, "V": keys, "LSE": statistics, "MAX": ("fp32", (1,)), **lists,
            **(full if causal else {}), "OUT": rows}  # fmt: skip


def constants(kernel: str, tiles: tuple[int, ...], width: int, causal: bool) -> dict[str, Any]:
    """The options that PyTorch gives a kernel, for lengths that the tiles divide."""
    options = {
        "INDEX_DTYPE": "tl.int32", "SPARSE_Q_BLOCK_SIZE": SPARSE_BLOCK, "SPARSE_KV_BLOCK_SIZE": SPARSE_BLOCK,
        "QK_HEAD_DIM": width, "QK_HEAD_DIM_ROUNDED": width, "V_HEAD_DIM": width, "V_HEAD_DIM_ROUNDED": width,
        "SM_SCALE": width**-0.5, "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False, "BLOCKS_ARE_CONTIGUOUS": False,
        "IS_DIVISIBLE": True, "SAFE_HEAD_DIM": True, "GQA_SHARED_HEADS": GROUP if causal else 1,
        "FLOAT32_PRECISION": "'ieee'", "HAS_FULL_BLOCKS": causal, "USE_TMA": False,
    }  # fmt: skip
    if kernel == "flex_backward":
        return options | dict(zip(("BLOCK_M1", "BLOCK_N1", "BLOCK_M2", "BLOCK_N2"), tiles, strict=True)) | {
            "WRITE_DQ": True,
        }  # fmt: skip
    options |= {"BLOCK_M": tiles[0], "BLOCK_N": tiles[1], "OUTPUT_LOGSUMEXP": True, "OUTPUT_MAX": False}
    if kernel == "flex_decode":
        options |= {"SPLIT_KV": 8, "SAFE_M_BOUNDARY": False, "SAFE_N_BOUNDARY": True}
    return options


def strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def rendered(kernel: str, tiles: tuple[int, ...], width: int, causal: bool) -> str:
    """Fill a template."""
    import jinja2

    shapes = {name: sizes for name, (_, sizes) in tensors(kernel, width, causal).items()}
    options = constants(kernel, tiles, width, causal)
    absent = {f"FULL_{name}" for name in LISTS} - set(shapes)
    shapes_of = shapes | {name: shapes.get(name.removeprefix("FULL_"), (1, 1, 1, 1)) for name in absent}

    def lines(indent: str) -> str:
        return f"\n{indent}".join(f"{name}: tl.constexpr = {value}" for name, value in options.items())

    names = ", ".join(f"arg_{name}" for name in shapes)
    named = [f"{name} = arg_{name}" for name in shapes if name != "OUT"] + [f"{name} = None" for name in absent]
    head = "\n    ".join([f"def {kernel}({names}):", lines("    "), *named])

    def stored(indices: tuple[str, ...], value: str, mask: str, **_: Any) -> str:
        terms = zip(indices, strides(shapes["OUT"]), strict=True)
        index = " + ".join(f"{name} * {step}" for name, step in terms)
        return f"tl.store(arg_OUT + {index}, {value}, mask={mask})"

    def stride(name: str, axis: int | None = None) -> Any:
        steps = strides(shapes_of[name])
        return ", ".join(map(str, steps)) if axis is None else steps[axis]

    def modification(
        subgraph_number: int, output_name: str | None, m: str, n: str, score: str = "", **more: Any
    ) -> str:
        if output_name is None:
            return "pass"
        seen = f"{m} >= {n}" if causal else f"({m} >= 0) & ({n} >= 0)"
        return f"{output_name} = {(score, more.get('grad_score_mod'), seen)[subgraph_number]}"

    places = {
        "def_kernel": lambda *_: f"import triton\nimport triton.language as tl\n\n\n@triton.jit\n{head}",
        "stride": stride, "size": lambda name, axis: shapes_of[name][axis], "gen_argdefs": lambda: names,
        "gen_defines": lambda: lines(""), "store_output": stored, "modification": modification,
    }  # fmt: skip
    if kernel != "flex_backward":  # one change of scores, then the mask
        places["modification"] = lambda subgraph_number, **more: modification(2 * subgraph_number, **more)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["indent_except_first"] = lambda text, depth: str(text).replace("\n", "\n" + "    " * depth)
    template = "".join((folder() / f"{name}.py.jinja").read_text() for name in FILES[kernel])
    return environment.from_string(template).render(**places, **options).lstrip()


@cache
def function(kernel: str, tiles: tuple[int, ...], width: int, causal: bool) -> Any:
    """Load a filled template."""
    path = Path(tempfile.mkdtemp()) / f"{kernel}.py"
    path.write_text(rendered(kernel, tiles, width, causal))
    spec = importlib.util.spec_from_file_location(f"rendered_{kernel}_{abs(hash((tiles, width, causal)))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel)


def source(kernel: str, tiles: tuple[int, ...], width: int, dtype: str, causal: bool) -> Any:
    """The kernel with its types; all pointers are multiples of 16, as a launch finds them."""
    from triton.compiler import ASTSource

    typed = {"data": TYPES[dtype], "fp32": "fp32", "i32": "i32"}
    signature = {f"arg_{name}": f"*{typed[kind]}" for name, (kind, _) in tensors(kernel, width, causal).items()}
    attributes = {(position,): [["tt.divisibility", 16]] for position in range(len(signature))}
    return ASTSource(function(kernel, tiles, width, causal), signature, {}, attributes)
