"""What a program that embeds the library may rely on: docs/embedding.md, statement by statement."""

from __future__ import annotations

import copy
import csv
import functools
import json
import logging
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import iomodel
from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import AmbiguousNameError, UnknownFieldError, UnknownKeywordError
from tests.laws.test_docs import codes, read, section, table
from tests.support.public_names import PUBLIC
from tests.support.public_types import MADE, TILES, W

ROOT = Path(__file__).parents[2]
ARRAYS = {"CostArray", "EstimateArray", "SolutionArray"}  # answers for arrays, equal to themselves only
ERRORS = [name for name in PUBLIC if name.endswith("Error")]
TYPES = [name for name, value in PUBLIC.items() if isinstance(value, type) and name not in ERRORS]
each_type = pytest.mark.parametrize("name", MADE)


def python(*arguments: str, **environment: str) -> str:
    """What an interpreter of its own prints; anything on stderr is a failure, and so is any warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True, text=True, timeout=300, cwd=ROOT, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


# Imports and names


def test_an_import_loads_no_library() -> None:
    code = "import sys, iomodel; print([name for name in ('sympy', 'numpy', 'pydantic') if name in sys.modules])"
    assert python("-c", code) == "[]\n"


def test_every_public_name_is_there_and_listed() -> None:
    code = (
        "import iomodel\n"
        "assert dir(iomodel) == sorted(iomodel.__all__)\n"
        "for name in iomodel.__all__: assert getattr(iomodel, name).__name__ in (name, f'iomodel.{name}'), name\n"
        "names = {}; exec('from iomodel import *', names)\n"
        "assert set(iomodel.__all__) <= names.keys()\n"
        "try: iomodel.costs\n"
        "except AttributeError as error: print(error)"
    )
    assert python("-c", code) == "module 'iomodel' has no attribute 'costs'\n"


# Values


def test_one_of_every_public_type_is_made_here() -> None:
    assert set(TYPES) == set(MADE)


@each_type
def test_a_value_is_itself_after_a_journey(name: str) -> None:
    made = MADE[name]()
    assert isinstance(made, PUBLIC[name])
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        same(name, pickle.loads(pickle.dumps(made, protocol)), made)
    same(name, copy.copy(made), made)
    again = copy.deepcopy(made)
    same(name, again, made)
    assert str(again) == str(made)


def same(name: str, found: Any, made: Any) -> None:
    assert type(found) is type(made)
    if name not in ARRAYS:
        assert found == made
        assert hash(found) == hash(made)
    elif hasattr(made, "to_dict"):
        assert found.to_dict() == made.to_dict()


@each_type
def test_a_value_is_frozen_all_the_way_down(name: str) -> None:
    """What an attribute shares with whoever else has the value cannot be changed."""
    made = MADE[name]()
    for attribute in (one for one in dir(made) if one[0] != "_" and not one.startswith("model_") and one != "memo"):
        found = getattr(made, attribute)
        if not callable(found) and getattr(made, attribute) is found:  # else it is made anew each time
            assert not changeable(found), (attribute, found)


def changeable(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.flags.writeable
    if isinstance(value, tuple | frozenset | FrozenDict):
        return any(map(changeable, value.values() if isinstance(value, FrozenDict) else value))
    return isinstance(value, list | set | dict | bytearray)


def test_a_changeable_part_is_found() -> None:
    assert changeable(FrozenDict(a=(1, [])))
    assert changeable(np.zeros(1))
    assert not changeable(FrozenDict(a=(1, "b")))


@each_type
def test_plain_data_are_json_and_have_the_documented_keys(name: str) -> None:
    made = MADE[name]()
    if not hasattr(made, "to_dict"):
        assert name in {"Execution", "Residency"}
        return
    data = made.to_dict()
    assert json.loads(json.dumps(data)) is not None
    assert DOCUMENTED.get(name, set()) <= data.keys()


DOCUMENTED = {row["Type"].strip("`"): set(codes(row["Keys"])) for row in csv.DictReader(read("keys.csv").splitlines())}


def test_the_keys_of_every_result_are_documented() -> None:
    parts = {"Window", "BlockMask", "Documents", "Execution", "Residency", "Parameters"}
    assert DOCUMENTED.keys() == set(MADE) - parts
    assert all(DOCUMENTED.values())


@pytest.mark.parametrize("name", ["Attention", "VarlenAttention", "Hardware"])
def test_an_input_is_made_of_its_plain_data(name: str) -> None:
    made = MADE[name]()
    assert type(made)(**json.loads(json.dumps(made.to_dict()))) == made


# Errors


def kinds_of_errors() -> Iterator[type[iomodel.IOModelError]]:
    """Every class of the family."""
    load_everything()
    ahead: list[type[iomodel.IOModelError]] = [iomodel.IOModelError]
    for kind in ahead:
        ahead += kind.__subclasses__()
        yield kind


def load_everything() -> list[ModuleType]:
    """All modules of the package that need no library that may be missing."""
    names = [info.name for info in walk_packages(iomodel.__path__, "iomodel.")]
    return [
        import_module(name) for name in names if not name.endswith(("__main__", "calibrate_kernels", "machine_code"))
    ]


ARGUMENTS: dict[str, Callable[[], iomodel.IOModelError]] = {
    "UnknownNameError": lambda: iomodel.UnknownNameError("algorithm", "flash", ["flash1", "flash2"]),
    "AmbiguousNameError": lambda: AmbiguousNameError("hardware", "h100", ["h100-pcie", "h100-sxm5"]),
    "UnknownKeywordError": lambda: UnknownKeywordError("argument of plan", "tp", ["layout"]),
    "UnknownFieldError": lambda: UnknownFieldError("qlen: 1 given for an unknown field", "qlen", ["q_len"]),
    "InfeasibleError": lambda: iomodel.InfeasibleError("no tile fits", least=5, unit="B"),
}


def test_every_error_is_itself_after_a_journey() -> None:
    for kind in kinds_of_errors():
        error = ARGUMENTS[kind.__name__]() if kind.__name__ in ARGUMENTS else kind("what is wrong")
        error.add_note("at shape 7")
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is kind
            assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_every_error_has_its_documented_code() -> None:
    rows = {row[0].strip("`"): row[1].strip("`") for row in table(section("embedding.md", "Errors"))}
    assert rows == {name: PUBLIC[name].code for name in ERRORS if name != "IOModelError"}
    assert len(set(rows.values())) == len(rows)
    for kind in kinds_of_errors():
        assert kind.code in {*rows.values(), "error"}


def test_an_error_says_what_it_is_about() -> None:
    with pytest.raises(iomodel.UnknownNameError) as caught:
        iomodel.cost("flash", W, TILES)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.field, error.given) == ("algorithm", "flash")
    assert "flash2" in error.allowed
    with pytest.raises(iomodel.InputError) as refused:
        iomodel.Attention(q_len=-3, head_dim=64)
    assert pickle.loads(pickle.dumps(refused.value)).field == "q_len"
    with pytest.raises(iomodel.UnknownNameError) as unknown:
        iomodel.Attention(q_lne=3, head_dim=64)  # type: ignore[call-arg]
    assert unknown.value.field == "q_lne"


# Threads, processes, determinism


def test_threads_processes_and_hash_seeds_agree_from_a_cold_start() -> None:
    """One thread, then eight at once; PYTHONHASHSEED differs, and warnings are errors."""
    found = {
        python("-m", "tests.support.cold_start", threads, PYTHONHASHSEED=seed)
        for threads, seed in [("1", "0"), ("8", "5")]
    }
    assert len(found) == 1


def test_everything_travels_to_a_spawned_process_and_back() -> None:
    made = {name: make() for name, make in MADE.items()}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        back = pool.submit(copy.copy, made)
        answer = pool.submit(iomodel.cost, "flash2", W, TILES)
        refusal = pool.submit(iomodel.solve, "flash2", W, sram_bytes=10)
        for name, found in back.result().items():
            same(name, found, made[name])
        assert answer.result() == iomodel.cost("flash2", W, TILES)
        error = refusal.exception()
    assert isinstance(error, iomodel.InfeasibleError)
    assert iomodel.solve("flash2", W, sram_bytes=error.least).footprint <= error.least


def test_forked_processes_answer_as_their_parent_does() -> None:
    """From a process with one thread, whose caches are filled: children answer alike, and results travel back."""
    code = (
        "import os, pickle, iomodel\n"
        "from tests.support.public_types import TILES, W\n"
        "asked = [('flash2', W), ('flash1', W), ('split_kv', W)]\n"
        "def answers(): return [iomodel.cost(name, w, TILES) for name, w in asked[1:]]\n"
        "iomodel.cost(*asked[0], TILES)\n"
        "read, write = os.pipe()\n"
        "if not os.fork():\n"
        "    os.write(write, pickle.dumps(answers())); os._exit(0)\n"
        "os.wait()\n"
        "print(pickle.loads(os.read(read, 1 << 20)) == answers())"
    )
    assert python("-c", code) == "True\n"


def test_distinct_questions_leave_no_memory_behind() -> None:
    """Caches full, 2,000 more questions of each kind of workload add less than 2 MiB."""
    code = (
        "from benchmarks.embedding import asked, costs\n"
        "before, after, _ = asked(costs, 20_000)\n"
        "print(after - before < 2 << 20)"
    )
    assert python("-c", code) == "True\n"


# No state


def content(value: Any, seen: dict[int, tuple[int, object]], depth: int = 6) -> Any:
    """A value as far as it can change: containers by what they hold, objects of the package by their attributes.

    `seen` has the depth to which each object has been looked at, and the object, whose id is then no other's.
    """
    own = depth and type(value).__module__.partition(".")[0] == "iomodel" and hasattr(value, "__dict__")
    held = depth and isinstance(value, Mapping | list | tuple | set | frozenset)
    if (own or held) and id(value) in seen and seen[id(value)][0] >= depth:
        return id(value)
    seen[id(value)] = depth, value
    if held and isinstance(value, Mapping):
        return type(value), [(id(key), content(one, seen, depth - 1)) for key, one in value.items()]
    if held:
        return type(value), [content(one, seen, depth - 1) for one in value]
    if isinstance(value, np.ndarray):
        return value.tobytes(), value.shape
    if own:
        parts = [(name, one) for name, one in vars(value).items() if not cached(type(value), name)]
        return id(value), [(name, content(one, seen, depth - 1)) for name, one in parts]
    return id(value)


def cached(kind: type, name: str) -> bool:
    return name in ("memo", "_hash") or isinstance(getattr(kind, name, None), functools.cached_property)


def world(modules: list[ModuleType]) -> dict[str, Any]:
    """All that a call might change and should not."""
    hidden = {"__builtins__", "__warningregistry__", "__cached__", "__annotations__"}
    seen: dict[int, tuple[int, object]] = {}
    found = {
        f"{module.__name__}.{name}": content(value, seen)
        for module in modules
        for name, value in vars(module).items()
        if name not in hidden and not isinstance(value, ModuleType | FunctionType | type)
    }
    state = np.random.get_state(legacy=False)["state"]
    return found | {
        "environment": dict(os.environ),
        "directory": str(Path.cwd()),
        "random": random.getstate(),
        "numpy.random": (state["key"].tobytes(), state["pos"]),
        "numpy errors": np.geterr(),
        "numpy print": np.get_printoptions(),
        "warnings": list(map(str, warnings.filters)),
        "loggers": (list(logging.root.handlers), logging.root.level, logging.root.disabled),
        "path": list(sys.path),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()),
        "threads": threading.active_count(),
    }


def test_a_call_changes_nothing_and_prints_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    modules = [iomodel, *load_everything()]
    for name in iomodel.__all__:
        getattr(iomodel, name)  # looked up once; the package keeps what was found
    caplog.set_level(0)

    def make_all() -> None:
        for make in MADE.values():
            if hasattr(made := make(), "to_dict"):
                made.to_dict()

    make_all()  # fills the caches of steps
    before = world(modules)
    make_all()
    for wrong in (lambda: iomodel.cost("flash", W), lambda: iomodel.solve("flash2", W, sram_bytes=10)):
        with pytest.raises(iomodel.IOModelError):
            wrong()
    after = world(modules)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_nothing_is_written_started_or_asked_of_the_network() -> None:
    code = (
        "import sys\n"
        "seen = []\n"
        "def hook(event, arguments):\n"
        "    kind = event.partition('.')[0]\n"
        "    writes = event == 'open' and (set(str(arguments[1])) & set('wax+') or (arguments[2] or 0) & 3)\n"
        "    if writes or kind in {'socket', 'subprocess', 'shutil', 'tempfile'} or event in {'os.remove', 'os.mkdir',"
        " 'os.rename', 'os.system', 'os.fork'}: seen.append((event, arguments))\n"
        "sys.addaudithook(hook)\n"
        "from tests.support.cold_start import answers\n"
        "answers(1)\n"
        "assert not seen, seen\n"
        "import os; open(os.devnull, 'a').close()\n"
        "print(len(seen))"
    )
    assert python("-B", "-c", code) == "1\n"


def test_a_change_of_a_module_is_seen() -> None:
    module = ModuleType("made")
    module.names = {"a": [1]}  # type: ignore[attr-defined]
    before = world([module])
    module.names["a"].append(2)
    assert [name for name, found in world([module]).items() if found != before[name]] == ["made.names"]


def test_caches_are_bounded() -> None:
    """Those without a bound hold what the package has: algorithms, devices, models, figures, classes."""
    found = {
        f"{cache.__module__}.{cache.__name__}"
        for module in load_everything()
        for cache in vars(module).values()
        if hasattr(cache, "cache_info") and cache.cache_info().maxsize is None
    }
    finite = {"algorithms.discovered", "algorithms.announced", "algorithms.kernel_names", "algorithms._kernels_folded",
              "algorithms.replacing", "algorithms._aliases",
              "devices.device._names", "devices.device._shipped",
              "models.registry._names", "models.registry._shipped",
              "counting.evaluation.engine_choice.numba_is_there", "plots.canvas._figure_class",
              "devices.calibration.kernels.kernel", "counting.store._table", "counting.store._sources",
              "common.validation._fields_of", "algorithms._tiles.shipped_tiles",
              "common.derived.digest", "algorithms._preferred", "planning.service_options.options_of",
              "counting.evaluation.numba_runner._floor_sum", "counting.evaluation.numba_runner._divides",
              "cli.documented.documented", "cli.documented.parameters",
              "explorer.element._widget_class", "explorer.used_definitions._names",
              "triton.shipped_configs.shipped_configs"}  # fmt: skip
    assert found <= {f"iomodel.{name}" for name in finite}
