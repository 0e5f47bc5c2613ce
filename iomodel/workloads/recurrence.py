"""Recurrences of keys and values: linear attention with or without decay, state space models, delta rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.errors import InputError
from iomodel.workloads.call import ElementType, Switch
from iomodel.workloads.workload import Shape, one_of

Gate = Literal["none", "constant", "head", "channel"]


class Recurrence(Shape):
    """A recurrence of keys and values with a matrix as state.

    For each head and position t, S_t = D_t S_(t-1) + k_t v_t^T and o_t = S_t^T q_t, with a state S of
    head_dim x value_dim elements in fp32; with the delta rule S_t = D_t S_(t-1) + beta_t k_t (v_t - (D_t S_(t-1))^T
    k_t)^T. The decay D_t is given by the gate.

    Parameters
    ----------
    batch, tokens : int
        Sequences [-], and positions of each [positions].
    heads, key_heads : int
        Heads of V and of the state; heads of Q and K, a divisor of `heads`, by default as many [-].
    head_dim, value_dim : int
        Width of a row of Q and K, and of V; by default the same [elements].
    dtype : str
        Type of Q, K, V, beta and O in HBM; gates and the carried state are fp32.
    gate : {"none", "constant", "head", "channel"}
        The decay: none (linear attention, DeltaNet); a constant per head (lightning attention, RetNet); a number per
        position and head (Mamba-2, Gated DeltaNet); a number per position, head and element of a key (GLA, KDA). Gates
        are given as logarithms.
    delta : bool
        The delta rule, with a rate beta per position and head.
    stateful : bool
        The state before the first position is loaded, and the state after the last one stored, as in a section or a
        step of a longer sequence.

    Raises
    ------
    InputError
        A field is missing, unknown or not a positive integer; `key_heads` does not divide `heads`.

    References
    ----------
    Gated linear attention: Yang et al., arXiv:2312.06635, equation 3. Lightning attention: Qin et al.,
    arXiv:2401.04658. Mamba-2: Dao and Gu, arXiv:2405.21060, with C, B and X for Q, K and V. DeltaNet: Yang et al.,
    arXiv:2406.06484, section 2. Gated DeltaNet: Yang, Kautz and Hatamizadeh, arXiv:2412.06464, equation 10. KDA: Kimi
    Linear, arXiv:2510.26692.

    Examples
    --------
    >>> layer = Recurrence(tokens=8192, heads=32, key_heads=16, head_dim=128, gate="head", delta=True)
    >>> layer.features, layer.state_elements
    (('head_decay', 'delta'), 524288)
    """

    operation: ClassVar[str] = "recurrence"
    direction: ClassVar[str] = "forward"
    divisors: ClassVar[tuple[tuple[str, str], ...]] = (("key_heads", "heads"),)

    batch: Count = 1
    tokens: Count
    heads: Count = 1
    key_heads: Count = Field(default_factory=lambda data: data["heads"])
    head_dim: Count
    value_dim: Count = Field(default_factory=lambda data: data["head_dim"])
    dtype: ElementType = "bf16"
    gate: Annotated[Gate, one_of(get_args(Gate))] = "none"
    delta: Switch = False
    stateful: Switch = False

    @model_validator(mode="after")
    def _heads_are_shared(self) -> Self:
        if self.heads % self.key_heads:
            raise InputError(f"key_heads: {self.key_heads} given; allowed: a divisor of heads = {self.heads}")
        return self

    @property
    def state_elements(self) -> int:
        """Size of the states of all sequences and heads [elements]."""
        return self.batch * self.heads * self.head_dim * self.value_dim

    @property
    def features(self) -> tuple[str, ...]:
        """Features that change the nest: the gate's decay, "delta", "stateful"."""
        decays = {f"{gate}_decay": self.gate == gate for gate in get_args(Gate)[1:]}
        switches = {**decays, "delta": self.delta, "stateful": self.stateful}
        return tuple(name for name, present in switches.items() if present)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Value of every symbol of a recurrence, keyed by its Python name, in alphabet order."""
        names = ("batch", "heads", "key_heads", "tokens", "head_dim", "value_dim", "element_size")
        return FrozenDict({name: getattr(self, name) for name in names})
