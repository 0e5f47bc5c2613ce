"""Crossovers equal a walk over every point, and formulas lie within one step of it where tiles divide."""

from __future__ import annotations

import json
from dataclasses import replace
from math import lcm
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm, list_algorithms
from iomodel.studies.crossovers import points
from iomodel.studies.crossovers.contenders import label_of, parsed
from iomodel.studies.crossovers.tables import HEAD, TAIL, winners
from tests.support.inside import kind_of, main, structural, tally
from tests.support.strategies import at_most

W = iomodel.Attention(q_len=1, head_dim=64)
TILES = {"block_q": 64, "block_kv": 64}
SMALL = {"projected": 5, "rank": 2, "top_k": 3, "splits": 2}
"""Options that let short calls be answered."""
EXACT = ["flash1", "flash2", "small_cache", "split_kv", "standard", "tiled_query"]
BESIDE = [name for name in ("linear_transformer", "linformer", "loki") if name in list_algorithms()]
"""Of those that are not exact some whose formulas are soon made: of any mask, of none, and with requirements."""


@st.composite
def contender(draw: st.DrawFn, mask: Any) -> tuple[str, dict[str, Any]]:
    """An algorithm with options and tiles of its own."""
    name = draw(st.sampled_from([name for name in EXACT + BESIDE if mask in (algorithm(name).masks or [mask])]))
    found = algorithm(name)
    options: dict[str, Any] = {key: SMALL[key] for key in found.takes("forward") if key in SMALL}
    complete = {"packed": False, **found.takes("forward"), **options}
    tiles = tally(algorithm(name), kind_of(W.model_copy(update={"mask": mask})), structural(complete)).tiles
    sizes = {tile: draw(st.integers(1, 12)) for tile in tiles}
    return name, {**options, **sizes}


@st.composite
def question(draw: st.DrawFn) -> tuple[iomodel.Attention, list[tuple[str, dict[str, Any]]]]:
    mask = draw(st.sampled_from(["full", "causal"]))
    count = draw(st.integers(2, 3))
    chosen = draw(st.lists(contender(mask), min_size=count, max_size=count, unique_by=lambda one: one[0]))
    w = iomodel.Attention(q_len=1, head_dim=draw(st.integers(2, 20)), heads=draw(st.integers(1, 2)), mask=mask)
    return w, chosen


def at(w: iomodel.Attention, over: str, n: int) -> iomodel.Attention:
    fields = {"length": ("q_len", "kv_len"), "head_dim": ("head_dim", "value_dim")}.get(over, (over,))
    return w.model_copy(update=dict.fromkeys(fields, n))


def counted(w: iomodel.Attention, one: tuple[str, dict[str, Any]], quantity: str) -> int | None:
    """The value at one point, None where the algorithm does not answer."""
    name, given = one
    sizes = {key: size for key, size in given.items() if "block" in key and key not in algorithm(name).options}
    try:
        cost = iomodel.cost(name, w, sizes or None, **{k: v for k, v in given.items() if k not in sizes})
    except iomodel.InputError:
        return None
    return getattr(cost, quantity)  # type: ignore[no-any-return]


def walked(values: list[list[int | None]], labels: tuple[str, ...], points: list[int]) -> list[tuple[Any, ...]]:
    """Who is least, as runs over all points."""
    runs: list[list[Any]] = []
    for place, n in enumerate(points):
        here = [column[place] for column in values]
        present = [value for value in here if value is not None]
        least = tuple(label for label, value in zip(labels, here, strict=True) if present and value == min(present))
        if runs and runs[-1][2] == least:
            runs[-1][1] = n
        else:
            runs.append([n, n, least])
    return [tuple(run) for run in runs]


def check_pair(
    pair: iomodel.results.Crossover, mine: list[int | None], other: list[int | None], points: list[int]
) -> None:
    below = [
        n for n, a, b in zip(points, mine, other, strict=True) if a is not None and (b is None or a < b)
    ]  # alone is below too
    assert pair.first == (below[0] if below else None)
    rest = [n for n in points if n not in below]
    lasting = next((n for n in points if not rest or n > rest[-1]), None)
    assert pair.lasting == lasting
    inside = {n for first, last in pair.below for n in points if first <= n <= last}
    assert inside == set(below)
    assert pair.equal == sum(a == b and a is not None for a, b in zip(mine, other, strict=True))


QUANTITY = {"bytes": "hbm_bytes", "elements": "hbm_elements", "flops": "flops", "exps": "exps"}


@at_most(30)
@given(asked=question(), metric=st.sampled_from(list(QUANTITY)), over=st.sampled_from(["length", "length", "batch"]))
def test_equals_a_walk_over_every_point(asked: Any, metric: str, over: str) -> None:
    w, chosen = asked
    if over != "length":
        w = w.model_copy(update={"q_len": 12, "kv_len": 12})
    points = list(range(1, 25))
    found = iomodel.crossovers(chosen, w, over=over, metric=metric, limit=24)
    values = [[counted(at(w, over, n), one, QUANTITY[metric]) for n in points] for one in chosen]
    runs = walked(values, found.labels, points)
    assert [tuple(run) for run in found.winners] == runs
    assert found.changes == len(runs) - 1
    assert found.looked == 24
    for pair in found.pairs:
        i, j = found.labels.index(pair.challenger), found.labels.index(pair.incumbent)
        check_pair(pair, values[i], values[j], points)
    for label, column in zip(found.labels, values, strict=True):
        assert list(found.values[label]) == [column[n - 1] for n in found.points]
        assert found.missing.get(label, 0) == column.count(None)


@given(
    amount=st.integers(20, 400),
    width=st.integers(1, 6),
    over=st.sampled_from(["length", "sram_elements", "head_dim"]),
    metric=st.sampled_from(["bytes", "flops"]),
)
def test_at_the_best_tiles_of_each_equals_the_solver(amount: int, width: int, over: str, metric: str) -> None:
    w = iomodel.Attention(q_len=10, head_dim=width)
    names = ["flash1", "small_cache"]
    budget = {} if over == "sram_elements" else {"sram_elements": amount}
    points = list(range(1, 31)) if over != "sram_elements" else list(range(amount, amount + 30))
    found = iomodel.crossovers(names, w, over=over, metric=metric, start=points[0], limit=points[-1], **budget)
    assert found.proof.startswith("exact")
    values: list[list[int | None]] = []
    for name in names:
        values.append([])
        for n in points:
            call = w if over == "sram_elements" else at(w, over, n)
            try:
                cost = iomodel.solve(name, call, sram_elements=n if over == "sram_elements" else amount).cost
            except iomodel.InfeasibleError:
                values[-1].append(None)
            else:
                values[-1].append(getattr(cost, QUANTITY[metric]))
    assert [tuple(run) for run in found.winners] == walked(values, tuple(names), points)
    check_pair(found.pair("flash1", "small_cache"), values[0], values[1], points)


@given(
    width=st.integers(1, 80),
    rows=st.integers(1, 8),
    keys=st.integers(1, 8),
    scale=st.integers(1, 16),
    names=st.permutations(["flash1", "flash2", "standard", "small_cache", "tiled_query"]),
    metric=st.sampled_from(["bytes", "elements"]),
)
def test_a_formula_lies_within_one_step_where_tiles_divide(
    width: int, rows: int, keys: int, scale: int, names: list[str], metric: str
) -> None:
    """There the relaxed counts are the exact ones, and between lengths of 0 and infinity they have one root."""
    tiles = {"block_q": rows * scale, "block_kv": keys * scale}
    step = lcm(*tiles.values())
    w = iomodel.Attention(q_len=1, head_dim=width)
    found = iomodel.crossovers(names[:2], w, tiles=tiles, metric=metric, start=step, step=step, limit=400 * step)
    pair, back = found.pair(*names[:2]), found.pair(*names[1::-1])
    assert pair.formula == back.formula
    if pair.formula is None:
        assert pair.no_formula
        assert pair.changes == 0
        return
    symbols = {str(symbol): symbol for symbol in pair.formula.expression.free_symbols}
    numbers = {"d": width, "B_r": tiles["block_q"], "B_c": tiles["block_kv"]}
    exact = pair.formula.expression.subs({symbols[name]: numbers[name] for name in symbols})
    assert float(exact) == pytest.approx(pair.formula.value)
    for one, other in ((pair, back), (back, pair)):
        if one.lasting is not None and one.lasting > step and one.lasting < found.limit and not one.equal:
            assert one.lasting - step < pair.formula.value < one.lasting
            assert other.lasting is None
            assert other.first == step
    if pair.changes == 0:
        assert pair.formula.value <= step or pair.formula.value >= found.limit


@settings(max_examples=6)
@given(n=st.integers(1, 65536), rows=st.integers(1, 40), keys=st.integers(1, 40))
def test_the_winner_is_the_least_at_any_point(n: int, rows: int, keys: int) -> None:
    chosen = [
        (name, {"block_q": 8 * rows, "block_kv": 8 * keys} if name != "standard" else {})
        for name in ("flash1", "flash2", "standard")
    ]
    found = iomodel.crossovers(chosen, W)
    values = {label: counted(at(W, "length", n), one, "hbm_bytes") for label, one in zip(found.labels, chosen,
                                                                                        strict=True)}  # fmt: skip
    least = tuple(label for label, value in values.items() if value == min(filter(None, values.values())))
    if found.changes < 1000:
        (winners,) = (run[2] for run in found.winners if run[0] <= n <= run[1])
        assert winners == least


def test_known_crossovers() -> None:
    """M = 2/3 d^2, and 64 x 64 tiles of FlashAttention against ideal passes, as in test_least_sram.py."""
    found = iomodel.crossovers(["flash1", "standard"], W, tiles=TILES)
    assert found.pair("flash1", "standard").lasting == 136
    assert found.winners[-1] == (136, 65536, ("flash1",))
    three = str(iomodel.crossovers(["flash1", "standard", "flash2"], W, tiles=TILES))
    assert "flash1 vs standard: no formula (the relaxed counts are equal nowhere)" in three
    assert "flash1 vs flash2: never equal (flash2 always moves less)" in three
    w = iomodel.Attention(q_len=4096, head_dim=64)
    memory = iomodel.crossovers(["small_cache", "flash2"], w, over="sram_elements", limit=8192, metric="elements")
    pair = memory.pair("flash2", "small_cache")
    assert pair.formula is not None
    assert str(pair.formula.expression) == "2*d**2/3"
    assert pair.formula.value == pytest.approx(2 / 3 * 64**2)
    assert pair.lasting is not None
    assert pair.formula.value < pair.lasting < 1.2 * pair.formula.value
    in_bytes = iomodel.crossovers(["small_cache", "flash2"], w, over="sram_bytes", limit=2048).pairs[0]
    assert in_bytes.formula is not None
    assert in_bytes.formula.value == pytest.approx(2 * pair.formula.value)


def test_a_formula_of_two_lengths_by_hand() -> None:
    """Beside reading Q, K, V and writing O once: N_q of LSE and K, V once more a query tile, against S and P twice."""
    w = iomodel.Attention(q_len=512, kv_len=2048, head_dim=64)
    found = iomodel.crossovers(["flash2", "standard"], w, tiles=TILES, over="head_dim", metric="elements")
    pair = found.pair("flash2", "standard")
    assert pair.formula is not None
    n_q, n_k, rows = 512, 2048, TILES["block_q"]
    value = n_q * (4 * n_k - 1) / (2 * n_k * (n_q // rows - 1))
    assert pair.formula.value == pytest.approx(value)
    assert pair.below == ((1, int(value)),)
    assert {str(symbol) for symbol in pair.formula.expression.free_symbols} == {"B_r", "N_q", "N_k"}


def test_twice_the_first_tile_is_a_formula_with_both_names() -> None:
    """Tiles of two sizes have two letters; tiles of the same size one."""
    apart = iomodel.crossovers(["flash2", "flash1:block-q=32,block-kv=200"], W, tiles=TILES, limit=100).pairs[0]
    assert apart.formula is not None
    assert {"B_r^flash2", "B_c^flash1"} <= {str(symbol) for symbol in apart.formula.expression.free_symbols}
    same = iomodel.crossovers(["flash2", "flash1"], W, tiles={"block_q": 48, "block_kv": 100}, limit=100)
    assert same.pairs[0].formula is not None
    assert {str(symbol) for symbol in same.pairs[0].formula.expression.free_symbols} == {"B_r", "B_c", "d"}
    assert same.pairs[0]._repr_latex_() is not None
    assert "\\approx 99" in str(same._repr_latex_())


def test_time_at_every_point_is_that_of_the_estimates() -> None:
    w = iomodel.Attention(q_len=1, head_dim=64, heads=8)
    found = iomodel.crossovers(
        ["flash2:block-kv=32", "flash2:block-kv=64"], w, "a100-sxm4-80gb", metric="time", tiles={"block_q": 64},
        over="kv_len", start=60, limit=70, exhaustive=True,
    )  # fmt: skip
    seconds = [
        [
            iomodel.estimate("flash2", w.model_copy(update={"kv_len": n}), "a100-sxm4-80gb",
                             {"block_q": 64, "block_kv": size}).seconds
            for n in range(60, 71)
        ]
        for size in (32, 64)
    ]  # fmt: skip
    assert [tuple(run) for run in found.winners] == walked(seconds, found.labels, list(range(60, 71)))  # type: ignore[arg-type]
    assert found.pairs[0].formula is None


def test_some_points_find_the_neighbours_between_which_it_changes() -> None:
    tiles = {"block_q": 48, "block_kv": 100}
    whole = iomodel.crossovers(["flash2", "flash1"], W, tiles=tiles, limit=5000)
    some = iomodel.crossovers(["flash2", "flash1"], W, tiles=tiles, limit=5000, exhaustive=False)
    assert some.looked < 200
    assert "may be missed" in some.proof
    starts = {first for first, _, _ in whole.winners}
    assert {first for first, _, _ in some.winners} <= starts
    assert some.pairs[0].lasting == whole.pairs[0].lasting


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Any = {"tiles": {"block_q": 48, "block_kv": 100}, "limit": 300}
    whole = iomodel.crossovers(["flash2", "flash1"], W, **asked)
    monkeypatch.setattr(points, "CHUNK", 7)
    assert iomodel.crossovers(["flash2", "flash1"], W, **asked) == whole


def test_the_short_answer_is_one_of_the_long_one() -> None:
    for challenger, incumbent in (("flash1", "standard"), ("standard", "flash1"), ("flash1", "flash1")):
        short = iomodel.theory.crossover(challenger, incumbent, W, TILES, up_to=300)
        if challenger == incumbent:
            assert short is None
        else:
            long = iomodel.crossovers([challenger, incumbent], W, tiles=TILES, limit=300)
            assert short == long.pair(challenger, incumbent).lasting


def test_points_at_which_an_algorithm_does_not_answer_are_told() -> None:
    w = iomodel.Attention(q_len=1, head_dim=64, mask="causal")
    found = iomodel.crossovers(["flash2", "sparse_transformer:fixed,second"], w, sram_elements=10_000, limit=2000)
    assert found.missing["sparse_transformer:fixed,second"] == sum(point % 128 > 0 for point in found.points)
    assert "approximates attention" in str(found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"algorithms": ["flash2"]}, "algorithms: 1 given; allowed: from 2 to 16"),
        ({"algorithms": "flash2"}, "algorithms: 'flash2' given"),
        ({"algorithms": ["flash2", "flash2"]}, "algorithms: flash2 given twice with the same options"),
        ({"algorithms": ["flash2", "flash2:block-q=64"]}, "algorithms: flash2 given twice with the same options"),
        ({"algorithms": ["flash2", "flash2:lse"]}, "algorithms: flash2 given twice with the same options"),
        ({"algorithms": ["flash2", "flash"]}, "algorithm: 'flash' is unknown; did you mean"),
        ({"algorithms": ["flash2", "split_kv:splits=x"]}, "algorithms: 'split_kv:splits=x' given; allowed: as"),
        ({"algorithms": ["flash2", "split_kv:splits=2,splits=3"]}, "gives splits twice"),
        ({"algorithms": ["flash2", "flash1:no-lse"]}, "option of flash1: 'lse' is unknown"),
        ({"algorithms": ["flash2", "standard:block-q=8"]}, "tile of standard: 'block_q' is unknown"),
        ({"algorithms": ["flash2", 3]}, "algorithms: 3 given"),
        ({"algorithms": ["flash2", "two_pass"]}, "direction: 'forward' given; allowed: backward"),
        ({"metric": "watts"}, "metric: 'watts' is unknown"),
        ({"metric": "time"}, "hardware: none given with metric 'time'"),
        ({"metric": "time", "hardware": "h100-sxm5", "sram_bytes": 5}, "hardware: sram_bytes given with metric 'time'"),
        ({"over": "heads"}, "over: 'heads' is unknown"),
        ({"over": "sram_bytes", "sram_elements": 5, "tiles": None}, "over: sram_bytes given with sram_elements"),
        ({"limit": 10, "start": 20}, "limit: 10 given; allowed: at least start = 20"),
        ({"limit": 0}, "limit: 0 given"),
        ({"step": 0}, "step: 0 given"),
        ({"limit": 10**8, "exhaustive": True}, "limit: 100000000 given, 100,000,000 points"),
        ({"tiles": None}, "tiles: none given for flash2, nor a budget; allowed: its tiles block_q, block_kv"),
        ({"tiles": {"block_q": 64}}, "block_kv: flash2 needs this tile"),
        ({"tiles": {**TILES, "block_x": 1}}, "tile or option of flash2 and standard: 'block_x' is unknown"),
        ({"splits": 2}, "tile or option of flash2 and standard: 'splits' is unknown"),
        ({"tiles": None, "sram_bytes": 100, "sram_elements": 100}, "2 values given; allowed: exactly one"),
        ({"exhaustive": 1}, "exhaustive: 1 given"),
        ({"workload": iomodel.VarlenAttention(q_lens=[3, 4], head_dim=8)}, "workload: VarlenAttention"),
        ({"workload": W.model_copy(update={"q_len": 8, "kv_len": 8, "mask": iomodel.Documents([3, 5])})}, "mask: "),
    ],
)
def test_bad_questions_are_one_line(given: dict[str, Any], says: str) -> None:
    asked = {"algorithms": ["flash2", "standard"], "workload": W, "tiles": TILES, **given}
    with pytest.raises(iomodel.IOModelError) as caught:
        iomodel.crossovers(**asked)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    said=st.dictionaries(
        st.sampled_from(["splits", "lse", "block_q", "tiled"]), st.integers(0, 10**9) | st.booleans(), max_size=3
    )
)
def test_a_label_is_what_one_types(said: dict[str, Any]) -> None:
    assert parsed(label_of("flash2", said)) == ("flash2", said)


def test_the_command_says_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    line = "crossover flash1 standard flash2:block-q=32 --head-dim 64 --block-q 64 --block-kv 64 --limit 500 --json"
    assert main(line.split()) == 0
    expected = iomodel.crossovers(["flash1", "standard", "flash2:block-q=32"], W, tiles=TILES, limit=500)
    assert json.loads(capsys.readouterr().out) == json.loads(expected.to_json())
    line = "crossover small_cache flash2 --q-len 256 --head-dim 8 --over sram_elements --limit 900 --metric elements"
    assert main(line.split()) == 0
    out = capsys.readouterr().out
    assert "small_cache vs flash2: equal at M = 2*d**2/3" in out
    assert "(a formula of relaxed counts: " in out
    assert "the tables hold the exact counts)" in " ".join(out.split())
    for wrong in ("crossover flash2", "crossover flash2 flash1 --over watts", "crossover flash2 flash2 --head-dim 64"):
        assert main(wrong.split()) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1


def test_the_picture_has_the_curves_and_the_crossings(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    from iomodel import plots

    found = iomodel.crossovers(["flash1", "flash2"], W, tiles={"block_q": 48, "block_kv": 100}, limit=2000)
    drawn = plots.crossover(found)
    names = [artist.get_gid() for artist in drawn.findobj(lambda artist: (artist.get_gid() or "") != "")]
    assert {"curve flash1", "curve flash2", "formula flash1 flash2", "change 97"} <= set(names)
    for label, values in found.values.items():
        (line,) = drawn.findobj(lambda artist, label=label: artist.get_gid() == f"curve {label}")
        ratios = [value / base for value, base in zip(values, found.values["flash1"], strict=True)]
        assert dict(zip(*map(list, line.get_data()), strict=True)) == dict(zip(found.points, ratios, strict=True))
    with pytest.raises(iomodel.InputError, match="crossovers: 3 given"):
        plots.crossover(3)  # type: ignore[arg-type]
    path = tmp_path / "x.svg"
    line_typed = f"plot crossover flash1 flash2 --head-dim 64 --block-q 48 --block-kv 100 --limit 300 --output {path}"
    assert main(line_typed.split()) == 0
    assert path.read_text().startswith("<?xml")


def test_an_algorithm_may_meet_itself() -> None:
    """At other tiles: each has letters of its own in the formula, 4 N^2 / 128 against 4 B of LSE a row here."""
    w = iomodel.Attention(q_len=1, head_dim=1)
    small = ("flash2", {"block_q": 64, "block_kv": 64, "lse": False})
    found = iomodel.crossovers([small, ("flash2", {"block_q": 128, "block_kv": 64})], w, limit=2000)
    assert found.pairs[1].lasting == 193
    assert found.pairs[0].formula is not None
    assert found.pairs[0].formula.value == 128


def test_fewer_keys_than_splits_leave_points_out() -> None:
    w = iomodel.Attention(q_len=1, head_dim=16)
    found = iomodel.crossovers(["flash2", "split_kv:splits=4"], w, sram_elements=3000, limit=40)
    assert found.to_dict()["missing"]["split_kv:splits=4"] >= 3


@pytest.mark.parametrize(
    ("names", "asked", "told"),
    [
        (["flash1", "flash2"], {"tiles": TILES}, "at the given tiles"),
        (["flash1", "flash2"], {"sram_bytes": 9000}, "at the best tiles for 9,000 bytes"),
        (["flash1", "flash2"], {"over": "sram_elements", "limit": 999}, "at the best tiles"),
        (
            ["flash1:block-q=8,block-kv=8", "flash2"],
            {"hardware": "h100-sxm5"},
            "at the given tiles, else the best tiles for NVIDIA H100",
        ),
        (
            ["flash2:block-q=64,block-kv=64", "flash2"],
            {"hardware": "a100-sxm4-80gb", "metric": "time", "start": 100, "limit": 100},
            "at the given tiles, else the fastest tiles on NVIDIA A100 SXM4 80GB",
        ),
    ],
)
def test_the_title_says_at_which_tiles(names: list[str], asked: dict[str, Any], told: str) -> None:
    found = iomodel.crossovers(names, W, **{"limit": 50, **asked})
    assert told in " ".join(str(found).split())  # a long title is broken


def test_a_table_of_winners_accounts_for_every_interval() -> None:
    """Long studies show either end; the intervals shown and those told make up all."""
    found = iomodel.crossovers(["flash2", "flash1"], W, over="length", limit=30, sram_elements=20_000)
    for kept in (1, HEAD + TAIL, HEAD + TAIL + 1, 40):
        part = replace(found, winners=[found.winners[0]] * kept, changes=kept - 1)
        rows = winners(part, "N").rows
        more = [int(first.split()[0].replace(",", "")) for first, *_ in rows if first.endswith(" more")]
        assert len(rows) - len(more) + sum(more) == kept
        assert len(rows) <= HEAD + TAIL + 1
