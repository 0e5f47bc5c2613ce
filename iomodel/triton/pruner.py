"""Pruning of an autotune list: configs that cannot launch are dropped, the rest are ranked by predicted time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.devices.device import Hardware, as_device, hardware
from iomodel.errors import InfeasibleError, InputError, SpecError, UnknownNameError, shown
from iomodel.placement.triton_check import ELEMENTS, KERNELS, TritonCheck, check_triton
from iomodel.placement.triton_target import SHARED_LIMITS, as_architecture
from iomodel.triton.argument_roles import bound, shape, tile
from iomodel.triton.seconds import seconds
from iomodel.workloads.attention import Attention, as_attention

ATTENTION = tuple(name for name in KERNELS if name != "matmul")
DIVIDED = (192, 288, 576)
"""Widths that are loaded as two tiles, such as 512 and 64 columns [elements]."""
TWINS = 2
"""Configs of one tile and one number of warps that are kept: the time model does not tell their stages apart [-]."""
Workload = Attention | Callable[[Mapping[str, Any]], Attention] | None


@dataclass(frozen=True)
class Judged:
    """A config with its check and its predicted time [s]; the time of a config that does not fit is infinite."""

    config: Any
    check: TritonCheck
    seconds: float

    @property
    def rank(self) -> tuple[float, bool, int, int]:
        """Sort key: time, certainty about spills, stages near Triton's default of 3, shared memory."""
        return self.seconds, self.check.spills is None, abs(self.config.num_stages - 3), -self.check.shared


@dataclass(frozen=True)
class Pruner:
    """The functions that `prune_configs_by` of `triton.autotune` takes, for one kernel on one device.

    Calling it is `early_config_prune`; `options` is the whole mapping.
    """

    hardware: Hardware
    workload: Workload = None
    kernel: str = "forward"
    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: bound({}))
    top: int | None = 8
    dtype: str = "fp16"
    version: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The argument `prune_configs_by`."""
        return {"early_config_prune": self}

    def __call__(self, configs: Iterable[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """Keep the `top` fastest configs of those that fit; raise InfeasibleError if none does."""
        return [each.config for each in self.ranked(configs, {**named_args, **kwargs})][: self.top]

    def ranked(self, configs: Iterable[Any], arguments: Mapping[str, Any]) -> list[Judged]:
        """Rank the configs that fit, the fastest first; raise InfeasibleError if none does."""
        judged = sorted(self.judge(configs, arguments), key=lambda each: each.rank)
        fitting = [each for each in judged if each.check.fits]
        if not fitting:
            least = min((each.check.shared for each in judged), default=0)
            raise InfeasibleError(
                f"configs: {len(judged)} given, none fits {self.hardware.label}; "
                f"the least shared memory is {least:,} B",
                least=least,
                unit="B",
            )
        return _varied(fitting, self.names)

    def perf_model(self, **arguments: Any) -> float:
        """Predict the time of a launch with these arguments, as `perf_model` of `prune_configs_by` [s]."""
        call = self.call(arguments)
        _require_known(None, arguments)
        warps, stages = int(arguments.get("num_warps", 4)), int(arguments.get("num_stages", 3))
        return self._judged(None, call, tile(arguments, self.names), warps, stages).seconds

    def judge(self, configs: Iterable[Any], arguments: Mapping[str, Any]) -> list[Judged]:
        """Check and time every config, in the order given."""
        call, judged = self.call(arguments), []
        for config in configs:
            values = {**arguments, **config.kwargs}
            _require_known(config, values)
            sizes = tile(values, self.names)
            judged.append(self._judged(config, call, sizes, config.num_warps, config.num_stages))
        return judged

    def call(self, arguments: Mapping[str, Any]) -> Attention:
        """Make the workload of a launch."""
        if self.workload is None:
            direction = "backward" if self.kernel.startswith("backward") else "forward"
            return Attention(**shape(arguments, self.names), dtype=self.dtype, direction=direction)
        if isinstance(self.workload, Attention):
            return self.workload
        return as_attention(self.workload(arguments))

    def _judged(self, config: Any, call: Attention, sizes: tuple[int, int], warps: int, stages: int) -> Judged:
        check = check_triton(
            *sizes, _padded(call.head_dim), _padded(call.value_dim), dtype=as_type(call.dtype), warps=warps,
            stages=stages, arch=as_architecture(self.hardware.compute_capability or ""), kernel=self.kernel,
            version=self.version,
        )  # fmt: skip
        time = seconds(self.kernel, call, self.hardware, sizes, warps, stages, check) if check.fits else float("inf")
        return Judged(config, check, time)


def pruner(
    workload: Workload,
    hardware: Hardware | str,
    *,
    names: Mapping[str, str] | None = None,
    kernel: str = "forward",
    top: int | None = 8,
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
        A device of a known architecture: compute capability 8.0, 8.6, 8.9, 9.0, 10.0 or 12.0.
    names : mapping of str to str, optional
        Names of the kernel's arguments by role: ``{"block_q": "BM", "block_kv": "BN", "q_len": "SEQ"}``. Roles without
        a name are looked for under the usual ones (`BLOCK_M`, `N_CTX`, `HEAD_DIM`).
    kernel : {"forward", "block_sparse", "decode", "latent_decode", "backward_dkdv", "backward_dq", "backward"}
        Kind of kernel.
    top : int or None
        Configs to keep; None keeps all that fit [-].
    dtype : str
        Type of the operands where no workload is given.
    version : str, optional
        Version of Triton; the installed one, else the newest known.

    Raises
    ------
    InputError, SpecError, UnknownNameError
        A wrong argument; a device without an architecture on file; an unknown role.

    Examples
    --------
    >>> import iomodel
    >>> call = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
    >>> keep = iomodel.triton.pruner(call, "h100-sxm5", version="3.9.0")
    >>> sorted(keep.options)
    ['early_config_prune']
    """
    device = as_device(hardware)
    if not device.compute_capability:
        raise SpecError(
            f"compute_capability: {device.label} lacks it; the rules of Triton's compiler are known for "
            f"{', '.join(f'sm_{known}' for known in SHARED_LIMITS)}; `configs` lists forward configs for AMD"
        )
    as_architecture(device.compute_capability)
    if kernel not in ATTENTION:
        raise UnknownNameError("kernel", kernel, ATTENTION)
    if not (workload is None or isinstance(workload, Attention) or callable(workload)):
        raise InputError(
            f"workload: {shown(workload)} given; allowed: an Attention, a function that makes one, or None"
        )
    if top is not None and (not isinstance(top, int) or top < 1):
        raise InputError(f"top: {shown(top)} given; allowed: an integer from 1, or None")
    return Pruner(device, workload, kernel, bound(names or {}), top, dtype, version)


def _require_known(config: Any, arguments: Mapping[str, Any]) -> None:
    """Raise InputError for a launch without compiles on file: clusters, warps with roles, a limit of registers."""
    launch = {name: getattr(config, name, None) or arguments.get(name) for name in ("num_ctas", "maxnreg")}
    roles = next((name for name in arguments if name.lower() == "warp_specialize" and arguments[name]), None)
    if (launch["num_ctas"] or 1) != 1:
        raise InputError(f"num_ctas: {launch['num_ctas']} given; allowed: 1, the layout of one block is known")
    if launch["maxnreg"] is not None:
        raise InputError(f"maxnreg: {launch['maxnreg']} given; allowed: none, Triton's own choice is known")
    if roles is not None:
        raise InputError(f"{roles}: True given; allowed: False, the layout of warps without roles is known")


def as_type(dtype: str) -> str:
    """Resolve the type of the operands; raise InputError for one without compiles on file."""
    if dtype not in ELEMENTS:
        raise InputError(f"dtype: {dtype!r} given; allowed: {', '.join(ELEMENTS)}, for a Triton kernel")
    return dtype


def _padded(width: int) -> int:
    """Compute the width of the tiles for rows of this width: a power of two, or the two that kernels divide it into."""
    return width if width in DIVIDED else 1 << (width - 1).bit_length()


def _varied(ranked: list[Judged], names: Mapping[str, tuple[str, ...]]) -> list[Judged]:
    """Move configs behind all others that repeat a tile and its warps more often than `TWINS`."""
    seen: dict[tuple[Any, ...], int] = {}
    first: list[Judged] = []
    later: list[Judged] = []
    for each in ranked:
        kind = (*tile(each.config.kwargs, names), each.config.num_warps)
        seen[kind] = seen.get(kind, 0) + 1
        (first if seen[kind] <= TWINS else later).append(each)
    return first + later


DEVICES = {
    80: "a100-sxm4-80gb", 86: "a10", 89: "rtx4090", 90: "h100-sxm5", 100: "b200", 120: "rtx5090",
}  # fmt: skip
"""The device that stands for an architecture; configs are ranked by it."""


def prune(configs: Iterable[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
    """Prune an autotune list for the current GPU: `prune_configs_by={"early_config_prune": iomodel.triton.prune}`.

    The sizes of a forward pass are read from the arguments by their usual names; :func:`iomodel.triton.pruner` binds
    other names, kernels and devices.
    """
    return current()(configs, named_args, **kwargs)


def perf_model(**arguments: Any) -> float:
    """Predict the time of a launch on the current GPU: `prune_configs_by={"perf_model": ..., "top_k": 8}` [s]."""
    return current().perf_model(**arguments)


def current() -> Pruner:
    """Make the pruner of the current GPU."""
    return pruner(None, hardware(DEVICES[as_architecture(architecture())]))


def architecture() -> int | str:
    """Ask Triton for the architecture of the current GPU; raise InputError where there is none."""
    try:
        from triton.runtime import driver

        return driver.active.get_current_target().arch  # type: ignore[no-any-return]
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"hardware: no GPU that Triton knows ({error}); name one: iomodel.triton.pruner(workload, 'h100-sxm5')"
        ) from None
