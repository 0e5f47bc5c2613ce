"""The last cache between the operators of a program, and the places of their tensors in memory."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from iomodel.torch.moved_bytes import results_of
from iomodel.torch.operator_call import OperatorCall, TensorArgument


class Saved(NamedTuple):
    """Bytes of an operator that DRAM does not see: those that it finds in the cache, and results that stay there [B].

    `written` is below 0 where more than its own results is written back.
    """

    read: int = 0
    written: int = 0


NOTHING = Saved()


class LastCache:
    """A cache that holds whole tensors, and gives up the one that was used longest ago.

    A tensor larger than the cache leaves nothing behind. In a program that is repeated, the storages have `places` in
    memory, and a result is written back when its place is given up, if no later one took that before; elsewhere every
    result counts as written at once.
    """

    def __init__(self, capacity: int, places: Mapping[int | None, int] | None = None) -> None:
        self.capacity = capacity
        self.places = places
        self.held: OrderedDict[int, tuple[int, bool]] = OrderedDict()
        self.total = 0
        self.given_up = 0
        """Bytes that the call at work makes the cache write back [B]."""

    def use(self, call: OperatorCall) -> Saved:
        """Return the bytes of a call that DRAM does not see, and put its tensors in the cache."""
        found = sum(
            min(tensor.distinct_bytes, self.held.get(place, (0, False))[0])
            for tensor in call.inputs.values()
            if (place := self._place(tensor)) is not None
        )
        self.given_up = 0
        results = results_of(call)
        for tensor in call.inputs.values():
            self._hold(tensor, changed=False)
        for tensor in results:
            self._hold(tensor, changed=True)
        if self.places is None:
            return Saved(found)
        return Saved(found, sum(tensor.distinct_bytes for tensor in results) - self.given_up)

    def _place(self, tensor: TensorArgument) -> int | None:
        return tensor.storage if self.places is None else self.places.get(tensor.storage)

    def _hold(self, tensor: TensorArgument, changed: bool) -> None:
        place = self._place(tensor)
        if place is None:
            self.given_up += tensor.distinct_bytes * changed
            return
        before, waits = self.held.pop(place, (0, False))
        size = max(tensor.distinct_bytes, before)
        self.held[place] = size, waits or changed
        self.total += size - before
        while self.total > self.capacity:
            _, (size, waits) = self.held.popitem(last=False)
            self.total -= size
            self.given_up += size * waits


def places_of(calls: Sequence[OperatorCall]) -> dict[int | None, int]:
    """Place each storage as PyTorch's allocator does, which gives a result the block of one that is not used again.

    Blocks are given to results of their own size alone.

    >>> shape, size = (64,), 4
    >>> first, *rest = (TensorArgument(shape, "float32", size, storage=n, outside=not n) for n in range(4))
    >>> places_of([OperatorCall("aten.relu", {"self": x}, (y,)) for x, y in zip([first, *rest], rest)])
    {0: 0, 1: 1, 2: 2, 3: 1}
    """
    last: dict[int, int] = {}
    used = [
        [(each.storage, each) for each in (*call.inputs.values(), *call.outputs) if each.storage is not None]
        for call in calls
    ]
    for number, tensors in enumerate(used):
        for storage, tensor in tensors:
            held = tensor.kept or tensor.outside or last.get(storage) == len(calls)
            last[storage] = len(calls) if held else number
    places: dict[int | None, int] = {}
    free: dict[int, list[int]] = defaultdict(list)
    for number, tensors in enumerate(used):
        for storage, tensor in tensors:
            if storage not in places:
                blocks = [] if tensor.outside else free[tensor.distinct_bytes]
                places[storage] = blocks.pop() if blocks else storage
        for storage, tensor in dict(tensors).items():
            if last[storage] == number:
                free[tensor.distinct_bytes].append(places[storage])
    return places
