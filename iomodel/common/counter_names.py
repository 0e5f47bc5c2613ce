"""Names and units of the counters of Nsight Compute, and the numbers of its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

SECTOR = 32
"""Size of a sector of the L2 cache [B]."""
PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
TIMES = {
    **dict.fromkeys(("nsecond", "ns"), 1e-9),
    **dict.fromkeys(("usecond", "us"), 1e-6),
    **dict.fromkeys(("msecond", "ms"), 1e-3),
    **dict.fromkeys(("second", "s"), 1.0),
}
"""Units of a time [s]."""
RATES = {f"{prefix}byte/{second}": size for prefix, size in PREFIXES.items() for second in ("second", "s")}
"""Units of a rate [B/s]."""
SCALES = TIMES | RATES
"""Units of the values of counters [s, B/s]."""
WHOLE = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]*)?([eE][-+]?[0-9]+)?")
COMMA = re.compile(r"-?([0-9]+|[0-9]{1,3}([.\s][0-9]{3})+)(,[0-9]*)?([eE][-+]?[0-9]+)?")
LARGEST = 1e300
"""Largest value of a counter: sums and products with units stay finite."""
LOCAL = tuple(f"l1tex__t_{{}}_pipe_lsu_mem_local_op_{access}.sum" for access in ("ld", "st"))
L2 = tuple(f"lts__t_sectors_srcunit_tex_op_{access}.sum" for access in ("read", "write", "red", "atom"))
"""Sectors that the SMs ask the L2 for; the first two must be reported."""
BYTES: Mapping[str, tuple[str, str]] = {
    "dram_read": ("dram__bytes_read.sum", "dram__sectors_read.sum"),
    "dram_written": ("dram__bytes_write.sum", "dram__sectors_write.sum"),
    "dram": ("dram__bytes.sum", "dram__sectors.sum"),
    "l2": ("lts__t_bytes.sum", "lts__t_sectors.sum"),
}
"""The counter of bytes of each quantity, and that of sectors which stands for it."""
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg")
RATE = "dram__bytes.sum.per_second"
LABELS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "Duration": (DURATION[0], TIMES),
    "Memory Throughput": (RATE, RATES),
}
"""The counter behind a label of the details page, and the units in which the label stands for it; in per cent, the
throughput is that of the busiest part of the memory."""
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum", *L2[:2], DURATION[0],
           *(name.format("bytes") for name in LOCAL),
           "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio")  # fmt: skip
"""The counters that an audit reads, as `ncu --metrics` takes them."""
NAME, LAUNCH = "Kernel Name", "ID"
METRIC = ("Metric Name", "Metric Unit", "Metric Value")
"""Columns of the tables of `ncu --csv`."""
MOST = 10**6
"""Most rows of a report."""
