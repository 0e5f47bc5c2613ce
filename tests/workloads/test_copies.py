"""Copies of workloads: a changed copy has the numbers of its own fields, and is validated."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel

COPIES: list[tuple[Any, dict[str, Any]]] = [
    (iomodel.Attention(q_len=8, head_dim=4), {"q_len": 9}),
    (iomodel.Linear(rows=8, in_features=4, out_features=2), {"weight_dtype": "int4"}),
    (iomodel.MLP(rows=8, in_features=4, hidden_features=2), {"rows": 9}),
    (iomodel.CrossEntropy(rows=8, in_features=4, vocab_size=2), {"rows": 9}),
    (iomodel.Recurrence(tokens=8, head_dim=4), {"tokens": 9, "gate": "head"}),
]


@pytest.mark.parametrize(("workload", "changed"), COPIES, ids=lambda value: type(value).__name__)
def test_a_changed_copy_has_its_own_numbers(workload: Any, changed: dict[str, Any]) -> None:
    assert workload.numbers  # kept with the workload from here on
    fresh = type(workload)(**{**{name: getattr(workload, name) for name in type(workload).model_fields}, **changed})
    copy = workload.model_copy(update=changed)
    assert copy == fresh
    assert copy.numbers == fresh.numbers != workload.numbers


@pytest.mark.parametrize(("workload", "changed"), COPIES, ids=lambda value: type(value).__name__)
def test_a_wrong_copy_is_refused(workload: Any, changed: dict[str, Any]) -> None:
    with pytest.raises(iomodel.InputError):
        workload.model_copy(update=dict.fromkeys(changed, 0))


def test_a_diagnosis_times_narrower_weights() -> None:
    layer = iomodel.Linear(rows=16, in_features=16384, out_features=16384)
    found = iomodel.diagnose("gemm", layer, "h100-sxm5", 200e-6)  # bound by the bytes of W
    names = [remedy.name for remedy in found.remedies]
    assert names[0] == "int4 weights"
    assert "fp8 weights" in names
