"""Signatures of the chunks of a store: each holds the digest of the plan, of the place of a chunk, and of its bytes."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from iomodel.studies.sweeps.axes import Block
from iomodel.studies.sweeps.plan import SweepPlan

FOLDER = ".iomodel"
"""The folder of a store for signatures and a copy of the plan; readers of Zarr pass over it."""
PLAN = "plan.json"
"""The copy of the plan, by which a store with damaged metadata is known."""
PARTIAL = ".partial"
"""The suffix of a file that is being written."""


def chunk_file(path: Path, variable: str, block: Block) -> Path:
    """Return the file of a chunk of a variable in a Zarr store."""
    return path.joinpath(variable, "c", *map(str, block))


def signature_file(path: Path, block: Block) -> Path:
    """Return the file of the signature of a chunk."""
    return path / FOLDER / ".".join(("chunk", *map(str, block)))


def signature(plan: SweepPlan, path: Path, block: Block) -> str | None:
    """Compute the signature of a chunk from its files; None if one is missing.

    The digest covers the question and the place, so that a chunk from another plan or another place does not match.
    """
    total = sha256(f"{plan.digest} {block}".encode())
    for variable in plan.variables:
        file = chunk_file(path, variable, block)
        if not file.is_file():
            return None
        total.update(sha256(variable.encode()).digest() + sha256(file.read_bytes()).digest())
    return total.hexdigest()


def signed(plan: SweepPlan, path: Path, block: Block) -> bool:
    """Check that a chunk is the one that was written for this plan at this place."""
    file = signature_file(path, block)
    return file.is_file() and file.read_bytes() == (signature(plan, path, block) or "").encode() != b""


def sign(plan: SweepPlan, path: Path, block: Block) -> None:
    """Write the signature of a chunk, after the chunk."""
    text = signature(plan, path, block)
    assert text is not None  # the chunk has just been written
    replace_file(signature_file(path, block), text.encode())


def replace_file(file: Path, data: bytes) -> None:
    """Write a file in one step."""
    hidden = file.with_name(f"{file.name}.{uuid4().hex}{PARTIAL}")
    try:
        hidden.write_bytes(data)
        hidden.replace(file)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
