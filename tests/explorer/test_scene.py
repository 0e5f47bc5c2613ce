"""The first picture: its steps are the events of the library, its lines those of the declarations."""

from __future__ import annotations

from collections import Counter

import iomodel
from iomodel.algorithms import algorithm, list_algorithms
from iomodel.explorer.scene import ROWS, SIDES, TILE, TILES, WIDTH, lines, scene
from iomodel.nests import Drop, Scores, Sink
from tests.support.inside import FULL, FormulaKind, check_options, declared, walk

CALL = iomodel.Attention(q_len=ROWS, head_dim=WIDTH)


def test_the_steps_of_each_half_move_what_the_call_moves() -> None:
    for (name, _, tiles, options), side in zip(SIDES, scene()["sides"], strict=True):
        counted = iomodel.cost(name, CALL, tiles, **options)
        moved: Counter[str] = Counter()
        for step in side["steps"]:
            moved[step[1]] += step[6]
        sizes = {tensor: 4 if tensor == "LSE" else 2 for tensor in side["tensors"]}
        elements = Counter(counted.reads) + Counter(counted.writes)
        assert +moved == {tensor: sizes[tensor] * elements[tensor] for tensor in sizes}
        assert side["total"] == counted.hbm_bytes == moved.total()


def test_the_keys_are_read_once_per_query_tile() -> None:
    for side in scene()["sides"]:
        reads = Counter(tuple(step[4:6]) for step in side["steps"] if step[1] == "K")
        assert reads == {(tile, tile): TILES for tile in range(TILES)}
        assert all(step[6] == TILE * WIDTH * 2 for step in side["steps"] if step[1] == "K")


def test_each_step_runs_the_line_that_names_it() -> None:
    for side in scene()["sides"]:
        for line, tensor, *_ in side["steps"]:
            text = side["lines"][line][1]
            assert f" {tensor}" in text if tensor else text.startswith(("multiply", "exponentials")), text


def test_on_chip_bytes_stay_within_the_footprint() -> None:
    for side in scene()["sides"]:
        most = max(sum(size for part in step[7:] for _, size in part) for step in side["steps"])
        assert most == side["footprint"]


def test_every_statement_of_every_declaration_has_a_line() -> None:
    for name in list_algorithms():
        found = algorithm(name)
        for direction in set(found.directions) - {"both"}:
            options = check_options(found, {}, direction=direction)
            for kernel in declared(found, FormulaKind(FULL, direction), options):
                leaves = [leaf for leaf, _ in walk((kernel,)) if not isinstance(leaf, Drop | Scores | Sink)]
                listed = [line.statement for line in lines(kernel)]
                assert all(leaf in listed for leaf in leaves), (name, direction)
