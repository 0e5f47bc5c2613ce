// The page: a state, its link, and its pictures.

class Page {
  constructor(data) {
    this.calls = new Calls(data);
    this.form = new Form(this.calls, (change, field) => this.change(change, field));
    this.map = new TileMap(byId("map"), (tiles) => this.change(tiles), say);
    this.animation = new Animation(byId("animation"), say);
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
    window.addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.written) return;
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
      const names = pairs.map(([name]) => name);
      const twice = names.find((name, i) => names.indexOf(name) !== i);
      if (twice) throw new FieldError(twice, "given twice; allowed: once");
      this.take(this.calls.complete(Object.fromEntries(pairs)));
      return null;
    } catch (error) {
      if (error instanceof FieldError || error instanceof TooManyTiles) return error;
      throw error;
    }
  }

  // Apply a change from the form: drop options of other algorithms, and replace an unsupported mask.
  change(given, field = null) {
    const wanted = { ...this.state, ...given };
    if (field === "algorithm" || field === "direction") {
      for (const name of this.calls.tileNames()) wanted[name] = AUTO;
      const ways = Object.keys(this.calls.data.algorithms[wanted.algorithm].directions);
      if (!ways.includes(wanted.direction)) wanted.direction = ways[0];
      const known = this.calls.defaults(wanted.algorithm, wanted.direction);
      const tiles = this.calls.tileNames();
      for (const name of Object.keys(wanted)) if (!has(known, name) && !tiles.includes(name)) delete wanted[name];
      for (const [name, { choices }] of Object.entries(this.calls.options(wanted.algorithm, wanted.direction))) {
        if (choices && !choices.includes(wanted[name])) delete wanted[name];
      }
      Object.assign(wanted, { ...known, ...wanted });
    }
    const tries = field === "algorithm" || field === "direction"
      ? this.tries()
      : [{}];
    let fault = null;
    for (const more of tries) {
      try {
        this.take(this.calls.complete({ ...wanted, ...more }));
        if (Object.keys(more).length) say(`${wanted.algorithm} does not support the chosen values; changed to ${Object.entries(more).map(([k, v]) => `${k} = ${v}`).join(", ")}`);
        return;
      } catch (error) {
        if (!(error instanceof FieldError || error instanceof TooManyTiles)) throw error;
        fault = fault || error;
      }
    }
    this.form.show(this.state, this.call); // show the state that was evaluated
    this.form.fault(fault);
  }

  take(state) {
    const call = this.calls.call(state);
    const view = this.viewOf(state, call);
    this.state = state;
    this.call = call;
    this.view = view;
    this.written = this.calls.link(state, call);
    history.replaceState(null, "", `#${this.written}`);
    this.form.show(state, call);
    this.draw();
    say(`${call.algorithm.title}: ${short(view.counts.hbm_bytes, "B")} of HBM traffic, ${view.intensity.toPrecision(3)} FLOP/B, tiles ${tilesText(view.tiles)}`);
  }

  show() {
    this.take(this.state);
  }

  // All figures of a call: the best tiles, the given tiles in their place, the counts.
  viewOf(state, call) {
    const solved = this.solved(call);
    const smallest = Object.fromEntries(call.set.tiles.map((name) => [name, call.alignment]));
    const tiles = { ...smallest, ...(solved.tiles ?? {}), ...call.chosen };
    const counts = call.counts(tiles);
    const intensity = Number(counts.flops) / Number(counts.hbm_bytes);
    return { state, call, solved, tiles, counts, intensity, tiled: call.set.tiles.length > 0 };
  }

  solved(call) {
    const none = { feasible: false, tiles: {}, least: 0n };
    if (!call.parts.length) return none;
    try {
      return solve(call, call.budget, call.alignment);
    } catch (error) {
      const given = call.set.tiles.every((name) => name in call.chosen);
      if (given && (error instanceof FieldError || error instanceof TooManyTiles)) return { ...none, why: error.message };
      throw error; // there are no tiles to count at
    }
  }

  draw() {
    const { view } = this;
    byId("what").textContent = `${view.call.algorithm.title}, ${view.state.direction}, on ${view.call.hardware.name}: ${tilesText(view.tiles)}`;
    byId("about").textContent = `${view.call.algorithm.approximates ? `Not exact attention: ${view.call.algorithm.approximates}. ` : ""}${view.call.algorithm.cite}.`;
    drawCards(view);
    drawFootprint(view);
    drawCounts(view);
    drawFormulas(view);
    this.map.show(view);
    drawRoofline(byId("roofline"), view);
    this.animation.show(view);
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

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied.");
    byId("copy").textContent = "Link copied";
  } catch {
    byId("copy").textContent = "Copy it from the address bar";
  }
  setTimeout(() => { byId("copy").textContent = "Copy link"; }, 2500);
}

async function unpacked(id) {
  const text = byId(id).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Start the first picture, which needs none of the data of the calls.
async function watch() {
  const data = await unpacked("scene-data");
  const [slow, fast] = data.sides;
  byId("watch-words").textContent = `One head, ${grouped(data.rows)} tokens, ${data.width} wide, ${data.dtype}, in ${data.tiles} x ${data.tiles} tiles, over one bus. ${slow.title} stores and loads the scores S and P; ${fast.title} keeps them on chip and moves ${(slow.total / fast.total).toFixed(1)} times fewer bytes, although it reads K and V ${data.tiles} times.`;
  const scene = new Scene(byId("scene"), data);
  document.documentElement.dataset.painted = String(Math.round(performance.now()));
  return scene;
}

async function begin() {
  theme();
  byId("copy").addEventListener("click", copyLink);
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old: Chromium 109, Firefox 113 or Safari 16.4 is needed");
  }
  const scene = await watch();
  const page = new Page(await unpacked("data"));
  window.iomodel = { page, scene, calls: page.calls, solve, Walker };
  page.start();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

begin().catch((error) => {
  byId("fault").hidden = false;
  byId("fault").textContent = `The page could not start: ${error.message}`;
  throw error;
});
