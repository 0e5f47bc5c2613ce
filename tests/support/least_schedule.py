"""Least accesses of attention over all schedules that form each product once, by a best-first search over operations.

A value has one place on the chip. An operation adds to a sum; what it reads, and the sum, are on chip with it, and a
sum that is read is complete. A sum is begun in a place of its own. Loads and stores cost one access each.

The search leaves out schedules that another one matches, access for access:

- Sums are not kept in two parts. Two parts are joined on chip, so the part in memory is loaded there in any case;
  loaded when the second part begins, it takes the place of that part.
- An operation runs as soon as its operands and its sum are on chip. A sum that is there and incomplete changes during
  this stay (it was begun in it, or loaded to be added to), so one more addition neither costs an access nor takes room.
- A value arrives just before the next operation needs it, leaves to make room, and leaves at once when it is used up.
- A value that leaves and is needed again costs its load; a sum that changed since its last store also that store. What
  is left is fixed: one load of each input that is used, one store of each output.

So the search orders schedules by what leaves, and a state follows an operation. States that differ by an order of
queries or of keys are one state, where every pair is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple


class State(NamedTuple):
    """Sets as bits: values on chip, operations done, and sums on chip that memory holds no copy of."""

    chip: int
    done: int
    changed: int


class Operation(NamedTuple):
    """Bits of an operation, of the values it reads, of its sums, and of the operations that complete what it reads."""

    bit: int
    reads: int
    sums: int
    before: int


class Game:
    """Values and operations of one attention call.

    A query unit has the d values of its row of Q and the d_v of its row of O, in this order; a key unit has those of K
    and of V. With `whole_rows` a pair is one operation on four rows, and there are no scores; else each product is one.
    Backward a query unit has the rows Q, dO and dQ, a key unit K, V, dK and dV, and a pair is one operation on seven.
    """

    def __init__(
        self, queries: int, keys: int, widths: tuple[int, int], causal: bool, whole_rows: bool, backward: bool = False
    ) -> None:
        width, values = widths
        self.queries, self.keys, self.unit, self.whole_rows = queries, keys, width + values, whole_rows
        self.per_pair = 1 if whole_rows else width + values
        self.scores = (queries + keys) * self.unit
        additions: list[tuple[int, int]] = []
        for query in range(queries):
            for key in range(keys if not causal else query + 1):
                q, k = 1 << query * self.unit, 1 << (queries + key) * self.unit
                score = 1 << self.scores + query * keys + key
                if backward:
                    additions.append((q | q << 1 | k | k << 1, q << 2 | k << 2 | k << 3))
                elif whole_rows:
                    additions.append((q | k | k << 1, q << 1))
                else:
                    additions += [(q << column | k << column, score) for column in range(width)]
                    additions += [(score | k << column, q << column) for column in range(width, self.unit)]
        sums = dict.fromkeys((one for _, added in additions for one in _values(added)), 0)
        for place, (_, added) in enumerate(additions):
            for one in _values(added):
                sums[one] |= 1 << place
        self.operations = [
            Operation(1 << place, reads, added, sum(bits for value, bits in sums.items() if value & reads))
            for place, (reads, added) in enumerate(additions)
        ]
        self.users = {1 << value: 0 for value in range(self.scores + (0 if whole_rows else queries * keys))}
        for value in self.users:
            for operation in self.operations:
                if value & (operation.reads | operation.sums):
                    self.users[value] |= operation.bit
        outputs = queries + 2 * keys if backward else queries * values
        self.compulsory = sum(1 for value, bits in self.users.items() if bits and value not in sums) + outputs

    def settled(self, chip: int, done: int, changed: int) -> State:
        """Run what can run on chip, then drop what no operation needs any more."""
        before = -1
        while before != done:
            before = done
            for bit, reads, added, prior in self.operations:
                if not done & bit and chip & added == added and chip & reads == reads and done & prior == prior:
                    done |= bit  # an incomplete sum that is on chip has changed there already
        for value, users in self.users.items():
            if chip & value and not users & ~done:
                chip, changed = chip & ~value, changed & ~value
        return State(chip, done, changed)

    def steps(self, state: State, places: int) -> Iterator[tuple[State, int]]:
        """List the states one operation on, with the accesses that the values cost that leave."""
        chip, done, changed = state
        room = places - chip.bit_count()
        for bit, reads, added, prior in self.operations:
            if done & bit or done & prior != prior:
                continue
            needed = reads | added
            lacking = (needed & ~chip).bit_count() - room
            leaving = list(_values(chip & ~needed)) if lacking > 0 else []
            for gone in map(sum, combinations(leaving, max(0, lacking))):
                cost = gone.bit_count() + (gone & changed).bit_count()
                yield self.settled(chip & ~gone | needed, done, changed & ~gone | added), cost

    def sorted(self, state: State) -> State:
        """Order queries and keys by what the state holds of them; every order is the same problem."""
        unit, pairs = (1 << self.unit) - 1, (1 << self.per_pair) - 1
        columns = [state.chip >> (self.queries + key) * self.unit & unit for key in range(self.keys)]
        rows = []
        for query in range(self.queries):
            own = tuple(bits >> query * self.unit & unit for bits in (state.chip, state.changed))
            row = []
            for place in range(query * self.keys, (query + 1) * self.keys):
                done, score = state.done >> place * self.per_pair & pairs, self.scores + place
                row.append(
                    (done, 0, 0) if self.whole_rows else (done, state.chip >> score & 1, state.changed >> score & 1)
                )
            rows.append((own, sorted(zip(row, columns, strict=True)), row))
        rows.sort()
        chip = done = changed = 0
        for query, (own, _, _) in enumerate(rows):
            chip |= own[0] << query * self.unit
            changed |= own[1] << query * self.unit
        for key, (column, *cells) in enumerate(sorted(zip(columns, *(row for _, _, row in rows), strict=True))):
            chip |= column << (self.queries + key) * self.unit
            for query, (formed, there, new) in enumerate(cells):
                place = query * self.keys + key
                done |= formed << place * self.per_pair
                chip |= there << self.scores + place
                changed |= new << self.scores + place
        return State(chip, done, changed)


def least_element_accesses(queries: int, keys: int, width: int, value_width: int, places: int) -> int:
    """Search all schedules of single elements, without a mask."""
    game = Game(queries, keys, (width, value_width), causal=False, whole_rows=False)
    return _least(game, places, game.sorted)


def least_row_accesses(queries: int, keys: int, rows: int, causal: bool = False) -> int:
    """Search all schedules of whole rows: Q, O, K and V of a pair are on chip together, and scores take no room."""
    game = Game(queries, keys, (1, 1), causal, whole_rows=True)
    return _least(game, rows, (lambda state: state) if causal else game.sorted)


def least_backward_accesses(queries: int, keys: int, rows: int) -> int:
    """Search all backward schedules of whole rows: the seven rows of a pair are on chip together, without a mask."""
    game = Game(queries, keys, (2, 2), causal=False, whole_rows=True, backward=True)
    return _least(game, rows, game.sorted)


def _least(game: Game, places: int, same: Callable[[State], State]) -> int:
    """Take the states in the order of their cost."""
    every = (1 << len(game.operations)) - 1
    least, settled = {State(0, 0, 0): 0}, set[State]()
    waiting = [[State(0, 0, 0)]]
    for cost, states in enumerate(waiting):
        while states:
            state = states.pop()
            if state in settled:
                continue
            settled.add(state)
            if state.done == every:
                return game.compulsory + cost
            for raw, more in set(game.steps(state, places)):
                after = same(raw)
                if least.get(after, cost + more + 1) > cost + more:
                    least[after] = cost + more
                    waiting += [[] for _ in range(cost + more + 1 - len(waiting))]
                    waiting[cost + more].append(after)
    raise AssertionError("the chip is too small")


def _values(mask: int) -> Iterator[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1
