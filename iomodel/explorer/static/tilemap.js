// The map of tiles: traffic of every pair of sizes that fits, the best and the chosen one marked.

const MOST_CELLS = 56;
const STOPS = [[0, 34, 78], [54, 77, 112], [106, 113, 123], [167, 158, 118], [221, 204, 100], [253, 234, 69]]; // cividis

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
    host.replaceChildren(this.canvas, this.line);
    this.scale = element("div", { class: "ramp" });
    host.append(this.scale);
  }

  show(view) {
    const { call, solved } = view;
    this.view = null;
    if (!call.parts.length || !solved.feasible) {
      this.line.textContent = bindingText(view);
      this.canvas.hidden = true;
      this.scale.replaceChildren();
      return;
    }
    this.canvas.hidden = false;
    const part = call.parts[call.pair];
    const problem = new Problem(part, call.formulas, call.point, call.budget, { outer: solved.ranges[part.outer], inner: solved.ranges[part.inner] });
    const best = [solved.tiles[part.outer] ?? 1n, solved.tiles[part.inner] ?? 1n];
    const fits = (u, v) => problem.footprint(u, v) <= call.budget;
    this.rows = sizesFor(problem.outer, best[0], (u) => fits(u, problem.inner.first));
    this.columns = sizesFor(problem.inner, best[1], (v) => fits(problem.outer.first, v));
    let [low, high] = [Infinity, 0];
    this.cells = this.rows.map((u) =>
      this.columns.map((v) => {
        const bytes = problem.cost(u, v), used = problem.footprint(u, v);
        if (used <= call.budget) [low, high] = [Math.min(low, Number(bytes)), Math.max(high, Number(bytes))];
        return { u, v, bytes, used, fits: used <= call.budget };
      }),
    );
    this.range = [low, high];
    this.view = view;
    this.part = part;
    this.best = best;
    this.chosen = [view.tiles[part.outer] ?? 1n, view.tiles[part.inner] ?? 1n];
    this.cursor = [this.rows.indexOf(best[0]), this.columns.indexOf(best[1])];
    this.canvas.setAttribute("aria-label", `Map of tiles: ${part.outer} down, ${part.inner} across; arrow keys move, Enter chooses`);
    this.scale.replaceChildren(
      element("span", {}, short(low, "B")),
      element("span", { class: "gradient", style: `background:linear-gradient(90deg,${[1, 0.75, 0.5, 0.25, 0].map(shade).join()})` }),
      element("span", {}, short(high, "B")),
      element("span", { class: "key" }, "★ best   ○ chosen   hatched: does not fit"),
    );
    this.say(null);
    this.draw();
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
          pen.fillStyle = shade(high > low ? 1 - (Math.log(Number(cell.bytes)) - low) / (high - low) : 1);
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
    for (const [size, j] of labels(this.columns, width < 420 ? 5 : 9)) pen.fillText(grouped(size), left + (j + 0.5) * w, top + this.box.height + 16);
    pen.fillText(`${this.part.inner} [${this.unit(this.part.inner)}]`, left + this.box.width / 2, height - 10);
    pen.textAlign = "right";
    for (const [size, i] of labels(this.rows, 8)) pen.fillText(grouped(size), left - 6, top + this.box.height - (i + 0.5) * h + 4);
    pen.save();
    pen.translate(13, top + this.box.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(`${this.part.outer} [${this.unit(this.part.outer)}]`, 0, 0);
    pen.restore();
    this.mark(pen, this.chosen, "○", w, h);
    this.mark(pen, this.best, "★", w, h);
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

  unit(name) {
    return this.view.call.calls.data.alphabet[name]?.unit ?? "-";
  }

  // Draw a sign at a tile, between cells if no cell has its size.
  mark(pen, [u, v], sign, w, h) {
    const place = (sizes, size) => {
      const above = sizes.findIndex((one) => one >= size);
      return above < 0 ? sizes.length - 0.5 : above + 0.5;
    };
    const x = this.box.left + place(this.columns, v) * w, y = this.box.top + this.box.height - place(this.rows, u) * h;
    pen.font = sign === "★" ? "20px system-ui, sans-serif" : "bold 26px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 3.5;
    pen.strokeStyle = "#000";
    pen.strokeText(sign, x, y);
    pen.fillStyle = "#fff";
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
    const fit = cell.fits ? `${memory(cell.used)} of SRAM` : `does not fit: ${memory(cell.used)} of SRAM`;
    return `${this.part.outer} = ${grouped(cell.u)}, ${this.part.inner} = ${grouped(cell.v)}: ${short(cell.bytes, "B")}, ${fit}`;
  }

  hover(event) {
    this.say(this.cellAt(event));
  }

  say(cell) {
    if (!this.view) return;
    this.line.textContent = cell ? this.words(cell) : `Best: ${tilesText(this.view.solved.tiles)}. Point at a cell, or click it to choose its tile.`;
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
    const given = { [this.part.outer]: String(cell.u), [this.part.inner]: String(cell.v) };
    const names = new Set(this.view.call.set.tiles);
    this.choose(Object.fromEntries(Object.entries(given).filter(([name]) => names.has(name))));
  }
}
