// The figures of a call: cards, the footprint against the budget, the table of counts, the formulas.

const NAMES = { sram: "the SRAM", extent: "the lengths: every tile covers its axis", traffic: "nothing; larger tiles fit but save no traffic" };

function tilesText(tiles) {
  return Object.entries(tiles).map(([name, size]) => `${name}\u00a0=\u00a0${grouped(size)}`).join(", ") || "no tiles";
}

function bindingText(view) {
  const { solved, call } = view;
  if (!call.parts.length) return call.set.refused || "This kind of call has no tiles to choose.";
  if (solved.why) return solved.why;
  if (!solved.feasible) return `No tile fits ${grouped(call.budget)} B; at least ${grouped(solved.least)} B are needed.`;
  const step = solved.step;
  const next = `${tilesText({ [step.tile]: step.size })} would exceed the memory by ${grouped(step.excess)} B`;
  return `With one memory of ${memory(call.budget)}, the least requests are at ${tilesText(solved.tiles)}. Limit: ${NAMES[solved.binding]}; ${next}.`;
}

// Four significant digits, or all digits of a larger number.
function rounded(value) {
  return value >= 1000 ? grouped(Math.round(value)) : value.toPrecision(4);
}

// What each resource of the time model is.
const RESOURCES = {
  matrix: "products on the tensor cores, tiles padded to full instructions",
  "shared memory": "operands that the matrix units read from it",
  exp: "special function units",
  fp32: "maximum, sum and scaling of the softmax",
  l2: "the requests: bytes that all blocks ask for",
  llc: "bytes that leave the L2",
  hbm: "bytes that leave the last cache",
  atomics: "through the L2 cache",
  addresses: "of single elements",
  steps: "the own cost of each trip of the inner loop",
  tail: "SMs that wait for the last block",
  launch: "between the starts of kernels",
  "not overlapped": "time of other resources that does not overlap with the slowest",
  host: "launches of the host",
};

const resource = (name) => LABELS.resources[name] ?? name;

function interval([low, high], unit = "B") {
  return low === high ? short(low, unit) : `${short(low, unit)} to ${short(high, unit)}`;
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);
const intensityLabel = (view) => (view.time ? LABELS.over_dram : LABELS.over_requests);

// The figures of a view: name, number, text, further text.
function figuresOf(view) {
  const { call, counts, time } = view;
  const timed = time
    ? [
        ["Time", time.seconds, short(time.seconds, "s"), `bound by ${resource(time.limited_by)}`],
        [sentence(LABELS.dram), time.streamed, short(time.streamed, "B"), `${grouped(Math.round(time.streamed))} B${time.dram[0] === time.dram[1] ? "" : `; caches allow ${interval(time.dram)}`}`],
      ]
    : [];
  return [
    ...timed,
    [sentence(LABELS.requests), Number(counts.hbm_bytes), short(counts.hbm_bytes, "B"), `${grouped(counts.hbm_bytes)} B`],
    ["Matrix work", Number(counts.flops), short(counts.flops, "FLOP"), `${grouped(counts.flops)} FLOP`],
    ["Exponentials", Number(counts.exps), short(counts.exps, ""), grouped(counts.exps)],
    [sentence(intensityLabel(view)), view.intensity, `${rounded(view.intensity)} FLOP/B`, time ? "of the visible pairs" : `of the visited tiles, in one memory of ${memory(call.budget)}`],
  ];
}

// The parts of the time, which sum to it, by the package's own division.
const partsOf = (view) => [...window.iomodel.page.timer.model.time_shares(view.time.kernels, view.time.seconds)];

const assumedText = (assumed) => (assumed.length ? [`Assumed: ${assumed.join("; ")}.`] : []);

function drawCards(view) {
  renew(
    byId("cards"),
    ...[...(view.time ? [] : [["Time", 0, "none", view.empty ? bindingText(view) : view.untimed]]), ...(view.empty ? [] : figuresOf(view))].map(([name, , value, more]) =>
      tree("div", { class: "card" }, tree("dt", {}, name), tree("dd", {}, tree("strong", {}, value), tree("span", {}, more))),
    ),
  );
}

// The time of each resource alone, and the time of the call.
function drawTime(host, view) {
  const { time, call } = view;
  if (!time) return note(host, view.untimed || "No time for this call.");
  const rows = Object.entries(time.breakdown).filter(([, seconds]) => seconds > 0);
  const most = Math.max(time.seconds, ...rows.map(([, seconds]) => seconds));
  const bar = (name, seconds, kind, more) => tree("tr", { class: kind },
    tree("th", { scope: "row", title: more }, name, tree("small", {}, more)),
    tree("td", { class: "span" }, tree("div", { class: "length", style: `width:${((100 * seconds) / most).toFixed(2)}%` })),
    tree("td", {}, short(seconds, "s")),
  );
  const table = tree("table", { class: "bars" },
    tree("thead", {}, tree("tr", {}, ...["resource, if it were the only limit", "share", "time"].map((text) => tree("th", { scope: "col" }, text)))),
    tree("tbody", {}, ...rows.map(([name, seconds]) => bar(resource(name), seconds, name === time.limited_by ? "bound-by" : "", RESOURCES[name] ?? "")),
      bar("time of the call", time.seconds, "sum", `${time.kernels.length} kernel${time.kernels.length > 1 ? "s" : ""}; resources overlap, so this is no sum`)),
  );
  const useful = Number(view.counts.useful_flops);
  const facts = [
    `Kernels: ${time.implementation?.title ?? "one memory for all live data of a block (no kernel of this algorithm is known for this call)"}.`,
    `Tiles: ${tilesText(time.tiles)}${view.default ? ", the default of this implementation" : ", chosen"}.`,
    `Achieved: ${short(useful / time.seconds, "FLOP/s")}, ${((100 * useful) / time.seconds / time.rates.peak).toFixed(1)} % of the ${call.state.dtype} peak.`,
    ...assumedText([...view.taken, ...time.rates.assumed]),
  ];
  renew(host, tree("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Time by resource" }, table), tree("p", { class: "note" }, facts.join(" ")));
}

// The use and the limit of each resource by the kernels of a time, as kernels keep their tiles; none without kernels.
function resourcesOf(time) {
  return (time?.passes ?? []).flatMap(({ timed, clock, workload }) => {
    for (const placement of clock.placements) {
      for (const launch of placement.launches()) {
        if (launch.warps !== timed.tiles.get("warps") || launch.stages !== timed.tiles.get("stages")) continue;
        const fit = placement.fit(...placement.tiles.map((name) => timed.tiles.get(name)), launch);
        if (fit.over.size === 0) return [{ direction: workload.direction, fit }];
      }
    }
    return [];
  });
}

function useBar(name, used, there, unit, more = "") {
  const text = (size) => (unit === "B" ? memory(size) : `${grouped(size)}${unit === "-" ? "" : ` ${unit}`}`);
  return [
    element("p", {}, element("strong", {}, text(used)), ` of ${text(there)}: ${name}${more} `, unit === "B" ? element("span", { class: "exact" }, `(${grouped(used)} of ${grouped(there)} B)`) : ""),
    element("div", { class: "bar", role: "img", "aria-label": `${name}: ${grouped(used)} of ${grouped(there)}` },
      element("div", { class: used > there ? "used over" : "used", style: `width:${(100 * used) / Math.max(used, there)}%` }),
      element("div", { class: "limit", style: `left:${(100 * there) / Math.max(used, there)}%` })),
  ];
}

function drawFootprint(view) {
  const { call, counts, time } = view;
  if (view.empty) return note(byId("footprint"), bindingText(view));
  const used = Number(counts.footprint_bytes), there = Number(call.budget);
  const kernels = resourcesOf(time);
  const bars = kernels.flatMap(({ direction, fit }) => {
    const pass = kernels.length > 1 ? `, ${direction}` : "";
    const limited = [...fit.limits].filter(([name, limit]) => name !== "MMA shape" && limit > 0);
    const least = Math.min(...fit.blocks.values()), by = [...fit.blocks].filter(([, blocks]) => blocks === least).map(([name]) => name);
    return [
      ...limited.flatMap(([name, limit]) => useBar(name, Number(fit.used.get(name)), Number(limit), fit.units.get(name), pass)),
      element("p", {}, `${grouped(least)} block${least > 1 ? "s" : ""} per SM${pass}, limited by ${by.join(", ")}.`),
    ];
  });
  if (bars.length) {
    byId("footprint").replaceChildren(...bars, element("p", { class: "note" }, `All live data of a block in one memory, as in the papers: ${memory(used)}. ${bindingText(view)}`));
    return;
  }
  const left = call.budget - counts.footprint_bytes;
  const words = left >= 0n ? `${grouped(left)} B are left.` : `These tiles do not fit: ${grouped(-left)} B more than the SRAM.`;
  byId("footprint").replaceChildren(
    ...useBar("all live data of a block in one memory", used, there, "B"),
    element("p", { class: left < 0n ? "warn" : "" }, view.tiled ? words : "Without tiles, entire operands are on chip, which no device is expected to hold."),
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
    element("tr", {}, element("th", { scope: "row" }, LABELS.over_requests), element("td", {}, (Number(counts.flops) / Number(counts.hbm_bytes)).toPrecision(6)), element("td", { class: "unit" }, "FLOP/B")),
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
