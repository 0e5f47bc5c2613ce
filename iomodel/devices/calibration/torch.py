"""Execution of experiments on a GPU with PyTorch, timed by device events; only this module imports torch."""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import cycle
from typing import Any

from iomodel.devices.calibration.experiment_calls import calls_of
from iomodel.devices.calibration.experiments import Experiment, Facts, Run
from iomodel.errors import InputError, shown

ATTEMPTS = 4
"""Attempts of a run whose calls are queued too slowly."""
FIRST_HOLD = 0.005
"""Initial wait of the device for the host's queue, before the speed of the host is known [s]."""
LONGEST_HOLD = 2.0
"""Upper bound on that wait [s]."""
FASTEST_CLOCK = 2e9
"""Clock that converts waits to cycles; a slower device waits longer, which does no harm [Hz]."""


def import_torch() -> Any:
    """Import torch, or raise InputError with the command that installs it."""
    try:
        import torch
    except (ImportError, OSError) as error:
        reason = "not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
        raise InputError(f"torch: {reason}; calibrate needs it: pip install 'iomodel[calibrate]'") from None
    return torch


def torch_device(index: object) -> TorchDevice:
    """Return the GPU with this index; raise InputError if there is none."""
    torch = import_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an outdated driver is reported below
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        built = torch.version.cuda or getattr(torch.version, "hip", None)
        reason = "its driver does not answer, or there is none" if built else "this build of torch is for CPUs"
        raise InputError(f"device: {shown(index)} given; torch {torch.__version__} sees no GPU, {reason}")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
        raise InputError(f"device: {shown(index)} given; allowed: an integer from 0 to {count - 1}")
    return TorchDevice(torch, torch.device("cuda", index))


class TorchDevice:
    """A torch device. On the CPU it runs the same calls with the host's clock, for trials at small sizes."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self.on_gpu = device.type == "cuda"

    @cached_property
    def facts(self) -> Facts:
        """Facts reported by the driver."""
        return facts_of(self.torch, self.device)

    def now(self) -> float:
        """Read a monotonic clock of the host [s]."""
        return time.perf_counter()

    @contextmanager
    def load(self, experiment: Experiment) -> Iterator[Run]:
        """Allocate an experiment's buffers, and free them afterwards."""
        torch = self.torch
        precision = torch.get_float32_matmul_precision()
        if self.on_gpu:
            torch.cuda.empty_cache()  # buffers of the last experiment, which its run may have held until now
        try:
            with warnings.catch_warnings(), torch.cuda.device(self.device) if self.on_gpu else nullcontext():
                warnings.simplefilter("ignore")
                torch.set_float32_matmul_precision(
                    "high" if experiment.parameters.get("dtype") == "tf32" else "highest"
                )
                calls = calls_of(torch, self.device, experiment)
                calls[0]()  # compile and load libraries, which would look like a slow host
                yield Timer(torch, calls) if self.on_gpu else _host_clock(calls)
        finally:
            torch.set_float32_matmul_precision(precision)


def _host_clock(calls: list[Callable[[], object]]) -> Run:
    turn = cycle(calls)

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            next(turn)()
        return time.perf_counter() - start

    return run


class Timer:
    """A timer of calls between two device events, with the host ahead of the device.

    A GPU that waits for the host between short calls would show the host's time. The device therefore first waits in
    an idle kernel until the host has queued all calls; a run that started earlier is repeated with a longer wait.
    """

    def __init__(self, torch: Any, calls: list[Callable[[], object]]) -> None:
        self.torch, self.turn = torch, cycle(calls)
        self.hold = FIRST_HOLD

    def __call__(self, count: int) -> float:
        """Time `count` calls on the device [s]."""
        for _ in range(ATTEMPTS):
            took, host, ahead = self._once(count)
            self.hold = min(LONGEST_HOLD, max(2 * host, 0.0005) if ahead else max(4 * host, 2 * self.hold))
            if ahead or host < took / 2:  # calls this long keep the queue filled by themselves
                return took
        raise RuntimeError("the host queues calls more slowly than the device runs them")

    def _once(self, count: int) -> tuple[float, float, bool]:
        """Return the device time [s], the host's queueing time [s], and True if the host stayed ahead."""
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        cuda._sleep(int(self.hold * FASTEST_CLOCK))
        begin.record()
        start = time.perf_counter()
        for _ in range(count):
            next(self.turn)()
        end.record()
        host = time.perf_counter() - start
        ahead = not begin.query()
        cuda.synchronize()
        return begin.elapsed_time(end) / 1000, host, ahead


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
