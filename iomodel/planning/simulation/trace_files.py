"""Requests in files of other programs: columns of CSV and keys of JSON, units of times, and hash ids of prefixes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path
from typing import IO, Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from iomodel.common.input_files import readable
from iomodel.common.progress import watched
from iomodel.errors import InputError, reason_of, shown
from iomodel.errors.synonyms import SAME, key

COLUMNS = ("arrival", "prompt", "output")
MOST_ROWS = 10_000_000
"""Most requests of a simulation."""
LATEST = 1e12
"""Latest arrival [s]."""
MOST_TOKENS = 1 << 24
"""Longest prompt or output [tokens]."""
CHUNK = 1 << 9
"""Rows that are read at once; their text is dropped before the next ones are read. The collector of Python runs after
700 new objects, so that it meets none of their lists."""
LINES = 1 << 12
"""Lines of a table that are parsed at once."""
LARGEST = 1 << 30
"""Largest document of JSON [B]; a file with an object in each line has no limit."""
LONGEST_DATE = 40
"""Longest date that is read [characters]."""
PROGRESS = "chunks of requests"
DEPTH = 4
"""Levels of objects within objects in which keys are looked for."""
CHARACTERS = 4
"""Characters of a token, where a file has texts in place of lengths."""
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0}
"""Units of times by their suffix or name [s]."""
SUFFIX = re.compile(r"_(ns|us|ms|s|sec|secs|seconds)$")
EPOCHS = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"))
"""Units of times from 1970 on, by the least of them: the year 1973 in each."""
MILLISECONDS = ("timestamp", "input_length")
"""Names of the time and of the prompt in traces of Mooncake and of the tools that take them, in milliseconds."""
OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d| UTC)$")
"""Time zone at the end of a date."""
TURNS = ("conversations", "conversation", "messages", "items")
"""Keys of the turns of a conversation, as in ShareGPT; a turn has its text under one of the keys below."""
TEXTS = ("value", "content", "text")
HASHES = "hash_ids"
"""Key of the hash ids, and name of their column."""
Cells = Mapping[str, Any]
"""Entries of some rows by the quantity: lists, or arrays of a table."""


class Blocks(NamedTuple):
    """Hash ids of the blocks of each prompt, end to end; request i has those from `starts[i]` to `starts[i + 1]`."""

    ids: Any
    starts: Any
    tokens: int

    def of_turns(self, groups: int) -> Blocks:
        """Return the blocks of every request that the first of some groups takes in turn."""
        each = np.split(self.ids, self.starts[1:-1])[::groups]
        return Blocks(np.concatenate(each), np.cumsum([0, *map(len, each)]), self.tokens)


@dataclass(frozen=True, eq=False)
class TraceFile:
    """Columns of a file, before their numbers are checked.

    `rows` are the rows of the file, counted from 1, without the `dropped` ones. `foreign` columns have names of other
    programs: their times may be in any order, and rows without tokens, such as requests that failed, are left out.
    """

    columns: dict[str, Any]
    rows: Any
    foreign: bool = False
    blocks: Blocks | None = None
    notes: tuple[str, ...] = ()
    dropped: int = 0


class TraceColumn(NamedTuple):
    """Place of a quantity in a row: an index or a path of keys; unit of times; whether it is a text."""

    path: tuple[Any, ...]
    unit: str | None = None
    text: bool = False

    def of(self, row: Any) -> Any:
        """Return the entry of a row; None where it has none."""
        for step in self.path:
            try:
                row = row[step]
            except (KeyError, IndexError, TypeError):
                return None
        return row

    def cells(self, rows: list[Any]) -> list[Any]:
        """Return the entries of many rows; those of a plain table without a call for each."""
        if len(self.path) == 1:
            try:
                return list(map(itemgetter(self.path[0]), rows))
            except (KeyError, IndexError, TypeError):
                pass
        return list(map(self.of, rows))


def read_file(path: str | Path, *, timed: bool, most: int | None = None) -> TraceFile:
    """Read a file of requests, CSV or JSON, by the names of its columns or keys.

    Parameters
    ----------
    path : str or Path
        A CSV file; an object of JSON in each line; or one document of JSON with a list of objects or with lists.
    timed : bool
        Read the arrivals too.
    most : int, optional
        Rows that are read; all by default.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a column.
    """
    limit = min(most or MOST_ROWS, MOST_ROWS)
    try:
        with readable(path).open(newline="", encoding="utf-8-sig") as file:
            start = file.read(1 << 12).lstrip()[:1]
            file.seek(0)
            return _json(file, timed, limit) if start in ("{", "[") else _csv(file, timed, limit)
    except (OSError, UnicodeError, csv.Error, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"trace: {shown(str(path))} cannot be read ({reason_of(error)}); allowed: a CSV file, or one of JSON"
        ) from None


# CSV


def _csv(file: IO[str], timed: bool, limit: int) -> TraceFile:
    delimiter = _delimiter(file)
    lines = csv.reader(file, delimiter=delimiter, strict=True)
    header = [cell.strip() for cell in next(lines, [])]
    above = lines.line_num
    first = next(lines, [])
    found = {name: _in_header(header, name, first) for name in COLUMNS[1 - timed :]}
    plain = all(header[place.path[0]] == name for name, place in found.items())
    file.seek(0)
    for _ in range(above):
        file.readline()
    tables = _tables(file, found, delimiter, limit)
    return _columns(tables, found, foreign=not plain, expected=_expected(file, limit, LINES))


def _tables(file: IO[str], found: Mapping[str, TraceColumn], delimiter: str, limit: int) -> Iterator[Cells]:
    """Yield chunks of a table: arrays of the columns, or lists where a cell is quoted, empty or no number."""
    left = limit
    while lines := list(islice(file, min(LINES, left))):
        text = "".join(lines)
        if '"' in text or "\0" in text:
            quoted = islice(csv.reader(chain(lines, file), delimiter=delimiter, strict=True), left)
            while rows := list(islice(quoted, LINES)):
                yield _cells(rows, found)
            return
        table = _loaded(lines, found, delimiter)
        yield _cells(list(csv.reader(lines, delimiter=delimiter, strict=True)), found) if table is None else table
        left -= len(lines)


def _loaded(lines: list[str], found: Mapping[str, TraceColumn], delimiter: str) -> Any:
    """Parse lines without quotes by NumPy; None where it does not take them as they are."""
    date = found.get("arrival", TraceColumn(())).unit == "date"
    times = f"S{LONGEST_DATE}" if date else "f8"
    places = [column.path[0] for column in found.values()]
    for tokens in ("i8", "f8"):  # whole numbers are parsed faster
        types = [(name, times if name == "arrival" else tokens) for name in found]
        try:
            with catch_warnings():
                simplefilter("error")
                table = np.loadtxt(lines, types, comments=None, delimiter=delimiter, usecols=places, ndmin=1)
        except (ValueError, TypeError, IndexError, Warning):
            continue
        cut = date and _letters(table["arrival"])[:, -1].any()
        return None if cut or len(table) != len(lines) else table
    return None


def _letters(texts: Any) -> Any:
    """Return the characters of texts as numbers, a row for each text."""
    return np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), -1)


def _delimiter(file: IO[str]) -> str:
    header = file.readline(1 << 16)
    file.seek(0)
    return max(",;\t|", key=header.count)


def _in_header(header: list[str], name: str, first: list[str]) -> TraceColumn:
    """Find the column of a quantity: its own name, else the first of its synonyms."""
    if header.count(name) > 1:
        raise InputError(f"trace: column {name} twice in the header {shown(','.join(header))}; allowed: once")
    ranked = sorted((rank, place) for place, word in enumerate(header) if (rank := _rank(word, name)) is not None)
    if not ranked:
        raise InputError(
            f"trace: column {name} not in the header {shown(','.join(header))}; allowed: once, as {_known(name)}"
        )
    place = ranked[0][1]
    cell = first[place] if place < len(first) else ""
    return TraceColumn((place,), _unit(header[place], name, cell, None))


def _rank(word: str, name: str) -> int | None:
    """Return the place of a word among the synonyms of a quantity, its own name first; None for another word."""
    folded = SUFFIX.sub("", key(word)) if name == "arrival" else key(word)
    words = [name, *SAME[name].split()]
    return words.index(folded) if folded in words else None


def _known(name: str) -> str:
    words = [name, *SAME[name].split()]
    return f"{', '.join(words[:5])}, ..."


def _unit(word: str, name: str, entry: Any, prompt: str | None) -> str | None:
    """Return the unit of a column of times: of its suffix, dates, by its format, or by the size of its first entry."""
    if name != "arrival":
        return None
    if isinstance(entry, str) and not _is_number(entry):
        return "date"
    suffix = SUFFIX.search(key(word))
    if suffix:
        return suffix[1]
    if (word, prompt) == MILLISECONDS:
        return "ms"
    if word == "arrival" or not _is_number(entry):
        return "s"
    return next((unit for least, unit in EPOCHS if float(entry) >= least), "s")


def _is_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# JSON


def _json(file: IO[str], timed: bool, limit: int) -> TraceFile:
    first = file.readline(LARGEST)
    file.seek(0)
    row = _parsed(first)
    if isinstance(row, dict) and not _lists(row) and (found := _keys(row, timed)) is not None:
        return _columns(_objects(file, found, limit), found, foreign=True, expected=_expected(file, limit, CHUNK))
    if isinstance(row, dict):
        return _of_document(row, timed, limit)
    text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise InputError(f"trace: a document of over {LARGEST:,} characters given; allowed: an object in each line")
    return _of_document(json.loads(text), timed, limit)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _objects(file: IO[str], found: Mapping[str, TraceColumn], limit: int) -> Iterator[Cells]:
    """Yield chunks of a file with an object in each line."""
    decoded, number = _decoder(found), 1
    while limit > 0 and (lines := list(islice(file, CHUNK))):
        chunk = None if decoded is None else decoded(lines)
        chunk = _cells(_all(lines, number), found) if chunk is None else chunk
        if rows := len(chunk["prompt"]):
            yield {name: cells[:limit] for name, cells in chunk.items()}
        number, limit = number + len(lines), limit - rows


def _decoder(found: Mapping[str, TraceColumn]) -> Callable[[list[str]], Cells | None] | None:
    """Build a function that decodes the wanted entries of lines alone; it returns None where the types are others.

    Needs msgspec, of the extra `fast`: None without it, and where an entry is in a list.
    """
    try:
        from msgspec import MsgspecError, defstruct, field
        from msgspec import json as typed_json
    except ImportError:
        return None
    if any(isinstance(step, int) for column in found.values() for step in column.path):
        return None

    def row_type(kinds: Mapping[tuple[str, ...], Any]) -> tuple[Any, dict[tuple[str, ...], str]]:
        """Define an object with entries at some paths, and name its attributes for each."""
        fields: list[tuple[str, Any, Any]] = []
        attributes: dict[tuple[str, ...], str] = {}
        for place, word in enumerate(dict.fromkeys(path[0] for path in kinds)):
            within = {path[1:]: kind for path, kind in kinds.items() if path[0] == word}
            kind, below = (within[()], {(): ""}) if () in within else row_type(within)
            fields.append((f"f{place}", kind | None, field(name=word, default=None)))
            attributes |= {(word, *path): f"f{place}.{name}".rstrip(".") for path, name in below.items()}
        return defstruct("Row", fields, gc=False), attributes

    kinds = {
        column.path: list[int] if name == HASHES else str if column.text or column.unit == "date" else float
        for name, column in found.items()
    }
    row, attributes = row_type(kinds)
    decode = typed_json.Decoder(row).decode
    entries = {name: attrgetter(attributes[column.path]) for name, column in found.items()}

    def decoded(lines: list[str]) -> Cells | None:
        try:
            rows = list(map(decode, lines))
            return {name: list(map(entry, rows)) for name, entry in entries.items()}
        except (MsgspecError, AttributeError, RecursionError):
            return None

    return decoded


def _all(lines: list[str], number: int) -> list[Any]:
    """Return the objects of lines, of which the first has a number."""
    full = [line for line in lines if not line.isspace()]
    try:
        parsed = json.loads(f"[{','.join(full)}]")
    except ValueError:
        parsed = []
    return parsed if len(parsed) == len(full) else list(_one_by_one(lines, number))


def _one_by_one(lines: list[str], number: int) -> Iterator[Any]:
    """Yield the objects of lines; of a line that is none, its number is told."""
    for place, line in enumerate(lines, number):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                raise InputError(f"trace: row {place} is no JSON, {shown(line[:80])}; allowed: an object") from None


def _of_document(document: Any, timed: bool, limit: int) -> TraceFile:
    """Read a document: an object of lists, or the first list of objects with the columns."""
    if isinstance(document, dict) and (found := _lists(document)):
        return _of_lists(document, found, timed, limit)
    for rows in _rows(document):
        row = next((row for row in rows if isinstance(row, dict)), {})
        places = _keys(row, timed)
        if places is not None:
            return _columns(_chunks(iter(rows), places, limit), places, foreign=True)
    wanted = "; ".join(f"{name} as {_known(name)}" for name in COLUMNS[1 - timed :])
    raise InputError(f"trace: no list of requests in the file; allowed: objects with {wanted}")


def _rows(document: Any) -> Iterator[list[Any]]:
    """Yield the lists of objects in a document, outer ones first."""
    level = [document]
    for _ in range(2 * DEPTH):
        lists = [item for item in level if isinstance(item, list)]
        yield from (item for item in lists if any(isinstance(row, dict) for row in item[:9]))
        objects = (item.values() for item in level if isinstance(item, dict))
        level = list(chain(*objects, *(item[:1] for item in lists)))


def _lists(document: Mapping[str, Any]) -> dict[str, TraceColumn]:
    """Find lists of numbers under the names of prompts and outputs, as benchmarks of engines write them in detail."""
    found = {}
    for name in COLUMNS:
        ranked = [
            (rank, word) for word in document if (rank := _rank(word, name)) is not None and _numbers(document[word])
        ]
        if ranked:
            word = min(ranked)[1]
            found[name] = TraceColumn((word,), _unit(word, name, document[word][0], None))
    return found if {"prompt", "output"} <= found.keys() else {}


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_number(entry) for entry in value[:9])


def _of_lists(document: Mapping[str, Any], found: dict[str, TraceColumn], timed: bool, limit: int) -> TraceFile:
    if timed and "arrival" not in found:
        raise InputError(
            "trace: lists of lengths without arrivals given; allowed: with concurrency or load, or with a list "
            f"{_known('arrival')}"
        )
    names = COLUMNS[1 - timed :]
    columns = {name: document[found[name].path[0]] for name in names}
    if len({len(column) for column in columns.values()}) > 1:
        sizes = {found[name].path[0]: len(column) for name, column in columns.items()}
        raise InputError(f"trace: lists of {sizes} entries given; allowed: lists of equal length")
    places = {name: TraceColumn((place,), found[name].unit) for place, name in enumerate(names)}
    return _columns(_chunks(zip(*columns.values(), strict=True), places, limit), places, foreign=True)


def _keys(row: Mapping[str, Any], timed: bool) -> dict[str, TraceColumn] | None:
    """Find the quantities in an object; None unless all are there. Texts stand for lengths where these are missing."""
    leaves = list(_leaves(row, ()))
    found: dict[str, TraceColumn] = {}
    for name in ("prompt", "output", "arrival")[: 2 + timed]:
        ranked = [
            (isinstance(entry, str) and name != "arrival" and not _is_number(entry), len(path), rank, path, unit, entry)
            for path, unit, entry in leaves
            if (rank := _rank(path[-1], name)) is not None and isinstance(entry, int | float | str)
        ]
        if ranked:
            text, _, _, path, unit, entry = min(ranked, key=itemgetter(0, 1, 2))
            prompt = found["prompt"].path[-1] if "prompt" in found else None
            where = (*path, "value") if unit is not None else path
            found[name] = TraceColumn(where, unit or _unit(path[-1], name, entry, prompt), text)
    turns = next((word for word in TURNS if isinstance(row.get(word), list) and row[word]), None)
    if turns is not None and not {"prompt", "output"} <= found.keys():
        said = next((word for word in TEXTS if isinstance(row[turns][0], dict) and word in row[turns][0]), TEXTS[0])
        found |= {
            name: TraceColumn((turns, place, said), None, True) for place, name in enumerate(("prompt", "output"))
        }
    if isinstance(row.get(HASHES), list):
        found[HASHES] = TraceColumn((HASHES,))
    return found if found.keys() >= set(COLUMNS[1 - timed :]) else None


def _leaves(row: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None, Any]]:
    """Yield the entries of an object and of objects in it, with the unit of a value that states its own."""
    for word, entry in row.items():
        if not isinstance(entry, dict):
            yield (*path, word), None, entry
        elif "value" in entry and not isinstance(entry["value"], dict | list):
            yield (*path, word), str(entry.get("unit")), entry["value"]
        elif len(path) < DEPTH:
            yield from _leaves(entry, (*path, word))


# Columns


def _cells(rows: list[Any], found: Mapping[str, TraceColumn]) -> Cells:
    return {name: column.cells(rows) for name, column in found.items()}


def _chunks(rows: Iterator[Any], found: Mapping[str, TraceColumn], limit: int) -> Iterator[Cells]:
    """Divide the rows of a document into chunks."""
    taken = islice(rows, limit)
    while chunk := list(islice(taken, CHUNK)):
        yield _cells(chunk, found)


def _expected(file: IO[str], limit: int, rows: int) -> int:
    """Estimate the chunks of some rows in a file from its size."""
    size = Path(file.name).stat().st_size
    return max(1, min(limit, size // 40) // rows)


def _columns(
    chunks: Iterable[Cells], found: Mapping[str, TraceColumn], *, foreign: bool, expected: int = 1
) -> TraceFile:
    """Convert the rows chunk by chunk, with a bar on a terminal."""
    read: dict[str, list[Any]] = {name: [np.empty(0)] for name in COLUMNS if name in found}
    ids, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    first = 1
    for chunk in watched(chunks, expected, True, PROGRESS):
        for name, parts in read.items():
            parts.append(_converted(chunk[name], name, found[name], first, foreign))
        if HASHES in found:
            lists = [entry or () for entry in chunk[HASHES]]
            if not {*map(type, lists)} <= {list, tuple}:
                raise InputError("trace: hash_ids that are no list given; allowed: a list of integers")
            counts.append(np.fromiter(map(len, lists), np.int64, len(lists)))
            ids.append(_whole(chain.from_iterable(lists), int(counts[-1].sum())))
        first += len(chunk["prompt"])
    columns = {name: np.concatenate(parts) for name, parts in read.items()}
    file = TraceFile(columns, np.arange(1, first), foreign, notes=_notes(found))
    if HASHES in found:
        file = _with_blocks(file, np.concatenate(ids), np.concatenate(counts))
    return _cleaned(file) if foreign else file


def _whole(entries: Iterable[Any], count: int) -> Any:
    try:
        return np.fromiter(entries, np.int64, count)
    except (TypeError, ValueError, OverflowError):
        raise InputError("trace: hash_ids that are no integers given; allowed: integers of 64 bits") from None


def _converted(cells: Any, name: str, column: TraceColumn, first: int, foreign: bool) -> Any:
    table = isinstance(cells, np.ndarray)
    if column.unit == "date":
        if table and (instants := _alike(cells)) is not None:
            return instants
        texts = np.char.decode(cells, "latin-1").tolist() if table else [str(cell or "") for cell in cells]
        return _dates(texts, first)
    if table:
        return cells * SECONDS.get(column.unit or "s", 1.0) if name == "arrival" else cells
    convert: Callable[[Any], float] = _of_text if column.text else _lenient if foreign and name != "arrival" else float
    try:
        numbers = np.fromiter(map(_of_text if column.text else float, cells), float, len(cells))
    except (TypeError, ValueError, OverflowError):  # an empty cell, or one that is no number
        try:
            numbers = np.fromiter(map(convert, cells), float, len(cells))
        except (TypeError, ValueError, OverflowError):
            row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
            raise refused(first + row, name, "" if cells[row] is None else cells[row]) from None
    return numbers if name != "arrival" else numbers * SECONDS.get(column.unit or "s", 1.0)


def _of_text(text: Any) -> float:
    return -(-len(text) // CHARACTERS) if isinstance(text, str) else 0.0


def _lenient(cell: Any) -> float:
    return float(cell) if cell not in (None, "") else 0.0


def _alike(dates: Any) -> Any:
    """Convert dates of one length and zone to seconds; None for others."""
    zone = OFFSET.search(dates[0].decode("latin-1"))
    suffix, length = "" if zone is None else zone[0], len(dates[0])
    letters = _letters(dates)
    ends = np.array(list(map(ord, suffix)), np.uint8)
    begin = length - len(suffix)
    if (letters[:, begin:length] != ends).any() or letters[:, length:].any() or not letters[:, length - 1].all():
        return None
    try:
        return _instants(dates.astype(f"S{begin}")) / 1e6
    except (ValueError, UserWarning):
        return None


def _dates(cells: list[str], first: int) -> Any:
    """Convert dates to seconds; an offset at their end is taken off, as all of a file have the same zone."""
    zone = OFFSET.search(cells[0].strip())
    if zone is not None and all(map(methodcaller("endswith", zone[0]), cells)):
        plain = [cell[: -len(zone[0])] for cell in cells]
    else:
        plain = [OFFSET.sub("", cell.strip()) for cell in cells]
    try:
        return _instants(plain) / 1e6
    except (ValueError, UserWarning):
        row = next(row for row, cell in enumerate(plain) if not _is_date(cell))
        raise refused(first + row, "arrival", cells[row]) from None


def _instants(cells: Any) -> Any:
    """Parse dates without an offset, as microseconds from 1970 on; a date in another form is an error."""
    with catch_warnings():
        simplefilter("error")  # NumPy warns of an offset, and reads it
        return np.array(cells, "datetime64[us]").astype(np.int64)


def _is_date(cell: str) -> bool:
    try:
        return bool(_instants([cell])[0] > np.iinfo(np.int64).min)
    except (ValueError, UserWarning):
        return False


def _notes(found: Mapping[str, TraceColumn]) -> tuple[str, ...]:
    unit = found["arrival"].unit if "arrival" in found else None
    texts = any(column.text for column in found.values())
    return (
        *((f"arrivals of the trace read in {unit}",) if unit not in (None, "s") and unit != "date" else ()),
        *((f"lengths are estimated from texts, at {CHARACTERS} characters a token",) if texts else ()),
    )


def _with_blocks(file: TraceFile, ids: Any, counts: Any) -> TraceFile:
    """Attach the hash ids, with the size of a block that fits all prompts: the largest power of two, at most 512."""
    starts = np.concatenate([[0], counts.cumsum()])
    prompt = file.columns["prompt"]
    fitting = (1 << power for power in range(9, 3, -1) if (np.ceil(prompt / (1 << power)) == counts).all())
    return replace(file, blocks=Blocks(ids, starts, next(fitting, 512)))


def _cleaned(file: TraceFile) -> TraceFile:
    """Leave out rows without tokens, and order the others by their arrival."""
    kept = np.flatnonzero((file.columns["prompt"] != 0) & (file.columns["output"] != 0))
    notes = file.notes
    if len(kept) < len(file.rows):
        notes = (*notes, f"{len(file.rows) - len(kept):,} of {len(file.rows):,} rows without tokens are left out")
    if "arrival" in file.columns:
        arrival = file.columns["arrival"][kept]
        if (np.diff(arrival) < 0).any():
            kept = kept[np.argsort(arrival, kind="stable")]
    columns = {name: column[kept] for name, column in file.columns.items()}
    dropped = len(file.rows) - len(kept)
    return TraceFile(columns, file.rows[kept], True, _taken(file.blocks, kept), notes, dropped)


def _taken(blocks: Blocks | None, kept: Any) -> Blocks | None:
    """Take the blocks of some rows, in their order."""
    if blocks is None or np.array_equal(kept, np.arange(len(blocks.starts) - 1)):
        return blocks
    begin, end = blocks.starts[kept], blocks.starts[kept + 1]
    starts = np.concatenate([[0], (end - begin).cumsum()])
    places = np.repeat(begin - starts[:-1], end - begin) + np.arange(starts[-1])
    return Blocks(blocks.ids[places], starts, blocks.tokens)


def refused(row: int, name: str, value: Any) -> InputError:
    """Build the error for an entry that is not allowed."""
    allowed = f"a time from 0 to {LATEST:g} s" if name == "arrival" else f"an integer from 1 to {MOST_TOKENS:,}"
    value = value.item() if isinstance(value, np.generic) else value
    text = (
        f"{value:g}"
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LATEST
        else shown(value)
    )
    return InputError(f"trace: row {row}, column {name}: {text} given; allowed: {allowed}")
