"""An elementwise kernel on some rows: its widths and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from pydantic import Field

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.workloads.call import KV_QUARTERS, CacheType, ElementType, Pass
from iomodel.workloads.workload import Shape


class Elementwise(Shape):
    """An elementwise kernel on rows of activations.

    Parameters
    ----------
    rows, channels : int
        Tokens [rows]; width of a row [elements], in sampling the words of the vocabulary.
    others : int
        A second width: that of V in "append", of the angles in "rotary", of K in "rotary_append" [elements], the
        experts of a token in "combine_experts" [-].
    angles : int
        The width of the angles in "rotary_append" [elements].
    dtype, kv_dtype : str
        Type of the activations, and of the K/V cache where it is another.
    direction : {"forward", "backward", "both"}
        The pass, or one after the other.

    Examples
    --------
    >>> import iomodel
    >>> iomodel.cost("add_norm", Elementwise(rows=8192, channels=4096)).hbm_bytes  # x, residual in and out; gamma a row
    335544320
    """

    operation: ClassVar[str] = "elementwise"

    rows: Count
    channels: Count
    others: Count = 1
    angles: Count = 1
    dtype: ElementType = "bf16"
    kv_dtype: CacheType = Field(default_factory=lambda data: data["dtype"])
    direction: Pass = "forward"

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element in HBM, in quarters of a bit."""
        return min(32 * self.element_size, KV_QUARTERS[self.kv_dtype])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number for every symbol of an elementwise kernel, by its Python name, in the order of the alphabet."""
        widths = {"rows": self.rows, "channels": self.channels, "others": self.others, "angles": self.angles}
        return FrozenDict({**widths, "element_size": self.element_size, "kv_size": KV_QUARTERS[self.kv_dtype]})
