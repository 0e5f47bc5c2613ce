"""Inverse questions equal a walk over every answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel


@pytest.mark.parametrize("algorithm", ["flash1", "flash2", "tiled_query"])
@given(data=st.data())
def test_least_sram_equals_a_walk_over_budgets(algorithm: str, data: st.DataObject) -> None:
    lengths = st.integers(1, 7)
    w = iomodel.Attention(
        q_len=data.draw(lengths),
        kv_len=data.draw(lengths),
        head_dim=data.draw(st.integers(1, 3)),
        mask=data.draw(st.sampled_from(["full", "causal"])),
    )
    limit, unit = data.draw(st.integers(20, 400)), data.draw(st.sampled_from(["bytes", "elements"]))
    expected = None
    for amount in range(1, 2000):
        try:
            solution = iomodel.solve(algorithm, w, **{f"sram_{unit}": amount})  # type: ignore[arg-type]
        except iomodel.InfeasibleError:
            continue
        if solution.cost.hbm_bytes <= limit:
            expected = amount
            break
        if solution.saturated:
            break
    if expected is None:
        with pytest.raises(iomodel.InfeasibleError, match="however much SRAM") as caught:
            iomodel.theory.least_sram(algorithm, w, limit, unit=unit)
        assert caught.value.least == solution.cost.hbm_bytes
    else:
        assert iomodel.theory.least_sram(algorithm, w, limit, unit=unit).budget.amount == expected


@given(
    width=st.integers(1, 40),
    block_q=st.integers(1, 20),
    block_kv=st.integers(1, 40),
    mask=st.sampled_from(["full", "causal"]),
)
def test_crossover_equals_a_walk_over_lengths(width: int, block_q: int, block_kv: int, mask: str) -> None:
    tiles = {"block_q": block_q, "block_kv": block_kv}
    w = iomodel.Attention(q_len=1, head_dim=width, mask=mask)
    found = iomodel.theory.crossover("flash1", "standard", w, tiles, up_to=60)
    wins = [
        iomodel.cost("flash1", at, tiles).hbm_bytes < iomodel.cost("standard", at).hbm_bytes
        for at in (iomodel.Attention(q_len=n, head_dim=width, mask=mask) for n in range(1, 61))
    ]
    from_there_on = [n for n in range(1, 61) if all(wins[n - 1 :])]
    assert found == (from_there_on[0] if from_there_on else None)


def test_crossover_at_known_tiles() -> None:
    """d = 64: FlashAttention with 64 x 32 tiles never beats the ideal passes, with 64 keys it does from 136 on."""
    w = iomodel.Attention(q_len=1, head_dim=64)
    assert iomodel.theory.crossover("flash1", "standard", w, {"block_q": 64, "block_kv": 32}) is None
    assert iomodel.theory.crossover("flash1", "standard", w, {"block_q": 64, "block_kv": 64}) == 136
    assert iomodel.theory.crossover("flash2", "tiled_query", w, {"block_q": 8, "block_kv": 8}, lse=False) is None


def test_crossover_of_backward_passes() -> None:
    """The tiles of a second pass follow; in between, two passes move less than one with an accumulator."""
    tiles = {"block_q": 16, "block_kv": 16}
    w = iomodel.Attention(q_len=1, head_dim=16, direction="backward")
    found = iomodel.theory.crossover("two_pass", "flash2", w, tiles, up_to=200)
    assert found is not None
    spelt_out = {**tiles, "dq_block_q": 16, "dq_block_kv": 16}
    assert iomodel.theory.crossover("two_pass", "flash2", w, spelt_out, up_to=200) == found
    for n in range(1, 201):
        first, second = (
            iomodel.cost(name, w.model_copy(update={"q_len": n, "kv_len": n}), tiles).hbm_bytes
            for name in ("two_pass", "flash2")
        )
        assert (first < second) or n < found
    both = w.model_copy(update={"direction": "both"})
    larger = {**tiles, "bwd_block_q": 64, "bwd_block_kv": 64}
    assert iomodel.theory.crossover("flash2", "flash1", both, larger, up_to=50) is not None


def test_least_sram_for_many_sequences_and_for_a_backward_pass() -> None:
    for name, w in [
        ("flash2", iomodel.VarlenAttention(q_lens=[40, 7], head_dim=4)),
        ("two_pass", iomodel.Attention(q_len=40, head_dim=4, direction="backward")),
        ("split_kv", iomodel.Attention(q_len=40, head_dim=4)),
    ]:
        options = {"splits": 3} if name == "split_kv" else {}
        limit = iomodel.solve(name, w, sram_elements=300, **options).cost.hbm_bytes  # type: ignore[arg-type]
        found = iomodel.theory.least_sram(name, w, limit, unit="elements", **options)
        assert found.budget.amount <= 300
        assert found.cost.hbm_bytes <= limit
        try:
            less = iomodel.solve(name, w, sram_elements=found.budget.amount - 1, **options)  # type: ignore[arg-type]
        except iomodel.InfeasibleError:
            continue
        assert less.cost.hbm_bytes > limit


@pytest.mark.parametrize(
    ("tiles", "options", "says"),
    [
        ({"block_q": 8}, {}, "block_kv: flash1 needs this tile"),
        (
            {"block_q": 8, "block_kv": 8, "block_x": 8},
            {},
            "tile or option of flash1 and standard: 'block_x' is unknown",
        ),
        ({"block_q": 8, "block_kv": 8}, {"lse": True}, "'lse' is unknown"),
        ({"block_q": 8, "block_kv": 0}, {}, "block_kv: 0 given"),
        ({"block_q": 8, "block_kv": 8}, {"up_to": 0}, "up_to: 0 given"),
    ],
)
def test_bad_questions_are_one_line(tiles: dict[str, int], options: dict[str, int], says: str) -> None:
    w = iomodel.Attention(q_len=1, head_dim=64)
    with pytest.raises(iomodel.IOModelError) as caught:
        iomodel.theory.crossover("flash1", "standard", w, tiles, **options)  # type: ignore[arg-type]
    assert says in str(caught.value)
    with pytest.raises(iomodel.UnknownNameError, match="unit: 'KiB' is unknown"):
        iomodel.theory.least_sram("flash2", w, 100, unit="KiB")  # type: ignore[arg-type]
    with pytest.raises(iomodel.InputError, match="hbm_bytes: 0 given"):
        iomodel.theory.least_sram("flash2", w, 0)
