"""The loss of a language model on rows of its last layer: widths and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.workloads.call import ElementType, Switch
from iomodel.workloads.workload import Shape


class CrossEntropy(Shape):
    """The cross-entropy of X W against labels: a loss per row, -log softmax(x W)[label], and its log-sum-exp.

    Parameters
    ----------
    rows, in_features, vocab_size : int
        Rows of X (tokens) [rows]; width of X [elements]; columns of W [-].
    dtype : str
        Type of X, W and of logits in HBM; losses and log-sum-exps are fp32, labels int64.
    gradients : bool
        Make the gradients of the sum of the losses, dX and dW, in the same call, and no log-sum-exp.

    Raises
    ------
    InputError
        A field is missing, unknown, or not a positive integer.

    References
    ----------
    Wijmans et al., Cut Your Losses in Large-Vocabulary Language Models, arXiv:2411.09009, equations 1 to 3. Gradients
    with the losses: Hsu et al., Liger Kernel, arXiv:2410.10989, section 3.2.

    Examples
    --------
    >>> CrossEntropy(rows=8192, in_features=2304, vocab_size=256000).logits
    2097152000
    """

    operation: ClassVar[str] = "cross_entropy"
    direction: ClassVar[str] = "forward"

    rows: Count
    in_features: Count
    vocab_size: Count
    dtype: ElementType = "bf16"
    gradients: Switch = False

    @property
    def features(self) -> tuple[str, ...]:
        """Features that change the nest: "gradients"."""
        return ("gradients",) if self.gradients else ()

    @property
    def logits(self) -> int:
        """Number of logits [elements]."""
        return self.rows * self.vocab_size

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Value of every symbol of a loss, keyed by its Python name, in alphabet order."""
        names = ("rows", "in_features", "vocab_size", "element_size")
        return FrozenDict({name: getattr(self, name) for name in names})
