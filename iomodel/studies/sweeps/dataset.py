"""Sweeps as xarray Datasets: dimensions, units and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.common.headers import package_version
from iomodel.errors import InputError
from iomodel.studies.sweeps.fields import DEFAULTS, Values, meaning
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.point_question import ANSWERS

if TYPE_CHECKING:
    from xarray import Dataset

EXTRA = "pip install 'iomodel[sweep]'"


def import_xarray() -> Any:
    """Import xarray, or raise InputError with the command that installs it."""
    try:
        import xarray
    except ImportError:
        raise InputError(f"xarray: not installed; sweeps need it: {EXTRA}") from None
    return xarray


def described(name: str) -> dict[str, str]:
    """Return the attributes of a variable."""
    if name in ANSWERS:
        long_name, units = ANSWERS[name].label, ANSWERS[name].unit
    elif (known := meaning(name)) is not None:
        long_name, units = known
    else:
        side, _, tensor = name.partition("_")
        long_name, units = f"HBM {side} of {tensor}", "elements"
    return {"long_name": long_name, "units": units}


def dataset(plan: SweepPlan, data: Mapping[str, Any]) -> Dataset:
    """Build the Dataset of the variables over the plan's dimensions."""
    coords = {}
    for axis in plan.axes:
        for field, values in axis.fields.items():
            known = meaning(field)
            about = {"long_name": known[0], "units": known[1]} if known else {}
            coords[field] = (axis.name, _labels(values), about)
    variables = {name: (plan.dims, values, described(name)) for name, values in data.items()}
    result: Dataset = import_xarray().Dataset(variables, coords, _attributes(plan))
    return result


def _labels(values: Values) -> Any:
    """Return the labels of a coordinate: numbers and switches unchanged, other values as text."""
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


def _attributes(plan: SweepPlan) -> dict[str, Any]:
    """Collect the fields constant over all points; switches as 0 and 1, supported by every file format."""
    varied = {field for axis in plan.axes for field in axis.fields}
    fields = {
        **{name: value for name, value in DEFAULTS[plan.operation].items() if name not in varied},
        **plan.constants,
    }
    simple = {
        name: int(value) if isinstance(value, bool) else value if isinstance(value, int | float) else _text(value)
        for name, value in fields.items()
    }
    return {"iomodel": package_version(), **simple}
