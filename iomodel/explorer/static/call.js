// What a link or the form says, checked field by field, and the call that it makes.

class FieldError extends Error {
  constructor(field, message) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

const AUTO = "auto";
const SHAPE = [
  ["batch", "1", "sequences in the batch"],
  ["heads", "32", "query heads"],
  ["kv_heads", "8", "key/value heads; auto: as heads"],
  ["q_len", "4096", "queries a head"],
  ["kv_len", AUTO, "keys a head; auto: as q_len"],
  ["head_dim", "128", "width of a row of Q and K"],
  ["value_dim", AUTO, "width of a row of V and O; auto: as head_dim"],
];
const FOLLOWS = { kv_heads: "heads", kv_len: "q_len", value_dim: "head_dim" };
const MASK_NAMES = ["full", "causal", "window"];
const LARGEST_PAIR = 64; // pairs of tiles that a call may have, by their number

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

function shown(text) {
  const line = String(text).replace(/\s+/g, " ");
  return `'${line.length > 60 ? `${line.slice(0, 57)}...` : line}'`;
}

function oneOf(field, given, allowed) {
  if (allowed.includes(given)) return given;
  const text = String(given).slice(0, 60);
  const far = (name) => (name.startsWith(text) ? 0 : distance(text, name) / Math.max(name.length, text.length, 1));
  const near = [...allowed].sort((a, b) => far(a) - far(b))[0];
  const hint = text && near && far(near) <= 0.5 ? `did you mean '${near}'? ` : "";
  throw new FieldError(field, `${shown(given)} is unknown; ${hint}allowed: ${allowed.join(", ")}`);
}

function integer(field, given, least, most) {
  const text = String(given).trim();
  if (/^\d{1,40}$/.test(text) && BigInt(text) >= least && BigInt(text) <= most) return BigInt(text);
  throw new FieldError(field, `${shown(given)} given; allowed: an integer from ${least} to ${most}`);
}

class Calls {
  constructor(data) {
    this.data = data;
    this.largest = BigInt(data.largest);
    this.symbol = Object.fromEntries(Object.entries(data.alphabet).map(([name, entry]) => [name, entry.symbol]));
    this.formulas = new Formulas(data.nodes, Object.values(this.symbol));
  }

  // The fields of an algorithm's options in a direction, with what they are by default.
  options(algorithm, direction) {
    const { numbers, switches } = this.data.algorithms[algorithm].directions[direction];
    return {
      ...Object.fromEntries(Object.entries(switches).map(([name, one]) => [name, one.default ? "on" : "off"])),
      ...Object.fromEntries(Object.entries(numbers).map(([name, one]) => [name, String(one.default)])),
    };
  }

  // Every field of a state, in the order of a link, with its default.
  defaults(algorithm, direction) {
    const devices = Object.keys(this.data.devices);
    return {
      hardware: devices.includes("h100-sxm5") ? "h100-sxm5" : devices[0],
      algorithm,
      direction,
      ...Object.fromEntries(SHAPE.map(([name, value]) => [name, value])),
      dtype: "bf16",
      mask: "full",
      window_left: AUTO,
      window_right: AUTO,
      align: this.data.aligns[0],
      packed: "off",
      ...this.options(algorithm, direction),
      sram_bytes: AUTO,
      alignment: AUTO,
      pair: "1",
    };
  }

  first() {
    const names = Object.keys(this.data.algorithms);
    const algorithm = names.includes("flash2") ? "flash2" : names[0];
    return this.defaults(algorithm, Object.keys(this.data.algorithms[algorithm].directions)[0]);
  }

  // A complete state from what a link or the form gives as texts; FieldError names what is at fault.
  complete(given) {
    const first = this.first();
    const algorithm = oneOf("algorithm", given.algorithm ?? first.algorithm, Object.keys(this.data.algorithms));
    const ways = Object.keys(this.data.algorithms[algorithm].directions);
    const direction = given.direction ?? (ways.includes(first.direction) ? first.direction : ways[0]);
    if (!ways.includes(direction)) {
      if (["forward", "backward", "both"].includes(direction)) {
        const why = `allowed: ${ways.join(", ")}, for ${algorithm} does no more`;
        throw new FieldError("direction", `${shown(direction)} given; ${why}`);
      }
      oneOf("direction", direction, ways);
    }
    const known = this.defaults(algorithm, direction);
    const tiles = Object.fromEntries(this.tileNames().map((name) => [name, AUTO]));
    for (const name of Object.keys(given)) {
      if (has(known, name) || has(tiles, name)) continue;
      if (has(this.data.alphabet, name) || this.anOption(name)) {
        oneOf(`option of ${algorithm}`, name, [...Object.keys(this.options(algorithm, direction)), "packed"]);
      }
      oneOf("field", name, Object.keys(known));
    }
    return { ...known, ...tiles, ...given };
  }

  // Whether some algorithm has an option of that name.
  anOption(name) {
    const ways = Object.values(this.data.algorithms).flatMap((one) => Object.values(one.directions));
    return ways.some(({ numbers, switches }) => has(numbers, name) || has(switches, name));
  }

  tileNames() {
    const all = new Set(this.data.calls_of.flatMap((set) => set.tiles));
    return Object.keys(this.data.alphabet).filter((name) => all.has(name));
  }

  // The state as a link writes it: tiles that the call does not take are left out.
  link(state, call) {
    const tiles = new Set(call.set.tiles);
    const dropped = new Set(this.tileNames().filter((name) => !tiles.has(name)));
    const pairs = Object.entries(state).filter(([name]) => !dropped.has(name));
    return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  }

  maskName(state) {
    if (state.mask !== "window") return state.mask;
    const sides = ["left", "right"].filter((side) => state[`window_${side}`] !== AUTO);
    return sides.length ? `window ${sides.join("+")} ${state.align}` : "full";
  }

  place(state) {
    const { switches } = this.data.algorithms[state.algorithm].directions[state.direction];
    const on = Object.keys(switches).map((name) => (state[name] === "on" ? 1 : 0)).join("");
    const packed = state.packed === "on" ? 1 : 0;
    return {
      call: [state.algorithm, state.direction, this.maskName(state), packed, on].join("|"),
      nest: [state.algorithm, state.direction, on].join("|"),
    };
  }

  // The call of a complete state, or FieldError.
  call(state) {
    return new Call(this, state);
  }
}

class Call {
  constructor(calls, state) {
    const { data, largest } = calls;
    this.calls = calls;
    this.state = state;
    this.formulas = calls.formulas;
    this.algorithm = data.algorithms[state.algorithm];
    this.hardware = data.devices[oneOf("hardware", state.hardware, Object.keys(data.devices))];
    const way = this.algorithm.directions[state.direction];
    const numbers = {};
    for (const [name] of SHAPE) {
      const followed = state[name] === AUTO && name in FOLLOWS;
      numbers[name] = followed ? numbers[FOLLOWS[name]] : integer(name, state[name], 1n, largest);
    }
    if (numbers.heads % numbers.kv_heads) {
      throw new FieldError(
        "kv_heads",
        `${numbers.kv_heads} does not divide heads = ${numbers.heads}; allowed: a divisor, such as ${divisorBelow(numbers)}`,
      );
    }
    const size = BigInt(data.dtypes[oneOf("dtype", state.dtype, Object.keys(data.dtypes))]);
    oneOf("mask", state.mask, MASK_NAMES);
    oneOf("align", state.align, data.aligns);
    for (const name of ["packed", ...Object.keys(way.switches)]) {
      oneOf(name, state[name], ["on", "off"]);
      const allowed = way.switches[name]?.allowed;
      if (allowed && !allowed.includes(state[name] === "on")) {
        const needed = allowed[0] ? "on" : "off";
        throw new FieldError(name, `'${state[name]}' given; allowed: ${needed}, for the backward pass needs it`);
      }
    }
    if (state.packed === "on" && !this.algorithm.packed) {
      throw new FieldError("packed", `'on' given; allowed: off, for ${state.algorithm} has no rows to pack`);
    }
    this.numbers = numbers;
    this.sides = {};
    for (const side of ["left", "right"]) {
      const field = `window_${side}`;
      const width = state[field] === AUTO ? null : integer(field, state[field], 0n, largest);
      this.sides[side] = state.mask === "window" ? width : null;
    }
    if (state.mask === "causal") this.sides.right = 0n;
    this.packed = state.packed === "on";
    const group = numbers.heads / numbers.kv_heads;
    const named = {
      ...numbers,
      group,
      element_size: size,
      kv_element_size: size,
      page_size: 1n,
      window_left: state.mask === "window" ? (this.sides.left ?? 0n) : 0n,
      window_right: state.mask === "window" ? (this.sides.right ?? 0n) : 0n,
    };
    for (const [name, one] of Object.entries(way.numbers)) {
      named[name] = integer(name, state[name], BigInt(one.least), largest);
    }
    this.given = named;
    this.point = Object.fromEntries(Object.entries(named).map(([name, value]) => [calls.symbol[name], value]));
    this.point.grouped = group > 1n && !this.packed ? 1n : 0n;
    const { call, nest } = calls.place(state);
    const found = data.calls[call];
    if (typeof found === "string") throw new FieldError(found.split(":")[0], found.slice(found.indexOf(":") + 1).trim());
    if (found === undefined) throw new FieldError("mask", `${shown(calls.maskName(state))} given; this page was made without it`);
    this.set = data.calls_of[found];
    this.nest = data.nests_of[data.nests[nest]];
    this.parts = this.set.parts.map((part) => ({
      ...part,
      outerSymbol: calls.symbol[part.outer],
      innerSymbol: calls.symbol[part.inner],
    }));
    this.bounds = data.bounds.counts[`${calls.maskName(state)}|${state.direction}`];
    const device = this.hardware;
    this.budget = state.sram_bytes === AUTO ? BigInt(device.sram.value) : integer("sram_bytes", state.sram_bytes, 1n, largest);
    this.alignment = state.alignment === AUTO ? BigInt(device.alignment) : integer("alignment", state.alignment, 1n, largest);
    integer("pair", state.pair, 1n, BigInt(LARGEST_PAIR));
    this.pair = Math.min(Number(state.pair), Math.max(1, this.parts.length)) - 1;
    this.chosen = {};
    for (const name of calls.tileNames()) {
      if (state[name] === AUTO) continue;
      const tile = integer(name, state[name], 1n, largest);
      if (!this.set.tiles.includes(name)) {
        const names = this.set.tiles.join(", ") || "none";
        throw new FieldError(name, `${state[name]} given; allowed: tiles of ${state.algorithm} here, which are ${names}`);
      }
      this.chosen[name] = tile;
    }
    this.require({});
    if (!("block_kv" in this.chosen)) this.most("block_kv", this.alignment);
  }

  // FieldError where numbers do not go together; what speaks of tiles waits until they are known.
  require(tiles) {
    const known = { ...this.given, ...tiles };
    for (const one of this.algorithm.requires) {
      const said = (name) => (name === "mask" ? this.state.mask : this.state[name] === "on");
      if (!one.names.every((name) => name in known)) continue;
      if (Object.entries(one.given).some(([name, value]) => said(name) !== value)) continue;
      if (one.most !== null && known[one.field] === 1n) continue;
      if (this.exact([one.holds], tiles)[0] >= 0n) continue;
      const told = { ...known, most: one.most === null ? "" : this.exact([one.most], tiles)[0] };
      const allowed = one.allowed.replace(/\{(\w+)\}/g, (_, name) => told[name]);
      throw new FieldError(one.field, `${known[one.field]} given; allowed: ${allowed}`);
    }
  }

  exact(places, tiles = {}) {
    const sizes = Object.entries(tiles).map(([name, size]) => [this.calls.symbol[name], size]);
    return this.formulas.exact(places, { ...this.point, ...Object.fromEntries(sizes) });
  }

  // The largest size of a tile of which there are as many as splits; null if that is no matter.
  most(name, alignment) {
    const splits = this.given.splits ?? 1n, rows = this.numbers.kv_len;
    if (name !== "block_kv" || splits === 1n) return null;
    const most = (rows - 1n) / (splits - 1n);
    if (most < alignment) {
      const tiles = ceilBig(rows, alignment);
      throw new FieldError("splits", `${splits} given; allowed: up to ${tiles}, the tiles of ${alignment} keys in ${rows}`);
    }
    return most;
  }

  // Every quantity at some tiles.
  counts(tiles) {
    const { reads, writes, counts } = this.set;
    this.require(tiles);
    const places = [...Object.values(reads), ...Object.values(writes), ...Object.values(counts)].map(([place]) => place);
    const values = this.exact(places, tiles);
    const take = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, values.shift()]));
    return { reads: take(reads), writes: take(writes), ...take(counts) };
  }

  // The lower bounds that hold with so much memory [B], by name.
  lowerBounds(bytes) {
    if (this.algorithm.approximates) {
      const { batch, heads, q_len, value_dim, element_size } = this.given; // it writes its output, whatever it reads
      return { compulsory: Number(batch * heads * q_len * value_dim * element_size) };
    }
    const [, compulsory, pairs] = this.compulsory ?? (this.compulsory = this.formulas.exact(this.bounds, this.point));
    const found = { compulsory: Number(compulsory) };
    const size = Number(this.given.element_size);
    const { values } = this.calls.data.bounds;
    const point = [Number(pairs), Number(this.numbers.head_dim), Number(this.numbers.value_dim)];
    for (const name of this.algorithm.directions[this.state.direction].classes) {
      const bound = values[name];
      if (!bound.at) bound.at = new Function("A", "d", "d_v", "M", `return [${bound.value}, ${bound.positive.join()}]`);
      const [value, ...positive] = bound.at(...point, Math.max(1, Math.floor(bytes / size)));
      if (value > 0 && positive.every((one) => one > 0)) found[name] = value * size;
    }
    return found;
  }
}

function divisorBelow({ heads, kv_heads: given }) {
  for (let near = given < 4096n ? given : 4096n; near > 1n; near--) if (heads % near === 0n) return near;
  return 1n;
}
