"""Storages that stay in the last cache between operators."""

from __future__ import annotations

from collections import OrderedDict

from iomodel.torch.operator_call import OperatorCall, TensorArgument


class ResidentStorages:
    """A cache that holds whole tensors, and gives up the one that was used longest ago.

    A tensor larger than the cache leaves nothing behind.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: OrderedDict[int, int] = OrderedDict()
        self.total = 0

    def use(self, call: OperatorCall) -> int:
        """Return the bytes that a call finds in the cache [B], and put its tensors there."""
        found = 0
        for tensor in call.inputs.values():
            if tensor.storage is not None and tensor.storage in self.held:
                found += min(tensor.distinct_bytes, self.held[tensor.storage])
        for tensor in (*call.inputs.values(), *call.outputs):
            self._hold(tensor)
        return found

    def _hold(self, tensor: TensorArgument) -> None:
        if tensor.storage is None:
            return
        before = self.held.pop(tensor.storage, 0)
        size = max(tensor.distinct_bytes, before)
        self.held[tensor.storage] = size
        self.total += size - before
        while self.total > self.capacity:
            _, given_up = self.held.popitem(last=False)
            self.total -= given_up
