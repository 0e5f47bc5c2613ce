"""The sympy answers of (algorithm, direction, mask, options): exact, ceilings kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, get_args

from sympy import Add, Expr, factor_terms, latex

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.block_mask import BlockMask
from iomodel.counts import in_bytes
from iomodel.coverage import View
from iomodel.documents import Documents
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.features import FEATURES, dressed
from iomodel.formula_text import readable
from iomodel.frozen import FrozenDict
from iomodel.masks import CAUSAL, FULL, MaskKind
from iomodel.nest import Algorithm, Exp, Nest, Random, Tanh, Tensor, retiled
from iomodel.symbols import BY_NAME, FOLLOWS, OPTIONS, TILES
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import CACHE_ONLY, Call, Direction, Mask, Window, known_mask


@dataclass(frozen=True)
class Expressions:
    """Every quantity of an algorithm as a sympy expression over the alphabet, over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to expression
        HBM accesses [elements].
    hbm_elements, hbm_bytes : expression
        All of them together [elements], [B].
    atomics : expression
        Atomic additions to HBM [elements]; each is one of the reads and one of the writes as well.
    flops, useful_flops : expression
        Matrix FLOPs of the visited tiles, those of visible pairs alone [FLOP]; the same where an algorithm
        approximates attention, for then it chooses its pairs.
    exps, tanhs, randoms : expression
        Exponentials, hyperbolic tangents, random numbers [-].
    footprint, footprint_bytes : expression
        The most that is live on chip at once [elements], [B].
    peak_hbm_elements, peak_hbm_bytes : expression
        The most that is allocated in HBM at once [elements], [B].
    """

    algorithm: str
    mask: Mask
    direction: str
    features: tuple[str, ...]
    options: Mapping[str, Any]
    reads: Mapping[str, Expr]
    writes: Mapping[str, Expr]
    hbm_bytes: Expr
    atomics: Expr
    flops: Expr
    useful_flops: Expr
    exps: Expr
    tanhs: Expr
    randoms: Expr
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

    @property
    def own_tiles(self) -> tuple[str, ...]:
        """The tiles that must be given: a follower has the size of the tile that it follows if that is there."""
        return tuple(name for name in self.tiles if FOLLOWS.get(name) not in self.tiles)

    @cached_property
    def quantities(self) -> Mapping[str, Expr]:
        """All expressions by name, tensors apart; totals included."""
        totals = {name: getattr(self, name) for name in ("hbm_reads", "hbm_writes", "hbm_elements")}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.type == "Expr"}
        return FrozenDict({**totals, **own})

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
            BY_NAME[name]: value if isinstance(value, Expr) else as_integer(name, value, int(bool(symbol.is_positive)))
            for name, value in given.items()
            for symbol in [BY_NAME[name]]
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
        body = " \\\\\n".join(rf"{label} &= {latex(factor_terms(expr))}" for label, expr in rows)
        return "\\begin{aligned}\n" + body + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def to_dict(self) -> dict[str, Any]:
        """The expressions as text, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "mask": self.mask if isinstance(self.mask, str) else self.mask.to_dict(),
            "direction": self.direction,
            "features": list(self.features),
            "options": dict(self.options),
            "reads": {name: str(factor_terms(expr)) for name, expr in self.reads.items()},
            "writes": {name: str(factor_terms(expr)) for name, expr in self.writes.items()},
            **{name: str(factor_terms(expr)) for name, expr in self.quantities.items()},
        }

    def __str__(self) -> str:
        return readable(self)


def _tex(name: str) -> str:
    """The name of a tensor as LaTeX: one with an underscore is a word."""
    return name if "_" not in name else r"\text{{{}}}".format(name.replace("_", r"\_"))


@dataclass(frozen=True)
class Kind:
    """What a formula depends on beside numbers and options: the kind of mask, the direction, the call's features."""

    mask: MaskKind = FULL
    direction: str = "forward"
    features: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Room for what follows from the kind alone."""
        return {}

    @cached_property
    def _hash(self) -> int:
        return hash((self.mask, self.direction, self.features))


def mask_kind(mask: Mask) -> MaskKind:
    """Which formula a mask needs: its bounded sides and alignment, without their widths."""
    if isinstance(mask, Window):
        return MaskKind(mask.left is not None, mask.right is not None, top_left=mask.align == "top-left")
    if isinstance(mask, BlockMask | Documents):
        return TABULATED_MASK
    return CAUSAL if mask == "causal" else FULL


TABULATED_MASK = MaskKind(tabulated=True)


def kind_of(call: Call) -> Kind:
    """The formulas that a workload needs, found once for each."""
    kind: Kind | None = call.memo.get("kind")
    if kind is None:
        kind = call.memo["kind"] = _interned(mask_kind(call.mask), call.direction, call.features)
    return kind


_interned = lru_cache(maxsize=1024)(Kind)


def known_direction(direction: object) -> None:
    """Raise UnknownNameError unless this is a direction."""
    if not isinstance(direction, str) or direction not in get_args(Direction):
        raise UnknownNameError("direction", direction, get_args(Direction))


def check_kind(found: Algorithm, kind: Kind) -> None:
    """Raise unless the algorithm answers this direction and has these features."""
    if kind.direction not in found.directions:
        allowed = ", ".join(found.directions)
        raise InputError(f"direction: {kind.direction!r} given; allowed: {allowed}, for {found.name} does no more")
    masks = {"full": FULL, "causal": CAUSAL}
    if found.masks and kind.mask not in [masks[name] for name in found.masks]:
        other = "one of data" if kind.mask.tabulated else "a window"
        given = next((repr(name) for name, mask in masks.items() if mask == kind.mask), other)
        allowed = " or ".join(map(repr, found.masks))
        raise InputError(f"mask: {given} given; allowed: {allowed}, for {found.name} is defined for no other")
    for direction in _passes(kind.direction):
        lacked = FEATURES.keys() if found.approximates else found.without.get(direction, frozenset())
        missing = lacked & set(kind.features)
        if missing:
            raise InputError(f"{min(missing)}: given; allowed: not with {found.name}, whose {direction} pass lacks it")


def _passes(direction: str) -> tuple[str, ...]:
    return ("forward", "backward") if direction == "both" else (direction,)


def check_options(
    found: Algorithm, options: Mapping[str, Any], tiled: bool = False, direction: str = "forward"
) -> dict[str, Any]:
    """All options of an algorithm, defaults filled in; errors name the option."""
    allowed, whole = {**found.takes(direction), **found.common}, {}
    for name, value in options.items():
        if name not in allowed:
            raise UnknownNameError(f"option of {found.name}", name, allowed)
        if name in NUMBERS:
            whole[name] = as_integer(name, value)
        elif type(value) is not type(allowed[name]):
            raise InputError(f"{name}: {shown(value)} given; allowed: {type(allowed[name]).__name__}")
    chosen = {**allowed, **options, **whole}
    if found.approximates and chosen["packed"]:
        raise InputError(f"packed: True given; allowed: False, for {found.name} has no rows of a group in one tile")
    if direction == "both":
        for name, needed in found.saved.items():
            if options.get(name, needed) != needed:
                raise InputError(f"{name}: {options[name]} given; allowed: {needed}, for the backward pass needs it")
    if tiled and found.tiled_by:
        if options.get(found.tiled_by) is False:
            raise InputError(f"{found.tiled_by}: False given; allowed: True, for {found.name} has tiles here")
        chosen[found.tiled_by] = True
    return chosen


def only_taken(found: Algorithm, direction: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that an algorithm knows in a direction."""
    known = {**found.takes(direction), **found.common}
    taken = {name: value for name, value in options.items() if name in known}
    return {**taken, "packed": False} if found.approximates and "packed" in taken else taken


def known_options(algorithms: Iterable[str], direction: str | None = None) -> dict[str, Any]:
    """Every option that one of these algorithms takes, with its default; in one direction, or in any."""
    known: dict[str, Any] = {}
    for name in algorithms:
        found = find_algorithm(name)
        known = {**(found.options if direction is None else found.takes(direction)), **known}
    return {**known, "packed": False}


NUMBERS = frozenset(entry.name for entry in OPTIONS)
"""The options that are numbers: they enter a formula as symbols."""


def structural(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options that shape a formula, in an order of their own."""
    return tuple(sorted((name, value) for name, value in options.items() if name not in NUMBERS))


def declared(found: Algorithm, kind: Kind, options: Mapping[str, Any]) -> Nest:
    """The nest of a kind under the options; `packed` is how it is read, not how it is declared."""
    switches = {name: value for name, value in options.items() if name not in NUMBERS and name != "packed"}
    symbols = {name: BY_NAME[name] for name in NUMBERS & found.options.keys()}
    causal = kind.mask == CAUSAL
    passes = [dressed(found.nest(way, causal, **switches, **symbols), kind.features) for way in _passes(kind.direction)]
    if len(passes) == 1:
        return passes[0]
    return passes[0] + retiled(passes[1], {BY_NAME[name]: BY_NAME[f"bwd_{name}"] for name in ("block_q", "block_kv")})


def expressions(algorithm: str, mask: Mask = "full", direction: str = "forward", **options: Any) -> Expressions:
    """The exact IO complexity of an algorithm, as sympy expressions.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    mask : "full", "causal", Window, BlockMask or Documents
        Only its kind enters: the widths of a window stay symbols, W_l and W_r, and the tiles that a mask given by data
        visits stay counts without a formula.
    direction : {"forward", "backward", "both"}
        What is computed.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True`` for the rows of a GQA group in one tile. A
        number that is not given stays a symbol (``splits``). Features of the call are switched on by name:
        ``bias=True``, ``paged=True`` and so on (:mod:`iomodel.features`).

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
    known_direction(direction)
    features = _features(found, direction, options)
    kind = Kind(mask_kind(mask), direction, features)
    check_kind(found, kind)
    complete = check_options(found, options, direction=direction)
    formula = replace(formulas(found.name, kind, structural(complete)), mask=mask)
    numbers = {name: options[name] for name in NUMBERS & options.keys()}
    return replace(formula.subs(numbers), options=FrozenDict({**formula.options, **numbers})) if numbers else formula


def _features(found: Algorithm, direction: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Take the features out of the options: those that are on, or InputError where a call could not have them."""
    allowed = {**found.takes(direction), **found.common} if direction in found.directions else {}
    for name, value in options.items():
        if allowed and name not in allowed and name not in FEATURES:
            raise UnknownNameError(f"option of {found.name}", name, [*allowed, *FEATURES])
        if name in FEATURES and not isinstance(value, bool):
            raise InputError(f"{name}: {shown(value)} given; allowed: bool")
    features = tuple(name for name in FEATURES if options.pop(name, False))
    serving = [name for name in features if name in CACHE_ONLY]
    if serving and direction != "forward":
        raise InputError(f"{serving[0]}: given with direction {direction}; allowed: with direction forward")
    scales = [name for name in features if name in ("latent", "head_scales", "token_scales")]
    if len(scales) > 1:
        raise InputError(f"{scales[1]}: given with {scales[0]}; allowed: one of the two")
    return features


@lru_cache(maxsize=256)
def formulas(name: str, kind: Kind, options: tuple[tuple[str, Any], ...]) -> Expressions:
    """The expressions of a kind, under the options that shape them."""
    chosen, found = dict(options), find_algorithm(name)
    nest = declared(found, kind, chosen)
    view = View(kind.mask, chosen["packed"])
    flops = counts.flops(nest, view)
    reads, writes = counts.moves(nest, view, counts.READS), counts.moves(nest, view, counts.WRITES)
    return Expressions(
        algorithm=name,
        mask="full",
        direction=kind.direction,
        features=kind.features,
        options=FrozenDict(chosen),
        reads=_by_name(reads),
        writes=_by_name(writes),
        hbm_bytes=Add(*(in_bytes(t.dtype) * expr for side in (reads, writes) for t, expr in side.items())),
        atomics=counts.atomics(nest, view),
        flops=flops,
        useful_flops=flops if found.approximates else counts.useful_flops(nest, view),
        exps=counts.function_values(nest, view, Exp),
        tanhs=counts.function_values(nest, view, Tanh),
        randoms=counts.function_values(nest, view, Random),
        footprint=counts.footprint(nest, view),
        footprint_bytes=counts.footprint(nest, view, in_bytes),
        peak_hbm_elements=counts.peak_hbm(nest, view),
        peak_hbm_bytes=counts.peak_hbm(nest, view, in_bytes),
    )


def _by_name(moved: Mapping[Tensor, Expr]) -> FrozenDict[str, Expr]:
    """Counts by the names of the tensors: one that changes its dtype or its place keeps its name."""
    names = dict.fromkeys(tensor.name for tensor in moved)
    return FrozenDict({name: Add(*(expr for t, expr in moved.items() if t.name == name)) for name in names})
