"""Results as pandas data frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iomodel.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

EXTRA = "pip install 'iomodel[sweep]'"


class Tabular(ABC):
    """A result that is a table of values."""

    @abstractmethod
    def records(self) -> Any:
        """Return the values as plain data: a mapping per row, or a column per name."""

    def to_pandas(self) -> DataFrame:
        """Return the values as a pandas data frame, numbers in base units.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError:
            raise InputError(f"pandas: not installed; to_pandas() needs it: {EXTRA}") from None
        return DataFrame(self.records())


def flat_columns(arrays: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Lay arrays that broadcast to a shape out as columns of equal length."""
    import numpy as np

    return {name: np.broadcast_to(array, shape).ravel() for name, array in arrays.items()}
