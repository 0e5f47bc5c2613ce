"""A stand-in for Triton's autotuner: the protocol of `prune_configs_by`, as its documentation states it.

The functions are called with the same arguments as by `triton.runtime.autotuner.Autotuner`; no kernel is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Config:
    kwargs: Mapping[str, int]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1

    def all_kwargs(self) -> dict[str, int]:
        launch = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages}
        return {**self.kwargs, **launch}


@dataclass
class Autotuner:
    """A kernel whose launch chooses the config of least time among those that the pruning leaves."""

    arg_names: Sequence[str]
    configs: Sequence[Config]
    prune_configs_by: Mapping[str, Any]
    bench: Callable[[Config], float]
    tried: list[Config] = field(default_factory=list)

    def run(self, *args: Any, **kwargs: Any) -> Config:
        named = dict(zip(self.arg_names, args, strict=False))
        self.tried = list(self.pruned(named, kwargs))
        return min(self.tried, key=self.bench)

    def pruned(self, named: dict[str, Any], kwargs: dict[str, Any]) -> Sequence[Config]:
        configs = self.configs
        if early := self.prune_configs_by.get("early_config_prune"):
            configs = early(configs, named, **kwargs)
            assert configs, "early_config_prune returns at least one config"
        if model := self.prune_configs_by.get("perf_model"):
            times = {config: model(**named, **kwargs, **config.all_kwargs()) for config in configs}
            configs = sorted(times, key=times.__getitem__)[: self.prune_configs_by["top_k"]]
        return configs
