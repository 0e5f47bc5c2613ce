"""Performer (Choromanski et al. 2020, arXiv:2009.14794): FAVOR+, softmax attention by positive random features.

phi(x) = exp(W x' - |x'|^2 / 2) / sqrt(r) with x' = x / d^(1/4) and r random rows of W (section 2.3, Lemma 1),
orthogonal in each block of d (section 2.4); the order of products is that of section 2.2 (Algorithm 1, appendix B).
"""

from dataclasses import dataclass, field

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from . import kernelised

Inputs = dict[str, FloatArray]


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, features: int = 256, carry: bool = False) -> Inputs:
    """W [features, d], its rows as long as Gaussian ones; KV and z of the past of the sequence, if it has one."""
    d = Q.shape[-1]
    rng = np.random.default_rng(1)
    factors = [np.linalg.qr(rng.standard_normal((d, d))) for _ in range(0, features, d)]
    blocks = [q * np.sign(np.diagonal(r)) for q, r in factors]  # uniform only if the signs of r are all positive
    lengths = np.linalg.norm(rng.standard_normal((features, d)), axis=1)
    W: FloatArray = np.concatenate(blocks)[:features] * lengths[:, None]
    return {"W": W} | (kernelised.past(Q, V, features) if carry else {})


@dataclass
class Favor:
    """Positive random features, in a buffer of their own."""

    width: int
    w: FloatArray = field(default_factory=lambda: np.zeros(0))
    buffers: dict[str, FloatArray] = field(default_factory=dict)

    def keep(self, machine: Machine) -> None:
        """Load the whole of W."""
        self.w = machine.sram.alloc("W", machine.hbm.arrays["W"].shape)
        self.w[:] = machine.hbm.load("W", slice(None))

    def reserve(self, machine: Machine, name: str, block: int) -> None:
        """The features of a tile."""
        self.buffers[name] = machine.sram.alloc(f"F_{name}", (block, self.width), "fp32")

    def apply(self, machine: Machine, name: str, x: FloatArray) -> FloatArray:
        """One product and one exponential for each feature; the norm of a row is a scalar."""
        f = self.buffers[name][: len(x)]
        x = x / x.shape[1] ** 0.25
        f[:] = machine.matmul(x, self.w.T)
        f[:] = machine.exp(f - (x**2).sum(axis=1)[:, None] / 2) / np.sqrt(self.width)
        return f


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_q: int,
    block_sum: int | None = None,
    features: int = 256,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> Run:
    """Without a mask the keys are summed up first; with a causal one in chunks of `block_q` positions."""
    given = inputs or weights(Q, K, V, features=features, carry=carry)
    machine = Machine(Q, K, V, capacity, W=given["W"])
    phi = Favor(features)
    if right is None:
        if block_sum is None:
            raise ValueError("without a mask the keys are summed up in tiles of block_sum")
        kernelised.full(machine, phi, block_q, block_sum)
    elif right == 0:
        if carry:
            kernelised.place_past(machine, given)
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
    features: int = 256,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> FloatArray:
    """Each query's mean of the values, weighted by the mean over w of exp(w (q' + k') - |q'|^2 / 2 - |k'|^2 / 2)."""
    given = inputs or weights(Q, K, V, features=features, carry=carry)
    W, group = given["W"], Q.shape[1] // K.shape[1]
    V = np.repeat(V, group, axis=1)
    q, k = (x / np.sqrt(np.sqrt(Q.shape[-1])) for x in (Q, np.repeat(K, group, axis=1)))
    square_q, square_k = (np.square(x).sum(axis=-1) / 2 for x in (q, k))
    total = np.einsum("rd,bhqkd->bhqkr", W, q[:, :, :, None] + k[:, :, None])
    kernel = np.exp(total - square_q[:, :, :, None, None] - square_k[:, :, None, :, None]).mean(axis=-1)
    if right is not None:
        kernel = np.where(np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None] + right, kernel, 0.0)
    numerator, denominator = kernel @ V, kernel.sum(axis=-1)
    if carry and right is not None:
        phi = np.exp(np.einsum("rd,bhqd->bhqr", W, q) - square_q[..., None]) / np.sqrt(len(W))
        numerator += phi @ given["KV"]
        denominator += np.einsum("bhqr,bhr->bhq", phi, given["z"])
    result: FloatArray = numerator / denominator[..., None]
    return result
