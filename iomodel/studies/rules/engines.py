"""Engines that a rule is written for: the function or file that each takes, and what it does without an answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from iomodel.common.validation import as_choice
from iomodel.errors import InputError
from iomodel.studies.rules.domain import Domain


@dataclass(frozen=True)
class Engine:
    """The form that an engine takes.

    Attributes
    ----------
    function : str
        The name of the function; with `{}` for the algorithm.
    chooses : str
        The object of the header's first line; with `{}` for the algorithm.
    result : str
        The value of the function, in the words of its docstring.
    value : str
        The value as a Python expression of u, v, w, s, p and x: tile, warps, stages, packing and splits.
    nothing : str
        The value outside the domain.
    outside : str
        The sentence of the header about calls outside the domain.
    forms : tuple of str
        The forms in which the rule is written, the usual one first.
    kernels : tuple of str
        The implementations that it has, the preferred one first; empty for any.
    constant : bool
        True for a file with one launch for all calls.
    domain : Domain
        The calls for which a rule answers where nothing else is said.
    room : str
        The function that learns the rule.
    solver : str
        The function whose choices it learns.
    """

    function: str
    chooses: str
    result: str
    value: str
    nothing: str
    outside: str
    forms: tuple[str, ...]
    kernels: tuple[str, ...] = ()
    constant: bool = False
    domain: Domain = field(default_factory=Domain)
    room: str = "iomodel.rule"
    solver: str = "iomodel.solve"


WHOLE = Engine(
    "choose_{}",
    "Launches of {}",
    "(block_q, block_kv, warps, stages, packed, splits)",
    "u, v, w, s, p, x",
    "None",
    "For any other call or device it returns nothing: keep what you do today.",
    ("python", "cpp", "table"),
)
"""The form for no particular engine."""
ENGINES = {
    "flash-attention": Engine(
        "num_splits",
        "Splits of {}",
        "the number of splits",
        "x",
        "0",
        "For any other call or device it returns 0, with which the library chooses as it does today.",
        ("python", "cpp", "table"),
        kernels=("flash-attention-3", "flash-attention-2"),
    ),
    "flex-attention": Engine(
        "kernel_options",
        "Kernel options of FlexAttention's forward pass ({}) without a function of scores,",
        "the kernel options of the forward pass",
        '{"fwd_BLOCK_M": u, "fwd_BLOCK_N": v, "fwd_num_warps": w, "fwd_num_stages": s}',
        "None",
        "For any other call or device it returns None, with which FlexAttention takes its own config.",
        ("python", "table"),
        domain=Domain(min_q_len=128, max_kv_len=131_072, head_dims=(64, 128, 256)),
        room="iomodel.triton.rule",
        solver="iomodel.triton.flex_options",
    ),
    "aiter": Engine(
        "",
        "Config of {}",
        "",
        WHOLE.value,
        "",
        "Save it as triton/attention/mha/DEFAULT.json below a folder named by the architecture, such as gfx942, in a "
        "folder that AITER_TRITON_CONFIGS_OVERLAY_PATH names. Keys that it lacks, dropout, fp32 and rows of Q and K "
        "that are wider than those of V keep AITER's own values.",
        ("json", "table"),
        kernels=("triton-amd",),
        constant=True,
        domain=Domain(min_q_len=128, max_kv_len=131_072, head_dims=(64, 128)),
    ),
}
"""Engines by name.

`num_splits` is an argument of `flash_attn_with_kvcache` (github.com/Dao-AILab/flash-attention, docstring in
`flash_attn/flash_attn_interface.py`: with 1 no keys are divided, with 0 the library chooses), of vLLM's
`flash_attn_varlen_func`, and of the calls in SGLang's backend of FlashAttention-3. `kernel_options` is an argument of
`torch.nn.attention.flex_attention.flex_attention`, which drops options with the prefix `fwd_` from the backward pass
(github.com/pytorch/pytorch, `torch/_inductor/kernel/flex/flex_attention.py`). AITER merges the configs of a folder
that AITER_TRITON_CONFIGS_OVERLAY_PATH names into its own, key by key (github.com/ROCm/aiter,
`aiter/ops/triton/utils/config_utils.py`).
"""


def engine_of(name: str | None, room: str) -> Engine:
    """Return the engine of a name, if the function of this name learns its rules."""
    if name is None:
        return WHOLE
    known = ENGINES[as_choice("engine", name, ENGINES)]
    if known.room != room:
        here = [each for each, engine in ENGINES.items() if engine.room == room]
        raise InputError(f"engine: {name!r} given; allowed: {', '.join(here)}, or {known.room} for {name}")
    return known
