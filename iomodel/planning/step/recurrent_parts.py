"""Kernels of a recurrent layer with their times: its linear layers, the convolution, and the update of its states.

Under a delta rule the chunks of a prompt are computed in one of two ways. Kernels of flash-linear-attention
(github.com/fla-org/flash-linear-attention), which SGLang and TensorRT-LLM have, compute what chunks need of themselves
in all SMs, and hand the states from chunk to chunk in a kernel of its own. FlashInfer's, which newer releases of vLLM
have on Hopper and Blackwell, compute a head of a sequence on one SM, chunk after chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from iomodel.common.arithmetic import ceil_div
from iomodel.devices.rates import Rates, rates
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.recurrent import STATE_BYTES, GatedDeltaNet, KimiDelta, RecurrentLayer
from iomodel.planning.step.layout import recurrent_linears
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.planning.step.streamed import streamed
from iomodel.timing.span import Span
from iomodel.workloads.call import ELEMENT_SIZE

CONVOLVED = 2.4
"""Elements that an SM convolves in a clock [1/clk]: tests/measured/recurrent_layers.csv, H200 and B200, where DRAM does
not bound it. The other constants are read off working rows of this file too."""
REPLACED = {"sm_100": 0.85, "sm_103": 0.85}
"""Rate at which decoding reads states and writes others in their place, over the bandwidth of reads [-]: 128 and 512
requests. H100, L40S and RTX PRO 6000 reach that bandwidth."""
KERNELS = 8
"""Kernels of a delta rule in chunks: norms of Q and K, sums of gates, products of keys, inverses, W and U, states,
outputs."""
HANDED = 2600.0
"""Time to hand the states of a head to the next chunk, which takes the products of that chunk [clk]: prompts of 4,096
and 16,384 tokens with few heads."""
STATES_PER_SM = 1.5
"""Heads whose states an SM hands on at once, in two blocks of columns each [-]."""
PER_CLOCK = 400.0
"""Useful FLOPs of an SM in a clock in the kernels over chunks [FLOP/clk]: 32 prompts on H200, B200 and B300."""
CHANNEL_GATES = 1.8
"""Time of the kernels over chunks with a gate for each channel, over that with one for each head [-]."""
EXCHANGES = 4
"""Kernels over chunks among which their traffic is divided [-]."""
SCANNED = {"sm_90": 6000.0, "sm_100": 5100.0, "sm_103": 5000.0}
"""Time of a chunk of a head in one kernel of all chunks, which has an SM to itself [clk]."""
SCAN_KERNELS = 4
"""Kernels of a delta rule that one of them scans: norms of Q and K, gates, the scan."""


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
    if _is_convolved(recurrent):
        yield "convolution", "attention", _convolution(recurrent, at)
    yield "state update", "attention", _update(recurrent, at)
    yield at.single(layer, linears[-1])


def _convolution(recurrent: RecurrentLayer, at: StepSetting) -> Span:
    """Time the convolution of the inputs of the recurrence."""
    ranks, known = at.layout.tensor_parallel, rates(at.clock.device, at.dtype)
    elements = at.tokens * recurrent.widths.convolved // ranks
    kept = at.batch * recurrent.state.sized(0) // ranks
    tensors = {
        "inputs kept before": kept * (at.kv_len > at.q_len),
        "inputs kept": kept,
        "inputs": elements * ELEMENT_SIZE[at.dtype],
        "outputs": elements * ELEMENT_SIZE[at.dtype],
    }
    flops = at.batch * recurrent.convolution_flops(at.q_len) // ranks
    span = streamed(at, "convolution", tensors, flops, at.tokens, matrix=False)
    if (sms := _sms(known)) is None:
        return span
    return replace(span, seconds=max(span.seconds, at.clock.launch(known) + elements / (CONVOLVED * sms.clocks)))


def _update(recurrent: RecurrentLayer, at: StepSetting) -> Span:
    """Time the recurrence: the state, the inputs, the outputs."""
    if at.q_len == 1:
        return _decoded(recurrent, at)
    if isinstance(recurrent, GatedDeltaNet | KimiDelta):
        clocks = _scan_clocks(recurrent, at)
        return _scanned(recurrent, at, clocks) if clocks else _in_kernels(recurrent, at)
    chunks = recurrent.chunks(at.q_len)
    return _moved(recurrent, at, _states(recurrent, at, chunks) | _rows(recurrent, at), chunks, matrix=True)


def _decoded(recurrent: RecurrentLayer, at: StepSetting) -> Span:
    """Time one token of each sequence, whose states are replaced."""
    span = _moved(recurrent, at, _states(recurrent, at) | _rows(recurrent, at))
    launch = at.clock.launch(rates(at.clock.device, at.dtype))
    share = REPLACED.get(at.clock.device.architecture or "", 1.0)
    return replace(span, seconds=launch + (span.seconds - launch) / share)


def _scanned(rule: GatedDeltaNet | KimiDelta, at: StepSetting, clocks: float) -> Span:
    """Time the chunks of prompts under a delta rule in one kernel, which takes some clocks for each."""
    known, chunks = rates(at.clock.device, at.dtype), rule.chunks(at.q_len)
    span = _moved(rule, at, _states(rule, at) | _rows(rule, at), chunks)
    if (sms := _sms(known)) is None:
        return span
    waves = ceil_div(_heads(rule, at), sms.units)
    scan = max(span.seconds, waves * chunks * clocks / sms.clock)
    return replace(span, seconds=scan + SCAN_KERNELS * at.clock.launch(known))


def _in_kernels(rule: GatedDeltaNet | KimiDelta, at: StepSetting) -> Span:
    """Time the kernels over the chunks of prompts under a delta rule, and the states that they hand on."""
    known, ranks, chunks = rates(at.clock.device, at.dtype), at.layout.tensor_parallel, rule.chunks(at.q_len)
    moved = at.tokens * _handed(rule, ELEMENT_SIZE[at.dtype]) // ranks
    span = _moved(rule, at, _states(rule, at) | {"between kernels": moved}, chunks)
    if (sms := _sms(known)) is None:
        return span
    handed = chunks * HANDED / sms.clock * max(1.0, _heads(rule, at) / (STATES_PER_SM * sms.units))
    computed = at.batch * chunks * (rule.widths.chunk_flops or 0) / ranks / (PER_CLOCK * sms.clocks)
    if isinstance(rule, KimiDelta):
        computed *= CHANNEL_GATES
    apart = at.chunk_work * max(computed, _exchanged(moved, known))
    return replace(span, seconds=handed + apart + KERNELS * at.clock.launch(known))


def _states(recurrent: RecurrentLayer, at: StepSetting, chunks: int = 1) -> dict[str, int]:
    """Count the bytes of states, read and written for each of some chunks [B]."""
    state = STATE_BYTES * recurrent.widths.state if _is_convolved(recurrent) else recurrent.state.bytes
    each = at.batch * state // at.layout.tensor_parallel
    return {"state read": each * (chunks - 1 + (at.kv_len > at.q_len)), "state written": each * chunks}


def _rows(recurrent: RecurrentLayer, at: StepSetting) -> dict[str, int]:
    """Count the bytes that tokens hand to the recurrence and take from it [B]."""
    ranks, size, widths = at.layout.tensor_parallel, ELEMENT_SIZE[at.dtype], recurrent.widths
    return {
        "inputs": at.tokens * widths.inputs // ranks * size,
        "outputs": at.tokens * widths.outputs // ranks * size,
    }


def _moved(
    recurrent: RecurrentLayer, at: StepSetting, tensors: dict[str, int], chunks: int = 1, matrix: bool = False
) -> Span:
    """Time the traffic of an update, and its products if they are those of one kernel."""
    ranks = at.layout.tensor_parallel
    flops = recurrent.decode_flops() if at.q_len == 1 else recurrent.prefill_flops(at.q_len)
    flops -= recurrent.convolution_flops(at.q_len) if _is_convolved(recurrent) else 0
    return streamed(at, "state update", tensors, at.batch * flops // ranks, chunks * _heads(recurrent, at), matrix)


def _heads(recurrent: RecurrentLayer, at: StepSetting) -> int:
    """Count the heads, or groups of channels, of all sequences on a rank [-]."""
    return at.batch * max(1, recurrent.widths.blocks // at.layout.tensor_parallel)


def _is_convolved(recurrent: RecurrentLayer) -> bool:
    """Check that a kernel of its own convolves the inputs of a recurrence."""
    return recurrent.widths.state > 0 and recurrent.widths.convolved > 0


class _SMs(NamedTuple):
    """The SMs of a device [-], and their clock [Hz]."""

    units: int
    clock: float

    @property
    def clocks(self) -> float:
        """Clocks of all SMs in a second [clk/s]."""
        return self.units * self.clock


def _sms(known: Rates) -> _SMs | None:
    """Return the SMs of a device; None where they are not on file, or the device is simulated."""
    if known.units is None or known.clock is None or known.simulated:
        return None
    return _SMs(known.units, known.clock)


def _scan_clocks(recurrent: GatedDeltaNet | KimiDelta, at: StepSetting) -> float:
    """Return the time of a chunk in one kernel of all chunks [clk]; 0 where the engine has none."""
    architecture = at.clock.device.architecture or ""
    runs = isinstance(recurrent, GatedDeltaNet) and architecture in at.scans
    return SCANNED.get(architecture, 0.0) if runs else 0.0


def _exchanged(moved: float, known: Rates) -> float:
    """Time what kernels hand to each other [s]: through the L2 where what one of them reads and writes fits."""
    if known.l2 is None or known.l2_for_all is None:
        return moved / known.hbm
    kept = min(1.0, max(0.0, 2 - moved / EXCHANGES / known.l2_for_all))
    return moved * (kept / max(known.l2, known.hbm) + (1 - kept) / known.hbm)


def _handed(recurrent: GatedDeltaNet | KimiDelta, size: int) -> int:
    """Count what the kernels over chunks read and write for a token [B].

    K is read by its products, by those of W, by the states and the outputs, Q by the outputs; W, U and the values
    less the predicted ones are written and read, as are the states before each chunk. Products of keys are in fp32,
    their inverses in the type of the rows.
    """
    widths, chunk = recurrent.widths, recurrent.chunk
    keys, values = (widths.inputs - widths.outputs) // 2, widths.outputs
    scores = widths.blocks * chunk * (2 * STATE_BYTES + 2 * size)
    rows = 5 * keys + 2 * widths.state * widths.blocks // values + 6 * values
    return scores + size * (rows + 2 * widths.state // chunk)
