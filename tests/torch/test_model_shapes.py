"""Shapes of models from configurations and modules."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import iomodel
from iomodel import InputError
from iomodel.torch import model_of

SHAPE = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
}


class Type:
    """A type of PyTorch, which is no text."""

    def __str__(self) -> str:
        return "torch.bfloat16"


class Config:
    """A configuration as transformers has them."""

    def to_dict(self) -> dict[str, Any]:
        return {**SHAPE, "dtype": Type(), "rope_parameters": {"rope_theta": 1e4}}


class Module:
    """A model with one parameter of so many elements."""

    def __init__(self, elements: int) -> None:
        self.config, self.elements = Config(), elements

    def parameters(self) -> Iterator[Any]:
        yield SimpleNamespace(numel=lambda: self.elements)


def test_a_configuration_and_its_model_have_the_same_shapes() -> None:
    spec = iomodel.model({**SHAPE, "dtype": "bfloat16"})
    by_hand = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96 + 2 * 64) + 64 + 2 * 64 * 100
    assert spec.parameters == by_hand
    assert model_of(Config()) == model_of(Module(by_hand)) == spec
    assert iomodel.plan(model_of(Config()), "h100-sxm5", prompt=64, output=8).memory.fits > 0


def test_what_is_no_model_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match=r"source: 7 parameters in the model, 74,560 in its configuration; allowed: "):
        model_of(Module(7))
    for source in (3, "llama-3-8b", SHAPE, Config, SimpleNamespace(parameters=list)):
        with pytest.raises(InputError, match=r"source: .* given; allowed: a configuration of transformers, or a model"):
            model_of(source)
