"""Description of a Triton kernel, read from the TTIR of one of its configs: a declaration for every other config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import Record
from iomodel.common.validation import as_integer, as_mapping
from iomodel.errors import InputError, shown
from iomodel.placement.triton_kernel import Tile, TileProduct, TritonKernel
from iomodel.placement.ttir import read_ttir
from iomodel.placement.ttir_kernel import KernelReader

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of a launch, which are no extents of a tile."""

LEAST = 16
"""The least tile of a product; an argument below is no tile [elements]."""


@dataclass(frozen=True)
class Extent:
    """An extent of a tile: `times` / `over` of the argument `name`, or `size` where it has none [elements]."""

    name: str
    size: int
    times: int = 1
    over: int = 1

    def of(self, config: Mapping[str, int]) -> int:
        """Return the extent in a config."""
        return self.times * config[self.name] // self.over if self.name else self.size


@dataclass(frozen=True)
class KernelDescription(Record):
    """A kernel as its TTIR describes it, for any config.

    Attributes
    ----------
    config : Mapping of str to int
        The tiles of the config of the text; a config without one of their names has this value.
    extents : tuple of Extent
        Extents of the tiles.
    template : TritonKernel
        The declaration; its rows, columns and depths are positions in `extents`.
    """

    config: Mapping[str, int]
    extents: tuple[Extent, ...]
    template: TritonKernel

    def __post_init__(self) -> None:
        unknown = [extent.name for extent in self.extents if extent.name and extent.name not in self.config]
        if unknown or not all(0 <= position < len(self.extents) for position in positions(self.template)):
            raise InputError(f"template: extents {shown(unknown)} given; allowed: those of config, by position")
        if any(extent.over < 1 or extent.times < 1 or extent.size < 1 for extent in self.extents):
            raise InputError("extents: a size below 1 given; allowed: integers from 1")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((tuple(self.config.items()), self.extents, self.template))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arguments of a config that the tiles depend on."""
        return tuple(dict.fromkeys(extent.name for extent in self.extents if extent.name))

    @property
    def fixed(self) -> tuple[int, ...]:
        """Extents that are the same in every config [elements]."""
        return tuple(sorted({extent.size for extent in self.extents if not extent.name and extent.size > 1}))

    def values(self, config: Mapping[str, Any]) -> dict[str, int]:
        """Collect the arguments that the tiles depend on; raise InputError for one that is no power of two."""
        small = {name.lower(): value for name, value in config.items()}
        values = {name: config.get(name, small.get(name.lower(), self.config[name])) for name in self.names}
        for name, value in values.items():
            if as_integer(name, value) & (value - 1):
                raise InputError(f"{name}: {value} given; allowed: a power of two")
        return values

    def kernel(self, config: Mapping[str, Any]) -> TritonKernel:
        """Declare the kernel of a config; raise InputError for a tile that is no power of two.

        The names of arguments may be in small letters, as those of plain objects are.
        """
        values = self.values(config)
        sizes = [extent.of(values) for extent in self.extents]
        if least := next((extent.name for extent, size in zip(self.extents, sizes, strict=True) if size < 1), ""):
            raise InputError(f"{least}: {values[least]} given; allowed: an integer that leaves its tiles an element")
        return sized(self.template, sizes)


@strict
def describe(text: str | Sequence[str], config: Mapping[str, int] | Sequence[Mapping[str, int]]) -> KernelDescription:
    """Describe a Triton kernel by the TTIR of one config, so that every other config can be checked.

    Parameters
    ----------
    text : str or sequence of str
        ``compiled.asm["ttir"]`` of a compiled kernel, or of several configs of one.
    config : Mapping or sequence of Mapping
        The tile-like constants with which the text was compiled, one config for each text:
        ``{"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}``. Extents of tiles that equal none are the same in every
        config.

    Raises
    ------
    InputError
        The text is cut, foreign or too long, has a tile in which two extents cannot be told apart, or an operation
        without rules.

    Examples
    --------
    >>> text = '''
    ... tt.func public @k(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f16>, %n: i32) attributes {noinline = false} {
    ...   %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    ...   %at = tt.splat %a : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
    ...   %bt = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    ...   %sum = scf.for %i = %n to %n step %n iter_args(%old = %zero) -> (tensor<128x64xf32>)  : i32 {
    ...     %x = tt.load %at : tensor<128x32x!tt.ptr<f16>>
    ...     %y = tt.load %bt : tensor<32x64x!tt.ptr<f16>>
    ...     %new = tt.dot %x, %y, %old : tensor<128x32xf16> * tensor<32x64xf16> -> tensor<128x64xf32>
    ...     scf.yield %new : tensor<128x64xf32>
    ...   }
    ...   tt.return
    ... }'''
    >>> product = describe(text, {"BM": 128, "BN": 64, "BK": 32})
    >>> product.names
    ('BM', 'BK', 'BN')
    """
    texts = [text] if isinstance(text, str) else list(text)
    configs = [config] if isinstance(config, Mapping) else list(config)
    if len(texts) != len(configs) or not texts:
        raise InputError(f"config: {len(configs)} given for {len(texts)} texts; allowed: one for each text")
    read = [KernelReader(read_ttir(each)) for each in texts]
    kernels = [reader.described() for reader in read]
    if any(kernel != kernels[0] for kernel in kernels):
        raise InputError("text: kernels whose loops differ given; allowed: texts of one kernel with other tiles")
    named = [_tiles(each) for each in configs]
    sizes = [tuple(reader.extents.sizes[index] for reader in read) for index in range(len(read[0].extents.sizes))]
    extents = [_extent(each, named) for each in sizes]
    _require_distinct(kernels[0], extents, named[0], len(texts))
    merged = list(dict.fromkeys(extents))
    template = sized(kernels[0], [merged.index(extent) for extent in extents])
    used = {extent.name for extent in merged}
    tiles = FrozenDict({name: size for name, size in named[0].items() if name in used})
    return KernelDescription(tiles, tuple(merged), repeated(template))


def _tiles(config: Mapping[str, int]) -> dict[str, int]:
    """Collect the integers of a config that are no options of its launch."""
    given = as_mapping("config", config, "{'BLOCK_M': 128}")
    return {
        name: value for name, value in given.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 1 and name not in OPTIONS
    }  # fmt: skip


def _extent(sizes: tuple[int, ...], configs: Sequence[Mapping[str, int]]) -> Extent:
    """Find the argument that an extent is, or is a multiple of in several texts."""
    if set(sizes) == {1}:
        return Extent("", 1)
    names = [name for name in configs[0] if all(name in config for config in configs)]
    equal = [name for name in names if all(config[name] == size for config, size in zip(configs, sizes, strict=True))]
    if not equal and len(set(sizes)) > 1:
        for name in names:
            factors = {Fraction(size, config[name]) for config, size in zip(configs, sizes, strict=True)}
            if len(factors) == 1:
                factor = factors.pop()
                return Extent(name, sizes[0], factor.numerator, factor.denominator)
        raise InputError(f"config: no argument for an extent of {shown(list(sizes))}; name the constant that it is")
    if len(equal) > 1:
        raise InputError(
            f"config: {' and '.join(equal)} are both {sizes[0]}; give the text of a config in which they differ, or two"
        )
    return Extent(equal[0], sizes[0]) if equal else Extent("", sizes[0])


def _require_distinct(kernel: TritonKernel, extents: Sequence[Extent], config: Mapping[str, int], texts: int) -> None:
    """Raise InputError for one text in which a product has two extents of one size, one of which may be another."""
    if texts > 1:
        return
    fixed = {extent.size for extent in extents if not extent.name}
    named = {extent.name for extent in extents}
    for name, size in config.items():
        if name not in named and size >= LEAST and fixed & {size * 2, size * 4, size // 2, size // 4}:
            raise InputError(
                f"config: {name} is {size}, and no tile has that extent; add the text of a config with another {name}, "
                "or leave it out"
            )
    for program in kernel.programs:
        for product in program.products:
            sides = {product.rows, product.columns, product.depth}
            names = [extents[side].name for side in sides if extents[side].name]
            if twice := next((name for name in names if names.count(name) > 1), ""):
                size = extents[next(side for side in sides if extents[side].name == twice)].size
                raise InputError(
                    f"config: {twice} is {size}, and so is another extent of a product; add the text of a config with "
                    f"another {twice}, or give one in which {size} is {twice} alone"
                )


def positions(kernel: TritonKernel) -> list[int]:
    """List the extents of a declaration."""
    listed: list[int] = []
    for program in kernel.programs:
        for tile in (*program.resident, *program.loop, *program.stored, *program.results, *program.outside):
            listed += [tile.rows, tile.columns, *([tile.depth] if isinstance(tile, TileProduct) else [])]
    return listed


def sized(kernel: TritonKernel, sizes: Sequence[int]) -> TritonKernel:
    """Replace the extents of a declaration, which are positions, by numbers."""

    def tile(each: Any) -> Any:
        further = {"depth": sizes[each.depth]} if isinstance(each, TileProduct) else {}
        return replace(each, rows=sizes[each.rows], columns=sizes[each.columns], **further)

    def tiles(given: tuple[Tile, ...]) -> tuple[Tile, ...]:
        return tuple(tile(each) for each in given)

    return replace(
        kernel, resident=tiles(kernel.resident), loop=tuple(tile(each) for each in kernel.loop),
        stored=tiles(kernel.stored), results=tiles(kernel.results), outside=tiles(kernel.outside),
        branches=tuple(sized(branch, sizes) for branch in kernel.branches),
    )  # fmt: skip


def repeated(kernel: TritonKernel) -> TritonKernel:
    """Join loops of one kind that follow one another, as off a diagonal and along it."""
    joined: list[TritonKernel] = []
    for program in kernel.programs:
        own = replace(program, branches=())
        last = joined[-1] if joined else None
        if last is not None and not last.stored and own.looped and _alike(last) == _alike(own):
            joined[-1] = replace(own, loops=last.loops + 1)
        else:
            joined.append(own)
    return replace(joined[0], branches=tuple(joined[1:]))


def _alike(program: TritonKernel) -> TritonKernel:
    """Return what loops of one kind have in common."""
    loop = tuple(replace(step, element=0) if isinstance(step, TileProduct) and step.carried else step
                 for step in program.loop)  # fmt: skip
    return replace(program, stored=(), loops=1, loop=loop)
