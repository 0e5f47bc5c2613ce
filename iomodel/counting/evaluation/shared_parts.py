"""Parts that formulas share, as definitions: equal parts, and pairs of factors or terms that several of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

from sympy import Add, Dummy, Expr, Mul, Pow


def shared_parts(formulas: Sequence[Expr]) -> tuple[list[tuple[Dummy, Expr]], list[Expr]]:
    """Return definitions of the parts that formulas share, each after those in it, and the formulas in their terms.

    sympy's `cse` finds about as many in ten times as long.

    >>> from iomodel.nests.symbols import N_k, N_q, d
    >>> definitions, formulas = shared_parts([N_q * N_k * d + d, N_q * N_k + 1])
    >>> [part for _, part in definitions], len(formulas)
    ([N_k*N_q], 2)
    """
    graph = _Graph()
    roots = [graph.number(formula) for formula in formulas]
    for kind in (Mul, Add):
        graph.pair(kind)
    return graph.written(roots)


class _Graph:
    """Formulas as numbered nodes, each with the numbers of its parts."""

    def __init__(self) -> None:
        self.numbers: dict[Expr, int] = {}
        self.whole: list[Expr | None] = []
        """The formula of each node, None for a node whose parts have changed."""
        self.parts: list[list[int]] = []
        self.kinds: list[type[Expr]] = []

    def number(self, expr: Expr) -> int:
        """Return the number of a formula, with all of its parts."""
        if expr not in self.numbers:
            self.numbers[expr] = self.add(expr, expr.func, [] if expr.is_Atom else list(map(self.number, expr.args)))
        return self.numbers[expr]

    def add(self, whole: Expr | None, kind: type[Expr], parts: list[int]) -> int:
        """Add a node."""
        self.whole.append(whole)
        self.kinds.append(kind)
        self.parts.append(parts)
        return len(self.parts) - 1

    def pair(self, kind: type[Expr]) -> None:
        """Make a node of each pair of parts that several sums, or products, have, the most frequent pair first."""
        holders: dict[tuple[int, int], set[int]] = {}
        for node, own in enumerate(self.kinds):
            if own is kind:
                for pair in combinations(sorted(self.varying(node)), 2):
                    holders.setdefault(pair, set()).add(node)
        heap = [(-len(nodes), pair) for pair, nodes in holders.items() if len(nodes) > 1]
        heapify(heap)
        while heap:
            count, pair = heappop(heap)
            nodes = holders[pair]
            if len(nodes) != -count:  # other pairs have taken a part of it
                if len(nodes) > 1:
                    heappush(heap, (-len(nodes), pair))
                continue
            known = [node for node in nodes if len(self.parts[node]) == 2]
            made = known[0] if known else self.add(None, kind, list(pair))
            others: set[int] = set()
            for node in nodes - {made}:
                beside = [part for part in self.varying(node) if part not in pair]
                others.update(beside)
                for part in beside:
                    for old in pair:
                        holders[min(old, part), max(old, part)].discard(node)
                    holders.setdefault((min(made, part), max(made, part)), set()).add(node)
                self.parts[node] = [part for part in self.parts[node] if part not in pair] + [made]
                self.whole[node] = None
            holders[pair] = set()
            for new in ((min(made, part), max(made, part)) for part in others):
                if len(holders[new]) > 1:
                    heappush(heap, (-len(holders[new]), new))

    def varying(self, node: int) -> list[int]:
        """List the parts of a node that are no numbers."""
        return [part for part in self.parts[node] if (whole := self.whole[part]) is None or not whole.is_Number]

    def written(self, roots: Sequence[int]) -> tuple[list[tuple[Dummy, Expr]], list[Expr]]:
        """Return definitions for the nodes with several uses, and the formulas of some nodes."""
        uses: Counter[int] = Counter()

        def use(node: int) -> None:
            uses[node] += 1
            if uses[node] == 1:
                for part in self.parts[node]:
                    use(part)

        for root in roots:
            use(root)
        definitions: list[tuple[Dummy, Expr]] = []
        formulas: dict[int, Expr] = {}

        def formula(node: int) -> Expr:
            if node not in formulas:
                made = self._formula(node, list(map(formula, self.parts[node])))
                if uses[node] > 1 and self.parts[node]:
                    definitions.append((Dummy(integer=True), made))
                    made = definitions[-1][0]
                formulas[node] = made
            return formulas[node]

        return definitions, list(map(formula, roots))

    def _formula(self, node: int, parts: list[Expr]) -> Expr:
        whole, kind = self.whole[node], self.kinds[node]
        if whole is not None and all(part is own for part, own in zip(parts, whole.args, strict=False)):
            return whole
        if kind in (Add, Mul):
            return kind._from_args([argument for part in parts for argument in kind.make_args(part)])
        # A function has nothing to simplify, so that its constructor has nothing to check.
        return Pow(*parts, evaluate=False) if kind is Pow else Expr.__new__(kind, *parts)
