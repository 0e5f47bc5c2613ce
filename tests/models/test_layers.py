"""Layers with states, indexers, compressed caches and types of their own: laws of their sizes, and bad input."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Documents, InputError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.config_quantisation import PREFIXES
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.indexer import Indexer
from iomodel.models.mlp_layer import MLPLayer
from iomodel.models.model_file import ModelFile
from iomodel.models.quantisation import globs, segments
from iomodel.models.recurrent import GatedDeltaNet, KimiDelta, LightningAttention, Mamba1, Mamba2, ShortConvolution
from iomodel.models.registry import model
from iomodel.models.spec import ModelSpec
from tests.support.inside import WEIGHT_SIZE, parse

size = st.integers(1, 64)
switch = st.booleans()
states = st.one_of(
    st.builds(GatedDeltaNet, key_heads=size, value_heads=size, key_dim=size, value_dim=size, kernel=size, chunk=size),
    st.builds(KimiDelta, heads=size, head_dim=size, forget_rank=st.none() | size, gate_rank=st.none() | size),
    st.builds(LightningAttention, heads=size, head_dim=size, chunk=size),
    st.builds(Mamba2, heads=size, head_dim=size, state_dim=size, groups=size, proj_bias=switch, gate_norm=switch),
    st.builds(Mamba1, inner=size, state_dim=size, rank=size, inner_norms=switch),
    st.builds(ShortConvolution, channels=size, kernel=size, bias=switch),
)
indexers = st.builds(
    lambda block, many, **fields: Indexer(topk=block * many, block=block, **fields),
    size,
    size,
    heads=size,
    head_dim=size,
    keys=switch,
    pool=size,
    weighted=switch,
)


def attention_layer(indexer: Indexer | None, head_dim: int, **fields: Any) -> AttentionLayer:
    """Build a layer whose indexer is no wider than a row of the cache."""
    if indexer is not None:
        indexer = indexer.model_copy(update={"head_dim": min(indexer.head_dim, head_dim)})
    return AttentionLayer(head_dim=head_dim, indexer=indexer, **fields)


attentions = st.one_of(
    st.builds(attention_layer, heads=size, head_dim=size, own_kv=switch, v_proj=switch, indexer=st.none() | indexers),
    st.builds(AttentionLayer, heads=size, head_dim=size, out_gate=st.sampled_from(["element", "head"])),
    st.builds(
        attention_layer,
        heads=size,
        kv_heads=st.just(1),
        head_dim=size,
        tied_kv=st.just(True),
        window=size,
        q_lora_rank=size,
        compression=st.none() | st.fixed_dictionaries({"ratio": size, "overlap": st.integers(1, 2)}),
        indexer=st.none() | indexers,
    ),
)
EXPERTS = {"experts": 8, "experts_per_token": 2, "expert_intermediate_size": 4}
mlps = st.builds(
    lambda latent, **fields: MLPLayer(experts=8, **latent, **fields),
    st.just({}) | st.fixed_dictionaries({"latent_size": st.integers(1, 9), "latent_norm": switch}),
    experts_per_token=st.integers(1, 8),
    expert_intermediate_size=size,
    idle_experts=st.integers(0, 9),
)
layers = st.builds(
    DecoderLayer,
    attention=st.none() | attentions,
    recurrent=st.none() | states,
    mlp=st.none() | mlps,
    norms=st.integers(0, 3),
    reused=switch,
    side=st.just(()) | st.just(({"name": "gate beside", "in_features": 3, "out_features": 5, "times": 2},)),
)


def typed(layer, kinds):
    """Give some matrices of a layer types of their own."""
    names = dict.fromkeys(matrix.name for matrix in layer.linears(8))
    return DecoderLayer(
        **{**{f: getattr(layer, f) for f in DecoderLayer.model_fields}, "dtypes": dict(zip(names, kinds, strict=False))}
    )


specs = st.builds(
    lambda kinds, types, tied, head: ModelSpec(
        title="drawn",
        hidden_size=8,
        vocab_size=11,
        tied_embeddings=tied,
        head_dtype=head,
        layers=tuple(typed(layer, types) for layer in kinds),
    ),
    st.lists(layers, min_size=1, max_size=4),
    st.lists(st.sampled_from(sorted(WEIGHT_SIZE)), max_size=5),
    st.booleans(),
    st.none() | st.sampled_from(sorted(WEIGHT_SIZE)),
)
contexts = st.integers(0, 5000)


@given(specs)
def test_a_drawn_model_reads_back_the_same(spec):
    assert ModelFile(**parse(spec.to_yaml().encode(), "x")).spec() == spec
    assert model(json.loads(spec.to_json())) == spec


@given(specs, layers, contexts)
def test_another_layer_never_takes_less(spec, layer, context):
    more = ModelSpec(**{**{f: getattr(spec, f) for f in ModelSpec.model_fields}, "layers": (layer, *spec.layers)})
    assert more.parameters == spec.parameters + layer.parameters(8)
    assert more.active_parameters >= spec.active_parameters
    assert more.weight_bytes() >= spec.weight_bytes()
    assert more.kv_bytes(context) >= spec.kv_bytes(context)
    assert more.index_bytes(context) >= spec.index_bytes(context)
    assert more.state_bytes() == spec.state_bytes() + layer.state_bytes


@given(specs, contexts, st.integers(0, 100), st.integers(1, 100))
def test_caches_grow_with_the_context_and_whole_pages(spec, context, more, page):
    for size_of in (spec.kv_bytes, spec.index_bytes):
        assert size_of(context) <= size_of(context + more)
        assert size_of(context) <= size_of(context, page_size=page) <= size_of(context + page - 1, page_size=page)
        assert size_of(context, page_size=1) == size_of(context)
        assert size_of(context, "fp32") == 4 * size_of(context, "fp8")
    assert spec.index_bytes(context) <= context * spec.index_bytes_per_token()
    assert spec.kv_bytes(0) == spec.index_bytes(0) == 0


@given(specs)
def test_parameters_are_matrices_and_vectors(spec):
    matrices = sum(m.elements for layer in spec.layers for m in layer.linears(8))
    vectors = sum(layer.vectors(8) for layer in spec.layers)
    tables = (2 - spec.tied_embeddings) * 11 * 8
    norm = 8 * (spec.layers[-1].norms > 0)
    assert spec.parameters == matrices + vectors + tables + norm
    assert spec.active_parameters <= spec.parameters


@given(states, st.integers(1, 400))
def test_a_longer_prompt_takes_more_flops(state, tokens):
    assert 0 < state.prefill_flops(tokens) < state.prefill_flops(tokens + 64)
    assert state.decode_flops() > 0
    assert state.state.bytes == 4 * state.state.recurrent + 2 * state.state.convolution


def test_flops_of_a_chunk_as_counted_by_torch():
    """Matrix products of one token and head, as its FLOP counter reports for the reference code."""
    for keys, values, counted in ((128, 96, 118_784), (128, 128, 147_456)):
        delta = GatedDeltaNet(key_heads=1, value_heads=1, key_dim=keys, value_dim=values)
        convolution, solve = 2 * delta.widths.convolved * 4, 64 * (keys + values)
        assert delta.prefill_flops(64) == 64 * (convolution + solve + counted)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (Indexer, {"heads": 1, "head_dim": 4, "topk": 100, "block": 64}, "topk: 100 given; allowed: a multiple of"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "o_groups": 2}, "o_lora_rank: None given with o_groups = 2"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "o_groups": 3, "o_lora_rank": 2}, "o_groups: 3 given; allowed"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "compression": {"ratio": 4}}, "compression: given with tied_kv"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "value_dim": 4, "tied_kv": True}, "tied_kv: True given with"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "q_lora_rank": 2}, "q_lora_rank: 2 given without kv_lora_rank"),
        (AttentionLayer, {"heads": 4, "head_dim": 8, "qk_norm_weights": "all"}, "qk_norm_weights: all given with qk"),
        (
            DecoderLayer,
            {"recurrent": {"kind": "lstm"}},
            "recurrent: {'kind': 'lstm'} given; allowed: a mapping with 'kind' one of 'gated_deltanet'",
        ),
        (
            DecoderLayer,
            {"mlp": {"intermediate_size": 4}, "dtypes": {"q": "fp8"}},
            "dtypes.q: no such matrix; allowed: ",
        ),
        (DecoderLayer, {"mlp": {"intermediate_size": 4}, "dtypes": {"up": "fp5"}}, "dtype: 'fp5' is unknown"),
        (MLPLayer, {"intermediate_size": 4, "latent_size": 2}, "latent_size: 2 given with experts = 0; allowed: 0"),
        (
            MLPLayer,
            {"intermediate_size": 4, "router_bias": True},
            "router_bias: True given with experts = 0; allowed: False",
        ),
        (MLPLayer, {**EXPERTS, "shared_gate": True}, "shared_gate: True given with shared_experts = 0; allowed: False"),
        (MLPLayer, {**EXPERTS, "latent_norm": True}, "latent_norm: True given with latent_size = 0; allowed: False"),
    ],
)
def test_parts_that_do_not_go_together(kind, fields, message):
    with pytest.raises(InputError) as error:
        kind(**fields)
    assert message in str(error.value)
    assert str(error.value).isprintable()


SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
ATTENTION, MATRICES = 4 * 64 * 64, 4 * 64 * 64 + 3 * 64 * 128


def quantised(**scheme):
    """Weights of a small model under a scheme: elements by type, without those that are never quantised."""
    spec = model({**SMALL, "quantization_config": scheme})
    found = {}
    for layer in spec.layers:
        for matrix in layer.linears(64):
            dtype = layer.dtype_of(matrix, spec.dtype, spec.expert_dtype)
            found[dtype] = found.get(dtype, 0) + matrix.elements
    return found | ({"head": spec.head_dtype} if spec.head_dtype else {})


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.1"]}, {"fp8": 2, "bf16": 1}),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"int8": 3}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, {"nf4": 3}),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            {"nf4-double": 3},
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, {"uint4-g128": 3}),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, {"uint8-g32": 3}),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, {"int4": 3}),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 64, "modules_to_not_convert": ["layers.0"]},
            {"uint4-g64": 2, "bf16": 1},
        ),
        ({"quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.[02]*"]}, {"fp8": 1, "bf16": 2}),
        ({"quant_algo": "MXFP8", "exclude_modules": ["lm_head", "model.layers.2*"]}, {"mxfp8": 2, "bf16": 1}),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}},
                "layer_quant_config": {"*layers.1.*": {"weight": {"dtype": "fp8_e4m3"}}},
                "exclude": ["lm_head", "model.layers.0.*"],
            },
            {"mxfp4": 1, "fp8": 1, "bf16": 1},
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}},
                "ignore": ["lm_head", "re:.*layers\\.[01]\\..*"],
            },
            {"fp8": 1, "bf16": 2},
        ),
    ],
)
def test_formats_of_quantisation(scheme, expected):
    assert quantised(**scheme) == {dtype: layers * MATRICES for dtype, layers in expected.items()}


@pytest.mark.parametrize("path", PREFIXES)
def test_lists_of_a_quantisation_may_name_modules_by_any_path_of_the_layers(path):
    """The list has a module of another part too, as those of models with several do."""
    found = quantised(quant_method="fbgemm_fp8", modules_to_not_convert=["visual.blocks.0", f"{path}.1.self_attn"])
    assert found == {"fp8": 3 * MATRICES - ATTENTION, "bf16": ATTENTION}


@pytest.mark.parametrize(("bits", "named"), [(8, "mxfp8"), (4, "mxfp4")])
def test_a_group_of_32_floats_is_a_microscaled_type_whatever_the_format_is_called(bits, named):
    def typed(group, form):
        weights = {"num_bits": bits, "type": "float", **group}
        groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
        found = quantised(quant_method="compressed-tensors", format=form, config_groups=groups)
        (dtype,) = found.keys() - {"head"}
        return dtype

    assert {typed({"group_size": 32}, form) for form in (f"{named}-quantized", "float-quantized", None)} == {named}
    others = {typed({"group_size": 16}, None), typed({}, "float-quantized")}
    assert named not in others
    if bits == 4:  # released files name the format alone
        assert typed({}, f"{named}-pack-quantized") == named


def test_a_group_of_targets_and_the_output_layer():
    weights = {"num_bits": 4, "type": "int", "group_size": 32}
    groups = {"a": {"targets": ["re:.*self_attn.*"], "weights": weights}}
    found = quantised(quant_method="compressed-tensors", config_groups=groups)
    assert found == {"int4-g32": 3 * ATTENTION, "bf16": 3 * (MATRICES - ATTENTION)}
    assert quantised(quant_algo="FP8") == {"fp8": 3 * MATRICES, "head": "fp8"}


def test_patterns_that_never_end_are_refused():
    groups = {"a": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}}
    with pytest.raises(InputError, match="allowed: regular expressions without a repeated group that repeats"):
        quantised(quant_method="compressed-tensors", config_groups=groups, ignore=["re:(a+)+$"])
    with pytest.raises(InputError, match="a pattern of modules is invalid"):
        quantised(quant_method="compressed-tensors", config_groups=groups, ignore=["re:("])


names = st.lists(st.sampled_from(["model", "layers", "1", "11", "self_attn", "q_proj"]), min_size=1, max_size=5).map(
    ".".join
)


@given(names, names)
def test_lists_match_whole_parts_of_names(listed, name):
    parts, wanted = name.split("."), listed.split(".")
    places = [parts[i : i + len(wanted)] == wanted for i in range(len(parts))]
    assert segments([listed]).match(name) == any(places)
    assert globs([listed]).match(name) == places[0]
    assert globs([f"{listed}*"]).match(name) == name.startswith(listed)


@given(st.integers(1, 300), st.integers(1, 100), st.sampled_from(["all", "window", "chunk"]))
def test_pairs_of_a_prefill_are_those_of_its_mask(tokens, size, kind):
    layer = AttentionLayer(heads=2, head_dim=8, **{} if kind == "all" else {kind: size})
    keys = {"all": lambda row: row, "window": lambda row: min(row, size), "chunk": lambda row: (row - 1) % size + 1}
    assert layer.prefilled_pairs(tokens) == sum(map(keys[kind], range(1, tokens + 1)))


@given(st.integers(1, 40), st.integers(1, 200), st.data())
def test_the_pieces_of_a_chunk_are_its_pairs(chunk, keys, data):
    """The calls that a chunk of a prompt is divided into have its queries, and the pairs that it adds."""
    layer = AttentionLayer(heads=4, head_dim=8, chunk=chunk)
    queries = data.draw(st.integers(1, keys))
    calls = [layer.call(1, *piece) for piece in layer.pieces(queries, keys)]
    assert sum(call.q_len for call in calls) == queries

    def pairs(call):
        if isinstance(call.mask, Documents):
            return call.mask.visible_pairs(call.q_len, call.kv_len)
        assert call.mask == "causal"
        return call.q_len * (call.kv_len - call.q_len) + call.q_len * (call.q_len + 1) // 2

    assert sum(map(pairs, calls)) == layer.prefilled_pairs(keys) - layer.prefilled_pairs(keys - queries)


def test_attention_overtakes_the_matrices_by_hand():
    """Half the square: 2 x 4096 x N FLOPs a token in each layer of Llama 3 8B, and 436,207,616 of its matrices."""
    spec = model("llama-3-8b")
    assert spec.attention_overtakes == 436_207_616 // 8192 - 1
    assert model("mistral-7b-v0.1").attention_overtakes is None, "no window is as long"
    assert model("llama-3.1-70b").attention_overtakes > spec.attention_overtakes
