"""Steps of shipped models in a new process: their kernels are timed from kept formulas, without sympy."""

import subprocess
import sys

import pytest

from iomodel import list_models, model
from tests.support.inside import kind_of

STEPS = """
import sys
from iomodel.common import derived
from iomodel.planning.step.step import step
derived.pending = {{}} if {keeping} else None
for name in {names!r}:
    for types in ({{}}, {{"kv_dtype": "fp8"}}):
        step(name, {device!r}, batch=8, q_len=1, kv_len=512, **types)
        assert {keeping} or "sympy" not in sys.modules, (name, types)
derived.keep()
"""


def kinds(name):
    """The kinds of formula of a decode step of a model, in its own types and over a cache in fp8."""
    layers = {layer.attention for layer in model(name).counted if layer.attention is not None}
    found = set()
    for layer in layers:
        for kv_dtype in ("bf16", "fp8"):
            latent = {"absorbed": True} if layer.latent else {}
            call = layer.call(8, 1, 512, "bf16", kv_dtype, None, **latent)
            found.add((kind_of(call), layer.tied_kv, call.group > 1))
    return found


def representatives():
    """The first model of each set of kinds that no model before it has."""
    seen, chosen = set(), []
    for name in list_models():
        own = kinds(name)
        if not own <= seen:
            chosen.append(name)
            seen |= own
    return chosen


@pytest.mark.parametrize("device", ["h200-sxm", "mi300x"])
def test_a_cold_step_of_a_shipped_model_needs_no_sympy(device):
    names = representatives()
    assert {"deepseek-v2", "gemma-2-27b", "gpt-oss-120b"} <= set(names)
    for keeping in (True, False):  # as a command keeps what it had to derive, for the next one
        code = STEPS.format(names=names, device=device, keeping=keeping)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
