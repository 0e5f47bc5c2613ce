"""Rules for the launches of a kernel family, learned from answers of the solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.keywords import strict
from iomodel.common.progress import watched
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, IOModelError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import named
from iomodel.studies.rules.domain import HELD_OUT, LEAST_KEYS, Domain
from iomodel.studies.rules.engines import Engine, engine_of
from iomodel.studies.rules.launches import FILLS, SHARE, Calls, DividingFamily, Family, Kernels, Launch, part_of
from iomodel.studies.rules.rule_result import DeviceRule, Node, Regret, Rule
from iomodel.studies.rules.terms import FEATURES, candidates, letters_of
from iomodel.studies.rules.tree import Branch, Grower
from iomodel.studies.rules.written import MOST_BYTES, bytes_of
from iomodel.workloads.varlen import VarlenAttention

CALLS = 12_000
PART = 500
"""Calls that are solved or timed between two steps of a progress bar [-]."""
SOLVED = 8
"""One in so many calls is solved for the launches of the rule [-]."""
SAMPLE = 300
"""Solved calls on which launches compete for a place in the rule [-]."""
TILES, MENU = 56, 120
"""Most tiles that compete, and launches of a rule [-]."""
NEAR, TYPICAL, FAR, LARGE = 0.003, 0.01, 0.6, 0.15
"""Regret that costs nothing; costs of a choice that is not the solver's, and of a regret above the last [-]."""
REFUSED = 1e3
"""Loss of a launch that the kernels refuse."""
COMPARISONS = 3000
"""Most comparisons of a device [-]."""
WIDEST = 12
"""Tiles whose last keys and waves are features [-]."""
MORE, RAGGED, PER_RAGGED, SEQUENCES = 200, 40, 50, 8
"""Held-out calls whose keys are halved; most ragged batches, calls for each of them, and its sequences [-]."""
HEADS = ("heads", "kv_heads", "head_dim")
KINDS = {"queries": 2, "group": 2, "packing": 1, "head_dim": 1 << 20, "causal": 1}
"""Features on which it depends whether the kernels take a launch, and the value from which on none differs."""


@strict
def rule(
    algorithm: AlgorithmLike,
    hardware: Hardware | str | Sequence[Hardware | str],
    *,
    implementation: str | Implementation | Sequence[str | Implementation] | None = None,
    domain: Domain | None = None,
    engine: str | None = None,
    size: int = MOST_BYTES,
    calls: int = CALLS,
    seed: int = 0,
    progress: bool = False,
) -> Rule:
    """Learn a rule that chooses tiles, packing and splits, to be written as a function without imports.

    The launches are those of :func:`iomodel.solve` for calls drawn from the domain. A decision tree over integers of
    a call chooses among them so that the predicted time exceeds the least one little; it grows until that is so or the
    written rule has `size` bytes. Further calls, which served no choice, judge it.

    Parameters
    ----------
    algorithm : str or Algorithm
        An algorithm of attention, forward.
    hardware : str, Hardware or sequence of them
        The devices.
    implementation : str, Implementation or sequence of them, optional
        The kernels, or those of each device; the default ones of a call with 8,192 keys.
    domain : Domain, optional
        The calls for which the rule answers.
    engine : {"flash-attention", "aiter"}, optional
        The engine whose function or file the rule is: `num_splits` at the tile that its library takes, or a file of
        configs of the kernel `triton-amd`. :func:`iomodel.triton.rule` learns `kernel_options` of FlexAttention.
    size : int
        Most bytes of the written rule [B].
    calls : int
        Calls of each device to learn from [-].
    seed : int
        Seed of the draws; the same arguments give the same rule.
    progress : bool
        True for a progress bar.

    Raises
    ------
    InputError
        No kernel of the algorithm on a device, a number out of range, or no room for a rule in `size`.

    Examples
    --------
    >>> import iomodel
    >>> found = iomodel.rule("flash2", "mi300x", calls=200)
    >>> found.devices[0].held_out.alike, "import" in found.text("python")
    (1.0, False)
    """
    names: list[Any] = [*hardware] if isinstance(hardware, list | tuple) else [hardware]
    wanted: list[Any] = [*implementation] if isinstance(implementation, list | tuple) else [implementation] * len(names)
    if not names:
        raise InputError("hardware: none given; allowed: devices, such as ['a100-sxm4-80gb', 'h100-sxm5']")
    if len(wanted) != len(names):
        raise InputError(
            f"implementation: {len(wanted)} given for {len(names)} devices; allowed: one, or one for each device"
        )
    pairs = [named(algorithm, kernels, name) for name, kernels in zip(names, wanted, strict=True)]
    declaration = pairs[0][0]
    most, drawn = as_integer("size", size), as_integer("calls", calls, least=100)
    form = engine_of(engine, "iomodel.rule")
    seed, asked = as_integer("seed", seed, least=0), form.domain if domain is None else domain
    if not isinstance(asked, Domain):
        raise InputError(f"domain: {shown(domain)} given; allowed: an iomodel.results.Domain")
    if form.constant and len(names) > 1:
        raise InputError(f"hardware: {len(names)} given; allowed: one, as {engine} has a file for each architecture")
    families = [
        _family(form, declaration, as_device(name), kernels, asked.dtype)
        for name, (_, kernels) in zip(names, pairs, strict=True)
    ]
    plain = Rule(name_of(declaration), asked, most, drawn, seed, (), engine or "")
    return learned(plain, families, progress=progress is True)


def _family(
    engine: Engine, algorithm: Algorithm, device: Hardware, wanted: str | Implementation | None, dtype: str
) -> Family:
    """Find the kernels of an engine on a device: those wanted, or the first that runs there."""
    of_kernels = DividingFamily if engine.value == "x" else Family
    if not engine.kernels:
        return of_kernels.of(algorithm, device, wanted, dtype)
    if wanted is not None:
        if (name := getattr(wanted, "name", wanted)) not in engine.kernels:
            raise InputError(f"implementation: {name} given with an engine; allowed: {', '.join(engine.kernels)}")
        return of_kernels.of(algorithm, device, wanted, dtype)
    *others, last = engine.kernels
    for kernels in others:
        try:
            return of_kernels.of(algorithm, device, kernels, dtype)
        except IOModelError:
            continue
    return of_kernels.of(algorithm, device, last, dtype)


def learned(plain: Rule, families: Sequence[Kernels], *, progress: bool) -> Rule:
    """Learn the devices of a rule that has none, on those widths of its domain that all kernels take."""
    asked = _taken(plain.domain, families)
    constant = plain.form_of_engine.constant
    lessons = [Lesson(family, asked, plain.calls, plain.seed, constant) for family in families]
    total = sum(lesson.parts for lesson in lessons)
    parts = (part for lesson in lessons for part in lesson.learned())
    for _ in watched(parts, total, progress, "parts of the calls"):
        pass
    return _fitting(replace(plain, domain=asked), lessons)


def _taken(domain: Domain, families: Sequence[Kernels]) -> Domain:
    """Leave out the widths that some kernels do not take."""
    widths = tuple(width for width in domain.head_dims if all(family.takes(width) for family in families))
    if not widths:
        raise InputError(f"head_dims: {domain.head_dims} given; allowed: widths that the kernels take on every device")
    return replace(domain, head_dims=widths)


@dataclass
class Lesson:
    """Lesson of one device: its launches, the grown tree, and the calls that judge it."""

    family: Kernels
    domain: Domain
    size: int
    seed: int
    constant: bool = False
    launches: tuple[Launch, ...] = ()
    features: tuple[tuple[str, tuple[int, ...]], ...] = ()
    root: Branch | None = None
    judging: Calls | None = None
    least: Any = None

    @property
    def parts(self) -> int:
        """The parts of all calls."""
        return sum(len(range(0, size, PART)) for size in (self.size, self.size // SOLVED, self.size // HELD_OUT))

    def learned(self) -> Iterator[None]:
        """Solve, time and grow, and yield after each part of the calls."""
        solved = self.domain.drawn(self.size // SOLVED, (self.seed, 0))
        answers, seconds = yield from self._solved(solved)
        self.launches = tuple(self._menu(solved, answers, seconds))
        calls, times = self.domain.drawn(self.size, (self.seed, 1)), []
        for where in _parts(self.size):
            times.append(self.family.times(part_of(calls, where), self.launches))
            yield
        self._grow(calls, np.concatenate(times, axis=1))
        self.judging = self.domain.drawn(self.size // HELD_OUT, (self.seed, 2))
        _, self.least = yield from self._solved(self.judging)

    def _solved(self, calls: Calls) -> Any:
        launches: list[Launch] = []
        seconds = []
        for where in _parts(len(calls["q_len"])):
            answers, times = self.family.solved(part_of(calls, where))
            launches += answers
            seconds.append(times)
            yield
        return launches, np.concatenate(seconds)

    def _menu(self, calls: Calls, answers: Sequence[Launch], seconds: Any) -> list[Launch]:
        """Choose the launches that together lose the least on some solved calls, of all solved tiles and ways to split.

        Launches that are solved most often follow, up to `MENU`.
        """
        plain = [replace(answer, splits=1, fill=0) for answer in answers]
        tiles = sorted({*plain}, key=lambda tile: (-plain.count(tile), *tile.to_dict().values()))[:TILES]
        if self.family.most_splits == 1:
            return tiles
        ways = [(splits, 0) for splits in sorted({answer.splits for answer in answers if _common(answer.splits)})]
        ways += [(0, fill) for fill in FILLS]
        every = [replace(tile, splits=splits, fill=fill) for tile, (splits, fill) in product(tiles, ways)]
        some = np.arange(min(SAMPLE, len(answers)))
        lost = _losses(self.family.times(part_of(calls, some), every) / seconds[some] - 1)
        chosen: list[int] = []
        left = np.full(len(some), REFUSED)
        while len(chosen) < MENU:
            sums = np.minimum(left, lost).sum(axis=1)
            best = int(sums.argmin())
            if sums[best] >= left.sum() - 1e-9:
                break
            chosen.append(best)
            left = np.minimum(left, lost[best])
        usual = [replace(tile, splits=0, fill=fill) for tile in tiles for fill in (2, 4)]
        usual += [replace(tile, splits=1, fill=0) for tile in tiles]
        return list(dict.fromkeys([*(every[place] for place in chosen), *usual]))[:MENU]

    def _grow(self, calls: Calls, times: Any) -> None:
        """Grow the tree on calls with the times of all launches."""
        rows, keys = ([*dict.fromkeys(getattr(launch, name) for launch in self.launches)][:WIDEST]
                      for name in ("block_q", "block_kv"))  # fmt: skip
        self.features = tuple(candidates(rows[:4], keys, self.family.units))
        letters = letters_of(calls)
        columns = np.stack([FEATURES[name](*numbers).value(letters) for name, numbers in self.features])
        legal = np.isfinite(times).T
        kinds = {place: KINDS[name] for place, (name, _) in enumerate(self.features) if name in KINDS}
        lost = _losses(times / times.min(axis=0) - 1).T
        if self.constant:
            legal = np.ones_like(legal)
        self.root = Grower(lost, columns).grown(0 if self.constant else COMPARISONS, legal, kinds)

    def nodes(self, level: float) -> tuple[tuple[Launch, ...], tuple[Node, ...]]:
        """Return the launches and nodes of the comparisons from a level on."""
        assert self.root is not None
        nodes: list[Node] = []
        used: dict[int, int] = {}

        def add(branch: Branch) -> int:
            place = len(nodes)
            if not _divides(branch, level):
                nodes.append(Node("", (), used.setdefault(branch.best, len(used))))
                return place
            name, numbers = self.features[branch.feature]
            nodes.append(Node(name, numbers, branch.most))
            below, above = (add(half) for half in branch.halves)
            nodes[place] = replace(nodes[place], below=below, above=above)
            return place

        add(self.root)
        return tuple(self.launches[place] for place in used), tuple(nodes)

    def levels(self) -> Iterator[float]:
        """Yield the levels of all comparisons that are not forced."""
        waiting = [self.root]
        while waiting:
            branch = waiting.pop()
            if branch is not None and branch.halves:
                waiting.extend(branch.halves)
                if np.isfinite(branch.level):
                    yield branch.level / self.size

    def ruled(self, level: float) -> DeviceRule:
        """Return the rule of the device, its regrets left open."""
        launches, nodes = self.nodes(level * self.size)
        family, unknown = self.family, Regret(10**6, 0.999999, 0.999999, 99.999999)
        return DeviceRule(
            str(family.device.id), family.name, family.units, family.most_splits, launches, nodes,
            unknown, unknown, unknown, unknown,
        )  # fmt: skip

    def judged(self, found: DeviceRule) -> DeviceRule:
        """Add the regrets of a rule."""
        assert self.judging is not None
        places = found.places(self.judging)
        own = self.family.times(self.judging, found.launches, places)
        none = Regret(0, 0.0, 0.0, 0.0)
        divides = found.most_splits > 1
        return replace(
            found,
            held_out=Regret.of(own, self.least),
            shipped=Regret.of(self.family.shipped(self.judging), self.least) if self.family.ships else none,
            shorter=self._shorter(found, places) if divides else none,
            ragged=self._ragged(found) if divides else none,
        )

    def _shorter(self, found: DeviceRule, places: Any) -> Regret:
        """Judge splits that are fixed for the keys of a call, when half of the keys are there."""
        assert self.judging is not None
        some = np.flatnonzero(self.judging["kv_len"] >= 2 * np.maximum(self.judging["q_len"], LEAST_KEYS))[:MORE]
        calls = part_of(self.judging, some)
        launches = [found.launches[place] for place in places[some].tolist()]
        divided = np.diagonal([launch.divided(calls, found.units, found.most_splits) for launch in launches])
        fixed = [replace(launch, splits=int(splits)) for launch, splits in zip(launches, divided, strict=True)]
        half = {**calls, "kv_len": calls["kv_len"] // 2}
        _, least = self.family.solved(half)
        return Regret.of(self.family.times(half, fixed, np.arange(len(some))), least)

    def _ragged(self, found: DeviceRule) -> Regret:
        """Judge the choices for sequences of different lengths with one query each.

        They stand for as many of the longest as their keys fill: rounded down, since the longest ends last.
        """
        size = min(RAGGED, self.size // PER_RAGGED)
        random, calls = np.random.default_rng((self.seed, 5)), self.domain.drawn(size, (self.seed, 5))
        least, own = [], []
        for place in range(size):
            lengths = np.exp(random.uniform(np.log(LEAST_KEYS), np.log(calls["kv_len"][place]), SEQUENCES)).astype(int)
            longest, heads = int(lengths.max()), {name: int(calls[name][place]) for name in HEADS}
            alike = {"q_len": 1, "kv_len": longest, "batch": int(lengths.sum()) // longest, **heads}
            one = {name: np.array([value]) for name, value in {**alike, "causal": False}.items()}
            launch = found.launches[int(found.places(one)[0])]
            splits = int(launch.divided(one, found.units, found.most_splits)[0])
            call = VarlenAttention(q_lens=(1,) * SEQUENCES, kv_lens=lengths.tolist(), dtype=self.family.dtype, **heads)
            times = self.family.ragged(call, replace(launch, splits=splits))
            least.append(times[0])
            own.append(times[1])
        return Regret.of(np.array(own), np.array(least))


def _parts(size: int) -> list[Any]:
    return [np.arange(start, min(start + PART, size)) for start in range(0, size, PART)]


def _common(splits: int) -> bool:
    """Check that splits are a power of two, or one and a half of one; others follow the SMs."""
    return splits > 0 and splits // (splits & -splits) in (1, 3)


def _losses(regret: Any) -> Any:
    """Weigh regrets: those above the tolerance count apart from their size, and large ones once more."""
    known = np.isfinite(regret)
    excess = np.where(known, regret, 0.0)
    lost = np.clip(excess - NEAR, 0, 1) + TYPICAL * (excess > SHARE) + FAR * (excess > LARGE)
    return np.where(known, lost, REFUSED).astype(np.float64)


def _choices(branch: Branch, level: float) -> set[int]:
    """Return the launches below a node."""
    if not branch.halves or branch.level < level:
        return {branch.best}
    return set().union(*(_choices(half, level) for half in branch.halves))


def _divides(branch: Branch, level: float) -> bool:
    """Check that a node is divided from a level on, and that its halves choose differently."""
    return bool(branch.halves) and branch.level >= level and len(_choices(branch, level)) > 1


def _fitting(plain: Rule, lessons: Sequence[Lesson]) -> Rule:
    """Take the comparisons of the highest gain of all devices that the size has room for, and judge the rules."""
    levels = sorted({level for lesson in lessons for level in lesson.levels()}, reverse=True)

    def at(level: float) -> Rule:
        return replace(plain, devices=tuple(lesson.ruled(level) for lesson in lessons))

    if bytes_of(at(np.inf)) > plain.size:
        raise InputError(
            f"size: {plain.size:,} B given; allowed: from {bytes_of(at(np.inf)):,} B up, for {len(lessons)} devices"
        )
    first, last = 0, len(levels)
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if bytes_of(at(levels[middle - 1])) <= plain.size else (first, middle - 1)
    best = at(levels[first - 1]) if first else at(np.inf)
    devices = (lesson.judged(found) for lesson, found in zip(lessons, best.devices, strict=True))
    return replace(best, devices=tuple(devices))
