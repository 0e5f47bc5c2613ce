"""Count published Triton kernels, unmodified, as their own wrappers launch them; write one row for each launch.

    pip install torch triton==3.9.0
    python benchmarks/triton_counts.py SOURCES tests/measured/triton/counts.jsonl

SOURCES is a folder with `triton-cpu`, `fla`, `liger`, `lightllm`, `sglang` and `vllm`, each a checkout of the commit or
an unpacked wheel of the version that the file of the cases names. FlexAttention's templates are those of the installed
PyTorch. The cases of attention are in `triton_count_cases.py`; `--cases triton_count_fused` counts those of other
layers, for `tests/measured/triton/fused_counts.jsonl`. The kernels run on the CPU in Triton's interpreter, on tensors
of a few hundred rows; none of their code is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch
import triton

from iomodel.triton import KernelCount, TensorCount, launches


def stored(launched: KernelCount) -> dict[str, Any]:
    """Return what a count is made from; the rest follows when it is read."""
    data = {name: value for name, value in launched.to_dict().items() if name not in launched.derived}
    tensors = {
        name: {key: value for key, value in tensor.items() if value and key not in TensorCount.derived}
        for name, tensor in data["tensors"].items()
    }
    return {**data, "tensors": tensors}


class Stub(ModuleType):
    """A module of a serving engine that a kernel's file imports and a count does not need."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=f"{self.__name__}.{name}")


def stub(*names: str, **values: Any) -> None:
    """Put stubs in place of modules."""
    for name in names:
        sys.modules[name] = module = Stub(name)
        module.__path__ = []  # type: ignore[attr-defined]
        vars(module).update(values)


def without_a_gpu() -> None:
    """Answer the questions that wrappers ask about the GPU as an H100 would."""
    target = MagicMock(backend="cuda", arch=90, warp_size=32)
    driver = MagicMock()
    driver.get_active_torch_device.return_value = torch.device("cpu")
    driver.get_current_target.return_value = target
    driver.get_current_device.return_value = 0
    driver.utils.get_device_properties.return_value = {"max_shared_mem": 232_448, "multiprocessor_count": 132}
    triton.runtime.driver.set_active(driver)
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_name = lambda *_: "NVIDIA H100"
    torch.cuda.current_device = lambda: 0
    torch.version.hip = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("--only", default="", help="cases whose name begins with this")
    parser.add_argument("--cases", default="triton_count_cases", help="module beside this one with the cases")
    given = parser.parse_args()
    without_a_gpu()
    torch.manual_seed(0)
    import triton_count_cases

    import_module(given.cases)
    rows = []
    for case in triton_count_cases.CASES:
        if case.run.__module__ != given.cases or not case.name.startswith(given.only):
            continue
        with launches() as counts, torch.no_grad() if not case.backward else torch.enable_grad():
            case.run(given.sources.resolve())
        for launched in counts:
            row = {"case": case.name, "source": case.source, "version": case.version, "file": case.file}
            rows.append({**row, "call": case.call, "triton": triton.__version__, "count": stored(launched)})
            print(f"{case.name}: {launched.kernel} {launched.grid} {dict(launched.reads)} {dict(launched.writes)}")
    given.record.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
