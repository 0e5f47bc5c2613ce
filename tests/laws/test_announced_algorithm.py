"""Algorithms that an installed package announces through an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import iomodel
from tests.support import delta_rule, own_kernel

DECLARED = Path(delta_rule.__file__).read_text(encoding="utf-8").replace("DELTA_RULE =", "ALGORITHM =")
"""The source of a module with an ALGORITHM."""
OWN_KERNEL = Path(own_kernel.__file__).read_text(encoding="utf-8")
CALL = {"q_len": 64, "head_dim": 8, "mask": "causal"}
COST = """
import json, warnings, iomodel
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    names = iomodel.list_algorithms()
cost = iomodel.cost("delta_rule", iomodel.Attention(q_len=64, head_dim=8, mask="causal"), {"block_v": 4}, chunk_size=16)
best = iomodel.solve("delta_rule", cost.workload, sram_elements=2000, chunk_size=16)
print(json.dumps([names, cost.hbm_bytes, best.tiles["block_v"], [str(one.message) for one in said]]))
"""


def wheel(folder: Path, package: str, entries: dict[str, str], modules: dict[str, str]) -> Path:
    """Build a wheel by hand: modules, and the metadata with entry points."""
    points = "".join(f"{name} = {value}\n" for name, value in entries.items())
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    with ZipFile(path, "w") as archive:
        for name, text in modules.items():
            archive.writestr(f"{name}.py", text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[iomodel.algorithms]\n{points}")
        archive.writestr(f"{info}/RECORD", "")
    return path


def installed(folder: Path, *wheels: Path) -> dict[str, str]:
    """Unpack wheels into a folder, as an installer does, and return an environment with that folder on the path."""
    for path in wheels:
        with ZipFile(path) as archive:
            archive.extractall(folder)
    root = str(Path(iomodel.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), root]), "COLUMNS": "200"}


def ran(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The package of the delta rule beside one whose announcements are all wrong."""
    folder = tmp_path_factory.mktemp("site")
    good = wheel(folder, "delta_rule_model", {"delta_rule": "delta_rule_model"}, {"delta_rule_model": DECLARED})
    wrong = {"flash2": "delta_rule_model:ALGORITHM", "gone": "no_such_module", "number": "wrong_model:NUMBER",
             "other_name": "delta_rule_model"}  # fmt: skip
    own = wheel(folder, "own_kernel", {"own_kernel": "own_kernel:OWN_KERNEL"}, {"own_kernel": OWN_KERNEL})
    bad = wheel(folder, "wrong_model", wrong, {"wrong_model": "NUMBER = 3\n"})
    return installed(folder / "unpacked", good, own, bad)


def test_it_is_listed_and_costed_by_name(environment: dict[str, str]) -> None:
    answer = ran(environment, "-c", COST)
    assert answer.returncode == 0, answer.stderr
    names, hbm_bytes, block_v, said = json.loads(answer.stdout)
    assert names == [*iomodel.list_algorithms(), "delta_rule", "own_kernel"]
    call = iomodel.Attention(**CALL)
    assert hbm_bytes == iomodel.cost(delta_rule.DELTA_RULE, call, {"block_v": 4}, chunk_size=16).hbm_bytes
    assert block_v == iomodel.solve(delta_rule.DELTA_RULE, call, sram_elements=2000, chunk_size=16).tiles["block_v"]
    assert said == [
        f"algorithm: {name!r}, announced by wrong_model 1.0, {reason}"
        for name, reason in {
            "flash2": "has the name of a shipped algorithm",
            "gone": "does not load: ModuleNotFoundError: No module named 'no_such_module'",
            "number": "is 3, neither an Algorithm nor a module with an ALGORITHM",
            "other_name": "is named 'delta_rule' in its declaration",
        }.items()
    ]


def test_a_kernel_reaches_a_plan_by_name(environment: dict[str, str]) -> None:
    code = (
        "import iomodel\n"
        "asked = {'prompt': 64, 'output': 2, 'attention_algorithm': 'own_kernel'}\n"
        "print(iomodel.plan('llama-3-8b', 'h100-sxm5', **asked).ttft)\n"
    )
    answer = ran(environment, "-W", "ignore", "-c", code)
    assert answer.returncode == 0, answer.stderr
    asked = {"prompt": 64, "output": 2, "attention_algorithm": own_kernel.OWN_KERNEL}
    assert float(answer.stdout) == iomodel.plan("llama-3-8b", "h100-sxm5", **asked).ttft


def test_the_command_line_takes_it_with_its_own_tile_and_option(environment: dict[str, str]) -> None:
    shape = ["--q-len", "64", "--head-dim", "8", "--mask", "causal", "--chunk-size", "16"]
    cost = ran(environment, "-m", "iomodel", "cost", "delta_rule", *shape, "--block-v", "4", "--json")
    assert cost.returncode == 0, cost.stderr
    expected = iomodel.cost(delta_rule.DELTA_RULE, iomodel.Attention(**CALL), {"block_v": 4}, chunk_size=16)
    assert json.loads(cost.stdout) == json.loads(json.dumps(expected.to_dict()))
    listed = ran(environment, "-m", "iomodel", "algorithms", "--json")
    assert json.loads(listed.stdout)["delta_rule"]["title"] == "DeltaNet, chunked"


@pytest.mark.parametrize("name", ["gone", "number", "other_name"])
def test_one_that_cannot_be_taken_ends_in_a_line_that_names_its_package(environment: dict[str, str], name: str) -> None:
    answer = ran(environment, "-W", "ignore", "-m", "iomodel", "cost", name, "--q-len", "8", "--head-dim", "8")
    assert answer.returncode == 2
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert f"algorithm: {name!r}, announced by wrong_model 1.0, " in line


def test_a_shipped_algorithm_looks_for_no_package(environment: dict[str, str]) -> None:
    code = (
        "import iomodel\n"
        "iomodel.cost('flash2', iomodel.Attention(q_len=8, head_dim=8), {'block_q': 4, 'block_kv': 4})\n"
        "from iomodel.algorithms import announced\n"
        "assert announced.cache_info().currsize == 0\n"
    )
    assert ran(environment, "-W", "error", "-c", code).returncode == 0
    shape = ["--q-len", "8", "--head-dim", "8", "--block-q", "4", "--block-kv", "4"]
    answer = ran(environment, "-W", "error", "-m", "iomodel", "cost", "flash2", *shape, "--json")
    assert answer.returncode == 0, answer.stderr
