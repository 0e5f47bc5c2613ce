"""A hundred random calls in Chromium: counts, tiles, times and links are those of Python; the slider keeps up."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qsl

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.explorer.call_kinds import kinds
from iomodel.explorer.link import link
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload
from tests.support.explorer_calls import COUNTS, SOLVED, Drawn, counted
from tests.support.explorer_times import DEVICES, TIMED, kinds_of, timed
from tests.support.inside import main

FRAME = 16.0
"""Target of the work of the page from a move of the slider to the picture of its answer [ms]."""
MOVES = """async () => {
  const { slider } = window.iomodel.page.lengths, spent = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const drawn = () => new Promise((done) => requestAnimationFrame(() => {
    const began = performance.now(), { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done([began, performance.now()]); // after the frame is drawn
    port2.postMessage(null);
  }));
  for (let move = 0; move < 48; move++) {
    await frame();
    await new Promise((done) => setTimeout(done, (move * 7) % 16)); // at any time between two frames
    slider.value = 20 + ((move * 5) % 44);
    const began = performance.now();
    slider.dispatchEvent(new Event("input"));
    const answered = performance.now();
    const [frameBegan, frameEnded] = await drawn();
    spent.push([answered - began, answered - began + frameEnded - frameBegan, frameEnded - began]);
  }
  return spent;
}"""
NUMBERS = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim")


@cache
def calls() -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Calls with their estimates."""
    return list(timed(100, seed=6))


def workload(fields: dict[str, str]) -> iomodel.Attention:
    mask: Any = fields["mask"]
    if mask == "window":
        mask = iomodel.Window(left=int(fields["window_left"]), right=int(fields["window_right"]))
    numbers = {name: int(fields[name]) for name in NUMBERS}
    return iomodel.Attention(**numbers, dtype=fields["dtype"], direction=fields["direction"], mask=mask)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the kinds of call of the tests."""
    names = list(dict.fromkeys(["flash2", *(fields["algorithm"] for fields, _ in calls())]))
    masks = ("full", "causal", "window left+right top-left")
    first = [kind for kind in kinds(["flash2"]) if kind.direction == "forward" and kind.mask in masks]
    drawn = dict.fromkeys(kind for fields, _ in calls() for kind in kinds_of(fields))
    tiled = (
        replace(kind, switches=tuple((name, on or name == "tiled") for name, on in kind.switches)) for kind in drawn
    )
    only = dict.fromkeys([*first, *drawn, *tiled])
    target = tmp_path_factory.mktemp("explorer") / "page.html"
    target.write_text(page(payload(names, DEVICES, only=list(only))))
    return target


def test_a_hundred_links_give_the_counts_tiles_and_times_of_python(visited: Any) -> None:
    jobs: list[dict[str, Any]] = []
    for fields, wanted in calls():
        place = dict(parse_qsl(link(fields["algorithm"], workload(fields), fields["hardware"])))
        solved = {"implementation": "textbook"}
        if "tiled" in algorithm(fields["algorithm"]).takes(fields["direction"]):
            solved["tiled"] = "on"  # as iomodel.solve has it
        jobs.append(
            {
                "solved": solved,
                "fields": place,
                "tiles": {name: str(size) for name, size in plain(wanted["tiles"]).items()},
            }
        )
    body = f"""(jobs) => jobs.map((job) => {{
      const {{ calls }} = window.iomodel, one = {{ fields: {{ ...job.fields, ...job.solved }} }};
      return [({TIMED.strip()})(calls, job.fields), ({COUNTS.strip()})(calls, job), ({SOLVED.strip()})(calls, one)];
    }})"""
    own = {"new Timer(calls.data.clock)": "window.iomodel.page.timer", " solve(": " window.iomodel.solve("}
    for name, text in own.items():
        body = body.replace(name, text)
    answers = visited().tab.evaluate(body, jobs)
    assert len(answers) == 100
    for (fields, wanted), (time, counts, solved) in zip(calls(), answers, strict=True):
        assert "error" not in time, (fields, time)
        assert time.pop("seconds") == pytest.approx(wanted["seconds"], rel=1e-12), fields
        assert time.pop("breakdown") == pytest.approx(wanted["breakdown"], rel=1e-12), fields
        assert time == {name: wanted[name] for name in time}, fields
        call, name = workload(fields), fields["algorithm"]
        assert counts == counted(Drawn(name, call, {}, plain(wanted["tiles"]))), fields
        assert solved == solution(name, call, fields["hardware"]), fields


def solution(name: str, call: iomodel.Attention, device: str) -> dict[str, Any]:
    """What Python solves for in the textbook's memory, as the page names it."""
    try:
        found = iomodel.solve(name, call, device, implementation="textbook")
    except iomodel.InfeasibleError as error:
        return {"least": str(error.least)}
    bytes_moved = str(found.cost.hbm_bytes)
    return {"tiles": dict(found.tiles), "binding": found.certificate.binding, "bytes": bytes_moved}


def plain(tiles: dict[str, int]) -> dict[str, int]:
    """Leave out the launch configuration."""
    return {name: size for name, size in tiles.items() if name not in ("warps", "stages")}


def test_the_slider_shows_its_answer_in_the_next_frame(visited: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tab = visited().tab
    tab.evaluate("window.iomodel.page.lengths.slider.scrollIntoView()")
    spent = tab.evaluate(MOVES)
    answered, worked, shown = (median(column) for column in zip(*spent, strict=True))
    with capsys.disabled():
        print(f"[slider: answer {answered:.1f} ms, work {worked:.1f} ms, in sight after {shown:.1f} ms]", end=" ")  # noqa: T201
    assert len(spent) == 48
    assert max(answered, worked, shown) < 5 * FRAME  # other programs may hold the core up


def test_a_move_of_the_slider_changes_no_more_than_figures(opened: Any, visited: Any) -> None:
    """Nodes stay, so that the browser lays out and paints the changed texts only; they show what a new page shows."""
    tab = visited().tab
    kept, texts = tab.evaluate(
        """async () => {
          const { lengths } = window.iomodel.page;
          const nodes = () => [...document.querySelectorAll("#cards *, #time *")];
          const before = nodes();
          lengths.slider.value = 52;
          lengths.slide();
          const kept = nodes().every((node, i) => node === before[i]);
          lengths.rest();
          return [kept, ["cards", "time"].map((id) => document.getElementById(id).textContent)];
        }"""
    )
    assert kept
    fresh = opened("q_len=8192").tab
    assert texts == [
        fresh.evaluate("(id) => document.getElementById(id).textContent", name) for name in ("cards", "time")
    ]


CALL = ["--hardware", "H100-SXM5", "--q-len", "8192", "--head-dim", "128", "--heads", "32", "--kv-heads", "8"]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ([], {}),
        (["--mask", "causal", "--no-lse"], {"lse": False}),
        (["--mask", "window", "--window-left", "99", "--window-right", "0", "--align", "top-left"], {}),
        (["--block-q", "64", "--block-kv", "48", "--packed"], {"packed": True}),
        (["--implementation", "textbook", "--dtype", "fp16"], {}),
    ],
)
def test_the_command_links_to_its_call(
    visited: Any,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plain_terminal: None,
    more: list[str],
    options: dict[str, bool],
) -> None:
    copy = tmp_path / "a page.html"
    copy.write_bytes(b"")
    assert main(["explore", "flash2", "--link", "--output", str(copy), *CALL, *more]) == 0
    address, place = capsys.readouterr().out.strip().split("#")
    assert address == copy.as_uri()
    assert main(["explore", "flash2", "--link", "--base", "https://host/page", *CALL, *more]) == 0
    assert capsys.readouterr().out == f"https://host/page#{place}\n"
    shown = visited(place)
    assert shown.tab.is_hidden("#fault")
    command = str(shown.tab.evaluate("window.iomodel.command(window.iomodel.page.view)")).split()[1:]
    mine, its = (["estimate", "flash2", *CALL, *more, "--json"], [*command, "--json"])
    answers = []
    for line in (mine, its):
        assert main(line) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert {name: shown.state[name] for name in options} == {
        name: "on" if value else "off" for name, value in options.items()
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["flash2"], "algorithm: given without --link; allowed: only with it"),
        (["--q-len", "8"], "q_len: given without --link; allowed: only with it"),
        (["--base", "x"], "base: given without --link"),
        (["--link"], "algorithm: none given, but required by --link; allowed: a name, such as flash2"),
        (["flash2", "--link"], "hardware: none given, but required by --link"),
        (["flash2", "--link", *CALL, "--bias", "--base", "x"], "bias: given; allowed on the page: calls without"),
        (["flash2", "--link", *CALL, "--block-row", "4"], "--block-row: no option of iomodel explore"),
        (["flash2", "--link", *CALL, "--gemm1-m", "4"], "gemm1_m: given; allowed for flash2: block_q, block_kv"),
        (["flash2", "--link", *CALL, "--base", "a b"], "base: 'a b' given; allowed: an address without #"),
        (["flash2", "--link", *CALL, "--implementation", "x"], "implementation: 'x' is unknown; "),
        (["flash2", "--link", *CALL, "--algorithms", "flash2"], "algorithms: given with --link"),
        (["flash2", "--link", *CALL, "--output", "x.html", "--base", "x"], "out: given with --link"),
        (["flash2", "--link", *CALL, "--serve"], "serve: given with --link; allowed: one of the two"),
        (["gemm", "--link", *CALL[:2], "--rows", "1", "--in-features", "1", "--out-features", "1"], "workload: Linear"),
        (["flash2", "--link", *CALL, "--order", "serpentine"], "order: given; allowed on the page: lse, packed"),
    ],
)
def test_a_call_without_a_link_is_refused(
    line: list[str], message: str, capsys: pytest.CaptureFixture[str], plain_terminal: None
) -> None:
    assert main(["explore", *line]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith(f"iomodel: {message}")


def test_links_name_only_what_differs() -> None:
    window = iomodel.Window(left=None, right=None)
    shape = {"heads": 32, "kv_heads": 8, "q_len": 4096, "head_dim": 128}
    for mask, value_dim in product(("full", window), (128, 64)):
        call = iomodel.Attention(**shape, value_dim=value_dim, mask=mask)
        more = "&value_dim=64" if value_dim == 64 else ""
        assert link("flash2", call, "t4") == f"algorithm=flash2&hardware=t4{more}"
    documents = iomodel.Attention(q_len=4, head_dim=8, mask=iomodel.Documents([2, 2]))
    with pytest.raises(iomodel.InputError, match="mask: Documents given; allowed on the page: full, causal, Window"):
        link("flash2", documents, "t4")
