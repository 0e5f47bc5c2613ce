"""Options of commands against the parameters of the functions that they call."""

from __future__ import annotations

import pytest

from iomodel.cli.commands import Commands
from iomodel.cli.documented import GROUPS, documented, function, parameters
from iomodel.cli.rule_command import DOMAIN
from iomodel.cli.shared_options import ALGORITHM, KIND, LAUNCHED, TILE, WORKLOAD

CALLED = {
    "plan": "planning.plan:plan",
    "fleet": "planning.fleet:fleet",
    "pareto": "planning.pareto:pareto",
    "disaggregate": "planning.disaggregated:disaggregate",
    "simulate": "planning.simulation.simulate:simulate",
    "train": "planning.training.train_step:train_step",
    "tiles": "solving.solve:solve",
    "compare": "studies.compare:compare",
    "estimate": "studies.estimate:estimate",
    "check": "studies.check:check",
    "cost": "counting.cost:cost",
    "trace": "studies.trace.trace:trace",
    "diagnose": "studies.diagnosis.diagnose:diagnose",
    "crossover": "studies.crossovers.crossovers:crossovers",
    "staircase": "solving.staircase:staircase",
    "rule": "studies.rules.rule:rule",
    "step": "planning.step.step:step",
    "optimum": "counting.optimum:optimum",
    "bounds": "counting.bounds:lower_bounds",
    "judge": "studies.judge:judge",
    "calibrate": "devices.calibration.calibrate:calibrate",
}
"""The function of each command."""
OBJECTS = {
    "workload": {entry.name for entry in WORKLOAD},
    "tiles": {entry.name for entry in (*LAUNCHED, *TILE)},
    "options": {entry.name for entry in ALGORITHM},
    "parameters": {"host_launch", "kernel_launch", "dirty_l2", "warm_l2"},
    "prefill_layout": {"prefill_tensor_parallel"},
    "decode_layout": {"decode_tensor_parallel"},
    "layouts": set(),
    "domain": {*DOMAIN.names.split()},
    **{name: {word.rpartition("=")[2] for word in group.names.split()} for name, group in GROUPS.items()},
}
"""Options of parameters that are objects."""
RENAMED = {
    "price_per_hour": "price", "prices": "price", "seconds": "time", "traced_heads": "heads_traced",
    "time_budget": "budget",
}  # fmt: skip
"""Options with a name of their own; the lengths of heads are a field of a workload."""
SHOWN = {"json", "help", "emit", "out", "output", "force", "form", "map", "events", "progress", "fail", "latex"}
"""Options of what a command prints or writes, and the parameter of a progress bar."""
ADDED = {
    "cost": {"hardware", "implementation"},  # the tiles of `estimate`, which the function takes
    "train": {"context_parallel"},  # a degree of layouts that plans do not take
}
"""Options without a parameter, with the reason."""
LEFT_OUT = {
    "step": {"routing": "tokens of every expert, more than a line holds"},
}
"""Parameters without an option, with the reason."""


@pytest.mark.parametrize("command", CALLED)
def test_options_are_the_parameters_of_the_function(command):
    taken = {parameter.name for parameter in Commands()[command].params} - SHOWN
    named = set(parameters(CALLED[command])) - SHOWN - {"old"}  # parameters by their old names
    objects = OBJECTS.keys() - ({"layout"} if "tensor_parallel" in named else set())
    wanted = {RENAMED.get(name, name) if command != "cost" else name for name in named - OBJECTS.keys()}
    for name in named & objects:
        wanted |= OBJECTS[name] & taken
    if command == "trace":
        wanted |= {"heads"}
    if command == "optimum":
        wanted |= {entry.name for entry in (*KIND, *ALGORITHM)}  # what a formula depends on, without numbers
    if command == "judge":  # of an algorithm, or of the file of a run
        run = set(parameters("planning.judge_run:judge_run")) - {"file", "layout"} - SHOWN
        wanted = (wanted - {"algorithm"}) | {"subject", *run, "tensor_parallel", "pipeline_parallel", "expert_parallel"}
    assert taken - ADDED.get(command, set()) == wanted - LEFT_OUT.get(command, {}).keys()


@pytest.mark.parametrize("path", [*CALLED.values(), *(group.path for group in GROUPS.values())])
def test_every_parameter_has_a_sentence(path):
    told = documented(path)
    names = {name for name in parameters(path) if name not in ("options", "service", "old")}
    assert names <= told.keys()
    assert all(text.strip(".") for _, text in told.values())


def test_a_group_is_built_from_its_options():
    draft = GROUPS["speculation"].given({"draft_tokens": "3", "acceptance": "0.8", "draft": None})
    assert draft == function(GROUPS["speculation"].path)(tokens=3, acceptance=0.8)
    assert GROUPS["lora"].given({"lora_rank": None}) is None
