"""Headers of files of weights: safetensors, its index, and GGUF; no weight is read."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from os.path import isfile
from pathlib import Path
from typing import Any, NamedTuple

from iomodel.errors import SpecError, reason_of, shown
from iomodel.workloads.dtypes import GGML_BLOCKS

LARGEST_HEADER = 100_000_000
"""Largest header of safetensors [B], the limit of the format."""
LARGEST_GGUF = 1 << 27
"""Largest header of a GGUF file [B]; those of public files, tokenizers included, are below 32 MB."""
MOST_TENSORS = 1 << 20
"""Most tensors of a file."""
MOST_AXES = 8
INDEX = "model.safetensors.index.json"
FILE = "model.safetensors"
SAFETENSORS = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I64": 8, "I32": 4, "I16": 2,
    "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Size of an element of each type of safetensors [B]."""
GGML_TYPES = {
    0: "fp32", 1: "fp16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_K", 11: "q3_K", 12: "q4_K",
    13: "q5_K", 14: "q6_K", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl", 21: "iq3_s",
    22: "iq2_s", 23: "iq4_xs", 24: "int8", 29: "iq1_m", 30: "bf16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4",
}  # fmt: skip
"""Types of tensors by their number in a GGUF file (enum ggml_type of ggml/include/ggml.h of llama.cpp)."""
PLAIN = {"fp32": (1, 4), "fp16": (1, 2), "bf16": (1, 2), "int8": (1, 1), "mxfp4": (32, 17)}
BLOCKS: Mapping[str, tuple[int, int]] = {**GGML_BLOCKS, **PLAIN}
"""Weights and bytes of a block of each type."""
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
"""Formats of the numbers of GGUF metadata by their type (docs/gguf.md of ggml)."""
TEXT, LIST = 8, 9
KEPT = 1 << 16
"""Longest list of metadata that is kept; of a longer one, such as a vocabulary, only the length is."""


class StoredTensor(NamedTuple):
    """A tensor of a file: name, axes, type, and size [B]."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True)
class WeightFile:
    """Header of a file of weights.

    Attributes
    ----------
    tensors : tuple of StoredTensor
        Tensors, without those of an index, which states no shapes.
    metadata : mapping
        Metadata of the file; of a list longer than 65,536 entries, its length.
    total : int or None
        Size of the weights that an index states [B].
    names : tuple of str
        Names of the tensors of an index.
    """

    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, Any]
    total: int | None = None
    names: tuple[str, ...] = ()

    @cached_property
    def bytes(self) -> int:
        """Size of all weights as stored [B]."""
        return self.total if self.total is not None else sum(tensor.bytes for tensor in self.tensors)

    def text(self) -> str:
        """Describe the contents in a phrase."""
        sizes = Counter[str]()
        for tensor in self.tensors:
            sizes[tensor.dtype] += tensor.bytes
        kinds = ", ".join(f"{dtype} {size:,} B" for dtype, size in sizes.most_common(4))
        return f"{self.bytes:,} B in {len(self.tensors) or len(self.names):,} tensors" + (
            f" ({kinds})" if kinds else ""
        )


def read_weights(path: str) -> WeightFile:
    """Read the header of a file of weights, by its first bytes.

    Raises
    ------
    SpecError
        The file cannot be read, or its header is damaged.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start == b"GGUF":
                return _gguf(_Reader(file.read(LARGEST_GGUF), path))
            if start[:1] == b"{":
                return _index(file.read(LARGEST_HEADER), path)
            return _safetensors(file.read(8), file.read(LARGEST_HEADER), path)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(
            f"{path}: cannot be read ({reason_of(error)}); allowed: a header of safetensors, its index, or GGUF"
        ) from None


def weights_beside(config: str) -> WeightFile | None:
    """Read the index or the only file of safetensors beside a config; None without one."""
    for name in (INDEX, FILE):
        beside = str(Path(config).with_name(name))
        if isfile(beside):  # noqa: PTH113
            return read_weights(beside)
    return None


def _index(content: bytes, path: str) -> WeightFile:
    data = json.loads(content)
    where, meta = data.get("weight_map"), data.get("metadata")
    if not isinstance(where, dict):
        raise SpecError(f"{path}: weight_map: {shown(where)} given; allowed: tensors by their files, as in an index")
    total = meta.get("total_size") if isinstance(meta, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if isinstance(total, bool) or not isinstance(total, int) or total < 0:
        raise SpecError(f"{path}: metadata.total_size: {shown(total)} given; allowed: the size of all weights in bytes")
    return WeightFile((), {}, total, tuple(where))


def _safetensors(length: bytes, content: bytes, path: str) -> WeightFile:
    if len(length) < 8 or (size := int.from_bytes(length, "little")) > LARGEST_HEADER:
        raise SpecError(f"{path}: no header; allowed: a file of safetensors, its index, or a GGUF file")
    if size > len(content):
        raise SpecError(f"{path}: a header of {size:,} B stated, {len(content):,} B found; the file is cut short")
    data = json.loads(content[:size])
    if not isinstance(data, dict):
        raise SpecError(f"{path}: header: {shown(data)} given; allowed: a mapping of tensors")
    meta = data.pop("__metadata__", {})
    tensors = tuple(_tensor(name, entry, path) for name, entry in data.items())
    return WeightFile(tensors, meta if isinstance(meta, dict) else {})


def _tensor(name: str, entry: Any, path: str) -> StoredTensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        expected = SAFETENSORS.get(dtype)
        size = end - begin
        whole = all(type(axis) is int and 0 <= axis < 1 << 48 for axis in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        raise SpecError(f"{path}: {shown(name)}: {shown(entry)} given; allowed: dtype, shape, data_offsets") from None
    if not whole or size < 0 or len(shape) > MOST_AXES or (expected is not None and size != prod(shape) * expected):
        raise SpecError(f"{path}: {shown(name)}: {size} B given; allowed: those of {shown(shape)} in {shown(dtype)}")
    return StoredTensor(name, shape, str(dtype), size)


class _Reader:
    """Reader of the numbers and texts of a GGUF header."""

    def __init__(self, content: bytes, path: str) -> None:
        self.content, self.path, self.place = content, path, 0

    def skip(self, size: int) -> None:
        """Go on by some bytes."""
        if size < 0 or self.place + size > len(self.content):
            raise SpecError(f"{self.path}: the header ends after {len(self.content):,} B; the file is cut short")
        self.place += size

    def number(self, kind: str) -> Any:
        """Read a number of a format."""
        start = self.place
        self.skip(struct.calcsize(kind))
        return struct.unpack_from(kind, self.content, start)[0]

    def text(self) -> str:
        """Read a text of a stated length."""
        size = self.number("<Q")
        start = self.place
        self.skip(size)
        return self.content[start : self.place].decode("utf-8", errors="replace")

    def value(self, kind: int, deep: int = 0) -> Any:
        """Read a value of the metadata; of a long list, only the length."""
        if kind == TEXT:
            return self.text()
        if kind != LIST:
            if kind not in NUMBERS:
                raise SpecError(f"{self.path}: a value of type {kind} given; allowed: those of GGUF")
            return self.number(NUMBERS[kind])
        inner, count = self.number("<I"), self.number("<Q")
        if inner in NUMBERS and count > KEPT:
            self.skip(count * struct.calcsize(NUMBERS[inner]))
            return count
        if inner == TEXT:
            return self._texts(count)
        if deep > MOST_AXES:
            raise SpecError(f"{self.path}: lists of {deep} levels given; allowed: up to {MOST_AXES}")
        return [self.value(inner, deep + 1) for _ in range(self._possible(count))]

    def _texts(self, count: int) -> int:
        """Pass over a list of texts, and return its length."""
        for _ in range(self._possible(count)):
            self.skip(self.number("<Q"))
        return count

    def _possible(self, count: int) -> int:
        if count > len(self.content) - self.place:
            raise SpecError(f"{self.path}: a list of {count:,} entries stated; the file is cut short")
        return count


def _gguf(header: _Reader) -> WeightFile:
    header.skip(4)
    version, count, keys = header.number("<I"), header.number("<Q"), header.number("<Q")
    if version not in (2, 3) or count > MOST_TENSORS or keys > MOST_TENSORS:
        raise SpecError(f"{header.path}: version {version}, {count:,} tensors given; allowed: versions 2 and 3 of GGUF")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        name = header.text()
        metadata[name] = header.value(header.number("<I"))
    return WeightFile(tuple(_gguf_tensors(header, count)), metadata)


def _gguf_tensors(header: _Reader, count: int) -> Iterator[StoredTensor]:
    for _ in range(count):
        name, axes = header.text(), header.number("<I")
        if axes > MOST_AXES:
            raise SpecError(f"{header.path}: {shown(name)}: {axes} axes given; allowed: up to {MOST_AXES}")
        shape = tuple(header.number("<Q") for _ in range(axes))
        kind = header.number("<I")
        header.number("<Q")
        dtype = GGML_TYPES.get(kind)
        if dtype is None:
            raise SpecError(f"{header.path}: {shown(name)}: type {kind} given; allowed: {', '.join(BLOCKS)}")
        weights, size = BLOCKS[dtype]
        yield StoredTensor(name, shape, dtype, -(-prod(shape) // weights) * size)
