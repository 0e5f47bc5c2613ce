"""Adapters of low rank in plans: bytes by hand, kernels of a step, laws, refusals, and the options of engines."""

import json
import shlex

import pytest

import iomodel
from iomodel import InputError, Layout, Lora
from tests.support.inside import main

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm5"
CHAT = {"prompt": 512, "output": 64, "engine": None}
ATTENTION = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096)]
MLP = [(4096, 14336), (4096, 14336), (14336, 4096)]


def made(**changes):
    return iomodel.plan(MODEL, DEVICE, **{**CHAT, **changes})


def test_adapters_take_their_bytes():
    """32 layers of seven matrices, A of rank rows and B of rank columns, in two bytes."""
    each = 2 * 32 * 16 * sum(into + out for into, out in ATTENTION + MLP)
    plain, adapted = made(), made(lora=Lora(rank=16, adapters=5))
    assert adapted.memory.weights - plain.memory.weights == 5 * each
    assert adapted.memory.request_bytes == plain.memory.request_bytes


def test_ranks_hold_all_of_one_matrix_and_a_share_of_the_other():
    """A layer divided by columns has all of A, one divided by rows all of B."""
    ranks = 4
    columns = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 14336), (4096, 14336)]
    rows = [(4096, 4096), (14336, 4096)]
    each = sum(into + out // ranks for into, out in columns) + sum(into // ranks + out for into, out in rows)
    layout = Layout(tensor_parallel=ranks)
    plain, adapted = made(layout=layout), made(layout=layout, lora=Lora(rank=8, adapters=3))
    assert adapted.memory.weights - plain.memory.weights == 3 * 2 * 32 * 8 * each


@pytest.mark.parametrize(("active", "rows"), [(None, 6), (1, 6), (4, 6), (None, 2)])
def test_a_step_reads_each_active_adapter_once_and_multiplies_every_row(active, rows):
    lora = Lora(rank=16, adapters=4, active=active)
    asked = {"batch": rows, "q_len": 1, "kv_len": 64}
    plain, adapted = (iomodel.step(MODEL, DEVICE, **asked, lora=each) for each in (None, lora))
    parts = [part for part in adapted.parts if part.name.startswith("adapters of ")]
    assert [part.name for part in parts][:2] == ["adapters of q k v, A", "adapters of q k v, B"]
    assert len(parts) == 2 * 4  # inputs of Q, K and V; of O; of gate and up; of down
    assert sum(part.flops for part in parts) == 32 * 2 * rows * 16 * sum(into + out for into, out in ATTENTION + MLP)
    weights = 32 * 2 * 16 * sum(into + out for into, out in ATTENTION + MLP) * min(active or 4, rows)
    inputs, outputs = 3 * 4096 + 14336, sum(out for _, out in ATTENTION + MLP)
    moved = weights + 32 * 2 * rows * (inputs + outputs + 2 * 7 * 16)  # A x is written by one kernel, read by the next
    assert weights <= sum(part.hbm_bytes for part in parts) <= 1.05 * moved
    assert [part for part in adapted.parts if part not in parts] == list(plain.parts)


def test_more_adapters_never_fit_more_and_never_run_faster():
    plain = made(batch=16)
    last = plain
    for rank, adapters in ((8, 1), (8, 8), (64, 8), (64, 64)):
        adapted = made(batch=16, lora=Lora(rank=rank, adapters=adapters))
        assert adapted.memory.fits <= last.memory.fits
        assert adapted.figures.tpot >= last.figures.tpot
        assert adapted.figures.ttft >= plain.figures.ttft
        last = adapted
    few = made(batch=16, lora=Lora(rank=64, adapters=64, active=2))
    assert few.figures.tpot <= last.figures.tpot
    assert few.memory == last.memory


def test_dense_layers_alone_have_adapters_in_a_model_with_experts():
    asked = {"batch": 2, "q_len": 1, "kv_len": 64, "lora": Lora(rank=8)}
    names = {part.name for part in iomodel.step("gpt-oss-20b", DEVICE, **asked).parts}
    assert {name for name in names if name.startswith("adapters")} == {
        f"adapters of {name}, {matrix}" for name in ("q k v", "o") for matrix in "AB"
    }


def test_a_fleet_takes_adapters():
    asked = {"load": 5, "prompt": 512, "output": 64, "ttft": 1, "tpot": 0.05}
    plain, adapted = (iomodel.fleet(MODEL, DEVICE, **asked, lora=lora) for lora in (None, Lora(rank=64, adapters=16)))
    assert adapted.best.operating.tpot > plain.best.operating.tpot


def test_a_search_takes_adapters():
    asked = {"batches": [1, 4], "replica_devices": 2, "tpot": 0.05, "percentile": "p90", **CHAT}
    plain, adapted = (iomodel.pareto(MODEL, DEVICE, **asked, lora=lora) for lora in (None, Lora(rank=64, adapters=16)))
    points = [
        {(point.layout, point.batch): point for point in (*found.front, *found.dominated)} for found in (plain, adapted)
    ]
    assert points[0].keys() == points[1].keys()
    assert all(points[1][where].tpot > points[0][where].tpot for where in points[0])
    assert all(points[1][where].fits < points[0][where].fits for where in points[0])
    where = Layout(tensor_parallel=2), 4
    assert points[1][where].tpot == made(layout=where[0], batch=4, lora=Lora(rank=64, adapters=16)).tpot
    assert adapted.lora == Lora(rank=64, adapters=16)


def test_a_simulation_takes_adapters():
    """A single request has the times of a plan; more adapters in a batch take longer."""
    alone, adapter = {"concurrency": 1, "requests": 2, **CHAT}, Lora(rank=32)
    found = iomodel.simulate(MODEL, DEVICE, **alone, lora=adapter)
    planned = made(batch=1, lora=adapter)
    assert found.ttft.mean == pytest.approx(planned.ttft, rel=1e-6)
    assert found.tpot.mean == pytest.approx(planned.figures.step, rel=0.01)
    assert (found.memory, found.lora) == (planned.memory, adapter)
    times = [
        iomodel.simulate(MODEL, DEVICE, concurrency=16, requests=64, **CHAT, lora=lora).tpot.mean
        for lora in (None, Lora(rank=32), Lora(rank=32, adapters=16))
    ]
    assert times == sorted(times)
    assert times[0] < times[1] < times[2]


@pytest.mark.parametrize(
    ("lora", "model", "message"),
    [
        (Lora(rank=8), "deepseek-v3", "lora: given for deepseek-v3; allowed: none"),
        (Lora(rank=8, adapters=2, active=3), MODEL, "lora.active: 3 given; allowed: up to adapters = 2"),
        ({"rank": 8}, MODEL, "lora: {'rank': 8} given; allowed: an iomodel.Lora"),
    ],
)
def test_refusals_are_one_line(lora, model, message):
    with pytest.raises(InputError) as refused:
        iomodel.plan(model, "h200-sxm", layout=Layout(tensor_parallel=8), **CHAT, lora=lora)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_engines_are_told_of_adapters():
    """vLLM has fixed ranks and takes the next larger one."""
    plan = made(batch=8, lora=Lora(rank=12, adapters=4))
    flags = {engine: iomodel.planning.engine_flags(plan, engine) for engine in ("vllm", "sglang", "trtllm")}
    assert flags["vllm"].command.endswith("--enable-lora --max-loras 4 --max-lora-rank 16")
    assert flags["sglang"].command.endswith(
        "--enable-lora --max-loras-per-batch 4 --max-lora-rank 12 --lora-target-modules all"
    )
    modules = "[attn_q, attn_k, attn_v, attn_dense, mlp_h_to_4h, mlp_4h_to_h, mlp_gate]"
    assert flags["trtllm"].config.endswith(
        f"lora_config:\n  max_lora_rank: 12\n  max_loras: 4\n  lora_target_modules: {modules}"
    )
    with pytest.raises(InputError, match=r"lora.rank: 600 given; allowed with vllm: up to 512"):
        iomodel.planning.engine_flags(made(batch=8, lora=Lora(rank=600)), "vllm")


def test_all_commands_for_capacity_take_adapters(capsys):
    words = f"--hardware {DEVICE} --prompt 512 --output 64 --lora-rank 16 --lora-adapters 4 --json"
    for command in (f"pareto {MODEL} --batches 1 --max-count 1", f"simulate {MODEL} --load 2 --requests 20"):
        assert main(shlex.split(f"{command} {words}")) == 0
        assert json.loads(capsys.readouterr().out)["lora"] == {"rank": 16, "adapters": 4, "active": None}


def test_the_command_line_has_adapters(capsys):
    asked = f"plan {MODEL} --hardware {DEVICE} --prompt 512 --output 64 --lora-rank 16 --lora-adapters 4 --json"
    assert main(shlex.split(asked)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["memory"]["weights"] == made(lora=Lora(rank=16, adapters=4)).memory.weights
    assert told["lora"] == {"rank": 16, "adapters": 4, "active": None}
    assert main(shlex.split(asked.replace("--lora-rank 16 ", ""))) != 0
    assert "lora_rank: none given with adapters; allowed: --lora-rank 16" in capsys.readouterr().err
