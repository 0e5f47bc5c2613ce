"""Formulas of a kernel's traffic, inferred from its counts at several shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.errors import InputError, IOModelError, UnknownNameError, shown
from iomodel.triton.kernel_count import KernelCount

if TYPE_CHECKING:
    from sympy import Expr

    from iomodel.counting.expressions import Expressions

KINDS = ("reads", "writes")
FOLLOWING = {
    "kv_len": "q_len", "value_dim": "head_dim", "kv_heads": "heads", "batch": "", "heads": "", "groups": "",
    "splits": "",
}  # fmt: skip
"""Sizes that equal another one where they are not given, or one."""


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
        """Whether every count has the declared formula."""
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


def infer(
    run: Callable[..., KernelCount],
    numbers: Mapping[str, Sequence[int]],
    *,
    declared: Expressions | None = None,
    tiled: Mapping[str, str] | None = None,
    names: Mapping[str, str | None] | None = None,
    most: int = 2,
    points: int = 20,
    fresh: int = 8,
    seed: int = 0,
) -> Inference:
    """Infer the formulas of a kernel's traffic from its counts at several shapes.

    A formula is a sum of at most `most` terms with rational coefficients; a term is a product of lengths and of
    ceilings of lengths over their tiles. It equals the counts exactly, at the shapes from which it was made and at
    fresh ones. Where no such sum exists, the declared formula is a term too, as of a causal kernel.

    Parameters
    ----------
    run : function
        Takes a value of each of `numbers` by name and returns the result of :func:`iomodel.triton.count`.
    numbers : mapping of str to sequence of int
        Values of each length and tile that shapes are drawn from, by their names in the model: ``{"q_len": range(1,
        60), "block_q": (4, 8)}``. Ragged lengths tell a ceiling from a quotient.
    declared : Expressions, optional
        Formulas to compare with, of :func:`iomodel.expressions`. Sizes that `numbers` lacks follow the usual defaults:
        `kv_len` is `q_len`, `value_dim` is `head_dim`, one batch and one head.
    tiled : mapping of tile name to length name, optional
        Length that each tile divides; known for the tiles of attention and of linear layers.
    names : mapping of str to str or None, optional
        Map from the kernel's tensors to the model's; a tensor mapped to None is left out.
    most : {1, 2, 3}
        Largest number of terms [-]; three take seconds.
    points, fresh : int
        Shapes to infer from and to check on [-].
    seed : int
        Seed of the drawn shapes.

    Raises
    ------
    InputError, UnknownNameError
        A wrong argument, or `run` fails.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def run(q_len, block_q):  # in place of a count: two tiles for each tile of queries
    ...     return SimpleNamespace(reads={"K": 2 * block_q * -(-q_len // block_q)}, writes={"O": q_len})
    >>> inferred = infer(run, {"q_len": range(1, 60), "block_q": (4, 8)})
    >>> dict(inferred.reads), dict(inferred.writes)
    ({'K': 2*B_r*ceiling(N_q/B_r)}, {'O': N_q})
    """
    for name, given, largest in (("most", most, 3), ("points", points, 1000), ("fresh", fresh, 1000)):
        if as_integer(name, given) > largest:
            raise InputError(f"{name}: {given} given; allowed: an integer from 1 to {largest}")
    values = _values(numbers)
    of = _tiled(values, tiled)
    mapped = _names(names)
    drawn = Random(as_integer("seed", seed, 0))
    shapes = [
        {name: as_integer(f"numbers: {name}", drawn.choice(each)) for name, each in values.items()}
        for _ in range(points + fresh)
    ]
    counted = [_counted(run, shape) for shape in shapes]
    return _Inferred(shapes, counted, of, declared, mapped, most, points).result()


class _Inferred:
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


def _counted(run: Any, shape: dict[str, int]) -> Any:
    """Run the kernel at a shape; raise InputError if this fails or returns no count."""
    try:
        counted = run(**shape)
    except IOModelError:
        raise
    except Exception as error:
        raise InputError(f"run: {shown(run)} fails at {shown(shape)}: {shown(error)}") from error
    if not (isinstance(getattr(counted, "reads", None), Mapping) and isinstance(counted.writes, Mapping)):
        raise InputError(f"run: {shown(counted)} returned; allowed: a result of iomodel.triton.count")
    return counted


def _names(names: Any) -> dict[str, str | None]:
    mapped = as_mapping("names", {} if names is None else names, "{'key_cache': 'K'}")
    for name, model in mapped.items():
        if not isinstance(model, str | None):
            raise InputError(f"names: {shown(name)} is {shown(model)}; allowed: a name in the model, or None")
    return mapped


def _values(numbers: Any) -> dict[str, Sequence[int]]:
    example = "{'q_len': range(1, 60), 'block_q': (4, 8)}"
    given = as_mapping("numbers", numbers, example)
    values: dict[str, Sequence[int]] = {}
    for name, each in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"numbers: {shown(name)} given; allowed: names of arguments of run, as in {example}")
        try:
            several = isinstance(each, Sequence) and not isinstance(each, str | bytes) and len(each) > 0
        except OverflowError:
            several = False
        if not several:
            raise InputError(f"numbers: {name} is {shown(each)}; allowed: a sequence of integers, as in {example}")
        values[name] = each
    if not values:
        raise InputError(f"numbers: none given; allowed: lengths and tiles, as in {example}")
    return values


def _tiled(values: Mapping[str, Any], tiled: Any) -> dict[str, str]:
    from iomodel.triton.formula_terms import TILED

    given = as_mapping("tiled", {} if tiled is None else tiled, "{'block_q': 'q_len'}")
    usual = {
        tile: length if length in values else {"kv_len": "q_len"}.get(length, length) for tile, length in TILED.items()
    }
    for tile, length in given.items():
        for name in (tile, length):
            if not isinstance(name, str) or name not in values:
                raise UnknownNameError("tiled", name, values)
    return {name: length for name, length in {**usual, **given}.items() if name in values and length in values}


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
