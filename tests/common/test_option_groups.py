"""Groups of keywords: listed in the signature and the docstring of the functions that take them."""

from __future__ import annotations

import inspect
from typing import Any, TypedDict

import pytest

from iomodel.common.option_groups import check_names, listing, options_in


class Sizes(TypedDict, total=False):
    """Sizes of a thing.

    Parameters
    ----------
    width : int
        Width of the thing, which may be
        told on two lines [m].
    label : str, optional
        Its name.
    """

    width: int
    label: str | None


OPTIONS = options_in(Sizes, defaults={"width": 3})


@pytest.mark.parametrize("further", [False, True])
def test_options_are_listed_once(further: bool) -> None:
    @listing(OPTIONS.values(), further=further)
    def made(first: int, *, second: int = 2, **options: Any) -> dict[str, Any]:
        """Make a thing.

        Parameters
        ----------
        first, second : int
            Numbers.
        **options
            Whatever is left.
        """
        check_names(made, options)
        return {"first": first, "second": second, **options}

    names = ["first", "second", "width", "label", *["options"] * further]
    parameters = inspect.signature(made).parameters
    assert [*parameters] == names
    assert (parameters["width"].default, parameters["label"].default) == (3, None)
    assert parameters["label"].annotation == "str | None"
    documentation = inspect.getdoc(made) or ""
    assert documentation.count("width : int\n    Width of the thing, which may be\n    told on two lines [m].\n") == 1
    assert ("**options" in documentation) is further
    assert documentation.index("first, second") < documentation.index("width :") < documentation.index("label :")
    assert made(1, width=4) == {"first": 1, "second": 2, "width": 4}
    with pytest.raises(TypeError, match="argument of made: 'widht' is unknown; did you mean 'width'"):
        made(1, widht=4)
