"""Directives that make parts of pages from declarations.

`moves` and `on-chip` draw an algorithm, `buffers` lists what it has on chip under a mask, a direction and options such
as ``delta=True``; `symbols`, `tensors` and `labels` are tables of the nomenclature.
"""

from __future__ import annotations

from ast import literal_eval
from html import escape
from pathlib import Path
from typing import Any

import drawings
from dark_pictures import drawn
from docutils import nodes
from markdown_table import table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sympy import latex
from tensor_table import HEAD, list_tensors

from iomodel.algorithms import algorithm
from iomodel.common.labels import LABELS
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.folds import buffers
from iomodel.counting.kinds import FormulaKind, mask_kind
from iomodel.explorer.built import shipped_algorithms
from iomodel.models.families import FAMILIES
from iomodel.models.registry import list_models
from iomodel.nests.alphabet import SHIPPED
from iomodel.nests.features import FEATURES
from iomodel.nests.language import Compound
from iomodel.nests.symbols import BY_NAME

PICTURES = Path("_build", "drawings")
ONES = {BY_NAME[key]: 1 for key in ("batch", "heads", "kv_heads", "group", "groups", "key_heads")}
"""One head: sizes that the tables leave out."""
PLAY = '<p><a href="{}">Watch these moves in the explorer</a></p>'


class Drawing(SphinxDirective):
    """A drawing that is made in the build."""

    def image(self, name: str, figure: Any, alt: str) -> nodes.Node:
        """Write a figure and return its node."""
        data, size = drawn(figure)
        file = PICTURES / f"{name}.png"
        path = Path(self.env.srcdir, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return nodes.image(uri=f"/{file.as_posix()}", alt=alt, width=f"{size['width']:.0f}px")


class Moves(Drawing):
    """The drawing of the moves of a small call, with its caption and a link to the explorer."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        (name,), caption = self.arguments, " ".join(self.content)
        words = f"A small call, [move by move](../pictures.md#a-schedule-move-by-move): {caption}."
        made = [*self.parse_text_to_nodes(words), self.image(f"moves-{name}", drawings.moves(name), caption)]
        if name in shipped_algorithms():
            made.append(nodes.raw("", PLAY.format(escape(drawings.address(name))), format="html"))
        return made


class OnChip(Drawing):
    """The drawing of the shipped tile of an algorithm on a device, to scale."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        name, device = self.arguments
        alt = f"Buffers of {name} in the shared memory of a block and in the registers of a thread, each to scale"
        return [self.image(f"on-chip-{name}", drawings.on_chip(name, device), alt)]


class Buffers(SphinxDirective):
    """The table of the buffers of each kernel."""

    required_arguments = 1
    option_spec = {"mask": str, "direction": str, "with": str}

    def run(self) -> list[nodes.Node]:
        pairs = (pair.split("=") for pair in self.options.get("with", "").split())
        options = {key: literal_eval(value) for key, value in pairs}
        rows = list_buffers(self.arguments[0], self.options.get("mask", "full"), self.options.get("direction"), options)
        return self.parse_text_to_nodes(table(("Kernel", "Width", "Buffers, each with its elements"), rows))


def list_buffers(name: str, mask: Any, direction: str | None, options: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the table: the buffers of a kernel that have one width."""
    declaration = algorithm(name)
    attention = declaration.answers == "attention"
    features = tuple(key for key in options if key in (FEATURES if attention else declaration.features))
    chosen = {**declaration.options, **{key: value for key, value in options.items() if key not in features}}
    kind = FormulaKind(mask_kind(mask), direction or declaration.directions[0], features, declaration.answers)
    rows = []
    for kernel in declared(declaration, kind, chosen):
        widths: dict[str, dict[str, None]] = {}
        for tensor, dtype, path in all_buffers(kernel, ()):
            size = latex(View(kind.mask).buffer(tensor, path).subs(ONES))
            widths.setdefault(dtype, {}).setdefault(f"`{tensor.name}` ${size}$")
        rows += [(f"`{kernel.title}`", width, ", ".join(each)) for width, each in widths.items()]
    return rows


def all_buffers(block: Any, path: Any) -> Any:
    """Yield the buffers of a block and of the blocks in it."""
    here = (*path, block)
    yield from buffers(block.body, here)
    for statement in block.body:
        if isinstance(statement, Compound):
            yield from all_buffers(statement, here)


class Symbols(SphinxDirective):
    """The table of the symbols of the alphabet."""

    def run(self) -> list[nodes.Node]:
        rows = [(f"`{e.name}`", f"${latex(e.symbol)}$", e.meaning, e.unit) for e in SHIPPED]
        return self.parse_text_to_nodes(table(("Python name", "Symbol", "Meaning", "Unit"), rows))


class Tensors(SphinxDirective):
    """The table of the tensors of attention."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(table(HEAD, list_tensors()))


class Labels(SphinxDirective):
    """The table of the labels of sizes and intensities."""

    def run(self) -> list[nodes.Node]:
        rows = (
            (one.label, one.meaning, ", ".join(f"`{name}`" for name in one.attributes), one.unit)
            for one in LABELS.values()
        )
        return self.parse_text_to_nodes(table(("Label", "Meaning", "Attributes", "Unit"), rows))


class Names(SphinxDirective):
    """The names of all `models`, or of all model `types` that are read."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        listed = {"models": list_models, "types": lambda: FAMILIES}[self.arguments[0]]()
        return self.parse_text_to_nodes(", ".join(f"`{name}`" for name in sorted(listed)) + ".")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("moves", Moves)
    app.add_directive("buffers", Buffers)
    app.add_directive("on-chip", OnChip)
    app.add_directive("symbols", Symbols)
    app.add_directive("tensors", Tensors)
    app.add_directive("labels", Labels)
    app.add_directive("names", Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
