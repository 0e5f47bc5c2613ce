"""Solutions of arrays of calls by time, and what is refused; each is that of its call alone (tests/laws)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import iomodel
from iomodel import Linear


def test_the_counts_of_the_tiles_are_at_hand() -> None:
    found = iomodel.solve_array("flash2", None, "a100-sxm4-80gb", objective="time", q_len=[512, 4096], head_dim=64)
    assert (found.cost.hbm_bytes == found.hbm_bytes).all()
    assert (found.ratio >= 1).all()
    assert list(found.tiles) == ["block_q", "block_kv", "warps", "stages"]
    again = iomodel.SolutionArray.from_json(found.to_json())
    assert again == found
    assert again.seconds.tolist() == found.seconds.tolist()
    assert len(found.to_pandas()) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sram_bytes": 1000}, "sram_bytes: 1000 given; allowed: none, with objective='time'"),
        ({"epsilon": 0.1}, "epsilon: 0.1 given"),
        ({"hardware": None}, "hardware: not given"),
        ({"hardware": "tpu-v4"}, "objective: 'time' given with no implementation"),
        ({"objective": "speed"}, "objective"),
        ({"objective": "traffic", "implementation": "tritton"}, "implementation of flash2: 'tritton' is unknown"),
    ],
)
def test_wrong_arguments_are_one_line(more: dict[str, Any], message: str) -> None:
    asked = {"hardware": "h100-sxm5", "objective": "time", "q_len": [64, 128], "head_dim": 64, **more}
    with pytest.raises(iomodel.IOModelError, match=message) as error:
        iomodel.solve_array("flash2", **asked)
    assert "\n" not in str(error.value)


LAYER = Linear(rows=64, in_features=512, out_features=512)
CALL = iomodel.Attention(heads=4, q_len=64, head_dim=64)


@pytest.mark.parametrize(
    ("algorithm", "template", "columns"),
    [
        ("flash2", CALL, {"q_len": [64, 128], "direction": "both"}),
        ("flash2", CALL, {"dtype": ["bf16", "fp16"]}),
        ("flash2", CALL, {"q_len": [64, 128], "min_block_kv": [16, 96]}),
        ("flash2", CALL, {"q_len": [64, 128], "objective": "traffic"}),
        ("flash2", CALL, {"q_len": [64, 128], "epsilon": 0.1}),
        ("gemm", LAYER, {"rows": [[64], [4096]]}),
    ],
)
def test_what_is_not_searched_together_is_what_solve_answers(
    algorithm: str, template: Any, columns: dict[str, Any]
) -> None:
    found = iomodel.solve_array(algorithm, template, "h100-sxm5", **columns)
    arrays = {name: np.ravel(value) for name, value in columns.items() if isinstance(value, list)}
    for place, one in enumerate(found):
        at = {**columns, **{name: values[place].item() for name, values in arrays.items()}}
        call = template.replace(**{name: at.pop(name) for name in [*at] if name in type(template).model_fields})
        alone = iomodel.solve(algorithm, call, "h100-sxm5", **at)
        assert one == alone
        assert found.hbm_bytes.flat[place] == alone.cost.hbm_bytes
        assert {name: int(sizes.flat[place]) for name, sizes in found.tiles.items()} == alone.tiles
        assert found.seconds is None or found.seconds.flat[place] == alone.seconds
    again = iomodel.SolutionArray.from_json(found.to_json())
    assert again == found


def test_where_nothing_fits_is_marked_or_refused() -> None:
    asked = {"q_len": [64, 128], "direction": "both", "min_block_kv": 64, "head_dim": [64, 10**6]}
    marked = iomodel.solve_array("flash2", CALL, "h100-sxm5", **asked, infeasible="mark")
    assert marked.feasible.tolist() == [True, False]
    assert (marked.hbm_bytes[1], np.isnan(marked.seconds[1])) == (0, True)
    with pytest.raises(iomodel.InfeasibleError, match=r"at index \(1,\), the first of 1 among 2 problems"):
        iomodel.solve_array("flash2", CALL, "h100-sxm5", **asked)


def test_the_old_spellings_go_on_working() -> None:
    asked = {"q_len": [64, 128], "head_dim": 64}
    with pytest.warns(DeprecationWarning, match="use iomodel.solve_array"):
        old = iomodel.solve_many  # type: ignore[attr-defined]
    assert old("flash2", "h100-sxm5", **asked) == iomodel.solve_array(
        "flash2", None, "h100-sxm5", **asked, implementation="textbook"
    )
    timed = iomodel.solve_array("flash2", None, "h100-sxm5", **asked)
    assert old("flash2", "h100-sxm5", **asked, objective="time").tiles.keys() == timed.tiles.keys()
    with pytest.warns(DeprecationWarning, match=r"use solutions\[i\]") as warned:
        assert timed.solution(1) == timed[1] == timed[-1]
    assert warned[0].filename == __file__
