"""Context parallelism: which method sends least, times of turns, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.planning.step.attention_clock import attention_clock
from iomodel.planning.step.links import send
from tests.support.strategies import fraction_of_examples

GPU = iomodel.hardware("h100-sxm5")
W = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")


@given(
    kv_heads=st.sampled_from([1, 2, 4, 8, 16, 32]),
    group=st.sampled_from([1, 2, 3, 4, 8]),
    log_ranks=st.integers(0, 5),
    rows=st.integers(1, 9),
    widths=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
@fraction_of_examples(2)
def test_ulysses_sends_less_above_a_number_of_ranks(
    kv_heads: int, group: int, log_ranks: int, rows: int, widths: tuple[int, int]
) -> None:
    ranks = 1 << log_ranks
    if kv_heads * group % ranks:
        return
    call = iomodel.Attention(
        heads=kv_heads * group, kv_heads=kv_heads, q_len=2 * rows * ranks, head_dim=widths[0], value_dim=widths[1],
        mask="causal",
    )  # fmt: skip
    shared = iomodel.planning.context_parallel(call, ranks)
    ring, gathered, exchanged = (shared[name].sent_bytes for name in ("ring", "all_gather", "ulysses"))
    assert ring == gathered
    if ranks == 1:
        assert (ring, exchanged) == (0, 0)
    elif ranks <= kv_heads:  # (H + H_kv) / R heads against H_kv
        assert (exchanged < ring) == (ranks > group + 1)
    else:
        assert (exchanged < ring) == (ranks * (kv_heads - 1) > kv_heads * group)


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_turn_takes_the_longer_of_attention_and_message(ranks: int) -> None:
    work = iomodel.planning.context_parallel(W, ranks, GPU, method="ring")["ring"]
    assert sum(block.times for block in work.blocks) == ranks
    rows = W.q_len // ranks
    message = send(GPU, 2 * rows * W.kv_heads * W.head_dim * W.element_size).seconds
    turns = [block.seconds or 0.0 for block in work.blocks for _ in range(block.times)]
    assert work.attention_seconds == pytest.approx(sum(turns))
    assert work.message_seconds == pytest.approx((ranks - 1) * message)
    assert work.seconds == pytest.approx(sum(max(turn, message) for turn in turns[:-1]) + turns[-1])


def test_a_slow_network_shows_in_a_ring() -> None:
    fast, slow = (
        iomodel.planning.context_parallel(W, 8, GPU, method="ring", devices_per_node=4, network_bandwidth=rate)["ring"]
        for rate in (1e12, 1e9)
    )
    assert fast.attention_seconds == slow.attention_seconds
    assert slow.seconds is not None
    assert slow.seconds > 7 * 2 * 1024 * 1024 * 2 / 1e9  # every message of K and V crosses the network
    assert fast.seconds is not None
    assert fast.seconds < slow.seconds


def test_one_rank_is_the_call() -> None:
    shared = iomodel.planning.context_parallel(W, 1, GPU)
    alone = attention_clock(GPU).fastest(W)[1].seconds
    assert {work.sent_bytes + work.messages for work in shared.methods} == {0}
    assert [shared[name].seconds for name in ("ring", "ulysses")] == [alone, alone]
    assert shared["all_gather"].seconds == pytest.approx(alone, rel=5e-3)  # a launch for each chunk of zigzag


def test_zigzag_and_stripes_halve_causal_turns() -> None:
    times = {
        sharding: iomodel.planning.context_parallel(W, 8, GPU, method="ring", sharding=sharding)[
            "ring"
        ].attention_seconds
        for sharding in ("contiguous", "zigzag", "striped")
    }
    assert 0.5 < times["zigzag"] / times["contiguous"] < 0.8
    assert 0.5 < times["striped"] / times["contiguous"] < 0.8


def test_a_latent_is_sent_once() -> None:
    latent = iomodel.Attention(
        heads=16, kv_heads=1, q_len=64, head_dim=576, value_dim=512, latent=True, mask="causal"
    )  # fmt: skip
    assert dict(iomodel.planning.context_parallel(latent, 4, method="ring")["ring"].sent) == {"K": 48 * 576}


REFUSED = {
    "more ranks than tokens": (
        {"workload": W.model_copy(update={"q_len": 8, "kv_len": 8}), "ranks": 9},
        r"^ranks: 9 given; allowed: from 1 to 8, q_len = 8$",
    ),
    "heads": (
        {"ranks": 3, "method": "ulysses"},
        r"^ranks: 3 given; allowed: a number that heads = 32 and kv_heads = 8 divide among, such as 2$",
    ),
    "a rank without a token": (
        {"workload": W.model_copy(update={"q_len": 5, "kv_len": 5}), "ranks": 4, "sharding": "contiguous"},
        r"^ranks: 4 given; allowed: a number that leaves none without a token of q_len = 5, such as 3$",
    ),
    "an unbalanced mask": (
        {"workload": W.model_copy(update={"mask": "full"}), "ranks": 2, "sharding": "zigzag"},
        r"^sharding: 'zigzag' given; allowed: 'contiguous', for mask 'full' with ring$",
    ),
    "a window": (
        {"workload": W.model_copy(update={"mask": iomodel.Window(left=9, right=0)}), "ranks": 2, "method": "ring"},
        r"^mask: 'Window' given; allowed: 'full' or 'causal', with ring$",
    ),
    "more keys than queries": (
        {"workload": W.model_copy(update={"q_len": 4096}), "ranks": 2, "method": "ring"},
        r"^q_len: 4096 given with kv_len = 8192; allowed: as many as keys, for a causal mask with ring$",
    ),
    "a backward pass": (
        {"workload": W.model_copy(update={"direction": "backward"}), "ranks": 2},
        r"^direction: 'backward' given; allowed: 'forward', for attention among ranks$",
    ),
    "nodes": (
        {"ranks": 6, "devices_per_node": 4},
        r"^devices_per_node: 4 given with ranks = 6; allowed: a multiple or a divisor of it$",
    ),
    "method": ({"ranks": 2, "method": "rings"}, r"^method: 'rings' is unknown; did you mean 'ring'\?"),
    "bias": (
        {"workload": W.model_copy(update={"bias": True}), "ranks": 2},
        r"^workload: bias given; allowed: calls without it, for attention among ranks$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_question_is_one_line(name: str) -> None:
    arguments, message = REFUSED[name]
    with pytest.raises(iomodel.IOModelError, match=message):
        iomodel.planning.context_parallel(**{"workload": W, **arguments})  # type: ignore[arg-type]


def test_narrow_keys_and_values_send_their_own_bytes() -> None:
    sent = {}
    for kv_dtype in ("bf16", "fp8", "nvfp4", "int4"):
        w = iomodel.Attention(heads=8, kv_heads=2, q_len=4096, head_dim=128, mask="causal", kv_dtype=kv_dtype)
        ring = next(way for way in iomodel.planning.context_parallel(w, 4, "h100-sxm5").methods if way.method == "ring")
        sent[kv_dtype] = ring.sent_bytes
    rows = 3 * 1024 * 2 * 2 * 128  # elements of K and V of three turns
    assert sent == {"bf16": 2 * rows, "fp8": rows, "nvfp4": rows * 9 // 16, "int4": rows // 2}


def test_the_work_of_the_busiest_rank_over_the_mean():
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=65536, head_dim=128, mask="causal")
    work = {
        s: iomodel.planning.context_parallel(call, 8, method="ring", sharding=s)["ring"].share
        for s in ("zigzag", "contiguous")
    }
    assert work["zigzag"] == 1.0
    assert work["contiguous"] == pytest.approx(15 / 8, rel=1e-3)  # the last of eight sees 15 of 64 halves of squares
    assert iomodel.planning.context_parallel(call, 8, method="ulysses")["ulysses"].share == 1.0
