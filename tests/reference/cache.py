"""K and V as a call keeps them: plain, in pages, in a type of their own with scales, or latent.

Every forward kernel loads its tiles of keys and values here, whatever their form, so that its loops stay
those of its paper. What is returned are the real values; what is counted is what was moved for them.
"""

from typing import Any, Literal

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Width

from .extras import Extras, place, write_rng_state
from .grid import IntArray, Program, Visit
from .written import PLAIN, Written, turned

Name = Literal["K", "V"]
ALL = slice(None)


def paged(data: FloatArray, table: IntArray, size: int) -> FloatArray:
    """[B, H_kv, N_k, .] as [pages, size, H_kv, .]: page p of sequence b is at table[b, p].

    What lies in the last page after the last key is memory that exists; it is NaN, to show if it is used.
    """
    batch, heads, kv_len, depth = data.shape
    pool = np.full((table.size, size, heads, depth), np.nan)
    key = np.arange(kv_len)
    for b in range(batch):
        pool[table[b, key // size], key % size] = data[b].swapaxes(0, 1)
    return pool


class Cache:
    """K and V in HBM, and their tiles on chip. Both are as stored: a scale is applied when they are used."""

    def __init__(
        self, machine: Machine, K: FloatArray, V: FloatArray, extras: Extras, written: Written = PLAIN
    ) -> None:
        self.machine, self.extras, self.written = machine, extras, written
        self.last: dict[Name, tuple[Program, Visit, slice]] = {}  # the tile in each buffer, with its columns
        self.width: Width = "kv" if extras.own_kv_dtype else "io"
        self.depth: dict[Name, int] = {"K": K.shape[-1], "V": V.shape[-1]}
        self.buffers: dict[str, FloatArray] = {}
        self.table = np.zeros((0, 0), dtype=np.int64)
        hbm, size = machine.hbm, extras.page_size
        if size:
            pages = -(-K.shape[2] // size)
            order = np.random.default_rng(extras.page_seed).permutation(K.shape[0] * pages)
            self.table = order.reshape(K.shape[0], pages)
            hbm.alloc("block_table", self.table.shape, self.table.astype(np.float64), "int32")
        for name, data, scale in ("K", K, extras.K_scale), ("V", V, extras.V_scale):
            if extras.latent and name == "V":
                if K.shape[1] > 1 or extras.scales or not np.array_equal(V, K[..., : V.shape[-1]]):
                    raise ValueError("latent: one key head without scales, its first columns are V")
                hbm.widths["V"] = self.width  # not in HBM, yet V loaded without K is counted by its own name
                continue
            data = paged(data, self.table, size) if size else data
            hbm.alloc(name, data.shape, data, self.width)
            if extras.scales:
                assert scale is not None
                if size and extras.scales == "token":  # they lie in the pages of their keys
                    scale = paged(scale[..., None], self.table, size)[..., 0]
                hbm.alloc(f"{name}_scale", scale.shape, scale, "fp32")

    def load(self, name: Name, program: Program, keys: slice, columns: slice = ALL) -> FloatArray:
        """Load some columns of some keys, as stored; from pages, all there are of these rows."""
        latent = self.extras.latent and name == "V"
        if latent and columns == ALL:
            columns = slice(self.depth["V"])
        return self.machine.hbm.load("K" if latent else name, (*self.at(program, keys), columns), counted=name)

    def at(self, program: Program, keys: slice) -> tuple[Any, ...]:
        """Where some keys lie, in pages or not."""
        if not (size := self.extras.page_size):
            return program.keys(keys)
        key = np.arange(keys.start, min(keys.stop, self.table.shape[1] * size))
        return self.table[program.batch, key // size], key % size, program.kv_head

    def alloc_scale(self, name: Name, per: Literal["head", "token"], length: int = 1) -> None:
        """A buffer for the scales of K or V, if they are of this kind."""
        if self.extras.scales == per and f"{name}_scale" not in self.machine.sram.buffers:
            self.buffers[f"{name}_scale"] = self.machine.sram.alloc(f"{name}_scale", (length,), "fp32")

    def load_scale(self, name: Name, per: Literal["head", "token"], program: Program, keys: slice = ALL) -> None:
        """Load the scale of the program's key head, or those of some of its keys."""
        if self.extras.scales == per:
            head = slice(program.kv_head, program.kv_head + 1)
            index = self.at(program, keys) if per == "token" else (program.batch, head)
            values = self.machine.hbm.load(f"{name}_scale", index)
            self.buffers[f"{name}_scale"][:] = 0.0
            self.buffers[f"{name}_scale"][: len(values)] = values

    def scale(self, name: Name, length: int) -> FloatArray:
        """The scale of each of so many keys on chip."""
        if not self.extras.scales:
            return np.ones(length)
        on_chip = self.buffers[f"{name}_scale"]
        return on_chip[:length] if self.extras.scales == "token" else np.repeat(on_chip, length)

    def alloc_stationary(self) -> None:
        """Buffers of the scales of a head, which stay with the stationary tile."""
        self.alloc_scale("K", "head")
        self.alloc_scale("V", "head")

    def load_stationary(self, program: Program) -> None:
        """Load them."""
        self.load_scale("K", "head", program)
        self.load_scale("V", "head", program)

    def alloc_tile(self, block: int, *names: Name, columns: int | None = None) -> None:
        """Buffers of a tile of K, of V or, named together, of both; latent, K's then holds V too.

        That of V may have room for some `columns` alone.
        """
        for name in names:
            if not (self.extras.latent and name == "V" and "K" in names) and name not in self.machine.sram.buffers:
                width = columns if columns and name == "V" else self.depth[name]
                self.buffers[name] = self.machine.sram.alloc(name, (block, width), self.width)
            self.alloc_scale(name, "token", block)

    def end_walk(self) -> None:
        """Free what a query tile has on chip, but not the last key tile of a walk that turns there."""
        sram = self.machine.sram
        stays = {"K", "V", "K_scale", "V_scale"} if self.written.order == "serpentine" else set()
        sram.free(*(sram.buffers.keys() - stays))

    def free_tile(self, name: Name) -> None:
        """Give them back."""
        self.machine.sram.free(name, *([f"{name}_scale"] if self.extras.scales == "token" else []))

    def load_tile(
        self,
        program: Program,
        visit: Visit | slice,
        *names: Name,
        after: Name | None = None,
        columns: slice | None = None,
    ) -> list[FloatArray]:
        """Load a tile of K, of V or, named together, of both, which then look up their pages once.

        `after` the same tile of K has been loaded and is still there, V knows its pages; latent, it is copied on chip.
        Of V, only some `columns`. A visit that masks its loads moves no keys after the last one that it sees, and none
        that only pads a page.
        """
        keys, loaded = (visit, visit) if isinstance(visit, slice) else (visit.keys, visit.loaded)
        masked = not isinstance(visit, slice) and visit.masked
        n = keys.stop - keys.start
        if (size := self.extras.page_size) and after is None:
            pages = slice(keys.start // size, (keys.stop - 1) // size + 1)
            self.machine.hbm.load("block_table", (program.batch, pages))  # addresses; no buffer
        tiles = []
        for name in names:
            part = columns if columns and name == "V" else slice(self.depth[name])
            if self.extras.latent and name == "V" and "K" in names:
                tiles.append(self.buffers["K"][:n, part])
                continue
            buffer = self.buffers[name][:, : part.stop - (part.start or 0)]
            if self.extras.latent and after == "K":
                buffer[:n] = self.buffers["K"][:n, : self.depth["V"]]
                tiles.append(buffer[:n])
                continue
            if self.stays(name, program, visit, part):
                tiles.append(buffer[:n] * self.scale(name, n)[:, None])
                continue
            whole = slice(keys.start, keys.start + len(buffer)) if size and not masked else loaded
            moved = self.load(name, program, whole, part)
            buffer[:] = 0.0
            buffer[: len(moved)] = moved
            self.load_scale(name, "token", program, whole)
            tiles.append(buffer[:n] * self.scale(name, n)[:, None])
        return tiles

    def stays(self, name: Name, program: Program, visit: Visit | slice, part: slice) -> bool:
        """Whether a walk has turned at a tile that is in its buffer; it will be there after this visit."""
        if isinstance(visit, slice):
            return False
        before = self.last.get(name)
        self.last[name] = program, visit, part
        return (
            before is not None and before[0] is program and before[2] == part and turned(before[1], visit, self.written)
        )


def forward(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    capacity: int | None,
    extras: Extras | None,
    written: Written = PLAIN,
) -> tuple[Machine, Cache, Extras]:
    """A machine with the inputs of a forward call in HBM; the state of its generator is written first."""
    extras = extras or Extras()
    machine = Machine(Q, None, None, capacity)
    cache = Cache(machine, K, V, extras, written)
    place(machine, extras)
    write_rng_state(machine, extras)
    return machine, cache, extras
