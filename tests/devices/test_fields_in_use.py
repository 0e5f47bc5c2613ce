"""Fields of device files: each figure on file changes an answer, or is listed as a record; wrong names are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

import iomodel
from iomodel import IOModelError
from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.devices.quantity import Quantity
from tests.support.device_edits import edited
from tests.support.inside import specs_folder

PREFILL = iomodel.Attention(heads=8, q_len=1024, head_dim=128, mask="causal")
DECODE = iomodel.Attention(batch=8, heads=8, q_len=1, kv_len=2000, head_dim=128)
NARROW = iomodel.Attention(heads=8, q_len=1024, head_dim=16)
PAIR = iomodel.Layout(tensor_parallel=2)


def plain(result: Any) -> object:
    """The plain form of a result without the device that it repeats."""

    def bare(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: bare(value) for key, value in data.items() if not key.startswith("hardware")}
        return [bare(value) for value in data] if isinstance(data, list | tuple) else data

    return bare(result.to_dict())


def timed(dtype: str, call: iomodel.Attention = PREFILL) -> Callable[[Hardware], object]:
    typed = call.model_copy(update={"dtype": dtype, "kv_dtype": dtype})
    name = "flash2" if call.q_len > 1 else "split_kv"
    return lambda device: plain(iomodel.estimate(name, typed, device))


def product(dtype: str) -> Callable[[Hardware], object]:
    layer = iomodel.Linear(rows=4096, in_features=4096, out_features=4096, dtype=dtype)
    return lambda device: iomodel.estimate("gemm", layer, device).seconds


def fits(call: iomodel.Attention, **tiles: int) -> Callable[[Hardware], object]:
    return lambda device: plain(iomodel.check("flash2", call, device, tiles))


def step(**more: Any) -> Callable[[Hardware], object]:
    return lambda device: iomodel.step("llama-3-8b", device, batch=8, **{"q_len": 1, "kv_len": 64, **more}).seconds


LONG = iomodel.Attention(heads=8, q_len=1, kv_len=8192, head_dim=128)
QUESTIONS: dict[str, Callable[[Hardware], object]] = {
    **{dtype: timed(dtype) for dtype in ("bf16", "fp16", "fp8", "fp32")},
    **{f"product in {dtype}": product(dtype) for dtype in ("int8", "tf32", "fp16", "fp8")},
    "decode": timed("bf16", DECODE),
    "long decode": lambda device: (
        iomodel.estimate("split_kv", LONG, device, implementation="flash-attention-3").seconds
    ),
    "backward": timed("bf16", PREFILL.model_copy(update={"direction": "backward"})),
    "levels": lambda device: [level.capacity_bytes for level in iomodel.estimate("flash2", PREFILL, device).levels],
    "tile": lambda device: dict(iomodel.solve("flash2", PREFILL, device, objective="traffic").tiles),
    "fits": fits(PREFILL, block_q=128, block_kv=64),
    "warps": fits(NARROW, block_q=64, block_kv=16, warps=4),
    "solution": lambda device: plain(iomodel.solve("flash2", PREFILL, device)),
    "diagnosis": lambda device: plain(
        iomodel.diagnose("flash2", PREFILL, device, 1e-3, {"block_q": 64, "block_kv": 64})
    ),
    "diagnosis of decode": lambda device: plain(
        iomodel.diagnose("split_kv", DECODE, device, 1e-5, {"block_q": 16, "block_kv": 64})
    ),
    "pair": step(layout=PAIR),
    "sixteen": step(layout=iomodel.Layout(tensor_parallel=8, pipeline_parallel=2)),
    "fp4": step(q_len=64, precision="fp4"),
    "plan": lambda device: plain(iomodel.plan("llama-3-8b", device, prompt=64, output=4)),
    "energy": lambda device: plain(
        iomodel.pareto("llama-3-8b", device, prompt=64, output=4, batches=[1], layouts=[iomodel.Layout()])
    ),
}
"""Questions about a device."""

USED: dict[str, tuple[str, float, str]] = {
    "compute.clock.boost": ("a10", 2, "bf16"),
    "compute.clock.sustained": ("a100-pcie-80gb", 0.5, "bf16"),
    "compute.clock.tensor": ("b200", 2, "bf16"),
    "compute.clock.throttled": ("b200", 0.5, "bf16"),
    "compute.exp_per_clock_per_sm": ("a10", 2, "bf16"),
    "compute.fp16_per_clock_per_sm": ("a10", 2, "bf16"),
    "compute.fp32_per_clock_per_sm": ("a10", 2, "fp32"),
    "compute.fp4_per_clock_per_sm": ("b200", 0.2, "fp4"),
    "compute.int8_per_clock_per_sm": ("a10", 0.5, "product in int8"),
    "compute.mma.columns": ("a10", 2, "backward"),
    "compute.mma.depth": ("a10", 2, "solution"),
    "compute.mma.rows": ("a10", 2, "bf16"),
    "compute.mma.warp_fp16_per_clock_per_sm": ("h100-pcie", 2, "bf16"),
    "compute.mma.warpgroup_rows": ("h100-pcie", 2, "decode"),
    "compute.peak.bf16": ("a10", 0.5, "bf16"),
    "compute.peak.fp16": ("a10", 2, "fp16"),
    "compute.peak.fp32": ("a10", 0.5, "fp32"),
    "compute.peak.fp4": ("b200", 0.5, "fp4"),
    "compute.peak.fp8": ("b200", 2, "fp8"),
    "compute.peak.int8": ("a10", 0.5, "product in int8"),
    "compute.peak.mxfp8": ("rtx5090", 2, "product in fp8"),
    "compute.peak.tf32": ("a10", 0.5, "product in tf32"),
    "compute.units": ("a10", 2, "fp32"),
    "interconnect.devices": ("h100-sxm5", 2, "sixteen"),
    "interconnect.pcie_total": ("l40s", 2, "pair"),
    "interconnect.per_direction": ("a100-pcie-80gb", 2, "pair"),
    "limits.blocks_per_sm": ("a10", 0.125, "warps"),
    "limits.cluster_blocks": ("h100-sxm5", 0.5, "levels"),
    "limits.register_granularity_per_warp": ("l4", 2, "fp8"),
    "limits.registers_per_sm": ("a10", 2, "solution"),
    "limits.registers_per_thread": ("a10", 2, "tile"),
    "limits.threads_per_block": ("a10", 2, "fits"),
    "limits.warp_size": ("a10", 2, "tile"),
    "limits.warps_per_sm": ("a10", 0.5, "warps"),
    "measured.best_gemm_bf16": ("b200", 0.1, "bf16"),
    "measured.best_gemm_fp16": ("t4", 0.1, "product in fp16"),
    "measured.best_gemm_fp4": ("rtx5090", 0.1, "fp4"),
    "measured.best_gemm_fp8": ("b200", 0.1, "fp8"),
    "measured.best_gemm_mxfp8": ("rtx5060ti-16gb", 0.1, "product in fp8"),
    "measured.exp": ("b300", 2, "diagnosis"),
    "memory.l2.partitions": ("h100-pcie", 2, "bf16"),
    "memory.l2.written": ("h100-sxm5", 2, "decode"),
    "memory.l2.slices": ("mi300x", 0.5, "bf16"),
    "memory.llc.capacity": ("mi300x", 2, "bf16"),
    "measured.gemm_bf16": ("h200-sxm", 2, "decode"),
    "measured.graph_node": ("h200-sxm", 2, "long decode"),
    "measured.hbm_copy": ("h200-sxm", 2, "backward"),
    "measured.hbm_read": ("b200", 2, "decode"),
    "measured.hbm_triad": ("a100-sxm4-80gb", 2, "decode"),
    "measured.kernel_launch": ("a100-sxm4-80gb", 2, "bf16"),
    "measured.l2_bandwidth": ("a100-pcie-80gb", 2, "backward"),
    "measured.l2_capacity": ("h100-sxm5", 0.5, "bf16"),
    "measured.llc_bandwidth": ("mi300x", 0.5, "bf16"),
    "memory.llc.bandwidth": ("mi325x", 2, "bf16"),
    "measured.l2_latency": ("a100-sxm4-80gb", 2, "diagnosis"),
    "memory.accumulator.per_sm": ("b200", 2, "fits"),
    "memory.hbm.bandwidth": ("a10", 2, "decode"),
    "memory.hbm.capacity": ("a30", 2, "plan"),
    "memory.hbm.capacity_reported": ("a100-sxm4-40gb", 2, "plan"),
    "memory.l1.per_sm": ("mi250x", 2, "diagnosis"),
    "memory.l2.bandwidth": ("a100-sxm4-80gb", 0.5, "diagnosis of decode"),
    "memory.l2.capacity": ("a10", 2, "bf16"),
    "memory.registers.per_sm": ("mi250x", 2, "diagnosis"),
    "memory.sram.allocation_granularity": ("a10", 512, "fits"),
    "memory.sram.bandwidth_per_clock_per_sm": ("a10", 0.125, "bf16"),
    "memory.sram.per_block": ("a10", 0.5, "tile"),
    "memory.sram.per_sm": ("a10", 2, "fp32"),
    "memory.sram.reserved_per_block": ("l4", 2, "solution"),
    "memory.sram.unified_per_sm": ("a10", 2, "diagnosis"),
    "power.tdp": ("a10", 2, "energy"),
}
"""For each figure that is used: a device that has it, a factor, and a question whose answer that factor changes."""

RECORDS: dict[str, str] = {
    "compute.exp": "a device with a rate per clock and SM, or a measured one, has that in use",
    "compute.peak.bf16_vector": "elementwise work is bound by memory in every algorithm",
    "compute.peak.fp16_vector": "elementwise work is bound by memory in every algorithm",
    "compute.peak.fp16_fp16acc": "kernels accumulate in fp32",
    "compute.peak.fp8_fp16acc": "kernels accumulate in fp32",
    "compute.peak.fp32_matrix": "no workload has fp32 on matrix units but as tf32",
    "compute.peak.fp64": "no workload has fp64",
    "compute.peak.fp64_matrix": "no workload has fp64",
    "compute.peak.int4": "int4 weights are converted before they are multiplied",
    "interconnect.link_per_direction": "the sum over the links of a device is in use",
    "interconnect.link_per_direction_usable": "the sum over the links of a device is in use",
    "interconnect.pcie_per_direction": "a device with faster links has those in use",
    "interconnect.total": "both directions together, where per_direction is in use",
    "limits.threads_per_sm": "warps_per_sm is in use",
    "measured.attention_forward": "a rate of whole kernels, which times are held against",
    "measured.hbm_write": "in use where neither a triad nor a copy was measured",
    "measured.l1_bandwidth": "the time model has shared memory, and no L1",
    "measured.l1_latency": "latencies are part of the time of a step",
    "measured.l1_latency_clocks": "latencies are part of the time of a step",
    "measured.llc_latency": "latencies are part of the time of a step",
    "memory.cmem.capacity": "no algorithm places a tensor there",
    "memory.l2.read_per_clock": "the rate in bytes per second is in use",
    "memory.sram.bandwidth": "rates of one unit are in use",
    "memory.sram.per_block_static": "kernels allocate shared memory at launch",
    "memory.sram.read_bandwidth_per_sm": "rates per clock are in use",
    "memory.sram.total": "the memory of one unit is in use",
}
"""Figures that are on file and change none of the questions, with the reason."""


def answer(question: str, device: Hardware) -> object:
    try:
        return QUESTIONS[question](device)
    except IOModelError as error:
        return str(error)


def changed(device: Hardware, path: str, factor: float) -> Hardware:
    figure = device.quantities[path]
    assert isinstance(figure, Quantity)
    value = figure.value * factor
    return edited(device, {path: int(value) if isinstance(figure.value, int) else value})


def test_every_figure_on_file_is_used_or_a_record() -> None:
    """`carve_outs` is a list of sizes; the least that holds a block is looked up in it."""
    on_file = {path for name in list_hardware() for path in hardware(name).quantities}
    assert on_file - {"memory.sram.carve_outs"} == USED.keys() | RECORDS.keys()
    assert not USED.keys() & RECORDS.keys()


@pytest.mark.parametrize("path", USED)
def test_a_changed_figure_changes_an_answer(path: str) -> None:
    name, factor, question = USED[path]
    device = hardware(name)
    assert answer(question, changed(device, path, factor)) != answer(question, device)


@pytest.mark.parametrize("path", RECORDS)
def test_a_record_changes_no_answer(path: str) -> None:
    """One that does is in use, and belongs to the other list."""
    device = hardware(next(name for name in list_hardware() if path in hardware(name).quantities))
    for question in ("decode", "fits", "pair"):
        assert answer(question, changed(device, path, 0.5)) == answer(question, device)


def mappings(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Every mapping of a file, with its path."""
    if isinstance(data, dict):
        yield path, data
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from mappings(value, (*path, key))


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy plain data with one entry replaced."""
    if not path:
        return value
    copied = data.copy()
    copied[path[0]] = put(data[path[0]], path[1:], value)
    return copied


@pytest.mark.parametrize(("folder", "name"), [("hardware", "h100-sxm5"), ("hardware", "mi300x"), ("hardware", "tpu-v4"),
                                              ("models", "deepseek-v3"), ("models", "gpt-oss-20b")])  # fmt: skip
def test_a_wrong_name_or_value_of_any_field_is_refused(folder: str, name: str) -> None:
    """Each key of a file in turn is misspelt, and each number replaced by what is none."""
    read = {"hardware": lambda data: Hardware(**data), "models": iomodel.model}[folder]
    data = yaml.safe_load((specs_folder() / folder / f"{name}.yaml").read_text(encoding="utf-8"))
    assert read(data)
    for path, mapping in mappings(data):
        for key, value in mapping.items():
            if key == "schema" and folder == "models":
                continue  # without it the data are a config.json
            misspelt = {f"{key}_" if other == key else other: entry for other, entry in mapping.items()}
            with pytest.raises(IOModelError, match=f"{key}_"):
                read(put(data, path, misspelt))
            if isinstance(value, int | float) and not isinstance(value, bool):
                for wrong in ("many", [value], None if key == "value" else "1 x", float("nan"), -1):
                    with pytest.raises(IOModelError):
                        read(put(data, (*path, key), wrong))
