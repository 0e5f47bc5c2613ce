"""Sweeps over processes that die or differ: a scheduler that is killed, an engine that is edited."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import iomodel
from iomodel.errors import UnfinishedError
from iomodel.studies.sweeps.engine import ROOMS
from iomodel.studies.sweeps.sweep import planned, run, sweep
from tests.studies.test_sweep_store import CHUNKS as STEPS
from tests.studies.test_sweep_store import PLAN, chunk_files, uninterrupted, whole

pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("distributed")
ROOT = Path(iomodel.__file__).parents[1]
MANY = {**PLAN, "q_len": range(1, 100, 5), "chunk": {"mask": 1, "q_len": 1, "block_q": 1}}
CHUNKS = 2 * 20 * 3
ASK = """
from iomodel.errors import IOModelError
from iomodel.studies.sweeps.sweep import planned, run
try:
    print(run(planned(**{plan!r}), {store!r}, "threads", False)[1])
except IOModelError as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""


def started(*line, root=ROOT, **options):
    """A Python process with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{ROOT}"}
    return subprocess.Popen([sys.executable, *line], env=environment, text=True, **{"cwd": root, **options})


def asked(plan, store, root):
    """A process that runs a sweep and prints how many chunks it computed, or its error."""
    text = ASK.format(plan=plan, store=str(store))
    return started("-c", text, root=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextmanager
def cluster(folder, root=ROOT):
    """Processes of a scheduler and of a worker with the package of a folder; the first, and its address."""
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    own = ["--host", "127.0.0.1", "--port", "0"]
    scheduler = started("-m", "distributed.cli.dask_scheduler", *common, *own, **quiet)
    worker = started(
        "-m", "distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny", root=root, cwd=folder, **quiet
    )
    try:
        deadline = time.monotonic() + 60
        while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield scheduler, json.loads(file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def answer(process):
    """The only line that a process prints."""
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output.count("\n")) == (0, 1), errors
    return output.strip()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_sweep_whose_scheduler_is_killed_goes_on_without_it(tmp_path):
    path = tmp_path / "result.zarr"
    with cluster(tmp_path) as (scheduler, address), ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, planned(**MANY), path, address, False)
        while not chunk_files(path) and not running.done():
            time.sleep(0.005)
        scheduler.send_signal(signal.SIGKILL)
        with pytest.raises(
            UnfinishedError, match=r"^scheduler: lost with its workers \(.*\); the store keeps what is computed;"
        ):
            running.result()
    computed = run(planned(**MANY), path, "threads", False)[1]
    assert 0 < computed < CHUNKS
    assert whole(path) == uninterrupted(MANY, path)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, whose modules a test may edit."""
    folder = tmp_path_factory.mktemp("engine")
    for name in ("iomodel", "specs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_derived", "_parts"))
    return folder


@contextmanager
def edited(copied, module):
    """Edit a module so that each of its formulas, or chunks, is one more."""
    file = copied / "iomodel" / module
    before = file.read_text()
    old, new = EDITS[module]
    assert old in before
    file.write_text(before.replace(old, new))
    yield
    file.write_text(before)


EDITS = {
    "algorithms/flash2.py": ("Load(K), Load(V),", "Load(K), Load(K), Load(V),"),
    "studies/sweeps/block.py": ("values = np.asarray(answered[name])", "values = np.asarray(answered[name]) + 1"),
}
"""For a module of the formulas, and one that evaluates them: a text, and a text with other counts."""


@pytest.mark.parametrize("module", EDITS)
def test_a_store_of_an_edited_engine_is_refused_and_stays(tmp_path, copied, module):
    path = tmp_path / "result.zarr"
    sweep(**PLAN, store=path)
    before = whole(path)
    with edited(copied, module):
        said = answer(asked(PLAN, path, copied))
    assert re.fullmatch(r"InputError: store: .* made by another plan, of other (engine|formulas); allowed: .*", said)
    assert whole(path) == before
    assert answer(asked(PLAN, path, copied)) == "0"  # as it was, wherever it lies
    assert whole(path) == before


def test_a_worker_with_another_engine_writes_nothing(tmp_path, copied):
    path = tmp_path / "result.zarr"
    other = r"^scheduler: a worker has another iomodel, in .*; allowed: "
    with (
        edited(copied, "studies/sweeps/block.py"),
        cluster(tmp_path, copied) as (_, address),
        pytest.raises(UnfinishedError, match=other),
    ):
        sweep(**PLAN, store=path, scheduler=address)
    assert not chunk_files(path)
    assert run(planned(**PLAN), path, "threads", False)[1] == STEPS
    assert whole(path) == uninterrupted(PLAN, path)


def test_the_digest_of_an_engine_covers_what_a_sweep_imports():
    program = """
import sys
from iomodel.studies.sweeps.sweep import sweep
sweep("flash2", q_len=[64, 128], head_dim=64, solve=True, hardware=["h100-sxm5"], mask=["full", "causal"])
sweep("gemm", rows=[1, 2], in_features=64, out_features=64, solve=True, sram_bytes=10**5)
print(*(name for name in sys.modules if name.startswith("iomodel.")))
"""
    process = started("-c", program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    names = answer(process).split()
    rooms = tuple(f"iomodel.{room.removesuffix('.py').replace('/', '.')}" for room in ROOMS)
    assert len(names) > 100
    assert [name for name in names if not name.startswith(rooms)] == ["iomodel.studies"]
