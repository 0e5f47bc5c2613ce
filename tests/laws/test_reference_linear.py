"""The reference kernels of methods whose cost grows linearly with the length compute what their papers define."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.testing.machine import Run, SRAMOverflowError
from tests.reference import linear_transformer, linformer, mamba1, mamba2, performer
from tests.reference.masks import dense_attention, visible

MODULES: dict[str, Any] = {
    "linformer": linformer,
    "linear_transformer": linear_transformer,
    "performer": performer,
    "mamba1": mamba1,
    "mamba2": mamba2,
}
MASKS: dict[str, list[int | None]] = {
    "linformer": [None],
    "linear_transformer": [None, 0],
    "performer": [None, 0],
    "mamba1": [0],
    "mamba2": [0],
}
TILES = {
    "linformer": ["block_q", "block_kv", "block_proj", "block_sum"],
    "linear_transformer": ["block_q", "block_sum"],
    "performer": ["block_q", "block_sum"],
    "mamba1": ["block_channels", "block_kv"],
    "mamba2": ["block_q"],
}
SIZES: dict[str, Any] = {"d": 5, "d_v": 5, "batch": 2, "kv_heads": 2, "group": 3}
count, tile = st.integers(1, 7), st.integers(1, 9)
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "linformer": {"projected": count, "shared": st.booleans()},
    "linear_transformer": {"carry": st.booleans()},
    "performer": {"features": count, "carry": st.booleans()},
    "mamba1": {"state": st.integers(1, 4), "expand": st.integers(1, 3), "carry": st.booleans()},
    "mamba2": {"carry": st.booleans()},
}
STATE = {"linear_transformer": ["KV", "z"], "performer": ["KV", "z"], "mamba1": ["H_STATE"], "mamba2": ["H_STATE"]}


@dataclass(frozen=True)
class Case:
    name: str
    q_len: int
    kv_len: int
    d: int = 2
    d_v: int = 3
    batch: int = 1
    kv_heads: int = 1
    group: int = 2
    right: int | None = None
    tiles: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0).standard_normal
        return (
            draw((self.batch, self.kv_heads * self.group, self.q_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d_v)),
        )

    def weights(self) -> dict[str, np.ndarray]:
        made: dict[str, np.ndarray] = MODULES[self.name].weights(*self.tensors(), **self.options)
        return made

    def run(self, **more: Any) -> Run:
        run: Run = MODULES[self.name].run(*self.tensors(), right=self.right, **self.tiles, **self.options, **more)
        return run

    def naive(self, **more: Any) -> np.ndarray:
        output: np.ndarray = MODULES[self.name].naive(*self.tensors(), right=self.right, **self.options, **more)
        return output


@st.composite
def cases(draw: st.DrawFn, /, name: str, **fixed: Any) -> Case:
    right = draw(st.sampled_from(MASKS[name]))
    q_len = draw(st.integers(1, 12))
    kv_len = q_len if right == 0 else draw(st.integers(1, 12))
    sizes = {size: draw(st.integers(1, most)) for size, most in SIZES.items()}
    tiles = {block: draw(tile) for block in TILES[name]}
    options = draw(st.fixed_dictionaries(OPTIONS[name])) | fixed
    return Case(name, q_len, kv_len, **sizes, right=right, tiles=tiles, options=options)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_it_computes_what_the_paper_defines(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    # HBM starts as NaN, so equality also says that every output element was stored.
    same(case.run().O, case.naive())


@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_it_runs_at_its_own_peak_and_not_below(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    run = case.run()
    again = case.run(capacity=run.sram_peak)
    assert (again.reads, again.writes) == (run.reads, run.writes)
    with pytest.raises(SRAMOverflowError):
        case.run(capacity=run.sram_peak - 1)


@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_the_output_is_written_once_and_scratch_is_read(name: str, data: st.DataObject) -> None:
    run = data.draw(cases(name)).run()
    output = "Y" if name.startswith("mamba") else "O"
    assert (run.writes[output], run.reads[output]) == (run.O.size, 0)
    assert set(run.writes) - {output} <= set(run.reads)


@pytest.mark.parametrize("name", MODULES)
def test_other_masks_are_refused(name: str) -> None:
    for right in {None, 0, 1} - set(MASKS[name]):
        with pytest.raises(ValueError, match=r"mask|causal"):
            Case(name, 3, 3, right=right, tiles=dict.fromkeys(TILES[name], 2)).run()


# A state that is carried


@pytest.mark.parametrize("name", STATE)
@given(data=st.data())
def test_a_sequence_in_two_parts_is_the_whole_one(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name, carry=True).filter(lambda case: case.right == 0 and case.q_len > 1))
    cut = data.draw(st.integers(1, case.q_len - 1))
    whole, inputs = case.run(), case.weights()
    parts, left = [], {name: inputs[name] for name in STATE[name]}
    for part in slice(cut), slice(cut, None):
        rows = {name: array for name, array in inputs.items() if name in {"X", "DT", "B", "C"}}
        own = {name: array[:, part] if case.name == "mamba1" else array[:, :, part] for name, array in rows.items()}
        Q, K, V = (tensor[:, :, part] for tensor in case.tensors())
        run = MODULES[name].run(Q, K, V, right=0, **case.tiles, **case.options, inputs=inputs | own | left)
        parts.append(run.O)
        left = {name: run.outputs[name] for name in STATE[name]}
    same(np.concatenate(parts, axis=1 if name == "mamba1" else 2), whole.O)
    for state, array in left.items():
        same(array, whole.outputs[state])


@pytest.mark.parametrize("name", STATE)
@given(data=st.data())
def test_a_past_of_zeros_is_none(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name, carry=True).filter(lambda case: case.right == 0))
    inputs = case.weights()
    empty = inputs | {state: np.zeros_like(inputs[state]) for state in STATE[name]}
    fresh = MODULES[name].run(*case.tensors(), right=0, **case.tiles, **case.options | {"carry": False}, inputs=inputs)
    same(case.run(inputs=empty).O, fresh.O)


@pytest.mark.parametrize("name", ["linear_transformer", "performer"])
@given(data=st.data())
def test_the_last_position_sees_all(name: str, data: st.DataObject) -> None:
    """And so is the same under either mask."""
    case = data.draw(cases(name, carry=False).filter(lambda case: case.right == 0))
    full = MODULES[name].run(*case.tensors(), right=None, **case.tiles, **case.options)
    same(case.run().O[:, :, -1], full.O[:, :, -1])


# Limits


@given(case=cases("linformer", shared=False))
def test_linformer_that_projects_nothing_is_attention(case: Case) -> None:
    identity = np.eye(case.kv_len)
    run = case.run(inputs={"E": identity, "F": identity})
    same(run.O, dense_attention(*case.tensors(), np.ones((case.q_len, case.kv_len), dtype=np.bool_))[0])


@given(case=cases("linformer", shared=True))
def test_linformer_shared_is_one_matrix_twice(case: Case) -> None:
    E = case.weights()["E"]
    apart = replace(case, options=case.options | {"shared": False}).run(inputs={"E": E, "F": E})
    run = case.run()
    same(run.O, apart.O)
    assert {**run.reads, "F": run.reads["E"]} == apart.reads
    assert (run.writes, run.flops, run.exps) == (apart.writes, apart.flops, apart.exps)
    assert apart.hbm_peak - run.hbm_peak == E.size


@pytest.mark.parametrize("right", [None, 0])
def test_performer_tends_to_softmax_attention(right: int | None) -> None:
    Q, K, V = Case("performer", 8, 8).tensors()
    Q, K = Q / 2, K / 2  # the variance of a weight grows as exp(|q' + k'|^2)
    exact, _ = dense_attention(Q, K, V, visible(8, 8, None, right, "bottom-right"))
    for features, error in (1_000, 0.06), (10_000, 0.02):
        run = performer.run(Q, K, V, right=right, block_q=3, block_sum=4, features=features)
        np.testing.assert_allclose(run.O, exact, atol=error)


@given(data=st.data())
def test_performer_draws_orthogonal_blocks(data: st.DataObject) -> None:
    case = data.draw(cases("performer"))
    W = case.weights()["W"]
    assert W.shape == (case.options["features"], case.d)
    for start in range(0, len(W), case.d):
        block = W[start : start + case.d]
        same(block @ block.T, np.diag(np.square(block).sum(axis=1)))


@given(case=cases("mamba1"))
def test_mamba1_is_the_sum_over_its_past(case: Case) -> None:
    """Unrolled: each step's input, decayed by all steps since."""
    w = case.weights()
    delta = np.log1p(np.exp(w["DT"]))
    elapsed = np.cumsum(delta, axis=1)
    # [batch, position, earlier one, channel, state]
    decay = np.exp((elapsed[:, :, None] - elapsed[:, None])[..., None] * w["A"])
    decay *= np.tril(np.ones((case.q_len, case.q_len)))[:, :, None, None]
    h = np.einsum("btsen,bse,bse,bsn->bten", decay, delta, w["X"], w["B"])
    if case.options["carry"]:
        h += np.exp(elapsed[..., None] * w["A"]) * w["H_STATE"][:, None]
    same(case.run().O, np.einsum("bten,btn->bte", h, w["C"]) + w["SKIP"] * w["X"])


@given(case=cases("mamba2"))
def test_mamba2_is_a_mamba1_of_equal_channels(case: Case) -> None:
    """With one step and one decay for all channels and states of a head, and no skip connection."""
    w, run = case.weights(), case.run()
    for h in range(case.kv_heads * case.group):
        g = h // case.group
        own = {
            "X": w["X"][:, h],
            "DT": np.log(np.expm1(np.repeat(w["DT"][:, h, :, None], case.d_v, axis=2))),
            "A": np.full((case.d_v, case.d), w["A"][h]),
            "B": w["B"][:, g],
            "C": w["C"][:, g],
            "SKIP": np.zeros(case.d_v),
        }
        own |= {"H_STATE": w["H_STATE"][:, h].swapaxes(1, 2)} if case.options["carry"] else {}
        mamba = mamba1.run(*case.tensors(), block_channels=2, block_kv=3, carry=case.options["carry"], inputs=own)
        same(run.O[:, h], mamba.O)


@given(case=cases("mamba2", carry=False))
def test_mamba2_without_decay_is_linear_attention_without_normaliser(case: Case) -> None:
    w = case.weights()
    run = case.run(inputs=w | {"A": np.zeros_like(w["A"]), "DT": np.ones_like(w["DT"])})
    C, B = (np.repeat(w[name], case.group, axis=1) for name in "CB")
    same(run.O, np.tril(C @ B.swapaxes(-1, -2)) @ w["X"])


# Counts by hand: 2 query heads on 1 key head, d = 2, d_v = 3


@pytest.mark.parametrize("shared", [False, True])
def test_linformer_by_hand(shared: bool) -> None:
    tiles = {"block_q": 2, "block_kv": 3, "block_proj": 3, "block_sum": 2}
    run = Case("linformer", 3, 5, tiles=tiles, options={"projected": 4, "shared": shared}).run()
    # 4 projected rows in 2 tiles, so K and V go twice, E and F once; then 2 query tiles for each of 2 heads.
    reads = {"E": 20, "K": 2 * 10, "V": 2 * 15, "Q": 12, "K_proj": 4 * 8, "V_proj": 4 * 12}
    assert run.reads == reads | ({} if shared else {"F": 20})
    assert run.writes == {"K_proj": 8, "V_proj": 12, "O": 18}
    assert run.flops == 2 * 4 * 5 * (2 + 3) + 2 * 2 * 3 * 4 * (2 + 3)
    assert run.exps == 2 * (3 * 4 + 3 * 2)  # a row is rescaled at each of 2 tiles of projected rows
    # E 3*2, F 3*2, K 2*2, V 2*3; K_proj 3*2, V_proj 3*3 in fp32.
    # Q 2*2, K_proj 3*2, V_proj 3*3; O 2*3, l 2, m 2, S 2*3 in fp32.
    assert run.sram_states >= {(16 if shared else 22, 0, 15, 0, 0, 0), (19, 0, 16, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == ((35, 102) if shared else (37, 104))
    # Q 12, K 10, V 15, E 20, F 20, K_proj 8, V_proj 12, O 18.
    held = 95 if shared else 115
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (held, 2 * held)
    assert run.hbm_bytes(2) == 2 * (sum(run.reads.values()) + sum(run.writes.values()))


def test_linear_transformer_full_by_hand() -> None:
    run = Case("linear_transformer", 3, 5, tiles={"block_q": 2, "block_sum": 2}).run()
    # KV 2*3 and z 2 of the key head, for each of 2 query tiles of 2 heads.
    assert run.reads == {"K": 10, "V": 15, "Q": 12, "KV": 4 * 6, "z": 4 * 2}
    assert run.writes == {"KV": 6, "z": 2, "O": 18}
    assert run.flops == 2 * 5 * 2 * 3 + 2 * 2 * 3 * 2 * 3
    assert run.exps == 5 * 2 + 2 * 3 * 2
    # K 2*2, V 2*3; KV 6, z 2 in fp32. Then Q 2*2; KV 6, z 2, O 2*3 in fp32.
    assert run.sram_states >= {(10, 0, 8, 0, 0, 0), (4, 0, 14, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (18, 64)
    # Q 12, K 10, V 15, O 18; KV 6 and z 2 in fp32.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (63, 2 * 55 + 4 * 8)


@pytest.mark.parametrize("carry", [False, True])
def test_linear_transformer_causal_by_hand(carry: bool) -> None:
    run = Case("linear_transformer", 5, 5, right=0, tiles={"block_q": 2}, options={"carry": carry}).run()
    state = {"KV": 2 * 6, "z": 2 * 2} if carry else {}  # of each query head
    assert run.reads == {"Q": 20, "K": 20, "V": 30} | state
    assert run.writes == {"O": 30} | state
    # Chunks of 2, 2 and 1: squares of 4 + 4 + 1 pairs, and the state is used and updated at 5 positions.
    assert run.flops == 2 * (2 * 9 * (2 + 3) + 2 * 2 * 5 * 6)
    assert run.exps == 2 * 2 * 5 * 2
    # Q 2*2, K 2*2, V 2*3; KV 6, z 2, S 2*2, O 2*3 in fp32.
    assert (run.sram_peak, run.sram_bytes(2)) == (14 + 18, 2 * 14 + 4 * 18)
    held = 16 if carry else 0
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (75 + held, 2 * 75 + 4 * held)


def test_performer_full_by_hand() -> None:
    run = Case("performer", 3, 5, tiles={"block_q": 2, "block_sum": 2}, options={"features": 4}).run()
    # W 4*2 once for the keys, and with KV 4*3 and z 4 for each of 2 query tiles of 2 heads.
    assert run.reads == {"W": (1 + 4) * 8, "K": 10, "V": 15, "Q": 12, "KV": 4 * 12, "z": 4 * 4}
    assert run.writes == {"KV": 12, "z": 4, "O": 18}
    assert run.flops == 2 * 5 * 4 * (2 + 3) + 2 * 2 * 3 * 4 * (2 + 3)
    assert run.exps == 5 * 4 + 2 * 3 * 4
    # W 8, K 2*2, V 2*3; KV 12, z 4, F 2*4 in fp32. Then W 8, Q 2*2; KV 12, z 4, F 2*4, O 2*3 in fp32.
    assert run.sram_states >= {(18, 0, 24, 0, 0, 0), (12, 0, 30, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (42, 144)
    # Q 12, K 10, V 15, W 8, O 18; KV 12 and z 4 in fp32.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (79, 2 * 63 + 4 * 16)


@pytest.mark.parametrize("carry", [False, True])
def test_performer_causal_by_hand(carry: bool) -> None:
    options = {"features": 4, "carry": carry}
    run = Case("performer", 5, 5, right=0, tiles={"block_q": 2}, options=options).run()
    state = {"KV": 2 * 12, "z": 2 * 4} if carry else {}
    assert run.reads == {"W": 2 * 8, "Q": 20, "K": 20, "V": 30} | state
    assert run.writes == {"O": 30} | state
    # Features of 5 queries and 5 keys, squares of 4 + 4 + 1 pairs, and the state as often.
    assert run.flops == 2 * (2 * 2 * 5 * 2 * 4 + 2 * 9 * (4 + 3) + 2 * 2 * 5 * 12)
    assert run.exps == 2 * 2 * 5 * 4
    # W 8, Q 2*2, K 2*2, V 2*3; KV 12, z 4, F_q and F_k 2*4 each, S 2*2, O 2*3 in fp32.
    assert (run.sram_peak, run.sram_bytes(2)) == (22 + 42, 2 * 22 + 4 * 42)
    held = 32 if carry else 0
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (83 + held, 2 * 83 + 4 * held)


@pytest.mark.parametrize("carry", [False, True])
def test_mamba1_by_hand(carry: bool) -> None:
    case = Case(
        "mamba1", 5, 5, batch=2, group=1, right=0,
        tiles={"block_channels": 2, "block_kv": 2}, options={"state": 2, "expand": 1, "carry": carry},
    )  # fmt: skip
    run = case.run()
    # 3 channels in tiles of 2 and 1, so B and C go twice; A and SKIP once a batch, of which there are 2.
    state = {"H_STATE": 2 * 6} if carry else {}
    assert run.reads == {"A": 2 * 6, "SKIP": 2 * 3, "X": 30, "DT": 30, "B": 2 * 20, "C": 2 * 20} | state
    assert run.writes == {"Y": 30} | state
    assert run.flops == 2 * 4 * 5 * 3 * 2
    assert run.exps == 2 * (5 * 3 * 2 + 5 * 3)
    # X, DT, B, C 2*2 each; A 2*2, SKIP 2, h 2*2, Y 2*2 in fp32.
    assert (run.sram_peak, run.sram_bytes(2)) == (16 + 14, 2 * 16 + 4 * 14)
    # X, DT, Y 30 each, B and C 20 each; A 6, SKIP 3 and the states of 2 batches in fp32.
    held = 9 + (12 if carry else 0)
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (130 + held, 2 * 130 + 4 * held)


@pytest.mark.parametrize("carry", [False, True])
def test_mamba2_by_hand(carry: bool) -> None:
    run = Case("mamba2", 5, 5, right=0, tiles={"block_q": 2}, options={"carry": carry}).run()
    # 2 heads, chunks of 2, 2 and 1, each with a state of 2*3. A chunk's A, DT, B, X go twice.
    state = {"H_STATE": 2 * 6} if carry else {}
    scratch = {"STATES": 2 * 2 * 18, "DECAY": 2 * 3}
    assert run.reads == {"A": 2 * 6, "DT": 2 * 10, "B": 2 * 20, "C": 2 * 10, "X": 2 * 30} | scratch | state
    assert run.writes == {"Y": 30} | scratch | state
    # States of 5 positions, squares of 4 + 4 + 1 pairs, and 5 positions that use the state before.
    assert run.flops == 2 * (2 * 5 * 6 + 2 * 9 * (2 + 3) + 2 * 5 * 6)
    assert run.exps == 2 * (5 + 3 + 9 + 5)
    # B 2*2, X 2*3; A 1, DT 2, STATES 6, DECAY 1 in fp32. Then h 6, STATES 6, DECAY 1. Then
    # C 2*2, B 2*2, X 2*3; A 1, DT 2, STATES 6, S 2*2, Y 2*3 in fp32.
    assert run.sram_states >= {(10, 0, 10, 0, 0, 0), (0, 0, 13, 0, 0, 0), (14, 0, 19, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (33, 2 * 14 + 4 * 19)
    # B 10, C 10, X 30; A 2, DT 10, STATES 36 in fp32; then Y 30, when DECAY 6 is gone.
    held = 48 + (12 if carry else 0)
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (80 + held, 2 * 80 + 4 * held)
    assert run.hbm_bytes(2) == 2 * (40 + 20 + 60 + 30) + 4 * (12 + 20 + 2 * 72 + 2 * 6 + (24 if carry else 0))
