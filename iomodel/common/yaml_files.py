"""Files of specs: those that the package ships, and those of users."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from iomodel.common import derived
from iomodel.common.derived import PACKAGE
from iomodel.errors import InputError, SpecError, shown, shown_name

LARGEST_FILE = 2**20
"""Largest accepted file [B]."""
LONGEST_NAME = 300
"""Longest path that an error quotes in full [characters]."""


def names_file(text: str, endings: tuple[str, ...] = (".yaml", ".yml")) -> bool:
    """Check that a text is the path of a file, not the name of shipped data: it has a separator or an ending."""
    return text.lower().endswith(endings) or any(mark in text for mark in ("/", os.sep, os.altsep) if mark)


def check_schema(data: Mapping[str, Any], where: str, version: int) -> None:
    """Raise SpecError unless the data of a file have the schema version that this package reads."""
    given = data.get("schema")
    if isinstance(given, bool) or given != version:
        problem = "missing" if "schema" not in data else f"{shown(given)} is not supported"
        raise SpecError(f"{where}: schema: {problem}; this iomodel reads schema {version}, write 'schema: {version}'")


def read_user(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Read a user's file; return its data, and its name for error messages."""
    from iomodel.common.yaml_text import parse  # imports PyYAML, which shipped files need not

    data, where = read_bytes(path)
    return parse(data, where), where


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> tuple[bytes, str]:
    """Read the bytes of a user's file, at most `largest`; return them with its name for error messages."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise SpecError(f"{shown(path)}: cannot be read: not the path of a file") from None
    where = shown_name(name, LONGEST_NAME)
    try:
        file = Path(name)
        if not file.is_file() and file.exists():
            kind = "a directory" if file.is_dir() else "not a regular file"
            raise SpecError(f"{where}: {kind}, not a YAML file")
        with file.open("rb") as stream:
            data = stream.read(largest + 1)
    except OSError as error:
        raise SpecError(f"{where}: cannot be read: {error.strerror or error}") from None
    except SpecError:
        raise
    except ValueError as error:
        raise SpecError(f"{where}: cannot be read: {error}") from None
    if len(data) > largest:
        raise SpecError(f"{where}: larger than the limit of {largest} B")
    return data, where


def specs_folder() -> Path:
    """Locate the shipped specs: inside the installed package, or next to it in a checkout."""
    inside = PACKAGE / "_specs"
    return inside if inside.is_dir() else PACKAGE.parent / "specs"


def spec_names(folder: str, prefix: str = "") -> list[str]:
    """List the names of the shipped specs of one folder that begin with a prefix, sorted."""
    if not isinstance(prefix, str):
        raise InputError(f"prefix: {shown(prefix)} given; allowed: the beginning of a name")
    files_in_folder = (specs_folder() / folder).iterdir()
    names = sorted(item.name.removesuffix(".yaml") for item in files_in_folder if item.name.endswith(".yaml"))
    return [name for name in names if name.startswith(prefix.lower())]


PLACES = {"hardware": "hardware", "models": "model"}
"""The argument that takes the name of a spec, by its folder."""


def place_of(given: str, field: str) -> str | None:
    """Return the argument that takes a name which a field does not know, where a shipped spec has it.

    >>> place_of("Llama-3.1-8B", "hardware"), place_of("H100 SXM5", "model"), place_of("gpt-9", "hardware")
    ('model', 'hardware', None)
    """
    return next(
        (place for folder, place in PLACES.items() if place != field and spelled_alike(given, spec_names(folder))), None
    )


def spelled_alike(given: str, names: Iterable[str]) -> list[str]:
    """Select the names with the letters and numbers of a text, whatever separates them, in letters of either case.

    Two numbers in a row stay apart, so that Qwen2-57B is not Qwen2.5-7B.

    >>> spelled_alike("RTX 4090", ["rtx4090", "rtx5090"]), spelled_alike("qwen2-57b", ["qwen2.5-7b"])
    (['rtx4090'], [])
    """
    key = _parts(given)
    return [name for name in names if key and _parts(name) == key]


def _parts(name: str) -> tuple[str, ...]:
    """Split a name into runs of digits and runs of letters, which separators do not end."""
    parts = re.findall(r"[0-9]+|[^\W0-9_]+", name.lower())
    joined = re.sub(r"(?<=[^\W0-9_]) (?=[^\W0-9_])", "", " ".join(parts))
    return tuple(joined.split())


def read_shipped(name: str) -> dict[str, Any]:
    """Read a shipped spec, for example `hardware/h100-sxm5`; parse it only where its data are not kept."""
    text = (specs_folder() / f"{name}.yaml").read_bytes()
    state, kept_as = sha256(text).hexdigest(), f"spec-{name.replace('/', '-')}"
    kept = derived.read(kept_as)
    if kept is not None and kept["state"] == state:
        return kept["data"]  # type: ignore[no-any-return]

    def parsed() -> dict[str, Any]:
        from iomodel.common.yaml_text import SHIPPED, parse

        return parse(text, f"specs/{name}.yaml", SHIPPED)

    if derived.pending is not None:
        derived.pending[kept_as] = lambda: {"state": state, "data": parsed()}
    return parsed()
