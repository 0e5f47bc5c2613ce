"""Formulas of a kernel's traffic, inferred from its counts at several shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.errors import InputError, IOModelError, UnknownNameError, shown
from iomodel.triton.formula_fit import FormulaFit, Inference
from iomodel.triton.kernel_count import KernelCount

if TYPE_CHECKING:
    from iomodel.counting.expressions import Expressions


@strict
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
    for name, count, largest in (("most", most, 3), ("points", points, 1000), ("fresh", fresh, 1000)):
        if as_integer(name, count) > largest:
            raise InputError(f"{name}: {count} given; allowed: an integer from 1 to {largest}")
    values = _values(numbers)
    of = _tiled(values, tiled)
    mapped = _names(names)
    drawn = Random(as_integer("seed", seed, 0))
    shapes = [
        {name: as_integer(f"numbers: {name}", drawn.choice(each)) for name, each in values.items()}
        for _ in range(points + fresh)
    ]
    counted = [_counted(run, shape) for shape in shapes]
    return FormulaFit(shapes, counted, of, declared, mapped, most, points).result()


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
    sequences = as_mapping("numbers", numbers, example)
    values: dict[str, Sequence[int]] = {}
    for name, each in sequences.items():
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

    pairs = as_mapping("tiled", {} if tiled is None else tiled, "{'block_q': 'q_len'}")
    usual = {
        tile: length if length in values else {"kv_len": "q_len"}.get(length, length) for tile, length in TILED.items()
    }
    for tile, length in pairs.items():
        for name in (tile, length):
            if not isinstance(name, str) or name not in values:
                raise UnknownNameError("tiled", name, values)
    return {name: length for name, length in {**usual, **pairs}.items() if name in values and length in values}
