"""Formulas compiled once to plain Python for many calls.

Floors become `//`, so nothing is ever rounded. Arrays run in int64 where the result provably fits, and on Python
integers where it does not (:mod:`iomodel.counting.evaluation.array_engine`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dis import get_instructions
from fractions import Fraction
from functools import cached_property
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from iomodel.counting.evaluation.arithmetic import SCALAR, SIZES, Size
from iomodel.counting.evaluation.array_engine import Seen, evaluated
from iomodel.counting.evaluation.definitions import defined

if TYPE_CHECKING:
    from sympy import Expr, Symbol


class Compiled:
    """A set of formulas over the alphabet, compiled once for any number of calls of `scalars` and `arrays`.

    Parameters
    ----------
    formulas : sequence of sympy expressions
        Formulas whose values are integers.
    inputs : sequence of Symbol, optional
        The order of the positional arguments; by default all symbols that occur, by name.
    same : mapping of Symbol to Symbol, optional
        Symbols with the value of another symbol, which replaces them.

    Examples
    --------
    >>> from sympy import ceiling
    >>> from iomodel.nests.symbols import B_r, N_q
    >>> Compiled([ceiling(N_q / B_r)]).scalars(10**12, 7)  # (N_q, B_r) after sorting: B_r, N_q
    (1,)
    """

    def __init__(
        self,
        formulas: Sequence[Expr],
        inputs: Sequence[Symbol] | None = None,
        same: Mapping[Symbol, Symbol] | None = None,
    ) -> None:
        from iomodel.counting.evaluation.integral import integral

        self.formulas = [integral(formula) for formula in formulas]
        if same:
            self.formulas = [formula.xreplace(dict(same)) for formula in self.formulas]
        if inputs is None:
            inputs = sorted(set().union(*(formula.free_symbols for formula in self.formulas), ()), key=str)
        self.inputs = tuple(inputs)

    def function(self, functions: Mapping[str, Any], varying: Sequence[int] = ()) -> Callable[..., tuple[Any, ...]]:
        """Return one function of the inputs, with these functions for extrema, sums of floors and ratios.

        `varying` are the places of the inputs that are to be arrays.
        """
        from iomodel.counting.evaluation.codegen import function

        return function(self.formulas, self.inputs, functions, [self.inputs[place] for place in varying])

    def tuned(self, functions: Mapping[str, Any], varying: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
        """Return the function for long arrays, with as few operations on arrays as can be."""
        return self.function(functions, varying)

    @cached_property
    def text(self) -> str:
        """Source of the function of the inputs."""
        from iomodel.counting.evaluation.codegen import quick_source

        return quick_source(self.formulas, self.inputs)

    @property
    def stored_text(self) -> str:
        """Source of the function of the inputs for many runs, as it is stored."""
        from iomodel.counting.evaluation.codegen import shared_source

        return shared_source(tuple(self.formulas), self.inputs)

    @property
    def outputs(self) -> int:
        """Number of formulas [-]."""
        return len(self.formulas)

    @cached_property
    def _scalar(self) -> Callable[..., tuple[int | Fraction, ...]]:
        return self.function(SCALAR)

    @cached_property
    def read(self) -> tuple[int, ...]:
        """Places of the inputs on which the values depend.

        >>> from sympy import symbols
        >>> a, b, c = symbols("a b c", integer=True)
        >>> Compiled([a + 2 * c], (a, b, c)).read
        (0, 2)
        """
        code = self._scalar.__code__
        used: set[Any] = set()
        for instruction in get_instructions(code):  # one instruction of Python 3.13 may load two names
            used.update(value if isinstance(value := instruction.argval, tuple) else (value,))
        return tuple(place for place, name in enumerate(code.co_varnames[: code.co_argcount]) if name in used)

    @cached_property
    def sizes(self) -> Callable[..., tuple[int | Size, ...]]:
        """The function that evaluates the formulas on bounds of magnitude."""
        return self.function(SIZES)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Cache of the functions compiled for arrays."""
        return {}

    def scalars(self, *values: int) -> tuple[int, ...]:
        """Return the exact integers at one point."""
        return tuple(map(_whole, self._scalar(*values)))

    def arrays(
        self, *values: Any, engine: str = "auto", seen: Seen | None = None, constants: bool = False
    ) -> tuple[Any, ...]:
        """Return integers at many broadcast points: int64 if every value fits, else Python integers.

        With `constants`, a formula that no array enters may remain a number.
        """
        return tuple(evaluated(self, values, engine, seen, constants))


class StoredFormulas(Compiled):
    """Compiled formulas whose source for scalars is stored; their expressions are rebuilt on first use.

    Parameters
    ----------
    text : str
        The stored source.
    outputs : int
        How many values its function returns.
    rebuild : callable, optional
        Builds the same formulas with sympy.
    """

    def __init__(self, text: str, outputs: int, rebuild: Callable[[], Compiled] | None = None) -> None:
        self.text, self._outputs, self._rebuild = text, outputs, rebuild

    @property
    def stored_text(self) -> str:
        """The stored source."""
        return self.text

    @cached_property
    def _code(self) -> CodeType:
        return defined(self.text, {}).__code__

    @cached_property
    def formulas(self) -> list[Expr]:  # type: ignore[override]
        """The formulas as expressions of opaque nodes."""
        return self._built.formulas

    @cached_property
    def inputs(self) -> tuple[Symbol, ...]:  # type: ignore[override]
        """The symbols of the positional arguments."""
        return self._built.inputs

    @cached_property
    def _built(self) -> Compiled:
        assert self._rebuild is not None
        return self._rebuild()

    @property
    def outputs(self) -> int:
        """Number of formulas [-]."""
        return self._outputs

    def function(self, functions: Mapping[str, Any], varying: Sequence[int] = ()) -> Callable[..., tuple[Any, ...]]:  # noqa: ARG002
        """Return the stored function, with these functions for extrema, sums of floors and ratios."""
        return FunctionType(self._code, dict(functions))

    def tuned(self, functions: Mapping[str, Any], varying: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
        """Return the function for long arrays, with as few operations on arrays as can be."""
        return (self.function if self._rebuild is None else super().function)(functions, varying)


def _whole(value: int | Fraction) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise ArithmeticError(f"a count is not an integer: {value}")  # a wrong formula, never a user's input
