"""Time of the host before the first token of a request under an engine: approximate.

A prefill runs outside CUDA graphs, so that the host launches each kernel; a server receives, tokenises and schedules
the request. Decode steps run as graphs, and the host prepares the next one meanwhile.
"""

from __future__ import annotations

from iomodel.planning.step.result import StepTime

LAUNCH = 15e-6
"""Host time per kernel of a prefill [s]: Llama 2 7B on an A100 under TensorRT-LLM with 128 tokens, a calibration row of
tests/measured/serving.csv."""
EAGER = 3.5e-5
"""The same under an eager framework [s]: that of the kernels of FlashAttention called through PyTorch, from short rows
of arXiv:2205.14135, as for `Parameters.host_launch`."""
REQUEST = 15e-3
"""Time of a request in the server [s]: time to the first token of Llama 3.1 70B on H200 and B200, calibration rows."""


def prefill_host(prefill: StepTime, launch: float = LAUNCH) -> float:
    """Compute the host time of a prefill [s]."""
    return launch * sum(part.times for part in prefill.parts)


def server_host(prefill: StepTime) -> float:
    """Compute the host time of a request before its first token, in a server and an eager framework [s]."""
    return REQUEST + prefill_host(prefill, EAGER)
