// The figures of a call: cards, the footprint against the budget, the table of counts, the formulas.

const NAMES = { sram: "the SRAM", extent: "the lengths: every tile covers its axis", traffic: "nothing; larger tiles fit but save no traffic" };

function tilesText(tiles) {
  return Object.entries(tiles).map(([name, size]) => `${name} = ${grouped(size)}`).join(", ") || "no tiles";
}

function bindingText(view) {
  const { solved, call } = view;
  if (!call.parts.length) return call.set.refused || "This kind of call has no tiles to choose.";
  if (solved.why) return solved.why;
  if (!solved.feasible) return `No tile fits ${grouped(call.budget)} B; at least ${grouped(solved.least)} B are needed.`;
  const step = solved.step;
  const next = `${step.tile} = ${grouped(step.size)} would exceed the SRAM by ${grouped(step.excess)} B`;
  return `Limit of the best tiles: ${NAMES[solved.binding]}; ${next}.`;
}

function drawCards(view) {
  const { call, counts } = view;
  const rate = call.hardware.hbm?.value, peak = call.hardware.peak[call.state.dtype]?.value;
  const cards = [
    ["HBM traffic", short(counts.hbm_bytes, "B"), `${grouped(counts.hbm_bytes)} B`],
    ["Matrix work", short(counts.flops, "FLOP"), `${grouped(counts.flops)} FLOP`],
    ["Exponentials", short(counts.exps, ""), grouped(counts.exps)],
    ["Arithmetic intensity", `${view.intensity.toPrecision(4)} FLOP/B`, rate && peak ? `ridge point at ${(peak / rate).toPrecision(4)} FLOP/B` : "no ridge point on file"],
  ];
  if (rate && peak) {
    const [moving, computing] = [Number(counts.hbm_bytes) / rate, Number(counts.flops) / peak];
    cards.push([
      "Least time (roofline)",
      short(Math.max(moving, computing), "s"),
      moving > computing ? "bound by HBM bandwidth" : "bound by the matrix units",
    ]);
  }
  byId("cards").replaceChildren(
    ...cards.map(([name, value, more]) =>
      element("div", { class: "card" }, element("dt", {}, name), element("dd", {}, element("strong", {}, value), element("span", {}, more))),
    ),
  );
}

function drawFootprint(view) {
  const { call, counts } = view;
  const used = Number(counts.footprint_bytes), there = Number(call.budget);
  const over = used > there;
  const full = Math.max(used, there);
  const bar = element(
    "div",
    { class: "bar", role: "img", "aria-label": `${grouped(counts.footprint_bytes)} B of ${grouped(call.budget)} B` },
    element("div", { class: over ? "used over" : "used", style: `width:${(100 * used) / full}%` }),
    element("div", { class: "limit", style: `left:${(100 * there) / full}%` }),
  );
  const left = call.budget - counts.footprint_bytes;
  const words = over ? `These tiles do not fit: ${grouped(-left)} B over the limit.` : `${grouped(left)} B are left.`;
  byId("footprint").replaceChildren(
    element("p", {}, element("strong", {}, memory(used)), ` of ${memory(there)} SRAM per block `, element("span", { class: "exact" }, `(${grouped(counts.footprint_bytes)} of ${grouped(call.budget)} B)`)),
    bar,
    element("p", { class: over ? "warn" : "" }, view.tiled ? words : "Without tiles, entire operands are on chip, which no device is expected to hold."),
    element("p", {}, bindingText(view)),
  );
}

function drawCounts(view) {
  const { call, counts } = view;
  const rows = [];
  const tensors = [...new Set([...Object.keys(call.set.reads), ...Object.keys(call.set.writes)])];
  for (const name of tensors) {
    const [read, written] = [counts.reads[name] ?? 0n, counts.writes[name] ?? 0n];
    rows.push(element("tr", {}, element("th", { scope: "row" }, name), ...[read, written].map((n) => element("td", {}, grouped(n)))));
  }
  const sum = (side) => Object.values(side).reduce((a, b) => a + b, 0n);
  rows.push(
    element("tr", { class: "sum" }, element("th", { scope: "row" }, "all"), element("td", {}, grouped(sum(counts.reads))), element("td", {}, grouped(sum(counts.writes)))),
  );
  byId("moved").tBodies[0].replaceChildren(...rows);
  const totals = Object.entries(call.calls.data.quantities).filter(([name, [, , rare]]) => counts[name] || !rare);
  const lines = totals.map(([name, [label, unit]]) =>
    element("tr", {}, element("th", { scope: "row" }, label), element("td", {}, grouped(counts[name])), element("td", { class: "unit" }, unit)),
  );
  lines.push(
    element("tr", {}, element("th", { scope: "row" }, "arithmetic intensity"), element("td", {}, view.intensity.toPrecision(6)), element("td", { class: "unit" }, "FLOP/B")),
  );
  byId("totals").tBodies[0].replaceChildren(...lines);
}

const MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">';

function drawFormulas(view) {
  const { call } = view;
  const { lines } = call.calls.data;
  const names = new Map();
  const order = [];
  const filled = (place) =>
    lines[place].replace(/<mi>@(\d+)@<\/mi>/g, (_, inner) => {
      if (!names.has(inner)) {
        names.set(inner, names.size + 1);
        order.push(inner);
      }
      return `<msub><mi>t</mi><mn>${names.get(inner)}</mn></msub>`;
    });
  const row = (label, body) => {
    const math = element("div", { class: "math", tabindex: "0", role: "group", "aria-label": `formula of ${label}` });
    math.innerHTML = `${MATH}${body}</math>`;
    return element("div", { class: "formula" }, element("span", { class: "name" }, label), math);
  };
  const zero = "<mn>0</mn>";
  const shown = [];
  const add = (label, entry, unit) => {
    if (entry.length < 2 || lines[entry[1]].trim() === zero) return;
    shown.push(row(`${label} [${unit}]`, filled(entry[1])));
  };
  for (const [name, entry] of Object.entries(call.set.reads)) add(`reads ${name}`, entry, "elements");
  for (const [name, entry] of Object.entries(call.set.writes)) add(`writes ${name}`, entry, "elements");
  for (const [name, entry] of Object.entries(call.set.counts)) add(...[call.calls.data.quantities[name]].map(([l]) => l), entry, call.calls.data.quantities[name][1]);
  const where = [];
  for (let i = 0; i < order.length; i++) {
    const body = filled(order[i]);
    where.push(row(`t${i + 1}`, body));
  }
  byId("formulas").replaceChildren(...shown);
  byId("where").hidden = !where.length;
  byId("where-lines").replaceChildren(...where);
  const used = new Set(
    [...Object.values(call.set.reads), ...Object.values(call.set.writes), ...Object.values(call.set.counts)].flatMap(([place]) =>
      call.formulas.needed([place]).flatMap((one) => call.calls.data.nodes[one].match(/[A-Za-z]\w*/g) ?? []),
    ),
  );
  const letters = Object.entries(call.calls.data.alphabet).filter(([, entry]) => used.has(entry.symbol));
  byId("letters").replaceChildren(
    ...letters.map(([name, { symbol, meaning, unit }]) => {
      const value = call.given[name] ?? view.tiles[name];
      return element("li", {}, element("b", {}, symbol), ` ${meaning} [${unit}]${value === undefined ? "" : ` = ${grouped(value)}`}`);
    }),
  );
}
