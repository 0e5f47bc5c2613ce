// The first picture: standard attention and FlashAttention-2 on one clock, by the events of their traces.

const LOOP = 10, REST = 2.5; // seconds of one pass, and of its end
const GAP = 6;
const [LINE, TENSOR, Q_FIRST, Q_LAST, K_FIRST, K_LAST, BYTES, LOADED, HELD] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

// One half: everything at a number of bytes that have passed the bus.
class Side {
  constructor(host, data, tiles) {
    this.data = data;
    this.tiles = tiles;
    this.stores = data.steps.map(([line]) => data.lines[line][1].startsWith("store"));
    let sum = 0;
    this.until = data.steps.map((step) => (sum += step[BYTES]));
    this.canvas = element("canvas", { role: "img" });
    this.count = element("strong", {});
    this.more = element("span", {});
    this.lines = data.lines.map(([depth, text]) => element("li", { style: `--depth:${depth}` }, text));
    const listing = element("ol", { class: "listing", "aria-label": `Declaration of ${data.title}` }, ...this.lines);
    const counter = element("p", { class: "counter" }, this.count, this.more);
    this.less = element("p", { class: "less" });
    this.area = element("div", { class: "area" }, this.canvas, counter, this.less);
    const loops = element("details", {}, element("summary", {}, "The loops"), listing);
    host.append(element("article", { class: "half" }, element("h3", {}, data.title), this.area, loops));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.over = null; });
    this.over = null;
  }

  // The step that moves after so many bytes, and the tiles touched so far.
  at(passed) {
    const { steps, tensors } = this.data;
    const touched = Object.fromEntries(Object.keys(tensors).map((name) => [name, new Map()]));
    const plane = new Set();
    let now = steps.findIndex((_, i) => this.until[i] > passed);
    if (now < 0) now = steps.length;
    for (let i = 0; i < now; i++) this.touch(steps[i], touched, plane);
    return { now, touched, plane, bytes: Math.min(passed, this.data.total) };
  }

  touch(step, touched, plane) {
    const [q0, q1, k0, k1] = [step[Q_FIRST], step[Q_LAST], step[K_FIRST], step[K_LAST]];
    if (!step[TENSOR] && q0 >= 0 && k0 >= 0) for (let q = q0; q <= q1; q++) for (let k = k0; k <= k1; k++) plane.add(`${q},${k}`);
    if (!step[BYTES] || !touched[step[TENSOR]]) return;
    for (let q = Math.max(q0, 0); q <= Math.max(q1, 0); q++) {
      for (let k = Math.max(k0, 0); k <= Math.max(k1, 0); k++) {
        const key = `${q},${k}`, of = touched[step[TENSOR]];
        of.set(key, (of.get(key) ?? 0) + 1);
      }
    }
  }

  // Where everything is on the canvas.
  layout() {
    const width = Math.max(130, this.area.clientWidth), narrow = width < 430;
    const names = Object.keys(this.data.tensors);
    const planes = names.filter((name) => this.data.tensors[name].length === 2);
    const cells = (planes.length || 1) * (this.tiles + 1) + 3;
    const hbmWidth = narrow ? width - 2 : width - 152;
    const cell = Math.max(4, Math.min(18, Math.floor((hbmWidth - 16) / cells)));
    const hbm = { x: 1, y: 1, w: hbmWidth, h: narrow ? Math.max(11 * cell + 86, 150) : 268 };
    const chip = narrow
      ? [{ x: 1, y: hbm.h + 42, w: width / 2 - 5, h: 92 }, { x: width / 2 + 4, y: hbm.h + 42, w: width / 2 - 5, h: 92 }]
      : [{ x: width - 108, y: 1, w: 107, h: 130 }, { x: width - 108, y: 139, w: 107, h: 130 }];
    const height = narrow ? hbm.h + 136 : 270;
    const top = hbm.y + 42, left = hbm.x + 10;
    const box = {};
    const low = top + (planes.length ? cell + 10 : 2 * cell + GAP + 22);
    box.Q = { x: left, y: low, of: "query" };
    let x = left + cell + 8;
    const first = x;
    for (const name of planes.length ? planes : ["plane"]) {
      box[name] = { x, y: low, of: "plane" };
      x += this.tiles * cell + 8;
    }
    box.K = { x: first, y: top, of: "key" };
    box.V = { x: planes.length ? box[planes.at(-1)].x : first, y: planes.length ? top : top + cell + GAP + 12, of: "key" };
    box.O = { x, y: low, of: "query" };
    if (names.includes("LSE")) box.LSE = { x: x + cell + 12, y: low, of: "query", thin: true };
    return { width, height, hbm, chip, cell, box, narrow };
  }

  draw(passed, ink) {
    const spot = this.spot = this.layout();
    const { width, height, hbm, chip, cell, box } = spot;
    const pen = penOf(this.canvas, width, height);
    const seen = this.at(passed);
    const step = this.data.steps[seen.now] ?? null;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "left";
    this.box(pen, ink, hbm, "HBM");
    this.box(pen, ink, chip[0], "SRAM");
    this.box(pen, ink, chip[1], "Registers");
    for (const [name, place] of Object.entries(box)) this.tensor(pen, ink, name, place, seen, step);
    this.chips(pen, ink, chip, step);
    this.bus(pen, ink, spot, step, seen.now ? this.until[seen.now - 1] : 0, passed);
    this.tell(seen, step, passed);
    const reads = Math.max(0, ...(seen.touched.K?.values() ?? []));
    this.canvas.setAttribute("aria-label", `${this.data.title}: ${grouped(Math.round(seen.bytes))} bytes have moved; tiles of K and V were read up to ${reads} times`);
    return cell;
  }

  box(pen, ink, { x, y, w, h }, name) {
    pen.fillStyle = ink.page;
    pen.strokeStyle = ink.soft;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(x, y, w, h, 8);
    pen.fill();
    pen.stroke();
    pen.fillStyle = ink.ink;
    pen.fillText(name, x + 10, y + 18);
  }

  tensor(pen, ink, name, { x, y, of, thin }, seen, step) {
    const { cell } = this.spot, n = this.tiles, of_ = seen.touched[name];
    const [rows, columns] = [of === "key" ? 1 : n, of === "query" ? 1 : n];
    const moving = step?.[TENSOR] === name && step[BYTES] > 0;
    for (let q = 0; q < rows; q++) {
      for (let k = 0; k < columns; k++) {
        const wide = thin ? 6 : cell;
        const [px, py] = [x + k * cell, y + q * cell];
        const times = of_?.get(`${q},${k}`) ?? 0;
        const visited = name === "plane" && seen.plane.has(`${q},${k}`);
        pen.fillStyle = times ? heat(times, ink) : visited ? ink.visited : ink.panel;
        pen.fillRect(px, py, wide - 1, cell - 1);
        const here = moving && within(q, step[Q_FIRST], step[Q_LAST]) && within(k, step[K_FIRST], step[K_LAST]);
        const on = this.over?.name === name && this.over.q === q && this.over.k === k;
        pen.strokeStyle = here ? ink.here : on ? ink.ink : ink.line;
        pen.lineWidth = here || on ? 2.5 : 1;
        if (name === "plane") pen.setLineDash([2, 2]);
        pen.strokeRect(px, py, wide - 1, cell - 1);
        pen.setLineDash([]);
        if (times > 1 && cell > 10 && !thin) {
          pen.fillStyle = times > 4 ? ink.onHot : ink.onWarm;
          pen.font = "600 10px system-ui, sans-serif";
          pen.textAlign = "center";
          pen.fillText(String(times), px + cell / 2 - 0.5, py + cell / 2 + 3.5);
        }
      }
    }
    pen.textAlign = "left";
    pen.fillStyle = ink.ink;
    pen.font = "600 12px system-ui, sans-serif";
    const label = name !== "plane" ? name : this.spot.width < 220 ? "no S, P" : "S, P: never in HBM";
    if (thin && this.spot.width < 220) return;
    if (of === "key") pen.fillText(label, x, y - 4);
    else pen.fillText(label, x, y + n * cell + 14);
  }

  // The buffers on chip: loaded tiles in SRAM, results in registers.
  chips(pen, ink, places, step) {
    places.forEach((place, number) => {
      const parts = step?.[[LOADED, HELD][number]] ?? [];
      pen.font = "12px system-ui, sans-serif";
      parts.forEach(([name, bytes], i) => {
        const y = place.y + 30 + i * 22;
        if (y + 20 > place.y + place.h) return;
        pen.fillStyle = number ? ink.compute : ink.load;
        pen.globalAlpha = 0.3;
        pen.fillRect(place.x + 8, y, place.w - 16, 19);
        pen.globalAlpha = 1;
        pen.fillStyle = ink.ink;
        pen.fillText(`${name}: ${memory(bytes)}`, place.x + 13, y + 14);
      });
    });
  }

  bus(pen, ink, { hbm, chip, narrow }, step, before, passed) {
    const [from, to] = narrow
      ? [[chip[0].x + chip[0].w / 2, hbm.y + hbm.h], [chip[0].x + chip[0].w / 2, chip[0].y]]
      : [[hbm.x + hbm.w, 66], [chip[0].x, 66]];
    pen.strokeStyle = ink.line;
    pen.lineWidth = 12;
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    if (!step?.[BYTES]) return;
    const store = this.stores[this.data.steps.indexOf(step)];
    const share = (passed - before) / step[BYTES];
    const way = store ? 1 - share : share;
    const at = from.map((value, i) => value + (to[i] - value) * way);
    pen.fillStyle = store ? ink.store : ink.load;
    pen.beginPath();
    pen.arc(...at, 7, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = ink.ink;
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = narrow ? "left" : "center";
    const words = `${step[TENSOR]} ${memory(step[BYTES])}`;
    if (narrow) pen.fillText(words, from[0] + 14, (from[1] + to[1]) / 2 + 4);
    else {
      pen.fillText(step[TENSOR], (from[0] + to[0]) / 2, 50);
      pen.fillText(memory(step[BYTES]), (from[0] + to[0]) / 2, 88);
    }
    pen.textAlign = "left";
  }

  // Counter and lines: the line that moves, and near its end those that compute with what it brought.
  tell(seen, step, passed) {
    const { steps, total } = this.data;
    const end = !step;
    this.count.textContent = `${grouped(end ? total : Math.round(seen.bytes))} B`;
    this.more.textContent = end ? " moved; done" : ` of ${grouped(total)} B moved`;
    this.less.textContent = end && this.fewer > 1.05 ? `${this.fewer.toFixed(1)} x less` : "";
    const lit = new Set();
    if (step) {
      let i = seen.now;
      while (i >= 0 && steps[i] && !steps[i][BYTES]) i++;
      if (steps[i]) lit.add(steps[i][LINE]);
      const share = (passed - (seen.now ? this.until[seen.now - 1] : 0)) / (step[BYTES] || 1);
      if (share > 0.5) for (let j = i + 1; steps[j] && !steps[j][BYTES]; j++) lit.add(steps[j][LINE]);
    }
    if (this.over) this.linesOf(this.over.name).forEach((line) => lit.add(line));
    this.lines.forEach((line, i) => line.classList.toggle("lit", lit.has(i)));
  }

  // The lines that move a tensor, or compute on the plane.
  linesOf(name) {
    const own = this.data.steps.filter((step) => (name === "plane" ? !step[TENSOR] : step[TENSOR] === name));
    return [...new Set(own.map((step) => step[LINE]))];
  }

  point(event) {
    const { left, top } = this.canvas.getBoundingClientRect(), { box, cell } = this.spot;
    const [px, py] = [event.clientX - left, event.clientY - top];
    this.over = null;
    for (const [name, { x, y, of }] of Object.entries(box)) {
      const k = Math.floor((px - x) / cell), q = Math.floor((py - y) / cell);
      if (within(q, 0, of === "key" ? 0 : this.tiles - 1) && within(k, 0, of === "query" ? 0 : this.tiles - 1)) this.over = { name, q, k };
    }
    this.changed?.();
  }
}

const within = (value, first, last) => (first < 0 ? true : value >= first && value <= last);
const HEATS = ["#ffd9a0", "#ffb95e", "#ff9838", "#f5761a", "#d95508", "#b53c04", "#8c2a05", "#661b05"];
const heat = (times) => HEATS[Math.min(HEATS.length, times) - 1];

class Scene {
  constructor(host, data) {
    const halves = element("div", { class: "halves" });
    this.sides = data.sides.map((side) => new Side(halves, side, data.tiles));
    this.total = Math.max(...data.sides.map((side) => side.total));
    for (const side of this.sides) side.fewer = this.total / side.data.total;
    this.play = element("button", { type: "button", id: "watch-play", onclick: () => this.toggle() }, "Pause");
    this.scrub = element("input", { id: "watch-time", type: "range", min: 0, max: 1000, value: 0, oninput: () => this.seek() });
    this.pace = element("select", { id: "watch-pace" }, ...[["1", "10 s"], ["0.25", "40 s"], ["0.05", "200 s"]].map(([value, text]) => element("option", { value }, text)));
    const label = (text, field) => element("label", { for: field.id }, text, field);
    host.replaceChildren(halves, element("div", { class: "controls" }, this.play, label("Time ", this.scrub), label("Pass in ", this.pace)));
    this.share = 0;
    this.rest = 0;
    this.running = false;
    for (const side of this.sides) side.changed = () => { if (!this.running) this.draw(); };
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) this.share = 1;
    this.draw();
    if (still) this.pause();
    else this.start();
    new IntersectionObserver(([entry]) => {
      this.hidden = !entry.isIntersecting;
      if (!this.hidden && this.running) this.start();
    }).observe(host);
  }

  draw() {
    const css = getComputedStyle(document.documentElement);
    const ink = Object.fromEntries(["ink", "soft", "line", "page", "panel", "load", "compute", "store", "here", "visited"].map((name) => [name, css.getPropertyValue(`--${name}`).trim()]));
    Object.assign(ink, { onHot: "#fff", onWarm: "#2b1500" });
    for (const side of this.sides) side.draw(this.share * this.total, ink);
    this.scrub.value = String(Math.round(this.share * 1000));
    this.scrub.setAttribute("aria-valuetext", `${Math.round(this.share * 100)} % of the pass`);
  }

  // Play; out of sight, no frame is asked for.
  start() {
    cancelAnimationFrame(this.frame);
    this.running = true;
    this.play.textContent = "Pause";
    let before = null; // a frame may bear a time before this call
    const tick = (now) => {
      if (!this.running || this.hidden) return;
      before ??= now;
      const seconds = Math.min(0.1, (now - before) / 1000) * Number(this.pace.value);
      before = now;
      if (this.share < 1) this.share = Math.min(1, this.share + seconds / LOOP);
      else if ((this.rest += seconds) > REST * Number(this.pace.value)) [this.share, this.rest] = [0, 0];
      this.draw();
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  pause() {
    this.running = false;
    this.play.textContent = "Play";
  }

  toggle() {
    if (this.running) return this.pause();
    if (this.share >= 1) this.share = 0;
    this.start();
  }

  seek() {
    this.pause();
    this.share = Number(this.scrub.value) / 1000;
    this.draw();
  }
}
