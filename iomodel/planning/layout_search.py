"""The search over layouts and batches that all planning verbs share, and its order.

Candidates are those of :func:`iomodel.planning.layouts.default_layouts`. Each has the largest batch that keeps the
targets: TTFT and TPOT never fall with the batch, so that the batch is found by bisection. On some devices, the best
candidate has the most tokens per second on all of them; for a load, the fewest devices; else one device where it is a
candidate, and else the most tokens per second and device. Candidates within 0.5 % take the fewer devices per replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError
from iomodel.planning.formatting import layout_text, seconds
from iomodel.planning.layouts import SERVER, default_layouts, no_room, with_least_layout
from iomodel.planning.replica_figures import Figures, figures
from iomodel.planning.service import Service
from iomodel.planning.step.layout import Layout

EQUAL = 1.005
"""Ratio of two rates up to which layouts count as equal, so that the smaller replica is taken [-]."""
BETTER = 1.1
"""Ratio of the rate of another layout to that of a given one from which it is named [-]."""


@dataclass(frozen=True)
class LayoutRate(Record):
    """One layout of a search with the batch that keeps the targets.

    Attributes
    ----------
    layout : Layout
        Layout of a replica.
    replicas, devices : int
        Number of replicas, and of devices of all replicas [-].
    batch : int
        Requests decoded together in a replica [-].
    ttft, tpot : float
        Times at that batch; no TPOT of one output token [s].
    tokens_per_second : float
        Output tokens of all replicas [1/s].
    """

    layout: Layout = field(metadata=column("layout", layout_text))
    replicas: int = field(metadata=column(">replicas", ","))
    devices: int = field(metadata=column(">devices", ","))
    batch: int = field(metadata=column(">batch", ","))
    ttft: float = field(metadata=column(">TTFT", seconds))
    tpot: float | None = field(metadata=column(">TPOT", seconds, none="-"))
    tokens_per_second: float = field(metadata=column(">tokens/s", ",.0f"))

    @property
    def tokens_per_second_per_device(self) -> float:
        """Output tokens of one device [1/s]."""
        return self.tokens_per_second / self.devices


@dataclass(frozen=True)
class Wanted:
    """Devices, load and targets of a search; None where not given.

    `count` are devices to fill, `load` requests per second to serve, on `count` devices if both are given, `batch` the
    requests decoded together, `clients` those of a closed loop on all devices; `targets` has limits of ``ttft`` and
    ``tpot`` [s].
    """

    count: int | None = None
    load: float | None = None
    batch: int | None = None
    clients: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)

    def replicas(self, service: Service, requests_per_second: float) -> int:
        """Return the number of replicas of a layout [-]."""
        if self.load is not None and self.count is None:
            return ceil(self.load / requests_per_second)
        return 1 if self.count is None else self.count // service.devices

    def load_of(self, service: Service) -> float | None:
        """Return the load of a replica of given devices; None without it [1/s]."""
        return None if self.load is None or self.count is None else self.load * service.devices / self.count

    @property
    def untargeted(self) -> Wanted:
        """The same requests without targets, or a single one."""
        batch = self.batch or (None if self.clients or (self.load and self.count) else 1)
        return replace(self, batch=batch, targets=FrozenDict())

    def clients_of(self, service: Service) -> int | None:
        """Return the clients of a replica of the devices; None if they are not given."""
        if self.clients is None:
            return None
        return -(-self.clients // (1 if self.count is None else max(1, self.count // service.devices)))


def excess(reached: object, targets: Mapping[str, float]) -> float:
    """Return the largest ratio of a time to its target; 0 without targets."""
    return max(((getattr(reached, name) or 0.0) / limit for name, limit in targets.items()), default=0.0)


def largest(least: int, most: int, holds: Callable[[int], bool]) -> int:
    """Find the largest number from `least` to `most` at which a monotone condition holds; `least` - 1 if at none.

    >>> largest(1, 1000, lambda size: size * size <= 500), largest(1, 9, lambda size: False)
    (22, 0)
    """
    if most < least or not holds(least):
        return least - 1
    low, high = least, least + 1
    while high <= most and holds(high):
        low, high = high, least + 2 * (high - least)
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def at_targets(service: Service, device: Hardware, wanted: Wanted) -> Figures | None:
    """Compute the figures of a replica at the largest batch that keeps the targets; None if none fits or keeps them."""
    fits, clients = service.most_requests(device), wanted.clients_of(service)
    if wanted.batch is not None and wanted.batch > service.memory(device).fits:
        return None
    most = min(fits, clients or fits) if wanted.batch is None else wanted.batch
    if not most:
        return None
    if (load := wanted.load_of(service)) is not None:
        most = 1 + largest(1, most, lambda size: figures(service, device, size).requests_per_second < load)
        if most > fits:
            return None
    reached = figures(service, device, most, clients)
    if load is not None:
        reached = replace(reached, requests_per_second=load, tokens_per_second=load * service.output)
    if excess(reached, wanted.targets) <= 1:
        return reached
    if wanted.batch is not None or clients is not None or load is not None:
        return None
    batch = largest(1, most - 1, lambda size: excess(figures(service, device, size), wanted.targets) <= 1)
    return figures(service, device, batch) if batch else None


def candidates(service: Service, device: Hardware, count: int | None) -> list[Layout]:
    """List the layouts of a search: those whose devices divide the given ones, or of up to eight."""
    return default_layouts(service, device, count or SERVER, count)


def rated(
    service: Service, device: Hardware, wanted: Wanted, layouts: Iterable[Layout] | None = None
) -> list[LayoutRate]:
    """List the layouts that hold the model and keep the targets, the best first."""
    options = []
    for layout in candidates(service, device, wanted.count) if layouts is None else layouts:
        laid = service.laid_out(layout)
        reached = at_targets(laid, device, wanted)
        if reached is None:
            continue
        replicas = wanted.replicas(laid, reached.requests_per_second)
        tokens = replicas * reached.tokens_per_second
        options.append(
            LayoutRate(layout, replicas, replicas * laid.devices, reached.batch, reached.ttft, reached.tpot, tokens)
        )
    return ordered(options, wanted)


def ordered(options: Iterable[LayoutRate], wanted: Wanted) -> list[LayoutRate]:
    """Order the options of a search; equal rates go to the smaller replica.

    A device without a count or a load is one device, where one holds the model and keeps the targets.
    """

    def rate(option: LayoutRate) -> float:
        if wanted.load is not None and wanted.count is not None:
            return 1 / (option.tpot or option.ttft)
        if wanted.load is not None:
            return 1 / option.devices
        return option.tokens_per_second if wanted.count is not None else option.tokens_per_second_per_device

    listed = sorted(options, key=lambda option: -rate(option))
    if not listed:
        return []
    near = [option for option in listed if rate(option) * EQUAL >= rate(listed[0])]
    if wanted.count is None and wanted.load is None:
        near = [option for option in listed if option.devices == 1] or near
    best = min(near, key=lambda option: (option.devices // option.replicas, option.tpot or 0.0))
    return [best, *(option for option in listed if option is not best)]


def best_layout(service: Service, device: Hardware, wanted: Wanted) -> list[LayoutRate]:
    """Search the layouts of a service; the first is the best.

    Raises
    ------
    InfeasibleError
        No layout holds the model and one request, or none keeps the targets; the message names the nearest.
    """
    options = rated(service, device, wanted)
    if options:
        return options
    held = rated(service, device, Wanted(wanted.count, batch=1))
    if not held:
        raise no_room(with_least_layout(service, device, wanted.count or SERVER), device)
    if wanted.batch is not None and not wanted.targets:
        laid = max((service.laid_out(option.layout) for option in held), key=lambda one: one.memory(device).fits)
        raise no_room(laid, device, wanted.batch)
    raise refusal(service, device, wanted)


def refusal(
    service: Service, device: Hardware, wanted: Wanted, layouts: Iterable[Layout] | None = None
) -> InfeasibleError:
    """Build the error for targets that no layout keeps, or for a load that the devices do not serve."""
    near = rated(service, device, wanted.untargeted, layouts)
    if near:
        return unkept(near, wanted)
    most, load = rated(service, device, Wanted(wanted.count), layouts)[0], wanted.load or 0.0
    served = most.tokens_per_second / service.output
    return InfeasibleError(
        f"load: {load:g} requests/s given with count = {wanted.count}; allowed: at most {served:.4g}, which "
        f"{layout_text(most.layout)} serves, or no count, so that the load sets it",
        least=ceil(most.devices * load / served),
        unit="devices",
    )


def unkept(held: Iterable[LayoutRate], wanted: Wanted) -> InfeasibleError:
    """Build the error for targets that no layout keeps."""
    near = min(held, key=lambda option: excess(option, wanted.targets))
    reached = {name: getattr(near, name) or 0.0 for name in wanted.targets}
    beside = "one request" if wanted.batch in (None, 1) else f"{wanted.batch:,} requests"
    more = "; iomodel.fleet counts replicas for clients" if wanted.clients and wanted.count is None else ""
    beside = beside if wanted.clients is None else f"{wanted.clients:,} clients"
    beside = f"{wanted.load:g} requests/s" if wanted.load and wanted.count else beside
    return missed(wanted.targets, reached, "layout", f" with {beside} ({layout_text(near.layout)}){more}")


def missed(
    targets: Mapping[str, float], reached: Mapping[str, float], nearest: str, where: str, kind: str = ""
) -> InfeasibleError:
    """Build the error for targets that the nearest candidate misses, with the times that it reaches [s]."""
    field = " and ".join(targets)
    limits = " and ".join(seconds(limit) for limit in targets.values())
    least = " and ".join(f"{name.upper()}{kind} {seconds(value)}" for name, value in reached.items())
    late = max(targets, key=lambda name: reached[name] / targets[name])
    return InfeasibleError(
        f"{field}: {limits} given; allowed: more, because the nearest {nearest} has {least}{where}",
        least=ceil(1e6 * reached[late]),
        unit="us",
    )
