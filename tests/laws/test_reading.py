"""The page that explains answers explains every line that is printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import iomodel
from iomodel.cli.app import main
from tests.laws.test_docs import read, section, table

ATTENTION = {"heads": 32, "kv_heads": 8, "q_len": 8192, "head_dim": 128, "mask": "causal"}
CALL = "--q-len 8192 --head-dim 128 --heads 32 --kv-heads 8 --mask causal"
DECODE = "--q-len 1 --kv-len 65536 --head-dim 128 --heads 32 --kv-heads 8"
LAYER = "--rows 4096 --in-features 4096 --out-features 4096"
ANSWERS = {
    "A tile": [
        f"tiles flash3 --hardware h100-sxm5 {CALL}",
        f"tiles flash2 --hardware b200 {CALL}",
        f"tiles split_kv --hardware h100-sxm5 {DECODE}",
        f"tiles gemm --hardware h100-sxm5 {LAYER}",
        f"tiles flash2 --sram-elements 51200 {CALL}",
        f"tiles flash1 --sram-elements 51200 {CALL}",
    ],
    "A time": [
        f"estimate flash3 --hardware h100-sxm5 {CALL}",
        f"estimate split_kv --hardware h100-sxm5 {DECODE}",
        f"estimate flash2 --hardware mi300x {CALL}",
    ],
    "A check": [
        f"check flash3 --hardware h100-sxm5 {CALL} --tiles 128x128 --warps 8",
        f"check flash2 --hardware b200 {CALL} --tiles 256x128",
        f"check flash2 --hardware mi300x {CALL} --tiles 128x64",
    ],
    "A plan": ["plan llama-3.1-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2"],
}


def explained(heading: str) -> list[re.Pattern[str]]:
    """Return the labels that a section explains, "..." standing for any text."""
    labels = [
        label for row in table(section("reading-an-answer.md", heading)) for label in re.findall("`([^`]+)`", row[0])
    ]
    own = [re.escape(label).replace(re.escape("..."), ".+") for label in [*labels, "One replica at other batches"]]
    return [re.compile(pattern) for pattern in own]


def labels(text: str) -> Iterator[str]:
    """Yield the labels of the first table of an answer."""
    body = re.split("─{20,}", text)[1:2] or [""]
    for line in body[0].splitlines():
        if not line.strip("─ "):
            continue
        if not line.startswith("  "):
            return
        label = re.split(r" {2,}", line.strip())[0]
        if re.match(r"  \S| {4}\S", line) and re.search(r" {2,}\S", line.strip()):
            yield label


@pytest.mark.parametrize(("heading", "line"), [(name, line) for name, lines in ANSWERS.items() for line in lines])
def test_every_printed_line_is_explained(heading, line, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(line.split()) == 0
    known = explained(heading)
    found = list(labels(capsys.readouterr().out))
    assert len(found) > 4
    assert [label for label in found if not any(pattern.fullmatch(label) for pattern in known)] == []


def test_the_questions_of_the_page_have_the_answers_that_it_gives():
    layer = iomodel.Attention(**ATTENTION)
    best = iomodel.solve("flash3", layer, "h100-sxm5")
    assert (best.tiles["block_q"], best.tiles["block_kv"]) == (192, 96)
    wider = iomodel.estimate("flash3", layer, "h100-sxm5", {"block_q": 192, "block_kv": 128, "warps": 12})
    assert wider.breakdown["shared memory"] > wider.breakdown["matrix"]
    assert wider.seconds > best.seconds
    assert best.certificate.shipped.seconds / best.seconds - 1 < 0.06


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_page_is_linked(page):
    assert "reading-an-answer.md" in (Path(__file__).parents[2] / page).read_text(encoding="utf-8")


def test_the_glossary_has_the_words_of_beginners():
    words = " ".join(re.findall(r"^([A-Z].*)\n: ", read("classroom.md"), re.MULTILINE)).lower()
    for word in ("kernel", "fusion", "tensor core", "warp", "intensity", "ridge", "coalescing", "bank conflicts"):
        assert word in words
