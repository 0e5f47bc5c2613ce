// Execution of a nest tile by tile for one head: loads, products and stores in the order of the loops.

// The rows of the other axis seen by the rows start .. stop of one axis, null if none.
function seen(call, packed, axis, start, stop, rows) {
  const { left, right } = call.sides;
  const { q_len: queries, kv_len: keys } = call.numbers;
  const offset = call.state.mask === "window" && call.state.align === "top-left" ? 0 : Number(keys - queries);
  const group = packed ? Number(call.given.group) : 1;
  const low = left === null ? null : offset - Number(left);
  const high = right === null ? null : offset + Number(right);
  if (low === null && high === null) return [0, rows];
  const span = (first, under, last, over, length) => {
    const from = under === null ? 0 : Math.max(0, first + under);
    const to = over === null ? length : Math.min(length, last + over + 1);
    return from < to ? [from, to] : null;
  };
  if (axis === "key") {
    return span(Math.floor(start / group), low, Math.floor((stop - 1) / group), high, Number(keys));
  }
  const found = span(start, high === null ? null : -high, stop - 1, low === null ? null : -low, Number(queries));
  return found && found.map((row) => row * group);
}

const OTHER = { query: "key", key: "query" };

// The axes of the nest with their lengths, and the cuts of partitions.
function axesOf(call, tiles, packed) {
  const axes = {};
  for (const [name, axis] of Object.entries(call.nest.axes)) {
    const [rows] = call.exact([packed ? axis.packed : axis.rows], tiles);
    axes[name] = { rows: Number(rows) };
    if (axis.of) Object.assign(axes[name], { of: axis.of, chunk: Number(call.exact([axis.chunk], tiles)[0]) });
  }
  return axes;
}

class Walker {
  constructor(call, tiles, kernel) {
    this.call = call;
    this.kernel = call.nest.kernels[kernel];
    this.packed = call.packed && !this.kernel.unpacked;
    this.axes = axesOf(call, tiles, this.packed);
    const point = { ...call.point, grouped: call.grouped(this.packed) };
    this.number = (place) => Number(call.exact([place], tiles, point)[0]);
    this.at = {}; // the current span of every axis that a loop walks
    this.trips = {};
    this.known = new Map();
  }

  value(place) {
    if (!this.known.has(place)) this.known.set(place, this.number(place));
    return this.known.get(place);
  }

  // The current span of an axis: the tile of the enclosing loop, or all of it.
  span(axis) {
    return this.at[axis] ?? [0, this.axes[axis].rows];
  }

  // The span of a loop over an axis, or null if nothing is visible.
  visited(axis, masked) {
    const { rows } = this.axes[axis];
    let [start, stop] = [0, rows];
    for (const [name, outer] of Object.entries(this.axes)) {
      if (outer.of === axis && this.at[name]) {
        start = Math.min(rows, this.at[name][0] * outer.chunk);
        stop = Math.min(rows, this.at[name][1] * outer.chunk);
      }
    }
    const begin = start;
    const seer = OTHER[axis] && this.at[OTHER[axis]];
    if (masked && seer) {
      const found = seen(this.call, this.packed, axis, ...seer, rows);
      if (found === null) return null;
      start = Math.max(start, found[0]);
      stop = Math.min(stop, found[1]);
    }
    return start < stop ? { begin, start, stop, end: begin === start && !masked ? stop : this.end(axis, rows) } : null;
  }

  end(axis, rows) {
    for (const [name, outer] of Object.entries(this.axes)) {
      if (outer.of === axis && this.at[name]) return Math.min(rows, this.at[name][1] * outer.chunk);
    }
    return rows;
  }

  *run(body = this.kernel.body) {
    for (const statement of body) {
      if (statement.do === "loop") yield* this.loop(statement);
      else if (statement.do === "when") {
        if (this.value(statement.holds)) yield* this.run(statement.body);
      } else if (statement.do === "live" || statement.do === "idle") {
        if ((this.visited(statement.axis, true) !== null) === (statement.do === "live")) yield* this.run(statement.body);
      } else if (statement.do === "cut") {
        yield* this.cut(statement);
      } else if (!statement.after || this.trips[statement.after]) yield this.event(statement);
    }
  }

  *loop(loop) {
    const { axis, masked, body } = loop;
    const inside = this.at[axis]; // a loop within a piece goes over the piece
    const found = inside && !this.axes[axis].of
      ? { begin: inside[0], start: inside[0], stop: inside[1], end: inside[1] }
      : this.visited(axis, masked);
    if (found === null) return;
    const tile = this.value(loop.tile);
    const outside = this.at[axis];
    // Show a loop over single rows as one step; it would be too fine to see otherwise.
    const step = tile === 1 && !this.axes[axis].of ? found.stop - found.start : tile;
    const first = Math.floor((found.start - found.begin) / step);
    let trip = 0;
    for (let i = first; found.begin + i * step < found.stop; i++, trip++) {
      const start = found.begin + i * step;
      this.at[axis] = [start, Math.min(start + step, found.end)];
      this.trips[axis] = trip;
      yield* this.run(body);
    }
    this.at[axis] = outside;
  }

  // Iterate over pieces; a piece with a separate length takes the next positions of the axis.
  *cut({ pieces, body }) {
    const from = {};
    const whole = this.axes;
    for (const { times, sizes } of pieces) {
      const lengths = Object.fromEntries(Object.entries(sizes).map(([symbol, size]) => [symbol, this.value(size)]));
      for (let piece = 0; piece < this.value(times); piece++) {
        for (const [name, { symbol }] of Object.entries(this.call.nest.axes)) {
          if (!(symbol in lengths)) continue;
          const { rows } = whole[name], length = Math.min(rows, lengths[symbol]);
          const start = (from[name] ?? 0) + length > rows ? 0 : (from[name] ?? 0);
          this.at[name] = [start, start + length];
          from[name] = start + length;
        }
        yield* this.run(body);
      }
    }
    this.at = {};
  }

  event(statement) {
    const axes = statement.tensor ? this.call.nest.tensors[statement.tensor] : statement.axes;
    return { do: statement.do, tensor: statement.tensor ?? null, axes, spans: axes.map((axis) => this.span(axis)) };
  }
}
