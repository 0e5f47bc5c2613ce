"""`iomodel sweep`: plans read from files, tables written whole, errors in one line that leave nothing behind."""

import json
import os
import sys
from itertools import product

import pytest

import iomodel
from iomodel.errors import SpecError
from iomodel.studies.sweeps.file import plan_file
from iomodel.studies.sweeps.sweep import sweep
from tests.support.inside import _scheduler, main, watched

pytest.importorskip("xarray")
pytest.importorskip("zarr")
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

PLAN = """
algorithm: flash2
quantities: [hbm_bytes, reads_K]
mask: [causal, {left: 31, right: 0}]
q_len: {from: 64, to: 256, factor: 2}
block_q: {from: 16, to: 40, step: 16}
block_kv: 16
head_dim: 8
chunk: 5
"""
FIELDS = {"q_len": [64, 128, 256], "block_q": [16, 32], "block_kv": 16, "head_dim": 8}
MASKS = ["causal", iomodel.Window(left=31, right=0)]


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path / "plan.yaml"


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*line):
        return main(["sweep", *map(str, line)]), *capsys.readouterr()

    return call


def expected():
    swept = sweep("flash2", quantities=["hbm_bytes", "reads_K"], mask=MASKS, **FIELDS)
    return swept.to_dataframe().reset_index()


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_table_has_a_row_for_every_point(plan, run, suffix):
    out = plan.with_name(f"result{suffix}")
    code, printed, err = run(plan, "--out", out)
    assert (code, err) == (0, "")
    table = (pandas.read_parquet if suffix == ".parquet" else pandas.read_csv)(out)
    order = list(table.columns[:3])
    wanted = expected().sort_values(order, ignore_index=True)
    pandas.testing.assert_frame_equal(table.sort_values(order, ignore_index=True), wanted, check_dtype=False)
    assert names(plan.parent) == ["plan.yaml", out.name]
    assert f"{wanted.hbm_bytes.max():,}" in printed
    code, _, err = run(plan, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "--fresh" in err
    assert run(plan, "--out", out, "--fresh")[0] == 0


def test_a_store_is_taken_up_and_can_be_made_anew(plan, run):
    out = plan.with_name("result.zarr")
    computed = [json.loads(run(plan, "--out", out, "--json", *more)[1])["computed"] for more in ([], [], ["--fresh"])]
    assert computed == [4, 0, 4]
    mine = plan.with_name("mine.zarr")
    mine.mkdir()
    (mine / "notes").write_text("precious")
    for more in ([], ["--fresh"]):
        code, _, err = run(plan, "--out", mine, *more)
        assert (code, err.count("\n"), names(mine)) == (2, 1, ["notes"])


def test_the_summary_says_where_each_quantity_is_least_and_largest(plan, run):
    found = json.loads(run(plan, "--json")[1])
    rows = expected()
    for name in ("hbm_bytes", "reads_K"):
        told = found["quantities"][name]
        assert (told["least"]["value"], told["largest"]["value"]) == (rows[name].min(), rows[name].max())
        for which in ("least", "largest"):
            at = rows
            for field, value in told[which]["at"].items():
                at = at[at[field] == value]
            assert at[name].tolist() == [told[which]["value"]]
    assert found["points"] == len(rows) == 12


def test_a_dry_run_computes_and_writes_nothing(plan, run, monkeypatch):
    monkeypatch.setattr(sys.modules["iomodel.studies.sweeps.sweep"], "run", None)
    found = json.loads(run(plan, "--dry-run", "--json", "--out", plan.with_name("x.zarr"))[1])
    assert found["dimensions"] == {"mask": 2, "q_len": 3, "block_q": 2}
    assert (found["points"], found["chunks"], found["computed"], found["quantities"]) == (12, 4, None, {})
    assert names(plan.parent) == ["plan.yaml"]


def test_a_range_holds_both_ends(plan):
    for step, values in product([1, 5, 16], [(1, 1), (3, 90)]):
        told = f"q_len: {{from: {values[0]}, to: {values[1]}, step: {step}}}"
        plan.write_text(f"algorithm: flash2\nblock_q: 8\nblock_kv: 8\nhead_dim: 8\n{told}\n")
        assert plan_file(plan).axes[0].fields["q_len"].tolist() == [*range(values[0], values[1] + 1, step)]


BAD = [
    ("q_lenn: 5", "key: 'q_lenn' is unknown; did you mean 'q_len'"),
    ("store: x", "key: 'store' is unknown"),
    ("batch: {from: 1, too: 8, step: 1}", "batch: key: 'too' is unknown; did you mean 'to'"),
    ("batch: {from: 1, to: 8}", "batch: .* exactly one of step and factor"),
    ("batch: {from: 1, to: 8, step: 1, factor: 2}", "batch: .* exactly one of step and factor"),
    ("batch: {to: 8, step: 1}", r"batch\.from: not given, but required"),
    ("batch: {from: 8, to: 1, step: 1}", "batch: from 8 to 1 given"),
    ("batch: {from: 1, to: 8, step: 0}", r"batch\.step: 0 given"),
    ("batch: {from: 1, to: 8, factor: 1}", r"batch\.factor: 1 given"),
    ("batch: {from: 0, to: 8, factor: 2}", r"batch\.from: 0 given"),
    ("batch: {from: 1, to: 1000000000000, step: 1}", "batch: 1,000,000,000,000 values given"),
    ("batch: [1, -2]", "batch: -2 given, at index"),
    ("batch: []", "batch: no value given"),
    ("dtype: [bf16, bf17]", "dtype: 'bf17' is unknown; did you mean 'bf16'"),
    ("zipped: [[q_len, block_q]]", "q_len has 3, block_q has 2 values"),
    ("kv_len: !!python/object:os.system x", "tags"),
    ("head_dim: 9", "given twice"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[line for line, _ in BAD])
def test_a_bad_plan_is_refused_by_file_and_key(plan, run, line, message):
    plan.write_text(PLAN + line)
    with pytest.raises(SpecError, match=rf"plan\.yaml: .*{message}"):
        plan_file(plan)
    code, out, err = run(plan, "--out", plan.with_name("x.parquet"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert names(plan.parent) == ["plan.yaml"]


@pytest.mark.parametrize(
    "line", [["--out", "x.xlsx"], ["--out", "nowhere/x.csv"], ["--workers", "0"], ["--workers", "two"], ["more"]]
)
def test_bad_arguments_leave_nothing(plan, run, line, monkeypatch):
    monkeypatch.chdir(plan.parent)
    code, out, err = run(plan, *line)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert names(plan.parent) == ["plan.yaml"]


def test_what_fails_while_it_is_written_leaves_no_file(plan, run, monkeypatch):
    def fail(_frames, path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("iomodel.studies.sweeps.write._csv", fail)
    code, _, err = run(plan, "--out", plan.with_name("x.csv"))
    assert (code, "No space left" in err) == (2, True)
    assert names(plan.parent) == ["plan.yaml", "x.csv.zarr"]  # computed, and taken up by the next run
    monkeypatch.undo()
    assert json.loads(run(plan, "--out", plan.with_name("x.csv"), "--json")[1])["computed"] == 0
    assert names(plan.parent) == ["plan.yaml", "x.csv"]


def test_the_bar_is_drawn_on_a_terminal_where_work_is_long(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert list(watched(iter("abc"), 3, wanted=True)) == ["a", "b", "c"]
    short = capsys.readouterr()
    monkeypatch.setattr("iomodel.common.progress.SHORT", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert list(watched(iter("abc"), 3, wanted=True)) == ["a", "b", "c"]
    long = capsys.readouterr()
    assert short.out == long.out == ""
    assert "chunks" not in short.err
    assert "chunks" in long.err
    assert list(watched(iter("abc"), 3, wanted=False)) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_as_many_workers_are_started_as_are_asked_for() -> None:
    wanted = 1 if os.cpu_count() != 1 else 2
    with _scheduler(wanted) as client:
        assert len(client.ncores()) == wanted
