"""A sweep as an xarray Dataset: dimensions, units and what is the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.errors import InputError
from iomodel.sweeps.fields import DEFAULTS, Values, meaning
from iomodel.sweeps.plan import Plan, package_version

if TYPE_CHECKING:
    from xarray import Dataset

EXTRA = "pip install 'iomodel[sweep]'"
QUANTITIES = {
    "hbm_bytes": ("HBM traffic", "B"),
    "hbm_reads": ("HBM reads", "elements"),
    "hbm_writes": ("HBM writes", "elements"),
    "hbm_elements": ("HBM accesses", "elements"),
    "atomics": ("atomic additions to HBM", "elements"),
    "flops": ("matrix FLOPs of the visited tiles", "FLOP"),
    "useful_flops": ("matrix FLOPs of the visible pairs", "FLOP"),
    "exps": ("exponentials", "-"),
    "tanhs": ("hyperbolic tangents", "-"),
    "randoms": ("random numbers", "-"),
    "footprint_elements": ("SRAM footprint", "elements"),
    "footprint_bytes": ("SRAM footprint", "B"),
    "peak_hbm_elements": ("peak HBM allocation", "elements"),
    "peak_hbm_bytes": ("peak HBM allocation", "B"),
}
"""What each variable means, and its unit."""


def import_xarray() -> Any:
    """The xarray module, or InputError that says how to get it."""
    try:
        import xarray
    except ImportError:
        raise InputError(f"xarray: not installed, and sweeps need it; allowed: after {EXTRA}") from None
    return xarray


def described(name: str) -> dict[str, str]:
    """The attributes of a variable."""
    if name in QUANTITIES:
        long_name, units = QUANTITIES[name]
    elif (known := meaning(name)) is not None:
        long_name, units = known
    else:
        side, _, tensor = name.partition("_")
        long_name, units = f"HBM {side} of {tensor}", "elements"
    return {"long_name": long_name, "units": units}


def dataset(plan: Plan, data: Mapping[str, Any]) -> Dataset:
    """The variables over the plan's dimensions."""
    coords = {}
    for axis in plan.axes:
        for field, values in axis.fields.items():
            known = meaning(field)
            about = {"long_name": known[0], "units": known[1]} if known else {}
            coords[field] = (axis.name, _labels(values), about)
    variables = {name: (plan.dims, values, described(name)) for name, values in data.items()}
    made: Dataset = import_xarray().Dataset(variables, coords, _attributes(plan))
    return made


def _labels(values: Values) -> Any:
    """A coordinate: numbers and switches as they are, all else as text."""
    if isinstance(values, tuple):
        kinds = {type(value) for value in values}
        if kinds <= {bool}:
            return np.array(values, dtype=bool)
        if kinds <= {int, float}:
            return np.array(values, dtype=float)
        return np.array([_text(value) for value in values], dtype=object)
    return values


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or "none"
    return str(getattr(value, "name", None) or repr(value))


def _attributes(plan: Plan) -> dict[str, Any]:
    """What is the same at every point; switches as 0 and 1, which every file format holds."""
    varied = {field for axis in plan.axes for field in axis.fields}
    told = {**{name: value for name, value in DEFAULTS.items() if name not in varied}, **plan.constants}
    simple = {
        name: int(value) if isinstance(value, bool) else value if isinstance(value, int | float) else _text(value)
        for name, value in told.items()
    }
    return {"iomodel": package_version(), **simple}
