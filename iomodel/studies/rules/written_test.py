"""Files of tests that stand beside a written rule and derive it again."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from iomodel.studies.rules.written import name_of_function

if TYPE_CHECKING:
    from iomodel.studies.rules.rule_result import Rule

TEST = '''"""Derive the rule of {file} again, and compare its choices with those of iomodel.solve."""

from pathlib import Path
from runpy import run_path

import iomodel

FILE = Path(__file__).with_name("{file}")
DOMAIN = iomodel.results.Domain({domain})


def test_the_file_is_what_the_command_writes():
    found = iomodel.rule(
        "{algorithm}", {devices}, implementation={implementation}, domain=DOMAIN,
        size={size}, calls={calls}, seed={seed},
    )
    assert found.text("{form}") == FILE.read_text(encoding="utf-8")
'''
CHOICES = """

def test_its_choices_are_nearly_as_fast_as_those_of_the_solver():
    rule = run_path(str(FILE))
    regrets = []
    for hardware, implementation in {kernels}:
        drawn = DOMAIN.drawn(20, {judged})
        for place in range(20):
            call = {{name: column[place].item() for name, column in drawn.items()}}
            launch = rule["{function}"](hardware, **call)
            names = ("block_q", "block_kv", "warps", "stages", "packed", "splits")
            chosen = dict(zip(names, launch, strict=True))
            causal = call.pop("causal")
            asked = iomodel.Attention(**call, mask="causal" if causal else "full", dtype=DOMAIN.dtype)
            best = iomodel.solve("{algorithm}", asked, hardware, implementation=implementation)
            taken = {{*best.tiles, "warps", "stages", *best.searched}}
            given = {{name: size for name, size in chosen.items() if name in taken}}
            found = iomodel.estimate("{algorithm}", asked, hardware, given, implementation=implementation)
            regrets.append(found.seconds / best.seconds - 1)
    assert max(regrets) <= {worst}
    assert sum(regrets) / len(regrets) <= {mean}
"""


def written_test(rule: Rule, form: str, file: str) -> str:
    """Write the tests of a rule that is written to a file in a form."""
    kernels = [(each.hardware, each.implementation) for each in rule.devices]
    domain = ", ".join(f"{name}={value!r}" for name, value in vars(rule.domain).items())
    words = {
        "file": PurePath(file).name, "domain": domain, "algorithm": rule.algorithm,
        "devices": [hardware for hardware, _ in kernels], "size": rule.size, "calls": rule.calls,
        "seed": rule.seed, "form": form, "function": name_of_function(rule), "kernels": kernels,
        "implementation": [implementation for _, implementation in kernels], "judged": (rule.seed, 4),
        "worst": round(2 * max([each.held_out.worst for each in rule.devices]) + 0.05, 4),
        "mean": round(2 * max([each.held_out.mean for each in rule.devices]) + 0.01, 4),
    }  # fmt: skip
    return TEST.format(**words) + (CHOICES.format(**words) if form == "python" else "")
