"""The answer of a plan: what fits, how fast it is, what binds, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iomodel.decoder.step import Layout, StepTime
from iomodel.planning.figures import Figures
from iomodel.planning.memory import Fit
from iomodel.planning.sensitivity import Sensitivity
from iomodel.planning.tables import tables
from iomodel.planning.text import layout_dict
from iomodel.show import Shown


@dataclass(frozen=True)
class Plan(Shown):
    """A model on some devices.

    Attributes
    ----------
    model, hardware : str
        What is served, and on which device.
    count, replicas : int
        Devices, and replicas among which they are divided.
    layout : Layout
        How a replica shares out the model.
    prompt, output : int
        Tokens of a request, and of its answer.
    memory : Fit
        What lies in the memory of the fullest device, and how many requests fit a replica.
    figures : Figures
        One replica with its batch always full.
    prefill, decode : StepTime
        A prefill, and the decode step in the middle of the output.
    prefill_bound, decode_bound : str
        What binds each: ``weights``, ``KV cache``, ``matrix``, ``communication`` or another part of the step.
    throughput_bound : str
        ``memory capacity`` where the batch is as large as fits, and twice the batch would serve a tenth more; else the
        bound of what takes longer, prefills or decode steps.
    crossover_context : int or None
        Context from which attention takes longer than the matrix products in a decode step; None if at none.
    price_per_hour : float or None
        Of one device [1/h].
    batches : tuple of Figures
        The same replica at other batches.
    sensitivities : tuple of Sensitivity
        What one more of each resource buys, where that was asked for.
    """

    model: str
    hardware: str
    count: int
    replicas: int
    layout: Layout
    prompt: int
    output: int
    memory: Fit
    figures: Figures
    prefill: StepTime
    decode: StepTime
    prefill_bound: str
    decode_bound: str
    throughput_bound: str
    crossover_context: int | None
    price_per_hour: float | None
    batches: tuple[Figures, ...]
    sensitivities: tuple[Sensitivity, ...] = ()

    @property
    def batch(self) -> int:
        """Requests that decode together in a replica [-]."""
        return self.figures.batch

    @property
    def ttft(self) -> float:
        """Time to the first token of a request that does not wait [s]."""
        return self.figures.ttft

    @property
    def tpot(self) -> float:
        """Time per output token, with the prefills of other requests in between [s]."""
        return self.figures.tpot

    @property
    def requests_per_second(self) -> float:
        """Requests of all replicas [1/s]."""
        return self.replicas * self.figures.requests_per_second

    @property
    def tokens_per_second(self) -> float:
        """Output tokens of all replicas [1/s]."""
        return self.replicas * self.figures.tokens_per_second

    @property
    def cost_per_million_output_tokens(self) -> float | None:
        """Price of all devices over their output tokens, prompts counted as free [per 10^6]."""
        return self._cost(self.tokens_per_second)

    @property
    def cost_per_million_tokens(self) -> float | None:
        """Price of all devices over their tokens, of prompts and outputs alike [per 10^6]."""
        return self._cost(self.requests_per_second * (self.prompt + self.output))

    def _cost(self, rate: float) -> float | None:
        if self.price_per_hour is None:
            return None
        return self.price_per_hour * self.count / 3600 / rate * 1e6

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        named = ("batch", "ttft", "tpot", "requests_per_second", "tokens_per_second")
        costs = ("cost_per_million_tokens", "cost_per_million_output_tokens")
        plain = {name: value for name, value in self.__dict__.items() if isinstance(value, str | int | float | None)}
        return {
            **plain,
            **{name: getattr(self, name) for name in (*named, *costs)},
            "layout": layout_dict(self.layout),
            "notes": list(self.prefill.model.notes),
            "memory": self.memory.to_dict(),
            "figures": dict(self.figures.__dict__),
            "prefill": self.prefill.to_dict(),
            "decode": self.decode.to_dict(),
            "batches": [dict(row.__dict__) for row in self.batches],
            "sensitivities": [one.to_dict() for one in self.sensitivities],
        }

    def __rich__(self) -> Any:
        """Return tables for the terminal."""
        return tables(self)
