"""Sweeps on disk: killed, torn, altered, shared and spread over processes, a store ends as the direct answer."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from iomodel import InputError
from iomodel.algorithms import algorithm
from iomodel.errors import UnfinishedError
from iomodel.studies.sweeps import store as sweep_store
from iomodel.studies.sweeps.run import each
from iomodel.studies.sweeps.signatures import FOLDER, PARTIAL
from iomodel.studies.sweeps.sweep import planned, run, sweep
from tests.support.inside import NO_DASHBOARD, _scheduler

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

PLAN = {
    "algorithm": "flash2",
    "quantities": ("hbm_bytes", "reads_K"),
    "mask": ["full", "causal"],
    "q_len": range(1, 120, 20),
    "block_q": [8, 16, 24],
    "block_kv": 8,
    "head_dim": 4,
    "chunk": {"mask": 1, "q_len": 1},
}
CHUNKS = 12


@pytest.fixture
def path(tmp_path):
    return tmp_path / "result.zarr"


@pytest.fixture(scope="module")
def answer():
    return sweep(**{**PLAN, "chunk": None})


def chunk_files(path):
    return sorted(file for name in PLAN["quantities"] for file in (path / name / "c").rglob("*") if file.is_file())


def whole(path):
    """Every file of a folder with its bytes."""
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def uninterrupted(plan, path):
    """The files of a store that one run has written."""
    sweep(**plan, store=path.with_name("uninterrupted.zarr"))
    return whole(path.with_name("uninterrupted.zarr"))


def slow(seconds, compute, plan, block):
    time.sleep(seconds)
    return compute(plan, block)


def test_a_store_holds_what_memory_holds_and_is_computed_once(path, answer):
    plan = planned(**PLAN)
    result, computed = run(plan, path, "threads", False)
    assert computed == CHUNKS
    assert result.load().identical(answer)
    again, computed = run(plan, path, "threads", False)
    assert computed == 0
    assert again.load().identical(answer)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    read = xarray.open_zarr(path)  # by whoever knows nothing of sweeps
    assert read.hbm_bytes.dtype == "int64"
    assert read.load()[list(answer)].equals(answer)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_sweep_that_is_killed_goes_on_where_it_was(path, answer):
    program = f"""
        from functools import partial
        from iomodel.studies.sweeps import store as sweep_store
        from iomodel.studies.sweeps.sweep import sweep
        from tests.studies.test_sweep_store import PLAN, slow
        sweep_store.compute = partial(slow, 0.15, sweep_store.compute)
        sweep(**PLAN, store={str(path)!r})
    """
    where, there = Path(__file__).parents[2], 0
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=where)
        deadline = time.monotonic() + 60
        while len(chunk_files(path)) < there + 4 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        before, there = there, len(chunk_files(path))
        assert before < there < 2 * CHUNKS
    kept = [file for file in (path / FOLDER).glob("chunk.*") if file.suffix != PARTIAL]
    result, computed = run(planned(**PLAN), path, "threads", False)
    assert computed == CHUNKS - len(kept) < CHUNKS  # one that is written and not signed is computed again
    assert result.load().identical(answer)
    assert whole(path) == uninterrupted(PLAN, path)


def torn(file):
    file.write_bytes(file.read_bytes()[:-3])


def emptied(file):
    file.write_bytes(b"")


def altered(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("harm", [torn, emptied, altered, Path.unlink])
def test_a_chunk_that_is_not_whole_is_computed_again(path, answer, harm):
    sweep(**PLAN, store=path)
    files = chunk_files(path)
    harm(files[0])
    harm(files[5])
    result, computed = run(planned(**PLAN), path, "threads", False)
    assert computed == 2
    assert result.load().identical(answer)


def test_a_store_of_anything_else_is_refused_and_stays(path, tmp_path):
    sweep(**PLAN, store=path)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    for change, said in (
        ({"head_dim": 5}, "constants"),
        ({"q_len": range(2, 121, 20)}, "dimensions"),
        ({"chunk": 9}, "chunks"),
    ):
        with pytest.raises(InputError, match=f"store: .* made by another plan, of other {said};"):
            sweep(**{**PLAN, **change}, store=path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("precious")
    for taken in (other, other / "mine.txt"):
        with pytest.raises(InputError, match=r"store: .*(something else|is a file)"):
            sweep(**PLAN, store=taken)
    assert (other / "mine.txt").read_text() == "precious"
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_another_version_has_a_store_of_its_own(path, monkeypatch):
    sweep(**PLAN, store=path)
    monkeypatch.setattr("iomodel.studies.sweeps.plan.package_version", lambda: "0.0.1")
    with pytest.raises(InputError, match="of other iomodel;"):
        sweep(**PLAN, store=path)


def test_two_runs_at_once_share_a_store(path, answer, monkeypatch):
    monkeypatch.setattr(sweep_store, "compute", partial(slow, 0.02, sweep_store.compute))
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, planned(**PLAN), path, "threads", False) for _ in range(2)]
        results = [started.result() for started in runs]
    assert all(result.load().identical(answer) for result, _ in results)
    assert sum(computed for _, computed in results) >= CHUNKS
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_number_beyond_64_bits_leaves_no_store(path):
    fields = {"q_len": [10**7, 10**8], "heads": [10**6, 1], "head_dim": 64, "block_q": 32, "block_kv": 32}
    with pytest.raises(InputError, match=r"^flops: .* 64 bits"):
        sweep("flash2", quantities="flops", zipped=[("q_len", "heads")], chunk=1, store=path, **fields)
    assert list(path.parent.iterdir()) == []


def test_a_cluster_computes_the_same(answer, path, monkeypatch):
    with distributed.LocalCluster(n_workers=1, processes=False, threads_per_worker=2, **NO_DASHBOARD) as cluster:
        assert sweep(**PLAN, scheduler=cluster.scheduler_address).identical(answer)
        with distributed.Client(cluster) as client:
            assert sweep(**PLAN, scheduler=client, store=path).load().identical(answer)
    monkeypatch.setattr("iomodel.studies.sweeps.run.PATIENCE", 0.2)
    with pytest.raises(InputError, match=r"scheduler: 'tcp://127.0.0.1:1' does not answer"):
        sweep(**PLAN, scheduler="tcp://127.0.0.1:1")


def test_the_cluster_of_the_command_starts_beside_another():
    with socket.socket() as other:
        with suppress(OSError):  # another cluster of the machine has the default port already
            other.bind(("", 8787))
            other.listen()
        with _scheduler(1) as client:
            assert client.status == "running"


def test_half_written_files_of_killed_workers_are_removed_and_those_of_other_runs_stay(path, monkeypatch):
    sweep(**PLAN, store=path)
    chunk = chunk_files(path)[0]
    dead, alive = (chunk.with_name(f"{chunk.name}.{name}.partial") for name in ("dead", "alive"))
    before = whole(path)

    def pause(seconds):  # in which the other run writes on
        alive.write_bytes(b"more")
        os.utime(alive, (time.time() + 5, time.time() + 5))

    monkeypatch.setattr("iomodel.studies.sweeps.store.time.sleep", pause)
    for file in (dead, alive):
        file.write_bytes(b"half")
    sweep(**PLAN, store=path)
    assert not dead.exists()
    assert alive.read_bytes() == b"more"
    alive.unlink()
    assert whole(path) == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_worker_that_is_killed_is_made_up_for(path, answer):
    plan = planned(**{**PLAN, "chunk": {"mask": 1, "q_len": 1, "block_q": 1}})
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=50, **NO_DASHBOARD) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        processes = client.run(os.getpid)
        running = pool.submit(run, plan, path, client, False)
        while not chunk_files(path) and not running.done():
            time.sleep(0.001)
        os.kill(next(iter(processes.values())), signal.SIGKILL)
        result, computed = running.result()
    assert result.load().identical(answer)
    assert 18 <= computed <= plan.block_count == 36
    assert whole(path) == uninterrupted({**PLAN, "chunk": {"mask": 1, "q_len": 1, "block_q": 1}}, path)


def test_the_bar_is_for_terminals_only(path, capfd):
    sweep(**PLAN, store=path)
    assert capfd.readouterr() == ("", "")


def other_place(path):
    files = chunk_files(path)
    files[1].write_bytes(files[0].read_bytes())


def other_question(path):
    other = path.with_name("other.zarr")
    sweep(**{**PLAN, "head_dim": 8}, store=other)
    for mine, theirs in zip(chunk_files(path)[:2], chunk_files(other)[:2], strict=True):
        mine.write_bytes(theirs.read_bytes())
    shutil.rmtree(other)


def other_signature(path):
    first, second = sorted((path / ".iomodel").glob("chunk.*"))[:2]
    second.write_bytes(first.read_bytes())


def bracketed(path):
    for file in (path / "zarr.json", path / "reads_K" / "zarr.json"):
        file.write_text("[" * 100_000)


def cut_off(path):
    for file in path.rglob("zarr.json"):
        file.write_bytes(file.read_bytes()[:50])


def left_over(path):
    file = path / "hbm_bytes" / "c" / "0" / "0" / "0.abc.partial"
    file.write_bytes(b"half")
    os.utime(file, (1, 1))


@pytest.mark.parametrize(
    ("harm", "again"),
    [(other_place, 1), (other_question, 2), (other_signature, 1), (bracketed, 0), (cut_off, 0), (left_over, 0)],
)
def test_an_altered_store_is_made_whole_byte_by_byte(path, harm, again):
    sweep(**PLAN, store=path)
    before = whole(path)
    harm(path)
    assert whole(path) != before
    _, computed = run(planned(**PLAN), path, "threads", False)
    assert computed == again
    assert whole(path) == before


def test_a_store_of_other_formulas_is_refused(path, monkeypatch):
    own = replace(algorithm("flash2"), name="own")
    sweep(**PLAN | {"algorithm": own}, store=path)
    before = whole(path)
    monkeypatch.setattr("iomodel.studies.sweeps.plan._digest", lambda algorithm: "other")
    with pytest.raises(InputError, match="of other formulas"):
        sweep(**PLAN | {"algorithm": own}, store=path)
    assert whole(path) == before


def obstructed(path, kind):
    """Put something where a chunk belongs."""
    file = chunk_files(path)[3]
    file.unlink()
    if kind == "a folder":
        file.mkdir()
    else:
        file.parent.rmdir()
        file.parent.write_bytes(b"")
    return lambda: file.rmdir() if kind == "a folder" else file.parent.unlink()


@pytest.mark.parametrize("kind", ["a folder", "a file in place of a folder"])
def test_a_chunk_that_cannot_be_written_ends_the_sweep_in_one_line(path, kind, answer):
    sweep(**PLAN, store=path)
    before = whole(path)
    undo = obstructed(path, kind)
    with pytest.raises(
        UnfinishedError, match=r"^store: .* cannot be written: .*; the store keeps what is computed; "
    ) as refused:
        sweep(**PLAN, store=path)
    assert "\n" not in str(refused.value)
    undo()
    result, computed = run(planned(**PLAN), path, "threads", False)
    assert computed == 1
    assert result.load().identical(answer)
    assert whole(path) == before


FULL_DISK = """
    import resource, shutil, sys
    from pathlib import Path
    from iomodel.cli.app import main
    from tests.studies.test_sweep_store import whole

    def command(limit):  # no file may grow beyond the limit: metadata and coordinates fit, chunks do not
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return main(["sweep", "plan.yaml", "--out", "out.zarr", "--json"])

    assert command(12_000) == 2
    print(max(file.stat().st_size for file in Path("out.zarr").rglob("*") if file.is_file()), file=sys.stderr)
    assert command(resource.RLIM_INFINITY) == 0
    after = whole(Path("out.zarr"))
    shutil.rmtree("out.zarr")
    assert command(resource.RLIM_INFINITY) == 0
    assert whole(Path("out.zarr")) == after
"""


@pytest.mark.skipif(os.name == "nt", reason="no limit on the size of files here")
def test_a_full_disk_ends_the_command_in_one_line_and_the_sweep_goes_on_after_it(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "algorithm: flash2\nq_len: {from: 1, to: 5000, step: 1}\nblock_q: 7\nblock_kv: 5\nhead_dim: 7\nmask: causal\n"
        "quantities: [hbm_bytes, flops]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    line, size, *more = done.stderr.splitlines()
    assert (done.returncode, more) == (0, []), done.stderr
    assert line.startswith("iomodel: store: ")
    assert "File too large" in line
    assert int(size) <= 12_000


class Gone(Executor):
    """An executor whose scheduler goes after some functions."""

    def __init__(self, most):
        self.most = most

    def submit(self, function, item):
        future = Future()
        if self.most > 0:
            self.most -= 1
            future.set_result(function(item))
        else:
            future.set_exception(distributed.comm.CommClosedError("gone"))
        return future


def test_a_lost_scheduler_ends_the_sweep_in_one_line_and_leaves_the_store(path, answer, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("iomodel.studies.sweeps.sweep.workers", lambda scheduler: nullcontext((Gone(5), 1)))
        with pytest.raises(UnfinishedError, match=r"^scheduler: lost with its workers \(.*\); the store"):
            sweep(**PLAN, store=path)
    result, computed = run(planned(**PLAN), path, "threads", False)
    assert computed == CHUNKS - 5
    assert result.load().identical(answer)
    assert whole(path) == uninterrupted(PLAN, path)


class Alone(Executor):
    """An executor of a cluster without workers."""

    def __init__(self):
        self._client = SimpleNamespace(ncores=dict, scheduler=SimpleNamespace(address="tcp://host:1"))

    def submit(self, function, item):
        return Future()


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr("iomodel.studies.sweeps.run.ALONE", 0.05)
    with pytest.raises(UnfinishedError, match=r"^scheduler: 'tcp://host:1' has no worker left; "):
        list(each(str, [1, 2], Alone(), 1))
