// Times of a call by the package's own time model: shipped tiles, launch configurations, seconds, DRAM traffic.

// The workload of the time model.
class Attention {
  constructor(fields, names) {
    this.names = names;
    Object.assign(this, { ...fields, dropout: 0, page_size: null, softcap: null, features: [] });
  }
  get longest() { return this; }
  get point() { return this.names.map((name) => this[name] ?? 1); } // without pages a page has one row
  model_copy({ update }) { return new Attention({ ...this, ...py.object(update) }, this.names); }
}
class Window {
  constructor(left = null, right = null, align = "bottom-right") { Object.assign(this, { left, right, align }); }
}
Window.fields = ["left", "right", "align"];

class NoTimeError extends Error {}

class Timer {
  constructor(data) {
    this.data = data;
    const outside = {
      py, np, Attention, reversed: (all) => [...py.iter(all)].reverse(), Window, InfeasibleError, InputError,
      VarlenAttention: class {}, Tabulated: class {}, BlockMask: class {}, Documents: class {},
      Shape: Attention, as_attention: (call) => call, ELEMENT_SIZE: new Map(Object.entries(data.elements)),
      device_of: (device) => { if (device.lacking) throw new InputError(device.lacking); return device.limits; },
      _other_devices: (label, _, device) => `hardware: ${device.name} does not run ${label}`,
      checked: (placement, launch, name, call, tiles) => {
        const [query, key] = placement.tiles.map((tile) => tiles.get(tile));
        const { over } = placement.fit(query, key, launch);
        throw new InfeasibleError(`tiles: ${[...tiles].map((pair) => pair.join(' = ')).join(', ')} given; on ${placement.device.label} they exceed: ${[...over.keys()].join(", ")}`);
      },
      refused_launch: () => new InfeasibleError("tiles: no launch configuration has these warps and stages"),
    };
    const exported = ["DeviceLimits", "Clock", "Placement", "Residency", "ShippedTile", "FoldedKernel", "Demands", "KernelWork", "demand_of", "_layouts", "shipped_tile", "free_options", "packings", "products", "seconds_of", "dram_interval", "widened", "time_shares", "Division", "launched_first"];
    this.model = new Function(...Object.keys(outside), `"use strict";\n${data.script}\nreturn {${exported.join()}};`)(...Object.values(outside));
    const helpers = { floorSumNumber, over: (a, b) => a / b };
    this.functions = data.functions.map((text) => {
      let made = null;
      return (...values) => {
        made = made ?? new Function(...Object.keys(helpers), `return ${text}`)(...Object.values(helpers));
        return made(...values);
      };
    });
    this.parameters = data.parameters;
    this.devices = Object.fromEntries(Object.entries(data.devices).map(([id, one]) => [id, this.device(one)]));
    this.algorithms = Object.fromEntries(Object.entries(data.algorithms).map(([name, one]) => [name, this.algorithm(one)]));
    this.known = new Map();
  }

  device(one) {
    const per_sm = one.sram_per_sm === null ? null : { value: one.sram_per_sm };
    const limits = one.limits && this.revived(this.model.DeviceLimits, one.limits);
    return { ...one, limits, memory: { sram: { per_sm } } };
  }

  algorithm(one) {
    const residency = (data) => this.revived(this.model.Residency, {
      ...data,
      shared_axes: data.shared_axes.map(([axes, dtype]) => [new Set(axes), dtype]),
      operand_axes: new Set(data.operand_axes.map((axes) => new Set(axes))),
      result_axes: new Set(data.result_axes.map((axes) => new Set(axes))),
    });
    const implementations = one.implementations.map((known) => ({
      ...known,
      front_end: { ...known.front_end, division: known.front_end.division && this.revived(this.model.Division, known.front_end.division) },
      searched: new Map(Object.entries(known.searched)),
      residency: new Map(Object.entries(known.residency).map(([way, layouts]) => [way, layouts.map(residency)])),
      tiles: known.tiles.map((row) => this.revived(this.model.ShippedTile, { ...row, tiles: new Map(Object.entries(row.tiles)) })),
    }));
    return { ...one, implementations, searched: new Map(Object.entries(one.searched)) };
  }

  // An instance of a class of the model with these fields, also in place of its properties.
  revived(kind, fields) {
    const made = Object.create(kind.prototype);
    for (const [name, value] of Object.entries(fields)) Object.defineProperty(made, name, { value });
    return made;
  }

  formulas(number) {
    const at = this.functions[number];
    return { scalars: (call, numbers, sizes) => at(...call.point, ...numbers, ...sizes).map(Math.round) };
  }

  // The workload of a call of the page.
  workload(call, direction) {
    const numbers = Object.fromEntries(Object.entries(call.given).map(([name, value]) => [name, Number(value)]));
    const { state } = call;
    const side = (name) => (call.sides[name] === null ? null : Number(call.sides[name]));
    const bare = state.mask === "window" && call.sides.left === null && call.sides.right === null;
    const mask = state.mask !== "window" ? state.mask : bare ? "full" : new Window(side("left"), side("right"), state.align);
    return new Attention({ ...numbers, dtype: state.dtype, mask, direction }, this.data.point);
  }

  // Whether the front end of kernels takes a call of the page, which has no features, with its packing.
  taken(front, workload, packed) {
    const { grouped, masks, prompts, queries, rows } = front;
    if (prompts && workload.q_len === 1) return false;
    if (workload.q_len > (queries ?? Infinity) || workload.q_len * workload.group > (rows ?? Infinity)) return false;
    if (packed && !this.model.packings(front, workload, new Map()).includes(true)) return false;
    const window = workload.mask instanceof Window ? workload.mask : null;
    const kind = window === null ? workload.mask : window.left === null ? (window.right === 0 ? "causal" : "window")
      : (masks ?? []).includes("left window") && window.right === 0 ? "left window" : "window";
    return (grouped || workload.group === 1) && (masks === null || masks.includes(kind));
  }

  // The kernels of an algorithm that run a call on a device, with the layouts of each.
  implementations(call, workload) {
    const able = this.laidOut(call, workload), current = able.filter(({ known }) => !known.superseded);
    return current.length ? current : able;
  }

  laidOut(call, workload) {
    const device = this.devices[call.state.hardware];
    const own = this.algorithms[call.state.algorithm];
    return own.implementations.filter((known) => this.taken(known.front_end, workload, this.packs(call, workload.direction))).flatMap((known) => {
      try {
        return [{ known, layouts: this.model._layouts(call.state.algorithm, workload, device, known) }];
      } catch (error) {
        if (error instanceof PythonError) return [];
        throw error;
      }
    });
  }

  // The clock of one pass: options are those of the page, as true, false and numbers.
  clock(call, workload, chosen, layouts, known) {
    const device = this.devices[call.state.hardware], own = this.algorithms[call.state.algorithm];
    const nominal = device.rates[call.state.dtype];
    if (typeof nominal === "string") throw new NoTimeError(nominal);
    const rates = layouts[0]?.tf32_products ? device.split[call.state.dtype] : nominal;
    const place = call.calls.placeOf(call.state, workload.direction, chosen);
    const stored = this.data.calls[place];
    if (!stored) throw new NoTimeError(`no formulas of the time for this mask with these options on the page; iomodel estimate has them`);
    const work = stored.own[known?.name] ?? stored; // of kernels whose blocks divide the loops otherwise
    const demands = this.revived(this.model.Demands, {
      kernels: work.kernels.map((kernel) => this.revived(this.model.FoldedKernel, kernel)),
      counts: this.formulas(work.counts), sizes: this.formulas(work.sizes), numbers: work.numbers, tiles: work.tiles,
    });
    const padded = (layout) => {
      const widths = { head_dim: layout.compiled_width("head_dim", workload.head_dim), value_dim: layout.compiled_width("value_dim", workload.value_dim) };
      return widths.head_dim === workload.head_dim && widths.value_dim === workload.value_dim ? workload : workload.model_copy({ update: widths });
    };
    const placements = layouts.map((layout) => {
      const formulas = stored.placed[layout.shipped];
      if (!formulas) throw new NoTimeError("the layout of this kernel is not on the page; iomodel estimate has it");
      return new this.model.Placement(device.limits, layout, padded(layout), this.formulas(formulas[0]), this.formulas(formulas[1]), formulas[2]);
    });
    const execution = known?.execution[workload.direction] ?? own.execution[workload.direction] ?? own.shared;
    const hosted = Math.max(this.parameters.host_launch, execution.host_launch);
    const options = new Map(Object.entries(chosen));
    return new this.model.Clock(call.state.algorithm, workload, device, options, { ...this.parameters, host_launch: hosted }, rates, execution, demands, placements, null);
  }

  // Whether the rows of a group are packed in a pass by the state: in a call of both directions in the forward pass.
  packs({ asked }, direction) {
    return asked.packed === "on" && (asked.direction !== "both" || direction === "forward");
  }

  // The options of a pass as the model takes them.
  options(call, direction, searched = {}) {
    const { asked: state, calls } = call;
    const way = calls.data.algorithms[state.algorithm].directions[direction];
    const saved = this.algorithms[state.algorithm].saved;
    const found = {};
    for (const name of Object.keys(way.switches)) found[name] = state.direction === "both" && direction === "forward" && name in saved ? saved[name] : state[name] === "on";
    for (const name of Object.keys(way.numbers)) found[name] = Number(state[name] === AUTO ? way.numbers[name].declared ?? way.numbers[name].default : state[name]);
    found.packed = this.packs(call, direction);
    return { ...found, ...searched };
  }

  // The options that the kernels of an implementation choose, where the call leaves them free.
  free(call, workload, known, fixed = {}) {
    const given = new Map([...call.calls.givenOptions(call.asked), ...Object.keys(fixed)].map((name) => [name, true]));
    const way = call.calls.data.algorithms[call.state.algorithm].directions[workload.direction];
    const taken = new Map([...Object.keys(way.switches), ...Object.keys(way.numbers)].map((name) => [name, true]));
    return [...this.model.products(this.model.free_options(known, workload, taken, given))].map((one) => py.object(one));
  }

  // The same where a library chooses: the splits are those of its rule, where it has one.
  ruled(call, direction, workload, known, fixed) {
    const all = this.free(call, workload, known, fixed), { division } = known.front_end;
    const device = this.devices[call.state.hardware], rates = device.rates[call.state.dtype];
    if (!division || !all.some((one) => "splits" in one) || typeof rates === "string") return all;
    const rests = new Map(all.map(({ splits, ...rest }) => [JSON.stringify(rest), rest]));
    return [...rests.values()].map((rest) => {
      const packed = Boolean(this.options(call, direction, { ...rest, ...fixed }).packed), shared = packed ? workload.group : 1;
      const asked = this.options(call, direction, { ...fixed, packed, splits: 2 });
      const several = this.model.shipped_tile(known, workload, device, new Map(Object.entries(asked)));
      if (several === null || rates.units === null) return { ...rest, splits: 1 };
      const { left, right } = workload.mask instanceof Window ? workload.mask : { left: null, right: null };
      const keys = division.counted(workload.kv_len, left, right, several.get("block_q"));
      const key_tiles = Math.ceil(keys / several.get("block_kv"));
      return { ...rest, splits: division.splits((workload.batch * workload.heads) / shared, workload.q_len * shared, key_tiles, rates.units) };
    });
  }

  // Kernels in the order of iomodel.estimate: the fastest at given tiles first, else the first within a tie of the
  // fastest, each at its default tile.
  ranked(call, direction, workload, able, fixed, tiles = {}) {
    const parts = this.model.launched_first(able.map(({ known }) => known));
    const [usual, others] = parts.map((part) => part.map((known) => able.find((one) => one.known === known)));
    if (usual.length < 2) return [...usual, ...others];
    const times = usual.map((one) => {
      try {
        return this.default(call, direction, workload, [one], tiles, fixed).timed.seconds;
      } catch (error) {
        if (error instanceof PythonError || error instanceof InfeasibleError) return Infinity;
        throw error;
      }
    });
    const least = Math.min(...times), tie = Object.keys(tiles).length ? 0 : this.data.tie;
    if (least === Infinity) return [...usual, ...others];
    const first = times.findIndex((time) => time <= least * (1 + tie));
    const order = times.map((_, i) => i).sort((a, b) => (b === first) - (a === first) || times[a] - times[b] || a - b);
    return [...order.map((i) => usual[i]), ...others];
  }

  // One pass at given tiles, or at the default tile of its kernels.
  pass(call, direction, tiles, fixed = {}) {
    const workload = this.workload(call, direction);
    const wanted = call.asked.implementation ?? AUTO;
    const able = wanted === AUTO ? this.implementations(call, workload) : this.laidOut(call, workload);
    const given = wanted === AUTO && Object.keys(tiles).length > 0; // then the fastest at these tiles
    const kernels = wanted === AUTO ? this.ranked(call, direction, workload, able, fixed, given ? tiles : {}) : able.filter(({ known }) => known.name === wanted);
    return { ...this.default(call, direction, workload, kernels, tiles, fixed), able };
  }

  // The default tile of one pass: shipped by the first kernels in which one fits, else the fastest, else none.
  default(call, direction, workload, kernels, tiles, fixed) {
    const wanted = call.asked.implementation ?? AUTO;
    const given = Object.keys(tiles).length > 0;
    let failure = null;
    for (const { known, layouts } of kernels) {
      let best = null;
      for (const searched of given ? this.free(call, workload, known, fixed) : this.ruled(call, direction, workload, known, fixed)) {
        const chosen = this.options(call, direction, { ...searched, ...fixed });
        const shipped = this.model.shipped_tile(known, workload, this.devices[call.state.hardware], new Map(Object.entries(chosen)));
        const sizes = given ? new Map(Object.entries(tiles)) : shipped;
        if (sizes === null || this.tooLarge(workload, chosen, sizes)) continue;
        try {
          const clock = this.clock(call, workload, chosen, layouts, known);
          const plain = new Map(clock.demands.tiles.map((name) => [name, sizes.get(name)]));
          const launch = new Map([...sizes].filter(([name]) => name === "warps" || name === "stages"));
          const timed = clock.fastest(plain, launch);
          if (!best || timed.seconds < best.timed.seconds) best = { timed, clock, chosen, known, shipped, layouts };
        } catch (error) {
          if (error instanceof NoTimeError) throw error;
          if (!(error instanceof PythonError)) throw error;
          failure = failure ?? error;
        }
      }
      if (!best && !given) best = this.searched(call, workload, direction, known, layouts, fixed);
      if (best) return { ...best, workload };
      if (wanted !== AUTO) break;
    }
    if (kernels.length || (wanted !== AUTO && wanted !== "textbook")) throw failure ?? new InfeasibleError("tiles: none fits");
    const own = this.algorithms[call.state.algorithm];
    if (wanted === AUTO && own.implementations.length && !this.devices[call.state.hardware].simulated) {
      throw new NoTimeError(`no kernel of ${call.state.algorithm} runs this call on ${this.devices[call.state.hardware].name}; choose the textbook's memory, or another algorithm`);
    }
    if (call.algorithm.approximates && !given) throw new NoTimeError("the default tiles of an approximation are not on the page; choose tiles, or ask iomodel estimate");
    const { searched } = this.algorithms[call.state.algorithm];
    const choices = wanted === AUTO && !given && searched.size ? this.free(call, workload, { searched }, fixed) : [{}];
    let best = null, unfit = null;
    for (const options of choices) {
      try {
        const found = this.ofLeastTraffic(call, workload, direction, tiles, options);
        if (!best || found.timed.seconds < best.timed.seconds) best = found;
      } catch (error) {
        if (!(error instanceof PythonError || error instanceof FieldError)) throw error;
        unfit = unfit ?? error;
      }
    }
    if (!best) throw unfit;
    return { ...best, known: null, shipped: null, layouts: [], workload };
  }

  // The tiles of least traffic in one memory under these options, or the given tiles, with their time.
  ofLeastTraffic(call, workload, direction, tiles, options) {
    const { calls, asked } = call;
    const chosen = this.options(call, direction, options);
    const clock = this.clock(call, workload, chosen, [], null);
    const names = clock.demands.tiles;
    const own = direction === asked.direction ? asked : calls.partOf(asked, direction);
    const part = own === asked && !Object.keys(options).length ? call : calls.call(own, options);
    const solved = names.every((name) => name in tiles) ? tiles : part.solvedTiles();
    const sizes = Object.fromEntries(names.map((name) => [name, Number(solved[name])]));
    return { timed: clock.fastest(new Map(Object.entries(sizes)), new Map()), clock, chosen };
  }

  // True if a split would be without keys.
  tooLarge(workload, chosen, sizes) {
    return chosen.splits > 1 && sizes.get("block_kv") > Math.floor((workload.kv_len - 1) / (chosen.splits - 1));
  }

  // One pass at given tiles and options, in its fastest launch configuration.
  at(call, direction, tiles, fixed) {
    const workload = this.workload(call, direction), wanted = call.asked.implementation ?? AUTO;
    const able = wanted === AUTO ? this.ranked(call, direction, workload, this.implementations(call, workload), fixed, tiles) : this.laidOut(call, workload);
    const first = wanted === AUTO ? able[0] : able.find(({ known }) => known.name === wanted);
    const chosen = this.options(call, direction, fixed);
    const clock = this.clock(call, workload, chosen, first?.layouts ?? [], first?.known ?? null);
    const plain = new Map(clock.demands.tiles.map((name) => [name, tiles[name]]));
    return { timed: clock.fastest(plain, new Map()), clock, chosen, known: first?.known ?? null, shipped: null, layouts: first?.layouts ?? [], workload, able };
  }

  // Both passes: the options that the forward pass chooses, but for packing, hold for the backward pass, as in iomodel.estimate.
  both(call, tiles) {
    const bwd = (name) => (call.set.tiles.includes(`bwd_${name}`) ? `bwd_${name}` : name);
    const plain = (timed) => [...timed.tiles].filter(([name]) => name !== "warps" && name !== "stages");
    let fixed = {}, sizes = Object.fromEntries(Object.entries(tiles).map(([name, size]) => [name, Number(size)]));
    if (!Object.keys(tiles).length) {
      const forward = this.pass(call, "forward", {});
      for (const name of forward.known?.searched.keys() ?? []) if (name in forward.chosen) fixed[name] = forward.chosen[name];
      sizes = Object.fromEntries(plain(forward.timed));
      for (const [name, size] of plain(this.pass(call, "backward", {}, { ...fixed, packed: false }).timed)) sizes[bwd(name)] = size;
    }
    const own = (direction) => (direction === "forward" ? sizes : { ...sizes, ...Object.fromEntries(Object.keys(sizes).filter((name) => name.startsWith("bwd_")).map((name) => [name.slice(4), sizes[name]])) });
    return ["forward", "backward"].map((direction) => this.at(call, direction, own(direction), direction === "forward" ? fixed : { ...fixed, packed: false }));
  }

  // Every tile that fits in every launch configuration, from one clock: calls back with the tiles and the launch.
  *candidates(call, clock, limit = 400) {
    const { workload } = clock;
    const rows = { query: workload.q_len * (clock.options.get("packed") ? workload.group : 1), key: workload.kv_len };
    const splits = clock.options.get("splits") ?? 1;
    const most = splits > 1 ? Math.floor((workload.kv_len - 1) / (splits - 1)) : Infinity;
    for (const placement of clock.placements) {
      for (const launch of placement.launches()) {
        const sizes = placement.steps(launch).map((step, i) => {
          const fixed = placement.residency.sizes[i], last = Math.min(Math.ceil(rows[["query", "key"][i]] / step) * step, i ? most : Infinity);
          return fixed.length ? fixed.filter((size) => !i || size <= most) : py.range(step, Math.min(last, step * limit) + 1, step);
        });
        for (const query of sizes[0]) {
          for (const key of sizes[1]) {
            const fit = placement.fit(query, key, launch);
            const over = [...fit.over.keys()].filter((name) => name !== "MMA shape");
            if (placement.residency.shrinks ? over.includes("registers") : over.length) break; // a larger key tile takes no less
            if (over.length) continue;
            if (!py.t(fit.fits)) continue; // a compiler takes another layout
            yield { tiles: new Map([[placement.tiles[0], query], [placement.tiles[1], key]]), placement, launch, fit, shared: fit.used.get("shared memory"), query, key };
          }
        }
      }
    }
  }

  // The fastest of all tiles that fit, ranked as by iomodel.solve: of ties the one that leaves the fewest SMs idle.
  searched(call, workload, direction, known, layouts, fixed = {}) {
    let best = null, ties = [];
    const tied = (found) => found.rank[0] <= best.rank[0] * (1 + this.data.tie);
    for (const searched of this.free(call, workload, known, fixed)) {
      const chosen = this.options(call, direction, { ...searched, ...fixed });
      const clock = this.clock(call, workload, chosen, layouts, known);
      for (const one of this.candidates(call, clock)) {
        const work = clock.demand(one.placement.widths, one.tiles);
        const launched = clock.launched(one.launch, one.fit);
        const seconds = clock.seconds_over(work, launched);
        const rank = [seconds, work.reduce((sum, demand) => sum + demand.requested_bytes, 0), -one.key, one.shared, one.launch.warps];
        const found = { rank, one, clock, chosen, idle: clock.idle(work) };
        if (!best || before(rank, best.rank)) best = found;
        if (tied(found)) ties.push(found);
      }
    }
    if (!best) return null;
    ties = ties.filter(tied);
    const least = Math.min(...ties.map(({ idle }) => idle));
    const { one, clock, chosen } = ties.filter(({ idle }) => idle === least).reduce((a, b) => (before(b.rank, a.rank) ? b : a));
    const timed = clock.timed(one.tiles, one.placement, one.launch, one.fit);
    return { timed, clock, chosen, known, shipped: null, layouts };
  }

  // The estimate of a call: seconds, breakdown, DRAM interval; NoTimeError where the page has no formulas.
  estimate(call, tiles = {}) {
    const { state } = call;
    const both = state.direction === "both";
    const numbers = Object.fromEntries(Object.entries(tiles).map(([name, size]) => [name, Number(size)]));
    const passes = both ? this.both(call, numbers) : [this.pass(call, state.direction, numbers)];
    const kernels = passes.flatMap(({ timed }) => timed.kernels);
    const parameters = passes.map(({ clock }) => clock.parameters).reduce((a, b) => (b.host_launch > a.host_launch ? b : a));
    const breakdown = {};
    for (const kernel of kernels) for (const [name, value] of kernel.breakdown) breakdown[name] = (breakdown[name] ?? 0) + value;
    const seconds = this.model.seconds_of(kernels.map((kernel) => kernel.seconds), parameters);
    if (seconds > kernels.reduce((sum, kernel) => sum + kernel.seconds, 0)) breakdown.launch = seconds;
    const limited_by = Object.keys(breakdown).reduce((a, b) => (breakdown[b] > breakdown[a] ? b : a));
    const found = {};
    passes.forEach(({ timed, workload }) => {
      for (const [name, size] of timed.tiles) {
        const plain = name === "warps" || name === "stages";
        if (both && plain) continue;
        found[both && workload.direction === "backward" && call.set.tiles.includes(`bwd_${name}`) ? `bwd_${name}` : name] = size;
      }
    });
    const own = passes[0].clock.rates, nominal = this.devices[call.state.hardware].rates[call.state.dtype];
    const rates = { ...own, peak: Math.max(own.peak, nominal.peak) };
    const requested = kernels.reduce((sum, kernel) => sum + kernel.requested_bytes, 0);
    const dram = this.model.dram_interval(kernels, call.lowerBounds(1).compulsory, requested, rates.l2_capacity === null ? null : rates.l2_capacity + (rates.llc_capacity ?? 0));
    const behind = kernels.reduce((sum, kernel) => sum + kernel.streamed_bytes, 0); // of blocks in phase
    const streamed = Math.min(Math.max(behind, dram[0]), dram[1]);
    return { seconds, breakdown, limited_by, kernels, dram, streamed, requested, tiles: found, passes, rates, options: passes[0].chosen, implementation: passes[0].known };
  }
}
