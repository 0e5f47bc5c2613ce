"""Compiled formulas that are kept equal those built from the declarations, and are what a cold process uses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import prebuild
from iomodel.algorithms import algorithm, discovered
from iomodel.counting import store
from iomodel.counting.bounds import counts_of
from iomodel.counting.carried import carried
from iomodel.counting.compile import compiled_quantities
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.evaluation.compiled import Compiled, StoredFormulas
from iomodel.counting.store import decoded, encoded, formulas_in
from tests.support.inside import PIPELINED, compiled_demands, demands, derived, parts_for

NAMES = sorted(discovered())
COMMANDS = {
    "cost": "cost flash2 --q-len 8192 --head-dim 128 --mask causal --block-q 128 --block-kv 64",
    "tiles": "tiles flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --heads 32 --kv-heads 8 --mask causal",
    "estimate": "estimate flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --heads 32 --kv-heads 8",
    "plan": "plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5",
    "version": "--version",
}
ARRAYS = (
    "'flash2', q_len=[1024, 4096], head_dim=64, block_q=[[64], [128]], block_kv=64, mask='causal'",
    "'flash2', q_len=[1024, 4096], head_dim=64, block_q=64, block_kv=64, direction='backward', dq_buffers=[1, 2]",
    "'standard', q_len=[1024, 4096], head_dim=64, dtype=['bf16', 'fp32']",
    "'split_kv', q_len=1, kv_len=[1024, 4096], head_dim=64, block_q=1, block_kv=64, splits=[[1], [4]]",
    "'gemm', rows=[64, 65], in_features=64, out_features=64, block_m=64, block_n=32, block_k=[[16], [32]]",
)
COMMAND = """
import contextlib, io, sys
from iomodel.__main__ import main
from iomodel.common import derived
sys.argv[1:] = {arguments!r}
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print('sympy' in sys.modules)
"""
ARRAY = """
import sys, iomodel
from iomodel.common import derived
derived.pending = {{}} if {keeping} else None
costs = iomodel.cost_array({arguments})
one = costs[tuple(length - 1 for length in costs.shape)]
for name, value in one.quantities.items():
    assert getattr(costs, name).flat[-1] == value, name
for side in ('reads', 'writes'):
    assert {{name: int(n.flat[-1]) for name, n in getattr(costs, side).items()}} == getattr(one, side)
derived.keep()
print('sympy' in sys.modules)
"""


def loads_sympy(code: str, **values: object) -> bool:
    """Run a cold process, and return True if it has loaded sympy."""
    done = subprocess.run([sys.executable, "-c", code.format(**values)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.endswith("True\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cold_command_needs_no_sympy_from_its_second_run(name: str) -> None:
    loads_sympy(COMMAND, arguments=COMMANDS[name].split())
    assert not loads_sympy(COMMAND, arguments=COMMANDS[name].split())


@pytest.mark.parametrize("arguments", ARRAYS)
def test_arrays_need_no_sympy_where_formulas_are_kept(arguments: str) -> None:
    loads_sympy(ARRAY, arguments=arguments, keeping=True)
    assert not loads_sympy(ARRAY, arguments=arguments, keeping=False)


@given(st.data())
def test_a_stored_record_equals_a_fresh_one(data: st.DataObject) -> None:
    found = algorithm(data.draw(st.sampled_from(NAMES)))
    kind, options = data.draw(st.sampled_from(list(carried(found))))
    execution = found.execution.get(kind.direction, PIPELINED)
    name, build = data.draw(
        st.sampled_from(
            [
                ("quantities", lambda: compiled_quantities(found, kind, options)),
                ("demands", lambda: compiled_demands(found, kind, options, execution)),
            ]
        )
    )
    fresh, texts = build(), {}
    plain_form = json.loads(json.dumps(encoded(fresh, texts)))
    on_disk = derived.read(f"formulas-{found.name}") or {"functions": [], "records": {}}
    kept = on_disk["records"].get(f"{name} {store.text_of((kind, options))}")
    for form, functions in ((plain_form, list(texts)), (kept, on_disk["functions"])):
        if form is not None:
            stored = decoded(form, functions, build)
            assert encoded(stored, dict(texts)) == plain_form
            for text, formulas in zip(formulas_in(stored), formulas_in(fresh), strict=True):
                assert isinstance(text, StoredFormulas)
                point = data.draw(st.tuples(*(st.integers(1, 300) for _ in formulas.inputs)))
                assert outcome(text, point) == outcome(formulas, point)


def outcome(formulas: Compiled, point: tuple[int, ...]) -> object:
    """The values of formulas, or the kind of error at numbers that no call has."""
    try:
        return formulas.scalars(*point)
    except ArithmeticError as error:
        return type(error)


def test_a_changed_copy_of_a_shipped_algorithm_is_built_anew() -> None:
    copy = replace(algorithm("flash2"), title="mine")
    assert copy.shipped is None
    w = iomodel.Attention(q_len=300, head_dim=64, mask="causal")
    tiles = {"block_q": 64, "block_kv": 32}
    assert iomodel.cost(copy, w, tiles).reads == iomodel.cost("flash2", w, tiles).reads


def test_all_that_a_release_carries_of_an_algorithm_is_derived_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, object] = {}
    monkeypatch.setattr(derived, "read", lambda _: None)
    monkeypatch.setattr(derived, "write", lambda name, data, _=None: written.__setitem__(name, data))
    monkeypatch.setattr(derived, "pending", None)
    found = algorithm("tiled_query")
    for cached in (store._table, tally, demands, parts_for, counts_of):
        cached.cache_clear()
    found.memo.clear()
    prebuild.main(["tiled_query"])
    table = written["formulas-tiled_query"]
    assert isinstance(table, dict)
    names = {f"{name} {store.text_of(key)}" for key in carried(found) for name in ("quantities", "demands")}
    assert {*table["records"]} >= {*names, "requirements ()"}
    assert {*written} >= {"formulas-_bounds", "formulas-tiled_query"}
    store._table.cache_clear()
