"""Conversion of a nest to plain data, walked tile by tile on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import Expr

from iomodel.counting.coverage import View
from iomodel.nests import language

Add = Callable[[Expr], Any]
MOVES: dict[type, str] = {
    **dict.fromkeys((language.Load, language.Lookup), "load"),
    **dict.fromkeys((language.Store, language.Fill), "store"),
    language.Accumulate: "add",
}
PACKED = View(packed=True)


class Drawn:
    """The kernels of a nest with their axes and tensors, as plain data."""

    def __init__(self, nest: language.Nest, add: Add) -> None:
        self.add = add
        self.axes: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.kernels = [{"title": k.title, "per": k.per, "body": self._body(k.body)} for k in nest]

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data; formulas are the results of `add`."""
        return {"axes": self.axes, "tensors": self.tensors, "kernels": self.kernels}

    def _axis(self, axis: language.Axis) -> str:
        if axis.name not in self.axes:
            data: dict[str, Any] = {"rows": self.add(axis.length), "packed": self.add(PACKED.rows(axis))}
            data["symbol"] = str(axis.length) if axis.length.is_Symbol else None
            self.axes[axis.name] = data
            if axis.of is not None and axis.chunk is not None:
                data |= {"of": self._axis(axis.of), "chunk": self.add(axis.chunk)}
        return axis.name

    def _tensor(self, tensor: language.Tensor) -> str:
        if tensor.name not in self.tensors:
            self.tensors[tensor.name] = list(map(self._axis, tensor.axes))
        return tensor.name

    def _body(self, body: Iterable[language.Statement]) -> list[dict[str, Any]]:
        return [plain for statement in body if (plain := self._statement(statement)) is not None]

    def _statement(self, statement: language.Statement) -> dict[str, Any] | None:
        if isinstance(statement, language.Compound):
            return self._block(statement)
        if isinstance(statement, tuple(MOVES)):
            name = self._tensor(statement.tensor)  # type: ignore[union-attr]
            waits = getattr(statement, "after_first", None)
            return {"do": MOVES[type(statement)], "tensor": name, **({"after": waits.name} if waits else {})}
        if isinstance(statement, language.MatMul):
            return {"do": "multiply", "axes": [self._axis(axis) for axis in (statement.m, statement.n, statement.k)]}
        if isinstance(statement, language.Exp):
            return {"do": "exp", "axes": list(map(self._axis, statement.axes))}
        return None  # held buffers, and marks of absent features, move and compute nothing

    def _block(self, block: Any) -> dict[str, Any]:
        body = self._body(block.body)
        if isinstance(block, language.Loop):
            tile, name = self.add(block.tile), self._axis(block.axis)
            return {"do": "loop", "axis": name, "tile": tile, "masked": block.masked, "body": body}
        if isinstance(block, language.When):
            return {"do": "when", "holds": self.add(block.holds), "body": body}
        if isinstance(block, language.Cut):
            pieces = [
                {"times": self.add(piece.times), "sizes": {str(s): self.add(size) for s, size in piece.sizes.items()},
                 "mask": piece.mask}
                for piece in block.pieces
            ]  # fmt: skip
            return {"do": "cut", "pieces": pieces, "body": body}
        assert isinstance(block, language.Live | language.Idle)
        return {
            "do": "live" if isinstance(block, language.Live) else "idle",
            "axis": self._axis(block.axis),
            "body": body,
        }
