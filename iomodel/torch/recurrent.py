"""Recurrent layers of PyTorch as the one call that cuDNN runs."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.errors import InputError, shown, shown_name
from iomodel.torch.operator_call import OperatorCall, OperatorWork

RECURRENT = "aten._cudnn_rnn"
"""The operator of cuDNN's recurrent layers."""
LSTM = 2
GATES = (1, 1, 4, 3)
"""Gates by the mode of the operator: ReLU, tanh, LSTM, GRU."""


@dataclass(frozen=True)
class RecurrentLayers(OperatorWork):
    """Recurrent layers: products of all steps, steps one after the other, and weights that every step reads [B]."""

    products: int
    steps: int
    weights: int

    @property
    def flops(self) -> int:
        """FLOPs, 2 per product [FLOP]."""
        return 2 * self.products


def recurrent_of(call: OperatorCall) -> RecurrentLayers:
    """Return the layers that an operator of cuDNN runs.

    Raises
    ------
    InputError
        The weights are no matrices, or the mode is unknown.
    """
    batch, length = call.tensor("input", 3).shape[:2]
    if not call.arguments.get("batch_first"):
        batch, length = length, batch
    matrices = [tensor for name, tensor in call.inputs.items() if name.startswith("weight.") and len(tensor.shape) == 2]
    layers = call.arguments.get("num_layers", 1)
    if not matrices or type(layers) is not int or layers < 1:
        raise InputError(
            f"inputs of {shown_name(call.operator)}: {len(matrices)} matrices of weights and {shown(layers)} layers "
            "given; allowed: at least one of each"
        )
    weights = sum(tensor.elements for tensor in matrices)
    return RecurrentLayers(batch * length * weights, layers * length, sum(tensor.bytes for tensor in matrices))
