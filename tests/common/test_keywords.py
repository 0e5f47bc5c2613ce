"""Keywords of public functions: synonyms are taken, and one that means nothing is refused by name."""

from inspect import Parameter, isfunction, signature
from warnings import catch_warnings

import pytest

import iomodel
from iomodel.common.keywords import strict
from iomodel.errors import UnknownNameError
from tests.support.inside import same

CALL = iomodel.Attention(q_len=1024, head_dim=64)
H100 = "h100-sxm5"
FUNCTIONS = {name: value for name in iomodel.__all__ if isfunction(value := getattr(iomodel, name))}


def own(function):
    kinds = signature(function).parameters.values()
    return [parameter.name for parameter in kinds if parameter.kind != Parameter.VAR_KEYWORD]


@pytest.mark.parametrize(
    ("function", "values", "given", "meant"),
    [
        ("solve", ("flash2", CALL), {"gpu": H100}, {"hardware": H100}),
        ("estimate", ("flash2", CALL), {"device": H100}, {"hardware": H100}),
        ("solve", ("flash2", CALL), {"smem": "100 KiB"}, {"sram_bytes": "100 KiB"}),
        ("lower_bounds", (CALL,), {"smem": "100 KiB"}, {"sram_bytes": "100 KiB"}),
        ("plan", ("llama-3-8b", H100), {"input_len": 512, "osl": 8}, {"prompt": 512, "output": 8}),
        (
            "plan",
            ("llama-3-8b", H100),
            {"prompt": 512, "output": 8, "gpu_memory_utilization": 0.8},
            {"prompt": 512, "output": 8, "memory_utilization": 0.8},
        ),
        (
            "step",
            ("llama-3-8b", H100),
            {"batch_size": 2, "seqlen_k": 512, "q_len": 1},
            {"batch": 2, "kv_len": 512, "q_len": 1},
        ),
    ],
)
def test_a_synonym_of_a_keyword_is_the_keyword(function, values, given, meant):
    asked = FUNCTIONS[function]
    assert str(asked(*values, **given)) == str(asked(*values, **meant))


def test_a_keyword_under_two_names_is_refused():
    with pytest.raises(iomodel.InputError, match="gpu: 'b200' given beside hardware; allowed: one of the two"):
        iomodel.solve("flash2", CALL, gpu="b200", hardware=H100, nothing=1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_keyword_that_a_function_needs_is_named(name):
    """Also where a function takes options of its algorithms, among which Python would count the misspelt one."""
    function = FUNCTIONS[name]
    parameters = signature(function).parameters.values()
    needed = [p.name for p in parameters if p.default is Parameter.empty and p.kind == Parameter.KEYWORD_ONLY]
    misspelt = f"{needed[0]}x" if needed else "nothing_such"
    takes_all = any(parameter.kind == Parameter.VAR_KEYWORD for parameter in parameters)
    with pytest.raises(TypeError) as caught:
        function(**{misspelt: 1})
    if needed or not takes_all:
        assert isinstance(caught.value, UnknownNameError)
        assert (caught.value.given, set(caught.value.allowed)) == (misspelt, {p.name for p in parameters})


def test_no_option_of_an_algorithm_is_a_synonym_of_a_keyword():
    """Else a call that is refused for another reason would be asked again with another meaning."""
    options = {
        option
        for name in iomodel.list_algorithms("attention")
        for direction in iomodel.algorithms.algorithm(name).directions
        for option in iomodel.algorithms.algorithm(name).takes(direction)
    }
    known = {parameter for function in FUNCTIONS.values() for parameter in own(function)}
    assert {option: same(option, known - {option}) for option in options if same(option, known - {option})} == {}


def test_an_error_from_within_is_its_own():
    @strict
    def broken(prompt):
        return prompt + None

    with pytest.raises(TypeError, match="unsupported operand"):
        broken(prompt=1)


def test_an_old_keyword_warns_at_the_line_of_the_caller():
    with catch_warnings(record=True, action="always") as told:
        iomodel.plan("llama-3-8b", H100, prompt=512, output=8, price_per_hour=2)
    assert [(warning.category, warning.filename) for warning in told] == [(DeprecationWarning, __file__)]


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: iomodel.solve("flash2", CALL, H100, implmentation="triton"), "did you mean 'implementation'"),
        (lambda: iomodel.compare(CALL, H100, algorithm=["flash2"]), "did you mean 'algorithms'"),
        (lambda: iomodel.estimate("flash2", CALL, H100, packd=True), "did you mean 'packed'"),
        (lambda: iomodel.Window(10, causal=True), "did you mean 'right'"),
        (lambda: iomodel.plan("llama-3-8b", [H100], prompt=8, output=8), "fleet and pareto take several"),
    ],
)
def test_a_misspelt_keyword_is_hinted_where_options_are_taken_too(ask, hint):
    with pytest.raises(iomodel.IOModelError, match=hint):
        ask()
