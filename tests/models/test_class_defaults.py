"""Fields that a config.json leaves out: each has the default of its configuration class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iomodel.models.config import spec_of
from iomodel.models.config_fields import class_defaults
from iomodel.models.families import FAMILIES
from iomodel.models.registry import model
from iomodel.models.spec import ModelSpec
from tests.models.test_published_configs import expanded

HERE = Path(__file__).parent
BUILT = json.loads((HERE / "families.json").read_text(encoding="utf-8"))
"""Default configurations, and the parameters of the models built from them."""
TABLE = json.loads((HERE.parents[1] / "iomodel" / "models" / "class_defaults.json").read_text(encoding="utf-8"))
WITHOUT_CLASS = {"exaone", "minicpm", "minimax_m3", "nemotron_nas", "step3p7_text"}
OLDER = {"baichuan", "bloom", "chatglm", "codegen", "dbrx", "gpt2", "gpt_bigcode", "gptj", "internlm2", "mpt", "opt"}
"""Types with names of fields of their own, whose files give the fields."""
ALONE: set[str] = {"nemotron_h", "zamba2"}
"""Types whose classes give a list of layers by default, which no rule repeats: refused without one."""


def defaults(kind: str) -> dict[str, Any]:
    return dict(class_defaults(kind, f"{kind}_text"))


def told(config: dict[str, Any]) -> ModelSpec:
    """Read a config, without the notes on what it leaves out."""
    return spec_of(config).model_copy(update={"notes": ()})


def is_default(kind: str) -> bool:
    """Whether the configuration that was built has the defaults of the class, and not those of a model around it."""
    config, known = expanded(BUILT[kind]["config"]), defaults(BUILT[kind]["config"]["model_type"])
    stated = {name: value for name, value in known.items() if name in config and value is not None}
    heads = known.get("num_key_value_heads") or known.get("num_attention_heads")
    return (
        bool(known)
        and all(config[name] == value for name, value in stated.items() if name != "head_dim")
        and config.get("num_key_value_heads", heads) == heads
    )


DEFAULT = [kind for kind in BUILT if is_default(kind)]


def test_every_type_has_its_defaults_or_no_class() -> None:
    assert {kind for kind in FAMILIES if not defaults(kind)} == WITHOUT_CLASS | OLDER
    assert len(DEFAULT) >= 80


@pytest.mark.parametrize("kind", sorted(set(DEFAULT) - ALONE))
def test_a_type_alone_is_the_model_that_its_class_builds(kind: str) -> None:
    entry = BUILT[kind]
    config = {"num_nextn_predict_layers": 0, "torch_dtype": "bfloat16"}  # of files, of no class
    full = {**expanded(entry["config"]), **config}
    bare = told({"model_type": entry["config"]["model_type"], **config})
    assert bare.layers == told(full).layers
    assert bare.parameters == told(full).parameters
    if "kv_elements" in entry:
        assert bare.kv_bytes_per_token() == 2 * entry["kv_elements"]


@pytest.mark.parametrize("kind", sorted(ALONE))
def test_lists_of_layers_without_a_rule_are_needed(kind: str) -> None:
    with pytest.raises(ValueError, match="not given, but required"):
        spec_of({"model_type": kind})


@pytest.mark.parametrize("kind", sorted({BUILT[name]["config"]["model_type"]: name for name in DEFAULT}.values()))
def test_a_field_that_is_left_out_has_the_default_of_its_class(kind: str) -> None:
    """As if it were written in, in a model of half the width, whose other fields are written in."""
    built = expanded(BUILT[kind]["config"])
    known = {name: value for name, value in defaults(built["model_type"]).items() if value is not None}
    lists = {name: value for name, value in built.items() if name not in known}
    full = {**lists, **known, "hidden_size": known["hidden_size"] // 2}
    if "attention_head_dim" not in full and full.get("num_attention_heads"):
        full.setdefault("head_dim", full["hidden_size"] // full["num_attention_heads"])
    for name in (*known, "hidden_size"):
        left_out = {field: value for field, value in full.items() if field != name}
        assert told(left_out) == told({**full, name: known[name]}), name


def test_another_name_of_a_field_comes_before_its_default() -> None:
    assert model({"model_type": "llama", "n_embd": 2048}).hidden_size == 2048
    assert model({"model_type": "llama", "n_embd": 2048, "hidden_size": 1024}).hidden_size == 1024
    # A width of another MLP is no other name.
    experts = model({"model_type": "qwen3_moe", "intermediate_size": 4096}).layers[0].mlp
    assert experts is not None
    assert experts.expert_intermediate_size == 768


def test_null_and_none_at_all_are_no_defaults() -> None:
    assert model({"model_type": "mistral", "sliding_window": None}).layers[0].attention.window is None
    assert model({"model_type": "mistral"}).layers[0].attention.window == 4096
    shared, own = (model({"model_type": "gemma3n_text", "num_kv_shared_layers": n}) for n in (15, 0))
    assert shared == model({"model_type": "gemma3n_text", "num_kv_shared_layers": 15})
    assert own.kv_bytes_per_token() > shared.kv_bytes_per_token()


def test_tied_embeddings_of_the_model_around_come_before_a_default() -> None:
    text = {"model_type": "qwen3_vl_text"}
    assert model({"model_type": "qwen3_vl", "tie_word_embeddings": True, "text_config": text}).tied_embeddings
    assert not model({"model_type": "qwen3_vl", "text_config": text}).tied_embeddings


def test_a_note_names_the_numbers_that_were_taken() -> None:
    (note, _) = model({"model_type": "llama", "vocab_size": 9, "max_position_embeddings": 99}).notes
    assert note == (
        "Left out, with the default of the model_type: hidden_size = 4096, intermediate_size = 11008, "
        "num_attention_heads = 32, num_hidden_layers = 32."
    )


def test_the_documents_name_the_version() -> None:
    text = (HERE.parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    assert f"transformers {TABLE['version']}" in text
