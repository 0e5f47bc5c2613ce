"""Calls of an experiment: closures over rotating buffers, so that no call finds its data in the L2 cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iomodel.devices.calibration.experiments import BLOCK, UNROLL, Experiment

Calls = list[Callable[[], object]]


def calls_of(torch: Any, device: Any, experiment: Experiment) -> Calls:
    """Build the calls of an experiment, one per set of buffers."""
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
    parameters = dict(experiment.parameters)
    if experiment.kind in ("launch", "graph"):
        parameters["count"] = experiment.work
    return [make(torch, device, parameters) for _ in range(parameters["buffers"])]


def _copy(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    source, target = (torch.randn(parameters["elements"], device=device) for _ in range(2))
    return lambda: target.copy_(source)


def _sum(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    source = torch.randn(parameters["elements"], device=device)
    return source.sum  # type: ignore[no-any-return]


def _launch_of(function: Any, torch: Any, device: Any, parameters: dict[str, Any]) -> tuple[Any, Any]:
    """Return the launch of a Triton kernel, and the buffer of the sums of its programs."""
    from iomodel.devices.calibration.kernels import kernel

    programs = parameters["programs"]
    return kernel(function)[(programs,)], torch.empty(programs, device=device)


def _read(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    from iomodel.devices.calibration.kernels import read

    launch, sums = _launch_of(read, torch, device, parameters)
    source = torch.randn(parameters["elements"], device=device)
    return lambda: launch(source, sums, parameters["elements"] // BLOCK, BLOCK, num_warps=8)


def _walk(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    from iomodel.devices.calibration.kernels import walk

    launch, sums = _launch_of(walk, torch, device, parameters)
    source = torch.randn(parameters["elements"], device=device)
    return lambda: launch(source, sums, parameters["blocks"], parameters["steps"], BLOCK, num_warps=8)


def _chain(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    from iomodel.devices.calibration.kernels import chain

    launch, sums = _launch_of(chain, torch, device, parameters)
    return lambda: launch(sums, parameters["steps"], BLOCK, UNROLL, num_warps=8)


def _gemm(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    """Multiply A by B transposed, rows of k random elements; zeros would draw less power and run faster."""
    batch, m, n, k, dtype = (parameters[name] for name in ("batch", "m", "n", "k", "dtype"))
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
    a, b = (torch.randn(batch, rows, k, device=device, dtype=kind) for rows in (m, n))
    if dtype == "fp8":
        left, right = (operand[0].to(torch.float8_e4m3fn) for operand in (a, b))
        one = torch.ones((), device=device)
        return lambda: torch._scaled_mm(left, right.t(), one, one, out_dtype=torch.bfloat16)
    if batch == 1:
        left, right = a[0], b[0]
        return lambda: left @ right.t()
    return lambda: torch.bmm(a, b.transpose(1, 2))


def _launch(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    element, count = torch.ones(1, device=device), parameters["count"]

    def call() -> None:
        for _ in range(count):
            element.add_(1)

    return call


def _graph(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    call = _launch(torch, device, parameters)
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay  # type: ignore[no-any-return]


def _attention(torch: Any, device: Any, parameters: dict[str, Any]) -> Callable[[], object]:
    """Run the forward pass, or the backward pass alone after an earlier forward pass."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = tuple(parameters[name] for name in ("batch", "heads", "length", "head_dim"))
    q, k, v, upstream = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(4))

    def forward() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            attend = torch.nn.functional.scaled_dot_product_attention
            return attend(q, k, v, is_causal=parameters["mask"] == "causal")

    if parameters["direction"] == "forward":
        return forward
    leaves = tuple(x.requires_grad_() for x in (q, k, v))
    output = forward()
    return lambda: torch.autograd.grad(output, leaves, upstream, retain_graph=True)
