"""Facts about a device reported by torch and the driver."""

from __future__ import annotations

import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from iomodel.devices.calibration.device import Facts


def facts_of(torch: Any, device: Any) -> Facts:
    """Collect the facts of a GPU, or of the CPU treated as a GPU with small caches."""
    if device.type != "cuda":
        return Facts("CPU", 2, 2**32, 2**31, 2**20, sram_per_block=2**16, software=f"torch {torch.__version__}")
    properties = torch.cuda.get_device_properties(device)
    hip = getattr(torch.version, "hip", None)
    built = f"ROCm {hip}" if hip else f"CUDA {torch.version.cuda}"
    has_triton = find_spec("triton") is not None
    capability = f"{properties.major}.{properties.minor}"

    def positive(name: str) -> int | None:
        value = getattr(properties, name, None)  # the set of properties depends on the version of torch
        return value if isinstance(value, int) and value > 0 else None

    memory_clock, bus, clock = (positive(name) for name in ("memory_clock_rate", "memory_bus_width", "clock_rate"))
    bandwidth = None if hip or not (memory_clock and bus) else 2 * 1000 * memory_clock * bus // 8
    return Facts(
        name=properties.name,
        vendor="AMD" if hip else "NVIDIA",
        architecture=properties.gcnArchName.partition(":")[0] if hip else f"sm_{properties.major}{properties.minor}",
        capability=None if hip else capability,
        units=properties.multi_processor_count,
        memory=properties.total_memory,
        memory_free=torch.cuda.mem_get_info(device)[0],
        l2_bytes=positive("L2_cache_size"),
        sram_per_block=positive("shared_memory_per_block_optin"),
        sram_per_block_static=positive("shared_memory_per_block"),
        sram_per_sm=positive("shared_memory_per_multiprocessor"),
        hbm_bandwidth=bandwidth,  # from kHz and bits, two transfers per clock
        clock=1000 * clock if clock else None,
        registers_per_sm=positive("regs_per_multiprocessor"),
        threads_per_sm=positive("max_threads_per_multi_processor"),
        threads_per_block=positive("max_threads_per_block"),
        warp_size=positive("warp_size"),
        driver=_driver(),
        software=", ".join(filter(None, (f"torch {torch.__version__}", built, _triton() if has_triton else None))),
        triton=has_triton,
    )


def _triton() -> str | None:
    for package in ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"):
        try:
            return f"triton {version(package)}"
        except PackageNotFoundError:
            continue
    return "triton"


def _driver() -> str | None:
    """Query the driver version, the same for all devices of a machine; torch does not report it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.split()
    return lines[0] if lines and lines[0].isprintable() else None
