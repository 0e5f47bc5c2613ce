"""Pareto fronts: points are plans, the front against a search by hand, the cheapest, what is refused."""

import json
import shlex
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, UnknownNameError, hardware, model
from iomodel.errors import SpecError
from iomodel.planning.engines import ASSUMED, step_limits
from iomodel.planning.layouts import every_layout
from iomodel.planning.pareto import pareto
from iomodel.planning.pareto_result import ParetoPoint, divided
from iomodel.planning.plan import plan
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from tests.support.device_edits import edited
from tests.support.inside import main

TINY, H100, A100 = "llama-3.2-1b", "h100-sxm5", "a100-sxm4-80gb"
CHAT = {"prompt": 1024, "output": 64}
SMALL = {"batches": [1, 8, 64], "replica_devices": 2, **CHAT}


def point(per_user, per_device):
    return ParetoPoint("a", Layout(), 1, "bf16", "bf16", 1, 1, 0.1, 1 / per_user, 1.0, per_device)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=20))
def test_no_point_of_the_front_is_beaten(speeds):
    points = [point(float(a), float(b)) for a, b in speeds]
    front, dominated = divided(points)
    assert sorted(map(id, (*front, *dominated))) == sorted(map(id, points))
    own = [(1 / p.tpot, p.tokens_per_second_per_device) for p in front]
    best = {(1 / p.tpot, p.tokens_per_second_per_device) for p in points}
    unbeaten = {a for a in best if not any(b != a and b[0] >= a[0] and b[1] >= a[1] for b in best)}
    assert len(own) == len(set(own))
    assert set(own) == unbeaten
    assert own == sorted(own, reverse=True)


def test_points_are_plans():
    found = pareto(TINY, [H100, A100], weight_dtypes=["bf16", "int8"], kv_dtypes=["fp8"], **SMALL)
    points = (*found.front, *found.dominated)
    layouts = [Layout(), Layout(tensor_parallel=2)]
    asked = {(p.device, p.layout, p.weight_dtype, p.batch) for p in points}
    assert asked == set(product((H100, A100), layouts, ("bf16", "int8"), (1, 8, 64)))
    for one in points[::7]:
        kinds = {"weight_dtype": one.weight_dtype, "kv_dtype": one.kv_dtype}
        alone = plan(TINY, one.device, layout=one.layout, count=one.devices, batch=one.batch, **kinds, **CHAT)
        most = step_limits(ASSUMED, hardware(one.device))[1]
        assert (one.ttft, one.tpot, one.fits) == (alone.ttft, alone.tpot, min(alone.memory.fits, most))
        assert one.tokens_per_second_per_device == alone.tokens_per_second / one.devices
        assert one.joules_per_token == pytest.approx(
            hardware(one.device).power.tdp.value * one.devices / alone.tokens_per_second
        )


def test_batches_by_default_are_powers_of_two_and_all_that_fit():
    found = pareto("llama-3-8b", H100, layouts=[Layout()], prompt=4000, output=96)
    sizes = sorted(p.batch for p in (*found.front, *found.dominated))
    fits = plan("llama-3-8b", H100, prompt=4000, output=96).memory.fits
    assert sizes == sorted({*(1 << n for n in range(fits.bit_length())), fits})


def test_all_layouts():
    layouts = every_layout(model("deepseek-v2-lite"), 4)
    assert len(layouts) == len(set(layouts))
    degrees = [(t, p, e) for t, p, e in product((1, 2, 4), repeat=3) if max(t, e) * p <= 4]
    assert {(x.tensor_parallel, x.pipeline_parallel, x.expert_parallel) for x in layouts} == set(degrees)
    assert all(layout.expert_parallel == 1 for layout in every_layout(model("llama-3-70b"), 8))


def test_the_cheapest_keeps_the_targets():
    prices = {H100: 2.5, A100: 1.0}
    found = pareto(TINY, price=prices, ttft=0.05, tpot=0.006, **SMALL)
    points = (*found.front, *found.dominated)
    kept = [p for p in points if p.ttft <= 0.05 and p.tpot <= 0.006]
    assert 0 < len(kept) < len(points)
    assert found.cheapest.price_per_million_tokens == min(p.price_per_million_tokens for p in kept)
    one = found.cheapest
    cost = prices[one.device] * one.devices / 3600 / one.tokens_per_second * 1e6
    assert one.price_per_million_tokens == pytest.approx(cost)
    free = pareto(TINY, [H100, A100], tpot=0.006, **SMALL)
    assert free.cheapest.price_per_million_tokens is None
    most = max(p.tokens_per_second_per_device for p in (*free.front, *free.dominated) if p.tpot <= 0.006)
    assert free.cheapest.tokens_per_second_per_device == most


def test_a_percentile_is_that_of_a_simulation():
    at = {"prompt": 512, "output": 16, "engine": None}
    asked = {"layouts": [Layout()], "batches": [1, 2, 4, 8], **at}
    found = pareto(TINY, H100, ttft=0.0075, tpot=0.004, percentile="p90", **asked)
    kept = {}
    for batch in asked["batches"]:
        run = simulate(TINY, H100, concurrency=batch, requests=200 * batch, batch=batch, layout=Layout(), **at)
        kept[batch] = run.ttft.p90 <= 0.0075 and run.tpot.p90 <= 0.004
    assert found.cheapest.batch == max(batch for batch, good in kept.items() if good)
    assert not all(kept.values())
    with pytest.raises(InfeasibleError, match=r"nearest point has TTFT \(p99\) .*batch 8"):
        pareto(TINY, H100, ttft=0.0048, percentile="p99", **{**asked, "batches": [8, 16]})


def test_a_faster_device_beats_the_front():
    device = hardware(H100)
    quick = edited(device, {"memory.hbm.bandwidth": 2 * device.memory.hbm.bandwidth.value})
    found = pareto(TINY, [device, quick], layouts=[Layout()], batches=[64], **CHAT)
    assert (len(found.front), len(found.dominated)) == (1, 1)
    assert found.front[0].tpot < found.dominated[0].tpot


FAULTS = [
    ({"output": 1}, InputError, "output: 1 given; allowed: at least 2"),
    ({"hardware": None}, InputError, "hardware: not given, but required; allowed: a list of devices, or prices"),
    (
        {"tpot": 1e-5},
        InfeasibleError,
        r"tpot: 10 us given; allowed: more, because the nearest point has TPOT .*TP 2, b",
    ),
    ({"percentile": "p90"}, InputError, "percentile: 'p90' given without a target; allowed: with ttft or tpot"),
    ({"percentile": "p95", "tpot": 1}, UnknownNameError, "percentile: 'p95' is unknown"),
    ({"batches": [0]}, InputError, "batches: 0 given"),
    ({"batches": 8}, InputError, "batches: 8 given; allowed: a list of integers"),
    ({"batches": [10**9]}, SpecError, "no given batch fits"),
    ({"weight_dtypes": "fp8"}, InputError, "weight_dtypes: 'fp8' given; allowed: a list"),
    ({"kv_dtypes": []}, InputError, "kv_dtypes: an empty list given"),
    ({"weight_dtypes": ["fp7"]}, UnknownNameError, "weight_dtype: 'fp7' is unknown"),
    ({"hardware": [H100, A100], "price": {H100: 1}, "tpot": 1}, InputError, f"price: none for {A100}; allowed: a pr"),
    ({"power_utilization": 1.5}, InputError, "power_utilization: 1.5 given"),
    (
        {"model": "llama-3-70b", "replica_devices": 1},
        InfeasibleError,
        "memory: no device and layout holds a batch; nearest l",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS, ids=lambda value: str(value)[:30])
def test_faults_are_told_in_one_line(change, error, message):
    with pytest.raises(error, match=message) as caught:
        pareto(**{"model": TINY, "hardware": H100, **SMALL, **change})
    assert "\n" not in str(caught.value)


def test_the_command(capsys, tmp_path):
    typed = f"pareto {TINY} --hardware {H100} --price {H100}=2 --prompt 64 --output 4 --batches 1,4 --max-count 1"
    more = " --weight-dtypes bf16,int8 --kv-dtypes fp8 --tpot 1s --power-utilization 0.5 --hit-rate 0.25"
    table, picture = tmp_path / "all.csv", tmp_path / "front.svg"
    assert main([*shlex.split(typed + more), "--json", "--out", str(table)]) == 0
    plain = json.loads(capsys.readouterr().out)
    points = len(plain["front"]) + len(plain["dominated"])
    assert points == 4
    assert len(table.read_text().splitlines()) == points + 1
    assert plain["cheapest"]["watts"] == 350
    assert plain["prefix_cache"]["hit_rate"] == 0.25
    assert main([*shlex.split(typed), "--out", str(picture)]) == 0
    assert "4 points" in capsys.readouterr().out or picture.exists()
    assert main([*shlex.split(typed), "--out", str(picture)]) == 2
    assert capsys.readouterr().err.startswith("iomodel: out: ")
    assert main(["pareto", TINY, "--hardware", H100, "--prompt", "64"]) == 2
    assert capsys.readouterr().err.startswith("iomodel: output: not given")


def test_the_picture_shows_every_point():
    pytest.importorskip("matplotlib")
    from iomodel import plots

    found = pareto(TINY, [H100, A100], tpot=0.01, **SMALL)
    axes = plots.pareto(found).axes[0]
    lines = {line.get_gid(): len(line.get_xdata()) for line in axes.lines}
    assert lines["dominated"] == len(found.dominated)
    assert lines["front"] == len(found.front) == sum(n for gid, n in lines.items() if gid.startswith("front "))
    assert lines["cheapest"] == 1
    with pytest.raises(InputError, match="result: 3 given"):
        plots.pareto(3)
