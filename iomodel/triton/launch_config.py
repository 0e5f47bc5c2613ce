"""Configs of autotune lists in any form: `triton.Config`, a dict, a dataclass or another object with attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.errors import InputError, shown

WARPS, STAGES = 4, 3
"""`num_warps` and `num_stages` where a config has none, as for Triton."""
LAUNCH = frozenset({"num_ctas", "maxnreg", "pre_hook", "ir_override"})
"""Options of a launch that are attributes of a `triton.Config` [-]."""
ROLES = frozenset({"warp_specialize", "num_consumer_groups"})
"""Names of options, in small letters, that give warps roles of their own."""


@dataclass(frozen=True)
class LaunchConfig:
    """A config by its arguments and the options of its launch; `arguments` has both but warps and stages."""

    arguments: Mapping[str, Any]
    warps: int
    stages: int

    @classmethod
    def of(cls, config: Any) -> LaunchConfig:
        """Read a config; raise InputError for an object without arguments, or with a wrong number of warps.

        >>> LaunchConfig.of({"BLOCK_M": 64, "num_warps": 8})
        LaunchConfig(arguments={'BLOCK_M': 64}, warps=8, stages=3)
        """
        values = _values(config)
        numbers = []
        for name, usual in (("num_warps", WARPS), ("num_stages", STAGES)):
            number = values.pop(name, None)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                raise InputError(f"{name}: {shown(number)} given; allowed: an integer from 1")
            numbers.append(usual if number is None else int(number))
        return cls({name: value for name, value in values.items() if value is not None}, *numbers)

    def require_known(self) -> None:
        """Raise InputError for a launch without compiles on file: clusters, warps with roles, a limit of registers."""
        given = {name.lower(): (name, value) for name, value in self.arguments.items()}
        for name, usual, words in (
            ("num_ctas", 1, "the layout of one block is known"),
            ("maxnreg", None, "Triton's own choice is known"),
        ):
            value = given.get(name, (name, None))[1]
            if value not in (None, 0, usual):
                allowed = "none" if usual is None else usual
                raise InputError(f"{name}: {shown(value)} given; allowed: {allowed}, {words}")
        for name in ROLES & set(given):
            if given[name][1]:
                raise InputError(
                    f"{given[name][0]}: {given[name][1]!r} given; allowed: False, the layout of warps without roles is "
                    "known"
                )


def _values(config: Any) -> dict[str, Any]:
    """Collect the values of a config by name."""
    if isinstance(config, Mapping):
        return {str(name): value for name, value in config.items()}
    names = (*getattr(config, "__slots__", ()), *getattr(config, "_fields", ()))
    values = {name: getattr(config, name, None) for name in names} | dict(getattr(config, "__dict__", {}))
    kwargs = values.pop("kwargs", None)
    if isinstance(kwargs, Mapping):
        launch = {"num_warps", "num_stages", *LAUNCH}
        return {**{name: value for name, value in values.items() if name in launch}, **kwargs}
    if not values:
        raise InputError(f"config: {shown(config)} given; allowed: a triton.Config, a dict, or an object with fields")
    return values
