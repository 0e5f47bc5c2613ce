"""Recurrent layers of PyTorch as the one call that cuDNN runs."""

from __future__ import annotations

from typing import NamedTuple

from iomodel.errors import InputError, shown, shown_name
from iomodel.torch.operator_call import OperatorCall

RECURRENT = "aten._cudnn_rnn"
"""The operator of cuDNN's recurrent layers."""
LSTM = 2
GATES = (1, 1, 4, 3)
"""Gates by the mode of the operator: ReLU, tanh, LSTM, GRU."""


class RecurrentLayers(NamedTuple):
    """Recurrent layers: FLOPs of all products, steps one after the other, and weights that every step reads [B]."""

    flops: int
    steps: int
    weights: int


def recurrent_of(call: OperatorCall) -> RecurrentLayers | None:
    """Return the layers that an operator runs, if it is cuDNN's.

    Raises
    ------
    InputError
        The weights are no matrices, or the mode is unknown.
    """
    if call.operator != RECURRENT:
        return None
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
    return RecurrentLayers(2 * batch * length * weights, layers * length, sum(tensor.bytes for tensor in matrices))
