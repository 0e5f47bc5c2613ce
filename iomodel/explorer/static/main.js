// The page: a state, its link, and its pictures.

class Page {
  constructor(data) {
    this.calls = new Calls(data);
    this.timer = new Timer(data.clock);
    this.form = new Form(this.calls, (change, field) => this.change(change, field));
    this.map = new TileMap(byId("map"), (tiles) => this.change(tiles), say);
    this.animation = new Animation(byId("animation"), say);
    this.compare = new Compare(byId("compare"), () => this.view);
    this.lengths = new Lengths(byId("lengths"), this);
    this.share = new Share(byId("share"), this);
    this.answer = new AnswerPanel(byId("asked"), byId("answered"), this);
    this.measured = new Measured(byId("measured"), this);
    this.serving = data.serving && new Serving(byId("plans"), data.serving, data.fields.serving, (change, field) => this.change(change, field));
    byId("serving").hidden = !data.serving;
    byId("tour").hidden = !data.tour.length;
    this.tour = new Tour(byId("tour"), byId("tour-steps"), data.tour, (state) => {
      this.form.drafts = {};
      this.take(this.calls.complete(state), "push");
    });
    this.state = this.first();
    this.call = this.calls.call(this.state);
  }

  // The first state supported by an algorithm.
  first() {
    let fault = null;
    for (const more of this.tries()) {
      try {
        const state = this.calls.complete(more);
        this.calls.call(state);
        return state;
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        fault = fault || error;
      }
    }
    throw fault;
  }

  // Changes tried in order if an algorithm does not support a call: masks, packing, heads and lengths.
  tries() {
    const masks = this.calls.data.fields.call.mask.choices.map((mask) => ({ mask, packed: "off" }));
    const agreeing = { packed: "off", kv_heads: AUTO, kv_len: AUTO };
    return [{}, { packed: "off" }, ...masks, agreeing, ...masks.map((one) => ({ ...one, ...agreeing }))];
  }

  start() {
    byId("form-details").open = window.innerWidth > 820; // on a phone the results come first
    const wrong = this.read();
    if (wrong) this.show();
    if (wrong) this.form.fault(wrong);
    window.addEventListener("popstate", () => {
      if (location.hash.slice(1) === this.written && byId("fault").hidden) return;
      this.form.drafts = {};
      const fault = this.read();
      if (fault) this.form.fault(fault);
    });
    let wide = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth === wide) return;
      wide = window.innerWidth;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.draw(), 150);
    });
  }

  // Apply the state of the link; return its error, or null.
  read() {
    try {
      const pairs = location.hash.slice(1).split("&").filter(Boolean).map((pair) => {
        const at = pair.indexOf("=");
        if (at < 0) throw new FieldError("link", `${shown(pair)} given; allowed: field=value, with & between them`);
        return [pair.slice(0, at), decoded(pair.slice(0, at), pair.slice(at + 1))];
      });
      const show = pairs.findIndex(([name]) => name === "show");
      if (show >= 0) inFrame(pairs.splice(show, 1)[0][1]);
      const names = pairs.map(([name]) => name);
      const twice = names.find((name, i) => names.indexOf(name) !== i);
      if (twice) throw new FieldError(twice, "given twice; allowed: once");
      if (names.includes("tour")) return this.tour.open(Object.fromEntries(pairs).tour);
      this.adapted(Object.fromEntries(pairs));
      return null;
    } catch (error) {
      if (error instanceof FieldError || error instanceof TooManyTiles) return error;
      throw error;
    }
  }

  // Show the call of a link; what the link leaves open agrees with its algorithm, as by the menu.
  adapted(given) {
    let fault = null;
    for (const more of this.tries()) {
      if (Object.keys(more).some((name) => has(given, name) && name !== "packed")) continue;
      try {
        const state = this.calls.complete({ ...more, ...given });
        this.taken = { hardware: state.hardware, note: given.hardware === undefined ? "" : takenAs(given.hardware, this.calls.data.devices) };
        return this.take(state);
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        fault = fault || error;
      }
    }
    throw fault;
  }

  // Apply a change from the form: drop options of other algorithms, and replace an unsupported mask. A text that is
  // refused stays in its field and is tried again with the next change, so that heads may change before kv_heads.
  change(given, field = null, how = "push") {
    const { drafts } = this.form;
    if (field === "preset") [given, field] = [this.calls.data.presets[given.preset] ?? {}, null];
    if (given.mask === "window" && this.state.window_left === AUTO && this.state.window_right === AUTO) given = { window_left: "1023", window_right: "0", ...given };
    for (const name of Object.keys(given)) delete drafts[name];
    const faults = [];
    for (const more of Object.keys(drafts).length ? [drafts, {}] : [{}]) {
      const fault = this.apply({ ...this.state, ...more, ...given }, field, how);
      if (!fault) {
        for (const name of Object.keys(more)) delete drafts[name];
        this.form.show(this.state, this.call);
        if (Object.keys(drafts).length) this.form.fault(faults[0]);
        return;
      }
      faults.push(fault);
    }
    if (field && this.form.controls[field]?.tagName === "INPUT") drafts[field] = given[field];
    this.form.show(this.state, this.call); // the state that was evaluated, and the refused texts
    this.form.fault(faults.at(-1));
  }

  // Try a state; return its fault, or null.
  apply(wanted, field, how) {
    if (field === "algorithm" || field === "direction") {
      for (const name of this.calls.tileNames()) wanted[name] = AUTO;
      const ways = Object.keys(this.calls.data.algorithms[wanted.algorithm].directions);
      if (!ways.includes(wanted.direction)) wanted.direction = ways[0];
      const known = this.calls.defaults(wanted.algorithm, wanted.direction);
      const tiles = this.calls.tileNames();
      for (const name of Object.keys(wanted)) if (!has(known, name) && !tiles.includes(name)) delete wanted[name];
      for (const [name, one] of Object.entries(this.calls.fields(wanted.algorithm, wanted.direction))) {
        if (one.choices && !one.choices.includes(wanted[name]) && !(one.declared !== undefined && wanted[name] === AUTO)) delete wanted[name];
      }
      Object.assign(wanted, { ...known, ...wanted });
    }
    const tries = field === "algorithm" || field === "direction"
      ? this.tries()
      : [{}];
    let fault = null;
    for (const more of tries) {
      try {
        this.take(this.calls.complete({ ...wanted, ...more }), how);
        if (Object.keys(more).length) say(`${wanted.algorithm} does not support the chosen values; changed to ${Object.entries(more).map(([k, v]) => `${k} = ${v}`).join(", ")}`);
        return null;
      } catch (error) {
        if (!(error instanceof FieldError || error instanceof TooManyTiles)) throw error;
        fault = fault || error;
      }
    }
    return fault;
  }

  // Show a state; how: "push" adds a step to the history, so that Back undoes it.
  take(state, how = "replace") {
    this.lengths.rest();
    const call = this.calls.call(state);
    const view = this.viewOf(state, call);
    this.state = state;
    this.call = call;
    this.view = view;
    this.written = this.calls.link(state, call);
    tellFrame({ call: this.written });
    const address = this.written || framed() ? `#${this.written}` : location.pathname + location.search;
    if (how === "none") this.written = location.hash.slice(1); // the slider still moves
    else if (how === "push" && location.hash.slice(1) !== this.written) history.pushState(null, "", address);
    else if (location.hash.slice(1) !== this.written) history.replaceState(null, "", address);
    this.form.show(state, call);
    this.draw();
    say(`${call.algorithm.title}: ${view.time ? `${short(view.time.seconds, "s")}, bound by ${resource(view.time.limited_by)}, ` : ""}${short(view.counts.hbm_bytes, "B")} of requests, tiles ${tilesText(view.tiles)}`);
  }

  show() {
    this.take(this.state);
  }

  // The figures of a state at once, without its pictures; a fault leaves the page as it is.
  quick(state) {
    try {
      const { time, untimed } = this.timeOf(this.calls.call(state));
      if (!time) return this.change({ q_len: state.q_len }, null, "none");
      const call = this.calls.call(state, time.options);
      const tiles = Object.fromEntries(call.set.tiles.map((name) => [name, BigInt(time.tiles[name])]));
      const counts = call.counts(tiles);
      this.head({ state, call, tiles, counts, time, untimed, taken: this.takenOf(state), solved: {}, intensity: Number(counts.useful_flops) / time.streamed, default: true, tiled: true });
    } catch (error) {
      if (!(error instanceof FieldError || error instanceof TooManyTiles)) throw error;
    }
  }

  // Which device of a family the name in the link was taken for; none once another one is chosen.
  takenOf(state) {
    return this.taken?.hardware === state.hardware && this.taken.note ? [this.taken.note] : [];
  }

  // The time of a call, or the reason for which there is none; tiles that are not chosen are those of the default.
  timeOf(call) {
    const names = call.set.tiles, given = names.filter((name) => name in call.chosen);
    try {
      if (!given.length) return { time: this.timer.estimate(call) };
      const rest = given.length < names.length ? this.timer.estimate(call).tiles : {};
      const tiles = Object.fromEntries(names.map((name) => [name, call.chosen[name] ?? rest[name]]));
      return { time: this.timer.estimate(call, tiles) };
    } catch (error) {
      if (!(error instanceof NoTimeError || error instanceof PythonError || error instanceof TooManyTiles || error instanceof FieldError)) throw error;
      return { time: null, untimed: error.message };
    }
  }

  // All figures of a call: the default tiles of its kernels, the given tiles in their place, the counts.
  viewOf(state, asked) {
    const { time, untimed } = this.timeOf(asked);
    const call = time ? this.calls.call(state, time.options) : asked;
    const solved = this.solved(call, time);
    const smallest = Object.fromEntries(call.set.tiles.map((name) => [name, call.alignment]));
    const timed = time ? Object.fromEntries(call.set.tiles.filter((name) => name in time.tiles).map((name) => [name, BigInt(time.tiles[name])])) : {};
    const tiles = { ...smallest, ...(solved.tiles ?? {}), ...timed, ...call.chosen };
    const counts = call.counts(tiles);
    const intensity = time ? Number(counts.useful_flops) / time.streamed : Number(counts.flops) / Number(counts.hbm_bytes);
    const empty = !time && call.parts.length > 0 && !solved.feasible && !Object.keys(call.chosen).length;
    return { state, call, solved, tiles, counts, intensity, time, untimed, taken: this.takenOf(state), empty, default: !Object.keys(call.chosen).length, tiled: call.set.tiles.length > 0 };
  }

  // The tiles with the least requests in one memory; they give tiles to count at where there is no time.
  solved(call, time) {
    const none = { feasible: false, tiles: {}, least: 0n };
    if (!call.parts.length) return none;
    try {
      return solve(call, call.budget, call.alignment);
    } catch (error) {
      const given = time || call.set.tiles.every((name) => name in call.chosen);
      if (given && (error instanceof FieldError || error instanceof TooManyTiles)) return { ...none, why: error.message };
      throw error; // there are no tiles to count at
    }
  }

  // The headline, the figures and the time of a view.
  head(view) {
    byId("what").textContent = view.empty
      ? `${view.call.algorithm.title}, ${view.state.direction}, on ${view.call.hardware.name}: no tile fits`
      : `${view.call.algorithm.title}, ${view.state.direction}, on ${view.call.hardware.name}: ${tilesText(view.time?.tiles ?? view.tiles)}`;
    byId("about").replaceChildren(view.call.algorithm.approximates ? `Not exact attention: ${view.call.algorithm.approximates}. ` : "", ...cited(`${view.call.algorithm.cite}.`));
    drawCards(view);
    this.answer.show(view);
    drawTime(byId("time"), view);
    this.compare.draw(view);
  }

  draw() {
    const { view } = this;
    this.head(view);
    drawLinks(view);
    this.lengths.show(view);
    drawFootprint(view);
    drawCounts(view);
    drawFormulas(view);
    this.map.show(view);
    drawRoofline(byId("roofline"), view, this.measured.figures(view));
    this.animation.show(view);
    this.serving?.show(view);
    this.measured.show(view);
    clearTimeout(this.curve);
    this.curve = setTimeout(() => drawTraffic(byId("traffic"), view), 0); // after the first picture
  }
}

function decoded(field, text) {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new FieldError(field, `${shown(text)} given; allowed: URL-encoded text`);
  }
}

let spoken = null;
function say(text) {
  clearTimeout(spoken);
  spoken = setTimeout(() => { byId("live").textContent = text; }, 60);
}

function redraw() {
  window.iomodel?.page.draw();
  window.iomodel?.scene.draw();
}

function theme() {
  const root = document.documentElement, button = byId("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const tell = () => { button.setAttribute("aria-pressed", String(dark())); };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { tell(); redraw(); });
  tell();
}

// Start the page beside its first picture.
async function run(scene) {
  theme();
  const page = new Page(unpacked("data"));
  window.iomodel = { page, scene, fasterThan, calls: page.calls, solve, Walker, digits, python: pythonOf, command: commandOf, bibtex: bibtexOf, card: cardOf, png: pngOf };
  page.start();
  if (new URLSearchParams(location.search).has("play")) page.animation.watch();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
