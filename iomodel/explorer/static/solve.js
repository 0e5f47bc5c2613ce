// The tiles with the least traffic that fit: the search of iomodel.solving.search, with its bounds and its tie-breaking.

const LIMIT = 400_000; // tiles that may be examined before the page gives up
const ceilBig = (a, b) => -floorBig(-a, b);
const alignUp = (size, step) => ceilBig(size, step) * step;
const larger = (a, b) => (a > b ? a : b);
const smaller = (a, b) => (a < b ? a : b);

class TooManyTiles extends Error {}

class Range {
  constructor(rows, step, most = null) {
    this.rows = rows;
    this.step = step;
    this.first = step;
    this.last = most === null ? alignUp(rows, step) : (most / step) * step;
  }

  // The largest size within the budget, given that a larger size occupies more; null if there is none.
  top(occupied, budget) {
    let low = this.first, high = this.last;
    if (occupied(low) > budget) return null;
    if (occupied(high) <= budget) return high;
    while (high - low > this.step) {
      const middle = ((low + high) / (2n * this.step)) * this.step;
      if (occupied(middle) <= budget) low = middle;
      else high = middle;
    }
    return low;
  }

  smallestOfClass(size) {
    return larger(this.first, alignUp(ceilBig(this.rows, ceilBig(this.rows, size)), this.step));
  }

  nextClass(size) {
    const below = ((this.rows - 1n) / ceilBig(this.rows, size) / this.step) * this.step;
    return below >= this.first ? below : null;
  }
}

class Problem {
  constructor(part, formulas, point, budget, ranges) {
    const moving = [part.outerSymbol, part.innerSymbol];
    const value = (place) => {
      const at = formulas.at([place], point, moving);
      return (u, v) => at(u, v)[0];
    };
    this.part = part;
    this.budget = budget;
    this.outer = ranges.outer;
    this.inner = ranges.inner;
    this.cost = value(part.traffic);
    this.footprint = value(part.footprint);
    this.known = new Map();
    if (part.masked) {
      const fixed = value(part.base), bounded = value(part.strict);
      this.base = fixed(1n, 1n);
      this.leastStream = bounded(this.outer.rows, 1n) - fixed(this.outer.rows, 1n);
      this.strict = part.provable ? (u, v) => this.bytes(u, v) : bounded;
      this.stream = this.strict(1n, 1n) - this.base;
      this.firstIsLeast = part.provable; // the first size is one step
    }
    this.tops = new Map();
  }

  bytes(u, v) {
    const key = `${u},${v}`;
    let known = this.known.get(key);
    if (known === undefined) {
      if (this.known.size > LIMIT) {
        throw new TooManyTiles(
          `alignment: ${this.outer.step} given; more than ${LIMIT} tiles compete; allowed: any, try ${16n * this.outer.step}`,
        );
      }
      known = this.cost(u, v);
      this.known.set(key, known);
    }
    return known;
  }

  innerTop(u) {
    let top = this.tops.get(u);
    if (top === undefined) {
      top = this.inner.top((v) => this.footprint(u, v), this.budget);
      this.tops.set(u, top);
    }
    return top;
  }

  // The candidate outer tiles, from the largest down.
  *outers(top) {
    if (this.part.masked || this.part.irregular) {
      for (let u = top; u >= this.outer.first; u -= this.outer.step) yield u;
      return;
    }
    const { outer, inner } = this;
    if (this.bytes(outer.first, inner.last) === this.bytes(outer.last, inner.last)) {
      yield outer.first; // trips of the outer loop are free: give all memory to the inner tile
      return;
    }
    for (let u = top; u !== null; u = outer.nextClass(u)) yield outer.smallestOfClass(u);
  }

  // No tile with this outer size, or a smaller one, costs less.
  bound(u) {
    if (this.part.irregular) return 0n;
    if (!this.part.masked) return this.bytes(u, this.inner.last);
    return this.base + larger(ceilBig(this.stream, u), this.leastStream);
  }

  // The least cost at an outer tile, null if it is not below `below`.
  least(u, below) {
    if (this.part.irregular) return this.leastOf(u);
    if (!this.part.masked) return this.bytes(u, this.innerTop(u));
    if (below !== null && this.strict(u, this.inner.step) >= below) return null;
    if (this.firstIsLeast) return this.bytes(u, this.inner.first);
    return this.leastOf(u);
  }

  leastOf(u) {
    let best = null;
    for (let v = this.inner.first; v <= this.innerTop(u); v += this.inner.step) {
      const cost = this.bytes(u, v);
      if (best === null || cost < best) best = cost;
    }
    return best;
  }

  // The inner tiles that may rank first among those within the limit, none under `from`.
  *preferred(u, limit, from) {
    const top = this.innerTop(u);
    if (this.part.irregular) {
      for (let v = top; v >= this.inner.first && v >= from; v -= this.inner.step) if (this.bytes(u, v) <= limit) yield v;
      return;
    }
    if (!this.part.masked) {
      if (top >= from && this.bytes(u, top) <= limit) yield top;
      return;
    }
    if (this.strict(u, this.inner.step) > limit) return;
    if (this.part.prefer_inner) {
      for (let v = top; v >= this.inner.first && v >= from; v -= this.inner.step) {
        if (this.bytes(u, v) <= limit) {
          yield v;
          return;
        }
      }
    } else if (this.firstIsLeast) {
      yield this.inner.first;
    } else {
      for (let v = this.inner.first; v <= top; v += this.inner.step) if (this.bytes(u, v) <= limit) yield v;
    }
  }
}

function before(a, b) {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] < b[i];
  return false;
}

// The preferred tile of the least cost; null if nothing fits.
function search(problem) {
  const { outer, inner, budget } = problem;
  const top = outer.top((u) => problem.footprint(u, inner.first), budget);
  if (top === null) return null;
  let least = null;
  for (const u of problem.outers(top)) {
    if (least !== null && problem.bound(u) >= least) break;
    const found = problem.least(u, least);
    if (found !== null && (least === null || found < least)) least = found;
  }
  let best = null;
  const preferInner = problem.part.prefer_inner;
  for (const u of problem.outers(top)) {
    if (problem.bound(u) > least) break;
    if (best !== null && !preferInner && -u > best.rank[0]) break;
    for (const v of problem.preferred(u, least, best && preferInner ? -best.rank[0] : 0n)) {
      const cost = problem.bytes(u, v), footprint = problem.footprint(u, v);
      const rank = preferInner ? [-v, cost, footprint, u] : [-u, cost, footprint, v];
      if (best === null || before(rank, best.rank)) best = { rank, tile: [u, v] };
    }
  }
  return { tile: best.tile, bytes: least, examined: problem.known.size };
}

// The ranges of all tiles of a call, by name.
function rangesOf(call, alignment) {
  const ranges = {};
  for (const part of call.parts) {
    const [outer, inner] = call.exact([part.outer_rows, part.inner_rows]);
    for (const [name, rows] of [[part.outer, outer], [part.inner, inner]]) {
      const chosen = call.set.tiles.includes(name); // the missing second tile of a part with one is 1
      ranges[name] = new Range(rows, chosen ? alignment : 1n, chosen ? call.most(name, alignment) : null);
    }
  }
  return ranges;
}

// The limit of the tiles, and the least step that does not fit, as in iomodel.solving.certificate.
function bindingOf(tiles, ranges, footprint, budget) {
  const steps = [];
  for (const [name, size] of Object.entries(tiles)) {
    const { step } = ranges[name];
    const occupied = (count) => footprint({ ...tiles, [name]: size + count * step });
    let high = 1n;
    while (occupied(high) <= budget && high < 2n ** 70n) high *= 2n;
    let low = high / 2n;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (occupied(middle) <= budget) low = middle;
      else high = middle;
    }
    steps.push({ tile: name, size: size + high * step, excess: occupied(high) - budget });
  }
  steps.sort((a, b) => (a.excess < b.excess ? -1 : 1));
  const growable = Object.keys(tiles).filter((name) => tiles[name] < ranges[name].last);
  if (!growable.length) return { binding: "extent", step: steps[0] };
  const stopped = steps.filter((step) => step.size === tiles[step.tile] + ranges[step.tile].step).map((s) => s.tile);
  return { binding: growable.some((name) => stopped.includes(name)) ? "sram" : "traffic", step: steps[0] };
}

// The tiles of all parts with the least traffic within a budget; `least` is the smallest feasible budget if none fits.
function solve(call, budget, alignment) {
  const ranges = rangesOf(call, alignment);
  const problems = call.parts.map(
    (part) =>
      new Problem(part, call.formulas, call.point, budget, { outer: ranges[part.outer], inner: ranges[part.inner] }),
  );
  let least = call.exact([call.set.rest])[0];
  for (const problem of problems) least = larger(least, problem.footprint(problem.outer.first, problem.inner.first));
  if (least > budget) return { feasible: false, least };
  const sizes = {};
  let examined = 0;
  for (const problem of problems) {
    const found = search(problem);
    examined += found.examined;
    [sizes[problem.part.outer], sizes[problem.part.inner]] = found.tile;
  }
  const tiles = Object.fromEntries(call.set.tiles.filter((name) => name in sizes).map((name) => [name, sizes[name]]));
  const one = Object.fromEntries(Object.keys(sizes).filter((name) => !(name in tiles)).map((name) => [name, 1n]));
  const footprint = (given, at = { ...one, ...given }) =>
    problems.reduce((most, { part, footprint: of }) => larger(most, of(at[part.outer], at[part.inner])), 0n);
  return { feasible: true, tiles, ranges, examined, footprint, ...bindingOf(tiles, ranges, footprint, budget) };
}
