"""Pictures: what is drawn is what the library says, files are whole, no global state is touched."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iomodel
from iomodel import optimum, plots
from iomodel.plots import words
from iomodel.plots.breakdown import BINDS
from iomodel.plots.canvas import COLOURS, MARKERS, log_ticks
from iomodel.plots.tile_map import even, tile_map
from tests.shipped import DEVICES, table
from tests.support.inside import NAME_OF, main

matplotlib = pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[2]
W = iomodel.Attention(heads=4, kv_heads=2, q_len=1024, head_dim=64, mask="causal")
FP16 = W.model_copy(update={"dtype": "fp16", "kv_dtype": "fp16"})
GPU = "a100-sxm4-80gb"


@dataclass(frozen=True)
class Stub:
    """What pictures read of an estimate."""

    algorithm: str = "flash2"
    workload: Any = W
    hardware: Any = field(default_factory=lambda: iomodel.hardware(GPU))
    tiles: Any = field(default_factory=lambda: {"block_q": 128, "block_kv": 64, "warps": 4})
    seconds: float = 5e-5
    limited_by: str = "matrix"
    breakdown: Any = field(default_factory=lambda: {"hbm": 1e-5, "matrix": 4e-5, "launch": 2e-6})
    dram_bytes: Any = (1_000_000, 8_000_000)
    intensity: float = 240.0
    kernels: tuple[Any, ...] = (
        SimpleNamespace(
            streamed_bytes=1_500_000, seconds=4.6e-5, breakdown={"hbm": 6e-6, "matrix": 4e-5, "launch": 1e-6}
        ),
        SimpleNamespace(streamed_bytes=500_000, seconds=4e-6, breakdown={"hbm": 4e-6, "launch": 1e-6}),
    )

    @property
    def flops_per_second(self) -> float:
        return self.intensity * 2_000_000 / self.seconds


def drawn(figure: Any, gid: str) -> Any:
    """The one artist of that name."""
    (found,) = figure.findobj(lambda artist: artist.get_gid() == gid)
    return found


def names(figure: Any, start: str) -> list[str]:
    found = figure.findobj(lambda artist: (artist.get_gid() or "").startswith(start))
    return [artist.get_gid() for artist in found]


def points(line: Any) -> dict[float, float]:
    return dict(zip(*map(list, line.get_data()), strict=True))


def labels(figure: Any) -> list[str]:
    return [" ".join(text.get_text().split()) for legend in figure.legends for text in legend.get_texts()]


# Rooflines


@pytest.mark.parametrize("device", iomodel.list_hardware())
def test_the_roof_is_the_lower_of_bandwidth_and_peak(device: str) -> None:
    hardware = iomodel.hardware(device)
    if hardware.compute.peak.bf16 is None or hardware.memory.hbm.bandwidth is None:
        with pytest.raises(iomodel.errors.SpecError, match="lacks it; a roofline needs it"):
            plots.roofline([], device)
        return
    found, figure = plots.roofs(device), plots.roofline([], device)
    assert found.peak.value == hardware.compute.peak.bf16.value
    hbm = hardware.memory.hbm.bandwidth.value
    for name, quantity in found.bandwidths.items():
        for x, y in points(drawn(figure, f"roof {name}")).items():
            assert y == pytest.approx(min(found.peak.value, x * quantity.value))
    assert points(drawn(figure, "ridge")) == {found.ridge: found.peak.value}
    assert found.ridge * hbm == pytest.approx(found.peak.value)
    assert found.at(found.ridge / 2) == pytest.approx(found.peak.value / 2)
    assert found.at(found.ridge * 2) == found.peak.value
    assert next(iter(found.bandwidths)) == "HBM"
    measured = hardware.measured.gemm_bf16
    assert (found.attained is None) == (measured is None) == (not names(figure, "roof attained"))


def test_an_estimate_is_drawn_at_the_traffic_that_it_reckons_with() -> None:
    one = Stub()
    figure = plots.roofline(one, GPU)
    (container,) = figure.axes[0].containers
    mark, _, (bar,) = container.lines
    useful = one.intensity * 2_000_000
    assert points(mark) == {one.intensity: one.flops_per_second}
    ((left, right),) = bar.get_segments()
    assert left == pytest.approx([useful / one.dram_bytes[1], one.flops_per_second])
    assert right == pytest.approx([useful / one.dram_bytes[0], one.flops_per_second])
    assert any(
        "flash2 128 x 64, 4 warps, bound by matrix units: 9.6 TFLOP/s at 240 FLOP/B" in text for text in labels(figure)
    )


def test_every_point_of_the_estimates_is_on_or_under_the_roof() -> None:
    for mask in ("full", "causal"):
        for length in (128, 1024, 8192):
            w = W.model_copy(update={"q_len": length, "kv_len": length, "mask": mask})
            for tiles in ({"block_q": 64, "block_kv": 64, "warps": 4}, {"block_q": 128, "block_kv": 32, "warps": 4}):
                figure = plots.roofline(iomodel.estimate("flash2", w, GPU, tiles), GPU)
                ((x, y),) = points(figure.axes[0].containers[0].lines[0]).items()
                assert y <= plots.roofs(GPU).at(x)


def test_points_differ_in_more_than_colour() -> None:
    figure = plots.roofline([plots.Point(f"mine {n}", 10.0 * 2**n, 1e13) for n in range(7)], "h200-sxm")
    looks = [container.lines[0] for container in figure.axes[0].containers]
    assert len({look.get_marker() for look in looks}) == len({look.get_color() for look in looks}) == 7
    assert len(set(COLOURS)) == len(set(MARKERS)) == 7
    assert [text.split()[0] for text in labels(figure)] == list("1234567")


FAULTS = {
    "points: 3 given": lambda: plots.roofline([3], GPU),
    "dtype: 'bf17' is unknown": lambda: plots.roofline([], GPU, "bf17"),
    "dtype: estimates of bf16 given": lambda: plots.roofline([Stub()], GPU, "fp8"),
    "dtype: estimates of bf16, fp16 given": lambda: plots.roofline([Stub(), Stub(workload=FP16)], GPU),
    "hardware: NVIDIA H100 SXM5 80GB given with an estimate for NVIDIA A100": lambda: plots.roofline(
        Stub(), "h100-sxm5"
    ),
    "compute.peak.fp8: a100-sxm4-80gb lacks it": lambda: plots.roofline([], GPU, "fp8"),
    "intensity: nan given": lambda: plots.Point("x", float("nan"), 1.0),
    "flops_per_second: 0 given": lambda: plots.Point("x", 1.0, 0),
    r"interval: \(3.0, 4.0\) given; allowed: around": lambda: plots.Point("x", 1.0, 1.0, (3.0, 4.0)),
    "interval: 3 given": lambda: plots.Point("x", 1.0, 1.0, 3),  # type: ignore[arg-type]
    "estimates: 3 given": lambda: plots.breakdown(3),  # type: ignore[arg-type]
    r"estimates: \[\] given": lambda: plots.breakdown([]),
    "algorithms: none given": lambda: plots.traffic_against_sram([], W),
    "algorithm: 'flash9' is unknown": lambda: plots.traffic_against_sram(["flash2", "flash9"], W),
    "sram: no size given": lambda: plots.traffic_against_sram("flash2", W, sram=[]),
    "sram: '64' given": lambda: plots.traffic_against_sram("flash2", W, sram="64"),  # type: ignore[arg-type]
    "sram: -1 given": lambda: plots.traffic_against_sram("flash2", W, sram=[-1]),
    "sram: more than 2,000 sizes": lambda: plots.traffic_against_sram("flash2", W, sram=range(1, 10**9)),
    "no tile fits 9 B": lambda: plots.traffic_against_sram("flash2", W, sram=[8, 9]),
    "hardware: 'h1' is unknown": lambda: plots.feasible_tiles("flash2", W, "h1"),
    "allowed: with hardware alone": lambda: plots.feasible_tiles("flash2", W, GPU, "flash-attention-2", sram_bytes=9),
    "implementation of flash2: 'cpu' is unknown": lambda: plots.feasible_tiles("flash2", W, GPU, "cpu"),
    "warps: given; allowed: only with an implementation": lambda: plots.feasible_tiles(
        "flash2", W, GPU, "textbook", warps=4
    ),
    "warps: 0 given": lambda: plots.feasible_tiles("flash2", W, GPU, warps=0),
    "0 values given": lambda: plots.feasible_tiles("flash2", W),
    "marks: 'mine' has no block_kv": lambda: plots.feasible_tiles("flash2", W, GPU, marks={"mine": {"block_q": 4}}),
    "marks: 3 given": lambda: plots.feasible_tiles("flash2", W, GPU, marks=3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", FAULTS)
def test_faults_are_one_line(message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as failure:
        FAULTS[message]()
    assert "\n" not in str(failure.value)


# Traffic against SRAM


@settings(max_examples=5)
@given(
    name=st.sampled_from(["flash1", "flash2", "standard", "split_kv"]),
    q_len=st.integers(1, 300),
    kv_len=st.integers(1, 300),
    mask=st.sampled_from(["full", "causal"]),
    alignment=st.sampled_from([1, 16]),
)
def test_traffic_never_rises_and_never_falls_below_the_bound(
    name: str, q_len: int, kv_len: int, mask: Any, alignment: int
) -> None:
    w = iomodel.Attention(heads=2, q_len=q_len, kv_len=kv_len, head_dim=32, mask=mask)
    figure = plots.traffic_against_sram(name, w, "rtx4090", sram=[2**k for k in range(13, 21, 2)], alignment=alignment)
    traffic = points(drawn(figure, f"traffic {name}"))
    bound = points(drawn(figure, f"bound {name}"))
    compulsory = set(drawn(figure, "compulsory").get_ydata())
    assert compulsory == {iomodel.lower_bounds(w, algorithm=name, sram_elements=1)["compulsory"].bytes}
    assert all(after <= before for before, after in pairwise(traffic.values()))
    assert traffic.keys() <= bound.keys()
    for size, moved in traffic.items():
        solution = iomodel.solve(name, w, sram_bytes=int(size), alignment=alignment)
        assert moved == solution.cost.hbm_bytes >= bound[size] == solution.certificate.lower_bound.bytes
        assert bound[size] >= max(compulsory)
    assert drawn(figure, f"traffic {name}").get_drawstyle() == "steps-post"


def test_a_staircase_is_drawn_exactly_above_its_bound() -> None:
    one = iomodel.Attention(q_len=256, head_dim=16)
    both = [iomodel.staircase(name, one, unit="elements") for name in ("flash2", "small_cache")]
    figure = plots.staircase(both)
    for stairs in both:
        line = drawn(figure, f"staircase {stairs.algorithm}")
        assert line.get_drawstyle() == "steps-post"
        steps = {step.sram: step.hbm_bytes for step in stairs.steps}
        assert {size: bytes for size, bytes in points(line).items() if size in steps} == steps
    bound = points(drawn(figure, "bound flash2 small_cache"))  # of one class, so one function of the memory
    assert bound.items() >= {(step.sram, step.lower_bound.bytes) for stairs in both for step in stairs.steps}
    approximate = iomodel.staircase("linformer", one, unit="elements")
    assert names(plots.staircase([*both, approximate]), "bound") == ["bound flash2 small_cache", "bound linformer"]
    for wrong, says in [(3, "stairs: 3 given"), ([], "stairs: "), ([both[0], W], "stairs: "), (None, "stairs: None")]:
        with pytest.raises(iomodel.InputError, match=says):
            plots.staircase(wrong)  # type: ignore[arg-type]
    with pytest.raises(iomodel.InputError, match="of different calls or units given"):
        plots.staircase([both[0], iomodel.staircase("flash2", one)])


def test_devices_are_marked_and_solved_for() -> None:
    devices = ["a100-sxm4-80gb", "h100-sxm5", "h200-sxm"]
    figure = plots.traffic_against_sram("flash2", W, devices)
    traffic = points(drawn(figure, "traffic flash2"))
    amounts = {iomodel.hardware(name).sram_per_block for name in devices}
    lines = [drawn(figure, gid) for gid in names(figure, "device ")]
    assert {line.get_xdata()[0] for line in lines} == amounts
    for name in devices:
        device = iomodel.hardware(name)
        assert (
            traffic[device.sram_per_block]
            == iomodel.solve("flash2", W, device, implementation="textbook").cost.hbm_bytes
        )
        assert any(device.name in text and words.memory(device.sram_per_block) in text for text in labels(figure))
    assert "multiples of 16" in figure.axes[0].get_title(loc="left")


def test_the_usual_sizes_go_from_the_first_tile_to_where_memory_helps_no_more() -> None:
    w = iomodel.Attention(q_len=512, head_dim=32)
    figure = plots.traffic_against_sram(["flash1", "flash2"], w)
    for name in ("flash1", "flash2"):
        traffic = points(drawn(figure, f"traffic {name}"))
        with pytest.raises(iomodel.InfeasibleError) as failure:
            iomodel.solve(name, w, sram_bytes=1)
        assert min(traffic) == failure.value.least
        assert min(traffic.values()) <= 1.02 * iomodel.solve(name, w, sram_bytes=2**30).cost.hbm_bytes
    assert any("lower bound for flash1, flash2" in text for text in labels(figure))


def test_the_formula_is_the_optimum_of_one_head_for_all_heads() -> None:
    w = iomodel.Attention(batch=2, heads=3, q_len=2048, head_dim=64)
    figure = plots.traffic_against_sram("flash2", w, sram=[2**15, 2**16, 2**17, 2**30])
    formula = points(drawn(figure, "formula flash2"))
    assert set(formula) == {2**15, 2**16, 2**17}  # beyond, a tile would outgrow its axis
    expr = optimum("flash2").hbm_elements
    for size, moved in formula.items():
        at = {"sram_elements": size / 2, "least_block": 1, **w.numbers}
        value = expr.subs({symbol: at[NAME_OF[symbol]] for symbol in expr.free_symbols})
        assert moved == pytest.approx(6 * 2 * float(value))
        assert moved <= iomodel.solve("flash2", w, sram_bytes=size).cost.hbm_bytes
    for other in (
        w.model_copy(update={"bias": True}),
        iomodel.Attention(heads=4, kv_heads=2, q_len=512, head_dim=32, direction="backward"),
        iomodel.Attention(q_len=512, kv_len=1024, head_dim=32, mask="causal"),
        iomodel.VarlenAttention(q_lens=[512, 100], head_dim=32),
    ):
        assert names(plots.traffic_against_sram("flash2", other, sram=[2**16]), "formula") == []


# Tiles that fit


def cells(figure: Any) -> Any:
    return drawn(figure, "traffic").get_array()


MAPS = [
    ("flash2", W, GPU, "flash-attention-2", {}),
    ("flash2", W, GPU, "flash-attention-2", {"warps": 4}),
    ("flash2", W.model_copy(update={"direction": "backward"}), GPU, "flash-attention-2", {}),
    (
        "flash3",
        W.model_copy(update={"head_dim": 128, "value_dim": 128}),
        "h100-sxm5",
        "flash-attention-3",
        {"stages": 2},
    ),
]


@pytest.mark.parametrize(("name", "w", "device", "kernels", "launch"), MAPS, ids=lambda value: str(value)[:20])
def test_a_tile_is_coloured_where_check_says_that_it_fits(
    name: str, w: iomodel.Attention, device: str, kernels: str | None, launch: dict[str, int]
) -> None:
    figure = plots.feasible_tiles(name, w, device, kernels, **launch)
    found = tile_map(name, w, iomodel.hardware(device), kernels, launch, {}, {})
    placed = found.solution.placed
    assert placed is not None
    assert launch.items() <= placed.tiles.items()
    ways = iomodel.algorithms.algorithm(name).residency[w.direction]
    (way,) = [way for way in ways if way.title == placed.residency]
    colours = cells(figure)
    assert colours.shape == (len(found.rows), len(found.columns))
    scale = found.solution.cost.hbm_bytes / colours.min()  # the least that is drawn is the least there is
    for u, row in enumerate(found.rows):
        for v, column in enumerate(found.columns):
            tiles = {"block_q": row, "block_kv": column, **{n: placed.tiles[n] for n in ("warps", "stages")}}
            fits = iomodel.check(name, w, device, tiles, iomodel.kernels.Implementation.of(way)).fits
            assert fits == (not np.ma.getmaskarray(colours)[u, v])
            if len(ways) == 1:
                assert fits == iomodel.check(name, w, device, tiles).fits
            if fits:
                moved = iomodel.cost(name, w, {"block_q": row, "block_kv": column}).hbm_bytes
                assert colours[u, v] * scale == pytest.approx(moved)


@pytest.mark.parametrize(
    ("name", "w", "device", "kernels", "launch"), MAPS[:1] + MAPS[2:3], ids=["forward", "backward"]
)
def test_the_star_is_the_solution(
    name: str, w: iomodel.Attention, device: str, kernels: str | None, launch: dict[str, int]
) -> None:
    solution = iomodel.solve(name, w, device, implementation=kernels, objective="traffic")
    figure = plots.feasible_tiles(name, w, device, kernels, **launch)
    assert points(drawn(figure, "optimum")) == {solution.tiles["block_kv"]: solution.tiles["block_q"]}
    assert any(text.endswith(words.short(solution.cost.hbm_bytes, "B")) for text in labels(figure))


@settings(max_examples=6)
@given(
    name=st.sampled_from(["flash1", "flash2", "standard", "split_kv"]),
    q_len=st.integers(1, 200),
    kv_len=st.integers(30, 200),
    budget=st.integers(8_000, 60_000),
    alignment=st.sampled_from([1, 8, 16]),
)
def test_a_bare_budget_is_kept_to(name: str, q_len: int, kv_len: int, budget: int, alignment: int) -> None:
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=16, mask="causal")
    options = {"splits": 2} if name == "split_kv" and kv_len > 2 * alignment else {}
    solution = iomodel.solve(name, w, sram_bytes=budget, alignment=alignment, **options)
    figure = plots.feasible_tiles(name, w, sram_bytes=budget, alignment=alignment, **options)
    found = tile_map(name, w, None, None, {}, {"sram_bytes": budget, "alignment": alignment}, options)
    one, other = found.names
    assert points(drawn(figure, "optimum")) == {solution.tiles[other]: solution.tiles[one]}
    least = np.inf
    hidden = np.ma.getmaskarray(cells(figure))
    for u, row in enumerate(found.rows):
        for v, column in enumerate(found.columns):
            sizes = {**solution.tiles, one: row, other: column}
            try:
                counted = iomodel.cost(name, w, sizes, **options)
            except iomodel.InputError:  # fewer tiles than splits
                assert hidden[u, v]
                continue
            assert (counted.footprint_bytes <= budget) == (not hidden[u, v])
            if counted.footprint_bytes <= budget:
                least = min(least, counted.hbm_bytes)
    assert least == solution.cost.hbm_bytes
    assert solution.tiles[one] in found.rows
    assert solution.tiles[other] in found.columns


def test_a_limit_lies_between_what_there_is_room_for_and_what_there_is_not() -> None:
    found = tile_map("flash2", W, iomodel.hardware(GPU), None, {}, {}, {})
    figure = plots.feasible_tiles("flash2", W, GPU)
    for name, share in found.shares.items():
        vertices = np.concatenate([path.vertices for path in drawn(figure, f"limit {name}").get_paths()])
        for u, row in enumerate(found.rows):
            inside = [v for v in range(len(found.columns)) if share[u, v] <= 1]
            crossed = vertices[np.isclose(vertices[:, 1], row)][:, 0]
            if 0 < len(inside) < len(found.columns):
                (at,) = crossed
                assert found.columns[inside[-1]] <= at <= found.columns[inside[-1] + 1]
            else:
                assert len(crossed) == 0


def test_shipped_tiles_are_marked() -> None:
    row = next(row for row in table("flash-attention-2") if (row["architecture"], row["head_dim"]) == ("sm_80", "128"))
    tiles = {name: int(row[name]) for name in ("block_q", "block_kv", "warps", "stages")}
    figure = plots.feasible_tiles("flash2", W, DEVICES["sm_80"], warps=tiles["warps"], marks={"shipped": tiles})
    assert points(drawn(figure, "mark shipped")) == {tiles["block_kv"]: tiles["block_q"]}
    far = plots.feasible_tiles("flash2", W, GPU, marks={"far $off": {"block_q": 4000, "block_kv": 4}})
    low, high = far.axes[0].get_ylim()
    assert low < 4000 < high
    assert any("far $off: 4,000 x 4" in text for text in labels(far))


def test_sizes_are_even_or_thinned_out() -> None:
    found = tile_map("flash2", W, None, None, {}, {"sram_bytes": 100_000}, {})
    assert not even(found.rows)
    assert max(map(len, (found.rows, found.columns))) <= 41
    assert any("not all sizes" in note for note in found.notes)
    axes = plots.feasible_tiles("flash2", W, sram_bytes=100_000).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert plots.feasible_tiles("flash2", W, sram_bytes=50_000, alignment=16).axes[0].get_xscale() == "linear"


# Time per resource


def test_bars_are_the_breakdown() -> None:
    given = [Stub(), Stub(algorithm="standard", tiles={}, seconds=2e-4, limited_by="hbm", breakdown={"hbm": 1.9e-4})]
    figure = plots.breakdown(given)
    factor = 1e-6
    for number, (one, axes) in enumerate(zip(given, figure.axes, strict=True), 1):
        for name, seconds in one.breakdown.items():
            bar = drawn(figure, f"estimate {number} {name}")
            assert bar.get_width() * factor == pytest.approx(seconds)
            assert (matplotlib.colors.to_hex(bar.get_facecolor()).upper() == BINDS) == (name == one.limited_by)
            assert (bar.get_hatch() is None) == (name == one.limited_by)  # in grey print too
        total = drawn(figure, f"estimate {number} total")
        assert total.get_xdata()[0] * factor == pytest.approx(one.seconds)
        assert f"bound by {words.resource(one.limited_by)}" in axes.get_title(loc="left")
        assert [text.get_text() for text in axes.texts if "(binds)" in text.get_text()] == [
            f"{words.short(one.breakdown[one.limited_by], 's')} (binds)"
        ]
    assert figure.axes[-1].get_xlabel() == "time [µs]"
    order = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert order == ["total", "matrix units", "DRAM", "launch"]


def test_an_estimate_of_the_library_is_drawn() -> None:
    one = iomodel.estimate("flash2", W, GPU, {"block_q": 128, "block_kv": 64, "warps": 4})
    figure = plots.breakdown(one)
    found = {name.removeprefix("estimate 1 ") for name in names(figure, "estimate 1")}
    assert {name for name in found if not name.startswith("share ")} == {*one.breakdown, "total"}


# Figures, files, the command line


def pictures() -> list[Any]:
    return [
        plots.roofline([Stub()], GPU),
        plots.traffic_against_sram("flash2", W, GPU, sram=[2**16, 2**18]),
        plots.feasible_tiles("flash2", W, GPU),
        plots.breakdown(Stub()),
        plots.staircase(iomodel.staircase("flash2", W, alignment=64)),
    ]


def test_files_are_whole_and_units_are_on_every_axis(tmp_path: Path) -> None:
    for number, figure in enumerate(pictures()):
        for path in (tmp_path / f"{number}.png", tmp_path / f"{number}.SVG"):
            assert plots.save(figure, path) == path
            assert path.stat().st_size > 10_000
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        root = ElementTree.parse(tmp_path / f"{number}.SVG").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.findtext("{http://www.w3.org/2000/svg}title") == figure.get_suptitle()
        shape = matplotlib.image.imread(tmp_path / f"{number}.png").shape
        assert shape[:2] == tuple(round(200 * side) for side in figure.get_size_inches()[::-1])
        data, metadata = figure._repr_png_()
        assert data.startswith(b"\x89PNG")
        assert metadata["width"] == 96 * figure.get_figwidth()
        for axes in figure.axes:
            units = [label for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
            assert units
            assert all(label.endswith("]") for label in units)


def test_a_file_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    figure = plots.breakdown(Stub())
    there = tmp_path / "there.png"
    there.write_bytes(b"mine")
    (tmp_path / "folder.svg").mkdir()
    for path, more, message in [
        (tmp_path / "x.gif", {}, "allowed: a file that ends in .png, .svg, .pdf or .pgf"),
        (tmp_path / "x", {}, "allowed: a file that ends in .png, .svg, .pdf or .pgf"),
        (tmp_path / "none" / "x.png", {}, "none is not a directory"),
        (there, {"overwrite": False}, "already exists; allowed: another name, or --force"),
        (tmp_path / "folder.svg", {}, "is a directory"),
        (3, {}, "out: 3 given"),
        ("/proc/self/x.png", {}, "cannot be written"),
    ]:
        with pytest.raises(iomodel.InputError, match=message) as failure:
            plots.save(figure, path, **more)  # type: ignore[arg-type]
        assert "\n" not in str(failure.value)
    with pytest.raises(iomodel.InputError, match="figure: 3 given"):
        plots.save(3, tmp_path / "x.png")  # type: ignore[arg-type]
    assert there.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.svg", "there.png"]
    assert plots.save(figure, there).stat().st_size > 4


def test_threads_draw_at_the_same_time_without_pyplot(tmp_path: Path) -> None:
    def one(number: int) -> bytes:
        return plots.save(plots.roofline(Stub(), GPU), tmp_path / f"{number}.png").read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(one, range(4)))) == 1
    code = "import sys; from iomodel import plots; print('matplotlib' in sys.modules); plots.roofline([], 'h100-sxm5')"
    code += "; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]


def test_without_matplotlib_there_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (
        lambda: plots.roofline([], GPU),
        lambda: plots.traffic_against_sram("flash2", W),
        lambda: plots.feasible_tiles("flash2", W, GPU),
        lambda: plots.breakdown(Stub()),
    ):
        with pytest.raises(iomodel.InputError, match=r"pip install 'iomodel\[plot\]'"):
            draw()
    line = f"plot traffic flash2 --q-len 64 --head-dim 8 --output {tmp_path}/x.png"
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("iomodel: matplotlib: not installed")
    assert err.count("\n") == 1


@pytest.mark.parametrize("style", [{"text.usetex": False, "axes.grid": True, "axes.facecolor": "black"}])
def test_a_device_of_the_users_own_may_have_any_name(tmp_path: Path, style: dict[str, Any]) -> None:
    text = iomodel.hardware(GPU).to_yaml().replace("NVIDIA A100 SXM4 80GB", "Cheap $^$ one")
    (tmp_path / "mine.yaml").write_text(text)
    mine = iomodel.hardware(tmp_path / "mine.yaml")
    with matplotlib.rc_context(style):
        for figure in (
            plots.roofline([plots.Point("$^$", 9.0, 1e12)], mine),
            plots.traffic_against_sram("flash2", W, mine, sram=[2**18]),
            plots.feasible_tiles("flash2", W, mine),
        ):
            plots.save(figure, tmp_path / "x.svg")
            assert figure.axes[0].get_facecolor()[:3] != (0, 0, 0)


SHAPE = "--q-len 1024 --head-dim 64 --heads 4"
LINES = {
    f"plot traffic flash2 flash1 {SHAPE} --hardware {GPU},h100-sxm5 --sram '32 KiB,262144'": "Requests against SRAM",
    f"plot traffic flash2 {SHAPE} --alignment 16 --min-block-kv 16 --sram '64 KiB' --no-lse": "Requests against",
    f"plot staircase flash2 {SHAPE} --unit bytes --alignment 16 --min-block-kv 32 --no-lse": "Least requests",
    f"plot feasible flash2 {SHAPE} --hardware {GPU} --warps 4 --block-q 128 --block-kv 64": "Feasible",
    f"plot feasible flash2 {SHAPE} --sram-bytes '64 KiB' --alignment 16": "Feasible tiles of flash2",
    "plot moves flash2 --q-len 64 --head-dim 16 --block-q 16 --block-kv 16": "Moves of flash2",
    f"plot chip flash2 {SHAPE} --hardware {GPU}": "flash2: 128 x 128, 4 warps on",
    f"plot roofline flash2 {SHAPE} --hardware {GPU} --block-q 128 --block-kv 64 --warps 4": "Roofline of NVIDIA A100",
    f"plot breakdown flash2 {SHAPE} --hardware {GPU} --block-q 128 --block-kv 64 --warps 4": "Time per resource",
}


def typed(line: str, capsys: Any) -> tuple[int, str, str]:
    import shlex

    code = main(shlex.split(line))
    return code, *capsys.readouterr()


@pytest.mark.parametrize("line", LINES)
def test_the_command_line_draws(line: str, capsys: Any, tmp_path: Path) -> None:
    import json

    path = tmp_path / "x.svg"
    code, out, err = typed(f"{line} --output {path}", capsys)
    assert (code, err) == (0, "")
    assert out.startswith(LINES[line])
    assert out.rstrip().endswith(str(path))
    before = path.read_bytes()
    code, out, err = typed(f"{line} --output {path}", capsys)
    assert (code, out) == (2, "")
    assert "already exists; allowed: another name, or --force" in err
    assert path.read_bytes() == before
    code, out, err = typed(f"{line} --output {path} --force --json", capsys)
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["output"] == str(path)
    assert said["bytes"] == path.stat().st_size


def test_a_picture_without_a_name_is_named_after_its_command(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "plot moves flash2 --q-len 32 --head-dim 16 --block-q 16 --block-kv 16"
    code, out, _ = typed(line, capsys)
    assert (code, out.rstrip().endswith(": iomodel-moves.png")) == (0, True)
    assert [file.name for file in tmp_path.iterdir()] == ["iomodel-moves.png"]
    code, _, err = typed(line, capsys)
    assert (code, "'iomodel-moves.png' already exists" in err) == (2, True)


BAD = {
    "plot": "plot: no picture given; allowed: roofline, breakdown, traffic, times, feasible",
    "plot pie": "allowed: roofline, breakdown, traffic, times, feasible",
    f"plot traffic flash2 {SHAPE} --output x.gif": "allowed: a file that ends in .png, .svg, .pdf or .pgf",
    f"plot traffic flash9 {SHAPE} --output x.svg": "algorithm: 'flash9' is unknown; did you mean",
    f"plot traffic flash2 {SHAPE} --output x.svg --sram 64k": "sram: unit 'k' is not allowed here",
    f"plot traffic flash2 {SHAPE} --output x.svg --hardware h1": "hardware: 'h1' is unknown",
    f"plot staircase flash2 {SHAPE} --output x.svg --unit KiB": "unit: 'KiB' is unknown",
    f"plot feasible flash2 {SHAPE} --output x.svg": "0 values given; allowed: exactly one",
    f"plot roofline flash2 {SHAPE} --output x.svg": "hardware: not given, but required",
    f"plot chip flash2 {SHAPE} --output x.svg": "hardware: not given, but required",
    f"plot breakdown flash2 {SHAPE} --output x.svg": "hardware: not given, but required",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line(line: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = typed(line, capsys)
    assert (code, out) == (2, "")
    assert BAD[line] in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_fits_is_said_with_exit_code_one(capsys: Any, tmp_path: Path) -> None:
    code, _, err = typed(f"plot traffic flash2 {SHAPE} --sram '99 B' --output {tmp_path}/x.svg", capsys)
    assert code == 1
    assert "the smallest feasible budget is" in err


@given(low=st.floats(1e-3, 1e6), ratio=st.floats(1.01, 1e6))
def test_ticks_are_in_the_range_and_few(low: float, ratio: float) -> None:
    found = log_ticks(low, low * ratio)
    assert all(low <= value <= low * ratio for value in found)
    assert found == sorted(set(found))
    assert len(found) <= 10
    if ratio > 1.3:
        assert len(found) >= 2


@pytest.mark.parametrize("name", ["traffic", "feasible", "roofline", "breakdown", "staircase", "moves", "chip"])
def test_help_has_an_example_that_draws(
    name: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # a narrower terminal wraps a long line
    monkeypatch.chdir(tmp_path)
    code, out, _ = typed(f"plot {name} --help", capsys)
    assert code == 0
    (example,) = [line.strip() for line in out.splitlines() if line.strip().startswith(f"iomodel plot {name}")]
    code, out, err = typed(example.removeprefix("iomodel "), capsys)
    assert (code, err) == (0, "")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["flash1", "flash2", "standard", "split_kv", "eager"])
def test_the_bar_of_the_total_is_a_sum(name: str) -> None:
    call = iomodel.Attention(heads=4, q_len=700, head_dim=64)
    estimate = iomodel.estimate(name, call, GPU)
    figure = plots.breakdown(estimate)
    bars = figure.findobj(lambda artist: (artist.get_gid() or "").startswith("estimate 1 share "))
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    ((end, _),) = {tuple(drawn(figure, "estimate 1 total").get_xdata())}
    assert spans[0][0] == 0
    assert [start for start, _ in spans[1:]] == pytest.approx([stop for _, stop in spans[:-1]])
    assert spans[-1][1] == pytest.approx(end)
    shares = {bar.get_gid().removeprefix("estimate 1 share "): bar.get_width() / end for bar in bars}
    for part, share in shares.items():  # no part is larger than what it stands for
        if part in estimate.breakdown:
            assert share * estimate.seconds <= estimate.breakdown[part] * (1 + 1e-9)
    assert estimate.limited_by in shares or len(estimate.kernels) > 1
    assert ("host" in shares) == (name == "eager")


def test_a_crossover_over_lengths_names_no_length() -> None:
    head = iomodel.Attention(q_len=1, head_dim=64, mask="causal")
    pair = ["standard", ("flash2", {"block_q": 64, "block_kv": 32})]
    picture = plots.crossover(iomodel.crossovers(pair, head, limit=256))
    assert "1 head, as many keys as queries, d = 64" in picture.caption


def test_a_roofline_of_several_devices_has_the_roofs_of_each() -> None:
    a100, h100 = Stub(), Stub(hardware=iomodel.hardware("h100-sxm5"))
    picture = plots.roofline([a100, h100], [GPU, "h100-sxm5"])
    (axes,) = picture.axes
    peaks = [line.get_ydata()[0] for line in axes.get_lines() if line.get_gid() == "roof peak"]
    assert peaks == [float(plots.roofs(name).peak.value) for name in (GPU, "h100-sxm5")]
    inks = {line.get_color() for line in axes.get_lines() if line.get_gid() == "roof peak"}
    assert len(inks) == 2
    told = [text.get_text() for text in picture.legends[0].get_texts()]
    assert all(stub.hardware.name in line for stub, line in zip((a100, h100), told, strict=True))
    with pytest.raises(iomodel.errors.InputError, match="given with an estimate for NVIDIA H100 SXM5 80GB"):
        plots.roofline([a100, h100], GPU)


def test_a_roofline_of_several_devices_is_drawn_by_one_command(tmp_path: Path) -> None:
    line = "plot roofline flash2 --q-len 1024 --head-dim 64 --dtype fp16 --hardware t4 --hardware h100-sxm5 --out"
    assert main([*line.split(), str(tmp_path / "two.png")]) == 0
    assert (tmp_path / "two.png").stat().st_size > 0
