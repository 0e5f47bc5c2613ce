"""Reports of Nsight Compute made by hand: the file format that its documentation describes, without a profiler.

A file is the magic number, a header, and one block: its header with the names of the counters, then the launches. Each
part is a message of protocol buffers after its length [B] as a 32-bit number. The numbers of the fields are those of
`ProfilerReport.proto`, `ProfilerResultsCommon.proto` and `ProfilerStringTable.proto`, which come with the profiler.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

GH100 = dict.fromkeys(("architecture", "chip", "implementation"), 0x180)
"""Attributes of the chip of an H100 and an H200, from which the reader takes the units of the counters."""
Field = tuple[int, int | float | str | bytes]


def varint(number: int) -> bytes:
    digits = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


def message(*fields: Field) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def after_length(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def binary_report(
    *launches: tuple[str, Mapping[str, int | float | str]], chip: Mapping[str, int] = GH100
) -> bytes:  # fmt: skip
    """Write the launches, each a kernel with its counters, of a device with the attributes `chip`."""
    attributes = {f"device__attribute_{name}": value for name, value in chip.items()}
    names = sorted({name for _, counters in launches for name in counters} | attributes.keys())
    results = [_launch(place, kernel, {**attributes, **counters}, names)
               for place, (kernel, counters) in enumerate(launches)]  # fmt: skip
    payload = b"".join(map(after_length, results))
    table = message(*((1, name) for name in names))
    block = message((1, 0), (2, len(results)), (4, table), (5, len(payload)), (6, message((1, 1))))
    return b"NVR\0" + after_length(message((1, 104))) + after_length(block) + payload


def _launch(place: int, kernel: str, counters: Mapping[str, int | float | str], names: Sequence[str]) -> bytes:
    unit = message((1, 1), (2, 1), (3, 1))
    kinds = {str: 1, float: 3, int: 5}
    metrics = [(13, message((1, names.index(name)), (2, message((kinds[type(value)], value)))))
               for name, value in counters.items()]  # fmt: skip
    numbers: list[Field] = [(1, 0), (2, place), (3, 0), (4, place)]
    names_of_kernel: list[Field] = [(number, kernel) for number in (5, 6, 7)]
    sizes: list[Field] = [(8, 3), *((number, unit) for number in (9, 10, 11))]
    return message(*numbers, *names_of_kernel, *sizes, *metrics, (15, message((1, 0))))
