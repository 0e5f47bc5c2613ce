"""Rules of the language, and the error that names a violation."""

from __future__ import annotations

from typing import Any, TypeGuard

from sympy import Expr

from iomodel.errors import IOModelError
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    Guard,
    Idle,
    Kernel,
    Leaf,
    Live,
    Load,
    Loop,
    MatMul,
    Nest,
    Path,
    Pointwise,
    Store,
    When,
    held,
    loops,
    same_body,
    walk,
)
from iomodel.nests.symbols import NAME_OF
from iomodel.nests.tensors import grouped, head, key, query


class DeclarationError(IOModelError):
    """A nest breaks a rule of the language."""


def check(nest: Nest) -> None:
    """Raise DeclarationError if a nest walks an axis twice, masks outside a pair, or stores an unbuffered tensor.

    >>> from iomodel.nests.symbols import B_r
    >>> from iomodel.nests.tensors import O, query
    >>> check((Kernel("bad", [Loop(query, B_r, [Store(O)])]),))
    Traceback (most recent call last):
    ...
    iomodel.nests.rules.DeclarationError: bad: O is stored but not held in a buffer
    """
    for statement, path in walk(nest):
        kernel = path[0]
        assert isinstance(kernel, Kernel)
        walked = [block.axis for block in path if isinstance(block, Loop)]
        if len(set(walked)) < len(walked):
            raise DeclarationError(f"{kernel.title}: a loop over an axis is nested in another loop over the same axis")
        for i, block in enumerate(path):
            bound = isinstance(block, Live | Idle) or (isinstance(block, Loop) and block.masked)
            if bound and not loops(path[:i]):
                raise DeclarationError(f"{kernel.title}: a mask needs an enclosing loop over the other axis")
            if isinstance(block, Cut):
                _check_cut(kernel, block, path[:i])
            if isinstance(block, Loop) and block.serpentine:
                _check_serpentine(kernel, block, path[:i])
        if len({block.sight for block in path if _bounded(block)}) > 1:
            raise DeclarationError(f"{kernel.title}: a loop and a guard around it have a different sight of the mask")
        if sum(isinstance(block, Loop) and block.masked for block in path) > 1:
            raise DeclarationError(f"{kernel.title}: a masked loop is nested in another masked loop")
        if isinstance(statement, Load | Store):
            _check_trips(f"{kernel.title}: {statement.tensor.name}", statement, path)
        if isinstance(statement, Store | Accumulate) and (statement.held or statement.tensor) not in held(path):
            raise DeclarationError(f"{kernel.title}: {statement.tensor.name} is stored but not held in a buffer")


def _check_trips(place: str, move: Load | Store, path: Path) -> None:
    """Reject a first trip that is not that of a masked loop or of the loop around it, and a clipped load without one.

    Around the loop over the other axis of the mask nothing else may walk, so that a tile has one first visit.
    """
    masked, axes, around = _masked(path), {*move.tensor.axes}, list(loops(path))
    within = not any(isinstance(block, Cut | Idle) for block in path) and {*around} == {query, key}
    outer = around[:1] if within and around[1:] == masked else []
    for which, axis in (("skips", getattr(move, "after_first", None)), ("has only", move.only_first)):
        if axis not in (None, *masked, *outer):
            raise DeclarationError(f"{place} {which} the first trip, but of a loop that is not masked")
        if axis and any(map(_guards, _within(masked[0], path))):
            raise DeclarationError(f"{place} {which} the first trip, but is inside a guard")
        if axis and _walked(axis) & axes:
            raise DeclarationError(f"{place} {which} the first trip, but its tile changes at every trip")
    if getattr(move, "clipped", False) and (not masked or masked[0] not in axes or {query, key} <= axes):
        raise DeclarationError(f"{place} is clipped, but covers no axis, or both, of a masked loop")


def check_symbols(nest: Nest) -> None:
    """Raise DeclarationError where a nest has a symbol that is not in the alphabet.

    >>> from sympy import Symbol
    >>> from iomodel.nests.tensors import Q, query
    >>> check_symbols((Kernel("bad", [Loop(query, Symbol("X"), [Load(Q)])]),))
    Traceback (most recent call last):
    ...
    iomodel.nests.rules.DeclarationError: bad: X has no name; allowed: the alphabet, and symbols=... of the algorithm
    """
    for statement, path in walk(nest):
        kernel = path[0]
        assert isinstance(kernel, Kernel)
        for letter in sorted(map(str, _symbols(statement, path) - NAME_OF.keys() - {grouped})):
            raise DeclarationError(
                f"{kernel.title}: {letter} has no name; allowed: the alphabet, and symbols=... of the algorithm"
            )


def _symbols(statement: Leaf, path: Path) -> set[Any]:
    """Collect the symbols of a statement's axes and of the blocks around it."""
    if isinstance(statement, MatMul):
        axes = {statement.m, statement.n, statement.k}
    else:
        axes = {*(statement.axes if isinstance(statement, Pointwise) else statement.tensor.axes)}
    formulas: list[Expr] = []
    for block in path:
        match block:
            case Loop(axis=axis, tile=tile):
                axes.add(axis)
                formulas.append(tile)
            case When(condition=condition):
                formulas.append(condition)
            case Cut(pieces=pieces):
                formulas += [formula for piece in pieces for formula in (piece.times, *piece.sizes.values())]
    formulas += [formula for axis in axes for formula in (axis.length, axis.chunk) if formula is not None]
    return set().union(*(formula.free_symbols for formula in formulas))


def _check_cut(kernel: Kernel, cut: Cut, around: Path) -> None:
    """Reject a cut whose pieces change sizes used around it, which would be counted with the sizes of the pieces."""
    changed = {symbol for piece in cut.pieces for symbol in piece.sizes}
    walked = set().union(*(loop.axis.length.free_symbols | loop.tile.free_symbols for loop in loops(around).values()))
    if any(isinstance(block, Cut | Live | Idle) for block in around) or _masked(around):
        raise DeclarationError(f"{kernel.title}: a cut is nested in another cut, a guard or a masked loop")
    if changed & walked:
        names = ", ".join(sorted(map(str, changed & walked)))
        raise DeclarationError(f"{kernel.title}: a cut changes {names}, used by an enclosing loop")


def _check_serpentine(kernel: Kernel, loop: Loop, around: Path) -> None:
    """Reject a serpentine loop whose tile at the turn leaves the chip, or has no count."""
    place = f"{kernel.title}: a serpentine loop over {loop.axis.name}"
    if not loop.masked:
        raise DeclarationError(f"{place} is not masked")
    within = next(n for n, block in enumerate(reversed(around)) if isinstance(block, Loop))
    outer, guards = around[-1 - within], around[len(around) - within :]
    other = {query: key, key: query}.get(loop.axis)
    if other in loops(around) and getattr(outer, "axis", None) != other:
        raise DeclarationError(f"{place} is not directly in the loop over the other axis of the mask")
    if any(isinstance(block, Cut | Idle) for block in around) or any(axis.of for axis in loops(around)):
        raise DeclarationError(f"{place} is in a cut, a partition or a guard of idle tiles")
    if any(isinstance(block, Live) and block.axis != loop.axis for block in guards):
        raise DeclarationError(f"{place} is in a guard of another axis")
    if sum(isinstance(block, Loop) for block in same_body(outer)) > 1:
        raise DeclarationError(f"{place} is not the only loop of its body, where its buffers stay")
    for load in (statement for statement in loop.body if isinstance(statement, Load)):
        if load.clipped or loop.axis in load.padded:
            raise DeclarationError(f"{place} has a clipped or padded load of {load.tensor.name}")


def _walked(axis: Axis | None) -> set[Axis | None]:
    """Return the axes whose tile changes in a loop: packed queries are rows of several heads."""
    return {axis, head} if axis == query else {axis}


def _masked(path: Path) -> list[Axis]:
    return [block.axis for block in path if isinstance(block, Loop) and block.masked]


def _within(axis: Axis, path: Path) -> Path:
    """Return the blocks inside the loop over an axis."""
    return path[1 + next(i for i, block in enumerate(path) if isinstance(block, Loop) and block.axis == axis) :]


def _guards(block: Kernel | Loop | Cut | Guard) -> bool:
    return isinstance(block, Live | Idle)


def _bounded(block: Kernel | Loop | Cut | Guard) -> TypeGuard[Loop | Live | Idle]:
    """Return True for a masked loop or a guard of queries or keys, which a mask bounds."""
    if isinstance(block, Loop):
        return block.masked and block.axis in (query, key)
    return isinstance(block, Live | Idle) and block.axis in (query, key)
