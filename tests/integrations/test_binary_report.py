"""Binary reports of Nsight Compute: files made by hand, read by NVIDIA's reader."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest

import iomodel
from iomodel import InputError
from iomodel.integrations.nsight import binary_report as reader
from iomodel.integrations.nsight.report_file import read_report
from tests.fuzz.law import one_line
from tests.support.inside import Elementwise
from tests.support.nsight_report import after_length, binary_report, message

SILU = iomodel.estimate("activation", Elementwise(rows=2048, channels=14336, dtype="fp16"), "h200-sxm")
COUNTERS = {
    "dram__bytes_read.sum": 58_731_520,
    "dram__bytes_write.sum": 37_068_800.0,
    "gpu__time_duration.sum": 30_000.0,
    "lts__t_sectors_srcunit_tex_op_read.sum": 1_835_008,
    "lts__t_sectors_srcunit_tex_op_write.sum": 1_835_008.0,
    "device__attribute_display_name": "NVIDIA H200",
}
GOOD = binary_report(("silu_kernel", COUNTERS), ("other", COUNTERS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ncu-rep"


def test_a_binary_report_is_audited_as_its_csv(path: Path) -> None:
    path.write_bytes(GOOD)
    (call,) = iomodel.testing.audit(path, {"silu": SILU}).calls
    header, units, row = '"ID","Kernel Name"', '"",""', '"0","silu_kernel"'
    for name, unit in zip(COUNTERS, ("byte", "byte", "nsecond", "sector", "sector", ""), strict=True):
        header, units, row = f'{header},"{name}"', f'{units},"{unit}"', f'{row},"{COUNTERS[name]}"'
    table = path.with_suffix(".csv")
    table.write_text("\n".join((header, units, row, "")))
    (same,) = iomodel.testing.audit(table, {"silu": SILU}).calls
    assert call.inside
    assert call.seconds == same.seconds == pytest.approx(30e-6)
    assert call.levels == same.levels
    assert len(call.levels) == 4


def test_a_time_of_a_chip_that_the_reader_does_not_know_is_in_ns(path: Path) -> None:
    unknown = dict.fromkeys(("architecture", "chip", "implementation"), 0xFFF)
    path.write_bytes(binary_report(("silu_kernel", COUNTERS), chip=unknown))
    (launch,) = read_report(path)
    assert launch.seconds == pytest.approx(30e-6)
    assert (launch.dram_read, launch.dram_written) == (58_731_520, 37_068_800)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_report_is_read_or_refused_in_one_line(
    seed: int, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    for damage in range(4):
        content = bytearray(GOOD[: draw.randrange(len(GOOD))] if damage % 2 else GOOD)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
        try:
            read_report(path)
        except InputError as error:
            one_line(str(error))
    assert capfd.readouterr() == ("", "")


def test_a_report_that_ends_its_reader_is_refused(path: Path) -> None:
    """A length of 2^31 bytes after which a block follows: the reader, native code, aborts its process."""
    block = message((4, message((1, "a"))), (5, 2**31))
    path.write_bytes(b"NVR\0" + after_length(message((1, 104))) + after_length(block) + GOOD)
    with pytest.raises(
        InputError, match=r"'a\.ncu-rep' is no report of .*: its reader was ended by signal 6; the file"
    ):
        read_report(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no kernel|is no report"),
        (b"ID,Kernel Name\n", "is no report|holds no kernel"),
        (GOOD[:-30], "holds no kernel, or one without a name; it may be cut short"),
        (b"NVR\0" + struct.pack("<I", 2**31), "holds no kernel|is no report"),
    ],
    ids=["empty", "table", "cut", "long"],
)
def test_no_report_is_refused_in_one_line(content: bytes, message: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_report(path)
    one_line(str(error.value))


def test_without_its_reader_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(GOOD)
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(InputError, match=r"ncu_report: not installed; .*iomodel\[nsight\].* --page raw --csv"):
        read_report(path)


def test_a_reader_that_does_not_end_is_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(GOOD)
    monkeypatch.setattr(reader, "SECONDS", 0.001)
    with pytest.raises(InputError, match=r"its reader has not ended within 0\.001 s"):
        read_report(path)
