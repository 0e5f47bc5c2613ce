"""The calls of an experiment: closures over buffers that take turns, so that no call finds its data in the L2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iomodel.calibration.experiments import Experiment
from iomodel.calibration.list import BLOCK, UNROLL

Calls = list[Callable[[], object]]


def calls_of(torch: Any, device: Any, experiment: Experiment) -> Calls:
    """What to call, one entry a set of buffers."""
    make = {
        "copy": _copy,
        "sum": _sum,
        "read": _read,
        "walk": _walk,
        "chain": _chain,
        "gemm": _gemm,
        "launch": _launch,
        "graph": _graph,
        "attention": _attention,
    }[experiment.kind]
    given = dict(experiment.parameters)
    if experiment.kind in ("launch", "graph"):
        given["count"] = experiment.work
    return [make(torch, device, given) for _ in range(given["buffers"])]


def _copy(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    source, target = (torch.randn(given["elements"], device=device) for _ in range(2))
    return lambda: target.copy_(source)


def _sum(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    source = torch.randn(given["elements"], device=device)
    return source.sum  # type: ignore[no-any-return]


def _read(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    from iomodel.calibration.kernels import kernel, read

    source, sums = torch.randn(given["elements"], device=device), torch.empty(given["programs"], device=device)
    launched = kernel(read)[(given["programs"],)]
    return lambda: launched(source, sums, given["elements"] // BLOCK, BLOCK, num_warps=8)


def _walk(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    from iomodel.calibration.kernels import kernel, walk

    source, sums = torch.randn(given["elements"], device=device), torch.empty(given["programs"], device=device)
    launched = kernel(walk)[(given["programs"],)]
    return lambda: launched(source, sums, given["blocks"], given["steps"], BLOCK, num_warps=8)


def _chain(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    from iomodel.calibration.kernels import chain, kernel

    sums = torch.empty(given["programs"], device=device)
    launched = kernel(chain)[(given["programs"],)]
    return lambda: launched(sums, given["steps"], BLOCK, UNROLL, num_warps=8)


def _gemm(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    """A times B transposed, both with rows of k elements; not zeros, which take less power and so run faster."""
    batch, m, n, k, dtype = (given[name] for name in ("batch", "m", "n", "k", "dtype"))
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
    a, b = (torch.randn(batch, rows, k, device=device, dtype=kind) for rows in (m, n))
    if dtype == "fp8":
        low, high, one = a[0].to(torch.float8_e4m3fn), b[0].to(torch.float8_e4m3fn), torch.ones((), device=device)
        return lambda: torch._scaled_mm(low, high.t(), one, one, out_dtype=torch.bfloat16)
    if batch == 1:
        left, right = a[0], b[0]
        return lambda: left @ right.t()
    return lambda: torch.bmm(a, b.transpose(1, 2))


def _launch(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    element, count = torch.ones(1, device=device), given["count"]

    def call() -> None:
        for _ in range(count):
            element.add_(1)

    return call


def _graph(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    call = _launch(torch, device, given)
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay  # type: ignore[no-any-return]


def _attention(torch: Any, device: Any, given: dict[str, Any]) -> Callable[[], object]:
    """The forward pass, or the backward pass alone, whose forward pass ran before."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = tuple(given[name] for name in ("batch", "heads", "length", "head_dim"))
    q, k, v, upstream = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(4))

    def forward() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            attend = torch.nn.functional.scaled_dot_product_attention
            return attend(q, k, v, is_causal=given["mask"] == "causal")

    if given["direction"] == "forward":
        return forward
    leaves = tuple(x.requires_grad_() for x in (q, k, v))
    output = forward()
    return lambda: torch.autograd.grad(output, leaves, upstream, retain_graph=True)
