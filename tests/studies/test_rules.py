"""Rules that choose launches: what is written is what is decided, in every form, and what is learned is judged."""

from __future__ import annotations

import ast
import ctypes
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.studies.rules.domain import Domain
from iomodel.studies.rules.launches import SHARE, DividingFamily, Family, Launch
from iomodel.studies.rules.rule_result import DeviceRule, Node, Regret, Rule
from iomodel.studies.rules.terms import FEATURES, candidates, counted
from iomodel.studies.rules.tree import Grower, roundest
from iomodel.studies.rules.written import MOST_BYTES, name_of_function

SMALL = Domain(max_q_len=600, max_kv_len=20_000, max_batch=16, max_kv_heads=8, head_dims=(64, 128))
DEVICES = ("mi300x", "a100-sxm4-80gb")
NONE = Regret(0, 0.0, 0.0, 0.0)
NAMES = ("block_q", "block_kv", "warps", "stages", "packed", "splits")
C = """
extern "C" int call(int device, long long* a, int* out) {
    using namespace choose_split_kv_rule;
    Launch l = {0, 0, 0, 0, 0, 0};
    if (!choose_split_kv(device, a[0], a[1], a[2], a[3], a[4], a[5], a[6] != 0, l)) return 0;
    out[0] = l.block_q; out[1] = l.block_kv; out[2] = l.warps; out[3] = l.stages; out[4] = l.packed; out[5] = l.splits;
    return 1;
}
"""


@pytest.fixture(scope="module")
def learned() -> Rule:
    return iomodel.rule("flash2", DEVICES, domain=SMALL, calls=400, size=6000)


@st.composite
def device_rules(draw: st.DrawFn, hardware: str = "a100-sxm4-80gb") -> DeviceRule:
    """Rules of random comparisons and launches."""
    units = draw(st.integers(1, 160))
    sizes = st.sampled_from((16, 64, 80, 128, 192))
    launch = st.builds(
        lambda rows, keys, packed, way: Launch(rows, keys, 4, 1, packed, *way),
        sizes, sizes, st.booleans(),
        st.one_of(st.integers(1, 200).map(lambda many: (many, 0)), st.integers(1, 16).map(lambda fill: (0, fill))),
    )  # fmt: skip
    launches = tuple(draw(st.lists(launch, min_size=1, max_size=4)))
    features = candidates((64, 128), (64, 112), units)
    nodes: list[Node] = []

    def add(depth: int) -> int:
        place = len(nodes)
        if depth == 4 or draw(st.booleans()):
            nodes.append(Node("", (), draw(st.integers(0, len(launches) - 1))))
            return place
        name, numbers = draw(st.sampled_from(features))
        nodes.append(Node(name, numbers, draw(st.sampled_from((0, 1, 3, 40, 500, 9_000, 10**6)))))
        below, above = add(depth + 1), add(depth + 1)
        nodes[place] = Node(name, numbers, nodes[place].most, below, above)
        return place

    add(0)
    most = draw(st.sampled_from((1, 128)))
    return DeviceRule(hardware, "an implementation", units, most, launches, tuple(nodes), NONE, NONE, NONE, NONE)


def ruled(*devices: DeviceRule, engine: str = "") -> Rule:
    return Rule("split_kv", Domain(), MOST_BYTES, 100, 0, devices, engine)


def function(rule: Rule) -> Any:
    """The Python function of a rule."""
    names: dict[str, Any] = {}
    exec(compile(rule.text("python"), "a rule", "exec"), names)
    return names[name_of_function(rule)]


def decided(device: DeviceRule, calls: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The launches that a rule decides, without its text."""
    found = []
    for number, place in enumerate(device.places(calls).tolist()):
        launch = device.launches[place]
        one = {name: column[number : number + 1] for name, column in calls.items()}
        sizes = (launch.block_q, launch.block_kv, launch.warps, launch.stages, launch.packed)
        found.append((*sizes, int(launch.divided(one, device.units, device.most_splits)[0])))
    return found


@given(device_rules(), st.integers(0, 1000))
def test_the_python_function_decides_as_the_rule(device: DeviceRule, seed: int) -> None:
    calls = Domain().drawn(12, seed)
    choose = function(ruled(device))
    for number, launch in enumerate(decided(device, calls)):
        assert choose(device.hardware, **{name: column[number].item() for name, column in calls.items()}) == launch


@given(device_rules(), st.integers(0, 1000))
def test_num_splits_are_the_splits_of_the_rule_and_none_outside(device: DeviceRule, seed: int) -> None:
    calls = Domain().drawn(6, seed)
    rule = ruled(device, engine="flash-attention")
    assert name_of_function(rule) == "num_splits"
    choose = function(rule)
    for number, launch in enumerate(decided(device, calls)):
        one = {name: column[number].item() for name, column in calls.items()}
        assert choose(device.hardware, **one) == launch[-1]
        assert choose("another", **one) == choose(device.hardware, **{**one, "head_dim": 72}) == 0


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_limit_of_a_comparison_is_the_roundest_number_between(low: int, width: int) -> None:
    found = roundest(low, low + width)
    assert low <= found < low + width
    powers = [number & -number for number in range(low, min(low + width, low + 300)) if number]
    assert found == 0 or (found & -found) >= max(powers, default=0)


def comparisons(text: str, name: str, end: str) -> list[str]:
    """The nested comparisons of a device in a written function."""
    lines = text.splitlines()
    first = next(
        i for i, line in enumerate(lines) if name in line and "(" in line and line.rstrip().endswith(("{", ":"))
    )
    body = lines[first + 1 :]
    last = next(i for i, line in enumerate(body) if line.strip().startswith(end))
    return [line for line in body[:last] if line.lstrip().startswith(("if", "else", "i="))]


@given(device_rules())
def test_both_languages_have_the_same_comparisons(device: DeviceRule) -> None:
    rule = ruled(device)
    python = comparisons(rule.text("python"), "def _a100_sxm4_80gb", "u, v")
    cpp = comparisons(rule.text("cpp"), "Launch a100_sxm4_80gb", "Launch out")
    assert [bare(line) for line in python] == [bare(line) for line in cpp]


def bare(line: str) -> str:
    """A line without the signs in which the languages differ: an integer division is that of either."""
    return "".join(letter for letter in line.replace("//", "/") if letter not in " ():;")


@given(st.sampled_from(candidates((64, 128), (64, 112), 108)), st.integers(0, 1000))
def test_a_feature_is_never_negative_and_written_as_computed(feature: tuple[str, tuple[int, ...]], seed: int) -> None:
    from iomodel.studies.rules.terms import letters_of

    name, numbers = feature
    term = FEATURES[name](*numbers)
    letters = letters_of(Domain().drawn(8, seed))
    values = term.value(letters)
    assert (values >= 0).all()
    for place in range(8):
        one = {letter: int(column[place]) for letter, column in letters.items()}
        named = {word: eval(each.text, {}, one) for word, each in counted([feature]).items()}
        assert eval(term.text, {}, {**one, **named}) == int(values[place])


def test_the_cpp_function_decides_as_the_rule(tmp_path: Path) -> None:
    """Where a compiler is installed; the comparisons are held to those of Python in any case."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    launches = (Launch(64, 128, 4, 1, True, 0, 3), Launch(128, 64, 8, 2, False, 6), Launch(16, 80, 4, 1, False))
    nodes = (
        Node("last wave", (64, 108), 40, 1, 2), Node("", (), 0), Node("packing", (), 0, 3, 4), Node("", (), 1),
        Node("", (), 2),
    )  # fmt: skip
    device = DeviceRule("a100-sxm4-80gb", "an implementation", 108, 128, launches, nodes, NONE, NONE, NONE, NONE)
    rule = ruled(device)
    text = rule.text("cpp")
    assert "#include" not in text
    calls = Domain().drawn(300, 5)
    choose = function(rule)
    wanted = decided(device, calls)
    assert {launch[0] for launch in wanted} == {64, 128, 16}
    if compiler is None:
        return
    source, library = tmp_path / "rule.cpp", tmp_path / "rule.so"
    source.write_text(text + C, encoding="utf-8")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    call = ctypes.CDLL(str(library)).call
    for number, launch in enumerate(wanted):
        arguments = {name: column[number].item() for name, column in calls.items()}
        out = (ctypes.c_int * 6)()
        assert call(0, (ctypes.c_longlong * 7)(*arguments.values()), out) == 1
        assert tuple(out) == tuple(map(int, launch))
        assert choose(device.hardware, **arguments) == launch
    outside = {**arguments, "head_dim": 72}
    assert call(0, (ctypes.c_longlong * 7)(*outside.values()), out) == 0


def test_num_splits_in_cpp_are_those_of_python(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    launches = (Launch(64, 128, 0, 0, True, 0, 3), Launch(128, 64, 0, 0, False, 6))
    nodes = (Node("waves", (64, 216, 128, 108), 80, 1, 2), Node("", (), 0), Node("", (), 1))
    device = DeviceRule("a100-sxm4-80gb", "an implementation", 108, 128, launches, nodes, NONE, NONE, NONE, NONE)
    rule = ruled(device, engine="flash-attention")
    calls = Domain().drawn(200, 5)
    choose = function(rule)
    rows = [tuple(int(column[number]) for column in calls.values()) for number in range(200)]
    wanted = [choose(device.hardware, *row) for row in rows]
    assert len({*wanted}) > 3
    if compiler is None:
        return
    source, library = tmp_path / "rule.cpp", tmp_path / "rule.so"
    body = "return num_splits_rule::num_splits(0, a[0], a[1], a[2], a[3], a[4], a[5], a[6] != 0);"
    source.write_text(rule.text("cpp") + 'extern "C" int call(long long* a) {' + body + "}\n", encoding="utf-8")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    call = ctypes.CDLL(str(library)).call
    assert [call((ctypes.c_longlong * 7)(*row)) for row in rows] == wanted
    assert call((ctypes.c_longlong * 7)(1, 63, 1, 8, 8, 64, 0)) == 0


@pytest.fixture(scope="module")
def splits() -> Rule:
    return iomodel.rule("split_kv", "a100-sxm4-80gb", domain=SMALL, calls=100, engine="flash-attention")


def test_the_splits_of_an_engine_are_learned_at_the_tile_of_its_library(splits: Rule, tmp_path: Path) -> None:
    (device,) = splits.devices
    assert device.implementation == "flash-attention-2"
    family = DividingFamily.of(
        iomodel.algorithms.algorithm("split_kv"), iomodel.hardware(device.hardware), None, "bf16"
    )
    call = {"q_len": 1, "kv_len": 9000, "batch": 2, "heads": 8, "kv_heads": 8, "head_dim": 64}
    one = {name: np.array([value]) for name, value in {**call, "causal": False}.items()}
    for ways in (family.ways[3], family.ways[-1]):
        number = int(ways.divided(one, family.units, family.most_splits)[0])
        usual = iomodel.estimate(
            "split_kv", iomodel.Attention(**call, dtype="bf16"), device.hardware,
            implementation=family.implementation, splits=number,
        )  # fmt: skip
        assert family.times(one, [ways])[0, 0] == pytest.approx(usual.seconds)
    _, beside = splits.write(tmp_path / "splits.py")
    names: dict[str, Any] = {"__file__": str(beside)}
    assert beside is not None
    exec(compile(beside.read_text(encoding="utf-8"), str(beside), "exec"), names)
    names["test_the_file_is_what_the_command_writes"]()
    names["test_its_choices_lose_no_more_than_the_header_says"]()


def test_a_file_for_aiter_has_one_config_that_every_width_takes(tmp_path: Path) -> None:
    found = iomodel.rule("flash2", "mi300x", calls=200, engine="aiter")
    written = json.loads(found.text())
    (launch,) = found.devices[0].launches
    sizes = {
        "BLOCK_M": launch.block_q, "BLOCK_N": launch.block_kv, "num_warps": launch.warps, "num_stages": launch.stages,
    }  # fmt: skip
    assert written["fwd"] == {"default": sizes}
    assert any("AITER_TRITON_CONFIGS_OVERLAY_PATH" in line for line in written["about"])
    calls = found.domain.drawn(50, 7)
    family = Family.of(iomodel.algorithms.algorithm("flash2"), iomodel.hardware("mi300x"), "triton-amd", "bf16")
    assert np.isfinite(family.times(calls, [launch])).all()
    file, beside = found.write(tmp_path / "DEFAULT.json")
    assert json.loads(file.read_text(encoding="utf-8")) == written
    assert beside is not None
    assert "engine='aiter'" in beside.read_text(encoding="utf-8")


OUTSIDE = [
    {"q_len": 0}, {"q_len": 16_385, "kv_len": 20_000}, {"kv_len": 63}, {"kv_len": 1_000_001},
    {"kv_len": 99, "q_len": 100},
    {"batch": 257}, {"heads": 9}, {"kv_heads": 33, "heads": 33}, {"heads": 17, "kv_heads": 1}, {"head_dim": 72},
    {"device": "h100-sxm5"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", OUTSIDE, ids=str)
def test_outside_the_domain_the_function_returns_nothing(wrong: dict[str, Any]) -> None:
    device = DeviceRule("mi300x", "ck", 304, 1, (Launch(64, 64, 4, 1, False),), (Node("", (), 0),), *[NONE] * 4)
    inside = {"device": "mi300x", "q_len": 1, "kv_len": 100, "batch": 1, "heads": 8, "kv_heads": 2, "head_dim": 128}
    choose = function(ruled(device))
    assert choose(**inside) == (64, 64, 4, 1, False, 1)
    assert choose(**{**inside, **wrong}) is None


def test_a_written_rule_imports_nothing_and_fits_its_size(learned: Rule) -> None:
    tree = ast.parse(learned.text("python"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for form in ("python", "cpp"):
        assert len(learned.text(form).encode()) <= learned.size
        for device in learned.devices:
            assert f"{100 * device.held_out.worst:.2f} %" in " ".join(learned.text(form).split())


def test_a_rule_is_learned_again_to_the_byte(learned: Rule, tmp_path: Path) -> None:
    file, beside = learned.write(tmp_path / "rule.py")
    names: dict[str, Any] = {"__file__": str(beside)}
    assert beside is not None
    exec(compile(beside.read_text(encoding="utf-8"), str(beside), "exec"), names)
    names["test_the_file_is_what_the_command_writes"]()
    names["test_its_choices_lose_no_more_than_the_header_says"]()
    assert file.read_text(encoding="utf-8") == learned.text()


def test_the_regret_is_that_of_the_function_on_other_calls(learned: Rule) -> None:
    choose = function(learned)
    calls = SMALL.drawn(12, 77)
    for device in learned.devices:
        for number in range(12):
            call = {name: column[number].item() for name, column in calls.items()}
            chosen = dict(zip(NAMES, choose(device.hardware, **call), strict=True))
            mask = "causal" if call.pop("causal") else "full"
            asked = iomodel.Attention(**call, mask=mask, dtype="bf16")
            best = iomodel.solve("flash2", asked, device.hardware, implementation=device.implementation)
            tiles = {name: chosen[name] for name in NAMES[:4]}
            packed = {"packed": chosen["packed"]} if "packed" in best.searched else {}
            time = iomodel.estimate(
                "flash2", asked, device.hardware, tiles, implementation=device.implementation, **packed
            )
            assert time.seconds >= best.seconds * (1 - 0.005)
            assert time.seconds <= best.seconds * 3


def test_a_held_out_regret_counts_calls_that_served_no_choice(learned: Rule) -> None:
    """The time of the chosen launch over the solver's, of calls of another seed than those of the choices."""
    device = next(each for each in learned.devices if each.hardware == "a100-sxm4-80gb")
    family = Family.of(iomodel.algorithms.algorithm("flash2"), iomodel.hardware(device.hardware), None, "bf16")
    calls = SMALL.drawn(400 // 8, (0, 2))
    _, least = family.solved(calls)
    own = family.times(calls, device.launches, device.places(calls))
    assert device.held_out == Regret.of(own, least)
    assert device.held_out.calls == 50
    assert np.isfinite(own).all()


def test_no_call_of_the_domain_reaches_a_launch_that_the_kernels_refuse(learned: Rule) -> None:
    calls = SMALL.drawn(2000, 9)
    for device in learned.devices:
        family = Family.of(iomodel.algorithms.algorithm("flash2"), iomodel.hardware(device.hardware), None, "bf16")
        assert np.isfinite(family.times(calls, device.launches, device.places(calls))).all()


def test_the_fewest_splits_within_the_tolerance_are_chosen() -> None:
    algorithm, device = iomodel.algorithms.algorithm("split_kv"), iomodel.hardware("a100-sxm4-80gb")
    family = DividingFamily.of(algorithm, device, None, "bf16")
    calls = Domain(head_dims=(128,), max_group=4).drawn(40, 3)
    chosen, least = family.solved(calls)
    times = family.times(calls, family.ways)
    near = times <= (1 + SHARE) * times.min(axis=0)
    assert list(least) == list(times.min(axis=0))
    assert [family.ways.index(way) for way in chosen] == [np.flatnonzero(column)[0] for column in near.T]
    assert (times[near.argmax(axis=0), np.arange(40)] > least).any()  # else the tolerance decides nothing


def test_several_splits_of_rows_that_are_packed_alone_are_refused() -> None:
    algorithm, device = iomodel.algorithms.algorithm("split_kv"), iomodel.hardware("h100-sxm5")
    family = Family.of(algorithm, device, "flash-attention-3", "bf16")
    calls = Domain(head_dims=(128,), max_group=4).drawn(40, 3)
    grouped = calls["heads"] > calls["kv_heads"]
    one, several = Launch(128, 128, 8, 2, False), Launch(128, 128, 8, 2, False, 4)
    times = family.times(calls, [one, several])
    assert np.isfinite(times[0]).any()
    assert np.isinf(times[1][grouped]).all()


def test_a_tree_reaches_no_refused_launch_and_gains_with_each_comparison() -> None:
    random = np.random.default_rng(0)
    features = np.stack([random.integers(0, 4, 400), random.integers(0, 1000, 400)])
    losses = np.stack([np.where(features[0] < 2, 1e3, 0.1), features[1] / 1000.0, 1 - features[1] / 1000.0], axis=1)
    root = Grower(losses, features).grown(20, losses < 100, {0: 4})

    def total(branch: Any, level: float) -> float:
        if not branch.halves or branch.level < level:
            return float(losses[branch.calls, branch.best].sum())
        return sum(total(half, level) for half in branch.halves)

    levels: list[float] = []

    def collect(branch: Any) -> None:
        if branch.halves:
            levels.append(branch.level)
            for half in branch.halves:
                collect(half)

    collect(root)
    assert np.inf in levels
    sums = [total(root, level) for level in sorted(levels, reverse=True)]
    assert sums == sorted(sums, reverse=True)
    assert sums[-1] < 400
    assert sums[-1] < sums[0]


def test_a_rule_reads_back_and_prints(learned: Rule) -> None:
    assert Rule.from_json(learned.to_json()) == learned
    assert "mi300x" in str(learned)
    assert learned.of("a100-sxm4-80gb").units == 108
    with pytest.raises(iomodel.UnknownNameError, match="h100-sxm5"):
        learned.of("h100-sxm5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hardware": []}, "hardware: none given"),
        ({"hardware": "sim-a100"}, "hardware: sim-a100 given, for which flash2 has no kernel"),
        ({"hardware": "mi300x", "algorithm": "gemm"}, "algorithm: gemm given; allowed: an algorithm of attention"),
        ({"hardware": "mi300x", "size": 100, "calls": 100}, "size: 100 B given; allowed: from"),
        ({"hardware": ["mi300x"], "implementation": ["ck", "ck"]}, "implementation: 2 given for 1 devices"),
        ({"hardware": "mi300x", "calls": 99}, "calls"),
        ({"hardware": "mi300x", "domain": 3}, "domain: 3 given"),
        ({"hardware": "mi300x", "engine": "tgi"}, "engine: 'tgi' is unknown; .*flash-attention, flex-attention, aiter"),
        (
            {"hardware": "mi300x", "engine": "flex-attention"},
            "aiter, or iomodel.triton.rule for flex-attention",
        ),
        ({"hardware": ["mi300x", "mi355x"], "engine": "aiter"}, "hardware: 2 given; allowed: one"),
        (
            {"hardware": "mi300x", "engine": "aiter", "implementation": "ck"},
            "ck given with an engine; allowed: tr",
        ),
        ({"hardware": "a100-sxm4-80gb", "engine": "flash-attention"}, "engine: given for flash2, whose kernels"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as refused:
        iomodel.rule(**{"algorithm": "flash2", **arguments})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_q_len": 0},
        {"max_kv_len": 63},
        {"head_dims": ()},
        {"head_dims": "64"},
        {"dtype": "fp8"},
        {"min_q_len": 16_385},
    ],
)
def test_a_domain_checks_its_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(iomodel.IOModelError, match=next(iter(wrong))):
        Domain(**wrong)
