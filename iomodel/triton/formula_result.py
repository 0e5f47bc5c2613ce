"""Result of an inference: a formula for each count of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iomodel.common.display import Result, Table

if TYPE_CHECKING:
    from sympy import Expr

KINDS = ("reads", "writes")


@dataclass(frozen=True)
class Inference(Result):
    """Formulas that equal the counts of a kernel at every shape that was run.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    points, fresh : int
        Shapes from which the formulas were made, and further ones on which they were checked [-].
    reads, writes : mapping of tensor name to expression
        Traffic [elements].
    unexplained : tuple of str
        Counts without a formula of the terms, such as "reads K".
    differences : mapping of str to expression
        Inferred less declared formula of each count, such as "reads K"; empty without a declared algorithm.
    equal : bool
        Whether every count has the declared formula.
    """

    derived = ("equal",)

    kernel: str
    points: int
    fresh: int
    reads: Mapping[str, Expr]
    writes: Mapping[str, Expr]
    unexplained: tuple[str, ...]
    differences: Mapping[str, Expr]

    @property
    def equal(self) -> bool:
        """True if every count has the declared formula."""
        return bool(self.differences) and not self.unexplained and not any(self.differences.values())

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        rows = [
            (f"{kind} {name}", str(formula), str(self.differences.get(f"{kind} {name}", "-")))
            for kind in KINDS
            for name, formula in getattr(self, kind).items()
        ]
        rows += [(count, "no formula of these terms", "-") for count in self.unexplained]
        rows += [
            (count, "0", str(difference))
            for count, difference in self.differences.items()
            if count not in {row[0] for row in rows}
        ]
        title = f"{self.kernel}: formulas of {self.points} shapes, checked on {self.fresh} others [elements]"
        return [Table(title, ("count", "formula", "less the declared one"), rows, folded=True)]
