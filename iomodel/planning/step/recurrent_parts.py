"""Kernels of a recurrent layer on one rank: projections, and the recurrence with its state.

The recurrence is timed as one kernel that reads its inputs and writes its outputs once. A decode step reads and writes
the state. A prefill computes chunks in parallel and writes and reads the state of each; layers without chunks keep the
state on chip and write it once. FLOPs are those of :mod:`iomodel.models.recurrent`.
"""

from __future__ import annotations

from collections.abc import Iterator

from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.recurrent import RecurrentLayer
from iomodel.planning.step.layout import recurrent_linears
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.planning.step.streamed import streamed
from iomodel.timing.span import Span
from iomodel.workloads.call import ELEMENT_SIZE


def recurrent_parts(layer: DecoderLayer, recurrent: RecurrentLayer, at: StepSetting) -> Iterator[Part]:
    """List the kernels of a recurrent layer in order."""
    linears = recurrent_linears(recurrent, at.hidden, at.layout)
    first = [linear for linear in linears if linear.in_features == at.hidden and linear.name != "state out"]
    by_type: dict[str, int] = {}
    for linear in first:
        dtype = at.type_of(layer, linear.name)
        by_type[dtype] = by_type.get(dtype, 0) + linear.out_features
    for dtype, outputs in by_type.items():
        yield at.product("state in", at.linear(at.tokens, at.hidden, outputs, weight_dtype=dtype))
    for linear in linears:
        if linear not in first and linear.name != "state out":
            yield at.single(layer, linear)
    yield "state update", "attention", _update(recurrent, at)
    yield at.single(layer, linears[-1])


def _update(recurrent: RecurrentLayer, at: StepSetting) -> Span:
    """Time the recurrence: the state, the inputs, the outputs."""
    ranks = at.layout.tensor_parallel
    state = at.batch * recurrent.state.bytes // ranks
    size = ELEMENT_SIZE[at.dtype]
    decoding = at.q_len == 1
    flops = recurrent.decode_flops() if decoding else recurrent.prefill_flops(at.q_len)
    chunks = 1 if decoding else recurrent.chunks(at.q_len)
    tensors = {
        "state read": state * (chunks - 1 + (at.kv_len > at.q_len)),
        "state written": state * chunks,
        "inputs": at.tokens * recurrent.widths.inputs // ranks * size,
        "outputs": at.tokens * recurrent.widths.outputs // ranks * size,
    }
    blocks = at.batch * chunks * max(1, recurrent.widths.blocks // ranks)
    return streamed(at, "state update", tensors, at.batch * flops // ranks, blocks, matrix=not decoding)
