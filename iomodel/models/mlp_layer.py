"""The MLP of one decoder layer, dense or with experts."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from iomodel.common.validation import Distance
from iomodel.devices.quantity import PRINTABLE, Group
from iomodel.errors import InputError
from iomodel.models.indexer import Projection
from iomodel.workloads.call import Switch

Activation = Annotated[str, Field(max_length=40, pattern=PRINTABLE)]


class MLPLayer(Group):
    """The MLP of one decoder layer: dense, or experts selected per token by a router.

    Parameters
    ----------
    intermediate_size : width of a dense MLP [elements]; 0 with experts.
    gated : activation(x W_gate) * (x W_up) instead of activation(x W_up).
    activation : name of the activation, such as silu.
    experts, experts_per_token : number of routed experts, 0 for a dense MLP; number visited by a token.
    expert_intermediate_size : width of one expert [elements].
    shared_experts, shared_intermediate_size : number of experts visited by every token; width of one, by default that
        of a routed expert [elements].
    bias, router_bias : the projections add a bias; the router adds one, or corrects its scores by one.
    shared_gate : a separate gate weights the output of the shared experts.
    latent_size, latent_norm : width of the rows that routed experts read and write, between two projections shared by
        all experts; 0 if they read the row between layers [elements]. The latent row is normalised with weights.
    idle_experts : experts that the router can choose, and that copy their input.
    other_weights : weights that are in none of these [elements].

    Examples
    --------
    >>> MLPLayer(intermediate_size=14336).projections(4096)
    (('gate', 4096, 14336), ('up', 4096, 14336), ('down', 14336, 4096))
    >>> MLPLayer(experts=8, experts_per_token=2, expert_intermediate_size=14336).parameters(4096)
    1409318912
    """

    intermediate_size: Distance = 0
    gated: Switch = True
    activation: Activation = "silu"
    experts: Distance = 0
    experts_per_token: Distance = 0
    expert_intermediate_size: Distance = 0
    shared_experts: Distance = 0
    shared_intermediate_size: Distance = Field(default_factory=lambda data: data["expert_intermediate_size"])
    bias: Switch = False
    router_bias: Switch = False
    shared_gate: Switch = False
    latent_size: Distance = 0
    latent_norm: Switch = False
    idle_experts: Distance = 0
    other_weights: Distance = 0

    @model_validator(mode="after")
    def _dense_or_experts(self) -> Self:
        if not self.experts:
            for field in (
                "experts_per_token",
                "expert_intermediate_size",
                "shared_experts",
                "shared_intermediate_size",
                "latent_size",
                "idle_experts",
                "router_bias",
                "shared_gate",
                "latent_norm",
            ):
                if value := getattr(self, field):
                    raise InputError(f"{field}: {value} given with experts = 0; allowed: {type(value)()}")
            if not self.intermediate_size:
                raise InputError("intermediate_size: 0 given with experts = 0; allowed: at least 1")
            return self
        if self.intermediate_size:
            raise InputError(
                f"intermediate_size: {self.intermediate_size} given with experts = {self.experts}; "
                "allowed: 0, because the width of an expert is expert_intermediate_size"
            )
        if not 1 <= self.experts_per_token <= self.experts:
            raise InputError(
                f"experts_per_token: {self.experts_per_token} given; allowed: from 1 to experts = {self.experts}"
            )
        if not self.expert_intermediate_size:
            raise InputError("expert_intermediate_size: 0 given with experts; allowed: at least 1")
        if self.shared_experts and not self.shared_intermediate_size:
            raise InputError("shared_intermediate_size: 0 given with shared_experts; allowed: at least 1")
        for switch, size in (("shared_gate", "shared_experts"), ("latent_norm", "latent_size")):
            if getattr(self, switch) and not getattr(self, size):
                raise InputError(f"{switch}: True given with {size} = 0; allowed: False")
        return self

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer of the dense MLP, or of one routed expert."""
        if not self.experts:
            return self._of(hidden, self.intermediate_size)
        return self._of(self.latent_size or hidden, self.expert_intermediate_size)

    def latent_projections(self, hidden: int) -> tuple[Projection, ...]:
        """List the projections to the rows of routed experts, and back; empty if these read the row between layers."""
        width = self.latent_size
        return (("latent in", hidden, width), ("latent out", width, hidden)) if width else ()

    def shared_projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer of one shared expert; empty without shared experts."""
        return self._of(hidden, self.shared_intermediate_size) if self.shared_experts else ()

    def _of(self, hidden: int, width: int) -> tuple[Projection, ...]:
        gate: tuple[Projection, ...] = (("gate", hidden, width),) if self.gated else ()
        return *gate, ("up", hidden, width), ("down", width, hidden)

    @property
    def routes(self) -> int:
        """Number of outputs of the router."""
        return self.experts + self.idle_experts

    def matrices(self, hidden: int, active: bool = False) -> int:
        """Count the weights of the linear layers of all experts, or of those that a token visits [elements]."""
        routed = self.experts_per_token if active else self.experts
        routed_size, shared_size = _size(self.projections(hidden)), _size(self.shared_projections(hidden))
        count = routed_size * (routed if self.experts else 1) + shared_size * self.shared_experts
        return count + _size(self.latent_projections(hidden))

    def vectors(self, hidden: int, active: bool = False) -> int:
        """Count the remaining weights: biases, router, gate of the shared experts [elements]."""
        routed = self.experts_per_token if active else self.experts
        count = hidden * (self.routes + self.shared_gate) + self.routes * self.router_bias
        count += self.latent_size * self.latent_norm + self.other_weights
        if self.bias:
            count += _outputs(self.projections(hidden)) * (routed if self.experts else 1)
            count += _outputs(self.shared_projections(hidden)) * self.shared_experts
        return count

    def parameters(self, hidden: int, active: bool = False) -> int:
        """Count the weights of the router and of all experts, or of those that a token visits [elements]."""
        return self.matrices(hidden, active) + self.vectors(hidden, active)


def _size(projections: tuple[Projection, ...]) -> int:
    return sum(rows * columns for _, rows, columns in projections)


def _outputs(projections: tuple[Projection, ...]) -> int:
    return sum(columns for _, _, columns in projections)
