"""Formulas as MathML, made at build time by docutils: pages need no network and no script to show them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(tex: str, as_block: bool) -> str:
    """One formula; docutils takes an escape within a text for two characters."""
    return str(
        tex2mathml(re.sub(r"\\text\{[^{}]*\}", lambda found: found[0].replace(r"\_", "_"), tex), as_block=as_block)
    )


def inline(self: Any, node: nodes.Element) -> None:
    self.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.Element) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
