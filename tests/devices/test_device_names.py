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
}
"""Names that nvidia-smi, rocm-smi and torch.cuda.get_device_name print, with ours."""


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
        "h100-80gb": "'h100-80gb' is ambiguous: h100-pcie, h100-sxm5;",
        "NVIDIA H100 120GB HBM4": "did you mean 'h100-nvl', 'h100-pcie' or 'h100-sxm5'?",
        "NVIDIA A100-PCIE-40GB": "did you mean 'a100-pcie-80gb', 'a100-sxm4-40gb' or 'a100-sxm4-80gb'?",
    }.items(),
)
def test_a_name_of_none_hints_at_those_of_its_number(name, hint):
    with pytest.raises(iomodel.UnknownNameError) as caught:
        iomodel.hardware(name)
    assert hint in str(caught.value)
