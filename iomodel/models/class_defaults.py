"""Defaults of the configuration classes of Hugging Face transformers, which fields have that a config.json leaves out.

`class_defaults.json` holds them by model type, with the version that they are from; it is written by
`python -m tests.support.class_defaults`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=1)
def _types() -> Mapping[str, Mapping[str, Any]]:
    text = files(__package__).joinpath("class_defaults.json").read_text(encoding="utf-8")
    types: Mapping[str, Mapping[str, Any]] = json.loads(text)["types"]
    return types


def class_defaults(*names: str) -> Mapping[str, Any]:
    """Return the defaults of the first of these model types that has a class; none if no type has one.

    >>> class_defaults("qwen2")["num_key_value_heads"], class_defaults("of no class")
    (32, {})
    """
    types = _types()
    return next((types[name] for name in names if name in types), {})
