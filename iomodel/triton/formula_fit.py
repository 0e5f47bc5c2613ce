"""Fit of one formula to each count of a kernel, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown

if TYPE_CHECKING:
    from sympy import Expr

    from iomodel.counting.expressions import Expressions

FOLLOWING = {
    "kv_len": "q_len", "value_dim": "head_dim", "kv_heads": "heads", "batch": "", "heads": "", "groups": "",
    "splits": "",
}  # fmt: skip
"""Sizes that equal another one where they are not given, or one."""

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


class FormulaFit:
    """The search for one formula for each count."""

    def __init__(
        self,
        shapes: list[dict[str, int]],
        counted: list[Any],
        tiled: Mapping[str, str],
        declared: Expressions | None,
        names: Mapping[str, str | None],
        most: int,
        points: int,
    ) -> None:
        from iomodel.triton.formula_terms import terms, value

        self.shapes, self.points, self.most = shapes, points, most
        self.terms = terms(list(shapes[0]), tiled)
        self.columns = [[value(term, shape) for shape in shapes] for term in self.terms]
        self.symbols = _symbols(list(shapes[0]))
        self.kernel = str(getattr(counted[0], "kernel", "kernel"))
        self.counts = _by_count(counted, names)
        self.declared = _declared(declared, self.symbols)

    def result(self) -> Inference:
        """Return the formulas, and their differences from the declared ones."""
        from sympy import Integer, expand

        formulas = {name: self._formula(name, series) for name, series in self.counts.items()}
        known = {name: formula for name, formula in formulas.items() if formula is not None}
        differences = {
            name: expand(known.get(name, Integer(0)) - self.declared.get(name, Integer(0)))
            for name in {**known, **self.declared}
            if self.declared and name not in formulas.keys() - known.keys()
        }
        reads, writes = (
            FrozenDict({name.split(" ", 1)[1]: each for name, each in known.items() if name.startswith(kind)})
            for kind in KINDS
        )
        unexplained = tuple(name for name, formula in formulas.items() if formula is None)
        fresh = len(self.shapes) - self.points
        return Inference(self.kernel, self.points, fresh, reads, writes, unexplained, FrozenDict(differences))

    def _formula(self, name: str, counts: list[int]) -> Any:
        """Find the formula of a count, without and then with the declared one as a term."""
        formula = self._fitted(self.columns, [self._expression(i) for i in range(len(self.terms))], counts)
        if formula is None and name in self.declared:
            from iomodel.counting.evaluation.evaluate import evaluate

            declared = self.declared[name]
            column = [
                int(evaluate(declared, {s: shape[n] for n, s in self.symbols.items() if s in declared.free_symbols}))
                for shape in self.shapes
            ]
            expressions = [declared, *(self._expression(i) for i in range(len(self.terms)))]
            formula = self._fitted([column, *self.columns], expressions, counts)
        return formula

    def _fitted(self, columns: list[list[int]], expressions: list[Any], counts: list[int]) -> Any:
        """Fit the first points and check the others; None if no sum of terms holds."""
        from sympy import Add, Rational

        from iomodel.triton.formula_terms import fits

        seen = [column[: self.points] for column in columns]
        for fit in fits(seen, counts[: self.points], self.most):
            sums = [sum(factor * columns[i][point] for i, factor in fit) for point in range(len(counts))]
            if sums == counts:
                return Add(*(Rational(c.numerator, c.denominator) * expressions[i] for i, c in fit))
        return None

    def _expression(self, place: int) -> Any:
        from sympy import Integer, Mul

        return Mul(Integer(1), *(factor.expression(self.symbols) for factor in self.terms[place]))


def _symbols(names: list[str]) -> dict[str, Any]:
    """Return the symbol of each number: the model's where it has one."""
    from sympy import Symbol

    from iomodel.nests.symbols import BY_NAME

    return {name: BY_NAME.get(name) or Symbol(name, integer=True, positive=True) for name in names}


def _by_count(counted: list[Any], names: Mapping[str, str | None]) -> dict[str, list[int]]:
    """Collect the counts of each tensor that is moved at any shape, in the model's names."""
    totals: dict[str, list[int]] = {}
    for point, each in enumerate(counted):
        for kind in KINDS:
            for tensor, number in getattr(each, kind).items():
                if (name := names.get(tensor, tensor)) is not None:
                    totals.setdefault(f"{kind} {name}", [0] * len(counted))[point] += number
    return {name: series for name, series in totals.items() if any(series)}


def _declared(declared: Any, symbols: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared formulas in the symbols of the numbers; the others follow the usual defaults."""
    if declared is None:
        return {}
    from sympy import Integer

    from iomodel.nests.symbols import BY_NAME

    if not (hasattr(declared, "reads") and hasattr(declared, "subs")):
        raise InputError(f"declared: {shown(declared)} given; allowed: a result of iomodel.expressions")
    defaults: dict[Any, Any] = {}
    for name, follows in FOLLOWING.items():
        if name not in symbols:
            defaults[BY_NAME[name]] = symbols[follows] if follows in symbols else Integer(1)
    formulas = {f"{kind} {name}": each for kind in KINDS for name, each in getattr(declared, kind).items()}
    return {name: each.subs(defaults) for name, each in formulas.items()}
