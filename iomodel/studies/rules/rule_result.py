"""Rules that choose launches: what they decide, how far they are from the solver, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from iomodel.common.display import Result, Table
from iomodel.common.output_files import writable, written
from iomodel.common.results import Record
from iomodel.devices.device import as_device
from iomodel.errors import UnknownNameError
from iomodel.studies.rules.domain import Domain
from iomodel.studies.rules.engines import ENGINES, WHOLE, Engine
from iomodel.studies.rules.launches import SHARE, Launch
from iomodel.studies.rules.terms import FEATURES, Term, counted, letters_of

SUFFIXES = (".py", ".h", ".hpp", ".cpp", ".json")


def _percent(share: float) -> str:
    return f"{share:.2%}"


@dataclass(frozen=True)
class Node(Record):
    """A comparison of a rule, or a choice.

    Attributes
    ----------
    feature : str
        The quantity that is compared; empty where the node is a choice.
    numbers : tuple of int
        The numbers of the quantity, such as the rows of a tile.
    most : int
        The greatest value below; of a choice, the place of its launch.
    below, above : int
        Places of the next nodes; 0 of a choice.
    """

    feature: str
    numbers: tuple[int, ...]
    most: int
    below: int = 0
    above: int = 0

    @property
    def term(self) -> Term:
        """The quantity as an expression."""
        return FEATURES[self.feature](*self.numbers)


@dataclass(frozen=True)
class Regret(Record):
    """Predicted times of a way to choose over those of the solver, less one, on calls that served no choice.

    Attributes
    ----------
    calls : int
        Calls compared [-].
    alike : float
        Share of the calls with the solver's choice or one within 0.5 % of its time [-].
    mean, worst : float
        Mean and largest regret [-].
    """

    calls: int
    alike: float
    mean: float
    worst: float

    @classmethod
    def of(cls, seconds: Any, least: Any) -> Regret:
        """Compare times with the least ones, where both are known."""
        excess = seconds / least - 1
        known = excess[np.isfinite(excess)]
        if not len(known):
            return cls(0, 0.0, 0.0, 0.0)
        rounded = (round(float(value), 6) for value in ((known <= SHARE).mean(), known.mean(), known.max()))
        return cls(len(known), *rounded)


@dataclass(frozen=True)
class DeviceRule(Record):
    """The rule of one device.

    Attributes
    ----------
    hardware, implementation : str
        The device, and the kernels.
    units, most_splits : int
        SMs of the device; most splits of the kernels [-].
    launches : tuple of Launch
        The launches among which it chooses.
    nodes : tuple of Node
        The comparisons and choices, the first one first.
    held_out : Regret
        The regret of the rule.
    shipped : Regret
        The regret of what the library launches: its tile, with the splits of its own rule, on the same calls; of no
        calls where it ships no tile.
    shorter : Regret
        The regret of splits fixed at a length when half of its keys are there, as in a captured graph.
    ragged : Regret
        The regret on batches of sequences of different lengths.
    """

    hardware: str
    implementation: str
    units: int
    most_splits: int
    launches: tuple[Launch, ...]
    nodes: tuple[Node, ...]
    held_out: Regret
    shipped: Regret
    shorter: Regret
    ragged: Regret

    @property
    def counted(self) -> Mapping[str, Term]:
        """The counts of blocks that its comparisons name."""
        return counted((node.feature, node.numbers) for node in self.nodes)

    def places(self, calls: Mapping[str, Any]) -> Any:
        """Return the place of the chosen launch of each call."""
        letters = letters_of(calls)
        chosen = np.zeros(len(calls["q_len"]), dtype=np.int64)
        waiting = [(0, np.arange(len(chosen)))]
        while waiting:
            place, where = waiting.pop()
            node = self.nodes[place]
            if not node.feature:
                chosen[where] = node.most
            elif len(where):
                values = node.term.value({name: column[where] for name, column in letters.items()})
                waiting += [(node.below, where[values <= node.most]), (node.above, where[values > node.most])]
        return chosen


@dataclass(frozen=True)
class Rule(Result):
    """A function that chooses launches of a kernel family on some devices, learned from answers of the solver.

    Attributes
    ----------
    algorithm : str
        What is launched.
    domain : Domain
        The calls for which it answers.
    size, calls, seed : int
        The most bytes of a written rule [B]; calls of each device that it was learned from [-]; seed of the draws.
    devices : tuple of DeviceRule
        The rules of the devices.
    engine : str
        The engine whose function the rule is; empty where it chooses the whole launch.
    """

    algorithm: str
    domain: Domain
    size: int
    calls: int
    seed: int
    devices: tuple[DeviceRule, ...]
    engine: str = ""

    @cached_property
    def _by_device(self) -> Mapping[str, DeviceRule]:
        return {each.hardware: each for each in self.devices}

    @property
    def form_of_engine(self) -> Engine:
        """The form that its engine takes."""
        return ENGINES[self.engine] if self.engine else WHOLE

    def of(self, hardware: str) -> DeviceRule:
        """Return the rule of a device."""
        name = str(as_device(hardware).id)
        if name not in self._by_device:
            raise UnknownNameError("device of the rule", name, [*self._by_device])
        return self._by_device[name]

    def text(self, form: str | None = None) -> str:
        """Write the rule as source text without imports, or as a table.

        Parameters
        ----------
        form : {"python", "cpp", "json", "table"}, optional
            A Python function, a C++ function, the file of an engine that takes JSON, or the rule itself in JSON; that
            of the engine by default.
        """
        from iomodel.studies.rules.written import FORMS, check_form

        return FORMS[check_form(form, self)](self)

    def write(
        self, path: str | PathLike[str], form: str | None = None, *, overwrite: bool = False
    ) -> tuple[Path, Path | None]:
        """Write the rule to a file, and beside a function a file of tests that derives it again.

        Parameters
        ----------
        path : str or PathLike
            A .py, .h, .hpp, .cpp or .json file; the form follows from its ending.
        form : {"python", "cpp", "json", "table"}, optional
            The form, where it is given.
        overwrite : bool
            True to replace files.

        Returns
        -------
        tuple of Path
            The file, and that of the tests; None beside a table.
        """
        from iomodel.studies.rules.written import check_form, form_of
        from iomodel.studies.rules.written_test import written_test

        file = writable(path, SUFFIXES, overwrite=overwrite)
        chosen = check_form(form_of(file.suffix, self) if form is None else form, self)
        beside = file.with_name(f"test_{file.stem}.py")
        if chosen == "table":
            return written(file, self.text(chosen).encode(), overwrite=overwrite), None
        writable(beside, (".py",), overwrite=overwrite)
        written(file, self.text(chosen).encode(), overwrite=overwrite)
        return file, written(beside, written_test(self, chosen, file.name).encode(), overwrite=overwrite)

    def tables(self) -> list[Table | str]:
        """Return the regrets by device as a table."""
        rows = [
            (each.hardware, title, f"{regret.calls:,}", *map(_percent, (regret.alike, regret.mean, regret.worst)))
            for each in self.devices
            for title, regret in (
                ("rule", each.held_out), ("as shipped", each.shipped), ("keys halved", each.shorter),
                ("ragged", each.ragged),
            )
            if regret.calls
        ]  # fmt: skip
        kernels = ", ".join(f"{each.implementation} on {each.hardware}" for each in self.devices)
        notes = ["alike: the solver's choice or one within 0.5 % of its predicted time, on calls that served no choice"]
        title = f"rule of {self.algorithm}: {kernels}"
        return [Table(title, ("hardware", "choice", ">calls", ">alike", ">mean regret", ">worst"), rows, notes)]
