"""Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2), with phi(x) = elu(x) + 1 (eq. 7)."""

from dataclasses import dataclass

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from . import kernelised

Inputs = dict[str, FloatArray]


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, carry: bool = False) -> Inputs:
    """KV and z that the past of the sequence left, if it has one."""
    return kernelised.past(Q, V, Q.shape[-1]) if carry else {}


@dataclass(frozen=True)
class Elu:
    """elu(x) + 1: the features of a tile overwrite it."""

    width: int

    def keep(self, machine: Machine) -> None:
        """Nothing but x is needed."""

    def reserve(self, machine: Machine, name: str, block: int) -> None:
        """Nor is a buffer."""

    def apply(self, machine: Machine, name: str, x: FloatArray) -> FloatArray:
        """exp(x) below 0, x + 1 above; the exponential is evaluated for all elements."""
        below = machine.exp(np.minimum(x, 0.0))
        x[:] = np.where(x > 0, x + 1, below)
        return x


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_q: int,
    block_sum: int | None = None,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> Run:
    """Without a mask eq. 6, with a causal one eq. 9 to 12 in chunks of `block_q` positions."""
    machine = Machine(Q, K, V, capacity)
    phi = Elu(Q.shape[-1])
    if right is None:
        if block_sum is None:
            raise ValueError("without a mask the keys are summed up in tiles of block_sum")
        kernelised.full(machine, phi, block_q, block_sum)
    elif right == 0:
        if carry:
            kernelised.place_past(machine, inputs or weights(Q, K, V, carry=True))
        kernelised.causal(machine, phi, block_q, carry)
    else:
        raise ValueError("full or causal")
    arrays = machine.hbm.arrays
    return machine.result(O=arrays["O"], KV=arrays.get("KV"), z=arrays.get("z"))


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> FloatArray:
    """Eq. 3 and 8: each query's weighted mean of the values, the past being one more term of both sums."""
    group = Q.shape[1] // K.shape[1]
    K, V = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)
    phi_q, phi_k = (np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))) + 1 for x in (Q, K))
    similarity = np.einsum("bhqd,bhkd->bhqk", phi_q, phi_k)
    if right is not None:
        q_len, kv_len = similarity.shape[-2:]
        similarity = np.where(np.arange(kv_len) <= np.arange(q_len)[:, None] + right, similarity, 0.0)
    numerator, denominator = similarity @ V, similarity.sum(axis=-1)
    if carry and right is not None:
        left = inputs or weights(Q, K, V, carry=True)
        numerator += phi_q @ left["KV"]
        denominator += np.einsum("bhqd,bhd->bhq", phi_q, left["z"])
    result: FloatArray = numerator / denominator[..., None]
    return result
