"""Names of devices as drivers, shops and people write them."""

import pytest

import iomodel

REPORTED = {
    "NVIDIA H100 80GB HBM3": "h100-sxm5",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 NVL": "h100-nvl",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA GH200 480GB": "gh200-96gb",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA GeForce RTX 4090": "rtx4090",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA L40S": "l40s",
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "Quadro RTX 6000": "quadro-rtx-6000",
    "AMD Radeon RX 7900 XTX": "rx-7900-xtx",
    "AMD Radeon AI PRO R9700": "radeon-ai-pro-r9700",
    "AMD Instinct MI300X": "mi300x",
    "AMD Instinct MI300X VF": "mi300x",
    "AMD Instinct MI325X OAM": "mi325x",
    "Intel(R) Arc(TM) Pro B60 Graphics": "arc-pro-b60",
    "NVIDIA H20-3e": "h20-141gb",
    "DGX Spark": "gb10",
    "Jetson AGX Orin 64GB": "jetson-agx-orin",
    "AMD Radeon 8060S": "strix-halo",
    "AMD Radeon 8060S Graphics": "strix-halo",
    "M4 Max": "apple-m4-max",
    "Apple M2 Ultra": "apple-m2-ultra",
    "Arc B60": "arc-pro-b60",
    "Intel Arc B60 24GB": "arc-pro-b60",
    "AI PRO R9700": "radeon-ai-pro-r9700",
}
"""Names that nvidia-smi, rocm-smi and torch.cuda.get_device_name print, or threads have, with ours."""


def test_a_slice_of_a_device_is_not_the_device():
    with pytest.raises(iomodel.errors.UnknownNameError, match=r"MIG 1g\.10gb"):
        iomodel.hardware("NVIDIA A100-SXM4-80GB MIG 1g.10gb")


MACS = {
    "M1 16GB": (16, 11_453),
    "apple-m2-max 32GB": (32, 22_906),
    "M3 Pro 36 GB": (36, 28_991),
    "Apple M4 Max 64GB": (64, 51_540),
    "m4-max-128gb": (128, 103_079),
}
"""Names with the memory of the machine [GiB], and recommendedMaxWorkingSetSize in public logs of llama.cpp [MB]."""


@pytest.mark.parametrize("name", MACS)
def test_a_mac_has_the_memory_behind_its_name_and_its_gpu_a_share(name):
    device = iomodel.hardware(name)
    assert device.id is None
    memory = device.memory.hbm
    assert (memory.capacity.value, round(memory.capacity_reported.value / 1e6)) == (MACS[name][0] << 30, MACS[name][1])
    planned = iomodel.planning.memory_plan("llama-3.2-1b", name, prompt=1024, output=128)
    assert type(planned).from_json(planned.to_json()) == planned


def test_a_plan_for_a_mac_asks_for_its_memory():
    with pytest.raises(iomodel.errors.SpecError, match=r"apple-m4-max lacks it; .* as 'apple-m4-max 64GB'"):
        iomodel.planning.memory_plan("llama-3.2-1b", "apple-m4-max", prompt=1024, output=128)


@pytest.mark.parametrize("name", REPORTED)
def test_the_name_that_a_driver_prints_is_a_name(name):
    assert iomodel.hardware(name).id == REPORTED[name]


@pytest.mark.parametrize("name", [name for name in iomodel.list_hardware() if not name.startswith("sim-")])
def test_the_words_of_a_name_stand_in_any_order(name):
    backwards = " ".join(reversed(name.split("-"))).upper()
    assert iomodel.hardware(backwards).id == name


@pytest.mark.parametrize(
    ("name", "hint"),
    {
        "4090": "did you mean 'rtx4090'?",
        "7900": "did you mean 'rx-7900-xtx'?",
        "a100-80g": "did you mean 'a100-pcie-80gb', 'a100-sxm4-40gb' or 'a100-sxm4-80gb'?",
        "v100-pcie": "'v100-pcie' is ambiguous: v100-pcie-16gb, v100-pcie-32gb;",
        "NVIDIA H100 120GB HBM4": "did you mean 'h100-nvl', 'h100-pcie' or 'h100-sxm5'?",
        "NVIDIA A100-PCIE-40GB": "did you mean 'a100-pcie-80gb', 'a100-sxm4-40gb' or 'a100-sxm4-80gb'?",
    }.items(),
)
def test_a_name_of_none_hints_at_those_of_its_number(name, hint):
    with pytest.raises(iomodel.UnknownNameError) as caught:
        iomodel.hardware(name)
    assert hint in str(caught.value)
