// The map of tiles: the time or the requests of every pair of sizes that fits; the least, the shipped and the chosen one marked.

const MOST_CELLS = 56;
const NO_TILE = "no_tile";
const STOPS = [[253, 234, 69], [221, 204, 100], [167, 158, 118], [106, 113, 123], [54, 77, 112], [0, 34, 78]]; // cividis, the least yellow as in iomodel.plots

function shade(share) {
  const at = Math.min(0.9999, Math.max(0, share)) * (STOPS.length - 1), i = Math.floor(at);
  const mix = STOPS[i].map((low, k) => Math.round(low + (STOPS[i + 1][k] - low) * (at - i)));
  return `rgb(${mix.join()})`;
}

// Multiples of a step up to a third beyond the largest that fits, limited to what can be drawn, including the best.
function sizesFor(range, best, fits) {
  const steps = range.last / range.step;
  let high = best / range.step || 1n;
  while (high < steps && fits(high * range.step)) high *= 2n;
  let low = high / 2n;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (fits(middle * range.step)) low = middle;
    else high = middle;
  }
  const top = smaller(steps, larger(2n, larger((high * 4n) / 3n, best / range.step)));
  if (top <= MOST_CELLS) return Array.from({ length: Number(top) }, (_, i) => BigInt(i + 1) * range.step);
  const found = new Set([String(best)]);
  for (let i = 0; i < MOST_CELLS; i++) found.add(String(BigInt(Math.round(Number(top) ** (i / (MOST_CELLS - 1)))) * range.step));
  return [...found].map(BigInt).sort((a, b) => (a < b ? -1 : 1));
}

class TileMap {
  constructor(host, choose, announce) {
    this.host = host;
    this.choose = choose;
    this.announce = announce;
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "Map of tiles" });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.say(null));
    this.canvas.addEventListener("click", (event) => this.pick(this.cellAt(event)));
    this.canvas.addEventListener("focus", () => this.move(0, 0));
    this.canvas.addEventListener("blur", () => this.draw());
    this.line = element("p", { class: "readout" });
    this.select = element("select", { id: "map-by" }, element("option", { value: "time" }, "time, on kernels that ship"), element("option", { value: "traffic" }, "requests, in one memory"));
    this.select.addEventListener("change", () => this.choose({ map: this.select.value }));
    this.choice = element("p", { class: "controls" }, element("label", { for: "map-by" }, "by ", this.select)); // made once, so that it keeps the focus
    host.replaceChildren(this.choice, this.canvas, this.line);
    this.scale = element("div", { class: "ramp" });
    host.append(this.scale);
  }

  // The map by time where kernels run the call on the device, else by the requests in one memory.
  show(view) {
    this.view = null;
    const kernels = view.time?.passes[0].layouts.length > 0;
    const by = view.state.map === AUTO ? (kernels ? "time" : "traffic") : view.state.map;
    this.by = by;
    const found = by === "time" ? this.byTime(view) : this.byTraffic(view);
    this.select.value = by;
    if (typeof found === "string") {
      this.line.textContent = found;
      this.canvas.hidden = true;
      this.scale.replaceChildren();
      return;
    }
    Object.assign(this, found);
    this.canvas.hidden = false;
    const fitting = this.cells.flat().filter((cell) => cell.fits).map((cell) => cell.value);
    this.range = [Math.min(...fitting), Math.max(...fitting)];
    this.view = view;
    this.chosen = this.names.map((name) => BigInt(view.time?.tiles[name] ?? view.tiles[name] ?? 1n));
    this.cursor = [Math.max(0, this.rows.indexOf(this.best[0])), Math.max(0, this.columns.indexOf(this.best[1]))];
    this.canvas.setAttribute("aria-label", `Map of tiles: ${this.names[0]} down, ${this.names[1]} across; arrow keys move, Enter chooses`);
    const [low, high] = this.range.map((value) => short(value, by === "time" ? "s" : "B"));
    this.scale.replaceChildren(
      element("span", {}, low),
      element("span", { class: "gradient", style: `background:linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map(shade).join()})` }),
      element("span", {}, high),
      element("span", { class: "key" },
        element("span", { class: "sign" }, "★"), " least   ",
        ...(this.shipped ? [element("span", { class: "sign dark" }, "◆"), " shipped   "] : []),
        "○ this call   hatched: does not fit"),
      element("p", { class: "note" }, this.scope),
    );
    this.say(null);
    this.draw();
  }

  // Every tile that fits the kernels of the call, with its fastest launch configuration.
  byTime(view) {
    const pass = view.time?.passes[0];
    if (!pass?.layouts.length) return `No kernel is known for this call, so there is no map by time. ${view.untimed ?? ""}`;
    const { timer } = window.iomodel.page;
    const all = new Map();
    for (const one of timer.candidates(view.call, pass.clock)) {
      const launched = pass.clock.launched(one.launch, one.fit);
      const seconds = pass.clock.seconds_over(pass.clock.demand(one.placement.widths, one.tiles), launched);
      const key = `${one.query},${one.key}`, known = all.get(key);
      if (!known || seconds < known.value) all.set(key, { value: seconds, launch: one.launch, blocks: one.fit.blocks_per_sm, query: one.query, key: one.key });
    }
    if (!all.size) return "No tile fits these kernels.";
    const sizes = (name) => [...new Set([...all.values()].map((one) => one[name]))].sort((a, b) => a - b);
    const [rows, columns] = [sizes("query"), sizes("key")].map((list) => (list.length > MOST_CELLS ? list.filter((_, i) => i % Math.ceil(list.length / MOST_CELLS) === 0) : list));
    const cells = rows.map((u) => columns.map((v) => {
      const one = all.get(`${u},${v}`);
      const words = one ? `${short(one.value, "s")}, ${one.launch.warps} warps, ${one.launch.stages} stages, ${one.blocks} blocks per SM` : "does not fit these kernels";
      return { u: BigInt(u), v: BigInt(v), value: one?.value, fits: Boolean(one), words };
    }));
    const least = [...all.values()].reduce((a, b) => (b.value < a.value ? b : a));
    const names = pass.clock.placements[0].tiles;
    const shipped = pass.shipped ? names.map((name) => BigInt(pass.shipped.get(name))) : null;
    const whole = view.state.direction === "both" ? " The map is of the forward pass alone." : "";
    return {
      rows: rows.map(BigInt), columns: columns.map(BigInt), cells, names, shipped, best: [BigInt(least.query), BigInt(least.key)],
      scope: `Time of the ${view.time.kernels.length > 1 && !whole ? "whole call" : "call"} by the kernels of ${pass.known.title || pass.known.name}, with the fastest launch of each tile.${whole}`,
    };
  }

  // The requests of every pair of sizes in one memory of M bytes.
  byTraffic(view) {
    const { call, solved } = view;
    if (!call.parts.length || !solved.feasible) return bindingText(view);
    const part = call.parts[call.pair];
    const problem = new Problem(part, call.formulas, call.point, call.budget, { outer: solved.ranges[part.outer], inner: solved.ranges[part.inner] });
    const best = [solved.tiles[part.outer] ?? 1n, solved.tiles[part.inner] ?? 1n];
    const fits = (u, v) => problem.footprint(u, v) <= call.budget;
    const rows = sizesFor(problem.outer, best[0], (u) => fits(u, problem.inner.first));
    const columns = sizesFor(problem.inner, best[1], (v) => fits(problem.outer.first, v));
    const cells = rows.map((u) => columns.map((v) => {
      const bytes = problem.cost(u, v), used = problem.footprint(u, v), fit = used <= call.budget;
      return { u, v, value: Number(bytes), fits: fit, words: `${short(bytes, "B")}, ${fit ? "" : "does not fit: "}${memory(used)} of ${memory(call.budget)}` };
    }));
    const own = problem.cost(...best), total = call.counts({ ...view.tiles, ...solved.tiles }).hbm_bytes;
    const share = own === total ? "all requests of the call" : `the part of the requests that depends on these tiles: ${short(own, "B")} of ${short(total, "B")} at the least`;
    return { rows, columns, cells, names: [part.outer, part.inner], shipped: null, best, scope: `One memory of ${memory(call.budget)} holds all live data of a block, as in the papers. The map shows ${share}.` };
  }

  draw() {
    if (!this.view) return;
    const width = Math.max(280, Math.min(900, this.host.clientWidth)), height = 330;
    const pen = penOf(this.canvas, width, height);
    const colours = getComputedStyle(document.documentElement);
    const ink = colours.getPropertyValue("--ink"), soft = colours.getPropertyValue("--soft"), line = colours.getPropertyValue("--line");
    this.box = { left: 62, top: 8, width: width - 74, height: height - 56 };
    const { left, top } = this.box, w = this.box.width / this.columns.length, h = this.box.height / this.rows.length;
    const [low, high] = this.range.map(Math.log);
    this.cells.forEach((row, i) =>
      row.forEach((cell, j) => {
        const [x, y] = [left + j * w, top + this.box.height - (i + 1) * h];
        if (cell.fits) {
          pen.fillStyle = shade(high > low ? (Math.log(cell.value) - low) / (high - low) : 0);
          pen.fillRect(x, y, w + 0.5, h + 0.5);
        }
      }),
    );
    this.hatch(pen, w, h, line);
    pen.strokeStyle = soft;
    pen.strokeRect(left, top, this.box.width, this.box.height);
    pen.fillStyle = ink;
    pen.font = "12px system-ui, sans-serif";
    const labels = (sizes, most) => sizes.map((size, i) => [size, i]).filter(([, i]) => (i + 1) % Math.ceil(sizes.length / most) === 0);
    pen.textAlign = "center";
    if (this.names[1] !== NO_TILE) for (const [size, j] of labels(this.columns, width < 420 ? 5 : 9)) pen.fillText(grouped(size), left + (j + 0.5) * w, top + this.box.height + 16);
    pen.fillText(this.title(this.names[1]), left + this.box.width / 2, height - 10);
    pen.textAlign = "right";
    for (const [size, i] of labels(this.rows, 8)) pen.fillText(grouped(size), left - 6, top + this.box.height - (i + 0.5) * h + 4);
    pen.save();
    pen.translate(13, top + this.box.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(this.title(this.names[0]), 0, 0);
    pen.restore();
    this.mark(pen, this.chosen, "○", w, h);
    const same = this.shipped?.every((size, i) => size === this.best[i]);
    if (this.shipped) this.mark(pen, this.shipped, "◆", w, h, same ? 7 : 0);
    this.mark(pen, this.best, "★", w, h, same ? -7 : 0);
    if (document.activeElement === this.canvas) {
      const [i, j] = this.cursor;
      pen.lineWidth = 3;
      pen.strokeStyle = "#fff";
      pen.strokeRect(left + j * w, top + this.box.height - (i + 1) * h, w, h);
      pen.lineWidth = 1.5;
      pen.strokeStyle = "#000";
      pen.strokeRect(left + j * w, top + this.box.height - (i + 1) * h, w, h);
    }
  }

  // Hatch tiles that do not fit.
  hatch(pen, w, h, colour) {
    const { left, top, width, height } = this.box;
    pen.save();
    pen.beginPath();
    this.cells.forEach((row, i) => row.forEach((cell, j) => {
      if (!cell.fits) pen.rect(left + j * w, top + height - (i + 1) * h, w + 0.5, h + 0.5);
    }));
    pen.clip();
    pen.strokeStyle = colour;
    pen.lineWidth = 1.2;
    pen.beginPath();
    for (let x = -height; x < width; x += 9) {
      pen.moveTo(left + x, top + height);
      pen.lineTo(left + x + height, top);
    }
    pen.stroke();
    pen.restore();
  }

  title(name) {
    return name === NO_TILE ? "this kernel has one tile" : `${name} [${this.view.call.calls.data.alphabet[name]?.unit ?? "-"}]`;
  }

  // Draw a sign at a tile, between cells if no cell has its size.
  mark(pen, [u, v], sign, w, h, shift = 0) {
    const place = (sizes, size) => {
      const above = sizes.findIndex((one) => one >= size);
      return above < 0 ? sizes.length - 0.5 : above + 0.5;
    };
    const x = this.box.left + place(this.columns, v) * w + shift, y = this.box.top + this.box.height - place(this.rows, u) * h;
    if (sign === "○") {
      for (const [width, colour] of [[5, "#fff"], [2, "#000"]]) {
        pen.lineWidth = width;
        pen.strokeStyle = colour;
        pen.beginPath();
        pen.arc(x, y, 15, 0, 2 * Math.PI);
        pen.stroke();
      }
      return;
    }
    pen.font = "14px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 3;
    const [edge, fill] = sign === "★" ? ["#000", "#fff"] : ["#fff", "#000"];
    pen.strokeStyle = edge;
    pen.strokeText(sign, x, y);
    pen.fillStyle = fill;
    pen.fillText(sign, x, y);
    pen.textBaseline = "alphabetic";
  }

  cellAt(event) {
    if (!this.view) return null;
    const box = this.canvas.getBoundingClientRect();
    const j = Math.floor(((event.clientX - box.left - this.box.left) / this.box.width) * this.columns.length);
    const i = Math.floor(((this.box.top + this.box.height - (event.clientY - box.top)) / this.box.height) * this.rows.length);
    return this.cells[i]?.[j] ?? null;
  }

  words(cell) {
    const inner = this.names[1] === NO_TILE ? "" : `, ${this.names[1]} = ${grouped(cell.v)}`;
    return `${this.names[0]} = ${grouped(cell.u)}${inner}: ${cell.words}`;
  }

  hover(event) {
    this.say(this.cellAt(event));
  }

  say(cell) {
    if (!this.view) return;
    this.line.textContent = cell ? this.words(cell) : `Least: ${this.names.filter((name) => name !== NO_TILE).map((name, i) => `${name} = ${grouped(this.best[i])}`).join(", ")}. Point at a cell, or click it to choose its tile.`;
  }

  move(down, across) {
    if (!this.view) return;
    const [i, j] = this.cursor;
    this.cursor = [Math.min(this.rows.length - 1, Math.max(0, i + down)), Math.min(this.columns.length - 1, Math.max(0, j + across))];
    const cell = this.cells[this.cursor[0]][this.cursor[1]];
    this.say(cell);
    this.announce(this.words(cell));
    this.draw();
  }

  key(event) {
    const moves = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in moves) this.move(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.pick(this.view && this.cells[this.cursor[0]][this.cursor[1]]);
    else return;
    event.preventDefault();
  }

  pick(cell) {
    if (!cell) return;
    const given = { [this.names[0]]: String(cell.u), [this.names[1]]: String(cell.v) };
    const names = new Set(this.view.call.set.tiles);
    this.choose(Object.fromEntries(Object.entries(given).filter(([name]) => names.has(name))));
  }
}
