"""The base of all workloads: what counting, solving and timing read of a call, whatever it computes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BeforeValidator, ValidationInfo, model_validator

from iomodel.common.spellings import dtype_name, renamed
from iomodel.common.validation import Model
from iomodel.errors import InputError, UnknownNameError, shown

ELEMENT_SIZE: dict[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
"""Size of an element in HBM [B]; tf32 is a compute type of fp32 data, which are 4 bytes wide."""


def stored(dtype: str) -> str:
    """Return the type of data in memory: products in TF32 have operands in fp32.

    >>> stored("tf32"), stored("bf16")
    ('fp32', 'bf16')
    """
    return "fp32" if dtype == "tf32" else dtype


def one_of(names: Iterable[str]) -> BeforeValidator:
    """Return a validator of a field that raises UnknownNameError for a value that is none of the names."""

    def known(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str) and value in names:
            return value
        own = dtype_name(value)
        if isinstance(own, str) and own in names:
            return own
        raise UnknownNameError(str(info.field_name), value, names)

    return BeforeValidator(known)


class Workload(Model):
    """One call of an operation: numbers for its symbols, and whatever else shapes a formula.

    Attributes
    ----------
    operation : str
        The kind of workload, a name in :data:`iomodel.nests.symbols.SHAPES`; an algorithm answers one kind.
    """

    operation: ClassVar[str]
    divisors: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of fields of which the first divides the second."""

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, data: Any) -> Any:
        own = not isinstance(data, dict) or data.keys() <= cls.__pydantic_fields__.keys()
        return data if own else cls.spelled_here(data)

    @classmethod
    def spelled_here(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields under the names of this library; InputError for one under two names."""
        return renamed(fields, cls.model_fields)

    if TYPE_CHECKING:

        @property
        def dtype(self) -> Any:
            """Type in which products are taken."""

        @property
        def direction(self) -> Any:
            """Direction that is computed: "forward", "backward" or "both"."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features of the call that change a nest."""
        return ()

    @property
    def element_size(self) -> int:
        """Size of an element of the workload's dtype in HBM [B]."""
        return ELEMENT_SIZE[self.dtype]

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element in HBM, in quarters of a bit."""
        return 32 * self.element_size

    @property
    @abstractmethod
    def sequences(self) -> Sequence[Shape]:
        """The parts of the call that differ in their numbers."""

    @property
    @abstractmethod
    def longest(self) -> Shape:
        """A call of one shape whose footprint no part of this call exceeds."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a workload from its plain data; of an abstract class, the kind whose fields they are.

        Raises
        ------
        InputError
            What the constructor refuses.
        """
        from iomodel.workloads import elementwise, varlen, workload_kinds  # noqa: F401 - kinds of workload

        if not isabstract(cls) or not isinstance(data, Mapping):
            return super().from_dict(data)
        concrete = [kind for kind in _kinds(cls) if not isabstract(kind)]
        nearest: type[Self] = min(concrete, key=lambda kind: len(kind.model_fields.keys() ^ data.keys()))
        return nearest.from_dict(data)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Copy the workload with some fields changed, and validate the copy."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **(update or {})})

    def __hash__(self) -> int:
        """Hash the fields, once: caches of times look the same call up again and again."""
        known: int | None = self.__dict__.get("hashed")
        if known is None:
            known = self.__dict__["hashed"] = super().__hash__()
        return known

    @cached_property
    def memo(self) -> dict[str, Any]:
        """Cache of values that other modules derive from the call."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without derived values, which hold compiled code."""
        state = super().__getstate__()
        fields = {name: value for name, value in state["__dict__"].items() if name in type(self).model_fields}
        return {**state, "__dict__": fields}


def _kinds(base: type[Workload]) -> Iterator[Any]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds(kind)


class Shape(Workload):
    """A workload with one number for each of its symbols."""

    @property
    @abstractmethod
    def numbers(self) -> Mapping[str, int]:
        """The number for every symbol of the workload, by its Python name, in the order of the alphabet."""

    @cached_property
    def point(self) -> tuple[int, ...]:
        """The same numbers in the order of the alphabet, as compiled formulas take them."""
        return tuple(self.numbers.values())

    @property
    def sequences(self) -> tuple[Self]:
        """The call itself: it has one shape."""
        return (self,)

    @property
    def longest(self) -> Self:
        """The call itself."""
        return self


class Mixed(Workload):
    """A workload of several shapes in one launch, which differ in some numbers."""

    @property
    @abstractmethod
    def lengths(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers that differ, each of all parts, by the name of their symbol."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Any, ...]:
        """Values of all symbols in the order of the alphabet; arrays over the distinct shapes where these differ."""

    @property
    @abstractmethod
    def unit(self) -> tuple[int, ...]:
        """Values of all symbols of one part of length 1."""


def as_workload(workload: object) -> Workload:
    """Return a workload of any kind unchanged; raise InputError for anything else."""
    if not isinstance(workload, Workload):
        raise InputError(
            f"workload: {shown(workload)} given; "
            "allowed: an iomodel.Attention, VarlenAttention, Linear, MLP, Experts, CrossEntropy or Recurrence"
        )
    return workload
