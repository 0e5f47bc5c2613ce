"""Published Triton kernels that `triton_counts.py` counts, with the calls on which it launches them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from triton_counts import Stub, stub


@dataclass(frozen=True)
class Case:
    """A call of a wrapper."""

    name: str
    source: str
    version: str
    file: str
    run: Callable[[Path], None]
    call: dict[str, Any] = field(default_factory=dict)
    backward: bool = False


CASES: list[Case] = []


def case(name: str, source: str, version: str, file: str, *, backward: bool = False, **call: Any) -> Any:
    """List a function as a case."""

    def listed(run: Callable[[Path], None]) -> Callable[[Path], None]:
        CASES.append(Case(name, source, version, file, run, call, backward))
        return run

    return listed


def loaded(path: Path, name: str) -> Any:
    """Import a file under a name."""
    if name not in sys.modules or isinstance(sys.modules[name], Stub):
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


# --- Triton's tutorial on fused attention

TUTORIAL = ("github.com/triton-lang/triton-cpu", "910ba2e98deb5180a5fb8f204f57cd6e71d2436a",
            "python/tutorials/06-fused-attention.py")  # fmt: skip


def tutorial(sources: Path, causal: bool, backward: bool) -> None:
    stub("pytest")
    module = loaded(sources / "triton-cpu" / TUTORIAL[2], "tutorial_06")
    q, k, v = (torch.randn(1, 2, 256, 64, dtype=torch.float16, requires_grad=backward) for _ in range(3))
    out = module.attention(q, k, v, causal, 0.125, False)
    if backward:
        out.backward(torch.randn_like(out))


@case("tutorial-06 full", *TUTORIAL, backward=True, heads=2, q_len=256, head_dim=64, dtype="fp16")
def tutorial_full(sources: Path) -> None:
    tutorial(sources, causal=False, backward=True)


@case("tutorial-06 causal", *TUTORIAL, backward=True, heads=2, q_len=256, head_dim=64, dtype="fp16", mask="causal")
def tutorial_causal(sources: Path) -> None:
    tutorial(sources, causal=True, backward=True)


# --- lightllm: ragged prefill, decode over a table of tokens

LIGHTLLM = ("github.com/ModelTC/lightllm", "fc72ffab9a3455cfb571f22d45ab777cc29de0de")
LLAMA = "lightllm/models/llama/triton_kernel"


def lightllm(sources: Path, file: str) -> Any:
    stub("lightllm", "lightllm.utils")
    stub("lightllm.utils.device_utils", is_tesla=lambda: False)
    return loaded(sources / "lightllm" / LLAMA / file, f"lightllm_{file[:-3]}")


def offsets(lengths: list[int]) -> torch.Tensor:
    """Cumulative lengths, from 0."""
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


@case("lightllm context", *LIGHTLLM, f"{LLAMA}/context_flashattention_nopad.py", heads=4, kv_heads=2,
      q_lens=[70, 200], kv_lens=[100, 200], head_dim=32, dtype="fp16", mask="causal", page_size=1)  # fmt: skip
def lightllm_context(sources: Path) -> None:
    module = lightllm(sources, "context_flashattention_nopad.py")
    q, k, v = (torch.randn(n, h, 32, dtype=torch.float16) for n, h in ((270, 4), (512, 2), (512, 2)))
    table = torch.randperm(512)[: 2 * 200].reshape(2, 200).to(torch.int32)
    module.context_attention_fwd(
        q, k, v, torch.empty_like(q), torch.arange(2, dtype=torch.int32), offsets([70, 200])[:2],
        torch.tensor([100, 200], dtype=torch.int32), torch.tensor([30, 0], dtype=torch.int32), 200, table,
    )  # fmt: skip


@case("lightllm context without a cache", *LIGHTLLM, f"{LLAMA}/context_flashattention_nopad.py", heads=4, kv_heads=2,
      q_lens=[70, 200], kv_lens=[70, 200], head_dim=32, dtype="fp16", mask="causal")  # fmt: skip
def lightllm_context_alone(sources: Path) -> None:
    module = lightllm(sources, "context_flashattention_nopad.py")
    q, k, v = (torch.randn(270, h, 32, dtype=torch.float16) for h in (4, 2, 2))
    lengths = torch.tensor([70, 200], dtype=torch.int32)
    module.context_attention_fwd_no_prompt_cache(q, k, v, torch.empty_like(q), offsets([70, 200])[:2], lengths, 200)


@case("lightllm decode", *LIGHTLLM, f"{LLAMA}/gqa_flash_decoding_stage1.py, gqa_flash_decoding_stage2.py", heads=8,
      kv_heads=2, q_lens=[1, 1], kv_lens=[75, 200], head_dim=32, dtype="fp16", page_size=1)  # fmt: skip
def lightllm_decode(sources: Path) -> None:
    first, second = (lightllm(sources, f"gqa_flash_decoding_stage{n}.py") for n in (1, 2))
    q = torch.randn(2, 8, 32, dtype=torch.float16)
    k, v = (torch.randn(512, 2, 32, dtype=torch.float16) for _ in range(2))
    table = torch.randperm(512)[: 2 * 200].reshape(2, 200).to(torch.int32)
    lengths, block = torch.tensor([75, 200], dtype=torch.int32), 64
    middle, statistics = torch.empty(2, 8, 4, 32), torch.empty(2, 8, 4)
    requests = torch.arange(2, dtype=torch.int32)
    first.flash_decode_stage1(q, k, v, table, requests, lengths, 200, middle, statistics, block)
    second.flash_decode_stage2(middle, statistics, lengths, torch.empty_like(q), block)


# --- SGLang: decode and extend over a paged cache, ragged prefill

SGLANG = ("pypi.org/project/sglang", "0.5.23")
OPS = "sglang/kernels/ops/attention"


def sglang(sources: Path, file: str) -> Any:
    packages = ("sglang", "sglang.kernels", "sglang.kernels.ops", "sglang.kernels.ops.attention", "sglang.srt")
    if "sglang" not in sys.modules:
        stub(*packages, "sglang.srt.environ", "sglang.jit_kernel")
        no = {f"is_{name}": lambda: False for name in ("hip", "gfx95_supported", "gfx1250_supported")}
        stub("sglang.srt.utils", is_cuda=lambda: True, get_device_core_count=lambda *_: 132, **no)
        loaded(sources / "sglang" / OPS / "score_mod.py", "sglang.kernels.ops.attention.score_mod")
    if file != "decode_attention.py":
        sglang(sources, "decode_attention.py")
    return loaded(sources / "sglang" / OPS / file, f"sglang.kernels.ops.attention.{file[:-3]}")


def sglang_decode(sources: Path, heads: int) -> None:
    module = sglang(sources, "decode_attention.py")
    q, lengths, splits = torch.randn(2, heads, 32, dtype=torch.float16), [75, 200], 4
    k, v = (torch.randn(512, 2, 32, dtype=torch.float16) for _ in range(2))
    middle, statistics = torch.empty(2, heads, splits, 32), torch.empty(2, heads, splits)
    module.decode_attention_fwd(
        q, k, v, torch.empty_like(q), offsets(lengths), torch.randperm(512)[:275], middle, statistics,
        torch.full((2,), splits, dtype=torch.int32), splits, 32**-0.5, 1.0, 1.0,
    )  # fmt: skip


@case("sglang decode", *SGLANG, f"{OPS}/decode_attention.py", heads=2, kv_heads=2, q_lens=[1, 1], kv_lens=[75, 200],
      head_dim=32, dtype="fp16", page_size=1)  # fmt: skip
def sglang_decode_one(sources: Path) -> None:
    sglang_decode(sources, 2)


@case("sglang decode grouped", *SGLANG, f"{OPS}/decode_attention.py", heads=8, kv_heads=2, q_lens=[1, 1],
      kv_lens=[75, 200], head_dim=32, dtype="fp16", page_size=1)  # fmt: skip
def sglang_decode_grouped(sources: Path) -> None:
    sglang_decode(sources, 8)


@case("sglang extend", *SGLANG, f"{OPS}/extend_attention.py", heads=4, kv_heads=2, q_lens=[70, 150],
      kv_lens=[100, 150], head_dim=32, dtype="fp16", mask="causal", page_size=1)  # fmt: skip
def sglang_extend(sources: Path) -> None:
    module = sglang(sources, "extend_attention.py")
    q, k, v = (torch.randn(220, h, 32, dtype=torch.float16) for h in (4, 2, 2))
    buffers = (torch.randn(512, 2, 32, dtype=torch.float16) for _ in range(2))
    module.extend_attention_fwd(
        q, k, v, torch.empty_like(q), *buffers, offsets([70, 150]), offsets([30, 0]), torch.randperm(512)[:30], None,
        True, None, 150, 1.0, 1.0,
    )  # fmt: skip


@case("sglang prefill", *SGLANG, f"{OPS}/prefill_attention.py", heads=4, kv_heads=2, q_lens=[70, 150],
      kv_lens=[70, 150], head_dim=32, dtype="fp16", mask="causal")  # fmt: skip
def sglang_prefill(sources: Path) -> None:
    module = sglang(sources, "prefill_attention.py")
    q, k, v = (torch.randn(220, h, 32, dtype=torch.float16) for h in (4, 2, 2))
    lengths = torch.tensor([70, 150], dtype=torch.int32)
    module.context_attention_fwd(q, k, v, torch.empty_like(q), offsets([70, 150])[:2], lengths, 150)


# --- vLLM: unified attention over a paged cache

VLLM = ("pypi.org/project/vllm", "0.33.0", "vllm/v1/attention/ops/triton_unified_attention.py")


def vllm(sources: Path) -> Any:
    import triton
    from triton import language

    packages = ("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.ops")
    if "vllm" not in sys.modules:
        stub(*packages, "vllm.logger", "vllm.v1.kv_cache_interface")
        stub("vllm.envs", VLLM_BATCH_INVARIANT=False)
        sys.modules["vllm"].envs = sys.modules["vllm.envs"]
        platform = Stub("platform")
        vars(platform).update(fp8_dtype=lambda: torch.float8_e4m3fn, is_device_capability_family=lambda _: False)
        stub("vllm.platforms", current_platform=platform)
        stub("vllm.triton_utils", tl=language, triton=triton)
        helpers = sources / "vllm" / "vllm/v1/attention/ops/triton_attention_helpers.py"
        loaded(helpers, "vllm.v1.attention.ops.triton_attention_helpers")
    return loaded(sources / "vllm" / VLLM[2], "vllm_unified_attention")


def vllm_unified(sources: Path, lengths: list[int], keys: list[int], segments: int = 0, window: int = -1) -> None:
    module = vllm(sources)
    tokens, page = sum(lengths), 16
    q = torch.randn(tokens, 8, 32, dtype=torch.float16)
    k, v = (torch.randn(40, page, 2, 32, dtype=torch.float16) for _ in range(2))
    table = torch.randperm(40)[:32].reshape(2, 16).to(torch.int32)
    scratch: dict[str, Any] = {}
    if segments:
        scratch = {
            "seq_threshold_3D": 128, "num_par_softmax_segments": segments,
            "softmax_segm_output": torch.empty(tokens, 8, segments, 32),
            "softmax_segm_max": torch.empty(tokens, 8, segments),
            "softmax_segm_expsum": torch.empty(tokens, 8, segments),
        }  # fmt: skip
    module.unified_attention(
        q, k, v, torch.empty_like(q), offsets(lengths), max(lengths), torch.tensor(keys, dtype=torch.int32), max(keys),
        32**-0.5, True, (window, 0 if window >= 0 else -1), table, 0, None, None, None, **scratch,
        kv_quant_mode=0,
    )  # fmt: skip


@case("vllm unified prefill", *VLLM, heads=8, kv_heads=2, q_lens=[37, 90], kv_lens=[100, 90], head_dim=32,
      dtype="fp16", mask="causal", page_size=16)  # fmt: skip
def vllm_prefill(sources: Path) -> None:
    vllm_unified(sources, [37, 90], [100, 90])


@case("vllm unified decode", *VLLM, heads=8, kv_heads=2, q_lens=[1, 1], kv_lens=[75, 200], head_dim=32, dtype="fp16",
      page_size=16)  # fmt: skip
def vllm_decode(sources: Path) -> None:
    vllm_unified(sources, [1, 1], [75, 200], segments=4)


# --- flash-linear-attention: chunks of linear attention, softmax attention, forward and backward

FLA = ("github.com/fla-org/flash-linear-attention", "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89")


def fla(sources: Path) -> None:
    """Make packages whose `__init__` would import every layer and operator."""
    if "fla" not in sys.modules:
        stub("fla", "fla.ops", "fla.layers", "fla.models", "fla.modules", __version__="0")
        for name in ("fla", "fla.ops"):
            sys.modules[name].__path__ = [str(sources / "fla" / name.replace(".", "/"))]


@case("fla linear attention", *FLA, "fla/ops/linear_attn/chunk.py", backward=True, heads=2, q_len=150, head_dim=32,
      dtype="fp16", mask="causal")  # fmt: skip
def fla_linear(sources: Path) -> None:
    fla(sources)
    from fla.ops.linear_attn.chunk import chunk_linear_attn

    q, k, v = (torch.randn(1, 150, 2, 32, dtype=torch.float16, requires_grad=True) for _ in range(3))
    out, _ = chunk_linear_attn(q, k, v, normalize=False)
    out.backward(torch.randn_like(out))


@case("fla attention", *FLA, "fla/ops/attn/parallel.py", backward=True, heads=2, q_len=150, head_dim=32,
      dtype="fp16", mask="causal")  # fmt: skip
def fla_attention(sources: Path) -> None:
    fla(sources)
    from fla.ops.attn.parallel import parallel_attn

    q, k, v = (torch.randn(1, 150, 2, 32, dtype=torch.float16, requires_grad=True) for _ in range(3))
    out = parallel_attn(q, k, v)
    (out[0] if isinstance(out, tuple) else out).backward(torch.randn(1, 150, 2, 32, dtype=torch.float16))


# --- FlexAttention: PyTorch's template, with the places filled that the code generator fills

FLEX = (
    "pypi.org/project/torch",
    torch.__version__.partition("+")[0],
    "torch/_inductor/kernel/flex/templates/flex_attention.py.jinja",
)


def flex_source(tensors: dict[str, torch.Tensor], out: torch.Tensor, constants: dict[str, Any]) -> str:
    """Fill the template: sizes and strides as numbers, a causal mask, scores as they are."""
    import jinja2
    from torch._inductor.kernel.flex.common import load_flex_template

    def listed(numbers: Any) -> str:
        return ", ".join(map(str, numbers))

    def lines(indent: str) -> str:
        return f"\n{indent}".join(f"{name}: tl.constexpr = {value}" for name, value in constants.items())

    names = ", ".join(f"arg_{name}" for name in (*tensors, "OUT"))
    head = "\n    ".join([f"def flex_attention({names}):", lines("    "), *(f"{n} = arg_{n}" for n in tensors)])
    index = " + ".join(f"{i} * {n}" for i, n in zip(("idx_zq", "idx_hq", "idx_m", "idx_d"), out.stride(), strict=True))
    places = {
        "def_kernel": lambda *_: f"import triton\nimport triton.language as tl\n\n\n@triton.jit\n{head}",
        "stride": lambda name, axis=None: (
            listed(tensors[name].stride()) if axis is None else tensors[name].stride(axis)
        ),
        "size": lambda name, axis: tensors[name].shape[axis],
        "gen_argdefs": lambda: names,
        "gen_defines": lambda: lines(""),
        "modification": lambda subgraph_number, output_name, m, n, score, **_: (
            f"{output_name} = {f'{m} >= {n}' if subgraph_number else score}"
        ),
        "store_output": lambda *_, **__: f"tl.store(arg_OUT + {index}, acc, mask=mask)",
    }
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["indent_except_first"] = lambda text, depth: str(text).replace("\n", "\n" + "    " * depth)
    template = "".join(load_flex_template(name) for name in ("flex_attention", "utilities", "common"))
    return environment.from_string(template).render(**places, **constants)


@case("flex attention", *FLEX, heads=4, kv_heads=2, q_len=300, head_dim=32, dtype="fp16",
      mask="causal")  # fmt: skip
def flex_attention(sources: Path) -> None:  # noqa: ARG001
    from tempfile import TemporaryDirectory

    from torch.nn.attention.flex_attention import create_block_mask

    mask = create_block_mask(lambda _, __, q, k: q >= k, 1, 1, 300, 300, device="cpu")
    q, k, v = (torch.randn(1, h, 300, 32, dtype=torch.float16) for h in (4, 2, 2))
    tensors = {
        "Q": q, "K": k, "V": v, "LSE": torch.empty(1, 4, 300), "MAX": torch.empty(1), "KV_NUM_BLKS": mask.kv_num_blocks,
        "KV_IDX": mask.kv_indices, "FULL_KV_NUM_BLKS": mask.full_kv_num_blocks, "FULL_KV_IDX": mask.full_kv_indices,
    }  # fmt: skip
    constants = {
        "INDEX_DTYPE": "tl.int32", "BLOCK_M": 64, "BLOCK_N": 32, "SPARSE_Q_BLOCK_SIZE": 128,
        "SPARSE_KV_BLOCK_SIZE": 128, "QK_HEAD_DIM": 32, "QK_HEAD_DIM_ROUNDED": 32, "V_HEAD_DIM": 32,
        "V_HEAD_DIM_ROUNDED": 32, "SM_SCALE": 32**-0.5, "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False,
        "BLOCKS_ARE_CONTIGUOUS": False, "IS_DIVISIBLE": False, "SAFE_HEAD_DIM": True, "GQA_SHARED_HEADS": 2,
        "OUTPUT_LOGSUMEXP": True, "OUTPUT_MAX": False, "FLOAT32_PRECISION": "'ieee'", "HAS_FULL_BLOCKS": True,
        "USE_TMA": False,
    }  # fmt: skip
    out = torch.empty_like(q)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "flex.py"
        path.write_text(flex_source(tensors, out, constants))
        kernel = loaded(path, "flex_rendered").flex_attention
        kernel[(5, 1, 4)](*tensors.values(), out)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True
    )
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)
