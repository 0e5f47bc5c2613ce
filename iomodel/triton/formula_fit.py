"""Fit of one formula to each count of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.triton.formula_result import KINDS, Inference

if TYPE_CHECKING:
    from iomodel.counting.expressions import Expressions

FOLLOWING = {
    "kv_len": "q_len", "value_dim": "head_dim", "kv_heads": "heads", "batch": "", "heads": "", "groups": "",
    "splits": "",
}  # fmt: skip
"""Sizes that equal another one where they are not given, or one."""


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
