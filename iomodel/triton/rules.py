"""Rules that choose configs of FlexAttention, to be written as functions without imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, IOModelError, shown
from iomodel.placement.triton_target import as_version
from iomodel.studies.rules.domain import Domain
from iomodel.studies.rules.engines import engine_of
from iomodel.studies.rules.launches import Calls, Launch, units_of
from iomodel.studies.rules.rule import learned
from iomodel.studies.rules.rule_result import Rule
from iomodel.studies.rules.written import MOST_BYTES
from iomodel.triton.listing import SPARSE_BLOCK, ranked
from iomodel.triton.pruner import Pruner, pruner
from iomodel.triton.seconds import described_by
from iomodel.triton.shipped_configs import shipped_configs
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

KERNEL, ENGINE = "block_sparse", "flex-attention"
ALGORITHM = described_by(KERNEL)
"""The algorithm that counts the kernel."""
CALLS = 1200


@dataclass(frozen=True)
class FlexKernels:
    """FlexAttention's forward kernel on a device, whose launches are the configs that fit.

    Its compiler is Triton's of a version; `name`, `units`, ... are those of `iomodel.studies.rules.launches.Kernels`.
    """

    device: Hardware
    dtype: str
    version: str

    most_splits = 1
    ships = True

    @property
    def name(self) -> str:
        """The compiler and its version."""
        return f"triton-{self.version}"

    @cached_property
    def units(self) -> int:
        """The SMs of the device."""
        return units_of(self.device, self.dtype)

    def takes(self, head_dim: int) -> bool:
        """Check that some config of the kernel runs rows of a width."""
        try:
            return bool(self._ranked(Attention(q_len=SPARSE_BLOCK, head_dim=head_dim, dtype=self.dtype)))
        except IOModelError:
            return False

    def solved(self, calls: Calls) -> tuple[list[Launch], Any]:
        """Rank all configs at each call: the fastest, and its time [s]."""
        best = [self._ranked(call)[0] for call in self._asked(calls)]
        launches = [_launch(each.tiles[0], each.tiles[1], each.warps, each.stages) for each in best]
        return launches, np.array([each.seconds for each in best])

    def shipped(self, calls: Calls) -> Any:
        """Time the config that PyTorch ships for the width of each call; NaN where it ships none [s]."""
        known = shipped_configs()
        own = [known.get((KERNEL, self._keep(call).arch, call.head_dim)) for call in self._asked(calls)]
        launches = [_launch(*(config or (0, 0, 0, 0))) for config in own]
        seconds = self.times(calls, launches, np.arange(len(launches)))
        return np.where(np.isfinite(seconds), seconds, np.nan)

    def times(self, calls: Calls, launches: Sequence[Launch], chosen: Any = None) -> Any:
        """Time every config at every call, or the chosen one of each; infinite for one that does not fit [s]."""
        rows = []
        for place, call in enumerate(self._asked(calls)):
            wanted = launches if chosen is None else [launches[chosen[place]]]
            judged = self._keep(call).judge(map(_config, wanted), {})
            rows.append([each.seconds if each.timed else np.inf for each in judged])
        return np.array(rows).T if chosen is None else np.array(rows)[:, 0]

    def ragged(self, call: VarlenAttention, launch: Launch) -> tuple[float, float]:
        """Refuse sequences of different lengths, whose keys no launch of the kernel divides."""
        raise NotImplementedError

    def _asked(self, calls: Calls) -> Iterator[Attention]:
        for place in range(len(calls["q_len"])):
            one = {name: column[place].item() for name, column in calls.items()}
            yield Attention(**one, dtype=self.dtype)

    def _keep(self, call: Attention) -> Pruner:
        return pruner(call, self.device, kernel=KERNEL, top=None, version=self.version)

    def _ranked(self, call: Attention) -> Any:
        return ranked(call, self.device, kernel=KERNEL, largest=SPARSE_BLOCK, version=self.version)


def _launch(rows: int, keys: int, warps: int, stages: int) -> Launch:
    return Launch(rows, keys, warps, stages, packed=False)


def _config(launch: Launch) -> Mapping[str, int]:
    return {
        "BLOCK_M": launch.block_q, "BLOCK_N": launch.block_kv, "num_warps": launch.warps, "num_stages": launch.stages,
    }  # fmt: skip


@strict
def rule(
    hardware: Hardware | str | Sequence[Hardware | str],
    *,
    engine: str = ENGINE,
    domain: Domain | None = None,
    size: int = MOST_BYTES,
    calls: int = CALLS,
    seed: int = 0,
    version: str | None = None,
    progress: bool = False,
) -> Rule:
    """Learn a rule that chooses the `kernel_options` of FlexAttention's forward pass, as :func:`iomodel.rule` does.

    The written function returns a dict, whose options have the prefix `fwd_` and so leave the backward pass as it is;
    None outside the domain. The configs are those of :func:`iomodel.triton.flex_options`.

    Parameters
    ----------
    hardware : str, Hardware or sequence of them
        The devices, of architectures that the rules of Triton's compiler know.
    engine : {"flex-attention"}
        The engine whose argument the rule is.
    domain : Domain, optional
        The calls for which the rule answers: at least 128 queries of 64, 128 or 256 elements and up to 131,072 keys.
    size : int
        Most bytes of the written rule [B].
    calls : int
        Calls of each device to learn from [-].
    seed : int
        Seed of the draws; the same arguments give the same rule.
    version : str, optional
        Version of Triton; the installed one, else the newest known.
    progress : bool
        True for a progress bar.

    Raises
    ------
    InputError
        A device without rules of its compiler, a number out of range, or a domain of fewer than 128 queries.

    Examples
    --------
    >>> import iomodel
    >>> short = iomodel.results.Domain(min_q_len=1024, max_q_len=4096, max_kv_len=4096, head_dims=(128,))
    >>> found = iomodel.triton.rule("a100-sxm4-80gb", domain=short, calls=100, version="3.9.0")
    >>> "def kernel_options(device, q_len" in found.text()
    True
    """
    form = engine_of(engine, "iomodel.triton.rule")
    names: list[Any] = [*hardware] if isinstance(hardware, list | tuple) else [hardware]
    if not names:
        raise InputError("hardware: none given; allowed: devices, such as ['a100-sxm4-80gb', 'h100-sxm5']")
    asked = form.domain if domain is None else domain
    if not isinstance(asked, Domain):
        raise InputError(f"domain: {shown(domain)} given; allowed: an iomodel.results.Domain")
    if asked.min_q_len < SPARSE_BLOCK:
        raise InputError(
            f"min_q_len: {asked.min_q_len} given; allowed: from {SPARSE_BLOCK}, below which FlexAttention decodes"
        )
    most, drawn = as_integer("size", size), as_integer("calls", calls, least=100)
    plain = Rule(ALGORITHM.name, asked, most, drawn, as_integer("seed", seed, least=0), (), engine)
    kernels = [FlexKernels(as_device(name), asked.dtype, as_version(version)) for name in names]
    return learned(plain, kernels, progress=progress is True)
