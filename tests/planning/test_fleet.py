"""Fleets: the queue against formulas and a simulation, the answer redone by hand, laws, what is refused."""

import json
import pickle
import random
import shlex
from math import ceil, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, UnknownNameError, hardware
from iomodel.errors import SpecError
from iomodel.planning.engines import STEP_HOST
from iomodel.planning.fleet import fleet, replica
from iomodel.planning.fleet_queue import HALVINGS, Replica
from iomodel.planning.layouts import default_layouts
from iomodel.planning.plan import plan
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from iomodel.planning.steps import BatchTimes
from tests.support.inside import main

TINY, H100, A100 = "llama-3.2-1b", "h100-sxm5", "a100-sxm4-80gb"
ALONE = (Layout(),)
CHAT = {"prompt": 1024, "output": 128, "engine": None}
ASKED = {"load": 100, "ttft": 0.2, "tpot": 0.02, "layouts": ALONE, **CHAT}
PRICES = {H100: 2.5, A100: 1.5}


def service(name=TINY, prompt=1024, output=128, layout=Layout()):  # noqa: B008 - frozen
    return as_service(name, prompt, output, layout, memory_utilization=0.9, overhead_bytes=OVERHEAD, engine=None)


def line(start, slope):
    return BatchTimes(lambda batch: start + slope * batch)


# The queue


def test_a_replica_by_hand():
    one = Replica(prefill=0.1, occupied=0.1, step=line(0.006, 0.0001), steps=255, fits=400)
    at = one.at(5.0)
    behind = 0.5 + 0.25 / (2 * 0.5)  # prefills that a prefill leaves behind it: M/D/1 at half load
    step = 0.006 + 0.0001 * at.batch
    assert at.in_flight == pytest.approx(5 * (255 * step + behind * 0.1) / 0.5)
    assert at.batch == ceil(at.in_flight)
    assert at.tpot == pytest.approx(at.in_flight / 5 / 255)  # Little
    queued = 0.1 * 0.5 / (2 * 0.5)  # Pollaczek and Khinchine
    assert at.ttft == pytest.approx(0.1 + queued + step / 2)
    assert one.at(10.0) is None
    assert one.at(9.99) is None  # no room for what is in flight


def simulated(one, load, requests=3000):
    """Mean TTFT, TPOT and requests in flight of a replica whose prefills go before any decode step."""
    chance, now, arrivals = random.Random(1), 0.0, []
    for _ in range(requests):
        now += chance.expovariate(load)
        arrivals.append(now)
    now, started, first, later, held = 0.0, 0, 0.0, 0.0, 0.0
    running: list[list[float]] = []
    while started < requests or running:
        if started < requests and arrivals[started] <= now:
            held += len(running) * one.prefill
            now += one.prefill
            first += now - arrivals[started]
            running.append([one.steps, now])
            started += 1
        elif running:
            time = one.step(len(running))
            now, held = now + time, held + time * len(running)
            for request in running:
                request[0] -= 1
            later += sum((now - begun) / one.steps for left, begun in running if not left)
            running = [request for request in running if request[0]]
        else:
            now = arrivals[started]
    return first / requests, later / requests, held / now


@pytest.mark.parametrize(
    ("prefill", "start", "slope", "steps"),
    [(0.1, 0.006, 1e-4, 255), (0.05, 0.01, 5e-5, 511), (0.3, 0.012, 2e-4, 127)],
)
@pytest.mark.parametrize("busy", [0.1, 0.3, 0.5])
def test_the_queue_is_near_a_simulation(prefill, start, slope, steps, busy):
    one = Replica(prefill, prefill, line(start, slope), steps, fits=1000)
    at = one.at(busy / prefill)
    ttft, tpot, in_flight = simulated(one, busy / prefill)
    assert at.ttft == pytest.approx(ttft, rel=0.04)
    assert at.tpot == pytest.approx(tpot, rel=0.08)
    assert at.in_flight == pytest.approx(in_flight, rel=0.12)


replicas = st.builds(
    lambda prefill, share, start, slope, steps, fits: Replica(
        prefill, prefill * share, line(start, slope), steps, fits
    ),
    st.floats(1e-3, 2),
    st.floats(0.1, 1),
    st.floats(1e-3, 0.1),
    st.floats(0, 1e-2),
    st.integers(0, 2000),
    st.integers(1, 5000),
)


@given(replicas, st.floats(1e-3, 5), st.floats(1e-3, 0.5))
def test_the_most_load_meets_its_targets(one, ttft, tpot):
    found = one.most(ttft, tpot)
    step = 2.0**-HALVINGS / one.occupied
    if found is None:
        light = one.at(step)
        assert light is None or light.ttft > ttft or light.tpot > tpot
        return
    assert found.ttft <= ttft
    assert found.tpot <= tpot
    assert found.in_flight <= one.room
    assert found.in_flight <= found.batch
    more = one.at(found.load + 1.001 * step)
    assert more is None or more.ttft > ttft or more.tpot > tpot


@given(replicas, st.floats(1e-3, 5), st.floats(1e-3, 0.5), st.floats(0.2, 1), st.floats(0.2, 1))
def test_a_stricter_target_is_met_at_no_more_load(one, ttft, tpot, first, later):
    strict, loose = one.most(ttft * first, tpot * later), one.most(ttft, tpot)
    assert strict is None or strict.load <= loose.load


@given(replicas, st.floats(0, 100), st.floats(0.1, 1))
def test_less_load_is_answered_sooner(one, load, share):
    busy, calm = one.at(load + 1e-9), one.at((load + 1e-9) * share)
    if busy is not None:
        assert calm.ttft <= busy.ttft * (1 + 1e-12)
        assert calm.tpot <= busy.tpot * (1 + 1e-12)
        assert calm.batch <= busy.batch


@given(st.lists(st.floats(1e-4, 1), min_size=12, max_size=12), st.integers(1, 2000))
def test_batches_never_fall_and_never_grow_faster_than_the_batch(times, batch):
    found = BatchTimes(lambda size: times[size.bit_length() - 1])
    assert found(batch) <= found(batch + 1) * (1 + 1e-12)
    assert found(batch + 1) / (batch + 1) <= found(batch) / batch * (1 + 1e-12)


@given(st.integers(1, 10**6), st.floats(0, 10))
def test_room_leaves_the_deviations(fits, deviations):
    room = Replica(1, 1, line(1, 0), 1, fits, deviations).room
    assert room + deviations * sqrt(room) == pytest.approx(fits)


# The answer


@pytest.fixture(scope="module")
def found():
    return fleet(TINY, [H100, A100], price=PRICES, **ASKED)


def test_the_answer_by_hand(found):
    asked = service()
    for way in (found.best, *found.runners_up):
        device = hardware(way.device)
        one = replica(asked, device, 2.0)
        assert one.prefill == step(TINY, way.device, batch=1, q_len=1024, kv_len=1024).seconds + STEP_HOST
        most = one.most(0.2, 0.02)
        assert way.most == most.load
        assert way.replicas == ceil(100 / most.load) == way.devices
        at = one.at(100 / way.replicas)
        assert way.operating == at
        assert (at.ttft <= 0.2, at.tpot <= 0.02) == (True, True)
        assert way.price_per_hour == way.devices * PRICES[way.device]
        assert way.fits == asked.memory(device).fits
    assert found.best.devices <= min(way.devices for way in found.runners_up)
    assert not found.refused


def test_clients_send_the_load_of_answers_at_the_targets():
    """A closed loop of these clients on the devices found keeps the targets too."""
    asked = {"prompt": 4096, "output": 500, "ttft": 2.0, "tpot": 0.04}
    found = fleet("llama-3.3-70b", H100, clients=100, **asked)
    assert found.load == pytest.approx(100 / (2.0 + 499 * 0.04))
    assert found.best == fleet("llama-3.3-70b", H100, load=found.load, **asked).best
    assert found.assumed[H100][0].startswith("100 clients with answers of 22 s")
    count = found.best.devices
    loop = plan("llama-3.3-70b", H100, clients=100, count=count, layout=found.best.layout, **asked)
    assert loop.replicas == found.best.replicas
    assert loop.ttft + 499 * loop.tpot <= 2.0 + 499 * 0.04


def test_targets_that_clients_miss_name_their_times():
    asked = {"clients": 100, "prompt": 4096, "output": 500, "ttft": 2.0, "tpot": 0.04}
    plain = {name: value for name, value in asked.items() if name not in ("ttft", "tpot")}
    message = r"with 100 clients \(TP 8\); iomodel\.fleet counts replicas"
    for layout in (None, Layout(tensor_parallel=8)):
        with pytest.raises(InfeasibleError, match=message) as caught:
            plan("llama-3.3-70b", H100, layout=layout, **asked)
        alone = plan("llama-3.3-70b", H100, tensor_parallel=8, **plain)
        assert caught.value.least == ceil(1e6 * alone.tpot)


def test_the_step_times_are_exact_at_powers_of_two():
    asked = service()
    one = replica(asked, hardware(H100), 2.0)
    first, middle, last = (step(TINY, H100, batch=8, q_len=1, kv_len=n).seconds for n in (1025, 1088, 1151))
    assert one.step(8) == pytest.approx((first + 2 * middle + last) / 4 + STEP_HOST, rel=2e-3)
    assert one.step(12) == pytest.approx((one.step(8) + one.step(16)) / 2)


def test_the_cheapest_is_not_dearer_than_the_smallest(found):
    cheap = fleet(TINY, [H100, A100], price=PRICES, objective="cost", **ASKED)
    assert cheap.best.price_per_hour <= found.best.price_per_hour
    assert cheap.best.devices >= found.best.devices
    assert cheap.best.price_per_hour <= min(way.price_per_hour for way in cheap.runners_up)
    tenfold = {name: 10 * price for name, price in PRICES.items()}
    dear = fleet(TINY, price=tenfold, objective="cost", **ASKED)  # the devices are those with a price
    assert dear.best.device == cheap.best.device
    assert dear.best.price_per_hour == pytest.approx(10 * cheap.best.price_per_hour)
    one_way = {H100: 1e6, A100: 1.5}
    assert fleet(TINY, price=one_way, objective="cost", **ASKED).best.device == A100


@given(st.floats(0.02, 1), st.floats(0.003, 0.05), st.floats(0.3, 1), st.floats(0.3, 1), st.floats(1, 500))
def test_stricter_targets_and_more_load_never_need_fewer(ttft, tpot, first, later, load):
    asked = {**ASKED, "ttft": ttft, "tpot": tpot, "load": load, "max_devices": 10**9}
    try:
        loose = fleet(TINY, [H100, A100], **asked).best.devices
    except InfeasibleError:
        loose = None
    for change in ({"ttft": ttft * first, "tpot": tpot * later}, {"load": 2 * load}):
        try:
            assert fleet(TINY, [H100, A100], **{**asked, **change}).best.devices >= loose
        except InfeasibleError:
            continue


def test_layouts_are_tried_until_the_model_fits():
    device = hardware(H100)
    assert default_layouts(service(), device, 8) == [Layout(tensor_parallel=n) for n in (1, 2, 4, 8)]
    assert default_layouts(service(), device, 3) == [Layout(), Layout(tensor_parallel=2)]
    large = default_layouts(service("deepseek-v3"), device, 64)
    last = Layout(tensor_parallel=8, pipeline_parallel=2)
    assert large[-2:] == [last, last.model_copy(update={"decode_context_parallel": 8})]
    assert Layout(expert_parallel=8) in large
    assert service("deepseek-v3", layout=large[-1]).memory(device).fits


def test_what_does_not_do_says_why(found):
    mixed = fleet(TINY, [H100, A100, "l4", "apple-m1"], **{**ASKED, "tpot": 0.003})
    reasons = {refusal.device: refusal.reason for refusal in mixed.refused}
    assert "memory.hbm.capacity: apple-m1 lacks it" in reasons["apple-m1"]
    assert reasons["l4"].startswith("TPOT: ")
    assert mixed.best.device == H100
    text = str(mixed)
    assert "targets missed" in text
    assert "apple-m1" in text
    assert mixed.best.price_per_hour is None


def test_an_answer_is_frozen_and_plain(found):
    assert pickle.loads(pickle.dumps(found)) == found
    plain = json.loads(found.to_json())
    assert plain == found.to_dict()
    assert plain["best"]["devices"] == found.best.devices
    assert plain["best"]["ttft"] == found.best.operating.ttft
    assert (plain["load"], plain["tpot"]) == (100, 0.02)


# What is refused


def test_an_unreachable_target_says_what_is_reached():
    alone = step(TINY, H100, batch=1, q_len=1024, kv_len=1024).seconds
    with pytest.raises(
        InfeasibleError, match=r"^ttft: 1 us given; .* the least TTFT .* \(h100-sxm5, one device\)"
    ) as it:
        fleet(TINY, [H100, A100], **{**ASKED, "ttft": 1e-6})
    assert it.value.least == ceil(1e6 * (alone + STEP_HOST))
    assert it.value.unit == "us"
    with pytest.raises(InfeasibleError, match=r"^tpot: 1 us given; .* the least TPOT"):
        fleet(TINY, [H100, A100], **{**ASKED, "tpot": 1e-6})


def test_too_few_devices_say_how_many_do(found):
    with pytest.raises(InfeasibleError, match="max_devices = 1 are too few") as caught:
        fleet(TINY, [H100, A100], **{**ASKED, "load": 10_000, "max_devices": 1})
    enough = fleet(TINY, [H100, A100], **{**ASKED, "load": 10_000, "max_devices": caught.value.least})
    assert enough.best.devices == caught.value.least


def test_a_model_that_fits_nowhere():
    with pytest.raises(InfeasibleError, match=r"^memory: no device and layout holds the model .* nearest"):
        fleet("llama-3-70b", [H100, A100], **ASKED)
    with pytest.raises(SpecError, match=r"memory\.hbm\.capacity"):
        fleet(TINY, "apple-m1", **ASKED)


FAULTS = [
    ({"load": 0}, InputError, "load: 0 given; allowed: a number above 0"),
    ({"load": None}, InputError, "load: not given, but required; allowed: requests a second, such as 20, or clients"),
    ({"clients": 3}, InputError, "clients: given with load; allowed: one of both"),
    ({"load": None, "clients": 0}, InputError, "clients: 0 given; allowed: an integer from 1"),
    ({"ttft": -1}, InputError, "ttft: -1 given"),
    ({"tpot": "fast"}, InputError, "tpot: 'fast' is not a number"),
    ({"price": {H100: 0}}, InputError, "price.h100-sxm5: 0 given"),
    ({"price": "cheap"}, InputError, "price: 'cheap' given; allowed: a number"),
    ({"price": {"h100-sxm4": 2.5}}, UnknownNameError, "did you mean 'h100-sxm5'"),
    ({"objective": "costs"}, UnknownNameError, "did you mean 'cost'"),
    ({"objective": "cost"}, InputError, "price: none for h100-sxm5"),
    ({"hardware": None}, InputError, "hardware: not given"),
    ({"hardware": []}, InputError, "hardware: an empty list"),
    ({"layouts": []}, InputError, "layouts: an empty list"),
    ({"layouts": [8]}, InputError, "layouts: 8 given"),
    ({"layouts": [Layout(tensor_parallel=3)]}, InputError, "tensor_parallel: 3 given"),
    ({"max_devices": 0}, InputError, "max_devices: 0 given"),
    ({"deviations": -1}, InputError, "deviations: -1 given; allowed: a number from 0"),
    ({"model": "llama"}, UnknownNameError, "model: 'llama' is unknown"),
    ({"kv_dtype": "fp7"}, UnknownNameError, "did you mean 'fp8'"),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS, ids=lambda value: str(value)[:40])
def test_faults_are_told_in_one_line(change, error, message):
    asked = {"model": TINY, "hardware": H100, **ASKED, **change}
    with pytest.raises(error, match=message) as caught:
        fleet(**asked)
    assert "\n" not in str(caught.value)


SHORT = f"fleet {TINY} --prompt 1024 --output 128"


@pytest.mark.parametrize(
    ("typed", "code", "text"),
    [
        ("--load 20 --ttft 1us --tpot 50ms --hardware h100-sxm5 --max-count 1", 1, "the least TTFT"),
        ("--load 20 --ttft 1 --hardware h100-sxm5", 2, "tpot: not given"),
        ("--load 20 --ttft 1 --tpot 1", 2, "hardware: not given"),
        ("--load 20 --ttft 1 --tpot 1 --price h100-sxm5", 2, "allowed: DEVICE=PRICE"),
        ("--load 20 --ttft 1 --tpot 1 --price h100-sxm5=x", 2, "price.h100-sxm5: 'x' given"),
        ("--load many --ttft 1 --tpot 1 --hardware h100-sxm5", 2, "load: 'many' given"),
        ("--load 20 --ttft 200ms --tpot 20ms --price h100-sxm5=2.5 --max-count 1 --objective cost", 0, "2.50"),
    ],
)
def test_the_command(capsys, typed, code, text):
    assert main(shlex.split(f"{SHORT} {typed}")) == code
    out, err = capsys.readouterr()
    assert text in (err if code else out)
    assert (err.count("\n"), bool(out)) == ((1, False) if code else (0, True))


def test_the_command_says_what_the_library_says(capsys):
    typed = "--load 100 --ttft 200ms --tpot 0.02 --hardware h100-sxm5 --price h100-sxm5=2.5 --max-count 1 --json"
    assert main(shlex.split(f"{SHORT} --engine none {typed}")) == 0
    asked = {**ASKED, "layouts": None, "max_devices": 1}
    assert json.loads(capsys.readouterr().out) == fleet(TINY, H100, price={H100: 2.5}, **asked).to_dict()


def test_a_device_in_a_file_has_its_price(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(hardware(H100).to_yaml(), encoding="utf-8")
    asked = {"load": 1, "prompt": 512, "output": 64, "ttft": 5, "tpot": 1, "objective": "cost"}
    found = fleet("llama-3-8b", str(file), price={str(file): 2.5}, layouts=[Layout()], **asked)
    assert found.best.price_per_hour == 2.5 * found.best.devices
    code = main(
        shlex.split("fleet llama-3-8b --load 1 --prompt 9 --output 9 --ttft 5 --tpot 1 --price t4=1 --price t4=2")
    )
    assert code == 2


def test_a_layout_that_a_plan_would_not_take_is_explained():
    asked = {"load": 8, "prompt": 2048, "output": 256, "ttft": 1, "tpot": 0.05}
    found = fleet("llama-3.1-70b", "b200", **asked)
    planned = plan("llama-3.1-70b", "b200", **asked)
    assert (found.best.devices, found.steady.layout) == (planned.count, planned.layout)
    assert found.best.layout != planned.layout
    assert "plan takes the smaller replica (one device), a fleet the one with the least TPOT" in str(found)
    assert any("takes the least TPOT of as many" in text for text in planned.assumed)
