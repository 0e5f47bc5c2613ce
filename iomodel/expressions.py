"""The sympy answers of (algorithm, direction, mask, options): exact, ceilings kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Expr, factor_terms, latex

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counts import View, in_bytes
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.formula_text import readable
from iomodel.frozen import FrozenDict
from iomodel.masks import CAUSAL, FULL, MaskKind
from iomodel.nest import Algorithm, Load, Nest, Store
from iomodel.symbols import BY_NAME, TILES
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Mask, Window, known_mask


@dataclass(frozen=True)
class Expressions:
    """Every quantity of an algorithm as a sympy expression over the alphabet, over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to expression
        HBM accesses [elements].
    hbm_elements, hbm_bytes : expression
        All of them together [elements], [B].
    flops, useful_flops, exps : expression
        Matrix FLOPs of the visited tiles, those of visible pairs alone [FLOP]; exponentials [-].
    footprint, footprint_bytes : expression
        The most that is live on chip at once [elements], [B].
    peak_hbm_elements, peak_hbm_bytes : expression
        The most that is allocated in HBM at once [elements], [B].
    """

    algorithm: str
    mask: Mask
    options: Mapping[str, Any]
    reads: Mapping[str, Expr]
    writes: Mapping[str, Expr]
    hbm_bytes: Expr
    flops: Expr
    useful_flops: Expr
    exps: Expr
    footprint: Expr
    footprint_bytes: Expr
    peak_hbm_elements: Expr
    peak_hbm_bytes: Expr

    @property
    def hbm_reads(self) -> Expr:
        """Elements read from HBM [elements]."""
        return Add(*self.reads.values())

    @property
    def hbm_writes(self) -> Expr:
        """Elements written to HBM [elements]."""
        return Add(*self.writes.values())

    @property
    def hbm_elements(self) -> Expr:
        """HBM accesses, reads and writes [elements]."""
        return self.hbm_reads + self.hbm_writes

    @property
    def intensity(self) -> Expr:
        """Arithmetic intensity [FLOP/B]."""
        return self.flops / self.hbm_bytes

    @property
    def tiles(self) -> tuple[str, ...]:
        """The tile names that the algorithm takes."""
        used = set().union(self.hbm_bytes.free_symbols, self.footprint.free_symbols, self.exps.free_symbols)
        return tuple(entry.name for entry in TILES if entry.symbol in used)

    @cached_property
    def quantities(self) -> dict[str, Expr]:
        """All expressions by name, tensors apart; totals included."""
        names = [field.name for field in fields(self)][5:]
        return {
            "hbm_reads": self.hbm_reads,
            "hbm_writes": self.hbm_writes,
            "hbm_elements": self.hbm_elements,
            **{name: getattr(self, name) for name in names},
        }

    def subs(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Expressions:
        """The same expressions with some symbols replaced, by Python name; the others stay.

        >>> import iomodel
        >>> iomodel.expressions("flash2").subs(batch=1, heads=1, block_q=128).reads["K"]
        N_k*d*ceiling(N_q/128)
        """
        given = {**({} if values is None else as_mapping("values", values, "{'block_q': 128}")), **more}
        for name in given:
            if name not in BY_NAME:
                raise UnknownNameError("symbol", name, BY_NAME)
        point = {
            BY_NAME[name]: value if isinstance(value, Expr) else as_integer(name, value)
            for name, value in given.items()
        }

        def at(expr: Expr) -> Expr:
            return expr.subs(point, simultaneous=True)

        totals = ("hbm_reads", "hbm_writes", "hbm_elements")
        changes: dict[str, Any] = {name: at(expr) for name, expr in self.quantities.items() if name not in totals}
        for side in ("reads", "writes"):
            changes[side] = FrozenDict({name: at(expr) for name, expr in getattr(self, side).items()})
        return replace(self, **changes)

    def latex(self) -> str:
        r"""The quantities as a LaTeX `aligned` block.

        >>> import iomodel
        >>> print(iomodel.expressions("flash2").subs(batch=1, heads=1).latex().splitlines()[1])
        \text{reads } Q &= N_{q} d \\
        """
        rows = [(rf"\text{{reads }} {name}", expr) for name, expr in self.reads.items()]
        rows += [(rf"\text{{writes }} {name}", expr) for name, expr in self.writes.items()]
        rows += [
            (r"\text{HBM elements}", self.hbm_elements),
            (r"\text{FLOPs}", self.flops),
            (r"\text{exponentials}", self.exps),
            (r"\text{footprint}", self.footprint),
        ]
        body = " \\\\\n".join(rf"{label} &= {latex(factor_terms(expr))}" for label, expr in rows)
        return "\\begin{aligned}\n" + body + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def to_dict(self) -> dict[str, Any]:
        """The expressions as text, ready for JSON."""
        mask = self.mask.to_dict() if isinstance(self.mask, Window) else self.mask
        return {
            "algorithm": self.algorithm,
            "mask": mask,
            "options": dict(self.options),
            "reads": {name: str(factor_terms(expr)) for name, expr in self.reads.items()},
            "writes": {name: str(factor_terms(expr)) for name, expr in self.writes.items()},
            **{name: str(factor_terms(expr)) for name, expr in self.quantities.items()},
        }

    def __str__(self) -> str:
        return readable(self)


def mask_kind(mask: Mask) -> MaskKind:
    """Which formula a mask needs: its bounded sides and alignment, without their widths."""
    if isinstance(mask, Window):
        return MaskKind(mask.left is not None, mask.right is not None, top_left=mask.align == "top-left")
    return CAUSAL if mask == "causal" else FULL


def check_options(found: Algorithm, options: Mapping[str, Any], tiled: bool = False) -> dict[str, Any]:
    """All options of an algorithm, defaults filled in; errors name the option."""
    allowed = {**found.options, "packed": False}
    for name, value in options.items():
        if name not in allowed:
            raise UnknownNameError(f"option of {found.name}", name, allowed)
        if type(value) is not type(allowed[name]):
            raise InputError(f"{name}: {shown(value)} given; allowed: {type(allowed[name]).__name__}")
    chosen = {**allowed, **options}
    if tiled and found.tiled_by:
        if options.get(found.tiled_by) is False:
            raise InputError(f"{found.tiled_by}: False given; allowed: True, for {found.name} has tiles here")
        chosen[found.tiled_by] = True
    return chosen


def declared(found: Algorithm, options: Mapping[str, Any]) -> Nest:
    """The nest under the options; `packed` is how it is read, not how it is declared."""
    return found.nest(**{name: value for name, value in options.items() if name != "packed"})


def expressions(algorithm: str, mask: Mask = "full", direction: str = "forward", **options: Any) -> Expressions:
    """The exact IO complexity of an algorithm, as sympy expressions.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    mask : "full", "causal" or Window
        Only its kind enters: the widths of a window stay symbols, W_l and W_r.
    direction : {"forward"}
        What is computed.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True`` for the rows of a GQA group in one tile.

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, mask, direction or option.

    Examples
    --------
    >>> import iomodel
    >>> iomodel.expressions("flash2").subs(batch=1, heads=1).hbm_elements
    N_k*d*ceiling(N_q/B_r) + N_k*d_v*ceiling(N_q/B_r) + N_q*d + N_q*d_v + N_q
    """
    found = find_algorithm(algorithm)
    mask = known_mask(mask)
    if not isinstance(direction, str) or direction != "forward":
        raise UnknownNameError("direction", direction, ["forward"])
    complete = check_options(found, options)
    formula = _formulas(found.name, mask_kind(mask), tuple(sorted(complete.items())))
    return replace(formula, mask=mask)


@lru_cache(maxsize=256)
def _formulas(name: str, kind: MaskKind, options: tuple[tuple[str, Any], ...]) -> Expressions:
    chosen = dict(options)
    nest = declared(find_algorithm(name), chosen)
    view = View(kind, chosen["packed"])
    reads, writes = counts.moves(nest, view, Load), counts.moves(nest, view, Store)
    return Expressions(
        algorithm=name,
        mask="full",
        options=FrozenDict(chosen),
        reads=FrozenDict({tensor.name: expr for tensor, expr in reads.items()}),
        writes=FrozenDict({tensor.name: expr for tensor, expr in writes.items()}),
        hbm_bytes=Add(*(in_bytes(t.dtype) * expr for side in (reads, writes) for t, expr in side.items())),
        flops=counts.flops(nest, view),
        useful_flops=counts.useful_flops(nest, view),
        exps=counts.exps(nest, view),
        footprint=counts.footprint(nest, view),
        footprint_bytes=counts.footprint(nest, view, in_bytes),
        peak_hbm_elements=counts.peak_hbm(nest),
        peak_hbm_bytes=counts.peak_hbm(nest, in_bytes),
    )
