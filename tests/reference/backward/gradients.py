"""Where the gradients of keys and values go: written directly, once a query head, or added up atomically."""

from iomodel.testing.machine import FloatArray, Machine, Width

from ..grid import Program

ALL = slice(None)
OPERANDS = {"dK": "K", "dV": "V"}


class KeyGradients:
    """dK and dV of a call.

    Query heads of a group that are not packed run as programs of their own, each with gradients of its own for
    the keys that they share. They meet in dK_expanded and dV_expanded, or in dK_acc and dV_acc.
    """

    def __init__(self, machine: Machine, Q: FloatArray, packed: bool, accumulate: bool = False) -> None:
        self.machine, self.hbm = machine, machine.hbm
        self.heads, self.kv_heads = Q.shape[1], self.hbm.arrays["K"].shape[1]
        self.group = self.heads // self.kv_heads
        shared = self.group > 1 and not packed
        self.suffix = "" if not shared else "_acc" if accumulate else "_expanded"

    @property
    def accumulated(self) -> bool:
        """Whether the programs add to what was zeroed, instead of writing."""
        return self.suffix == "_acc"

    def alloc(self, *names: str) -> None:
        """Allocate what the programs write or add to."""
        heads = self.heads if self.suffix == "_expanded" else self.kv_heads
        width: Width = "fp32" if self.accumulated else "io"
        for name in names or OPERANDS:
            batch, _, *shape = self.hbm.arrays[OPERANDS[name]].shape
            self.hbm.alloc(name + self.suffix, (batch, heads, *shape), width=width)

    def zero(self) -> None:
        """Fill them with zeros: constants, nothing on chip."""
        for name in OPERANDS:
            self.hbm.store(name + self.suffix, ..., 0.0)

    def put(self, name: str, program: Program, keys: slice, tile: FloatArray, columns: slice = ALL) -> None:
        """Write a tile of a program's gradient, or add it."""
        head = program.head if self.suffix == "_expanded" else program.kv_head
        at = program.batch, head, keys, columns
        if self.accumulated:
            self.hbm.add(name + self.suffix, at, tile)
        else:
            self.hbm.store(name + self.suffix, at, tile)

    def finish(self) -> None:
        """Run the two last kernels, dK's and dV's, one program a key head, row by row of its keys."""
        if not self.suffix:
            return
        for name, operand in OPERANDS.items():
            batch, kv_heads, *_ = shape = self.hbm.arrays[operand].shape
            self.hbm.alloc(name, shape)
            for b in range(batch):
                for h in range(kv_heads):
                    (self.convert if self.accumulated else self.sum_group)(name, b, h)
            self.hbm.free(name + self.suffix)

    def sum_group(self, name: str, b: int, h: int) -> None:
        """Sum the rows of a key in the group's query heads, one at a time."""
        _, _, length, depth = self.hbm.arrays[name].shape
        total = self.machine.sram.alloc(name, (depth,), "fp32")
        row = self.machine.sram.alloc(f"{name}_expanded", (depth,), "io")
        for j in range(length):
            total[:] = 0.0
            for g in range(self.group):
                row[:] = self.hbm.load(f"{name}_expanded", (b, h * self.group + g, j))
                total += row
            self.hbm.store(name, (b, h, j), total)
        self.machine.sram.free()

    def convert(self, name: str, b: int, h: int) -> None:
        """Convert the row of a key from fp32."""
        _, _, length, depth = self.hbm.arrays[name].shape
        row = self.machine.sram.alloc(f"{name}_acc", (depth,), "fp32")
        for j in range(length):
            row[:] = self.hbm.load(f"{name}_acc", (b, h, j))
            self.hbm.store(name, (b, h, j), row)
        self.machine.sram.free()
