"""The shipped figures: they agree with each other, and every one names its source."""

import io
import json
from pathlib import Path

import pytest
import yaml

from iomodel.devices.device import Hardware, _shipped, hardware, list_hardware
from iomodel.devices.overview import overview
from iomodel.devices.quantity import Quantity, SizeList
from iomodel.devices.sources import sources
from tests.support.inside import as_text, parse

SPECS = Path(__file__).parents[2] / "specs"
FILES = sorted([*SPECS.glob("hardware/*.yaml"), *SPECS.glob("architectures/*.yaml")])
DEVICES = {name: hardware(name) for name in list_hardware()}

SIMULATED = {"sim-v100", "sim-a100", "sim-h100"}

# Peak over the dense fp16 matrix rate.
MATRIX = {
    "tf32": 0.5,
    "fp16": 1,
    "bf16": 1,
    "fp16_fp16acc": 2,
    "fp8": 2,
    "fp8_fp16acc": 4,
    "mxfp8": 4,
    "int8": 2,
    "int4": 4,
    "fp4": 4,
}
# FLOPs of one SM or CU in one clock, off the fp16 matrix path: cores x 2 of the vendors' documents.
VECTOR = {
    "sm_70": {"fp64": 64, "fp32": 128, "fp16_vector": 256},
    "sm_75": {"fp64": 4, "fp32": 128},
    "sm_80": {"fp64": 64, "fp64_matrix": 128, "fp32": 128, "fp16_vector": 512, "bf16_vector": 256},
    "sm_86": {"fp64": 4, "fp32": 256},
    "sm_87": {"fp32": 256},
    "sm_89": {"fp64": 4, "fp32": 256},
    "sm_90": {"fp64": 128, "fp64_matrix": 256, "fp32": 256, "fp16_vector": 512},
    "sm_100": {"fp64": 128, "fp32": 256},
    "sm_120": {"fp64": 4, "fp32": 256},
    "gfx90a": {"fp64": 128, "fp64_matrix": 256, "fp32": 128, "fp32_matrix": 256},
    "gfx942": {"fp64": 128, "fp64_matrix": 256, "fp32": 256},
    "gfx950": {"fp64": 128, "fp32": 256},
}
EXCEPTIONS = {
    ("a10", "fp64"): "TechPowerUp counts 1/32 of fp32, every other GA10x runs at 1/64",
    ("h800-sxm5", "fp64"): "capped by export rules",
    ("h20", "fp64"): "capped by export rules",
    ("h20", "fp32"): "the press pages print more than 78 SMs have at the clock of an H100",
    ("l40s", "fp16"): "the product page prints twice the peak of the slower L40",
    ("l40s", "bf16"): "the product page prints twice the peak of the slower L40",
}
# h200-sxm: no published clock; the others: no published rate of one SM or core.
NO_CLOCK_OR_RATE = {"h200-sxm", "gb200", "b300", "gb300", "gaudi2", "gaudi3", "trainium2", "trainium3"}
NO_CLOCK_OR_RATE |= {"apple-m1", "apple-m1-pro", "apple-m1-max", "apple-m1-ultra"}
NO_CLOCK_OR_RATE |= {"h20-141gb", "p40", "arc-pro-b60", "ascend-910b"}
NO_CLOCK_OR_RATE |= {"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x"}


def test_tensor_cores_with_bf16_have_tf32():
    """Tensor cores that multiply bf16 multiply TF32 too; a device without the peak would time it at that of fp32."""
    lacking = [
        name
        for name, device in DEVICES.items()
        if (device.architecture or "").startswith("sm_") and device.compute.peak.bf16 and not device.compute.peak.tf32
    ]
    assert not lacking


def computed(device: Hardware) -> dict[str, float]:
    """Peaks from SMs x FLOP/clk x clock, as far as the device gives all three; at the type's own rate if it has one."""
    compute = device.compute
    if not (compute.units and compute.clock.boost and compute.fp16_per_clock_per_sm):
        return {}
    tensor = (compute.clock.tensor or compute.clock.boost).value
    matrix = compute.units.value * compute.fp16_per_clock_per_sm.value * tensor
    vector = compute.units.value * compute.clock.boost.value
    own_matrix = {"int8": compute.int8_per_clock_per_sm, "fp4": compute.fp4_per_clock_per_sm}
    own_rates = {key: tensor * compute.units.value * rate.value for key, rate in own_matrix.items() if rate is not None}
    per_clock = compute.fp32_per_clock_per_sm
    own = {} if per_clock is None else {"fp32": 2 * per_clock.value}
    rates = VECTOR.get(device.architecture or "", own)
    return {**{k: f * matrix for k, f in MATRIX.items()}, **own_rates, **{k: f * vector for k, f in rates.items()}}


def peaks(device: Hardware) -> dict[str, float]:
    found = ((key, getattr(device.compute.peak, key)) for key in type(device.compute.peak).model_fields)
    return {key: peak.value for key, peak in found if peak is not None}


def values(device: Hardware, *paths: str) -> list[float] | None:
    """The figures at the paths, or None where the device lacks one."""
    found = [device.quantities.get(path) for path in paths]
    return [q.value for q in found if isinstance(q, Quantity)] if all(found) else None


def test_peaks_follow_from_units_rate_and_clock():
    wrong, uncovered = set(), set()
    for name, device in DEVICES.items():
        expected = computed(device)
        if peaks(device) and not expected:
            uncovered.add(name)
        for key, peak in peaks(device).items():
            if expected and abs(peak / expected[key] - 1) > 0.0101:
                wrong.add((name, key))
    assert wrong == set(EXCEPTIONS), "unexplained, or listed without need"
    assert uncovered == NO_CLOCK_OR_RATE


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("memory.sram.per_block", "memory.sram.per_sm"),
        ("memory.sram.per_block_static", "memory.sram.per_block"),
        ("memory.sram.per_sm", "memory.sram.unified_per_sm"),
        ("memory.sram.per_block", "memory.sram.total"),
        ("memory.sram.per_block", "memory.l2.capacity"),
        ("memory.hbm.capacity_reported", "memory.hbm.capacity"),
        ("limits.threads_per_block", "limits.threads_per_sm"),
        ("measured.hbm_read", "memory.hbm.bandwidth"),
        ("measured.hbm_write", "memory.hbm.bandwidth"),
        ("measured.hbm_triad", "memory.hbm.bandwidth"),
        ("measured.hbm_copy", "memory.hbm.bandwidth"),
        ("measured.l2_bandwidth", "memory.l2.bandwidth"),
        ("measured.l2_bandwidth", "measured.l1_bandwidth"),
        ("measured.l1_latency", "measured.l2_latency"),
        ("measured.graph_node", "measured.kernel_launch"),
        ("measured.gemm_bf16", "compute.peak.bf16"),
        ("measured.attention_forward", "compute.peak.bf16"),
        ("compute.peak.fp64", "compute.peak.fp32"),
        ("compute.peak.bf16", "compute.peak.fp8"),
        ("interconnect.link_per_direction_usable", "interconnect.link_per_direction"),
    ],
)
def test_order(small, large):
    pairs = {name: pair for name, device in DEVICES.items() if (pair := values(device, small, large))}
    assert pairs
    assert {name: pair for name, pair in pairs.items() if pair[0] > pair[1]} == {}


@pytest.mark.parametrize("name", DEVICES)
def test_identities(name):
    device = DEVICES[name]
    if found := values(device, "limits.warps_per_sm", "limits.warp_size", "limits.threads_per_sm"):
        assert found[0] * found[1] == found[2]
    if found := values(device, "memory.sram.per_block", "memory.sram.reserved_per_block", "memory.sram.per_sm"):
        assert found[0] + found[1] == found[2]
        carve_outs = device.memory.sram.carve_outs
        assert (carve_outs is None) == (device.vendor == "AMD")  # whose LDS is no part of a cache
        assert carve_outs is None or max(carve_outs.values) == found[2]
    if found := values(device, "limits.registers_per_sm", "memory.registers.per_sm"):
        assert 4 * found[0] == found[1]
    if found := values(device, "interconnect.per_direction", "interconnect.total"):
        assert 2 * found[0] == found[1]
    if found := values(device, "memory.sram.total", "memory.sram.per_block", "compute.units"):
        assert found[0] == found[1] * found[2]
    found = peaks(device)
    assert found.get("fp16", found.get("bf16")) == found.get("bf16", found.get("fp16"))
    for key in {"bf16", "fp16", "fp32"} & found.keys():
        assert 1 < found[key] / device.memory.hbm.bandwidth.value < 1000, "ridge point [FLOP/B]"
    assert device.tile_alignment == 16
    assert device.sram_per_block > 0


def test_the_contract():
    gpu = hardware("h100-sxm5")
    assert sum(not device.simulated for device in DEVICES.values()) == 103
    assert {name for name, device in DEVICES.items() if device.simulated} == SIMULATED
    assert gpu.sram_per_block == 232448
    assert gpu.memory.hbm.bandwidth.value == 3.352e12
    assert gpu.compute.peak.bf16.value == 989.4e12
    assert (gpu.id, gpu.architecture, gpu.compute_capability) == ("h100-sxm5", "sm_90", "9.0")
    assert gpu is hardware("h100-sxm5")


def test_every_source_exists_and_is_used():
    used = set()
    for device in DEVICES.values():
        for quantity in device.quantities.values():
            used |= {
                *quantity.source,
                *(key for other in getattr(quantity, "alternatives", ()) for key in other.source),
            }
    assert used == set(sources())


@pytest.mark.parametrize("unit", ["", "Hz"])
def test_only_bytes_are_printed_in_kib(unit):
    sizes = (1024, 4096)
    assert str(SizeList(values=sizes, unit=unit)).split() == [*", ".join(map(str, sizes)).split(), *unit.split()]
    assert str(SizeList(values=sizes, unit="B")).endswith("KiB")


def test_unverified_are_those_from_memory_only():
    assert [key for key, source in sources().items() if source.kind == "from-memory"] == ["from-memory"]
    device = hardware("rtx5090")
    assert device.unverified == [
        "memory.sram.unified_per_sm",
        "compute.exp_per_clock_per_sm",
        "interconnect.total",
    ]
    for text in (repr(device), str(device), device._repr_html_()):
        assert "unverified" in text
    assert hardware("h100-sxm5").unverified == ["compute.mma.warp_fp16_per_clock_per_sm"]
    assert hardware("a100-sxm4-80gb").unverified == []


def test_simulated_figures_are_marked_and_never_mixed_with_real_ones():
    assert [key for key, source in sources().items() if source.kind == "simulated"] == ["simulated"]
    for name, device in DEVICES.items():
        used = {quantity.source for quantity in device.quantities.values()}
        assert (("simulated",) in used) == (used == {("simulated",)}) == (name in SIMULATED), name
        assert device.name.startswith("Simulated ") == (name in SIMULATED)
        assert any(note.startswith("Simulated: ") for note in device.notes) == (name in SIMULATED)
    assert "103 devices, and 3 simulated" in as_text(overview())


def test_the_simulated_devices():
    """On-chip memory [KiB] and FLOPs for each 2 B that HBM gives; a clock moves one such element."""
    figures = {}
    for name in SIMULATED:
        compute, memory = DEVICES[name].compute, DEVICES[name].memory
        assert memory.hbm.bandwidth.value == 2 * compute.clock.boost.value
        ratio = 2 * compute.peak.bf16.value / memory.hbm.bandwidth.value
        assert ratio == compute.fp16_per_clock_per_sm.value * compute.units.value
        figures[name] = memory.sram.per_block.value // 1024, ratio
    assert figures == {"sim-v100": (128, 70), "sim-a100": (256, 150), "sim-h100": (384, 300)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_are_in_base_units_and_plain_yaml(path):
    text = path.read_text(encoding="utf-8")
    data = parse(text.encode(), path.name)
    assert data == yaml.safe_load(text), "a YAML 1.1 reader must see the same"
    names = {"", "B", "B/s", "B/clk", "FLOP/s", "FLOP/clk", "OP/s", "OP/clk", "Hz", "W", "s", "clk"}

    def walk(item):
        if not isinstance(item, dict):
            return
        if {"value", "values"} & item.keys():
            assert item.get("unit", "") in names
            assert isinstance(item.get("value", item.get("values")), int | float | list)
            assert "source" in item
        for value in item.values():
            walk(value)

    walk(data)


def test_every_architecture_is_used():
    known = {device.architecture for device in DEVICES.values()} - {None}
    assert known == {p.stem for p in SPECS.glob("architectures/*.yaml")}


def test_the_json_schema_is_current():
    kept = json.loads((SPECS / "hardware.schema.json").read_text(encoding="utf-8"))
    assert kept == Hardware.file_schema(), "write Hardware.file_schema() to specs/hardware.schema.json"


def test_the_json_schema_accepts_every_file():
    check = pytest.importorskip("jsonschema").Draft202012Validator(Hardware.file_schema())
    for path in FILES:
        check.validate(parse(path.read_bytes(), path.name))


def test_tables():
    from rich.console import Console

    gpu = hardware("h100-pcie")
    text = str(gpu)
    assert "  memory.sram.per_block " in text
    assert "227 KiB" in text
    assert "2 TB/s" in text
    assert "756 TFLOP/s" in text
    assert max(map(len, text.splitlines())) <= 120
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(gpu)
    assert "nvidia-h100-pcie-brief; 2.039 TB/s in nvidia-h100-whitepaper" in console.export_text()
    assert gpu._repr_html_().startswith("<table>")
    json.dumps(gpu.to_dict())


def test_an_install_has_the_specs_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "iomodel"
    package.mkdir()
    (package / "_specs").symlink_to(SPECS)
    monkeypatch.setattr("iomodel.common.yaml_files.PACKAGE", package)
    _shipped.cache_clear()
    assert list_hardware() == list(DEVICES)
    assert hardware("t4") == DEVICES["t4"]


INSTINCT_LINKS = [
    ("mi250x", 8, 50e9),
    ("mi300x", 7, 64e9),
    ("mi325x", 7, 64e9),
    ("mi350x", 7, 76.8e9),
    ("mi355x", 7, 76.8e9),
]


@pytest.mark.parametrize(("name", "links", "each"), INSTINCT_LINKS)
def test_links_of_instinct_modules(name, links, each):
    """One direction of every link of a module, and both of all."""
    joined = hardware(name).interconnect
    assert joined.per_direction.value == pytest.approx(links * each)
    assert joined.total.value == pytest.approx(2 * links * each)


ECC = {"l4": 24, "a10": 24, "a10g": 24, "a40": 48, "l40": 48, "l40s": 48, "l20": 48, "t4": 16, "p40": 24}
"""Cards with GDDR memory whose error correction is on by default, with their capacities [GiB]."""


@pytest.mark.parametrize("name", ECC)
def test_error_correction_takes_a_sixteenth_of_gddr(name):
    """A driver reports at most fifteen sixteenths, and at least 98 % of that."""
    reported = hardware(name).memory.hbm.capacity_reported
    assert reported is not None
    assert 0.975 < reported.value / (ECC[name] * 2**30 * 15 / 16) <= 1.0


def test_requests_on_a_card_with_error_correction():
    """Qwen2.5 7B on one L4, which lists 23,034 MiB: 19 requests of 4,096 tokens, and not 25."""
    from iomodel import plan

    assert plan("qwen2.5-7b", "l4", engine="vllm", prompt=3840, output=256, tp=1).memory.fits == 19
