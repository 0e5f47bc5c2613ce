"""The view of a nest at one call, with an integer for every count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from sympy import Expr

from iomodel.counting.coverage import NOTHING, View
from iomodel.counting.folds import in_bytes
from iomodel.nests.language import Axis, Path, Tensor
from tests.support.enumeration import with_counts


@dataclass(frozen=True, eq=False)
class Point:
    """The numbers of one call, its element-wise mask if it has one, and the terms that are evaluated already."""

    values: Mapping[Expr, Expr]
    seen: np.ndarray | None = None
    page: int = 1
    known: dict[Expr, Expr] = field(default_factory=dict, repr=False)

    def number(self, term: Expr) -> Expr:
        """Evaluate a term of a fold; folds of edited nests share nearly all of theirs."""
        if term not in self.known:
            value = term.xreplace(self.values)
            self.known[term] = value if self.seen is None else with_counts(value, self.seen, self.page)
        return self.known[term]


@dataclass(frozen=True)
class NumericView(View):
    """A view that evaluates each term at a point, so that a fold adds and compares integers."""

    point: Point = field(kw_only=True)

    @property
    def _symbolic(self) -> View:
        return View(self.mask, self.packed)

    def instances(self, path: Path) -> Expr:
        return self.point.number(super().instances(path))

    def decided(self, condition: Expr) -> Expr:
        return self.point.number(super().decided(condition))

    def covered(self, axes: Iterable[Axis], path: Path, paged: bool = False, clipped: bool = False) -> Expr:
        return self.point.number(self._symbolic.covered(axes, path, paged, clipped))

    def kept(
        self,
        axes: Iterable[Axis],
        path: Path,
        paged: bool = False,
        loads: bool = False,
        whole: Iterable[Axis] = (),
    ) -> Expr:
        return self.point.number(self._symbolic.kept(axes, path, paged, loads, whole))

    def pages(self, path: Path) -> Expr:
        return self.point.number(self._symbolic.pages(path))

    def buffer(self, tensor: Tensor, path: Path) -> Expr:
        return self.point.number(self._symbolic.buffer(tensor, path))

    def stored(self, tensor: Tensor, padded: Mapping[Axis, Expr] = NOTHING) -> Expr:
        return self.point.number(self._symbolic.stored(tensor, padded))

    def size(self, dtype: str) -> Expr:
        """Weigh an element by its size at this call [B]."""
        return self.point.number(in_bytes(dtype))
