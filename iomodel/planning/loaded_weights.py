"""Weights as a serving engine loads them: the padding of experts in 4 bits to the tiles of their kernels.

Kernels for experts in mxfp4 pad the widths of an expert, so that 2,880 columns of gpt-oss become 3,072 or 2,944
(vLLM, vllm/model_executor/layers/quantization/mxfp4.py; SGLang, sglang/srt/layers/quantization/mxfp4.py):

- Marlin: rows between layers to a multiple of 256, the width of an expert to one of 128. gpt-oss-120b takes 65.97 GiB
  (vllm-project/vllm#23278).
- FlashInfer on Blackwell, and kernels on AMD: both to multiples of 256.
- Triton on Hopper: the numbers, without their scales, to blocks of 256 along the summed axis. gpt-oss-120b takes
  64.38 GiB, gpt-oss-20b 13.47 (llm-d/llm-d-benchmark, config_explorer/empirical-vllm-memory-results.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from iomodel.common.validation import as_choice
from iomodel.devices.device import Hardware
from iomodel.models.decoder_layer import DecoderLayer, Matrix
from iomodel.planning.engines import ASSUMED, Engine
from iomodel.planning.step.layout import Layout
from iomodel.workloads.dtypes import in_bytes


class Padding(NamedTuple):
    """Multiples to which experts are padded: rows between layers, the width of an expert, or the numbers of the summed
    axis without their scales [elements].
    """

    hidden: int = 1
    width: int = 1
    summed: int = 1


BACKENDS = {"marlin": Padding(256, 128), "triton": Padding(summed=256), "flashinfer": Padding(256, 256)}
"""Padding of experts in mxfp4 by the kernels that multiply them, as ``--moe-backend`` of vLLM names these."""
USUAL: dict[str, tuple[tuple[str, str], ...]] = {
    "vllm": (("sm_90", "triton"), ("sm_10", "flashinfer"), ("gfx", "flashinfer"), ("sm_", "marlin")),
    "sglang": (("sm_90", "triton"), ("sm_10", "flashinfer"), ("sm_", "marlin")),
}
"""Kernels of experts in mxfp4 by engine, and by the first letters of the architecture."""


def usual_backend(engine: Engine | None, device: Hardware) -> str | None:
    """Return the kernels for experts in mxfp4 of an engine, or of the assumed one; None where none is known.

    >>> from iomodel.devices.device import hardware
    >>> from iomodel.planning.engines import as_engine
    >>> [usual_backend(as_engine(name), hardware("h100-sxm5")) for name in ("vllm", "tensorrt-llm")]
    ['triton', None]
    """
    architecture, kernels = device.architecture or "", USUAL.get((engine or ASSUMED).name, ())
    return next((name for start, name in kernels if architecture.startswith(start)), None)


def as_backend(name: object) -> str | None:
    """Validate the kernels of experts; None stays None."""
    return None if name is None else as_choice("moe_backend", name, BACKENDS)


def padded_bytes(layers: Iterable[tuple[DecoderLayer, int]], hidden: int, layout: Layout, backend: str | None) -> int:
    """Compute the bytes that padding adds to the experts in mxfp4 of a rank [B].

    Parameters
    ----------
    layers : iterable of (DecoderLayer, int)
        Layers with experts in mxfp4, and how often each is on the rank.
    hidden : int
        Width of a row between layers [elements].
    layout : Layout
        Parallel layout of the replica.
    backend : str or None
        Kernels of the experts; None for no padding.

    Examples
    --------
    >>> from iomodel.models.registry import model
    >>> gpt = model("gpt-oss-120b")
    >>> round(padded_bytes(gpt.counted.items(), gpt.hidden_size, Layout(), "marlin") / 2**30, 2)
    5.13
    """
    if backend is None:
        return 0
    pad = BACKENDS[backend]
    return sum(
        times * layout.experts_of_rank(matrix.times) * _added(matrix, layout, pad)
        for layer, times in layers
        for matrix in layer.linears(hidden)
        if matrix.name.startswith("expert ")
    )


def _added(matrix: Matrix, layout: Layout, pad: Padding) -> int:
    """Compute the bytes that padding adds to one matrix of an expert on a rank [B]."""
    down = matrix.name == "expert down"
    width, row = (matrix.in_features, matrix.out_features) if down else (matrix.out_features, matrix.in_features)
    width = -(-width // layout.expert_width)
    both = _up(width, pad.width) * _up(row, pad.hidden) - width * row
    summed, other = (width, row) if down else (row, width)
    return in_bytes(both, "mxfp4") + in_bytes((_up(summed, pad.summed) - summed) * other, "int4")


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
