// Validation of the fields of a link or the form, and the resulting call.

class FieldError extends Error {
  constructor(field, message) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

const AUTO = "auto";
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
  const line = String(text).replace(/\s+/g, " ").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
  const letters = [...line];
  return `'${letters.length > 60 ? `${letters.slice(0, 57).join("")}...` : line}'`;
}

// A name without regard to case and to the signs between its parts.
const plainName = (text) => String(text).toLowerCase().replace(/[-_ .]+/g, "");

// The devices that begin with the words of a name.
function familyOf(given, devices) {
  const begun = (name) => name.split("-").some((_, at, words) => at && words.slice(0, at).join("") === plainName(given));
  return Object.keys(devices).filter(begun);
}

// The device of a name in any case, or of the beginning of one name alone; of a family the one that takes precedence. FieldError lists a family without one.
function deviceOf(given, devices) {
  const names = Object.keys(devices);
  const same = names.find((name) => plainName(name) === plainName(given));
  if (same) return same;
  const begun = familyOf(given, devices);
  const family = begun.length ? begun : names.filter((name) => given && plainName(name).startsWith(plainName(given)));
  if (family.length === 1) return family[0];
  const ranked = begun.filter((name) => devices[name].precedence).sort((one, other) => devices[one].precedence - devices[other].precedence);
  if (ranked.length) return ranked[0];
  if (family.length > 1 && plainName(given).length > 1) throw new FieldError("hardware", `${shown(given)} is a family; allowed: ${family.join(", ")}`);
  return oneOf("hardware", given, names);
}

// What the name of a family leaves open, as the library says it; "" for the name of one device.
function takenAs(given, devices) {
  const name = deviceOf(given, devices), others = familyOf(given, devices).filter((other) => other !== name);
  return plainName(name) === plainName(given) || !others.length ? "" : `${shown(given).slice(1, -1)}: taken as ${name}; also ${others.join(", ")}`;
}

function oneOf(field, given, allowed) {
  if (allowed.includes(given)) return given;
  const text = String(given).slice(0, 60);
  const far = (name) => (name.startsWith(text) ? 0 : distance(text, name) / Math.max(name.length, text.length, 1));
  const near = [...allowed].sort((a, b) => far(a) - far(b))[0];
  const hint = text && near && far(near) <= 0.5 ? `did you mean '${near}'? ` : "";
  throw new FieldError(field, `${shown(given)} is unknown; ${hint}allowed: ${allowed.join(", ")}`);
}

// The digits of a number with separators, such as 8,192, or with a suffix, as the library reads it: 4k is 4,000, 4K 4,096, 64 KiB 65,536.
function digits(given) {
  const text = String(given).trim().replace(/(?<=\d)[,_' ](?=\d{3}(\D|$))/g, "");
  const found = /^(\d+)(?:\.(\d+))?\s*([kmg]?)(i?)(b?)$/i.exec(text);
  if (!found || (found[4] && !found[3])) return String(given).trim();
  const [, whole, part = "", letter, binary, bytes] = found;
  const base = binary || (/[KMG]/.test(letter) && !bytes) ? 1024n : 1000n;
  const scale = 10n ** BigInt(part.length), value = BigInt(whole + part) * base ** BigInt(" kmg".indexOf(letter.toLowerCase() || " "));
  return value % scale ? String(given).trim() : String(value / scale);
}

function integer(field, given, least, most) {
  const text = digits(given);
  if (/^\d{1,40}$/.test(text) && BigInt(text) >= least && BigInt(text) <= most) return BigInt(text);
  throw new FieldError(field, `${shown(given)} given; allowed: an integer from ${least} to ${most}`);
}

// The value of a field from its text: null for auto, or FieldError.
function checked(name, text, field, owner) {
  if ((field.auto || field.declared !== undefined) && text === AUTO) return null;
  if (!field.choices) return integer(name, text, BigInt(field.least), BigInt(field.most));
  if (field.others?.includes(text)) {
    throw new FieldError(name, `${shown(text)} given; allowed for ${owner}: ${field.choices.join(", ")}`);
  }
  return oneOf(name, text, field.choices);
}

class Calls {
  constructor(data) {
    this.data = data;
    this.symbol = Object.fromEntries(Object.entries(data.alphabet).map(([name, entry]) => [name, entry.symbol]));
    this.formulas = new Formulas(data.nodes, Object.values(this.symbol));
  }

  // The options of an algorithm in a direction, as fields.
  options(algorithm, direction) {
    const { numbers, switches } = this.data.algorithms[algorithm].directions[direction];
    return { ...switches, ...numbers };
  }

  // Every field of a state but the tiles, in the order of a link.
  fields(algorithm, direction) {
    const { data, data: { algorithms, devices, directions, fields } } = this;
    const names = Object.keys(devices), one = algorithms[algorithm];
    const only = (field, all) => ({ ...field, others: all.filter((name) => !field.choices.includes(name)) });
    const switched = Object.entries({ packed: one.packed, ...this.options(algorithm, direction) });
    return {
      hardware: { choices: names, default: names.includes("h100-sxm5") ? "h100-sxm5" : names[0] },
      algorithm: { choices: Object.keys(algorithms), default: algorithm },
      direction: only({ choices: Object.keys(one.directions), default: direction }, directions),
      ...fields.call,
      ...Object.fromEntries(switched.map(([name, field]) => [name, field.choices ? only(field, ["off", "on"]) : field])),
      implementation: { choices: [AUTO, ...data.clock.algorithms[algorithm].implementations.map(({ name }) => name), "textbook"], default: AUTO },
      ...fields.memory,
      ...fields.serving,
    };
  }

  defaults(algorithm, direction) {
    return Object.fromEntries(Object.entries(this.fields(algorithm, direction)).map(([name, field]) => [name, field.default]));
  }

  first() {
    const names = Object.keys(this.data.algorithms);
    const algorithm = names.includes("flash2") ? "flash2" : names[0];
    return this.defaults(algorithm, Object.keys(this.data.algorithms[algorithm].directions)[0]);
  }

  // A complete state from the texts of a link or the form; FieldError names the invalid field.
  complete(asked) {
    const given = this.named(asked), first = this.first();
    const algorithm = oneOf("algorithm", given.algorithm ?? first.algorithm, Object.keys(this.data.algorithms));
    const ways = Object.keys(this.data.algorithms[algorithm].directions);
    const direction = given.direction ?? (ways.includes(first.direction) ? first.direction : ways[0]);
    checked("direction", direction, this.fields(algorithm, ways[0]).direction, algorithm);
    const known = this.defaults(algorithm, direction);
    const tiles = Object.fromEntries(this.tileNames().map((name) => [name, AUTO]));
    for (const name of Object.keys(given)) {
      if (has(known, name) || has(tiles, name)) continue;
      if (has(this.data.alphabet, name) || this.anOption(name)) {
        oneOf(`option of ${algorithm}`, name, [...Object.keys(this.options(algorithm, direction)), "packed"]);
      }
      oneOf("field", name, Object.keys(known));
    }
    const fields = this.fields(algorithm, direction);
    const plain = (name) => (name in tiles || !fields[name]?.choices) && given[name] !== AUTO;
    const texts = Object.entries(given).map(([name, text]) => [name, plain(name) ? digits(text) : text]);
    return { ...known, ...tiles, ...Object.fromEntries(texts) };
  }

  // A link with the names of a device and of an algorithm, or of its kernels, as the page has them.
  named(given) {
    const { devices, algorithms, kernels } = this.data, found = { ...given };
    if (found.hardware !== undefined) found.hardware = deviceOf(found.hardware, devices);
    if (found.algorithm === undefined || has(algorithms, found.algorithm)) return found;
    const alias = Object.keys(kernels).find((name) => plainName(name) === plainName(found.algorithm));
    const [algorithm, implementation] = kernels[alias] ?? [Object.keys(algorithms).find((name) => plainName(name) === plainName(found.algorithm)), null];
    if (!algorithm || !has(algorithms, algorithm)) return found;
    return { ...found, algorithm, ...(implementation && found.implementation === undefined ? { implementation } : {}) };
  }

  // True if some algorithm has an option of this name.
  anOption(name) {
    const ways = Object.values(this.data.algorithms).flatMap((one) => Object.values(one.directions));
    return ways.some(({ numbers, switches }) => has(numbers, name) || has(switches, name));
  }

  tileNames() {
    if (!this.tiles) {
      const all = new Set(this.data.calls_of.flatMap((set) => set.tiles));
      this.tiles = Object.keys(this.data.alphabet).filter((name) => all.has(name));
    }
    return this.tiles;
  }

  // The link of a state: what differs from the first state of its algorithm and direction.
  link(state, call) {
    const tiles = new Set(call.set.tiles);
    const first = this.first();
    const known = { ...this.defaults(state.algorithm, state.direction), algorithm: first.algorithm };
    const ways = Object.keys(this.data.algorithms[state.algorithm].directions);
    known.direction = ways.includes(first.direction) ? first.direction : ways[0];
    const differs = ([name, value]) => (this.tileNames().includes(name) ? tiles.has(name) && value !== AUTO : value !== known[name]);
    return Object.entries(state).filter(differs).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  }

  // The key of the formulas of the time of one pass.
  placeOf(state, direction, chosen) {
    const { switches } = this.data.algorithms[state.algorithm].directions[direction];
    const on = Object.keys(switches).map((name) => (chosen[name] ? 1 : 0)).join("");
    return [state.algorithm, direction, this.maskName(state), chosen.packed ? 1 : 0, on].join("|");
  }

  // The state of one pass of a call in both directions, with tiles to be chosen.
  partOf(state, direction) {
    const known = this.defaults(state.algorithm, direction);
    const kept = Object.fromEntries(Object.entries(state).filter(([name]) => has(known, name)));
    return this.complete({ ...kept, direction, ...(direction === "backward" ? { packed: "off" } : {}) });
  }

  // The options that kernels may choose and that the call fixes.
  givenOptions(state) {
    return Object.keys(state).filter((name) => state[name] !== AUTO);
  }

  // The state with the options that the kernels have chosen, or those that the algorithm declares.
  resolved(state, chosen = {}) {
    const found = { ...state };
    for (const [name, field] of Object.entries(this.fields(state.algorithm, state.direction))) {
      if (found[name] !== AUTO || field.declared === undefined) continue;
      found[name] = name in chosen ? (typeof chosen[name] === "boolean" ? (chosen[name] ? "on" : "off") : String(chosen[name])) : field.declared;
    }
    return found;
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

  // The call of a complete state, or FieldError; `chosen` are the options that its kernels choose.
  call(state, chosen = {}) {
    return new Call(this, this.resolved(state, chosen), state);
  }
}

class Call {
  constructor(calls, state, asked = state) {
    const { data } = calls;
    this.calls = calls;
    this.bare = state.implementation === "textbook" || state.sram_bytes !== AUTO || state.alignment !== AUTO;
    this.asked = this.bare ? { ...asked, implementation: "textbook" } : asked;
    this.state = state;
    this.formulas = calls.formulas;
    this.algorithm = data.algorithms[state.algorithm];
    const way = this.algorithm.directions[state.direction];
    const values = {};
    for (const [name, field] of Object.entries(calls.fields(state.algorithm, state.direction))) {
      values[name] = checked(name, state[name], field, state.algorithm) ?? values[field.auto] ?? null;
    }
    this.hardware = data.devices[values.hardware];
    const numbers = Object.fromEntries(data.shape.map((name) => [name, values[name]]));
    if (numbers.heads % numbers.kv_heads) {
      throw new FieldError(
        "kv_heads",
        `${numbers.kv_heads} does not divide heads = ${numbers.heads}; allowed: a divisor, such as ${divisorBelow(numbers)}`,
      );
    }
    const size = BigInt(data.dtypes[values.dtype]);
    this.numbers = numbers;
    const windowed = state.mask === "window";
    this.sides = windowed ? { left: values.window_left, right: values.window_right } : { left: null, right: null };
    if (state.mask === "causal") this.sides.right = 0n;
    this.packed = state.packed === "on";
    const group = numbers.heads / numbers.kv_heads;
    const named = {
      ...numbers,
      group,
      element_size: size,
      kv_size: 32n * size,
      page_size: 1n,
      window_left: windowed ? (this.sides.left ?? 0n) : 0n,
      window_right: windowed ? (this.sides.right ?? 0n) : 0n,
      ...Object.fromEntries(Object.keys(way.numbers).map((name) => [name, values[name]])),
    };
    this.given = named;
    this.point = Object.fromEntries(Object.entries(named).map(([name, value]) => [calls.symbol[name], value]));
    this.point.grouped = this.grouped(this.packed);
    const { call, nest } = calls.place(state);
    const found = data.calls[call];
    if (typeof found === "string") throw new FieldError(found.split(":")[0], found.slice(found.indexOf(":") + 1).trim());
    if (found === undefined) throw new FieldError("mask", `${shown(calls.maskName(state))} given; allowed: a mask included in this page`);
    this.set = data.calls_of[found];
    this.nest = data.nests_of[data.nests[nest]];
    this.parts = this.set.parts.map((part) => ({
      ...part,
      outerSymbol: calls.symbol[part.outer],
      innerSymbol: calls.symbol[part.inner],
    }));
    this.bounds = data.bounds.counts[`${calls.maskName(state)}|${state.direction}`];
    this.budget = values.sram_bytes ?? BigInt(this.hardware.sram.value);
    this.alignment = values.alignment ?? BigInt(this.hardware.alignment);
    this.pair = Math.min(Number(values.pair), Math.max(1, this.parts.length)) - 1;
    this.chosen = {};
    for (const name of calls.tileNames()) {
      const tile = checked(name, state[name], data.fields.tile);
      if (tile === null) continue;
      if (!this.set.tiles.includes(name)) {
        const names = this.set.tiles.join(", ") || "none";
        throw new FieldError(name, `${state[name]} given; allowed: only for the tiles of ${state.algorithm} here: ${names}`);
      }
      this.chosen[name] = tile;
    }
    this.require({});
    if (!("block_kv" in this.chosen)) this.most("block_kv", this.alignment);
  }

  // 1 if several programs share keys.
  grouped(packed) {
    return this.given.group > 1n && !packed ? 1n : 0n;
  }

  // The tiles with the least traffic in one memory of the budget.
  solvedTiles() {
    const found = solve(this, this.budget, this.alignment);
    if (!found.feasible) throw new InfeasibleError(`tiles: none fits ${this.budget} B`);
    return found.tiles;
  }

  // Throw FieldError for conflicting numbers; conditions on tiles wait until the tiles are known.
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

  exact(places, tiles = {}, point = this.point) {
    const sizes = Object.entries(tiles).map(([name, size]) => [this.calls.symbol[name], size]);
    return this.formulas.exact(places, { ...point, ...Object.fromEntries(sizes) });
  }

  // The largest tile size with at least one tile per split; null without splits.
  most(name, alignment) {
    const splits = this.given.splits ?? 1n, rows = this.given.top_k ?? this.numbers.kv_len; // selected keys are split
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

  // The lower bounds valid for an amount of memory [B], by name.
  lowerBounds(bytes) {
    if (this.algorithm.approximates) {
      const { batch, heads, q_len, value_dim, element_size } = this.given; // the output is always written
      return { compulsory: Number(batch * heads * q_len * value_dim * element_size) };
    }
    const [least, compulsory, pairs, ...backward] = this.compulsory ?? (this.compulsory = this.formulas.exact(this.bounds, this.point));
    const found = { compulsory: Number(compulsory) };
    const size = Number(this.given.element_size);
    const { values } = this.calls.data.bounds;
    const { batch, heads, kv_heads } = this.given, { q_len, kv_len, head_dim, value_dim } = this.numbers, rows = batch * heads * q_len;
    const point = [least, pairs, ...backward, batch * kv_heads, pairs === rows * kv_len ? rows : 0n, kv_len, head_dim, value_dim].map(Number);
    for (const name of this.algorithm.directions[this.state.direction].classes) {
      const bound = values[name];
      if (!bound.at) bound.at = new Function("C", "A", "R", "Z", "G", "L", "N_k", "d", "d_v", "M", `return [${bound.value}, ${bound.positive.join()}]`);
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
