"""Result of a calibration: figures, failures, and the hardware file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.output_files import writable, written
from iomodel.devices.calibration.experiments import Facts
from iomodel.devices.calibration.measured_figures import Figure, fields
from iomodel.devices.device import Hardware, from_data
from iomodel.devices.device_fields import Provenance

METHOD = "warm-up, then repeats between events on the device while the host is ahead; median, least and largest"
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Measurements:
    """Results of the experiments of one calibration, before they become a hardware file."""

    figures: tuple[Figure, ...]
    failed: tuple[tuple[str, str], ...]
    plain: dict[str, object]
    base: str | None
    date: str
    seconds: float


@dataclass(frozen=True)
class Calibration(Result):
    """Result of one call of :func:`iomodel.devices.calibrate`.

    Parameters
    ----------
    provenance : Provenance
        Device, driver, software, date, method.
    figures : mapping of name to Figure
        Each with ``value``, ``unit``, ``spread`` (least and largest of the repeats), ``method``; attention calls also
        with ``rate`` [FLOP/s].
    failed : mapping of name to str
        Figures that could not be measured, with reasons.
    hardware : Hardware
        The device with these figures under ``measured``, as written by :meth:`write`.
    seconds : float
        Duration [s].
    """

    provenance: Provenance
    figures: Mapping[str, Figure]
    failed: Mapping[str, str]
    hardware: Hardware
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, with the whole hardware file."""
        data = super().to_dict()
        data.pop("hardware_data", None)
        provenance = {name: value for name, value in data["provenance"].items() if value not in (None, [])}
        return {**data, "provenance": provenance, "hardware": self.hardware.to_dict()}

    def to_yaml(self) -> str:
        """Format the hardware file."""
        return self.hardware.to_yaml()

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the hardware file atomically.

        Parameters
        ----------
        path : str or os.PathLike
            A file that ends in ``.yaml`` or ``.yml``.
        force : bool
            Replace an existing file.

        Raises
        ------
        InputError
            The file exists already, or cannot be written.
        """
        written(writable_file(path, force=force), self.to_yaml().encode(), overwrite=force)

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        rows = [figure.shown() for figure in self.figures.values()]
        rows += [(name, "failed", reason, "") for name, reason in self.failed.items()]
        base = f", on the file {self.provenance.base}" if self.provenance.base else ""
        title = f"{self.provenance.device}: {len(self.figures)} figures in {self.seconds:.0f} s{base}"
        return [Table(title, ("figure", ">median", "least to largest", ">rate"), rows)]


def writable_file(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a hardware file may be written to a path and return the path, or raise InputError."""
    return writable(path, SUFFIXES, overwrite=force, switch="force=True")


def assembled(facts: Facts, measurements: Measurements) -> Calibration:
    """Assemble the calibration with its hardware file."""
    provenance = Provenance(
        device=facts.name,
        driver=facts.driver,
        software=facts.software,
        date=measurements.date,
        method=METHOD,
        base=measurements.base,
        failed=[f"{name}: {reason}" for name, reason in measurements.failed],
    )
    before = measurements.plain.get("measured", {})
    older = before if isinstance(before, dict) else {}
    details = provenance.model_dump(mode="json", exclude_none=True)
    measured = {**older, "provenance": details, **fields(measurements.figures, measurements.date)}
    hardware = from_data({**measurements.plain, "measured": measured}, f"calibration of {facts.name}")
    figures = FrozenDict({figure.name: figure for figure in measurements.figures})
    return Calibration(provenance, figures, FrozenDict(measurements.failed), hardware, round(measurements.seconds, 3))
