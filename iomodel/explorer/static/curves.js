// Traffic against SRAM with the lower bounds, and the roofline with the call on it.

const PATIENCE = 900; // time limit of the curve [ms]

// SRAM sizes to solve for: from the least tile's to where more memory saves nothing, evenly spaced per octave.
function budgetsFor(call, least, each) {
  const low = Math.max(256, Number(least)), high = Math.max(4 * low, 16 * Number(call.budget));
  const found = new Set([Number(call.budget)]);
  for (let at = Math.log2(low); at <= Math.log2(high) + 1e-9; at += 1 / each) found.add(Math.ceil(2 ** at));
  return [...found].filter((size) => size <= 2 ** 40).sort((a, b) => a - b);
}

function solvedCurve(call) {
  const least = solve(call, 0n, call.alignment).least;
  const began = performance.now();
  const points = [];
  for (const size of budgetsFor(call, least, 3)) {
    if (performance.now() - began > PATIENCE) return { points, cut: true };
    const found = solve(call, BigInt(size), call.alignment);
    if (!found.feasible) continue;
    const bytes = call.exact([call.set.counts.hbm_bytes[0]], found.tiles)[0];
    points.push([size, Number(bytes)]);
    if (found.binding === "extent" && size > Number(call.budget)) break;
  }
  return { points, cut: false };
}

function drawTraffic(host, view) {
  const { call, counts } = view;
  if (!call.parts.length || view.solved.why) return note(host, bindingText(view));
  const { points, cut } = solvedCurve(call);
  if (!points.length) return note(host, "No SRAM size could be solved for in time.");
  const low = points[0][0] / 1.15, high = Math.max(points.at(-1)[0], Number(call.budget)) * 1.15;
  const bounds = {};
  for (let i = 0; i <= 80; i++) {
    const size = low * (high / low) ** (i / 80);
    for (const [name, value] of Object.entries(call.lowerBounds(size))) (bounds[name] ??= []).push([size, value]);
  }
  const most = Math.max(...points.map(([, bytes]) => bytes), Number(counts.hbm_bytes)) * 1.4;
  const floor = Math.min(...Object.values(bounds.compulsory).map(([, value]) => value), ...points.map(([, bytes]) => bytes)) / 1.6;
  const { inside, toX, toY, box } = axes(host, {
    x: [low, high], y: [floor, most],
    xTicks: powersOfTwo(low, high, box4(host)), yTicks: decades(floor, most, 7),
    xText: memory, yText: (value) => ticked(value, "B"),
    xLabel: "SRAM per block", yLabel: LABELS.requests,
    label: `Requests of ${call.state.algorithm} against the SRAM per block, with lower bounds`,
  });
  const budget = toX(Number(call.budget));
  inside.append(svg("line", { x1: budget, x2: budget, y1: box.top, y2: box.bottom, class: "device" }));
  const drawn = [];
  Object.entries(bounds).forEach(([name, line]) => {
    const shown = line.filter(([, value]) => value >= floor / 10);
    const kind = name === "compulsory" ? "bound compulsory" : `bound bound-${drawn.length % 4}`;
    if (!shown.some(([, value]) => value >= floor)) return;
    inside.append(path(shown.map(([x, y]) => [toX(x), toY(y)]), { class: kind }));
    drawn.push([kind, name === "compulsory" ? "compulsory: each row once" : `lower bound (${name}): ${call.calls.data.holds[name] ?? ""}`]);
  });
  const steps = points.flatMap(([x, y], i) => (i ? [[toX(x), toY(points[i - 1][1])], [toX(x), toY(y)]] : [[toX(x), toY(y)]]));
  steps.push([box.right, steps.at(-1)[1]]);
  inside.append(path(steps, { class: "solved" }));
  for (const [x, y] of points) inside.append(svg("circle", { cx: toX(x), cy: toY(y), r: 2.6, class: "dot" }));
  const [x, y] = [toX(Number(counts.footprint_bytes)), toY(Number(counts.hbm_bytes))];
  if (view.tiled) inside.append(svg("path", { d: `M${x - 6},${y}L${x},${y - 6}L${x + 6},${y}L${x},${y + 6}Z`, class: "here" }));
  legend(host, [["solved", `${call.state.algorithm}, best tiles`], ...drawn, ["device", `${memory(call.budget)}, the budget`]]);
  host.append(element("p", { class: "note" }, `One memory of the size on the axis holds all live data of a block, as in the papers; real kernels also use registers. The diamond is the call at its tiles.${cut ? " The curve was cut short to save time; a larger alignment is faster." : ""}`));
}

const box4 = (host) => (host.clientWidth < 420 ? 4 : 8);

// The roofline of the field: the call at the rate that it achieves, under the roofs of the SMs, the L2 and DRAM.
function drawRoofline(host, view, measured = null) {
  const { call, counts, time } = view;
  const { name, hbm, l2, peak } = call.hardware;
  const top = peak[call.state.dtype];
  if (!hbm || !top) {
    return note(host, `${hbm ? `compute.peak.${call.state.dtype}` : "memory.hbm.bandwidth"}: ${name} lacks it; a roofline needs it. Choose another dtype or GPU.`);
  }
  if (view.empty) return note(host, bindingText(view));
  const ridge = top.value / hbm.value, at = view.intensity;
  const useful = Number(counts.useful_flops), own = measured?.seconds && measured.dram ? [useful / measured.dram, useful / measured.seconds] : null;
  const low = Math.min(ridge / 40, at / 4, own ? own[0] / 2 : Infinity), high = Math.max(ridge * 40, at * 4, own ? own[0] * 2 : 0);
  const rate = (intensity) => Math.min(top.value, intensity * hbm.value);
  const achieved = time ? useful / time.seconds : rate(at);
  const y = [Math.min(rate(low), achieved, own ? own[1] : Infinity) / 1.5, top.value * 2.2];
  const { inside, toX, toY, box } = axes(host, {
    x: [low, high], y, xTicks: decades(low, high, 7), yTicks: decades(...y, 7),
    xText: (value) => (value < 1e3 ? String(Number(value.toPrecision(2))) : ticked(value, "").trim()),
    yText: (value) => ticked(value, "").trim(),
    xLabel: `${intensityLabel(view)} [FLOP/B]`, yLabel: "achieved [FLOP/s]",
    label: `Roofline of ${name} for ${call.state.dtype}; the call achieves ${short(achieved, "FLOP/s")} at ${at.toPrecision(4)} FLOP/B`,
  });
  const roof = (bandwidth) => [[low, low * bandwidth], [top.value / bandwidth, top.value], [high, top.value]].map(([a, b]) => [toX(a), toY(b)]);
  if (l2) inside.append(path(roof(l2.value), { class: "roof l2" }));
  inside.append(path(roof(hbm.value), { class: "roof" }));
  inside.append(svg("line", { x1: toX(ridge), x2: toX(ridge), y1: toY(y[0]), y2: toY(top.value), class: "device" }));
  inside.append(svg("line", { x1: toX(at), x2: toX(at), y1: toY(rate(at)), y2: toY(achieved), class: "drop" }));
  inside.append(svg("circle", { cx: toX(at), cy: toY(achieved), r: 7, class: "here", "data-rate": achieved, "data-intensity": at }));
  if (own) inside.append(svg("rect", { x: toX(own[0]) - 6, y: toY(own[1]) - 6, width: 12, height: 12, class: "own" }, svg("title", {}, `measured: ${short(own[1], "FLOP/s")} at ${own[0].toPrecision(4)} FLOP/B`)));
  const gap = rate(at) / achieved;
  if (time && gap > 1.05) {
    const right = toX(at) < (box.left + box.right) / 2, middle = toY(Math.sqrt(rate(at) * achieved));
    inside.append(svg("text", { x: toX(at) + (right ? 8 : -8), y: middle + 4, class: "tick gap", "text-anchor": right ? "start" : "end" }, `${gap.toPrecision(2)} x: ${resource(time.limited_by)}`));
  }
  legend(host, [["roof", `DRAM ${short(hbm.value, "B/s")}, SMs: ${call.state.dtype} peak ${short(top.value, "FLOP/s")}`], ...(l2 ? [["roof l2", `L2 ${short(l2.value, "B/s")}, at the same intensity`]] : []), ["device", `${LABELS.ridge} ${ridge.toPrecision(4)} FLOP/B`]]);
  const doubt = [hbm, top].some((figure) => figure.unverified) ? " A figure of this device is unverified." : "";
  if (!time) return host.append(element("p", { class: "note" }, `The dot is the most that the call can achieve by its requests: ${short(achieved, "FLOP/s")}, a limit. ${view.untimed ?? ""}${doubt}`));
  host.append(element("p", { class: "note" }, `The dot is the estimate: ${short(achieved, "FLOP/s")} at the ${LABELS.dram} behind the time. The roof above it is ${short(rate(at), "FLOP/s")}. ${gapText(view, rate(at))}${doubt}`));
}

// What keeps a call from its roof: each part of its time, and the speed-up if that part were gone.
function gapText(view, roof) {
  const { time, counts } = view, ideal = Number(counts.useful_flops) / roof;
  const parts = partsOf(view).map(([name, seconds]) => [name, seconds, name === time.limited_by ? Math.max(0, seconds - ideal) : seconds]);
  const gains = parts.filter(([, , spare]) => spare > 0.01 * time.seconds).sort((a, b) => b[2] - a[2]);
  const text = ([name, , spare]) => `${resource(name)}${name === time.limited_by ? " beyond the roof" : ""}, ${(time.seconds / (time.seconds - spare)).toFixed(2)} x`;
  return gains.length ? `The gap, with the speed-up if a part were gone: ${gains.map(text).join("; ")}.` : "The call is at its roof.";
}
