"""PyTorch: traffic of the operators of a program, masks of FlexAttention, shapes of models.

PyTorch itself is imported only where a program is recorded or a mask is evaluated; recorded calls are counted without
it.
"""

from iomodel.torch.flex_masks import block_mask_of, mask_of
from iomodel.torch.model_shapes import model_of
from iomodel.torch.operator_call import OperatorCall, TensorArgument, read_calls, write_calls
from iomodel.torch.report import OperatorTraffic, TrafficReport
from iomodel.torch.traffic_mode import TrafficMode, traffic

__all__ = [
    "OperatorCall",
    "OperatorTraffic",
    "TensorArgument",
    "TrafficMode",
    "TrafficReport",
    "block_mask_of",
    "mask_of",
    "model_of",
    "read_calls",
    "traffic",
    "write_calls",
]
