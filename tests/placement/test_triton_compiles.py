"""The Triton oracle against compiles: shared and tensor memory, what fits, spills."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from iomodel.placement.triton_check import TritonCheck, checked_kernel
from iomodel.placement.triton_kernel import (
    Tile,
    TritonKernel,
    backward_dkdv_kernel,
    backward_dq_kernel,
    backward_kernel,
    block_sparse_kernel,
    decode_kernel,
    dense_decode_kernel,
    forward_kernel,
    latent_decode_kernel,
    matmul_kernel,
)

OPEN_SEED = 75
"""The draw that the rule of sm_75 was made from."""
MEASURED = Path(__file__).parents[1] / "measured"
Row = dict[str, Any]


def rows(*names: str) -> Iterator[Row]:
    """The compiles, numbers as integers; None where a compile has no such figure."""
    texts = ("triton", "kernel", "dtype", "instruction", "error")
    for name in names or ("compiles", "flex_compiles"):
        data = gzip.decompress((MEASURED / "triton" / f"{name}.csv.gz").read_bytes()).decode()
        for row in csv.DictReader(io.StringIO(data)):
            yield {key: value if key in texts else int(value) if value else None for key, value in row.items()}


def elsewhere() -> Iterator[Row]:
    """The older compiles for sm_90 of a forward kernel that someone else wrote."""
    for line in (MEASURED / "triton-compile-sm90.jsonl").read_text(encoding="utf-8").splitlines()[1:]:
        record = json.loads(line)
        if record["kernel"] == "flash2" and not record["check"] and "error" not in record:
            yield {
                "kernel": "forward", "arch": 90, "M": record["block_q"], "N": record["block_kv"],
                "d": record["head_dim"], "dtype": record["dtype"], "warps": record["warps"],
                "stages": record["stages"], "causal": int(record["causal"]), "instruction": "", "tmem": 0,
                "shared": record["shared_bytes"], "registers": record["registers"], "stack": record["stack_bytes"],
            }  # fmt: skip


def kernel(row: Row) -> TritonKernel:
    sizes = row["M"], row["N"], row["d"]
    element = 1 if row["dtype"] == "fp8" else 2
    match row["kernel"]:
        case "forward":
            return forward_kernel(*sizes, element=element)
        case "forward_two":
            return replace(forward_kernel(*sizes, element=element, keys="columns"), loops=2)
        case "forward_early":
            return forward_kernel(*sizes, element=element, early=True, keys="columns")
        case "forward_descriptor":
            return replace(forward_kernel(*sizes, element=element), descriptors=True)
        case "forward_persistent":
            return forward_kernel(*sizes, element=element)
        case "forward_flex":
            return block_sparse_kernel(*sizes, element=element)
        case "forward_selected":
            return replace(forward_kernel(*sizes, element=element), positions=True)
        case "forward_banded":
            return banded(row, replace(forward_kernel(*sizes, element=element), loops=2, positions=True))
        case "decode":
            return decode_kernel(*sizes, element=element)
        case "decode_dense":
            return decode_kernel(*sizes, element=element, index=0)
        case "mla_decode":
            return latent_decode_kernel(*sizes[:2], row["d"] + 64, row["d"], element=element)
        case "backward_dkdv":
            return backward_dkdv_kernel(*sizes, element=element)
        case "backward_dq":
            return backward_dq_kernel(*sizes, element=element)
        case "backward_flex":
            return backward_kernel(*sizes, element=element, by_columns=False)
        case "flex_forward":
            return replace(forward_kernel(*sizes), loops=1 + row["causal"], positions=True)
        case "flex_decode":
            return replace(dense_decode_kernel(*sizes), loops=1 + row["causal"])
        case "flex_backward" | "flex_backward_four":
            return backward_kernel(*sizes, dq_tile=(row["M2"], row["N2"]), loops=1 + row["causal"])
    return matmul_kernel(*sizes, element=element)


def banded(row: Row, kernel: TritonKernel) -> TritonKernel:
    """Add the load of the documents of the keys; `causal` says that there are documents."""
    first, scores, *rest = kernel.loop
    ids = [Tile("ids", row["N"], 1, 4)] if row["causal"] else []
    return replace(kernel, loop=(first, scores, *ids, *rest))


def predicted(row: Row) -> TritonCheck:
    return checked_kernel(kernel(row), row["arch"], row["warps"], row["stages"])


with (MEASURED / "triton" / "held_out.csv").open(newline="") as file:
    HELD_OUT = {(row["kernel"], row["arch"]) for row in csv.DictReader(file)}


def held_out(row: Row) -> bool:
    """True if the row's kernel, its architecture, or its kernel on its architecture is held out."""
    kernel, arch = row["kernel"], str(row["arch"])
    return bool(HELD_OUT & {(kernel, arch), (kernel, "any"), ("any", arch)})


Pairs = list[tuple[Row, TritonCheck]]


@cache
def compiled() -> Pairs:
    """Each compile of our kernels, with its prediction."""
    return [(row, predicted(row)) for row in rows() if row["shared"] is not None]


@cache
def chosen_from(part: str) -> Pairs:
    """The compiles of a part: open, held out, or those of another kernel."""
    if part == "another kernel":
        return [(row, predicted(row)) for row in elsewhere()]
    return [pair for pair in compiled() if held_out(pair[0]) == (part == "held out")]


@pytest.fixture
def pairs(request: pytest.FixtureRequest) -> Pairs:
    return chosen_from(request.param)


SETS = pytest.mark.parametrize("pairs", ["open", "held out", "another kernel"], indirect=True)


def test_there_are_compiles_of_many_kernels() -> None:
    assert len(compiled()) + len(chosen_from("another kernel")) >= 3000
    assert len({row["kernel"] for row, _ in compiled()}) == 19
    assert {row["arch"] for row, _ in compiled()} == {80, 86, 89, 90, 100, 103, 120, 121}
    assert len(chosen_from("held out")) >= len(compiled()) / 4


@SETS
def test_what_fits_fits(pairs: Pairs) -> None:
    """No config that fits is dropped, and none that does not fit is kept."""
    wrong = [
        (row, check) for row, check in pairs
        if check.fits != (row["shared"] <= check.shared_limit and row["tmem"] <= check.tmem_limit)
    ]  # fmt: skip
    assert not wrong
    assert {check.fits for _, check in pairs} == {True, False}


@SETS
def test_shared_bytes_are_the_compilers(pairs: Pairs) -> None:
    assert equal(pairs) >= 0.95


def test_shared_bytes_of_most_kernels_are_always_the_compilers() -> None:
    """Pointer loads in the forward, decode and backward kernels; descriptors are aligned to 1,024 B."""
    for instruction in ("mma.sync", "wgmma"):
        for name in ("forward", "forward_early", "backward_dq", "backward_dkdv"):
            chosen = [p for p in compiled() if (p[0]["kernel"], p[0]["instruction"]) == (name, instruction)]
            assert equal(chosen) >= 0.99, (name, instruction)


@pytest.mark.parametrize("name", ["flex_forward", "flex_decode", "flex_backward", "flex_backward_four"])
def test_templates_of_pytorch_take_the_bytes_of_the_compiler(name: str) -> None:
    """On every architecture that they were compiled for, the held-out ones included."""
    chosen = [pair for pair in compiled() if pair[0]["kernel"] == name]
    assert len(chosen) >= 90
    assert len({row["arch"] for row, _ in chosen}) >= 7
    assert equal(chosen) >= 0.95
    assert equal(pair for pair in chosen if pair[0]["instruction"] != "tcgen05") == 1


def test_what_does_not_compile_does_not_fit() -> None:
    failed = [row for row in rows() if row["error"] and "ptxas" not in row["error"]]
    assert failed
    assert not any(predicted(row).fits for row in failed)


def equal(pairs: Iterable[tuple[Row, TritonCheck]]) -> float:
    """The share of compiles whose shared memory is predicted to the byte."""
    hits = [row["shared"] == check.shared for row, check in pairs]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("part", ["open", "judging"])
def test_turing_widens_one_operand_at_a_time(part: str) -> None:
    """Every compile for sm_75, which has no matrix instructions there, to the byte."""
    pairs = [(row, predicted(row)) for row in rows("turing_compiles") if (row["seed"] == OPEN_SEED) == (part == "open")]
    assert len(pairs) >= 50
    assert len({row["kernel"] for row, _ in pairs}) >= 10
    assert equal(pairs) == 1
    assert all(check.fits == (row["shared"] <= check.shared_limit) for row, check in pairs)
    assert {check.fits for _, check in pairs} == {True, False}


def test_instructions_are_the_compilers() -> None:
    assert all(row["instruction"] == check.instruction for row, check in compiled())


def test_columns_of_tensor_memory_are_the_compilers() -> None:
    """But of a backward template with grouped heads, whose second loop has accumulators of its own: up to twice."""
    missed = [(row, check) for row, check in compiled() if row["tmem"] != check.tmem]
    assert {row["kernel"] for row, _ in missed} <= {"flex_backward", "flex_backward_four"}
    assert all(row["causal"] and row["tmem"] == 2 * check.tmem <= check.tmem_limit for row, check in missed)
    assert {check.tmem for _, check in compiled()} >= {0, 32, 64, 128, 256, 512}


# --- spills


def verdicts(pairs: Pairs) -> Counter[tuple[bool, bool | None]]:
    """Pairs of truth and answer, of the configs that can be launched and were compiled to the end."""
    launched = [(row, check) for row, check in pairs if row["registers"] is not None and check.fits]
    return Counter((row["stack"] > 0, check.spills) for row, check in launched)


def judged(pairs: Pairs) -> tuple[float, float, float]:
    """Precision and recall of "spills", and the share of unsure answers.

    An unsure answer counts as half a "spills" and half a "does not", as a coin would answer.
    """
    count = verdicts(pairs)
    unsure, needless = count[True, None], count[False, None]
    hits, alarms = count[True, True] + unsure / 2, count[False, True] + needless / 2
    spilling = sum(count[True, answer] for answer in (True, False, None))
    return hits / (hits + alarms), hits / spilling, (unsure + needless) / count.total()


@SETS
def test_spills_are_told_with_precision_and_recall(pairs: Pairs) -> None:
    precision, recall, unsure = judged(pairs)
    assert precision >= 0.85
    assert recall >= 0.85
    assert unsure <= 0.10


# --- the table of the docs


TEMPLATES = ("flex_forward", "flex_decode", "flex_backward", "flex_backward_four")


def accuracy_table() -> list[str]:
    """The rows of the table in docs/triton.md."""
    lines = [
        "| Compiles | number | fits, wrong | shared bytes equal | compiled to the end | precision | recall | unsure |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    held = chosen_from("held out")
    sets = {
        "open": chosen_from("open"),
        "held out": held,
        "of them block-sparse": [pair for pair in held if pair[0]["kernel"] == "forward_flex"],
        "of them sm_120": [pair for pair in held if pair[0]["arch"] == 120],
        "of them PyTorch's templates": [pair for pair in held if pair[0]["kernel"] in TEMPLATES],
        "another kernel": chosen_from("another kernel"),
    }
    for title, pairs in sets.items():
        wrong = sum(
            check.fits != (row["shared"] <= check.shared_limit and row["tmem"] <= check.tmem_limit)
            for row, check in pairs
        )
        precision, recall, unsure = judged(pairs)
        lines.append(
            f"| {title} | {len(pairs)} | {wrong} | {100 * equal(pairs):.1f} % | {verdicts(pairs).total()} "
            f"| {precision:.2f} | {recall:.2f} | {100 * unsure:.0f} % |"
        )
    return lines


def test_the_docs_state_the_accuracy() -> None:
    """`python -m tests.placement.test_triton_compiles` prints the table."""
    page = (Path(__file__).parents[2] / "docs" / "triton.md").read_text(encoding="utf-8")
    assert "\n".join(accuracy_table()) in page


if __name__ == "__main__":
    print("\n".join(accuracy_table()))  # noqa: T201
