// What can be taken away from a call: Python, a command, a citation, and a card of 1200 x 630 as SVG or PNG.

const CARD = [1200, 630];

// The fields of a call that differ from the defaults of Python, as [name, value] for each kind.
function termsOf(view) {
  const { state, call } = view;
  const { data } = call.calls;
  const shape = data.shape.filter((name) => state[name] !== AUTO).map((name) => [name, state[name]]);
  const way = data.algorithms[state.algorithm].directions[state.direction];
  const first = call.calls.defaults(state.algorithm, state.direction);
  const names = [...Object.keys(way.switches), ...Object.keys(way.numbers), "packed"];
  const options = names.filter((name) => state[name] !== first[name] && state[name] !== AUTO).map((name) => [name, state[name]]);
  const tiles = call.set.tiles.filter((name) => name in call.chosen).map((name) => [name, String(view.tiles[name])]);
  const whole = tiles.length ? call.set.tiles.map((name) => [name, String(view.tiles[name])]) : [];
  const memory = ["sram_bytes", "alignment"].filter((name) => state[name] !== AUTO).map((name) => [name, state[name]]);
  return { shape, options, tiles: whole, memory };
}

function pythonOf(view) {
  const { state } = view, { shape, options, tiles, memory } = termsOf(view);
  const quoted = (text) => `"${text}"`;
  const sides = ["left", "right"].filter((side) => state[`window_${side}`] !== AUTO).map((side) => `${side}=${state[`window_${side}`]}`);
  if (state.align !== "bottom-right") sides.push(`align=${quoted(state.align)}`);
  const mask = state.mask === "window" ? `iomodel.Window(${sides.join(", ")})` : quoted(state.mask);
  const fields = [...shape.map((pair) => pair.join("=")), `dtype=${quoted(state.dtype)}`, `mask=${mask}`, `direction=${quoted(state.direction)}`];
  const values = options.map(([name, value]) => `${name}=${{ on: "True", off: "False" }[value] ?? value}`);
  const lines = ["import iomodel", "", `w = iomodel.Attention(${fields.join(", ")})`];
  if (memory.length) {
    const budget = [...(state.sram_bytes === AUTO ? [quoted(state.hardware)] : []), ...memory.map((pair) => pair.join("="))];
    return [...lines, `print(iomodel.solve(${[quoted(state.algorithm), "w", ...budget, ...values].join(", ")}))`, ""].join("\n");
  }
  const chosen = tiles.length ? [`{${tiles.map(([name, size]) => `${quoted(name)}: ${size}`).join(", ")}}`] : [];
  const kernels = state.implementation === AUTO ? [] : [`implementation=${quoted(state.implementation)}`];
  return [...lines, `print(iomodel.estimate(${[quoted(state.algorithm), "w", quoted(state.hardware), ...chosen, ...kernels, ...values].join(", ")}))`, ""].join("\n");
}

function commandOf(view) {
  const { state } = view, { shape, options, tiles, memory } = termsOf(view);
  const flag = (name) => `--${name.replaceAll("_", "-")}`;
  const given = ([name, value]) => (value === "on" ? flag(name) : value === "off" ? `--no-${name.replaceAll("_", "-")}` : `${flag(name)} ${value}`);
  const window_ = state.mask === "window" ? ["window_left", "window_right", "align"].filter((name) => state[name] !== AUTO).map((name) => [name, state[name]]) : [];
  const kernels = state.implementation === AUTO || memory.length ? [] : [["implementation", state.implementation]];
  const device = state.sram_bytes === AUTO ? [["hardware", state.hardware]] : [];
  const all = [...device, ...shape, ["dtype", state.dtype], ["mask", state.mask], ...window_, ["direction", state.direction], ...(memory.length ? memory : tiles), ...kernels, ...options];
  return `iomodel ${memory.length ? "tiles" : "estimate"} ${state.algorithm} ${all.map(given).join(" ")}`;
}

function bibtexOf(view) {
  const { version, software } = view.call.calls.data;
  const fields = { author: `{${software.author}}`, title: `iomodel: ${software.title}`, version, url: software.url, note: `\\texttt{${commandOf(view).replaceAll("_", "\\_")}}` };
  const lines = Object.entries(fields).filter(([name, value]) => value && (name !== "author" || software.author)).map(([name, value]) => `  ${name} = {${value}}`);
  return `@software{iomodel,\n${lines.join(",\n")}\n}\n`;
}

// The card of a call, with colours of its own so that it is the same in light and dark.
function cardOf(view) {
  const { call, state, time, counts } = view;
  const escape = (text) => String(text).replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
  const text = (x, y, size, words, more = "") => `<text x="${x}" y="${y}" font-size="${size}" ${more}>${escape(words)}</text>`;
  const lengths = `${grouped(call.numbers.q_len)} x ${grouped(call.numbers.kv_len)} tokens, batch ${grouped(call.numbers.batch)}, ${grouped(call.numbers.heads)} heads of ${grouped(call.numbers.head_dim)}, ${grouped(call.numbers.kv_heads)} for K and V, ${state.dtype}, ${state.mask} mask`;
  const parts = [
    text(60, 92, 46, `${call.algorithm.title}, ${state.direction}`, 'font-weight="700"'),
    text(60, 138, 27, call.hardware.name, 'fill="#005a9c"'),
    text(60, 178, 23, lengths, 'fill="#55626f"'),
  ];
  const figures = [time && ["time", short(time.seconds, "s")], time && [LABELS.dram, short(time.streamed, "B")], [LABELS.requests, short(counts.hbm_bytes, "B")]].filter(Boolean);
  figures.forEach(([name, value], i) => parts.push(text(60, 262 + 108 * i, 22, name, 'fill="#55626f"'), text(60, 312 + 108 * i, 46, value, 'font-weight="700"')));
  const rows = time ? Object.entries(time.breakdown).filter(([, seconds]) => seconds > 0).sort((a, b) => b[1] - a[1]) : [];
  const bars = rows.filter(([name], i) => i < 6 || name === "hbm").slice(0, 7); // DRAM, which people look for, however short
  if (bars.length) parts.push(text(666, 222, 19, "time of each resource alone", 'fill="#55626f"'));
  bars.forEach(([name, seconds], i) => {
    const y = 236 + 46 * i;
    parts.push(text(650, y + 25, 21, resource(name), 'text-anchor="end"'), `<rect x="666" y="${y + 4}" width="${(360 * seconds) / Math.max(time.seconds, bars[0][1])}" height="28" rx="3" fill="${name === time.limited_by ? "#d55e00" : "#0072b2"}"/>`, text(1140, y + 25, 21, short(seconds, "s"), 'text-anchor="end"'));
  });
  parts.push(text(60, 592, 20, `iomodel ${call.calls.data.version}${time ? `; bound by ${resource(time.limited_by)}; ${tilesText(time.tiles)}` : `; ${tilesText(view.tiles)}`}`, 'fill="#55626f"'));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${CARD[0]}" height="${CARD[1]}" viewBox="0 0 ${CARD.join(" ")}" font-family="system-ui, sans-serif" fill="#16202b"><rect width="100%" height="100%" fill="#ffffff"/><rect width="14" height="100%" fill="#005a9c"/>${parts.join("")}</svg>`;
}

const cardAddress = (view) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(cardOf(view))}`;

async function pngOf(view) {
  const image = new Image();
  image.src = cardAddress(view);
  await image.decode();
  const canvas = element("canvas", { width: CARD[0], height: CARD[1] });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/png");
}

class Share {
  constructor(host, page) {
    const copy = (name, text) => this.button(name, async (button) => {
      try {
        await navigator.clipboard.writeText(text());
        this.done(button, "Copied");
      } catch {
        this.text.hidden = false;
        this.text.value = text();
        this.text.select();
        this.done(button, "Shown below");
      }
    });
    const save = (name, file, address) => this.button(name, async (button) => {
      element("a", { href: await address(), download: file }).click();
      this.done(button, "Saved");
    });
    this.text = element("textarea", { hidden: true, readonly: true, rows: 6, "aria-label": "Text to copy" });
    const { pin } = page.compare;
    host.replaceChildren(
      element("div", { class: "controls", role: "group", "aria-label": "Take this call along" },
        pin, copy("Copy link", () => location.href), copy("Copy Python", () => pythonOf(page.view)), copy("Copy command", () => commandOf(page.view)),
        copy("Copy BibTeX", () => bibtexOf(page.view)), save("Save SVG", "iomodel.svg", () => cardAddress(page.view)), save("Save PNG", "iomodel.png", () => pngOf(page.view))),
      this.text,
    );
  }

  button(name, act) {
    const made = element("button", { type: "button", onclick: () => act(made) }, name);
    made.dataset.name = name;
    return made;
  }

  done(button, word) {
    button.textContent = word;
    say(word);
    setTimeout(() => { button.textContent = button.dataset.name; }, 1800);
  }
}
