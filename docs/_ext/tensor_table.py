"""The table of the tensors of attention: the meaning of a tensor is the comment beside its declaration."""

import inspect
import re

from sympy import latex

from iomodel.nests import tensors
from iomodel.nests.language import Tensor

HEAD = ("Name", "Shape", "Dtype in HBM", "One for each", "Meaning")
EACH = {
    "head": "query head",
    "kv_head": "key/value head",
    "heads": "query head, whatever the batch",
    "batch": "sequence",
    "call": "call",
}
"""Words for what a tensor exists once for."""
DECLARED = re.compile(r"^(?:#: (?P<before>.+)\n)?(?P<name>\w+) = Tensor\(.*?\)(?:  #: (?P<beside>.+))?$", re.MULTILINE)


def list_tensors() -> list[tuple[str, ...]]:
    """Return the cells of each tensor."""
    declared = DECLARED.finditer(inspect.getsource(tensors))
    meanings = {one["name"]: one["before"] or one["beside"] or "" for one in declared}
    named = ((name, each) for name, each in vars(tensors).items() if isinstance(each, Tensor))
    return [
        (f"`{each.name}`", f"${lengths(each)}$", each.dtype, EACH[each.per], meanings[name]) for name, each in named
    ]


def lengths(tensor: Tensor) -> str:
    """Write the lengths of the axes of a tensor."""
    return r" \times ".join(latex(axis.length) for axis in tensor.axes) or "1"
