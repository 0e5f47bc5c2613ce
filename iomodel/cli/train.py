"""Command that estimates a training step."""

from __future__ import annotations

from typing import Any

from iomodel.cli.options import Json
from iomodel.cli.output import emit
from iomodel.cli.plan import Model, integers
from iomodel.cli.required import require
from iomodel.cli.signature import option, with_options
from iomodel.devices.device import list_hardware

STEP = [
    option("hardware", "A device, or a YAML file of one (required).", "Step", "NAME|FILE", list_hardware),
    option("batch", "Sequences of a step on all devices (required).", "Step"),
    option("seq_len", "Tokens of a sequence (required).", "Step"),
    option("micro_batch", "Sequences of one pass of a replica (1).", "Step"),
    option("recompute", "Run layers again in backward passes: none, early-stop or full (none).", "Step", "NAME"),
    option("recompute_layers", "Layers of each stage that run again, the first ones (all).", "Step"),
    option("precision", "Products of linear layers: bf16 or fp8 (bf16).", "Step", "NAME"),
    option("gradient_dtype", "Gradients: fp32 or bf16 (fp32).", "Step", "NAME"),
    option("kernels", "Elementwise kernels: fused, or eager as PyTorch's operators (fused).", "Step", "NAME"),
    option("attention_algorithm", "The attention kernels (the fastest).", "Step", "NAME"),
    option("attention_implementation", "An implementation of them (the fastest).", "Step", "NAME"),
]
DEVICES = [
    option("data_parallel", "Replicas (1).", "Devices"),
    option("shard", "What replicas divide: none, optimizer, gradients, parameters (parameters).", "Devices", "NAME"),
    option("tensor_parallel", "Devices of a replica that divide each layer (1).", "Devices"),
    option("pipeline_parallel", "Stages of layers (1).", "Devices"),
    option("expert_parallel", "Devices that divide the experts (1).", "Devices"),
    option("nodes_per_token", "Most nodes whose experts a token visits (each expert alone).", "Devices"),
    option("virtual_stages", "Interleaved parts of the model on each device of a pipeline (1).", "Devices"),
    option(
        "overlap",
        "Collectives beside products: data, tensor, pipeline, experts, none (first three).",
        "Devices",
        "NAME,...",
    ),
    option("devices_per_node", "Devices on the faster network (the device's).", "Devices"),
]
NUMBERS = ("batch", "seq_len", "micro_batch", "data_parallel", "virtual_stages", "nodes_per_token", "recompute_layers")
DEGREES = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "devices_per_node")
KERNELS = ("kernels", "attention_algorithm", "attention_implementation")
NAMES = ("recompute", "precision", "gradient_dtype", "shard", *KERNELS)


@with_options(STEP, DEVICES)
def train(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Estimate the time and the memory of a training step with Adam.

    Example:
      iomodel train llama-3-8b --hardware h100-sxm5 --batch 64 --seq-len 4096 --data-parallel 8 --recompute full
    """
    from iomodel.planning.step.layout import Layout
    from iomodel.planning.training.train_step import train_step

    require(arguments, ("hardware", "batch", "seq_len"))
    fields: dict[str, Any] = integers(arguments, NUMBERS)
    fields |= {name: arguments[name] for name in NAMES if arguments[name] is not None}
    if arguments["overlap"] is not None:
        fields["overlap"] = [name for name in arguments["overlap"].split(",") if name != "none"]
    emit(train_step(model, arguments["hardware"], layout=Layout(**integers(arguments, DEGREES)), **fields), json)
