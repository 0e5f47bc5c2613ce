"""Shapes of a model from its configuration or its module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.registry import model
from iomodel.models.spec import ModelSpec


def model_of(source: Any) -> ModelSpec:
    """Read the shapes of a language model of Hugging Face, for :func:`iomodel.plan` and :func:`iomodel.step`.

    Parameters
    ----------
    source : configuration or module
        A configuration of transformers, or a model built from one, also on the meta device. The parameters of a model
        are counted and held against the shapes, so that a changed or extended model is refused.

    Raises
    ------
    InputError
        The object has no configuration; its layers are not supported; the model has other parameters than its
        configuration describes.

    Examples
    --------
    >>> class Config:
    ...     def to_dict(self):
    ...         return {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
    ...                 "intermediate_size": 1024, "vocab_size": 32000}
    >>> model_of(Config()).parameters
    38013440
    """
    config = getattr(source, "config", source)
    if not callable(getattr(config, "to_dict", None)) or isinstance(source, Mapping | ModelSpec | type):
        raise InputError(
            f"source: {shown(source)} given; allowed: a configuration of transformers, or a model that has one; "
            "iomodel.model takes the content of a config.json"
        )
    spec = model(_plain(config.to_dict()))
    parameters = getattr(source, "parameters", None)
    if callable(parameters):
        count = sum(int(parameter.numel()) for parameter in parameters())
        if count != spec.parameters:
            raise InputError(
                f"source: {count:,} parameters in the model, {spec.parameters:,} in its configuration; allowed: a "
                "causal language model as its configuration describes it, with its output layer, without adapters"
            )
    return spec


def _plain(value: Any) -> Any:
    """Write types of PyTorch, such as torch.bfloat16, as their names."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value).removeprefix("torch.")
