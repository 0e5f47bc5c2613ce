"""Exact sympy expressions of every quantity of an algorithm, with ceilings kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Expr, Symbol, factor_terms, latex

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import PlainData, check_keys, decoded_values, plain
from iomodel.common.validation import as_integer, as_mapping
from iomodel.counting import folds as counts
from iomodel.counting.coverage import View
from iomodel.counting.expressions_text import factored_text, quick, readable
from iomodel.counting.kinds import FormulaKind, check_kind, known_direction, mask_kind, passes_of
from iomodel.counting.mask_kind import CAUSAL
from iomodel.counting.options import check_options, structural
from iomodel.counting.quantities import IN_FORMULAS, QUANTITIES, TOTALS, Counts
from iomodel.counting.terms import parts_of, replaced
from iomodel.errors import InputError, UnknownKeywordError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import FOLLOWS, NUMBERS, TILES
from iomodel.nests.as_written import as_written
from iomodel.nests.feature_names import AS_WRITTEN, BAND_ONLY, default_of, other_of
from iomodel.nests.features import FEATURES, dressed
from iomodel.nests.language import Nest, Tensor, retiled
from iomodel.nests.symbols import BY_NAME, by_name
from iomodel.workloads.call import CACHE_ONLY, Mask, known_mask


@dataclass(frozen=True, repr=False)
class Expressions(Counts[Expr], PlainData):
    """The quantities of one algorithm as sympy expressions over the alphabet, for all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to expression
        HBM accesses [elements].
    hbm_bytes, atomics, flops, useful_flops, exps, ... : expression
        Each quantity of :class:`~iomodel.counting.quantities.Counts`.
    """

    algorithm: str
    mask: Mask
    direction: str
    features: tuple[str, ...]
    options: Mapping[str, Any]
    reads: Mapping[str, Expr]
    writes: Mapping[str, Expr]
    substitutions: tuple[Mapping[str, int | Expr], ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Expressions {self.algorithm}, {self.mask}, {self.direction}>"

    @property
    def footprint(self) -> Expr:
        """Peak of the live on-chip buffers [elements]."""
        return self.footprint_elements

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
        """Arithmetic intensity, FLOPs of the visited tiles over requests [FLOP/B]."""
        return self.flops / self.hbm_bytes

    @property
    def tiles(self) -> tuple[str, ...]:
        """Names of the tiles that the algorithm takes."""
        used = parts_of(self.hbm_bytes) | parts_of(self.footprint) | parts_of(self.exps)
        return tuple(entry.name for entry in TILES if entry.symbol in used)

    @property
    def own_tiles(self) -> tuple[str, ...]:
        """Names of the tiles without a default; a follower takes the size of the tile that it follows."""
        return tuple(name for name in self.tiles if FOLLOWS.get(name) not in self.tiles)

    @cached_property
    def quantities(self) -> Mapping[str, Expr]:
        """All expressions by name, totals included, without those of single tensors."""
        names = [*TOTALS, *(IN_FORMULAS.get(name, name) for name in QUANTITIES)]
        return FrozenDict({name: getattr(self, name) for name in names})

    def subs(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Expressions:
        """Replace some symbols, by Python name or by the letter that is printed, and keep the others.

        N stands for N_q and N_k.

        >>> import iomodel
        >>> iomodel.expressions("flash2").subs(batch=1, heads=1, block_q=128).reads["K"]
        N_k*d*ceiling(N_q/128)
        >>> iomodel.expressions("flash2").subs(N_q=4096, d=64).reads["K"]
        64*B*H*N_k*ceiling(4096/B_r)
        """
        given = {} if values is None else as_mapping("values", values, "{'block_q': 128}")
        replacements = by_name({**given, **more})
        named = substituted(replacements)
        point = {BY_NAME[name]: value for name, value in named.items()}

        def at(expr: Expr) -> Expr:
            return replaced(expr, point)

        changes: dict[str, Any] = {name: at(getattr(self, name)) for name in QUANTITIES}
        for side in ("reads", "writes"):
            changes[side] = FrozenDict({name: at(expr) for name, expr in getattr(self, side).items()})
        return replace(self, **changes, substitutions=(*self.substitutions, named))

    def square(self) -> Expressions:
        """Return the expressions of a call with as many keys as queries and rows of one width.

        >>> import iomodel
        >>> iomodel.expressions("flash2").subs(batch=1, heads=1).square().reads["K"]
        N*d*ceiling(N/B_r)
        """
        from iomodel.nests.symbols import N, d

        known = {name: value for values in self.substitutions for name, value in values.items()}
        equal = {"q_len": N, "kv_len": known.get("q_len", N), "value_dim": known.get("head_dim", d)}
        return self.subs({name: symbol for name, symbol in equal.items() if name not in known})

    def latex(self) -> str:
        r"""Render the quantities as a LaTeX `aligned` block.

        >>> import iomodel
        >>> print(iomodel.expressions("flash2").subs(batch=1, heads=1).latex().splitlines()[1])
        \text{reads } Q &= N_{q} d \\
        """
        sides = {"reads": self.reads, "writes": self.writes}
        moved = [(side, name, expr) for side, tensors in sides.items() for name, expr in tensors.items() if expr != 0]
        rows = [(rf"\text{{{side} }} {_tex(name)}", expr) for side, name, expr in moved]
        rows += [
            (r"\text{HBM elements}", self.hbm_elements),
            (r"\text{FLOPs}", self.flops),
            (r"\text{exponentials}", self.exps),
            *([(r"\text{atomics}", self.atomics)] if self.atomics != 0 else []),
            (r"\text{footprint}", self.footprint),
        ]
        body = " \\\\\n".join(rf"{label} &= {latex(factor_terms(quick(expr)))}" for label, expr in rows)
        return "\\begin{aligned}\n" + body + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def to_dict(self) -> dict[str, Any]:
        """Return the expressions as text, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "mask": self.mask if isinstance(self.mask, str) else self.mask.to_dict(),
            "direction": self.direction,
            "features": list(self.features),
            "options": dict(self.options),
            "reads": {name: factored_text(expr) for name, expr in self.reads.items()},
            "writes": {name: factored_text(expr) for name, expr in self.writes.items()},
            **{name: factored_text(expr) for name, expr in self.quantities.items()},
            "substitutions": plain(self.substitutions),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expressions:
        """Derive the expressions of plain data again; their texts are not read.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        kinds = {"algorithm": str, "mask": Any, "direction": str, "features": tuple[str, ...]}
        kinds |= {"options": Mapping[str, Any], "substitutions": tuple[Mapping[str, Expr], ...]}
        known = decoded_values(kinds, (), data, cls.__name__)
        features = dict.fromkeys(known["features"], True)
        made = expressions(known["algorithm"], known["mask"], known["direction"], **features, **known["options"])
        for values in known["substitutions"]:
            made = made.subs(values)
        check_keys(data, [*kinds, "reads", "writes", *made.quantities])
        return made

    def __str__(self) -> str:
        return readable(self)


def substituted(values: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """Check the values of symbols, by Python name: integers or expressions."""
    for name in values:
        if name not in BY_NAME:
            raise UnknownNameError("symbol", name, BY_NAME)
    return FrozenDict(
        {
            name: value if isinstance(value, Expr) else as_integer(name, value, int(bool(BY_NAME[name].is_positive)))
            for name, value in values.items()
        }
    )


def _tex(name: str) -> str:
    return name if "_" not in name else r"\text{{{}}}".format(name.replace("_", r"\_"))


def declared(declaration: Algorithm, kind: FormulaKind, options: Mapping[str, Any]) -> Nest:
    """Build the nest of a kind under the options; `packed` affects the view of the nest, not its declaration."""
    switches = {name: value for name, value in options.items() if name not in NUMBERS and name != "packed"}
    if kind.operation != "attention":
        symbols = _symbols_of(declaration)
        features = {name: name in kind.features for name in declaration.features}
        directions = passes_of(kind.direction)
        return tuple(
            kernel
            for direction in directions
            for kernel in declaration.nest(direction, **switches, **symbols, **features)
        )
    written = {name for name in AS_WRITTEN if switches.pop(name, default_of(name)) != default_of(name)}
    for name in written.intersection(BAND_ONLY if kind.mask.tabulated else ()):
        raise InputError(
            f"{name}: {other_of(name)!r} given for a mask given by data; allowed: {default_of(name)!r}, or a full "
            "mask, causal, a window"
        )
    shape = kind.mask == CAUSAL, kind.mask.hides, kind.features, tuple(switches.items()), frozenset(written)
    passes = [_pass(declaration, direction, *shape) for direction in passes_of(kind.direction)]
    if len(passes) == 1:
        return passes[0]
    forward, backward = passes
    backward = retiled(backward, {BY_NAME[name]: BY_NAME[f"bwd_{name}"] for name in ("block_q", "block_kv")})
    if options.get("packed"):
        forward = counts.decided(forward, False)
    return forward + tuple(replace(kernel, unpacked=True) for kernel in backward)


def _symbols_of(declaration: Algorithm) -> dict[str, Symbol]:
    """Return the symbols of the numbers among the options."""
    return {name: BY_NAME[name] for name in NUMBERS & declaration.options.keys()}


@lru_cache(maxsize=512)  # masks differ in the view of a nest
def _pass(
    declaration: Algorithm,
    direction: str,
    causal: bool,
    masked: bool,
    features: tuple[str, ...],
    switches: tuple[tuple[str, Any], ...],
    written: frozenset[str],
) -> Nest:
    """Build the nest of one pass of attention."""
    nest = declaration.nest(direction, causal, masked, **dict(switches), **_symbols_of(declaration))
    return as_written(dressed(nest, features), written)


@strict
def expressions(
    algorithm: AlgorithmLike, mask: Mask = "full", direction: str = "forward", **options: Any
) -> Expressions:
    """Return the exact IO complexity of an algorithm as sympy expressions.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    mask : "full", "causal", Window, BlockMask or Documents
        Only the kind of the mask matters: the widths of a window stay symbols, W_l and W_r, and the tiles that a mask
        given by data visits stay counts without a formula.
    direction : {"forward", "backward", "both"}
        The pass, or both passes.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True`` for the rows of a GQA group in one tile. A
        number that is not given stays a symbol (``splits``). Features of the call are enabled by name:
        ``bias=True``, ``paged=True`` and so on (:mod:`iomodel.nests.features`).

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
    declaration = find_algorithm(algorithm)
    mask = known_mask(mask)
    known_direction(direction)
    if declaration.answers != "attention" and mask != "full":
        raise InputError(f"mask: {shown(mask)} given; allowed: full, because {declaration.name} has no mask")
    features = _features(declaration, direction, options)
    kind = FormulaKind(mask_kind(mask), direction, features, declaration.answers)
    check_kind(declaration, kind)
    complete = check_options(declaration, options, direction=direction, features=features)
    formula = replace(formulas(declaration, kind, structural(complete)), mask=mask)
    numbers = {name: options[name] for name in NUMBERS & options.keys()}
    return (
        replace(formula.subs(numbers), substitutions=(), options=FrozenDict({**formula.options, **numbers}))
        if numbers
        else formula
    )


def _features(declaration: Algorithm, direction: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Remove the features from the options and return the enabled ones; raise InputError for impossible features."""
    allowed = {**declaration.takes(direction), **declaration.common} if direction in declaration.directions else {}
    known = tuple(FEATURES) if declaration.answers == "attention" else declaration.features
    written = (*AS_WRITTEN, *(declaration.written(direction) if allowed else ()))
    for name, value in options.items():
        if allowed and name not in allowed and name not in known and name not in written:
            raise UnknownKeywordError(f"option of {declaration.name}", name, [*allowed, *known])
        if name in known and not isinstance(value, bool):
            raise InputError(f"{name}: {shown(value)} given; allowed: bool")
    features = tuple(name for name in known if options.pop(name, False))
    serving = [name for name in features if name in CACHE_ONLY]
    if serving and direction != "forward":
        raise InputError(f"{serving[0]}: given with direction {direction}; allowed: with direction forward")
    scales = [name for name in features if name in ("latent", "head_scales", "token_scales")]
    alone = [name for name in features if name in declaration.exclusive]
    for names in (scales, alone):
        if len(names) > 1:
            raise InputError(f"{names[1]}: given with {names[0]}; allowed: one of the two")
    return features


@lru_cache(maxsize=256)
def formulas(declaration: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]) -> Expressions:
    """Build the expressions of a kind under the options that shape them."""
    chosen = dict(options)
    nest = declared(declaration, kind, chosen)
    view = View(kind.mask, bool(chosen.get("packed")))
    quantities = {name: getattr(counts, name)(nest, view) for name in QUANTITIES}
    if declaration.approximates or kind.operation != "attention":  # no mask defines the useful pairs
        quantities["useful_flops"] = quantities["flops"]
    return Expressions(
        algorithm=name_of(declaration),
        mask="full",
        direction=kind.direction,
        features=kind.features,
        options=FrozenDict(chosen),
        reads=_by_name(counts.moves(nest, view, counts.READS)),
        writes=_by_name(counts.moves(nest, view, counts.WRITES)),
        **quantities,
    )


def _by_name(moved: Mapping[Tensor, Expr]) -> FrozenDict[str, Expr]:
    """Add up counts by tensor name: a tensor keeps its name when its dtype or place changes."""
    names = dict.fromkeys(tensor.name for tensor in moved)
    return FrozenDict({name: Add(*(expr for t, expr in moved.items() if t.name == name)) for name in names})
