"""Pruning of an autotune list: configs that cannot launch are dropped, the rest are ranked by predicted time.

A config without rules is kept: pruning runs in the first launch on a user's GPU, where an error ends a program that
would run.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal
from warnings import warn

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.devices.device import Hardware, as_device, hardware
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, UnknownNameError, shown
from iomodel.placement.triton_check import ELEMENTS, KERNELS, TritonCheck, check_triton
from iomodel.placement.triton_description import KernelDescription
from iomodel.placement.triton_target import SHARED_LIMITS, as_architecture
from iomodel.triton.amd import amd_check, amd_seconds, on_amd
from iomodel.triton.argument_roles import Tiles, bound, shape, tile, unread
from iomodel.triton.launch_config import LAUNCH, ROLES, LaunchConfig
from iomodel.triton.seconds import padded, seconds
from iomodel.triton.shipped_configs import shipped_configs
from iomodel.workloads.attention import Attention, as_attention

UNTIMED = tuple(name for name in KERNELS if name.startswith("matmul"))
"""Kernels whose memory is known and whose time is not told here."""
TWINS = 2
"""Configs of one tile and one number of warps that are kept: the time model does not tell their stages apart [-]."""
TOP = 8
"""Configs that are kept where nothing else is said [-]."""
Workload = Attention | Callable[[Mapping[str, Any]], Attention] | None


@dataclass(frozen=True)
class Judged:
    """A config with its check and its predicted time.

    Attributes
    ----------
    config : object
        The config as it was given.
    check : TritonCheck or None
        What its compiler would report; None for a config without rules.
    seconds : float
        Predicted time, infinite for a config that does not fit, NaN where no time is told [s].
    reason : str
        Why the check or the time is missing.
    tiles, warps, stages : tuple of int, int, int
        What was read from the config.
    shipped : bool
        True for a config that PyTorch ships for FlexAttention; it is kept beyond `top`.
    """

    config: Any
    check: TritonCheck | None
    seconds: float
    reason: str = ""
    tiles: Tiles = ()
    warps: int = 0
    stages: int = 0
    shipped: bool = False

    @property
    def fits(self) -> bool | None:
        """True if the config can be launched; None if that is not known."""
        return None if self.check is None else self.check.fits

    @property
    def timed(self) -> bool:
        """True if the config has a predicted time."""
        return not math.isnan(self.seconds)

    @property
    def rank(self) -> tuple[float, bool, int, int]:
        """Sort key: time, certainty about spills, stages near Triton's default of 3, shared memory."""
        if self.check is None or not self.timed:
            return math.inf, True, 0, 0
        return self.seconds, self.check.spills is None, abs(self.stages - 3), -self.check.shared


@dataclass(frozen=True)
class Pruned:
    """An autotune list after pruning.

    Attributes
    ----------
    kept : tuple of object
        Configs to compile: by predicted time, then those without one in the order of the list, then those without
        rules.
    given : int
        Configs in the list [-].
    too_large : int
        Configs that cannot be launched [-].
    unjudged : Mapping of str to int
        Configs that are kept because no rule judges them, by reason [-].
    unread : tuple of str
        Arguments of the configs that no rule reads.
    note : str
        A line about what was not judged; empty if all was.
    """

    kept: tuple[Any, ...]
    given: int
    too_large: int
    unjudged: Mapping[str, int]
    unread: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Pruner:
    """The functions that `prune_configs_by` of `triton.autotune` takes, for one kernel on one device.

    Calling it is `early_config_prune`; `options` is the whole mapping.
    """

    hardware: Hardware
    workload: Workload = None
    kernel: str | KernelDescription = "forward"
    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: bound({}))
    top: int | None = TOP
    dtype: str = "fp16"
    version: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The argument `prune_configs_by`."""
        return {"early_config_prune": self}

    def __call__(self, configs: Iterable[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """Keep the `top` fastest configs of those that fit, a shipped default, and all that cannot be judged.

        A warning names what was not judged.
        Where none fits, the one of the least shared memory is kept, so that Triton reports it.
        """
        pruned = self.pruned(configs, {**named_args, **kwargs})
        if pruned.note:
            warn(pruned.note, stacklevel=2)
        return [*pruned.kept]

    def pruned(self, configs: Iterable[Any], arguments: Mapping[str, Any] = FrozenDict()) -> Pruned:
        """Prune a list and say what was dropped, what could not be judged and what was not read.

        >>> keep = pruner(None, "a100-sxm4-80gb", kernel="matmul", version="3.9.0")
        >>> configs = [{"BLOCK_M": 128, "BLOCK_N": n, "BLOCK_K": 64, "num_stages": 5} for n in (64, 96, 128, 256)]
        >>> cut = keep.pruned(configs)
        >>> [each["BLOCK_N"] for each in cut.kept], cut.too_large, dict(cut.unjudged)
        ([64, 128, 96], 1, {'N: 96 given; allowed: a power of two': 1})
        """
        judged = self.judge(configs, arguments)
        fitting = [each for each in judged if each.fits]
        timed = _varied(sorted((each for each in fitting if each.timed), key=lambda each: each.rank))
        unjudged = [each for each in judged if each.fits is None]
        first = timed if self.top is None else timed[: self.top]
        shipped = [each for each in timed[len(first) :] if each.shipped]
        listed = [*first, *shipped, *(each for each in fitting if not each.timed), *unjudged]
        too_large = len(judged) - len(fitting) - len(unjudged)
        if not listed and judged:
            listed = [min(judged, key=_shared)]
        names = self._unread(judged)
        reasons = FrozenDict(Counter(each.reason for each in unjudged))
        note = self._note(judged, fitting, unjudged, names)
        return Pruned(tuple(each.config for each in listed), len(judged), too_large, reasons, names, note)

    def ranked(self, configs: Iterable[Any], arguments: Mapping[str, Any]) -> list[Judged]:
        """Rank the configs that fit, the fastest first.

        Raises
        ------
        InfeasibleError
            No config fits.
        InputError
            A config has no rules, or no predicted time.
        """
        judged = self.judge(configs, arguments)
        fitting = [each for each in judged if each.fits]
        if unjudged := next((each.reason for each in judged if each.fits is None), ""):
            raise InputError(unjudged)
        if not fitting:
            least = _shared(min(judged, key=_shared)) if judged else 0
            raise InfeasibleError(
                f"configs: {len(judged)} given, none fits {self.hardware.label}; "
                f"the least shared memory is {least:,} B",
                least=least,
                unit="B",
            )
        if unknown := next((each.reason for each in fitting if not each.timed), ""):
            raise InputError(unknown)
        return _varied(sorted(fitting, key=lambda each: each.rank))

    def perf_model(self, **arguments: Any) -> float:
        """Predict the time of a launch with these arguments, as `perf_model` of `prune_configs_by` [s].

        A launch that cannot be judged is behind all that are; `early_config_prune` keeps it.
        """
        (judged,) = self.judge([arguments], arguments)
        return judged.seconds if judged.timed else sys.float_info.max

    def judge(self, configs: Iterable[Any], arguments: Mapping[str, Any]) -> list[Judged]:
        """Check and time every config, in the order given; one without rules has the reason."""
        call = self._call(arguments)
        return [self._judged(config, call, arguments) for config in configs]

    def call(self, arguments: Mapping[str, Any]) -> Attention:
        """Make the workload of a launch."""
        if self.workload is None:
            direction = "backward" if str(self.kernel).startswith("backward") else "forward"
            return Attention(**shape(arguments, self.names), dtype=self.dtype, direction=direction)
        if isinstance(self.workload, Attention):
            return self.workload
        return as_attention(self.workload(arguments))

    def _call(self, arguments: Mapping[str, Any]) -> Attention | str:
        """Make the workload of a launch, or the reason why there is none."""
        if self.untimed:
            return ""
        try:
            return self.call(arguments)
        except Exception as error:  # a caller's function may raise anything, and a launch must go on
            return str(error) if isinstance(error, IOModelError) else f"workload: the function given raised {error!r}"

    def _judged(self, config: Any, call: Attention | str, arguments: Mapping[str, Any]) -> Judged:
        """Check and time a config."""
        try:
            own = LaunchConfig.of(config)
            launch = replace(own, arguments={**arguments, **own.arguments})
            launch.require_known()
            sizes = self._tiles(launch)
            check = self._check(sizes, launch, call)
        except IOModelError as error:
            return Judged(config, None, math.nan, str(error))
        judged = Judged(
            config, check, math.inf, "", sizes, launch.warps, launch.stages, self._shipped(sizes, launch, call)
        )
        if not check.fits or self.untimed:
            return replace(judged, seconds=math.nan if check.fits else math.inf)
        try:
            if isinstance(call, str):
                raise InputError(call)
            time = self._seconds(call, sizes, launch, check)
        except IOModelError as error:
            return replace(judged, seconds=math.nan, reason=str(error))
        return replace(judged, seconds=time)

    def _seconds(self, call: Attention, sizes: Tiles, launch: LaunchConfig, check: TritonCheck) -> float:
        """Estimate the time of a config [s]."""
        if on_amd(self.hardware, call, self.kernel):
            return amd_seconds(self.hardware, call, sizes, launch.warps, launch.stages)
        return seconds(str(self.kernel), call, self.hardware, sizes, launch.warps, launch.stages, check)

    @property
    def untimed(self) -> bool:
        """True for a kernel whose time is not told here."""
        return isinstance(self.kernel, KernelDescription) or self.kernel in UNTIMED

    def _tiles(self, launch: LaunchConfig) -> Tiles:
        """Find the tiles of a config: of a described kernel, the arguments that it names."""
        if isinstance(self.kernel, KernelDescription):
            given = {name.lower() for name in launch.arguments}
            if self.kernel.names and not any(name.lower() in given for name in self.kernel.names):
                names = ", ".join(self.kernel.names)
                raise InputError(f"config: {shown(sorted(launch.arguments))} given; allowed: a config with {names}")
            return tuple(self.kernel.values(launch.arguments).values())
        return tile(launch.arguments, self.names, self.kernel)

    def _check(self, sizes: Tiles, launch: LaunchConfig, call: Attention | str) -> TritonCheck:
        """Check a config by the rules of its compiler."""
        if isinstance(call, Attention) and on_amd(self.hardware, call, self.kernel):
            return amd_check(self.hardware, call, sizes, launch.warps, launch.stages)
        known: dict[str, Any] = {
            "warps": launch.warps, "stages": launch.stages, "kernel": self.kernel, "version": self.version,
            "arch": self.arch,
        }  # fmt: skip
        if isinstance(self.kernel, KernelDescription):
            return check_triton(launch.arguments, **known)
        if self.untimed:
            return check_triton(sizes[0], sizes[1], sizes[2], dtype=as_type(self.dtype), **known)
        dtype: str = self.dtype
        if isinstance(call, Attention):
            widths, dtype = (padded(call.head_dim), padded(call.value_dim)), call.dtype
        else:
            given = shape(launch.arguments, self.names, wanted=("head_dim",))
            widths = padded(given["head_dim"]), padded(given.get("value_dim", given["head_dim"]))
        second: dict[str, Any] = {"dq_tile": (sizes[2], sizes[3])} if self.kernel == "backward" else {}
        return check_triton(sizes[0], sizes[1], widths[0], widths[1], dtype=as_type(dtype), **second, **known)

    def _shipped(self, sizes: Tiles, launch: LaunchConfig, call: Attention | str) -> bool:
        """Check whether PyTorch ships a config for the kernel; such a config is kept."""
        if not isinstance(call, Attention) or isinstance(self.kernel, KernelDescription):
            return False
        own = (
            shipped_configs().get((self.kernel, self.arch, call.head_dim)) if self.hardware.compute_capability else None
        )
        return own == (*sizes[:2], launch.warps, launch.stages) and sizes[2:] in ((), sizes[1::-1])

    @cached_property
    def arch(self) -> int:
        """The architecture of the device; SpecError for a device without the rules of a compiler."""
        if self.hardware.compute_capability:
            return as_architecture(self.hardware.compute_capability)
        raise SpecError(
            f"compute_capability: {self.hardware.label} lacks it; the rules of Triton's compiler are known for "
            f"{', '.join(f'sm_{known}' for known in SHARED_LIMITS)}; `configs` lists forward configs for AMD"
        )

    def _unread(self, judged: Iterable[Judged]) -> tuple[str, ...]:
        """List the arguments of configs that no rule reads."""
        names: set[str] = set()
        for each in judged:
            if each.check is not None:
                names.update(self._passed_over(LaunchConfig.of(each.config).arguments))
        return tuple(sorted(names))

    def _passed_over(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """List the arguments of one config that no rule reads."""
        if isinstance(self.kernel, KernelDescription):
            read = {name.lower() for name in self.kernel.names}
            return tuple(name for name in arguments if name.lower() not in read | LAUNCH | ROLES)
        return unread(arguments, self.names, self.kernel)

    def _note(self, judged: list[Judged], fitting: list[Judged], unjudged: list[Judged], names: tuple[str, ...]) -> str:
        """Say in one line what was not judged."""
        notes = []
        if judged and not fitting and not unjudged:
            least = min(judged, key=_shared)
            notes.append(
                f"none of {len(judged)} configs fits {self.hardware.label}; kept the one of the least shared memory, "
                f"{_shared(least):,} B"
            )
        if unjudged:
            notes.append(f"{len(unjudged)} of {len(judged)} configs kept without a check: {unjudged[0].reason}")
        untimed = next((each.reason for each in fitting if each.reason), "")
        if untimed:
            notes.append(f"configs kept by memory alone: {untimed}")
        if tiles := [name for name in names if "block" in name.lower()]:
            notes.append(f"not read: {', '.join(tiles)}; names= binds a tile")
        return "iomodel.triton: " + "; ".join(notes) if notes else ""


@strict
def pruner(
    workload: Workload,
    hardware: Hardware | str,
    *,
    names: Mapping[str, str] | None = None,
    kernel: str | KernelDescription = "forward",
    top: int | Literal["usual"] | None = "usual",
    dtype: str = "fp16",
    version: str | None = None,
) -> Pruner:
    """Make the functions that prune an autotune list.

    Parameters
    ----------
    workload : Attention, callable or None
        The call that is tuned for; a function of the launch's arguments that returns it; or None, to read its sizes
        from the arguments by their names.
    hardware : Hardware or str
        A device of a known architecture: compute capability 8.0, 8.6, 8.9, 9.0, 10.0, 10.3, 12.0 or 12.1. On another
        one every config is kept.
    names : mapping of str to str, optional
        Names of the kernel's arguments by role: ``{"block_q": "BM", "block_kv": "BN", "q_len": "SEQ"}``. Roles without
        a name are looked for under the usual ones (`BLOCK_M`, `N_CTX`, `HEAD_DIM`).
    kernel : str or KernelDescription
        A kernel that :func:`iomodel.triton.describe` has read, judged by its memory alone, or a kind of kernel:
        "forward", "block_sparse", "decode", "decode_paged", "latent_decode", "backward_dkdv", "backward_dq",
        "backward", "matmul", "matmul_gated", as :func:`iomodel.triton.check` explains them.
    top : int or None
        Configs to keep, 8 unless given; None keeps all that fit, as a matrix product does, which is not timed [-].
    dtype : str
        Type of the operands where no workload is given.
    version : str, optional
        Version of Triton; the installed one, else the newest known.

    Raises
    ------
    InputError, UnknownNameError
        A wrong argument; an unknown device, kernel or role.

    Examples
    --------
    >>> import iomodel
    >>> call = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
    >>> keep = iomodel.triton.pruner(call, "h100-sxm5", version="3.9.0")
    >>> sorted(keep.options)
    ['early_config_prune']
    """
    device = as_device(hardware)
    untimed = isinstance(kernel, KernelDescription) or kernel in UNTIMED
    if not isinstance(kernel, KernelDescription) and kernel not in KERNELS:
        raise UnknownNameError("kernel", kernel, KERNELS)
    if not (workload is None or isinstance(workload, Attention) or callable(workload)):
        raise InputError(
            f"workload: {shown(workload)} given; allowed: an Attention, a function that makes one, or None"
        )
    if top == "usual":
        top = None if untimed else TOP
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1 or untimed):
        allowed = (
            f"None, a {'matrix product' if kernel in UNTIMED else 'described kernel'} is judged by its memory alone"
            if untimed
            else "an integer from 1, or None"
        )
        raise InputError(f"top: {shown(top)} given; allowed: {allowed}")
    return Pruner(device, workload, kernel, bound(names or {}), top, dtype, version)


def as_type(dtype: str) -> str:
    """Resolve the type of the operands; raise InputError for one without compiles on file."""
    if dtype not in ELEMENTS:
        raise InputError(f"dtype: {dtype!r} given; allowed: {', '.join(ELEMENTS)}, for a Triton kernel")
    return dtype


def _shared(judged: Judged) -> int:
    """Return the shared memory of a config that was checked [B]."""
    return judged.check.shared if judged.check is not None else 0


def _varied(ranked: list[Judged]) -> list[Judged]:
    """Move configs behind all others that repeat a tile and its warps more often than `TWINS`."""
    seen: dict[tuple[Any, ...], int] = {}
    first: list[Judged] = []
    later: list[Judged] = []
    for each in ranked:
        kind = (*each.tiles, each.warps)
        seen[kind] = seen.get(kind, 0) + 1
        (first if seen[kind] <= TWINS else later).append(each)
    return first + later


DEVICES = {
    80: "a100-sxm4-80gb", 86: "a10", 89: "rtx4090", 90: "h100-sxm5", 100: "b200", 103: "b300", 120: "rtx5090",
    121: "gb10",
}  # fmt: skip
"""The device that stands for an architecture; configs are ranked by it."""


def prune(configs: Iterable[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
    """Prune an autotune list for the current GPU: `prune_configs_by={"early_config_prune": iomodel.triton.prune}`.

    The sizes of a forward pass are read from the arguments by their usual names; :func:`iomodel.triton.pruner` binds
    other names, kernels and devices. On a GPU without rules every config is kept.
    """
    given = [*configs]
    try:
        keep = current()
    except KeyError as error:
        warn(f"iomodel.triton: {len(given)} configs kept without a check: arch {error} has no rules", stacklevel=2)
        return given
    return keep(given, named_args, **kwargs)


def perf_model(**arguments: Any) -> float:
    """Predict the time of a launch on the current GPU: `prune_configs_by={"perf_model": ..., "top_k": 8}` [s]."""
    try:
        return current().perf_model(**arguments)
    except KeyError:
        return sys.float_info.max


def current() -> Pruner:
    """Make the pruner of the current GPU; raise KeyError for an architecture without rules."""
    arch = architecture()
    return pruner(None, hardware({str(known): device for known, device in DEVICES.items()}[str(arch)]))


def architecture() -> int | str:
    """Ask Triton for the architecture of the current GPU; raise InputError where there is none."""
    try:
        from triton.runtime import driver

        return driver.active.get_current_target().arch  # type: ignore[no-any-return]
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"hardware: no GPU that Triton knows ({error}); name one: iomodel.triton.pruner(workload, 'h100-sxm5')"
        ) from None
