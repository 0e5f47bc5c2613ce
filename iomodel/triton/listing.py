"""Lists of good configs for a call: as `triton.Config`, as source text, and as kernel options of FlexAttention."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.solving.export import MOST, SHARE
from iomodel.solving.solve import solve
from iomodel.triton.amd import AMD, on_amd
from iomodel.triton.pruner import TOP, Judged, pruner
from iomodel.triton.seconds import described_by, launch_options
from iomodel.workloads.attention import Attention

ROWS, KEYS = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256)
WARPS, STAGES = (2, 4, 8), (1, 2, 3, 4, 5)
SPARSE_BLOCK = 128
"""Rows of a block of FlexAttention's default block mask; tiles divide it."""
LARGEST = 256
"""Most rows of a tile [rows]."""
LISTS = {"triton": "configs", "helion": "seeds", "flex-attention": "kernel_options"}
"""Names of the lists that are written, by form."""
MICRO = 1e6
"""Microseconds of a second."""


@dataclass(frozen=True)
class Option:
    """A config without Triton: its arguments, warps and stages."""

    kwargs: Mapping[str, int]
    num_warps: int
    num_stages: int

    def __str__(self) -> str:
        return f"triton.Config({json.dumps(self.kwargs)}, num_warps={self.num_warps}, num_stages={self.num_stages})"


def options(
    workload: Attention,
    hardware: Hardware | str,
    top: int,
    *,
    kernel: str | None = None,
    names: Mapping[str, str] | None = None,
    largest: int = LARGEST,
    version: str | None = None,
) -> list[Option]:
    """List the fastest configs of all tiles up to `largest` rows that fit."""
    most = as_integer("top", top)
    if on_amd(as_device(hardware), workload, kernel or kind(workload)):
        return [option for option, _ in amd_options(workload, as_device(hardware), names, most)]
    listed = ranked(workload, hardware, kernel=kernel, names=names, largest=largest, version=version)
    return [each.config for each in listed[:most]]


def amd_options(
    workload: Attention, device: Hardware, names: Mapping[str, str] | None, top: int
) -> list[tuple[Option, float]]:
    """List the fastest configs of Triton's forward kernel on AMD with their times [s]."""
    solution = solve(described_by("forward"), workload, device, implementation=AMD, packed=False, top=max(2, top))
    tiles = {"block_q": "BLOCK_M", "block_kv": "BLOCK_N", **(names or {})}
    return [
        (
            Option(
                {tiles[name]: each.tiles[name] for name in ("block_q", "block_kv")},
                each.tiles["warps"], each.tiles["stages"],
            ),
            each.seconds or 0.0,
        )
        for each in solution.ranked[:top]
    ]  # fmt: skip


def ranked(
    workload: Attention,
    hardware: Hardware | str,
    *,
    kernel: str | None = None,
    names: Mapping[str, str] | None = None,
    largest: int = LARGEST,
    version: str | None = None,
) -> list[Judged]:
    """Rank all configs of tiles up to `largest` rows that fit, the fastest first."""
    bound, chosen_kernel = {"block_q": "BLOCK_M", "block_kv": "BLOCK_N", **(names or {})}, kernel or kind(workload)
    keep = pruner(workload, hardware, names=bound, kernel=chosen_kernel, top=None, version=version)
    return keep.ranked(_space(bound, largest, chosen_kernel), {})


def source(
    algorithm: str,
    workload: Attention,
    hardware: Hardware | str,
    *,
    form: str = "triton",
    top: int | None = None,
    version: str | None = None,
) -> str:
    """Write configs of a kernel as source text: up to eight within 5 % of the least time, or the `top` fastest.

    Each has its time in a comment. Splits and packed heads, which are no arguments of a config, have one of their own.
    The form is "triton", "helion" for the seeds of Helion's search or "flex-attention" for its kernel options.

    >>> import iomodel
    >>> call = iomodel.Attention(heads=16, q_len=4096, head_dim=128)
    >>> print(source("flash2", call, "a100-sxm4-80gb", version="3.9.0").splitlines()[0])
    configs = [
    """
    kernel, largest, write = _written(form, workload)
    allowed = described_by(kernel).name
    if algorithm != allowed:
        raise InputError(f"emit: {form!r} given for {algorithm}; allowed: 'cute', 'json', or the algorithm {allowed}")
    if on_amd(as_device(hardware), workload, kernel):
        listed = amd_options(workload, as_device(hardware), None, MOST)
    else:
        judged = ranked(workload, hardware, kernel=kernel, largest=largest, version=version)
        listed = [(each.config, each.seconds) for each in judged]
    near = [each for each in listed if each[1] <= (1 + SHARE) * listed[0][1]][:TOP]
    chosen = near if top is None else listed[: as_integer("top", top)]
    divided = launch_options(kernel, workload, as_device(hardware))
    notes = [f"    # {', '.join(f'{name} = {value}' for name, value in divided.items())}"] if divided else []
    lines = [f"    {write(config)},  # {seconds * MICRO:,.1f} us" for config, seconds in chosen]
    if form != "triton":
        size = f"{workload.batch} x {workload.heads} heads, {workload.q_len} queries, {workload.kv_len} keys"
        about = f"# {size}, {workload.head_dim} elements, {workload.dtype} on {as_device(hardware).id}; predicted times"
        return "\n".join([about, f"{LISTS[form]} = [", *notes, *lines, "]"])
    return "\n".join(["configs = [", *notes, *lines, "]"])


def _written(form: str, workload: Attention) -> tuple[str, int, Callable[[Option], str]]:
    """Return the kind of kernel of a form, its largest tile, and the writer of a config."""
    own = kind(workload)
    if form == "triton":
        return own, LARGEST, str
    if form == "helion":
        if own != "forward":
            raise InputError(f"emit: 'helion' given for a kernel {own}; allowed: a forward pass of several queries")
        return own, LARGEST, lambda option: json.dumps(_seed(option))
    as_choice("emit", form, LISTS)
    if own == "forward":
        return "block_sparse", SPARSE_BLOCK, lambda option: json.dumps(_prefixed(_forward_options(option)))
    if own == "backward_dkdv":
        return "backward", SPARSE_BLOCK, lambda option: json.dumps(_backward_options(option))
    raise InputError(f"emit: 'flex-attention' given for a kernel {own}; allowed: a pass of several queries")


def _seed(option: Option) -> dict[str, Any]:
    """Write a config as one of Helion, for tiles of one head, then of queries and of keys."""
    tiles = [1, option.kwargs["BLOCK_M"], option.kwargs["BLOCK_N"]]
    return {"block_sizes": tiles, "num_warps": option.num_warps, "num_stages": option.num_stages}


def _prefixed(options: Mapping[str, int]) -> dict[str, int]:
    return {f"fwd_{name}": value for name, value in options.items()}


@strict
def configs(
    workload: Attention,
    hardware: Hardware | str,
    top: int = 8,
    *,
    kernel: str | None = None,
    names: Mapping[str, str] | None = None,
    version: str | None = None,
) -> list[Any]:
    """List the `top` configs of least predicted time, for `triton.autotune`.

    Parameters
    ----------
    workload : Attention
        The call that is tuned for.
    hardware : Hardware or str
        A device of a known architecture; for a forward kernel also AMD's.
    top : int
        Length of the list [-].
    kernel : str, optional
        Kind of kernel, as :func:`iomodel.triton.pruner` takes it; by default that of the call, decode for one query.
    names : mapping of str to str, optional
        Names of the tiles: ``{"block_q": "BLOCK_M", "block_kv": "BLOCK_N"}``.
    version : str, optional
        Version of Triton; the installed one, else the newest known.

    Returns
    -------
    list of triton.Config

    Raises
    ------
    InputError
        Triton is not installed, or a wrong argument.
    InfeasibleError
        No config fits.
    """
    try:
        from triton import Config
    except ImportError:
        raise InputError("triton: not installed; pip install 'iomodel[triton]', or take flex_options") from None
    listed = options(workload, hardware, top, kernel=kernel, names=names, version=version)
    return [Config(dict(each.kwargs), num_warps=each.num_warps, num_stages=each.num_stages) for each in listed]


@strict
def flex_options(
    workload: Attention, hardware: Hardware | str, top: int = 8, *, version: str | None = None
) -> list[dict[str, int]]:
    """List the `top` kernel options of FlexAttention of least predicted time, for the pass of the call.

    Each is a value of `kernel_options` of `torch.nn.attention.flex_attention.flex_attention`; those of both passes can
    be merged. Tiles divide the 128 rows of a default block mask. The backward pass is one launch; its programs take
    BLOCK_N1 keys by BLOCK_M1 queries, or BLOCK_M2 queries by BLOCK_N2 keys.

    >>> import iomodel
    >>> call = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
    >>> sorted(flex_options(call, "h100-sxm5", top=1, version="3.9.0")[0])
    ['BLOCK_M', 'BLOCK_N', 'num_stages', 'num_warps']
    >>> call = call.model_copy(update={"direction": "backward"})
    >>> sorted(flex_options(call, "h100-sxm5", top=1, version="3.9.0")[0])[:4]
    ['bwd_BLOCK_M1', 'bwd_BLOCK_M2', 'bwd_BLOCK_N1', 'bwd_BLOCK_N2']
    """
    backward = kind(workload).startswith("backward")
    kernel = "backward" if backward else "block_sparse"
    listed = options(workload, hardware, top, kernel=kernel, largest=SPARSE_BLOCK, version=version)
    return [_backward_options(each) if backward else _forward_options(each) for each in listed]


def _forward_options(option: Option) -> dict[str, int]:
    return {**option.kwargs, "num_warps": option.num_warps, "num_stages": option.num_stages}


def _backward_options(option: Option) -> dict[str, int]:
    step, own = option.kwargs["BLOCK_M"], option.kwargs["BLOCK_N"]
    tiles = {"BLOCK_M1": step, "BLOCK_N1": own, "BLOCK_M2": own, "BLOCK_N2": step}
    launch = {"num_warps": option.num_warps, "num_stages": option.num_stages}
    return {f"bwd_{name}": value for name, value in {**tiles, **launch}.items()}


def kind(workload: Attention) -> str:
    """Select the kind of kernel of a call."""
    if not isinstance(workload, Attention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention")
    if workload.direction != "forward":
        return "backward_dkdv"
    if workload.q_len > 1:
        return "forward"
    return "latent_decode" if workload.latent else "decode_paged" if workload.page_size else "decode"


def _space(names: Mapping[str, str], largest: int, kernel: str) -> Iterator[Option]:
    """Iterate over configs; a program of a launch of two kinds steps by a tile that divides its own."""
    for rows, keys, warps, stages in product(ROWS, KEYS, WARPS, STAGES):
        if max(rows, keys) <= largest and (kernel != "backward" or keys % rows == 0):
            yield Option({names["block_q"]: rows, names["block_kv"]: keys}, warps, stages)
