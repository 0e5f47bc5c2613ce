"""Lists of good configs for a call: as `triton.Config`, and as kernel options of FlexAttention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.triton.pruner import pruner
from iomodel.workloads.attention import Attention

ROWS, KEYS = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256)
WARPS, STAGES = (2, 4, 8), (1, 2, 3, 4, 5)
SPARSE_BLOCK = 128
"""Rows of a block of FlexAttention's default block mask; tiles divide it."""


@dataclass(frozen=True)
class Option:
    """A config without Triton: its arguments, warps and stages."""

    kwargs: Mapping[str, int]
    num_warps: int
    num_stages: int


def options(
    workload: Attention,
    hardware: Hardware | str,
    top: int,
    *,
    kernel: str | None = None,
    names: Mapping[str, str] | None = None,
    largest: int = 256,
    version: str | None = None,
) -> list[Option]:
    """List the fastest configs of all tiles up to `largest` rows that fit."""
    given = {"block_q": "BLOCK_M", "block_kv": "BLOCK_N", **(names or {})}
    keep = pruner(workload, hardware, names=given, kernel=kernel or kind(workload), top=top, version=version)
    return keep(_space(given, largest), {})


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
        A device of a known architecture.
    top : int
        Length of the list [-].
    kernel : {"forward", "decode", "latent_decode", "backward_dkdv", "backward_dq"}, optional
        Kind of kernel; by default that of the call, decode for a single query.
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


def flex_options(
    workload: Attention, hardware: Hardware | str, top: int = 8, *, version: str | None = None
) -> list[dict[str, int]]:
    """List the `top` kernel options of FlexAttention's forward pass of least predicted time.

    Each is a value of `kernel_options` of `torch.nn.attention.flex_attention.flex_attention`. Tiles divide the 128 rows
    of a default block mask.

    >>> import iomodel
    >>> call = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
    >>> sorted(flex_options(call, "h100-sxm5", top=1, version="3.9.0")[0])
    ['BLOCK_M', 'BLOCK_N', 'num_stages', 'num_warps']
    """
    listed = options(workload, hardware, top, kernel="forward", largest=SPARSE_BLOCK, version=version)
    return [{**each.kwargs, "num_warps": each.num_warps, "num_stages": each.num_stages} for each in listed]


def kind(workload: Attention) -> str:
    """Select the kind of kernel of a call."""
    if workload.direction != "forward":
        return "backward_dkdv"
    if workload.q_len > 1:
        return "forward"
    return "latent_decode" if workload.latent else "decode"


def _space(names: Mapping[str, str], largest: int) -> Iterator[Option]:
    for rows, keys, warps, stages in product(ROWS, KEYS, WARPS, STAGES):
        if max(rows, keys) <= largest:
            yield Option({names["block_q"]: rows, names["block_kv"]: keys}, warps, stages)
