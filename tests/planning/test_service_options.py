"""Options of a service: flat keywords in signatures, docstrings and errors of all functions that take them."""

import inspect
import re

import pytest

import iomodel
from iomodel.planning.service import as_service
from iomodel.planning.service_options import (
    LoadedOptions,
    PlanOptions,
    ServiceOptions,
    SimulationOptions,
    TimedStepOptions,
    options_of,
)

TAKING = {
    **dict.fromkeys(("plan", "pareto"), LoadedOptions),
    "fleet": PlanOptions,
    "simulate": SimulationOptions,
    "step": TimedStepOptions,
    "disaggregate": ServiceOptions,  # each pool has a layout of its own
}
CHAT = {"prompt": 256, "output": 16}


@pytest.mark.parametrize("name", TAKING)
def test_options_are_flat_keywords_with_documentation(name):
    function, options = getattr(iomodel, name), options_of(TAKING[name])
    parameters = inspect.signature(function).parameters
    for option in options.values():
        parameter = parameters[option.name]
        assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, option.default)
        assert option.doc.endswith(".")
        assert function.__doc__.count(f"\n{option.name} : {option.kind}\n") == 1
    assert "service" not in parameters
    assert "**service" not in function.__doc__


@pytest.mark.parametrize("name", TAKING)
def test_every_parameter_is_documented(name):
    function = getattr(iomodel, name)
    section = function.__doc__.partition("Parameters\n")[2].partition("Raises\n")[0]
    entries = [entry for line in re.findall(r"^(\w.*?) : ", section, re.MULTILINE) for entry in line.split(", ")]
    assert sorted(entries) == sorted(inspect.signature(function).parameters)


@pytest.mark.parametrize(("name", "wrong"), [(name, "presicion") for name in TAKING])
def test_an_unknown_option_is_the_error_of_any_function(name, wrong):
    parameters = inspect.signature(getattr(iomodel, name)).parameters.values()
    needed = {one.name: None for one in parameters if one.default is one.empty}
    with pytest.raises(TypeError, match=rf"^argument of {name}: '{wrong}' is unknown"):
        getattr(iomodel, name)(**needed, **{wrong: "fp8"})


def test_a_precision_sets_the_types_of_every_point():
    asked = {"batches": [1, 8], "replica_devices": 1, **CHAT}
    by_precision = iomodel.pareto("llama-3-8b", "h100-sxm5", precision="fp8", **asked)
    by_types = iomodel.pareto("llama-3-8b", "h100-sxm5", weight_dtype="fp8", kv_dtype="fp8", **asked)
    by_lists = iomodel.pareto("llama-3-8b", "h100-sxm5", weight_dtypes=["fp8"], kv_dtypes=["fp8"], **asked)
    assert by_precision == by_types == by_lists
    assert {point.weight_dtype for point in by_precision.front} == {"fp8"}
    with pytest.raises(iomodel.InputError, match="weight_dtypes: given with weight_dtype; allowed: one of both"):
        iomodel.pareto("llama-3-8b", "h100-sxm5", weight_dtypes=["fp8"], weight_dtype="bf16", **asked)


def test_adapters_slow_both_pools_down():
    asked = {"link": 50e9, **CHAT}
    plain = iomodel.disaggregate("llama-3-8b", "h100-sxm5", "h100-sxm5", **asked)
    adapted = iomodel.disaggregate("llama-3-8b", "h100-sxm5", "h100-sxm5", lora=iomodel.Lora(rank=16), **asked)
    assert adapted.ttft > plain.ttft
    assert adapted.decode.seconds > plain.decode.seconds
    assert adapted.decode.memory.weights > plain.decode.memory.weights


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"engine": None, "overhead_bytes": 0, "memory_utilization": 0.8},
        {"engine": "sglang", "step_tokens": 512, "step_requests": 8, "moe_backend": "triton", "kv_dtype": "fp8"},
        {"lora": iomodel.Lora(rank=8), "prefix_cache": iomodel.PrefixCache(hit_rate=0.5), "page_size": 16},
        {"speculation": iomodel.Speculation(draft="ngram", tokens=2, acceptance=0.5), "precision": "fp8"},
    ],
)
def test_a_service_is_built_again_from_its_options(options):
    served = as_service("llama-3-8b", **CHAT, **options)
    assert as_service("llama-3-8b", **CHAT, **served.options) == served


def test_the_memory_of_a_device_is_computed_once():
    service, device = as_service("llama-3-8b", **CHAT), iomodel.hardware("h100-sxm5")
    assert service.memory(device) is service.memory(device)
    assert service.memory(iomodel.hardware("h200-sxm")) is not service.memory(device)
