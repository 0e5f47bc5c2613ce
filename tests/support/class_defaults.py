"""Defaults of the configuration classes of Hugging Face transformers, as far as they shape a model.

`python -m tests.support.class_defaults` writes `iomodel/models/class_defaults.json`, in an environment with
transformers. Fields are those that the reader of a config.json names. Lists are left out: those that classes have by
default are empty, or follow from other fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from iomodel.models.families import ALIASES, FAMILIES

MODELS = Path(__file__).parents[2] / "iomodel" / "models"
FILE = MODELS / "class_defaults.json"
OTHERS = frozenset({"model_type", "architectures", "dtype", "torch_dtype", "quantization_config", "is_encoder_decoder"})
"""Fields that say nothing of shapes, or are no defaults of a type."""


def read_names() -> set[str]:
    """Return the texts in the sources of the reader that could name a field."""
    sources = [*sorted(MODELS.glob("config*.py")), MODELS / "families.py"]
    named = {name for path in sources for name in re.findall(r'"([A-Za-z_]\w*)"', path.read_text(encoding="utf-8"))}
    reached = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
    return (named | {f"swa_{name}" for name in reached}) - OTHERS


def defaults_of(configuration: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """Iterate over the fields of a configuration class with a default that is a number, a switch, a text or null."""
    for field in fields(configuration):
        if field.name in names and isinstance(field.default, bool | int | float | str | None):
            yield field.name, field.default


def written() -> str:
    """Return the text of the file, one model type a line."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    names, known = read_names(), {*FAMILIES, *ALIASES}
    types: dict[str, dict[str, Any]] = {}
    for kind in sorted(known | {f"{name}_text" for name in known}):
        if kind in CONFIG_MAPPING:
            found = dict(defaults_of(CONFIG_MAPPING[kind], names))
            if "num_hidden_layers" in found or "hidden_size" in found:  # no model of several parts
                types[kind] = found
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(found)}" for kind, found in types.items())
    source = "dataclass fields of the configuration classes of transformers"
    head = f'"source": {json.dumps(source)},\n"version": {json.dumps(transformers.__version__)},\n'
    return f'{{\n{head}"types": {{\n{lines}\n}}\n}}\n'


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
