"""Types of the matrices in files of llama.cpp: published sizes of files, and the doors that take a file type."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import iomodel
from iomodel import Layout
from iomodel.errors import UnknownNameError
from iomodel.models.file_types import FILE_TYPES, SHORT, quantised
from iomodel.models.registry import list_models, model
from tests.support.inside import GGML_BLOCKS, ReplicaWeights

SIZES = list(csv.DictReader((Path(__file__).parent / "gguf_sizes.csv").read_text().splitlines()))
UNITS = {"GB": 1e9, "GiB": 2**30}
LOAD = {"prompt": 512, "output": 64}


@pytest.mark.parametrize("row", SIZES, ids=lambda row: f"{row['model']}-{row['file_type']}")
def test_a_file_has_its_published_size(row):
    """Norms and routers are in fp32 in the file, in bf16 in a plan; Llama 3.1 has 64 factors of its rotation."""
    found = quantised(model(row["model"]), row["file_type"])
    wide = sum(layer.vectors(found.hidden_size) for layer in found.layers) + found.hidden_size
    size = ReplicaWeights(found, Layout()).of_stage(found.layers, 0) + 2 * wide
    if row["unit"] in UNITS:
        assert size / UNITS[row["unit"]] == pytest.approx(float(row["value"]), abs=0.021)
        return
    bits = 8 * (size + 4 * 64) / (found.parameters + 64)
    assert bits == pytest.approx(float(row["value"]), abs=6e-5)


@pytest.mark.parametrize("name", list_models())
@pytest.mark.parametrize("kind", ["q4_k_m", "q3_k_l", "iq2_m", "q8_0", "mxfp4_moe"])
def test_blocks_divide_the_rows_of_every_matrix(name, kind):
    spec = model(name)
    found = quantised(spec, kind)
    for layer in found.counted:
        for matrix in layer.linears(found.hidden_size):
            dtype = layer.dtype_of(matrix, found.dtype, found.expert_dtype)
            if dtype in GGML_BLOCKS:
                assert matrix.in_features % GGML_BLOCKS[dtype][0] == 0
            else:
                assert dtype == "mxfp4" or matrix.in_features % 32
    assert found.parameters == spec.parameters


@pytest.mark.parametrize("name", ["Q4_K_M", "q4_k", "q8_0"])
def test_a_file_type_is_taken_wherever_a_type_of_weights_is(name):
    kind = SHORT.get(name.lower(), name.lower())
    weights = ReplicaWeights(quantised(model("llama-3.1-8b"), kind), Layout(), table_on_host=True)
    size = weights.of_stage(weights.model.layers, 0)
    planned = iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, weight_dtype=name)
    line = f"llama-server -m Llama-3.1-8B-Instruct-{name}.gguf"
    assert planned.memory.weights == size
    assert iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, precision=name).memory.weights == size
    assert iomodel.plan(line, "rtx4090", **LOAD).memory.weights == size
    timed = iomodel.step("llama-3.1-8b", "rtx4090", q_len=1, kv_len=512, weight_dtype=name)
    assert timed.seconds < iomodel.step("llama-3.1-8b", "rtx4090", q_len=1, kv_len=512).seconds
    (point, *_) = iomodel.planning.pareto("llama-3.1-8b", ["rtx4090"], **LOAD, weight_dtypes=[name], batches=[1]).front
    assert point.tpot == pytest.approx(iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, weight_dtype=name, batch=1).tpot)


@pytest.mark.parametrize("engine", ["auto", "llama.cpp", "ollama"])
def test_files_of_llama_cpp_run_without_an_engine_in_stages(engine):
    planned = iomodel.plan("llama-3.1-70b", "rtx3090", **LOAD, weight_dtype="q4_k_m", count=2, engine=engine, batch=1)
    assert (planned.layout.pipeline_parallel, planned.layout.tensor_parallel) == (2, 1)
    assert any("llama.cpp" in text for text in planned.assumed)
    assert not any("vllm" in text for text in planned.assumed)
    memory = iomodel.planning.memory_plan("llama-3.1-70b", "rtx3090", **LOAD, weight_dtype="q4_k_m", count=2)
    assert memory.layout.pipeline_parallel == 2


def test_the_embedding_is_on_the_host():
    """Llama 3 8B in q4_K_M has a "CPU buffer" of 281.81 MiB; tied tables have a copy on the device."""
    llama, tied = (quantised(model(name), "q4_k_m") for name in ("llama-3-8b", "llama-3.2-1b"))
    whole, own = (
        ReplicaWeights(llama, Layout(), table_on_host=host).of_stage(llama.layers, 0) for host in (False, True)
    )
    assert (whole - own) / 2**20 == pytest.approx(281.81, abs=0.01)
    assert tied.tied_embeddings
    sizes = {ReplicaWeights(tied, Layout(), table_on_host=host).of_stage(tied.layers, 0) for host in (False, True)}
    assert len(sizes) == 1


def test_the_program_of_files_has_little_overhead():
    asked = {"prompt": 1, "output": 4096, "batch": 1, "weight_dtype": "fp16", "engine": "llama.cpp", "count": 1}
    planned = iomodel.plan("llama-3-8b", "rtx4080", **asked)
    assert planned.memory.fits >= 1 == iomodel.plan("llama-3-8b-q4_k_m", "rtx4080", prompt=1, output=64).batch


def test_an_engine_that_is_named_stays():
    planned = iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, weight_dtype="q4_k_m", engine="vllm")
    assert any("vllm" in text for text in planned.assumed)


def test_an_unknown_file_type_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match="or 'q4_k_m'"):
        iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, weight_dtype="q4_k_xl")


def test_the_types_of_the_file_types_are_known():
    for kind in FILE_TYPES.values():
        types = {kind.usual, kind.head, kind.table, *(rule.dtype for rule in kind.rules)} - {None}
        assert types <= GGML_BLOCKS.keys()


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.1-8b-q4_k_m", "unsloth/Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "llama3.1:8b-instruct-q4_K_M",
        "bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M",
    ],
)  # fmt: skip
def test_the_name_of_a_model_may_end_in_its_file_type(name):
    assert model(name).layers == quantised(model("llama-3.1-8b"), "q4_k_m").layers
    assert any("q4_k_m" in note for note in model(name).notes)


@pytest.mark.parametrize(
    ("field", "given", "meant"),
    [
        ("weight_dtype", "awq", "uint4-g128"),
        ("precision", "GPTQ", "uint4-g128"),
        ("weight_dtype", "w4a16", "int4-g128"),
        ("precision", "bnb-4bit", "nf4"),
    ],
)
def test_a_scheme_of_weights_alone_is_its_type(field, given, meant):
    assert iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, **{field: given}) == iomodel.plan(
        "llama-3.1-8b", "rtx4090", **LOAD, weight_dtype=meant
    )
    asked = {"q_len": 1, "kv_len": 512}
    assert iomodel.step("llama-3.1-8b", "rtx4090", **asked, **{field: given}) == iomodel.step(
        "llama-3.1-8b", "rtx4090", **asked, weight_dtype=meant
    )


def test_a_number_of_bits_is_told_its_types():
    with pytest.raises(UnknownNameError, match="did you mean 'int4' or 'nvfp4'"):
        iomodel.plan("llama-3.1-8b", "rtx4090", **LOAD, weight_dtype="4bit")
