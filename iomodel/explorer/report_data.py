"""Names by which the page reads reports: counters of Nsight Compute, and keys of the results of benchmarks."""

from __future__ import annotations

from typing import Any

from iomodel.common import counter_names as names
from iomodel.planning.benchmark_files import COUNTED, FORMATS, GIB, MOST


def report_data() -> dict[str, Any]:
    """Return the names and units as plain data.

    >>> report_data()["counters"]["bytes"]["dram_read"]
    ['dram__bytes_read.sum', 'dram__sectors_read.sum']
    """
    counters = {
        "sector": names.SECTOR,
        "prefixes": names.PREFIXES,
        "times": names.TIMES,
        "whole": f"^(?:{names.WHOLE.pattern})$",
        "comma": f"^(?:{names.COMMA.pattern})$",
        "largest": names.LARGEST,
        "l2": list(names.L2),
        "bytes": {quantity: list(pair) for quantity, pair in names.BYTES.items()},
        "duration": list(names.DURATION),
        "metrics": list(names.METRICS),
        "columns": [names.NAME, names.LAUNCH, *names.METRIC],
        "most": names.MOST,
    }
    formats = [
        {
            "source": each.source,
            "known": list(each.known),
            "setting": dict(each.setting),
            "measured": {name: list(entry) for name, entry in each.measured.items()},
        }
        for each in FORMATS
    ]
    return {"counters": counters, "formats": formats, "counted": sorted(COUNTED), "most": MOST, "gib": GIB}
