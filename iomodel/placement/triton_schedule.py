"""Schedule of a Triton kernel: its matrix instruction, copies of streamed tiles, tiles that pass through memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from iomodel.placement.triton_kernel import PassedTile, Tile, TileProduct, TritonKernel
from iomodel.placement.triton_layouts import ACCESS, WARP, balanced_warps, conversion, multiplied, turning

POINTER = 8
"""Size of an address [B]."""
NARROWEST = 4
"""Bytes of the narrowest asynchronous copy [B]."""
PARTS = 3
"""Halvings of the scratch through which an operand that arithmetic makes comes into tensor memory [-]."""
WIDE = 128
"""Columns of a result that eight warps store in parts [-]."""
REDUCTION = 512
"""Size of the row statistics that eight warps exchange [B]."""


def instruction(kernel: TritonKernel, arch: int, warps: int) -> str:
    """Select the widest matrix instruction of a kernel: a wide one needs the rows of a product."""
    whole = any(product.rows % 64 == 0 for product in kernel.products)
    if arch // 10 == 9 and whole and warps % 4 == 0:
        return "wgmma"
    if arch // 10 == 10 and whole and warps in (4, 8) and not (kernel.integers and arch == 103):
        return "tcgen05"
    return "mma.sync"


@dataclass(frozen=True)
class LoopSchedule:
    """A kernel with its launch: the sizes of its buffers in shared memory."""

    kernel: TritonKernel
    arch: int
    warps: int
    stages: int

    @cached_property
    def unit(self) -> str:
        """The matrix instruction."""
        return instruction(self.kernel, self.arch, self.warps)

    @cached_property
    def ahead(self) -> int:
        """Iterations that loads run ahead, shared among the loads of a chain [-]; 0 without a pipeline."""
        if not self.kernel.looped:
            return 0
        stages = self.stages if self.kernel.stages is None else self.kernel.stages
        chain = max((tile.chain for tile in self.kernel.loads if tile.chain < stages - 1), default=0)
        return (stages - 1) // (1 + chain)

    @cached_property
    def along_rows(self) -> bool:
        """True if the warps of mma.sync lie along the rows of the last product, whose shape decides for all."""
        last = self.kernel.products[-1]
        return last.rows >= last.columns or self.warps == 1

    def copies(self, tile: Tile) -> int:
        """Count the copies of a loaded tile that the pipeline holds; 0 for a tile that is not loaded ahead."""
        if tile.made:  # where an accumulator takes it, tcgen05 reads it after the iteration that makes it
            summed = any(each.carried for each in self.kernel.products if each.right == tile.name)
            return int(self.unit == "tcgen05" and self.ahead > 0 and summed)
        if not self.ahead or (tile.scattered and tile.element < NARROWEST):
            return 0
        if tile.columns > 1 and (self._narrow(tile) or self._stored(tile) or self._split(tile)):
            return 0
        uses = len(list(self.kernel.uses(tile.name)))
        if not uses:
            return self._vectors(tile)
        if self.unit == "mma.sync":
            return self.ahead
        # A product that reads shared memory by itself ends an iteration later, one that waits for another's another.
        later = 2 if self.unit == "tcgen05" and uses > 1 and self._chained(tile) else 1
        return self.ahead + later - (self.unit == "tcgen05" and self.summed)

    def storing(self, result: Tile) -> int:
        """Compute the scratch through which a result is stored after the loop [B].

        A result in tensor memory is read in the layout of its store.
        """
        if self.unit == "tcgen05":
            return 0
        last = self.kernel.products[-1]
        if self.unit == "wgmma":
            rows = min(self.warps, last.rows // 16)
            along = (rows, self.warps // rows)
        elif len(self.kernel.products) == 1:
            along = balanced_warps(last.rows, last.columns, self.warps)
        else:
            along = (self.warps, 1) if self.along_rows else (1, self.warps)
        return conversion(result, along, self.warps, self.arch)

    def passing(self, step: PassedTile) -> int:
        """Compute the scratch of a tile that is stored in an iteration, or meets a result there [B].

        Read off compiles: a result in tensor memory passes in four parts, with eight warps only if its rows are long.
        """
        tile = Tile(step.passed, step.rows, step.columns, step.element)
        if step.columns == 1:
            return tile.size * (self.warps if step.passed == "summed" else 1)  # of a sum, each warp has a part
        if self.unit == "tcgen05":
            return tile.size >> (2 if self.warps == 4 or step.columns >= WIDE else 0)
        return self.storing(tile)

    @cached_property
    def summed(self) -> bool:
        """True if one accumulator sums two products, of which the first is waited for."""
        return any(product.into for product in self.kernel.products)

    def _chained(self, tile: Tile) -> bool:
        """Check whether a product of a tile takes the result of an earlier product."""
        results = {product.name for product in self.kernel.products}
        return any(
            tile.name in (each.left, each.right) and results & {each.left, each.right} for each in self.kernel.products
        )

    def _vectors(self, tile: Tile) -> int:
        """Count the copies of a tile that reaches products by way of arithmetic, or by way of addresses."""
        readers = [other for other in self.kernel.loads if other.chain > tile.chain]
        if not readers:
            return self.ahead
        if max(other.chain for other in readers) >= self.stages - 1:
            return 0
        # A load of fewer elements than threads is repeated in the layout of each reader that runs ahead.
        ahead = [other for other in readers if self.copies(other)]
        return self.ahead * (len(ahead) if tile.rows < WARP * self.warps else 1)

    def _narrow(self, tile: Tile) -> bool:
        """Check whether a thread loads less than four bytes of a tile, too few for an asynchronous copy."""
        return max(1, tile.rows * tile.columns // (WARP * self.warps)) * tile.element < NARROWEST

    def _stored(self, tile: Tile) -> bool:
        """Check whether threads store a tile: wgmma reads 8-bit elements of a sum only where they are contiguous."""
        if self.unit != "wgmma" or tile.element > 1:
            return False
        return any(each.right == tile.name and each.right_order == "rows" for each in self.kernel.products)

    def element(self, element: int) -> int:
        """Compute the size of an element of a left operand [B]: sm_90 and sm_100 have 8 bits in wide products alone."""
        return max(element, 2) if self.unit == "mma.sync" and self.arch // 10 in (9, 10) else element

    def operand(self, product: TileProduct) -> int:
        """Compute the scratch that turns the result of an earlier product into an operand [B].

        A right operand, and a left one that is transposed, is read from shared memory.
        """
        results = {each.name: self.element(each.element) for each in self.kernel.products}
        size = product.rows * product.depth * results.get(product.left, 0)
        if product.right in results or (product.left_turned and size):
            right = product.depth * product.columns * results.get(product.right, 0)
            return right + (size if product.left_turned else 0)
        source = next((each for each in self.kernel.products if each.name == product.left), None)
        if source is None:
            return self._earlier(product)
        if self.unit == "mma.sync":
            return 0 if self.along_rows else size
        if self.unit == "tcgen05" and not self.ahead and source.reduced and self._shared_rows(product) == 128:
            return ACCESS * WARP * self.warps  # one access of each thread at a time
        return 0

    @cached_property
    def read_later(self) -> tuple[TileProduct, ...]:
        """The products of tcgen05 that read a transposed operand after the iteration that makes it."""
        if self.unit != "tcgen05" or not self.ahead:
            return ()
        return tuple(each for each in self.kernel.products if each.carried and each.left_turned and self.operand(each))

    def _earlier(self, product: TileProduct) -> int:
        """Compute the scratch that turns the result of an earlier loop into the left operand of mma.sync [B]."""
        source = next((each for each in self.kernel.results if each.name == product.left), None)
        held = source in self.kernel.resident
        return source.size if source is not None and not held and self._converted(product) else 0

    def _converted(self, product: TileProduct) -> bool:
        """Check whether mma.sync takes the result of an earlier loop in another layout than that loop's."""
        along = balanced_warps(product.rows, product.columns, self.warps)
        alone = len(self.kernel.products) == 1
        return self.unit == "mma.sync" and ((alone and along[1] > 1) or not self.along_rows)

    def in_registers(self, tile: Tile) -> bool:
        """Check whether a resident tile is the result of an earlier loop in the layout of a left operand."""
        taken = [each for each in self.kernel.products if tile.name in (each.left, each.right)]
        if self.unit != "mma.sync" or tile not in self.kernel.results:
            return False
        return not any(tile.name == each.right or each.left_turned or self._converted(each) for each in taken)

    def moved(self, product: TileProduct) -> int:
        """Compute the scratch that brings the accumulator of a loop into the layout of a product off it [B].

        mma.sync divides the warps of a product on its own along both sides.
        """
        summed = any(tile.name == f"{product.name} before" for tile in self.kernel.results)
        if not summed or self.unit != "mma.sync" or len(self.kernel.products) > 1:
            return 0
        along = balanced_warps(product.rows, product.columns, self.warps)
        before = (self.warps, 1) if product.rows >= product.columns else (1, self.warps)
        common = multiplied(product.rows, product.columns, before) & multiplied(product.rows, product.columns, along)
        whole = product.rows * product.columns * 4
        return 0 if along == before else whole >> max(0, len(common) - 2)

    def reduction(self, product: TileProduct) -> int:
        """Compute the scratch through which warps that share a row reduce it [B]."""
        return REDUCTION if product.reduced and self._shared_rows(product) else 0

    def _shared_rows(self, product: TileProduct) -> int:
        """Count the rows of a product of tcgen05 that are shared by two warps each [-]."""
        return product.rows if self.unit == "tcgen05" and self.warps == 8 and product.rows <= 128 else 0

    def turned(self, position: int) -> bool:
        """Check whether a product takes its right tile transposed from registers, as mma.sync without a pipeline."""
        step = self.kernel.loop[position]
        if not isinstance(step, TileProduct) or step.right_order != "turned" or self.unit != "mma.sync":
            return False
        return not self.ahead or any(self._split(tile) for tile in self.kernel.loads if tile.name == step.right)

    def arranged(self, tile: Tile) -> bool:
        """Check whether arithmetic makes a tile in the layout of its product: its loads come so from their copies.

        In the loop, a vector of fewer elements than threads is not arranged; from before it, no other one is.
        """
        threads = WARP * self.warps
        return self.unit == "mma.sync" and self._from_loads(tile) and all(
            self.copies(each) and (each.columns > 1 or each.rows >= threads)
            for each in self.kernel.loads if each.name in tile.made
        )  # fmt: skip

    def _from_loads(self, tile: Tile) -> bool:
        """Check that arithmetic makes a tile of loads of the loop, and of loads before it that any thread repeats."""
        threads, names = WARP * self.warps, {each.name for each in (*self.kernel.loads, *self.kernel.outside)}
        cheap = all(each.rows * each.columns < threads for each in self.kernel.outside if each.name in tile.made)
        return bool(tile.made) and tile.name not in tile.made and names >= {*tile.made} and cheap

    def in_tensor_memory(self, tile: Tile) -> bool:
        """Check whether arithmetic makes a left operand of tcgen05, which is brought into tensor memory."""
        taken = {each.left for each in self.kernel.products} - {each.right for each in self.kernel.products}
        return self.unit == "tcgen05" and bool(tile.made) and tile.name in taken

    def _taken_turned(self, position: int, tile: Tile) -> bool:
        """Check whether a product takes a tile as its right one, transposed from registers."""
        step = self.kernel.loop[position]
        taken = isinstance(step, TileProduct) and step.right == tile.name != step.left
        return taken and self.turned(position)

    def turning(self, tile: Tile) -> int:
        """Compute the scratch through which a loaded tile is transposed in registers [B]."""
        positions = list(self.kernel.uses(tile.name))
        if self.in_tensor_memory(tile):
            return tile.size >> PARTS
        if not any(self._taken_turned(position, tile) for position in positions):
            return 0
        summed = "row" if self._split(tile) else "column"
        return turning(tile, summed, 1 if self.along_rows else self.warps, self.warps, self.arch)

    def _form(self, position: int, tile: Tile) -> str:
        """Name the side and the order in which a product takes a tile."""
        step = self.kernel.loop[position]
        assert isinstance(step, TileProduct)
        return "left" if step.left == tile.name else step.right_order

    def forms(self, tile: Tile) -> int:
        """Count the copies of a tile that products take as it is and transposed [-].

        mma.sync has two of a resident one, and wgmma of one whose elements it cannot transpose, of other than 16 bits.
        """
        turned = {order == "turned" for order in self._orders(tile)}
        apart = self.unit == "mma.sync" or (self.unit == "wgmma" and tile.element != 2)
        return 2 if apart and len(turned) > 1 else 1

    @cached_property
    def brought_back(self) -> tuple[Tile, ...]:
        """Resident tiles that wgmma takes transposed alone: registers keep them, and memory has them in a product."""
        if self.unit != "wgmma":
            return ()
        return tuple(tile for tile in self.kernel.resident if self._orders(tile) == {"turned"})

    def rearranged(self, tile: Tile) -> int:
        """Compute the scratch through which a load comes into the two layouts of what arithmetic makes of it [B].

        Read off compiles: one layout whole, and a quarter of the other.
        """
        return tile.size * 5 // 4 if not tile.made and self.ahead and self._split_by_made(tile) else 0

    def _split_by_made(self, tile: Tile) -> bool:
        """Check whether arithmetic makes a tile that mma.sync takes in two orders of a load."""
        return self.unit == "mma.sync" and any(
            len(self._orders(made)) > 1 and made.rows * made.columns == tile.rows * tile.columns
            for made in self.kernel.loads
            if tile.name in made.made
        )

    def _split(self, tile: Tile) -> bool:
        """Check whether two products of mma.sync need a tile in layouts that no single copy in shared memory serves."""
        own = self.unit == "mma.sync" and {"columns", "turned"} <= self._orders(tile)
        return own or self._split_by_made(tile)

    def _orders(self, tile: Tile) -> set[str]:
        """List the orders in which products take a right tile."""
        return {each.right_order for each in self.kernel.products if each.right == tile.name}

    def addresses(self, tile: Tile) -> int:
        """Compute the scratch that turns loaded indices into the addresses of a tile [B]."""
        indices = [other for other in self.kernel.loads if other.chain < tile.chain and other.rows >= WARP * self.warps]
        if not indices:
            return 0
        # Indices that were loaded ahead have the layout of the widest tile.
        readers = {other.rows * other.columns for other in self.kernel.loads if other.chain == tile.chain}
        if any(self.copies(index) for index in indices) and len(readers) == 1:
            return 0
        return max(POINTER * min(index.rows, 2 * WARP * self.warps) for index in indices)

    def last_use(self, tile: Tile) -> int:
        """Find the last step that reads a tile from shared memory; -1 if products take it from registers."""
        if self.arranged(tile) or self.in_tensor_memory(tile):
            return -1
        uses = [use for use in self.kernel.uses(tile.name) if not self._taken_turned(use, tile)]
        if self.unit == "mma.sync" and not self.ahead:  # read once for all products that take it in one form
            uses = [*{self._form(use, tile): use for use in reversed(uses)}.values()]
        last = max(uses, default=-1)
        if self.element(tile.element) > tile.element:  # widened in registers as soon as it is there
            last = min(last, self.kernel.loop.index(tile))
        return last
