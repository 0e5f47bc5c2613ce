"""Recording by PyTorch itself; run by name where PyTorch is installed: `pytest tests/with_torch`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import and_masks, create_block_mask

import iomodel
from iomodel.torch import TrafficMode, block_mask_of, mask_of, model_of, read_calls
from tests.with_torch.programs import PROGRAMS, SHAPE, STREAMS, TRANSFORMER, fused, recorded

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_stored_stream_is_what_pytorch_runs(name: str) -> None:
    assert recorded(name).calls == read_calls(STREAMS / f"{name}.jsonl")


def test_the_streams_are_those_of_the_programs() -> None:
    assert {path.stem for path in STREAMS.glob("*.jsonl")} == set(PROGRAMS)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_attention_is_one_operator_on_either_device(device: str) -> None:
    q = torch.zeros(1, 4, 64, 16, dtype=torch.bfloat16, device=device)
    k = torch.zeros(1, 2, 64, 16, dtype=torch.bfloat16, device=device)
    w = iomodel.Attention(heads=4, kv_heads=2, q_len=64, head_dim=16, mask="causal")
    tiles = {"block_q": 16, "block_kv": 32}
    with torch.no_grad(), TrafficMode(tiles=tiles) as mode:
        F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
    assert mode.report().requested_bytes == iomodel.cost("flash2", w, tiles, lse=False).hbm_bytes
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), TrafficMode() as mode:
        F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
    assert mode.report().by_operator()["aten.bmm"].times == 2


def test_inference_mode_counts_the_same() -> None:
    layer, x = torch.nn.Linear(16, 8, device="meta"), torch.empty(4, 16, device="meta")
    reports = []
    for context in (torch.no_grad, torch.inference_mode):
        with context(), TrafficMode() as mode:
            torch.matmul(layer(x), torch.empty(8, 4, device="meta"))
        reports.append(mode.report())
    assert reports[0].requested_bytes == reports[1].requested_bytes == 4 * (64 + 128 + 8 + 32 + 32 + 32 + 16)
    assert reports[0].flops == reports[1].flops == 2 * 4 * 16 * 8 + 2 * 4 * 8 * 4


def test_values_are_those_of_pytorch() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.ReLU())
    x = torch.randn(4, 8)
    torch.manual_seed(1)
    plain = model(x)
    torch.manual_seed(1)
    with TrafficMode():
        counted = model(x)
    assert torch.equal(plain, counted)


def test_a_mode_leaves_pytorch_as_it_was() -> None:
    from torch.nn.attention import flex_attention

    with pytest.raises(ZeroDivisionError), TrafficMode():
        raise ZeroDivisionError
    assert not flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    mode = TrafficMode()
    with mode, pytest.raises(iomodel.InputError, match="entered twice"):
        mode.__enter__()
    with mode:
        fused()()
    assert mode.calls


CASES = {
    "full": (lambda b, h, q, k: q >= 0, 12, 20, "full"),
    "causal": (lambda b, h, q, k: q + 8 >= k, 12, 20, "causal"),
    "top-left": (lambda b, h, q, k: q >= k, 12, 20, iomodel.Window(right=0, align="top-left")),
    "window": (lambda b, h, q, k: (q >= k) & (q - k <= 3), 20, 20, iomodel.Window(left=3, right=0)),
    "chunks": (lambda b, h, q, k: q // 6 == k // 6, 20, 20, iomodel.Documents([6, 6, 6, 2])),
    "prefix": (lambda b, h, q, k: (k < 4) | (q >= k), 6, 6, None),
    "strict": (lambda b, h, q, k: q > k, 5, 5, None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mask_mod_hides_the_same_pairs(name: str) -> None:
    mod, q_len, kv_len, expected = CASES[name]
    mask = mask_of(mod, q_len, kv_len)
    assert expected is None or mask == expected
    q, k = torch.arange(q_len)[:, None], torch.arange(kv_len)
    seen = torch.broadcast_to(mod(0, 0, q, k), (q_len, kv_len)).numpy()
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=4, mask=mask)
    assert iomodel.cost("standard", w).useful_flops == 2 * 8 * seen.sum()
    if not isinstance(mask, str | iomodel.Window):
        assert (mask.seen(q_len, kv_len) == seen).all()


def test_a_block_mask_is_the_table_of_visited_blocks() -> None:
    for q_len, kv_len, size in ((100, 300, 32), (64, 64, 16), (7, 90, (8, 32))):
        torch_mask = create_block_mask(
            lambda b, h, q, k: (q >= k) & (q - k < 30), None, None, q_len, kv_len, device="cpu", BLOCK_SIZE=size
        )
        mask = block_mask_of(torch_mask)
        assert (mask.blocks == (torch_mask.to_dense()[0, 0] != 0).numpy()).all()
        iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=4, mask=mask)


def test_what_is_no_mask_of_a_call_is_refused() -> None:
    document = torch.tensor([0, 0, 0, 1, 1])

    def same(b: object, h: object, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return document[q] == document[k]

    def causal(b: object, h: object, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q >= k

    for mod in (same, and_masks(causal, same)):
        with pytest.raises(iomodel.InputError, match=r"mask_mod: captures a tensor \(document\), .* data=True"):
            mask_of(mod, 5, 5)
    assert mask_of(and_masks(causal, same), 5, 5, data=True) == iomodel.Documents([3, 2], causal=True)
    with pytest.raises(iomodel.InputError, match="sequence 0, head 1; allowed: one mask"):
        mask_of(lambda b, h, q, k: (q >= k) | (h > 0), 5, 5, heads=2)
    with pytest.raises(iomodel.InputError, match="mask_mod: values of type int64"):
        mask_of(lambda b, h, q, k: torch.ones(5, 5, dtype=torch.int64), 5, 5)
    with pytest.raises(iomodel.InputError, match="mask_mod: fails on tensors"):
        mask_of(lambda b, h, q, k: q if q > k else k, 5, 5)
    with pytest.raises(iomodel.InputError, match="pairs given; allowed: up to"):
        mask_of(causal, 10**6, 10**6)
    with pytest.raises(iomodel.InputError, match="block_mask: 2 different masks"):
        block_mask_of(
            create_block_mask(lambda b, h, q, k: (q >= k) | (h > 0), 1, 2, 64, 64, device="cpu", BLOCK_SIZE=16)
        )
    with pytest.raises(iomodel.InputError, match="block_mask: 'causal' given; allowed: a BlockMask"):
        block_mask_of("causal")


def test_a_model_has_the_parameters_of_its_shapes() -> None:
    assert model_of(TRANSFORMER) == model_of(TRANSFORMER.config)
    assert model_of(TRANSFORMER).parameters == iomodel.model(SHAPE).parameters
    with pytest.raises(iomodel.InputError, match=r"parameters in the model, .* in its configuration"):
        model_of(TRANSFORMER.model)


def test_the_examples_of_the_page_run() -> None:
    text = (DOCS / "torch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "torch.md", "exec"), names)


@pytest.mark.parametrize(
    ("kept", "rows"), [(lambda y: y, 100), (lambda y: y[:25], 25), (lambda y: y.split([30, 70])[0], 30)]
)
def test_a_result_is_what_live_views_cover(kept, rows):
    with torch.device("meta"), torch.no_grad():
        x = torch.empty(100, 4)
        with TrafficMode("h100-sxm5") as mode:
            result = kept(x + 1)
    assert result.shape[0] == rows
    assert mode.report().bound().written_bytes == 16 * rows
