"""A figure of a device: value in base units, where it comes from, and what other sources say."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from iomodel.errors import shown
from iomodel.units import Kind
from iomodel.validation import Model, no_endless

UNVERIFIED = "from-memory"
"""The source key of figures that nobody has checked against a document."""
USER = "user file"
"""The source of a figure that names none."""

PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
Text = Annotated[str, Field(max_length=500, pattern=PRINTABLE)]
"""One line, without control characters."""
Number = Annotated[
    Annotated[int, Field(strict=True, ge=0, le=10**30)]
    | Annotated[float, Field(strict=True, ge=0, le=1e30, allow_inf_nan=False)],
    WithJsonSchema({"type": ["number", "string"], "minimum": 0}, mode="validation"),
]
"""A number in base units once read; a file may write a text such as "228 KiB" in its place."""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Sources = Annotated[
    tuple[Text, ...], BeforeValidator(_as_list, json_schema_input_type=Text | list[Text]), Field(min_length=1)
]
"""Keys of specs/sources.yaml, or free text in a user's own file; one string stands for a list of one."""


class Group(Model):
    """A mapping of a hardware file: unknown keys are refused with the nearest known one."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if isinstance(data, Mapping):
            allowed = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in allowed and key not in cls.model_fields:
                    near = get_close_matches(str(shown(key)).strip("'"), allowed, n=1, cutoff=0.5)
                    hint = f"did you mean {near[0]!r}? " if near else ""
                    raise ValueError(f"unknown key {shown(key)}; {hint}allowed: {', '.join(allowed)}")
            no_endless(data)
        return data


class Alternative(Group):
    """Another source's figure for the same thing, in the same unit, not the one used."""

    value: Number
    source: Sources = (USER,)
    note: Text | None = None


class Quantity(Group):
    """One figure with its source.

    Parameters
    ----------
    value : number in base units [B, B/s, FLOP/s, OP/s, Hz, W, s, per clock, or a count].
    unit : the base unit, "" for a count.
    source : keys of specs/sources.yaml, or free text.
    note : how it was obtained, or what to beware of.
    spread : least and largest value of the repeats of a measurement, of which `value` is the median [unit].
    alternatives : figures of other sources that disagree.

    >>> Quantity(value=3352000000000, unit="B/s", source="datasheet")
    Quantity(3.352 TB/s, source='datasheet')
    """

    value: Number
    unit: str = ""
    source: Sources = (USER,)
    note: Text | None = None
    spread: tuple[Number, Number] | None = None
    alternatives: tuple[Alternative, ...] = ()

    @model_validator(mode="after")
    def _within_its_spread(self) -> Quantity:
        if self.spread is not None and not self.spread[0] <= self.value <= self.spread[1]:
            least, most = self.spread
            raise ValueError(
                f"spread: [{least}, {most}] given; allowed: least and largest, around value = {self.value}"
            )
        return self

    @property
    def verified(self) -> bool:
        """False if the figure was only remembered, not read in any source."""
        return set(self.source) != {UNVERIFIED}

    def __str__(self) -> str:
        return Kind(self.unit, 0, 0).show(self.value) + " (unverified)" * (not self.verified)

    def __repr__(self) -> str:
        return f"Quantity({self}, source={', '.join(self.source)!r})"


class Steps(Group):
    """A list of sizes a setting can take, such as the shared-memory carve-outs, with its source.

    >>> str(Steps(values=[0, 8192, 16384], unit="B"))
    '0, 8, 16 KiB'
    """

    values: tuple[Number, ...] = Field(min_length=1, max_length=64)
    unit: str = ""
    source: Sources = (USER,)
    note: Text | None = None

    @property
    def verified(self) -> bool:
        """False if the figures were only remembered, not read in any source."""
        return set(self.source) != {UNVERIFIED}

    def __str__(self) -> str:
        if self.unit == "B" and all(value % 1024 == 0 for value in self.values):
            text = ", ".join(f"{value // 1024}" for value in self.values) + " KiB"
        else:
            text = f"{', '.join(map(str, self.values))} {self.unit}".strip()
        return text + " (unverified)" * (not self.verified)
