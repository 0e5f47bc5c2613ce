"""Model types of Hugging Face transformers 5.23.0: parameters and caches of their default configurations.

`families.json` holds the fields of each configuration class that decide shapes, the number of parameters of the model
built from them on the meta device, and the widths of its K and V projections, all layers together. Lists are shortened
as in `published.json`.
"""

import json
from pathlib import Path

import pytest

from iomodel.models.config import spec_of
from iomodel.models.registry import model
from tests.models.test_published_configs import corrections, expanded

FAMILIES = json.loads((Path(__file__).parent / "families.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_default_configuration(kind):
    entry = FAMILIES[kind]
    spec = spec_of({**expanded(entry["config"]), "torch_dtype": "bfloat16"})
    stored = {"gpt_oss", "afmoe", "ernie4_5_moe"}  # the bias of the router is a parameter of these
    bias = 0 if kind in stored else corrections(spec)
    assert spec.parameters - bias == entry["parameters"]
    if "kv_elements" in entry:
        assert spec.kv_bytes_per_token() == 2 * entry["kv_elements"]
    assert model(spec.to_dict()) == spec
    assert not any("unknown" in note for note in spec.notes)


@pytest.mark.parametrize("rank", [32, 128])
def test_each_use_of_a_shared_block_has_adapters_of_its_own_for_q_k_and_v(rank):
    """Zamba2-7B: two matrices for each of three projections, from the width of the attention to the rank and back."""
    config = {**expanded(FAMILIES["zamba2"]["config"]), "adapter_rank": rank}
    without, with_adapters = (model({**config, "use_shared_attention_adapter": given}) for given in (False, True))
    uses = sum(layer.attention is not None for layer in without.layers)
    assert uses > 1
    more = uses * 3 * 2 * config["attention_hidden_size"] * rank
    assert with_adapters.parameters - without.parameters == more
