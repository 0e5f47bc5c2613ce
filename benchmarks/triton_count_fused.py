"""Published Triton kernels beyond attention that `triton_counts.py` counts: norms, MLPs, losses, recurrences, experts.

Each call is checked against PyTorch in fp32 before its counts are kept.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton_count_cases import FLA, case, fla, loaded
from triton_counts import stub

HALF = torch.float16


def close(made: torch.Tensor, expected: torch.Tensor, tolerance: float = 2e-2) -> None:
    torch.testing.assert_close(made.detach().float(), expected.detach().float(), rtol=tolerance, atol=tolerance)


# --- Liger-Kernel: RMSNorm, the activation of SwiGLU, rotation, cross-entropy of a linear layer

LIGER = ("github.com/linkedin/Liger-Kernel", "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c")
PATH = "src/liger_kernel/ops"


def liger(sources: Path, file: str) -> Any:
    """Import a file of operators."""
    if "liger_kernel" not in sys.modules:
        stub("liger_kernel", "liger_kernel.ops")
        for name in ("liger_kernel", "liger_kernel.ops"):
            sys.modules[name].__path__ = [str(sources / "liger/src" / name.replace(".", "/"))]
    utils = import_module("liger_kernel.ops.utils")
    utils.is_hip = lambda: False
    return import_module(f"liger_kernel.ops.{file}")


def liger_norm(sources: Path, rows: int, channels: int) -> None:
    module = liger(sources, "rms_norm")
    x, w = torch.randn(rows, channels), torch.randn(channels)
    x, w = (each.to(HALF).requires_grad_() for each in (x, w))
    y = module.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False)
    dy = torch.randn_like(y)
    y.backward(dy)
    a, b = (each.detach().float().requires_grad_() for each in (x, w))
    expected = a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1e-6) * b
    expected.backward(dy.float())
    close(y, expected)
    close(x.grad, a.grad)
    close(w.grad, b.grad, 5e-2)
    import triton

    # As on a GPU: a program for each of 4 processors; the wrapper launches one on the CPU.
    again, parts = torch.empty_like(x), torch.empty(4, channels)
    rstd = torch.rsqrt((a * a).mean(-1) + 1e-6).detach()
    module._rms_norm_backward_kernel[(4,)](
        dy, channels, again, channels, x.detach(), channels, triton.language.float16, w.detach(), 1, rstd, 1, parts,
        channels, rows, channels, 0.0, -(-rows // 4), 0, elementwise_affine=True,
        BLOCK_SIZE=triton.next_power_of_2(channels),
    )  # fmt: skip
    close(again, a.grad)
    close(parts.sum(0), b.grad, 5e-2)


def liger_swiglu(sources: Path, rows: int, channels: int) -> None:
    module = liger(sources, "swiglu")
    a, b = (torch.randn(rows, channels).to(HALF).requires_grad_() for _ in range(2))
    c = module.LigerSiLUMulFunction.apply(a, b)
    p, q = (each.detach().float().requires_grad_() for each in (a, b))
    expected = torch.nn.functional.silu(p) * q
    close(c, expected)
    dc = torch.randn_like(c)
    c.backward(dc)
    expected.backward(dc.float())
    close(a.grad, p.grad)
    close(b.grad, q.grad)


def liger_rope(sources: Path, tokens: int, heads: int, kv_heads: int, head_dim: int) -> None:
    module = liger(sources, "rope")
    q, k = (torch.randn(1, h, tokens, head_dim) for h in (heads, kv_heads))
    angles = torch.outer(torch.arange(tokens), 10_000.0 ** (-torch.arange(0, head_dim, 2) / head_dim))
    cos, sin = (f(angles).repeat(1, 2)[None] for f in (torch.cos, torch.sin))

    def rotated(x: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat((-high, low), -1) * sin

    expected = rotated(q), rotated(k)
    made = module.rope_forward(q.clone(), k.clone(), cos, sin)
    close(made[0], expected[0])
    close(made[1], expected[1])


def liger_loss(sources: Path, rows: int, features: int, words: int) -> None:
    module = liger(sources, "fused_linear_cross_entropy")
    sys.modules["liger_kernel.ops.cross_entropy"].MAX_FUSED_SIZE = module.MAX_FUSED_SIZE = 64
    x, w = (torch.randn(n, features).mul(0.3).to(HALF).requires_grad_() for n in (rows, words))
    labels = torch.randint(words, (rows,))
    loss, *_, dx, dw, _ = module.fused_linear_cross_entropy_forward(x, w, labels)
    a, b = (each.detach().float().requires_grad_() for each in (x, w))
    expected = torch.nn.functional.cross_entropy(a @ b.T, labels)
    expected.backward()
    close(loss, expected)
    close(dx, a.grad)
    close(dw, b.grad)


for shape in ((37, 96), (300, 1000)):
    sizes = dict(zip(("rows", "channels"), shape, strict=True))
    listed = case(f"liger norm {shape}", *LIGER, f"{PATH}/rms_norm.py", backward=True, **sizes, dtype="fp16")
    listed(lambda sources, shape=shape: liger_norm(sources, *shape))
    listed = case(f"liger swiglu {shape}", *LIGER, f"{PATH}/swiglu.py", backward=True, **sizes, dtype="fp16")
    listed(lambda sources, shape=shape: liger_swiglu(sources, *shape))
for shape in ((45, 4, 2, 32), (7, 3, 1, 48)):
    sizes = dict(zip(("tokens", "heads", "kv_heads", "head_dim"), shape, strict=True))
    listed = case(f"liger rope {shape}", *LIGER, f"{PATH}/rope.py", **sizes, dtype="fp32")
    listed(lambda sources, shape=shape: liger_rope(sources, *shape))
for shape in ((50, 24, 100), (33, 16, 130)):
    sizes = dict(zip(("rows", "in_features", "vocab_size"), shape, strict=True))
    file = f"{PATH}/fused_linear_cross_entropy.py, {PATH}/cross_entropy.py"
    listed = case(f"liger loss {shape}", *LIGER, file, backward=True, **sizes, dtype="fp16")
    listed(lambda sources, shape=shape: liger_loss(sources, *shape))


# --- flash-linear-attention: gated delta rule, gated linear attention, in chunks


def recurrent(q: Any, k: Any, v: Any, decay: Any, beta: Any = None, state: Any = None) -> tuple[Any, Any]:
    """Apply the recurrence position after position; q, k of [tokens, heads, d], decay of [tokens, heads, d or 1]."""
    made = []
    heads, width = v.shape[1:]
    state = torch.zeros(heads, q.shape[-1], width) if state is None else state[0].float()
    for t in range(len(q)):
        state = state * decay[t][:, :, None]
        new = v[t] if beta is None else beta[t][:, None] * (v[t] - torch.einsum("hdv,hd->hv", state, k[t]))
        state = state + torch.einsum("hd,hv->hdv", k[t], new)
        made.append(torch.einsum("hdv,hd->hv", state, q[t]))
    return torch.stack(made), state


def fla_delta(sources: Path, tokens: int, heads: int, key_heads: int, head_dim: int, value_dim: int) -> None:
    fla(sources)
    stub("fla.ops.cp", "fla.ops.cp.chunk_delta_h")
    sys.modules["fla.modules"].__path__ = [str(sources / "fla/fla/modules")]
    from fla.ops.gated_delta_rule.chunk import chunk_gated_delta_rule

    q, k = (torch.nn.functional.normalize(torch.randn(1, tokens, key_heads, head_dim), dim=-1) for _ in range(2))
    v = torch.randn(1, tokens, heads, value_dim)
    q, k, v = (each.to(HALF) for each in (q, k, v))
    g = torch.nn.functional.logsigmoid(torch.randn(1, tokens, heads) + 2)
    beta = torch.rand(1, tokens, heads).to(HALF)
    state = torch.randn(1, heads, head_dim, value_dim)
    out, last = chunk_gated_delta_rule(q, k, v, g, beta, scale=1.0, initial_state=state, output_final_state=True)
    many = heads // key_heads
    a, b = (each[0].float().repeat_interleave(many, 1) for each in (q, k))
    expected, final = recurrent(a, b, v[0].float(), g[0].exp()[..., None], beta[0].float(), state)
    close(out[0], expected, 4e-2)
    close(last[0], final, 4e-2)


def fla_gla(sources: Path, tokens: int, heads: int, head_dim: int, value_dim: int) -> None:
    fla(sources)
    import_module("fla.utils").check_shared_mem = lambda *_, **__: True  # as on an H100
    from fla.ops.common.chunk_h import chunk_fwd_kernel_h
    from fla.ops.gla.chunk import chunk_gla

    tuned = chunk_fwd_kernel_h.fn
    tuned.configs = [each for each in tuned.configs if each.kwargs == {"BK": 64, "BV": 32}]

    q, k = (torch.randn(1, tokens, heads, head_dim).mul(0.3).to(HALF) for _ in range(2))
    v = torch.randn(1, tokens, heads, value_dim).to(HALF)
    g = torch.nn.functional.logsigmoid(torch.randn(1, tokens, heads, head_dim) + 3)
    state = torch.randn(1, heads, head_dim, value_dim)
    out, last = chunk_gla(q, k, v, g, scale=1.0, initial_state=state, output_final_state=True)
    expected, final = recurrent(q[0].float(), k[0].float(), v[0].float(), g[0].exp(), state=state)
    close(out[0], expected, 4e-2)
    close(last[0], final, 4e-2)


for shape in ((150, 2, 1, 64, 48), (70, 2, 2, 96, 64)):
    sizes = dict(zip(("tokens", "heads", "key_heads", "head_dim", "value_dim"), shape, strict=True))
    call = {**sizes, "gate": "head", "delta": True, "stateful": True, "dtype": "fp16"}
    listed = case(f"fla gated delta rule {shape}", *FLA, "fla/ops/gated_delta_rule/chunk.py", **call)
    listed(lambda sources, shape=shape: fla_delta(sources, *shape))
for shape in ((150, 2, 64, 48), (70, 2, 40, 64)):
    sizes = dict(zip(("tokens", "heads", "head_dim", "value_dim"), shape, strict=True))
    call = {**sizes, "gate": "channel", "stateful": True, "dtype": "fp16"}
    listed = case(f"fla gated linear attention {shape}", *FLA, "fla/ops/gla/chunk.py", **call)
    listed(lambda sources, shape=shape: fla_gla(sources, *shape))


# --- SGLang: experts on tokens sorted by expert, as in vLLM, from which the kernel comes

SGLANG = ("pypi.org/project/sglang", "0.5.23", "sglang/kernels/ops/moe/fused_moe_triton_kernels.py")


def sglang_moe(sources: Path) -> Any:
    stub("sglang.kernels.jit", "sglang.kernels.ops.quantization", "sglang.srt.layers", "sglang.srt.layers.moe")
    for name in ("", ".kernels", ".kernels.ops", ".kernels.ops.moe", ".srt"):
        if f"sglang{name}" not in sys.modules:
            stub(f"sglang{name}")
    stub("sglang.kernels.jit.utils", is_arch_support_pdl=lambda: False)
    stub("sglang.kernels.ops.quantization.fp8_kernel", "sglang.kernels.ops.quantization.int8_kernel")
    stub("sglang.srt.batch_invariant_ops", is_batch_invariant_mode_enabled=lambda: False)
    off = SimpleNamespace(get=lambda: False)
    stub("sglang.srt.environ", envs=SimpleNamespace(SGLANG_USE_AITER=off))
    stub("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda _: 0)
    no = {f"is_{name}": lambda: False for name in ("cpu", "hip", "sm90_supported")}
    stub("sglang.srt.utils", is_cuda=lambda: True, cpu_has_amx_support=lambda: False, **no)
    return loaded(sources / "sglang" / SGLANG[2], "sglang_moe")


def sorted_by_expert(ids: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places of the choices by expert, each expert padded to whole tiles; the expert of a tile; the padded number."""
    flat = ids.flatten()
    places, of_tiles = [], []
    for expert in range(experts):
        own = torch.nonzero(flat == expert).flatten()
        tiles = -(-len(own) // block)
        places.append(torch.cat((own, torch.full((tiles * block - len(own),), len(flat)))))
        of_tiles += [expert] * tiles
    every = torch.cat(places).to(torch.int32)
    return every, torch.tensor(of_tiles, dtype=torch.int32), torch.tensor([len(every)], dtype=torch.int32)


def sglang_experts(sources: Path, ids: list[list[int]], features: int, hidden: int, tile: dict[str, int]) -> None:
    import triton.language as tl

    module = sglang_moe(sources)
    chosen = torch.tensor(ids)
    tokens, top = chosen.shape
    experts = int(chosen.max()) + 1
    x = torch.randn(tokens, features).mul(0.3).to(HALF)
    first = torch.randn(experts, 2 * hidden, features).mul(0.3).to(HALF)
    second = torch.randn(experts, features, hidden).mul(0.3).to(HALF)
    shares = torch.rand(tokens, top)
    order = sorted_by_expert(chosen, experts, tile["BLOCK_SIZE_M"])
    both, inner = torch.zeros(tokens * top, 2 * hidden, dtype=HALF), torch.zeros(tokens * top, hidden, dtype=HALF)
    outputs, y = torch.zeros(tokens * top, features, dtype=HALF), torch.zeros(tokens, features, dtype=HALF)

    def product(a: Any, b: Any, c: Any, weighted: bool, of: int) -> None:
        module.invoke_fused_moe_kernel(
            a, b, None, c, None, None, None, shares, chosen, *order, weighted, of, {**tile, "GROUP_SIZE_M": 1},
            tl.float16, False, False, False, False, False,
        )  # fmt: skip

    product(x, first, both, weighted=False, of=top)
    module.act_and_mul_triton(both, inner, tile, chosen)
    product(inner, second, outputs, weighted=True, of=1)
    module.moe_sum_reduce_triton(outputs.view(tokens, top, features), y, 1.0)
    expected = torch.zeros(tokens, features)
    for token in range(tokens):
        for place, expert in enumerate(ids[token]):
            gate, up = (first[expert].float() @ x[token].float()).chunk(2)
            row = second[expert].float() @ (torch.nn.functional.silu(gate) * up)
            expected[token] += shares[token, place] * row
    close(y, expected, 4e-2)


ROUTED = (
    ([[0, 1], [0, 2], [0, 1], [2, 4]] * 6 + [[0, 4]], 40, 48, (16, 32, 16)),
    ([[i % 3, 3 + i % 2] for i in range(35)], 72, 32, (32, 32, 32)),
)
for ids, features, hidden, blocks in ROUTED:
    tile = {f"BLOCK_SIZE_{name}": size for name, size in zip("MNK", blocks, strict=True)}
    flat = [expert for row in ids for expert in row]
    loads = [flat.count(expert) for expert in sorted(set(flat))]
    call = {"loads": loads, "in_features": features, "hidden_features": hidden, "dtype": "fp16"}
    listed = case(f"sglang experts {blocks}", *SGLANG, **call)
    listed(lambda sources, ids=ids, f=features, h=hidden, tile=tile: sglang_experts(sources, ids, f, h, tile))
