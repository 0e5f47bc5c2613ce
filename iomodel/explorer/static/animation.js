// Animation of the tiles of one head: the plane of scores in the middle, other tensors along its sides.

const VERBS = { load: "load", store: "store", add: "add to", multiply: "multiply", exp: "exponentials of" };
const inPlane = (axes) => axes.includes("query") && axes.includes("key");
const SPEEDS = [2, 8, 30, 120, 600, 3000, 20_000];
const WHOLE = 20; // seconds of a whole run at the first speed

class Animation {
  constructor(host, announce) {
    this.announce = announce;
    this.canvas = element("canvas", { role: "img", "aria-label": "Tile animation" });
    this.play = element("button", { type: "button", onclick: () => this.toggle() }, "Play");
    this.kernel = element("select", { id: "kernel", onchange: () => this.restart() });
    this.speed = element("input", { id: "speed", type: "range", min: 0, max: SPEEDS.length - 1, value: 2, oninput: () => { this.paced = true; this.tell(); } });
    this.rate = element("output", { for: "speed" });
    this.readout = element("p", { class: "readout" });
    const step = element("button", { type: "button", onclick: () => { this.pause(); this.advance(1); this.announce(this.readout.textContent); } }, "Step");
    const again = element("button", { type: "button", onclick: () => this.restart() }, "Restart");
    const labelled = (text, field, ...more) => element("label", { for: field.id }, text, field, ...more);
    this.controls = element("div", { class: "controls" }, this.play, step, again, labelled("Kernel ", this.kernel), labelled("Speed ", this.speed, this.rate));
    const keys = [["load", "loaded"], ["compute", "computed"], ["store", "stored"], ["done", "visited before"], ["masked", "masked, skipped"]];
    const key = element("ul", { class: "legend" }, ...keys.map(([name, text]) => element("li", {}, element("span", { class: `swatch ${name}` }), text)));
    host.replaceChildren(this.controls, this.canvas, this.readout, key);
    this.host = host;
    this.timer = null;
    this.tell();
  }

  tell() {
    this.rate.textContent = `${SPEEDS[this.speed.value]} steps/s`;
  }

  show(view) {
    this.pause();
    this.view = view;
    const titles = view.call.nest.kernels.map((kernel) => kernel.title);
    this.kernel.replaceChildren(...titles.map((title, i) => element("option", { value: i }, title)));
    this.kernel.value = titles.length > 1 ? String(longest(view.call.nest.kernels)) : "0";
    this.restart();
  }

  restart() {
    this.pause();
    const { call, tiles } = this.view;
    this.walker = new Walker(call, tiles, Number(this.kernel.value));
    this.events = this.walker.run();
    this.count = 0;
    this.last = null;
    this.over = false;
    this.touched = new Map();
    this.paced = false;
    this.layout();
    this.readout.textContent = "Press Play or Step: one head is shown, in the order of the loops.";
    this.draw();
  }

  // The speed at which the whole run takes about 20 s, from the number of steps.
  pace() {
    let count = 0;
    for (const _ of new Walker(this.view.call, this.view.tiles, Number(this.kernel.value)).run()) if (++count >= SPEEDS.at(-1) * WHOLE) break;
    const found = SPEEDS.findIndex((speed) => speed * WHOLE >= count);
    this.speed.value = String(found < 0 ? SPEEDS.length - 1 : found);
    this.tell();
    return this.speed.value;
  }

  // Bring the animation in sight, and play it unless the reader wants no motion.
  watch() {
    this.host.scrollIntoView({ block: "center" });
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.toggle();
  }

  toggle() {
    if (this.timer) return this.pause();
    if (this.over) this.restart();
    if (!this.paced) this.pace(); // counted when it is wanted: a long call has many steps
    this.paced = true;
    this.play.textContent = "Pause";
    this.play.setAttribute("aria-pressed", "true");
    let before = null, owed = 0; // a frame may bear a time before this call
    const tick = (now) => {
      before ??= now;
      owed += ((now - before) / 1000) * SPEEDS[this.speed.value];
      before = now;
      const due = Math.min(2000, Math.floor(owed));
      if (due) {
        owed -= due;
        this.advance(due);
      }
      if (this.over) this.pause();
      else this.timer = requestAnimationFrame(tick);
    };
    this.timer = requestAnimationFrame(tick);
  }

  pause() {
    if (this.timer) cancelAnimationFrame(this.timer);
    this.timer = null;
    this.play.textContent = "Play";
    this.play.setAttribute("aria-pressed", "false");
  }

  advance(steps) {
    for (let i = 0; i < steps; i++) {
      const { value, done } = this.events.next();
      if (done) {
        this.over = true;
        this.readout.textContent = `Done: ${grouped(this.count)} steps.`;
        break;
      }
      this.count += 1;
      this.last = value;
      this.note(value);
      const rows = value.axes.map((axis, k) => `${axis} ${grouped(value.spans[k][0])}–${grouped(value.spans[k][1] - 1)}`);
      this.readout.textContent = `Step ${grouped(this.count)}: ${VERBS[value.do]} ${value.tensor ?? "a tile"} (${rows.join(", ") || "one number"})`;
    }
    this.draw();
  }

  // Layout of the tensors: those over both axes in the plane, others along one side, the rest below.
  layout() {
    const { nest } = this.view.call;
    const names = new Set();
    const look = (body) => body.forEach((s) => { if (s.tensor) names.add(s.tensor); if (s.body) look(s.body); });
    look(this.walker.kernel.body);
    const of = [...names].map((name) => [name, nest.tensors[name]]);
    this.plane = of.filter(([, axes]) => axes.includes("query") && axes.includes("key")).map(([name]) => name);
    this.left = of.filter(([, axes]) => axes.includes("query") && !axes.includes("key")).map(([name]) => name);
    this.top = of.filter(([, axes]) => axes.includes("key") && !axes.includes("query")).map(([name]) => name);
    this.rest = of.filter(([, axes]) => !axes.includes("key") && !axes.includes("query")).map(([name]) => name);
  }

  note({ do: what, tensor, axes, spans }) {
    const name = tensor ?? "plane";
    if (!tensor && !inPlane(axes)) return;
    if (!this.touched.has(name)) this.touched.set(name, new Map());
    this.touched.get(name).set(spans.map(([a, b]) => `${a}-${b}`).join(), { what, axes, spans });
  }

  draw() {
    if (!this.walker) return;
    const width = Math.max(280, Math.min(900, this.host.clientWidth));
    const thin = width < 420 ? 15 : 20, gap = 5;
    const sides = 34 + this.left.length * (thin + gap), above = 26 + this.top.length * (thin + gap);
    const below = this.rest.length ? 24 + this.rest.length * (thin + gap) : 0;
    const size = Math.min(width - sides - 8, 300);
    const height = above + size + below + 12;
    const pen = penOf(this.canvas, width, height);
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    const rowsOf = (axis) => this.walker.axes[axis]?.rows ?? 1;
    const box = { x: sides, y: above, w: width - sides - 8, h: size };
    pen.font = "12px system-ui, sans-serif";
    const along = (axis, [a, b], length) => {
      const from = (a / rowsOf(axis)) * length, to = (b / rowsOf(axis)) * length;
      return [from, Math.max(1.5, to - from)];
    };
    const place = (name, axes, spans) => {
      const span = (axis) => spans[axes.indexOf(axis)] ?? [0, rowsOf(axis)];
      if (this.left.includes(name)) {
        const [y, h] = along("query", span("query"), box.h);
        return [30 + this.left.indexOf(name) * (thin + gap), box.y + y, thin, h];
      }
      if (this.top.includes(name)) {
        const [x, w] = along("key", span("key"), box.w);
        return [box.x + x, 22 + this.top.indexOf(name) * (thin + gap), w, thin];
      }
      if (this.rest.includes(name)) {
        const [x, w] = axes.length ? along(axes[0], spans[0], box.w) : [0, box.w];
        return [box.x + x, box.y + box.h + 20 + this.rest.indexOf(name) * (thin + gap), w, thin];
      }
      const [y, h] = along("query", span("query"), box.h), [x, w] = along("key", span("key"), box.w);
      return [box.x + x, box.y + y, w, h];
    };
    pen.fillStyle = colour("panel");
    pen.fillRect(box.x, box.y, box.w, box.h);
    this.hatch(pen, box, colour("line"));
    const paint = (name, { what, axes, spans }, now) => {
      const kind = what === "load" ? "load" : what === "store" || what === "add" ? "store" : "compute";
      pen.globalAlpha = now ? 1 : 0.38;
      pen.fillStyle = colour(kind);
      pen.fillRect(...place(name, axes, spans));
      pen.globalAlpha = 1;
      if (now) {
        pen.lineWidth = 2;
        pen.strokeStyle = colour("ink");
        pen.strokeRect(...place(name, axes, spans));
      }
    };
    for (const [name, spots] of this.touched) for (const spot of spots.values()) paint(name, spot, false);
    if (this.last) {
      const { do: what, tensor, axes } = this.last;
      if (tensor || inPlane(axes)) paint(tensor ?? "plane", this.last, true);
    }
    pen.lineWidth = 1;
    pen.strokeStyle = colour("soft");
    pen.fillStyle = colour("ink");
    pen.strokeRect(box.x, box.y, box.w, box.h);
    pen.textAlign = "left";
    pen.fillText(`keys → ${grouped(rowsOf("key"))}${this.plane.length ? `; plane: ${this.plane.join(", ")}` : ""}`, box.x, 13);
    for (const name of [...this.left, ...this.top, ...this.rest]) {
      const [x, y, w, h] = place(name, [], []);
      pen.strokeRect(x, y, w, h);
      if (this.left.includes(name)) {
        pen.save();
        pen.translate(x + thin - 5, y + box.h - 4);
        pen.rotate(-Math.PI / 2);
        pen.fillText(name, 0, 0);
        pen.restore();
      } else pen.fillText(name, x + 4, y + thin - 5);
    }
    pen.save();
    pen.translate(14, box.y + box.h / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(`← queries, ${grouped(rowsOf("query"))}`, 0, 0);
    pen.restore();
  }

  // Hatch the pairs that no query sees, one line of pixels at a time.
  hatch(pen, box, colour) {
    const { call } = this.view;
    const [queries, keys] = ["query", "key"].map((axis) => this.walker.axes[axis]?.rows ?? 0);
    if (!queries || !keys || (call.sides.left === null && call.sides.right === null)) return;
    pen.save();
    pen.beginPath();
    for (let y = 0; y < box.h; y++) {
      const from = Math.floor((y / box.h) * queries), to = Math.max(from + 1, Math.floor(((y + 1) / box.h) * queries));
      const found = seen(call, this.walker.packed, "key", from, to, keys) ?? [0, 0];
      const [a, b] = found.map((key) => (key / keys) * box.w);
      pen.rect(box.x, box.y + y, a, 1);
      pen.rect(box.x + b, box.y + y, box.w - b, 1);
    }
    pen.clip();
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let x = -box.h; x < box.w; x += 8) {
      pen.moveTo(box.x + x, box.y + box.h);
      pen.lineTo(box.x + x + box.h, box.y);
    }
    pen.stroke();
    pen.restore();
  }
}

// The kernel with the most statements, shown first.
function longest(kernels) {
  const size = (body) => body.reduce((sum, s) => sum + 1 + (s.body ? size(s.body) : 0), 0);
  return kernels.map(({ body }) => size(body)).reduce((best, n, i, all) => (n > all[best] ? i : best), 0);
}
