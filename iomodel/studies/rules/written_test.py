"""Files of tests that stand beside a written rule and derive it again."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from iomodel.studies.rules.domain import HELD_OUT
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
    found = {learned}
        {devices}, domain=DOMAIN, size={size}, calls={calls}, seed={seed}, {options}
    )
    assert found.text("{form}") == FILE.read_text(encoding="utf-8")
'''
CHOICES = """

def test_its_choices_lose_no_more_than_the_header_says():
    rule = run_path(str(FILE))
    regrets = []
    for hardware, implementation in {kernels}:
        drawn = DOMAIN.drawn({held}, {judged})
        for place in range({some}):
            call = {{name: column[place].item() for name, column in drawn.items()}}
            chosen = rule["{function}"](hardware, **call)
            causal = call.pop("causal")
            asked = iomodel.Attention(**call, mask="causal" if causal else "full", dtype=DOMAIN.dtype)
{taken}
            regrets.append(seconds / least - 1)
    assert max(regrets) <= {worst}
"""
WHOLE = """            best = iomodel.solve("{algorithm}", asked, hardware, implementation=implementation)
            names = ("block_q", "block_kv", "warps", "stages", "packed", "splits")
            taken = {{*best.tiles, "warps", "stages", *best.searched}}
            given = {{name: size for name, size in zip(names, chosen, strict=True) if name in taken}}
            found = iomodel.estimate("{algorithm}", asked, hardware, given, implementation=implementation)
            least, seconds = best.seconds, found.seconds"""
SPLITS = """            most = -(-asked.kv_len // 256)
            seconds, *others = (
                iomodel.estimate("{algorithm}", asked, hardware, splits=splits, implementation=implementation).seconds
                for splits in (chosen, *(min(splits, most) for splits in (1, 2, 4, 8, 16, 32, 64)))
            )
            least = min(seconds, *others)"""
CONFIGS = """            version = implementation.removeprefix("triton-")
            (best,) = iomodel.triton.flex_options(asked, hardware, top=1, version=version)
            keep = iomodel.triton.pruner(asked, hardware, kernel="block_sparse", top=None, version=version)
            own = {{name.removeprefix("fwd_"): size for name, size in chosen.items()}}
            seconds, least = (each.seconds for each in keep.judge([own, best], {{}}))"""
"""Comparisons of the time of a choice with the least one: of launches, of splits at a library's tile, of configs."""

SOME = 20
"""Held-out calls whose regret a test computes again [-]."""
SLACK = 0.01
"""Regret above that of the header that a test allows, twice the tolerance of the solver [-]."""


def written_test(rule: Rule, form: str, file: str) -> str:
    """Write the tests of a rule that is written to a file in a form."""
    kernels = [(each.hardware, each.implementation) for each in rule.devices]
    domain = ", ".join(f"{name}={value!r}" for name, value in vars(rule.domain).items())
    words = {
        "file": PurePath(file).name, "domain": domain, "algorithm": rule.algorithm,
        "devices": [hardware for hardware, _ in kernels], "size": rule.size, "calls": rule.calls,
        "seed": rule.seed, "form": form, "function": name_of_function(rule), "kernels": kernels,
        "implementation": [implementation for _, implementation in kernels], "judged": (rule.seed, 2),
        "worst": round(max([each.held_out.worst for each in rule.devices]) + SLACK, 4),
        "held": rule.calls // HELD_OUT, "some": min(rule.calls // HELD_OUT, SOME),
    }  # fmt: skip
    in_triton = rule.form_of_engine.room != "iomodel.rule"
    words["learned"] = f"{rule.form_of_engine.room}(" + ("" if in_triton else f'"{rule.algorithm}",')
    words["options"] = _options(rule)
    taken = CONFIGS if in_triton else SPLITS if rule.engine else WHOLE
    words["taken"] = taken.format(**words)
    text = TEST.format(**words) + (CHOICES.format(**words) if form == "python" else "")
    return text.replace("import iomodel\n", "import iomodel.triton\n", 1) if in_triton else text


def _options(rule: Rule) -> str:
    """Write the arguments that name the kernels and the engine."""
    engine = f"engine={rule.engine!r}," if rule.engine else ""
    names = [each.implementation for each in rule.devices]
    if rule.form_of_engine.room != "iomodel.rule":
        return f"{engine} version={names[0].removeprefix('triton-')!r},"
    return f"implementation={names}, {engine}".rstrip()
