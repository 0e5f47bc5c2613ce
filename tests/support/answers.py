"""Recorded answers of the public functions to random questions, and their comparison after a change of the package.

    python -m tests.support.answers record OLD --calls 6000    # before the change
    python -m tests.support.answers replay OLD NEW             # after it, the same questions
    python -m tests.support.answers compare OLD NEW            # exit status 1 if an answer differs

A file has a line of JSON for each question. A replay takes questions from the file, so that a change of the drawing, or
of the names that the package lists, changes no question.
"""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import signal
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from random import Random
from typing import Any

from tests.support.public_names import PUBLIC

SLOW = 60
"""CPU time after which a question is given up [s]."""
ABSENT = "(absent)"
"""The value of a key that one of two answers lacks."""
RELATIVE = 1e-9
"""Relative difference of numbers that are equal."""

ALONE = {
    "step",
    "train_step",
    "plan",
    "fleet",
    "pareto",
    "simulate",
    "disaggregate",
    "crossover_context",
    "context_parallel",
}
"""Kinds of questions that are each asked first in a process, whose answers depended on the questions before them."""
ASKED = ("index", "kind", "question")
"""Keys of a line before its outcome."""
OUTCOMES = ("answer", "error", "slow")
"""Keys of the outcome."""


class SlowError(BaseException):
    """The end of a question that takes too long; not an Exception, which the package might handle."""


def _stop(*_: object) -> None:
    raise SlowError


def made(data: Any) -> Any:
    """Make the arguments of a question from their plain form."""
    if isinstance(data, list):
        return [made(item) for item in data]
    if isinstance(data, dict):
        fields = {key: made(value) for key, value in data.items() if key != "$"}
        return PUBLIC[data["$"]](**fields) if "$" in data else fields
    return data


def plain(value: Any) -> Any:
    """Return an answer as plain data."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def answered(line: str) -> str:
    """Answer the question of a line; one about a served or trained model in a process of its own."""
    entry = json.loads(line)
    if entry["kind"] not in ALONE:
        return _answered(line)
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(sink, "w") as pipe:
                pipe.write(_answered(line))
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def _answered(line: str) -> str:
    entry = json.loads(line)
    function, arguments, named = entry["question"]
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SLOW)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = {"answer": plain(PUBLIC[function](*made(arguments), **made(named)))}
    except SlowError:
        outcome = {"slow": SLOW}
    except Exception as error:  # a defect of the package is an answer too
        outcome = {"error": [type(error).__name__, str(error)]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return json.dumps({**entry, **outcome}, default=str)


def write(path: str, lines: Iterable[str], processes: int) -> None:
    """Answer the questions of lines, in their order."""
    with ExitStack() as stack:
        file = stack.enter_context(gzip.open(path, "wt", compresslevel=4))
        pool = stack.enter_context(get_context("spawn").Pool(processes)) if processes > 1 else None
        file.writelines(map("{}\n".format, pool.imap(answered, lines, chunksize=20) if pool else map(answered, lines)))


def recorded(calls: int, seed: int) -> Iterator[str]:
    """Draw questions, a line each."""
    from tests.support.drawn_questions import questions

    for index, (kind, question) in enumerate(questions(calls, seed)):
        yield json.dumps({"index": index, "kind": kind, "question": question})


def read(path: str) -> Iterator[str]:
    """Read the lines of a file, up to the end of one that is still written."""
    with gzip.open(path, "rt") as file:
        try:
            yield from (line for line in file if line.endswith("\n"))
        except EOFError:
            return


def sampled(path: str, kinds: Collection[str], sample: int | None, seed: int) -> Iterator[str]:
    """Read the questions of some kinds from a file, or a sample of them."""
    entries = ({key: entry[key] for key in ASKED} for entry in map(json.loads, read(path)))
    asked = [json.dumps(entry) for entry in entries if not kinds or entry["kind"] in kinds]
    chosen = sorted(Random(seed).sample(range(len(asked)), min(sample or len(asked), len(asked))))
    return (asked[place] for place in chosen)


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of every difference of two answers."""
    if type(old) is not type(new):
        yield path, old, new
    elif isinstance(old, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(old, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif old != new and not (isinstance(old, float) and _is_near(old, new)):
        yield path, old, new


def _is_near(old: float, new: float) -> bool:
    return math.isclose(old, new, rel_tol=RELATIVE) or (math.isnan(old) and math.isnan(new))


@dataclass
class Group:
    """Differences of one key in the answers of one kind."""

    number: int = 0
    relative: float = 0.0
    examples: list[str] = field(default_factory=list)

    def add(self, question: Any, old: Any, new: Any) -> None:
        """Add a difference, and keep the first three as examples."""
        self.number += 1
        if isinstance(old, int | float) and isinstance(new, int | float) and old != new:
            self.relative = max(self.relative, abs(old - new) / max(abs(old), abs(new)))
        if len(self.examples) < 3:
            function, arguments, named = question
            given = [*map(json.dumps, arguments), *(f"{key}={json.dumps(value)}" for key, value in named.items())]
            self.examples.append(f"    {_cut(old)} -> {_cut(new)}\n      {function}({', '.join(given)})")


def _cut(value: Any, most: int = 300) -> str:
    text = json.dumps(value)
    return text if len(text) <= most else f"{text[:most]}..."


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    """Find the differences of two lines with the same question."""
    (one, before), (other, after) = (next((key, line[key]) for key in OUTCOMES if key in line) for line in (old, new))
    return differences(before, after, one) if one == other else [("outcome", before, after)]


def compare(old: str, new: str) -> int:
    """Print the differences of two files by kind and key; return the number of questions that differ."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    groups: defaultdict[tuple[str, str], Group] = defaultdict(Group)
    before = map(json.loads, read(old))
    for line in map(json.loads, read(new)):
        known = next((one for one in before if one["index"] == line["index"]), None)
        if known is None or known["question"] != line["question"]:
            raise SystemExit(f"{new}: question {line['index']} is not that of {old}")
        slow = "slow" in known or "slow" in line
        found = [] if slow else list(changes(known, line))
        counts[line["kind"]].update(questions=1, errors="error" in known, slow=slow, differ=bool(found))
        for path, one, other in found:
            groups[line["kind"], path].add(line["question"], one, other)
    counts["all"] = sum(counts.values(), Counter())
    heads = ("questions", "errors", "slow", "differ")
    print(f"{'kind':<20}" + "".join(f"{head:>10}" for head in heads))
    for kind, count in counts.items():
        print(f"{kind:<20}" + "".join(f"{count[head]:>10}" for head in heads))
    for (kind, path), group in sorted(groups.items(), key=lambda item: -item[1].number):
        print(f"\n{kind}: {path}, {group.number} times, largest relative difference {group.relative:.3g}")
        print(*group.examples, sep="\n")
    return counts["all"]["differ"]


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="draw questions and record the answers")
    replay = commands.add_parser("replay", help="answer the questions of a file again")
    both = commands.add_parser("compare", help="compare the answers of two files")
    for command in (replay, both):
        command.add_argument("old")
    for command in (record, replay, both):
        command.add_argument("new")
    for command in (record, replay):
        command.add_argument("--seed", type=int, default=0, help="seed of the drawing")
        command.add_argument("--processes", type=int, default=2)
    record.add_argument("--calls", type=int, default=6000, help="number of questions")
    replay.add_argument("--sample", type=int, help="number of questions to draw from the file, by default all")
    replay.add_argument("--kinds", type=lambda text: text.split(","), default=(), help="kinds, separated by commas")
    given = parser.parse_args()
    if given.command == "compare":
        sys.exit(compare(given.old, given.new) > 0)
    drawn = given.command == "record"
    lines = recorded(given.calls, given.seed) if drawn else sampled(given.old, given.kinds, given.sample, given.seed)
    write(given.new, lines, given.processes)


if __name__ == "__main__":
    main()
