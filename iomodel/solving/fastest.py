"""Tiles of least time on a device, with the tiles beside them that a reader compares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from iomodel.common.frozen_dict import FrozenDict
from iomodel.solving.candidates import Candidates, candidates
from iomodel.solving.certificate import RunnerUp
from iomodel.solving.default_tiles import shipped_choice
from iomodel.solving.on_device import TimedTiles, binding_of
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.timing.clock import TimedLaunch
from iomodel.timing.totals import dram_interval, seconds_of


def solve_fastest(question: Question, top: int = 1) -> Solution:
    """Solve for the least time, as :func:`iomodel.solve` with ``objective="time"``.

    Of choices within `TIE` of the fastest, which the model cannot tell apart, the one that the library ships is taken,
    else the one that leaves the fewest SMs idle.
    """
    ranked = _ranking(question)
    group, place, way, sizes = ranked.first
    return Solution.comparing(
        lambda: vars(_compared(question)),
        algorithm=question.name,
        tiles=FrozenDict({**sizes, "warps": way.launch.warps, "stages": way.launch.stages}),
        cost=group.bound(place).cost(sizes),
        implementation=question.library.name,
        known_seconds=seconds_of(_launched(ranked).times, question.parameters),
        searched=(*group.setting.searched,),
        ranked=_best(_whole(question), top) if top > 1 else (),
        notes=(),
        hardware=question.device,
    )


@lru_cache(maxsize=1)  # a solution whose certificate is read later searches anew, and keeps no arrays
def _candidates(question: Question) -> Candidates:
    return candidates(question, whole=False)


@lru_cache(maxsize=1)
def _ranking(question: Question) -> Candidates:
    return _preferred(_candidates(question), question)


def _whole(question: Question) -> Candidates:
    """Return all candidates, those left out in the ranking included."""
    known = _candidates(question)
    return _preferred(known.whole, question) if known.left else _ranking(question)


def _preferred(ranked: Candidates, question: Question) -> Candidates:
    shipped = shipped_choice(question)
    led = None if shipped is None else ranked.led_by(question, shipped)
    return ranked.filled if led is None else led


def _best(ranked: Candidates, top: int) -> tuple[RunnerUp, ...]:
    return tuple(as_runner_up(ranked, place) for place in islice(distinct(ranked), top))


def _launched(ranked: Candidates) -> TimedLaunch:
    """Time the fastest candidate by itself."""
    group, place, way, sizes = ranked.first
    plain = {name: sizes[name] for name in group.setting.variants.ask.compiled.tiles}
    query, key = (sizes[name] for name in way.placement.tiles)
    fit = way.placement.fit(query, key, way.launch)
    return group.clock(place).timed(plain, way.placement, way.launch, fit)


def _compared(question: Question) -> Solution:
    """Return the solution of a search with the tiles that its certificate compares."""
    ranked = _whole(question)
    setting, way, tile, seconds = ranked.of(0)
    launch = _launched(ranked)
    cost = setting.variants.cost(way.sizes(tile))
    columns = ranked.columns
    slower = next((place for place in distinct(ranked) if columns["seconds"][place] > seconds), None)
    alike = (columns["family"] == columns["family"][0]) & (columns["number"] == columns["number"][0])
    timed = TimedTiles(
        seconds_of(launch.times, question.parameters),
        dram_interval(
            launch.kernels,
            question.compulsory.bytes,
            cost.hbm_bytes,
            setting.clock.rates.cached,
        ),
        as_runner_up(ranked, int(columns["requested"].argmin())),
        shipped_of(question),
        len(ranked),
        len({ranked.key(place) for place in ranked.ties}),
    )
    cheapest = int((columns["requested"] + ~alike * columns["requested"].max()).argmin())
    return setting.variants.solution(
        ranked.cost(cheapest).hbm_bytes,
        way,
        tile,
        0.0,
        None if slower is None else as_runner_up(ranked, slower),
        binding_of(way, tile, "time"),
        timed,
    )


def distinct(ranked: Candidates) -> Iterator[int]:
    """Yield the best launch of each setting of tiles, warps, stages and options."""
    known = set()
    for place in range(len(ranked)):
        key = ranked.key(place)
        if key not in known:
            known.add(key)
            yield place


def as_runner_up(ranked: Candidates, place: int) -> RunnerUp:
    """Return a candidate with its traffic and time, searched options included."""
    setting, way, tile, seconds = ranked.of(place)
    sizes = way.sizes(tile)
    launch = {"warps": way.launch.warps, "stages": way.launch.stages}
    if any(size > way.ranges[name].rows for name, size in sizes.items()):
        # A tile beyond the end of an axis is searched in the coarsest layout alone; its launch takes the fastest.
        seconds = min(seconds, setting.clock.fastest(sizes, launch).seconds)
    tiles = {**sizes, **launch, **{name: int(value) for name, value in setting.searched.items()}}
    return RunnerUp(FrozenDict(tiles), ranked.cost(place).hbm_bytes, seconds)


def shipped_of(question: Question) -> RunnerUp | None:
    """Return the shipped choice of an implementation with its traffic and time; None if none fits."""
    shipped = shipped_choice(question)
    if shipped is None:
        return None
    chosen = {name: shipped.options[name] for name in question.library.searched if name in shipped.options}
    options = {name: value for name, value in chosen.items() if name not in question.options}
    call = question.adding(options).bound
    cost = call.cost({name: shipped.tiles[name] for name in call.tiles})
    sizes = {**shipped.tiles, **{name: int(value) for name, value in options.items()}}
    return RunnerUp(FrozenDict(sizes), cost.hbm_bytes, shipped.seconds)
