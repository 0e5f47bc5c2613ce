"""States and caches of cut-down models that transformers ran on the CPU.

`cut_down.json` holds, by model type, the fields given, the parameters of the model, and the shapes in its cache after a
prompt; the other fields have the defaults of their classes, here as there.
"""

import json
from math import prod
from pathlib import Path

import pytest

from iomodel.models.config import spec_of
from tests.models.test_published_configs import corrections

MODELS = json.loads((Path(__file__).parent / "cut_down.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize("kind", MODELS)
def test_states_and_caches_are_those_of_a_model_that_ran(kind: str) -> None:
    entry = MODELS[kind]
    spec = spec_of({**entry["config"], "torch_dtype": "bfloat16"})
    recurrent = sum(prod(shape) for shape in entry["recurrent"])
    # transformers keeps as many inputs of a convolution as its kernel is wide; a step needs all but the oldest.
    inputs = sum(channels * (kernel - 1) for _, channels, kernel in entry["conv"])
    assert spec.state_bytes() == 4 * recurrent + 2 * inputs > 0
    # Keys and values of all heads of each layer, or a latent and its rotated part.
    assert spec.kv_bytes(entry["tokens"]) == 2 * sum(prod(shape) for shape in entry["kv"])


def test_gated_delta_rules_are_among_them() -> None:
    assert {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"} <= {*MODELS}
    for kind in ("qwen3_next", "kimi_linear"):
        assert all(len(shape) == 4 for shape in MODELS[kind]["recurrent"])  # a batch, heads, and a matrix


@pytest.mark.parametrize("kind", MODELS)
def test_parameters_are_those_of_a_model_that_ran(kind: str) -> None:
    entry = MODELS[kind]
    spec = spec_of({**entry["config"], "torch_dtype": "bfloat16"})
    assert spec.parameters - corrections(spec) == entry["parameters"]
