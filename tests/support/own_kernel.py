"""A kernel of exact attention with both passes and a layout on a GPU, as a user declares it."""

from iomodel.algorithms import algorithm
from iomodel.kernels import Implementation
from iomodel.nests import (
    Algorithm,
    B_c,
    B_r,
    Exp,
    Hold,
    K,
    Kernel,
    Load,
    Loop,
    MatMul,
    O,
    Q,
    S,
    Store,
    V,
    depth,
    key,
    query,
    value,
)
from iomodel.nests.residency import Fragment, Residency, Shared
from iomodel.nests.symbols import stages
from iomodel.nests.tensors import LSE, l, m


def declare():
    """Declare the forward pass."""
    yield Kernel(
        "own kernel",
        [
            Loop(
                query,
                B_r,
                [
                    Load(Q),
                    Hold(O, "fp32"),
                    Hold(l),
                    Hold(m),
                    Loop(
                        key,
                        B_c,
                        [
                            Load(K),
                            Hold(S, "fp32"),
                            MatMul(query, key, depth),
                            Exp(query, key),
                            Load(V),
                            MatMul(query, value, key),
                        ],
                        masked=True,
                    ),
                    Store(O),
                    Store(LSE, held=m),
                ],
            )
        ],
    )


FORWARD = Residency(
    title="own kernel: Q, K, V in shared memory, S and O in registers",
    cite="a test",
    shared=(Shared(Q), Shared(K, stages), Shared(V, stages)),
    phases=((Fragment(S), Fragment(O)),),
    overhead=32,
)
OWN_KERNEL = Algorithm(
    name="own_kernel",
    title="Kernel of a user",
    cite="a test",
    declare=declare,
    backward=algorithm("flash2").backward,
    options={"deterministic": False, "dq_buffers": 1, "accumulate": False},
    as_written=("two_statistics",),
    implementations=(Implementation("own-kernels", residency={"forward": (FORWARD,)}),),
)
