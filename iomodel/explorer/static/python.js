// The meaning of Python's operators and functions for the code that iomodel.explorer.transpile writes.

class Column { // a NumPy array of one dimension
  constructor(data) { this.data = data; }
  get size() { return this.data.length; }
  [Symbol.iterator]() { return this.data[Symbol.iterator](); }
}
class Counted extends Map {
  get(key) { return super.get(key) ?? 0; }
  has() { return true; }
}
class PythonError extends Error {}
class InfeasibleError extends PythonError {}
class InputError extends PythonError {}

const py = (() => {
  const both = (plain, other) => (a, b) => {
    if (typeof a === "number" && typeof b === "number") return plain(a, b);
    if (a instanceof Column || b instanceof Column) return broadcast(plain, a, b);
    if (typeof a === "boolean" || typeof b === "boolean") {
      if (typeof a !== "object" && typeof b !== "object") return plain(Number(a), Number(b));
    }
    return other(a, b);
  };
  const broadcast = (plain, a, b) => {
    const length = a instanceof Column ? a.size : b.size;
    const [left, right] = [a, b].map((side) => (side instanceof Column ? (i) => side.data[i] : () => Number(side)));
    return new Column(Array.from({ length }, (_, i) => plain(left(i), right(i))));
  };
  const wrong = (name) => (a, b) => { throw new TypeError(`${name} of ${typeof a} and ${typeof b}`); };
  const order = (a, b) => {
    if (Array.isArray(a) && Array.isArray(b)) {
      for (let i = 0; i < Math.min(a.length, b.length); i++) { const found = order(a[i], b[i]); if (found) return found; }
      return a.length - b.length;
    }
    return a < b ? -1 : a > b ? 1 : 0;
  };
  const compared = (plain) => both(plain, (a, b) => plain(order(a, b), 0));
  const within = (a, b) => [...a].every((one) => py.in(one, b));
  const equal = (a, b) => {
    if (a === b) return true;
    if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => equal(one, b[i]));
    if (a instanceof Set && b instanceof Set) return a.size === b.size && within(a, b);
    return typeof a === "boolean" || typeof b === "boolean" ? Number(a) === Number(b) : false;
  };
  const each = (f) => (value) => (value instanceof Column ? new Column(value.data.map(f)) : f(value));
  const largest = (...all) => all.reduce((a, b) => (typeof a === "number" && typeof b === "number" ? Math.max(a, b) : both(Math.max, (x, y) => (order(x, y) < 0 ? y : x))(a, b)));
  const smallest = (...all) => all.reduce((a, b) => (typeof a === "number" && typeof b === "number" ? Math.min(a, b) : both(Math.min, (x, y) => (order(x, y) > 0 ? y : x))(a, b)));
  const best = (better) => (first, ...more) => {
    const options = more.length && more.at(-1) && more.at(-1).constructor === Object ? more.pop() : {};
    const all = more.length ? [first, ...more] : [...py.iter(first)];
    if (!all.length) return options.default ?? null;
    const key = options.key ?? ((one) => one);
    return all.reduce((a, b) => (better(order(key(b), key(a))) ? b : a));
  };
  const gcdOf = (a, b) => { while (b) [a, b] = [b, a % b]; return Math.abs(a); };
  const METHODS = {
    get: (it, key, other = null) => (it.has(key) ? it.get(key) : other),
    items: (it) => [...it.entries()],
    values: (it) => [...it.values()],
    keys: (it) => [...it.keys()],
    setdefault: (it, key, value) => { if (!it.has(key)) it.set(key, value); return it.get(key); },
    update: (it, more) => { for (const [key, value] of more) it.set(key, value); },
    append: (it, value) => { it.push(value); },
    extend: (it, more) => { it.push(...py.iter(more)); },
    add: (it, value) => { it.add(value); },
    join: (it, parts) => [...py.iter(parts)].join(it),
    index: (it, value) => it.findIndex((one) => equal(one, value)),
    count: (it, value) => it.filter((one) => equal(one, value)).length,
    max: (it) => Math.max(...it),
    min: (it) => Math.min(...it),
    any: (it) => [...it].some(Boolean),
    all: (it) => [...it].every(Boolean),
    astype: (it) => it,
    reshape: (it) => it,
    ravel: (it) => it,
    tolist: (it) => [...it],
    split: (it, by) => it.split(by),
    issuperset: (it, other) => [...py.iter(other)].every((one) => py.in(one, it)),
    bit_length: (it) => (it > 0 ? Math.floor(Math.log2(it)) + 1 : 0),
    isdigit: (it) => /^\d+$/.test(it),
  };

  const py = {
    add: both((a, b) => a + b, (a, b) => (typeof a === "string" ? a + b : [...a, ...b])),
    sub: both((a, b) => a - b, (a, b) => new Set([...a].filter((one) => !py.in(one, b)))),
    mul: both((a, b) => a * b, (a, b) => (Array.isArray(a) ? Array.from({ length: b }, () => a).flat() : wrong("product")(a, b))),
    div: both((a, b) => a / b, wrong("quotient")),
    floordiv: both((a, b) => Math.floor(a / b), wrong("quotient")),
    mod: both((a, b) => ((a % b) + b) % b, wrong("remainder")),
    shl: (a, b) => a * 2 ** b,
    shr: (a, b) => Math.floor(a / 2 ** b),
    pow: both((a, b) => a ** b, wrong("power")),
    bor: (a, b) => (a instanceof Map ? py.merge(a, b) : a instanceof Set ? new Set([...a, ...b]) : typeof a === "function" || Array.isArray(a) ? [a, b].flat() : Boolean(a) || Boolean(b)),
    band: (a, b) => (a instanceof Set ? new Set([...a].filter((one) => py.in(one, b))) : Boolean(a) && Boolean(b)),
    bxor: (a, b) => Boolean(a) !== Boolean(b),
    neg: (a) => (typeof a === "number" ? -a : a instanceof Column ? new Column(a.data.map((one) => -one)) : -Number(a)),
    eq: (a, b) => (a instanceof Column || b instanceof Column ? broadcast((x, y) => x === y, a, b) : equal(a, b)),
    ne: (a, b) => !equal(a, b),
    lt: (a, b) => (a instanceof Set ? a.size < b.size && within(a, b) : compared((x, y) => x < y)(a, b)),
    le: (a, b) => (a instanceof Set ? within(a, b) : compared((x, y) => x <= y)(a, b)),
    gt: compared((x, y) => x > y),
    ge: compared((x, y) => x >= y),
    in: (one, all) => {
      if (typeof all === "string") return all.includes(one);
      if (all instanceof Map) return all.has(one);
      if (all instanceof Set && typeof one !== "object") return all.has(one);
      return [...py.iter(all)].some((other) => equal(one, other));
    },
    t: (a) => (a !== null && typeof a === "object" ? (Array.isArray(a) ? a.length > 0 : a instanceof Map || a instanceof Set ? a.size > 0 : true) : Boolean(a)),
    and: (a, b) => (py.t(a) ? b() : a),
    or: (a, b) => (py.t(a) ? a : b()),
    iter: (a) => (a instanceof Map ? a.keys() : a),
    list: (a = []) => [...py.iter(a)],
    tuple: (a = []) => [...py.iter(a)],
    set: (a = []) => new Set(py.iter(a)),
    frozenset: (a = []) => new Set(py.iter(a)),
    dict: (a = []) => new Map(a instanceof Map ? a : py.iter(a)),
    FrozenDict: (a = []) => new Map(a instanceof Map ? a : py.iter(a)),
    merge: (...all) => new Map(all.flatMap((one) => [...one])),
    object: (a) => (a instanceof Map ? Object.fromEntries(a) : a),
    len: (a) => a.length ?? a.size,
    range: (a, b = null, step = 1) => { const [from, to] = b === null ? [0, a] : [a, b], all = []; for (let i = from; step > 0 ? i < to : i > to; i += step) all.push(i); return all; },
    zip: (...all) => { const lists = all.map((one) => [...py.iter(one)]); return lists.length ? lists[0].map((_, i) => lists.map((one) => one[i])).slice(0, Math.min(...lists.map((one) => one.length))) : []; },
    enumerate: (all, from = 0) => [...py.iter(all)].map((one, i) => [i + from, one]),
    pairwise: (all) => { const list = [...py.iter(all)]; return list.slice(1).map((one, i) => [list[i], one]); },
    product: (...all) => all.reduce((done, values) => done.flatMap((one) => [...py.iter(values)].map((value) => [...one, value])), [[]]),
    map: (f, ...all) => py.zip(...all).map((one) => f(...one)),
    sum: (all, from = 0) => { let total = from; for (const one of py.iter(all)) total = py.add(total, one); return total; },
    any: (all) => [...py.iter(all)].some(py.t),
    all: (all) => [...py.iter(all)].every(py.t),
    sorted: (all, { reverse = false, key = (one) => one } = {}) => { const found = [...py.iter(all)].sort((a, b) => order(key(a), key(b))); return reverse ? found.reverse() : found; },
    max: best((sign) => sign > 0),
    min: best((sign) => sign < 0),
    abs: Math.abs,
    int: (a) => Math.trunc(Number(a)),
    float: (a) => Number(a),
    bool: (a) => py.t(a),
    str: (a) => String(a),
    inf: Infinity,
    round: (a) => { const down = Math.floor(a), rest = a - down; return rest === 0.5 ? down + (down % 2) : Math.round(a); },
    divmod: (a, b) => [Math.floor(a / b), py.mod(a, b)],
    next: (from, other) => {
      if (Array.isArray(from)) return from.length ? from[0] : other;
      const { value, done } = from.next();
      return done ? other : value;
    },
    iterator: (a) => py.iter(a)[Symbol.iterator](),
    isinstance: (a, kinds) => [kinds].flat().some((kind) => {
      if (kind === py.int) return typeof a === "boolean" || Number.isInteger(a);
      if (kind === py.float) return typeof a === "number";
      if (kind === py.str) return typeof a === "string";
      if (kind === py.tuple || kind === py.list) return Array.isArray(a);
      return typeof kind === "function" && kind.prototype !== undefined && a instanceof kind;
    }),
    get: (a, at) => {
      if (a instanceof Map) { if (!a.has(at)) throw new Error(`no ${at}`); return a.get(at); }
      const list = a instanceof Column ? a.data : a;
      if (Array.isArray(at)) return list[at];
      return list[at < 0 ? list.length + at : at];
    },
    bound: (it, name) => { const value = it[name]; return typeof value === "function" ? value.bind(it) : value; },
    getattr: (a, name) => a[name],
    getter: (a) => (at) => py.get(a, at),
    put: (a, at, value) => { if (a instanceof Map) a.set(at, value); else a[at] = value; },
    slice: (a, from, to, step) => {
      const list = a instanceof Column ? a.data : a;
      const found = step === -1 ? [...list].reverse() : list.slice(from ?? 0, to ?? list.length);
      return a instanceof Column ? new Column(found) : found;
    },
    column: wrong("column"),
    m: (name, it, ...rest) => (it === null || typeof it !== "object" || it instanceof Map || it instanceof Set || Array.isArray(it) || it instanceof Column ? METHODS[name](it, ...rest) : it[name](...rest)),
    memo: (f, most) => { // of a function whose arguments are numbers, texts and records of these
      const known = new Map();
      return Object.assign((...given) => {
        const key = JSON.stringify(given);
        if (!known.has(key)) {
          if (known.size === most) known.delete(known.keys().next().value); // the oldest
          known.set(key, f(...given));
        }
        return known.get(key);
      }, { params: f.params });
    },
    named: (f, names) => Object.assign(f, { params: names }),
    call: (f, given, words) => {
      if (f.prototype instanceof Error) return new f(...given);
      const names = f.fields ?? f.params;
      if (!names) return f(...given, words);
      const all = names.map((name, i) => (i < given.length ? given[i] : words[name]));
      return f.fields ? new f(...all) : f(...all);
    },
    callm: (it, name, given, words) => {
      const names = it[name].params;
      return names ? it[name](...names.map((one, i) => (i < given.length ? given[i] : words[one]))) : it[name](...given, words);
    },
    replace: (it, words) => { const kind = it.constructor; return new kind(...kind.fields.map((name) => (name in words ? words[name] : it[name]))); },
    cached: (kind, name) => {
      const { get } = Object.getOwnPropertyDescriptor(kind.prototype, name), known = new WeakMap();
      Object.defineProperty(kind.prototype, name, { get() { if (!known.has(this)) known.set(this, get.call(this)); return known.get(this); } });
    },
    format: (a, how) => (how === "," ? a.toLocaleString("en-US") : a instanceof Map ? JSON.stringify(Object.fromEntries(a)) : String(a)),
    larger: largest,
    smaller: smallest,
    pick: (condition, a, b) => (condition instanceof Column ? new Column(condition.data.map((one, i) => { const side = one ? a : b; return side instanceof Column ? side.data[i] : side; })) : py.t(condition) ? a : b),
    ceil_div: both((a, b) => Math.ceil(a / b), wrong("quotient")),
    floor_div: both((a, b) => Math.floor(a / b), wrong("quotient")),
    ratio: both((a, b) => (b ? a / b : 0), wrong("ratio")),
    floor: each(Math.floor),
    ceil: each(Math.ceil),
    floor_sum_of: (n, m, a, b) => floorSumNumber(n, m, a, b),
    gcd: (a, b) => gcdOf(Math.trunc(a), Math.trunc(b)),
    lcm: (a, b) => (a * b) / gcdOf(a, b),
    anywhere: (a) => (a instanceof Column ? a.data.some(Boolean) : py.t(a)),
    Counter: () => new Counted(),
  };
  py.dict.fromkeys = (all, value = null) => new Map([...py.iter(all)].map((key) => [key, value]));
  return py;
})();

const np = {
  ndarray: Column,
  inf: Infinity,
  int64: null,
  float64: null,
  array: (all) => new Column([...py.iter(all)].map(Number)),
  arange: (a, b) => new Column(py.range(a, b)),
  cumsum: (all) => { let sum = 0; return new Column([...all].map((one) => (sum += one))); },
  floor: py.floor,
  ceil: py.ceil,
  minimum: py.smaller,
  maximum: py.larger,
  where: (condition, a, b) => py.pick(condition, a, b),
  max: (a) => (a instanceof Column ? Math.max(...a) : a),
  ndim: (a) => (a instanceof Column ? 1 : 0),
  concatenate: (parts) => new Column(parts.flatMap((one) => [...one])),
  searchsorted: (all, value) => { let low = 0, high = all.size; while (low < high) { const middle = (low + high) >> 1; if (all.data[middle] < value) low = middle + 1; else high = middle; } return low; },
  unique: (all) => { const many = new Map(); for (const one of all) many.set(one, (many.get(one) ?? 0) + 1); const keys = [...many.keys()].sort((a, b) => a - b); return [new Column(keys), new Column(keys.map((key) => many.get(key)))]; },
};
