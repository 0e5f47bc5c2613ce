"""Audits of reports in the formats that Nsight Compute prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel import InputError
from iomodel.integrations.nsight.counters import together
from iomodel.integrations.nsight.csv_report import read_csv
from iomodel.integrations.nsight.explanations import written_bytes
from iomodel.integrations.nsight.report_file import read_report
from tests.fuzz.law import one_line
from tests.support.inside import Elementwise
from tests.support.public_types import REPORT

READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
SECTORS = "lts__t_sectors_srcunit_tex_op_{}.sum"
TIME = "gpu__time_duration.sum"
USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
LOCAL = "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum"

Counters = dict[str, tuple[Any, str]]


def details(*launches: tuple[str, Counters]) -> str:
    """A row per metric, below the lines of the profiler."""
    header = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Section Name",' \
             '"Metric Name","Metric Unit","Metric Value"'  # fmt: skip
    lines = ["==PROF== Connected to process 4711 (/usr/bin/python3)", '==PROF== Profiling "k" - 0: 0%....100%', header]
    for place, (kernel, counters) in enumerate(launches):
        for metric, (value, unit) in counters.items():
            lines.append(f'"{place}","4711","python3","host","{kernel}","1","7","Command line profiler metrics",'
                         f'"{metric}","{unit}","{value}"')  # fmt: skip
    return "\n".join([*lines, "==PROF== Disconnected from process 4711", ""])


def raw(*launches: tuple[str, Counters]) -> str:
    """A column per metric, with a row of units."""
    metrics = list(launches[0][1])
    head = ["ID", "Kernel Name", "Block Size", *metrics]
    units = ["", "", "", *(launches[0][1][metric][1] for metric in metrics)]
    rows = [[str(place), kernel, "(128, 1, 1)", *(str(counters[metric][0]) for metric in metrics)]
            for place, (kernel, counters) in enumerate(launches)]  # fmt: skip
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in [head, units, *rows]) + "\n"


PAGES = {"details": details, "raw": raw}


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_and_units_of_the_profiler_are_read(page: str) -> None:
    counters: Counters = {
        READ: ("2.5", "Mbyte"),
        WRITE: ("1,048,576", "byte"),
        SECTORS.format("read"): ("2,000", "sector"),
        SECTORS.format("write"): ("1.5", "Ksector"),
        TIME: ("41.28", "usecond"),
        "launch__registers_per_thread": ("168", "register/thread"),
        "device__attribute_display_name": ("NVIDIA H200", ""),
    }
    first, second = read_csv(PAGES[page](("void f<int, 64>(T*)", counters), ("g", counters)), "a.csv")
    assert (first.kernel, second.kernel, second.launch) == ("void f<int, 64>(T*)", "g", "1")
    assert (first.dram_read, first.dram_written, first.l2_bytes) == (2_500_000, 1_048_576, 32 * 3500)
    assert first.seconds == pytest.approx(41.28e-6)
    assert first.values["launch__registers_per_thread"] == 168
    assert first.local_bytes is None
    assert "device__attribute_display_name" not in first.values


RULES = (
    '"ID","Process ID","Kernel Name","Context","Stream","Device","CC","Section Name","Metric Name","Metric Unit",'
    '"Metric Value","Rule Name","Rule Type","Rule Description"\n'
)
"""Header of the details page with rules: `ncu --csv --set full`, of which a row without a rule ends in a comma."""
CELLS = '"{launch}","31","flash_fwd_kernel(Params)","1","7","0","8.0","{section}",'


def with_rules(*rows: tuple[str, str, str, str]) -> str:
    """Rows of the details page as ncu writes them, and a row of a rule."""
    launch, *_ = rows[0]
    rule = CELLS.format(launch=launch, section="Occupancy") + '"","","","Occupancy","INF","Est. speedup: 3, of 4"\n'
    lines = [
        CELLS.format(launch=each, section="") + f'"{name}","{unit}","{value}",\n' for each, name, unit, value in rows
    ]
    return RULES + "".join(lines) + rule


def test_rows_without_a_rule_are_short() -> None:
    metrics = ((READ, "byte", "58,731,520"), ("dram__bytes.sum", "Mbyte", "80.25"))
    found = read_csv(with_rules(*((launch, *metric) for launch in "01" for metric in metrics)), "rules.csv")
    assert [each.dram_read for each in found] == [58_731_520] * 2
    assert found[0].dram_written is None
    assert found[0].dram_bytes == 80_250_000


@pytest.mark.parametrize("values", [("58\u202f731\u202f520", "2,5"), ("58.731.520", "2,5")])
def test_decimals_behind_a_comma(values: tuple[str, str]) -> None:
    counters: Counters = {READ: (values[0], "byte"), WRITE: (values[1], "Mbyte"), "lts__t_bytes.sum": ("7", "Kbyte")}
    for page in PAGES.values():
        (found,) = read_csv(page(("f", counters)), "virgule.csv")
        assert (found.dram_read, found.dram_written, found.l2_bytes) == (58_731_520, 2_500_000, 7000)


REPORTS = Path(__file__).parent / "reports"
"""Tables as the profilers write them, cut down to a kernel or two."""
ROCM = ("rocprof", "rocprofv3", "omniperf", "omniperf-mi300")


@pytest.mark.parametrize("tool", ROCM)
def test_tables_of_amd_are_read_with_their_own_counters(tool: str) -> None:
    (found,) = read_report(REPORTS / f"{tool}.csv")
    assert "ck::kernel_batched" in found.kernel
    assert (found.dram_read, found.dram_written) == (1_049_088, 524_288)
    assert found.seconds == pytest.approx(10.5e-6)


COPIED = 8 * 2**20
"""Bytes of 2^20 numbers in fp64, which the kernel of ROCm/omniperf's tests reads and writes."""
PUBLIC: dict[str, list[tuple[int | None, int | None, float | None]]] = {
    "omniperf-vcopy-mi200": [
        (COPIED + 512, COPIED, 20.64e-6), (COPIED + 64, 5_859_456, 15.52e-6), (COPIED + 576, 5_839_104, 16.48e-6)
    ],
    "omniperf-vcopy-mi300x": [
        (COPIED + 16_000, COPIED, 16.119e-6), (COPIED + 15_488, COPIED, 13.56e-6), (COPIED + 14_528, COPIED, 13.48e-6)
    ],
    "rocprof-copy": [(64 * 1_057_241, None, None)],
    "rocprof-nbody": [(9_655_488, 7872 * 1024, 26.326497e-3)],
    "rocprofv3-filters": [(None, None, 10.24e-6), (None, None, 9.8e-6), (None, None, 9.68e-6)],
    "rocprofv3-shallow": [(None, None, 6.45e-6), (None, None, 5.489e-6), (None, None, 9.495e-6)],
}  # fmt: skip
"""Reads and writes [B] and times [s] of each launch, by hand from public files: github.com/ROCm/omniperf
(tests/workloads/device_filter), two workshops on MI100 and MI250 (rocprof of a copy and of mini-nbody, the latter with
older names of counters), the documentation of rocprofiler-sdk and a tutorial (rocprofv3, without counters of bytes)."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_tables_of_amd_are_read(name: str) -> None:
    launches = read_report(REPORTS / f"{name}.csv")
    assert [(each.dram_read, each.dram_written) for each in launches] == [row[:2] for row in PUBLIC[name]]
    for each, (_, _, seconds) in zip(launches, PUBLIC[name], strict=True):
        assert each.seconds == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("page", ["details", "raw", "rules", "french"])
def test_tables_of_nvidia_are_read_alike(page: str) -> None:
    launches = read_report(REPORTS / f"ncu-{page}.csv")
    assert {each.dram_read for each in launches} == {58_731_520}
    assert {each.dram_written for each in launches} == {37_070_000}
    assert all(each.seconds == pytest.approx(41.28e-6) for each in launches if page != "rules")


def test_labels_of_the_details_page_are_counters() -> None:
    """A page of sections names metrics by labels; its rate of the memory is that of DRAM, 196.46 GB/s in 21.06 ms."""
    (copy,) = read_report(REPORTS / "ncu-details-copy.csv")
    assert copy.dram_bytes == round(196_456_177_859.63 * 21.058944e-3)
    assert copy.seconds == pytest.approx(21.058944e-3)
    (product,) = read_report(REPORTS / "ncu-details-cublaslt.csv")  # its throughput in per cent is no rate
    assert (product.seconds, product.dram_bytes) == (pytest.approx(406.24e-6), None)


def test_a_rate_and_a_time_are_bytes_of_dram() -> None:
    counters: Counters = {"dram__bytes.sum.per_second": ("2", "Gbyte/second"), TIME: ("3", "msecond")}
    for page in PAGES.values():
        (found,) = read_csv(page(("f", counters)), "rate.csv")
        assert found.dram_bytes == 6_000_000
    both = {**counters, "dram__bytes.sum": ("7", "byte")}
    (found,) = read_csv(details(("f", both)), "both.csv")
    assert found.dram_bytes == 7
    twice = together([found, found])
    assert twice.values["dram__bytes.sum.per_second"] == 2e9  # a rate is no sum
    assert twice.dram_bytes == 14


def test_the_requests_of_flash_attention_on_a_gb10_are_those_of_a_public_table() -> None:
    """cp.async leaves the use of sectors at 0, and 5 MB of local memory are beside the tensors."""
    call = iomodel.Attention(heads=8, q_len=4096, head_dim=128, mask="causal", dtype="fp16")
    flash = iomodel.estimate("flash2", call, "gb10")
    calls = iomodel.testing.audit(REPORTS / "ncu-raw-gb10.csv", {"flash_fwd": flash}).calls
    assert [each.levels[0].measured for each in calls] == [32 * (9_129_856 + 131_200)] * 2
    assert all(each.inside for each in calls)
    assert calls[0].explanations[0].startswith("spills: 5,242,880 B of local memory")


def test_the_times_of_split_keys_on_a_b200_are_read() -> None:
    launches = read_report(REPORTS / "ncu-raw-b200.csv")
    assert [each.seconds for each in launches] == pytest.approx([395.68e-6, 397.472e-6, 11.904e-6, 12.096e-6])


def test_a_table_of_amd_without_counters_is_refused() -> None:
    with pytest.raises(InputError, match="no counter of bytes and no time found; allowed: FETCH_SIZE and WRITE_SIZE"):
        read_csv("Index,KernelName,gpu-id\n0,f,4\n", "rocm.csv")


def report(folder: Path, kernel: str, counters: Counters, page: str = "raw") -> Path:
    path = folder / "report.csv"
    path.write_text(PAGES[page]((kernel, counters)), encoding="utf-8")
    return path


def test_a_published_report_is_inside_its_prediction() -> None:
    """github.com/tile-ai/TileOPs, pull request 1996: SiLU of 2048 x 14336 in fp16 on an H200, caches emptied before."""
    silu = iomodel.estimate("activation", Elementwise(rows=2048, channels=14336, dtype="fp16"), "h200-sxm")
    (call,) = iomodel.testing.audit(REPORT, {"silu": silu}).calls
    levels = {level.name: level for level in call.levels}
    assert levels["DRAM reads"].predicted == (58_720_256, 58_720_256)
    assert levels["DRAM writes"].predicted[1] == 58_720_256
    assert call.inside
    assert call.explanations == (
        "write-back outside the window: 21,651,456 B of the output, 37%, are still in the L2 (52,428,800 B) when the "
        "kernel ends",
    )


W = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, mask="causal")
FLASH = iomodel.estimate("flash2", W, "a100-sxm4-80gb")
OUTPUT = 4 * 16 * 4096 * (2 * 128 + 4)  # O in bf16 and the log-sum-exp in fp32
ONCE = 4 * 16 * 4096 * 128 * 2  # Q, K, V or O
LOW, HIGH = FLASH.dram_bytes


def audited(folder: Path, counters: Counters, estimate: iomodel.Estimate = FLASH) -> Any:
    (call,) = iomodel.testing.audit(report(folder, "flash_fwd_kernel", counters), {"FLASH_fwd": estimate}).calls
    return {level.name: level for level in call.levels}, call.explanations


def test_the_output_is_apart_from_the_reads(tmp_path: Path) -> None:
    assert written_bytes(FLASH.cost) == OUTPUT
    levels, _ = audited(tmp_path, {READ: (LOW - OUTPUT, "byte"), WRITE: (OUTPUT, "byte")})
    assert {name: level.verdict for name, level in levels.items()} == dict.fromkeys(
        ("DRAM", "DRAM reads", "DRAM writes"), "inside"
    )
    assert levels["DRAM reads"].predicted == (LOW - OUTPUT, HIGH - OUTPUT)
    assert levels["DRAM"].predicted == (LOW - FLASH.rates.l2_capacity, HIGH)  # type: ignore[operator]


def test_keys_read_again_are_named(tmp_path: Path) -> None:
    reads = ONCE + 3 * 2 * ONCE  # Q, and K and V three times
    levels, (reason,) = audited(tmp_path, {READ: (reads, "byte"), WRITE: (OUTPUT, "byte")})
    assert levels["DRAM reads"].verdict == levels["DRAM"].verdict == "above"
    asked = (FLASH.requested_bytes - OUTPUT - ONCE) / (2 * ONCE)
    assert reason.startswith(f"re-read K and V: they come from DRAM 3.0 times, of {asked:.1f} times that blocks ask")


def test_uncoalesced_loads_and_spills_are_named(tmp_path: Path) -> None:
    counters: Counters = {
        READ: (LOW - OUTPUT, "byte"),
        WRITE: (OUTPUT, "byte"),
        SECTORS.format("read"): (2 * FLASH.requested_bytes // 32, "sector"),
        SECTORS.format("write"): (OUTPUT // 32, "sector"),
        USED: ("16.0", "byte"),
        LOCAL: ("1.5", "Mbyte"),
    }
    levels, reasons = audited(tmp_path, counters)
    assert levels["L2"].verdict == "above"
    assert reasons[0].startswith("spills: 1,500,000 B of local memory")
    assert reasons[1] == (
        "uncoalesced loads: 16.0 of 32 B of a sector are used, so loads ask the L2 for 2.00 times their bytes"
    )
    assert not any(reason.startswith("requests") for reason in reasons)
    alone = {name: value for name, value in counters.items() if name not in (USED, LOCAL)}
    _, (reason,) = audited(tmp_path, alone)
    assert reason.startswith("requests: 2.0")
    assert "smaller tiles than block_q = " in reason


def test_less_than_the_inputs_is_a_warm_cache(tmp_path: Path) -> None:
    levels, (reason,) = audited(tmp_path, {READ: (ONCE, "byte"), WRITE: (OUTPUT, "byte")})
    assert levels["DRAM reads"].verdict == "below"
    assert reason.startswith(f"warm cache: {LOW - OUTPUT - ONCE:,} B of the inputs were in the L2 before")


def test_several_kernels_are_one_call(tmp_path: Path) -> None:
    back = iomodel.estimate("flash2", W.model_copy(update={"direction": "backward"}), "a100-sxm4-80gb")
    third = (back.dram_bytes[0] + back.dram_bytes[1]) // 6
    launch: Counters = {READ: (third, "byte"), WRITE: ("0", "byte"), TIME: ("1", "ms")}
    path = tmp_path / "backward.csv"
    names = ("dot_do_o", "dq_dk_dv", "convert_dq")
    path.write_text(details(("other", launch), *((f"flash_bwd_{name}", launch) for name in names)))
    result = iomodel.testing.audit(path, {"flash_bwd": back})
    (call,) = result.calls
    assert call.launch == "1, 2, 3"
    assert call.seconds == pytest.approx(3e-3)
    assert [(level.name, level.measured) for level in call.levels] == [("DRAM", 3 * third)]
    assert result.inside
    assert dict(result.unmatched) == {"other": 1}
    assert "not audited: other (1)" in str(result)
    assert iomodel.results.Audit.from_json(result.to_json()) == result
    path.write_text(details(*((f"flash_bwd_{name}", launch) for name in names[:2])))
    with pytest.raises(InputError, match=r"selects 2 launches; allowed: a multiple of 3, the kernels of flash2"):
        iomodel.testing.audit(path, {"flash_bwd": back})


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_the_use_of_sectors_is_that_of_the_longest_launch(longest: int, tmp_path: Path) -> None:
    back = iomodel.estimate("flash2", W.model_copy(update={"direction": "backward"}), "a100-sxm4-80gb")
    read, written = ((str(size // 3), "byte") for size in back.dram_bytes)
    sectors = (2 * back.requested_bytes // 32 // 3, "sector")
    launches: list[Counters] = [
        {
            READ: read, WRITE: written, SECTORS.format("read"): sectors, SECTORS.format("write"): ("0", "sector"),
            TIME: ("5" if place == longest else "1", "ms"), USED: ("16.0" if place == longest else "32.0", "byte"),
        }
        for place in range(3)
    ]  # fmt: skip
    path = tmp_path / "backward.csv"
    names = ("dot_do_o", "dq_dk_dv", "convert_dq")
    path.write_text(details(*((f"flash_bwd_{name}", one) for name, one in zip(names, launches, strict=True))))
    (call,) = iomodel.testing.audit(path, {"flash_bwd": back}).calls
    assert any(reason.startswith("uncoalesced loads: 16.0 of 32 B") for reason in call.explanations)
    assert not any(reason.startswith("requests") for reason in call.explanations)  # the sectors explain them


GOOD: Counters = {READ: ("1", "byte"), WRITE: ("2", "byte")}


@pytest.mark.parametrize("page", PAGES)
def test_every_cut_of_a_report_is_read_or_refused_in_one_line(page: str, tmp_path: Path) -> None:
    text = PAGES[page](("f", GOOD), ("f", GOOD))
    path, whole = tmp_path / "cut.csv", {(READ, 1.0), (WRITE, 2.0)}
    refused = 0
    for length in range(len(text)):
        path.write_text(text[:length])
        try:
            launches = read_report(path)
        except InputError as error:
            refused += 1
            one_line(str(error))
            continue
        assert {pair for launch in launches for pair in launch.values.items()} <= whole
    assert refused > len(text) // 2


def test_a_cut_report_says_so(tmp_path: Path) -> None:
    text = raw(("f", GOOD), ("f", GOOD))
    path = tmp_path / "cut.csv"
    path.write_text(text[: text.rindex('"2"')])
    with pytest.raises(InputError, match=r"cut\.csv: the last launch, 1 of 'f', lacks dram__bytes_write\.sum"):
        iomodel.testing.audit(path, {"f": FLASH})
    path.write_text(text[: text.rindex(',"2"')])
    with pytest.raises(InputError, match=r"cut\.csv: line 4: 4 cells found, 5 in the header; the file is cut short"):
        iomodel.testing.audit(path, {"f": FLASH})
    lines = details(("f", GOOD), ("f", GOOD)).splitlines()
    path.write_text("\n".join(lines[:-2]))
    with pytest.raises(InputError, match=r"the last launch, 1 of 'f', lacks dram__bytes_write\.sum; the file is cut"):
        iomodel.testing.audit(path, {"f": FLASH})
    path.write_text(lines[0])
    with pytest.raises(InputError, match="no header with 'Kernel Name' found"):
        iomodel.testing.audit(path, {"f": FLASH})
    path.write_text("\n".join(lines[:3]))
    with pytest.raises(InputError, match="no kernel found below the header"):
        iomodel.testing.audit(path, {"f": FLASH})


def test_what_cannot_be_audited_is_refused_in_one_line(tmp_path: Path) -> None:
    path = report(tmp_path, "f", {"gpu__time_duration.sum": ("3", "us")})
    with pytest.raises(InputError, match=r"launch 0 of 'f' has no counter of bytes; profile with ncu --metrics dram__"):
        iomodel.testing.audit(path, {"f": FLASH})
    with pytest.raises(InputError, match=r"calls: no kernel contains 'g'; the report has 'f'"):
        iomodel.testing.audit(path, {"g": FLASH})
    with pytest.raises(InputError, match=r"calls: '\(' is no regular expression"):
        iomodel.testing.audit(path, {"(": FLASH})
    with pytest.raises(InputError, match=r"calls: 3 given for 'f'; allowed: \{'flash_fwd'"):
        iomodel.testing.audit(path, {"f": 3})  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r"report: .* is no file"):
        iomodel.testing.audit(tmp_path / "none.csv", {"f": FLASH})
