"""Shipped formulas equal those built from the declarations, and are what a cold process uses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.evaluation.compiled import StoredFormulas
from iomodel.counting.store import formulas_in
from tests.support import shipped_formulas as shipped
from tests.support.inside import CATALOGUE

STALE = f"stale; run: {shipped.COMMAND}"
COMMANDS = {
    "cost": "cost flash2 --q-len 8192 --head-dim 128 --mask causal --block-q 128 --block-kv 64",
    "tiles": "tiles flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --heads 32 --kv-heads 8 --mask causal",
    "estimate": "estimate flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --heads 32 --kv-heads 8",
    "plan": "plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5",
    "version": "--version",
}


def test_the_catalogue_is_fresh() -> None:
    assert shipped.entries_of() == CATALOGUE, STALE
    for name, found in shipped.declarations().items():
        assert algorithm(found) is algorithm(found.name)
        assert algorithm(found.name).shipped == name


def test_the_declarations_are_those_that_formulas_were_made_from() -> None:
    sums = {name: shipped.digests(name) for name in shipped.declarations()}
    assert sums == json.loads(shipped.DIGESTS.read_text()), STALE


@pytest.mark.parametrize("module", [*sorted(CATALOGUE), shipped.BOUNDS])
def test_a_fresh_build_gives_the_shipped_source(module: str) -> None:
    only = "" if module == shipped.BOUNDS else "causal" if "causal" in _masks(module) else "full"
    rows = _rows(shipped.written(module, shipped.recorded(module, only)))
    stored = _rows((shipped.ROOT / "counting" / "shipped" / f"{module}.py").read_text())
    assert rows.keys() <= stored.keys(), STALE
    assert {key: stored[key] for key in rows} == rows, STALE


def _masks(module: str) -> tuple[str, ...]:
    return CATALOGUE[module]["masks"] or tuple(shipped.MASKS)


def _rows(text: str) -> dict[str, str]:
    """Each record with the bodies of its functions in place of their names."""
    body, _, table = text.partition("RECORDS = {\n")
    functions = {}
    for part in body.split("\ndef ")[1:]:
        name, _, rest = part.partition("(")
        functions[name] = rest.strip()
    rows = {}
    for row in table.removesuffix("}\n").splitlines():
        key, _, value = row.strip().partition("': ")
        words = value.split("('#', ") if "('#', " in value else value.split('("#", ')
        rows[key] = words[0] + "".join(functions[w.partition(",")[0]] + w.partition(",")[2] for w in words[1:])
    return rows


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cold_command_needs_no_sympy(name: str) -> None:
    code = (
        "import contextlib, io, runpy, sys\n"
        f"sys.argv[1:] = {COMMANDS[name].split()!r}\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    runpy.run_module('iomodel', run_name='__main__')\n"
        "assert 'sympy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ARRAYS = (
    "'flash2', q_len=[1024, 4096], head_dim=64, block_q=[[64], [128]], block_kv=64, mask='causal'",
    "'flash2', q_len=[1024, 4096], head_dim=64, block_q=64, block_kv=64, direction='backward', dq_buffers=[1, 2]",
    "'standard', q_len=[1024, 4096], head_dim=64, dtype=['bf16', 'fp32']",
    "'split_kv', q_len=1, kv_len=[1024, 4096], head_dim=64, block_q=1, block_kv=64, splits=[[1], [4]]",
    "'gemm', rows=[64, 65], in_features=64, out_features=64, block_m=64, block_n=32, block_k=[[16], [32]]",
)


@pytest.mark.parametrize("arguments", ARRAYS)
def test_arrays_of_shipped_algorithms_need_no_sympy(arguments: str) -> None:
    code = (
        "import sys, iomodel\n"
        f"costs = iomodel.cost_array({arguments})\n"
        "one = costs.at(*(length - 1 for length in costs.shape))\n"
        "for name, value in one.quantities.items():\n"
        "    assert getattr(costs, name).flat[-1] == value, name\n"
        "for side in ('reads', 'writes'):\n"
        "    assert {name: int(n.flat[-1]) for name, n in getattr(costs, side).items()} == getattr(one, side)\n"
        "assert 'sympy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_changed_copy_of_a_shipped_algorithm_is_built_anew() -> None:
    copy = replace(algorithm("flash2"), title="mine")
    assert copy.shipped is None
    w = iomodel.Attention(q_len=300, head_dim=64, mask="causal")
    tiles = {"block_q": 64, "block_kv": 32}
    assert iomodel.cost(copy, w, tiles).reads == iomodel.cost("flash2", w, tiles).reads


def test_stored_formulas_are_rebuilt_where_expressions_are_asked_for() -> None:
    compiled = BoundCall.bind("flash2", iomodel.Attention(q_len=300, head_dim=64), {}).compiled
    whole = next(formulas_in(compiled.quantities))
    assert isinstance(whole, StoredFormulas)
    assert len(whole.formulas) == whole.outputs
    assert [symbol.name for symbol in whole.inputs][:2] == ["B", "H"]
