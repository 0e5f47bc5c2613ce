"""PyTorch programs whose operators are recorded; `python -m tests.with_torch.programs` writes tests/torch/streams."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from transformers import LlamaConfig, LlamaForCausalLM

from iomodel.torch import TrafficMode

STREAMS = Path(__file__).parents[1] / "torch" / "streams"
BF16 = torch.bfloat16


def meta(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.empty(*shape, dtype=BF16, device="meta", requires_grad=grad)


def eager_attention(qkv: torch.Tensor, mask: torch.Tensor | None, dropout: float) -> torch.Tensor:
    """Attention by separate operators on a packed projection, as published benchmarks of eager attention run it."""
    batch, length, _, heads, width = qkv.shape
    q, k, v = qkv.unbind(dim=2)
    q = q.permute(0, 2, 1, 3).reshape(batch * heads, length, width)
    k = k.permute(0, 2, 3, 1).reshape(batch * heads, width, length)
    scores = torch.empty(batch * heads, length, length, dtype=qkv.dtype, device=qkv.device)
    scores = torch.baddbmm(scores, q, k, beta=0, alpha=1 / math.sqrt(width)).view(batch, heads, length, length)
    if mask is not None:
        scores = scores + mask
    p = F.dropout(torch.softmax(scores, dim=-1), dropout)
    return torch.einsum("bhts,bshd->bthd", p, v)


def eager(masked: bool, dropout: float) -> Callable[[], None]:
    def program() -> None:
        out = eager_attention(meta(2, 48, 3, 3, 16, grad=True), meta(48, 48) if masked else None, dropout)
        out.backward(torch.empty_like(out))

    return program


class Attention(nn.Module):
    """Attention on one matrix per head, without a mask."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def standard() -> None:
    Attention()(meta(6, 40, 16), meta(6, 56, 16), meta(6, 56, 8))


def fused(**arguments: Any) -> Callable[[], None]:
    def program() -> None:
        q, k, v = meta(2, 4, 48, 16, grad=True), meta(2, 2, 80, 16, grad=True), meta(2, 2, 80, 16, grad=True)
        mask = torch.empty(2, 4, 48, 80, dtype=torch.bool, device="meta") if arguments.get("masked") else None
        causal = arguments.get("is_causal", False)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=True)
        if not arguments.get("masked"):
            out.backward(torch.empty_like(out))

    return program


def document(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q // 96 == k // 96) & (q >= k)


MASK = create_block_mask(document, None, None, 256, 256, device="cpu", BLOCK_SIZE=32)
QUERY, KEY = torch.zeros(2, 4, 256, 16), torch.zeros(2, 2, 256, 16)


def flex() -> None:
    with torch.no_grad():
        flex_attention(QUERY, KEY, KEY, block_mask=MASK, enable_gqa=True)
        flex_attention(QUERY, KEY, KEY, enable_gqa=True)


# A decoder as a serving engine runs it, with the operators of its own kernels.

for schema in (
    "add_norm(Tensor x, Tensor(a!) residual, Tensor gamma) -> Tensor",
    "rotary(Tensor(a!) heads, Tensor angles) -> ()",
    "append(Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor slots) -> ()",
    "gated_activation(Tensor x) -> Tensor",
):
    torch.library.define(f"engine::{schema.partition('(')[0]}", "(" + schema.partition("(")[2])

ENGINE = torch.ops.engine
torch.library.impl("engine::add_norm", "Meta", lambda x, residual, gamma: torch.empty_like(x))
torch.library.impl("engine::rotary", "Meta", lambda heads, angles: None)
torch.library.impl("engine::append", "Meta", lambda k, v, k_cache, v_cache, slots: None)
torch.library.impl(
    "engine::gated_activation",
    "Meta",
    lambda x: torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=x.dtype, device="meta"),
)

SHAPE = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 704,
    "vocab_size": 1000,
}
BATCH, LENGTH = 2, 96


class Layer(nn.Module):
    """A Llama layer with the kernels of a serving engine."""

    def __init__(self) -> None:
        super().__init__()
        width, self.heads, self.kv_heads = (
            SHAPE["hidden_size"],
            SHAPE["num_attention_heads"],
            SHAPE["num_key_value_heads"],
        )
        self.head = width // self.heads
        self.qkv = nn.Linear(width, (self.heads + 2 * self.kv_heads) * self.head, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * SHAPE["intermediate_size"], bias=False)
        self.down = nn.Linear(SHAPE["intermediate_size"], width, bias=False)
        self.norms = nn.ParameterList(nn.Parameter(meta(width)) for _ in range(2))

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor, angles: torch.Tensor, slots: torch.Tensor
    ) -> torch.Tensor:
        rotated = (self.heads + self.kv_heads) * self.head
        qkv = self.qkv(ENGINE.add_norm(x, residual, self.norms[0]))
        ENGINE.rotary(qkv[..., :rotated], angles)
        q, k, v = qkv.split([self.heads * self.head, self.kv_heads * self.head, self.kv_heads * self.head], dim=-1)
        ENGINE.append(k, v, meta(*k.shape), meta(*v.shape), slots)
        q, k, v = (each.unflatten(-1, (-1, self.head)).transpose(1, 2) for each in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        out = (
            torch.empty_strided(x.shape, x.stride(), dtype=BF16, device="meta")
            if out.is_contiguous()
            else out.transpose(1, 2).flatten(2)
        )
        out = self.o(out)
        return self.down(ENGINE.gated_activation(self.up(ENGINE.add_norm(out, residual, self.norms[1]))))


class Llama(nn.Module):
    """A Llama decoder that returns the logits of the last tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SHAPE["vocab_size"], SHAPE["hidden_size"])
        self.layers = nn.ModuleList(Layer() for _ in range(SHAPE["num_hidden_layers"]))
        self.norm = nn.Parameter(meta(SHAPE["hidden_size"]))
        self.output = nn.Linear(SHAPE["hidden_size"], SHAPE["vocab_size"], bias=False)

    def forward(self, tokens: torch.Tensor, angles: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        residual = torch.empty_like(x)
        for layer in self.layers:
            x = layer(x, residual, angles, slots)
        return self.output(ENGINE.add_norm(x[:, -1], residual[:, -1], self.norm))


with torch.device("meta"):
    LLAMA, TOKENS, SLOTS = Llama().to(BF16), *(torch.empty(BATCH, LENGTH, dtype=torch.int64) for _ in range(2))
    ANGLES = torch.empty(LENGTH, SHAPE["hidden_size"] // SHAPE["num_attention_heads"])


def llama() -> None:
    with torch.no_grad():
        LLAMA(TOKENS, ANGLES, SLOTS)


class Plain(nn.Module):
    """A Llama layer of PyTorch's own modules, trained."""

    def __init__(self) -> None:
        super().__init__()
        width, wide = SHAPE["hidden_size"], SHAPE["intermediate_size"]
        self.head = width // SHAPE["num_attention_heads"]
        self.norm = nn.RMSNorm(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, SHAPE["num_key_value_heads"] * self.head, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, bias=False)
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (part(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(out.transpose(1, 2).flatten(2))
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


with torch.device("meta"):
    PLAIN = Plain().to(BF16)


def training() -> None:
    out = PLAIN(meta(BATCH, LENGTH, SHAPE["hidden_size"]))
    out.backward(torch.empty_like(out))


HUGGING_FACE = {**SHAPE, "head_dim": 32, "dtype": "bfloat16"}


with torch.device("meta"):
    TRANSFORMER = LlamaForCausalLM(LlamaConfig(**HUGGING_FACE)).to(BF16)


def transformers() -> None:
    with torch.no_grad():
        TRANSFORMER(TOKENS)


PROGRAMS: dict[str, Callable[[], None]] = {
    "eager": eager(False, 0.0),
    "eager-masked": eager(True, 0.0),
    "eager-dropout": eager(True, 0.1),
    "standard": standard,
    "fused": fused(),
    "fused-causal": fused(is_causal=True),
    "fused-masked": fused(masked=True),
    "flex": flex,
    "llama": llama,
    "training": training,
    "transformers": transformers,
}


def recorded(name: str) -> TrafficMode:
    """Run a program, and return the mode that recorded it."""
    with TrafficMode() as mode:
        PROGRAMS[name]()
    return mode


if __name__ == "__main__":
    for program in PROGRAMS:
        recorded(program).save(STREAMS / f"{program}.jsonl")
