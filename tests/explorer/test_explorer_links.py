"""Random links of the explorer: each gives a call with counts and bounds, or names a field in one line."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tests.explorer.test_explorer import run_node
from tests.explorer.test_explorer_walk import small_page
from tests.fuzz.law import one_line
from tests.fuzz.links import link

NUMBER = 50_000 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 2_000

ANSWERED = """(calls, job) => {
  const began = performance.now();
  try {
    const call = calls.call(calls.complete(job));
    const bounds = call.lowerBounds(Number(call.budget));
    const sizes = Object.fromEntries(call.set.tiles.map((name) => [name, 16n]));
    const counts = call.counts({ ...sizes, ...call.chosen });
    const negative = Object.values(counts.reads).some((n) => n < 0n);
    return { wrong: negative || !(bounds.compulsory > 0), seconds: (performance.now() - began) / 1000 };
  } catch (error) {
    return { kind: error.constructor.name, message: error.message, seconds: (performance.now() - began) / 1000 };
  }
}"""


def test_every_link_is_answered_or_names_a_field(tmp_path: Path) -> None:
    html = small_page()
    jobs = [link(Random(f"link {number}")) for number in range(NUMBER)]
    answers = run_node(tmp_path, html, ANSWERED, jobs)
    for job, answer in zip(jobs, answers, strict=True):
        assert answer["seconds"] < 5, job
        assert not answer.get("wrong"), job
        if "message" in answer:
            assert answer["kind"] == "FieldError", (job, answer)
            one_line(answer["message"])
    answered = sum("message" not in answer for answer in answers)
    assert NUMBER // 10 < answered < NUMBER
