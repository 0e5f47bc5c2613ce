"""What a calibration gives back: figures, what failed, and the hardware file they make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.calibration.device import Facts
from iomodel.calibration.figures import Figure, fields
from iomodel.calibration.measure import METHOD, Outcome
from iomodel.calibration.write import write_new
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware, from_data
from iomodel.hardware_fields import Provenance
from iomodel.show import Shown, table


@dataclass(frozen=True)
class Calibration(Shown):
    """What :func:`iomodel.calibrate` measured.

    Parameters
    ----------
    provenance : Provenance
        Device, driver, software, date, method.
    figures : mapping of name to Figure
        Each with ``value``, ``unit``, ``spread`` (least and largest of the repeats), ``method``; attention calls also
        with ``rate`` [FLOP/s].
    failed : mapping of name to str
        What could not be measured, and why.
    hardware : Hardware
        The device with these figures under ``measured``, as the file of :meth:`write` reads.
    seconds : float
        How long it took [s].
    """

    provenance: Provenance
    figures: Mapping[str, Figure]
    failed: Mapping[str, str]
    hardware: Hardware
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "provenance": self.provenance.model_dump(mode="json", exclude_none=True, exclude={"failed"}),
            "seconds": self.seconds,
            "figures": {name: figure.to_dict() for name, figure in self.figures.items()},
            "failed": dict(self.failed),
            "hardware": self.hardware.to_dict(),
        }

    def to_yaml(self) -> str:
        """The text of the hardware file."""
        return self.hardware.to_yaml()

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the hardware file, whole or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            A file that ends in ``.yaml`` or ``.yml``.
        force : bool
            Replace a file that is there.

        Raises
        ------
        InputError
            The file is there already, or cannot be written.
        """
        write_new(path, self.to_yaml(), force=force)

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        rows = [figure.shown() for figure in self.figures.values()]
        rows += [(name, "failed", reason, "") for name, reason in self.failed.items()]
        base = f", on the file {self.provenance.base}" if self.provenance.base else ""
        title = f"{self.provenance.device}: {len(self.figures)} figures in {self.seconds:.0f} s{base}"
        return table(title, ("figure", ">median", "least to largest", ">rate"), rows)


def assembled(facts: Facts, found: Outcome) -> Calibration:
    """The outcome, with the hardware file that it makes."""
    provenance = Provenance(
        device=facts.name,
        driver=facts.driver,
        software=facts.software,
        date=found.date,
        method=METHOD,
        base=found.base,
        failed=[f"{name}: {reason}" for name, reason in found.failed],
    )
    before = found.plain.get("measured", {})
    older = before if isinstance(before, dict) else {}
    told = provenance.model_dump(mode="json", exclude_none=True)
    measured = {**older, "provenance": told, **fields(found.figures, found.date)}
    hardware = from_data({**found.plain, "measured": measured}, f"calibration of {facts.name}")
    figures = FrozenDict({figure.name: figure for figure in found.figures})
    return Calibration(provenance, figures, FrozenDict(found.failed), hardware, round(found.seconds, 3))
