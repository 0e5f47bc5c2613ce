"""Reports on the page: read as the library reads them, beside what the page predicts, and refused in one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import iomodel
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload, report_data
from tests.explorer.test_explorer import run_node
from tests.integrations.test_audit import details, raw
from tests.support.browser import Opened, opening
from tests.support.inside import read_benchmark, read_csv

TESTS = Path(__file__).parents[1]
RESULTS, REPORTS = TESTS / "planning" / "results", TESTS / "integrations" / "reports"
READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
SECTORS = [f"lts__t_sectors_srcunit_tex_op_{access}.sum" for access in ("read", "write")]
COUNTERS = {
    READ: ("120.5", "Mbyte"),
    WRITE: ("37,068,800", "byte"),
    SECTORS[0]: ("70,000,000", "sector"),
    SECTORS[1]: ("1,100", "Ksector"),
    "gpu__time_duration.sum": ("1,812.5", "usecond"),
}
LATER = {**COUNTERS, "gpu__time_duration.sum": ("12.5", "usecond")}
FRENCH = {READ: ("1 048 576", "byte"), WRITE: ("2,5", "Mbyte"), SECTORS[0]: ("1.000", "sector")}
TABLES = [
    details(("flash_fwd", COUNTERS), ("silu", LATER)),
    raw(("flash_fwd", COUNTERS), ("silu", LATER)),
    raw(("k", FRENCH)),
]
PIECES = (
    '"',
    '""',
    ",",
    "\n",
    "\r\n",
    "==PROF==\n",
    "NaN",
    "1e999",
    "-",
    "byte",
    "Kernel Name",
    "\u2028",
    "é",
    "{",
    "[",
)
BODY = """(_, text) => {
  const reports = new Reports(DATA), found = reports.read(text);
  return found.run ?? found.launches.map(({ kernel, launch, values }) => [kernel, launch, values]);
}"""
CALL = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")


def texts() -> Iterator[str]:
    """Reports, and the same with one to three places damaged."""
    files = (*sorted(RESULTS.glob("*.json*")), *sorted(REPORTS.glob("ncu-*.csv")))
    whole = [*TABLES, *(file.read_text(encoding="utf-8") for file in files)]
    yield from whole
    choose = Random(4)
    for text in whole:
        for _ in range(40):
            cut = text
            for _ in range(choose.randint(1, 3)):
                start = choose.randint(0, len(cut))
                cut = cut[:start] + choose.choice(("", *PIECES)) + cut[start + choose.choice((0, 1, 9, 10**6)) :]
            yield cut


def by_python(text: str, folder: Path) -> Any:
    """What the library reads, or None where it refuses the text."""
    try:
        if text.lstrip()[:1] in ("{", "["):
            file = folder / "run"
            file.write_text(text, encoding="utf-8")
            run = read_benchmark(file)
            return {"source": run.source, "setting": dict(run.setting), "measured": dict(run.measured)}
        return [[each.kernel, each.launch, dict(each.values)] for each in read_csv(text, "x")]
    except iomodel.IOModelError:
        return None


def test_the_page_reads_what_the_library_reads(tmp_path: Path) -> None:
    import json

    body = f"((DATA) => {BODY})({json.dumps(report_data())})"
    html = page(payload(["tiled_query"], ["h100-sxm5"]))
    given = list(texts())
    answers = run_node(tmp_path, html, body, given)
    read = 0
    for text, answer in zip(given, answers, strict=True):
        wanted = by_python(text, tmp_path)
        if isinstance(answer, dict):
            answer.pop("runs", None)
        if wanted is None:
            assert set(answer) == {"error"}, text
            assert "\n" not in answer["error"]
        else:
            read += 1
            assert answer == wanted, text
    assert read > 50


@pytest.fixture(scope="module")
def shown(browser: Any, file: Path) -> Iterator[Opened]:
    """A call on the page, opened once for all reports."""
    with opening(browser, file) as at:
        yield at("q_len=8192&mask=causal")


def drop(shown: Opened, name: str, text: str) -> None:
    """Drop a file on the page."""
    shown.tab.evaluate(
        """([name, text]) => { const data = new DataTransfer();
        data.items.add(new File([text], name));
        const more = { dataTransfer: data, bubbles: true, cancelable: true };
        document.body.dispatchEvent(new DragEvent("drop", more)); }""",
        [name, text],
    )


def test_a_dropped_report_of_kernels_stands_beside_the_call(shown: Opened) -> None:
    drop(shown, "flash.csv", TABLES[0])
    shown.tab.wait_for_selector("#against")
    rows = [row.split("\t") for row in shown.tab.locator("#against tbody tr").all_inner_texts()]
    found = iomodel.estimate("flash2", CALL, "h100-sxm5")
    measured = (1812.5e-6, 32 * 71_100_000, 157_568_800)
    predicted = (found.seconds, found.requested_bytes, found.streamed_bytes)
    assert [row[0] for row in rows] == ["Time", "Requests", "DRAM traffic"]
    for row, one, other in zip(rows, measured, predicted, strict=True):
        assert float(row[3].split()[0]) == pytest.approx(one / other, rel=5e-3)
    useful = found.cost.useful_flops
    told = f"measured: {useful / measured[0] / 1e12:.0f} TFLOP/s at {useful / measured[2]:.0f} FLOP/B"
    assert shown.tab.locator("#roofline .own title").text_content() == told
    assert shown.tab.input_value("#launch") == "0"  # the longest
    shown.tab.select_option("#launch", "1")
    assert shown.text("#against tbody tr >> nth=0").split("\t")[1] == "12.5 µs"


def test_a_dropped_run_of_a_server_stands_beside_the_nearest_plan(shown: Opened) -> None:
    text = (RESULTS / "trtllm.json").read_text(encoding="utf-8")
    drop(shown, "run.json", text)
    shown.tab.wait_for_function("document.querySelector('#measured').textContent.includes('trtllm-bench')")
    assert shown.state["serve_model"] == "llama-3.1-8b"
    assert (shown.state["serve_hardware"], shown.state["serve_batch"]) == ("h100-sxm5", "64")
    at = shown.tab.evaluate("window.iomodel.page.serving.data.plans['llama-3.1-8b|h100-sxm5|1|2048'].batches['64']")
    measured = read_benchmark(RESULTS / "trtllm.json").measured
    rows = {row.split("\t")[0]: row.split("\t")[3] for row in shown.tab.locator("#against tbody tr").all_inner_texts()}
    assert float(rows["Time per output token"].split()[0]) == pytest.approx(measured["tpot"] / at["tpot"], rel=5e-3)
    drop(shown, "other.json", (RESULTS / "inferencemax.json").read_text(encoding="utf-8"))
    shown.tab.wait_for_function("document.querySelector('#measured').textContent.includes('not among those')")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLES[1][: len(TABLES[1]) // 2], "line 2: unexpected end of data; the file may be cut short"),
        ('"ID","Kernel Name"\n"0","<img src=x onerror=alert(1)>', "the file may be cut short"),
        ('{"a": 1}', "no result of a known program"),
        ("hello", "no header with 'Kernel Name' found"),
    ],
)
def test_a_cut_or_hostile_file_ends_in_one_line(shown: Opened, text: str, message: str) -> None:
    before = shown.text("#cards")
    drop(shown, "<b>x</b>.csv", text)
    fault = shown.tab.locator("#measured [role=alert]")
    shown.tab.wait_for_function(
        "(words) => document.querySelector('#measured [role=alert]').textContent.includes(words)", arg=message
    )
    assert fault.inner_text().startswith("<b>x</b>.csv: ")
    assert shown.tab.locator("#measured img, #measured b").count() == 0
    assert shown.text("#cards") == before


def test_gains_are_those_of_estimates(shown: Opened) -> None:
    shown.tab.wait_for_selector(".gain")
    gains = dict(
        shown.tab.evaluate(
            """() => { const { fasterThan, page } = window.iomodel;
            return fasterThan(page.view, page).map(({ name, gain }) => [name, gain]); }"""
        )
    )
    before = iomodel.estimate("flash2", CALL, "h100-sxm5")
    assert gains["FlashAttention-3"] == pytest.approx(
        before.seconds / iomodel.estimate("flash3", CALL, "h100-sxm5").seconds
    )
    remedies = iomodel.diagnose("flash2", CALL, "h100-sxm5", 3e-3).remedies
    for name, dtype in (("FlashAttention-3", CALL.dtype), ("FlashAttention-3 in fp8", "fp8")):
        remedy = next(each for each in remedies if (each.algorithm, each.dtype) == ("flash3", dtype))
        assert gains[name] == pytest.approx(remedy.gain)
    shown.tab.locator(".gain", has_text="FlashAttention-3:").click()
    assert shown.state["algorithm"] == "flash3"
    shown.tab.go_back()
    assert shown.state["algorithm"] == "flash2"
