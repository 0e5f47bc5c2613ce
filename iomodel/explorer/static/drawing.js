// Helpers to create elements, scale axes and format numbers.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A description of an element: what `element` makes of the same arguments, but without listeners.
function tree(tag, attributes = {}, ...children) {
  return { tag, attributes, children };
}

const nodeOf = (one) => (typeof one === "string" ? document.createTextNode(one) : element(one.tag, one.attributes, ...one.children.map(nodeOf)));

// Give a host the described children. Descriptions are compared with those drawn before, so that the document is
// touched only where a text or an attribute differs, and little is laid out again.
function renew(host, ...trees) {
  patch(host, host.drawn ?? (host.replaceChildren(), []), trees);
  host.drawn = trees;
}

function patch(host, before, after) {
  after.forEach((one, i) => {
    const old = before[i], node = host.childNodes[i];
    if (old === undefined) host.append(nodeOf(one));
    else if (typeof one === "string" && typeof old === "string") { if (one !== old) node.data = one; }
    else if (one.tag !== old.tag) node.replaceWith(nodeOf(one));
    else {
      for (const name of Object.keys(old.attributes)) if (!has(one.attributes, name)) node.removeAttribute(name);
      for (const [name, value] of Object.entries(one.attributes)) if (old.attributes[name] !== value) node.setAttribute(name, value);
      patch(node, old.children, one.children);
    }
  });
  for (let i = after.length; i < before.length; i++) host.lastChild.remove();
}

const byId = (id) => document.getElementById(id);
const GROUPED = new Intl.NumberFormat("en-US");
const grouped = (value) => GROUPED.format(value);
const PREFIXES = [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12], ["P", 1e15], ["E", 1e18]];

function short(value, unit) {
  const number = Number(value);
  if (number === 0) return `0 ${unit}`;
  if (number < 1) {
    for (const [name, factor] of [["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]]) {
      if (number >= factor) return `${(number / factor).toPrecision(3)} ${name}${unit}`;
    }
  }
  const [name, factor] = [...PREFIXES].reverse().find(([, size]) => number >= size * 0.9995) ?? PREFIXES[0];
  const scaled = number / factor;
  if (!name && Number.isInteger(number)) return `${number} ${unit}`;
  return `${scaled >= 999.5 ? scaled.toExponential(2) : scaled.toPrecision(3)} ${name}${unit}`;
}

// The figure of a tick: a short one without zeros after the point.
function ticked(value, unit) {
  return short(value, unit).replace(/\.0+(?=\D|$)|(\.\d*[1-9])0+/, "$1");
}

function memory(bytes) {
  const number = Number(bytes);
  const [name, factor] = number >= 2 ** 30 ? ["GiB", 2 ** 30] : number >= 2 ** 20 ? ["MiB", 2 ** 20] : number >= 1024 ? ["KiB", 1024] : ["B", 1];
  const scaled = number / factor;
  return `${Number.isInteger(scaled) ? scaled : scaled.toPrecision(4).replace(/\.?0+$/, "")} ${name}`;
}

// A logarithmic scale from data to pixels.
function logScale(low, high, from, to) {
  const start = Math.log(low), width = Math.log(high) - start || 1;
  const scale = (value) => from + ((Math.log(value) - start) / width) * (to - from);
  scale.back = (pixel) => Math.exp(start + ((pixel - from) / (to - from)) * width);
  return scale;
}

function decades(low, high, most) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) found.push(10 ** power);
  if (found.length >= 2) return found.filter((_, i) => i % Math.ceil(found.length / most) === 0);
  const more = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const digit of [1, 2, 3, 5, 7]) {
      const value = digit * 10 ** power;
      if (value >= low && value <= high) more.push(value);
    }
  }
  return more.length ? more.filter((_, i) => i % Math.ceil(more.length / most) === 0) : [low, high];
}

function powersOfTwo(low, high, most) {
  const found = [];
  for (let power = Math.ceil(Math.log2(low)); 2 ** power <= high; power++) found.push(2 ** power);
  return found.filter((_, i) => i % Math.ceil(found.length / most) === 0);
}

// Create an empty picture with logarithmic axes; return its scales and the group to draw in.
function axes(host, { x, y, xTicks, yTicks, xText, yText, xLabel, yLabel, label, height = 320 }) {
  const width = Math.max(280, Math.min(900, host.clientWidth || 560));
  const box = { left: 66, right: width - 14, top: 14, bottom: height - 46 };
  const toX = logScale(x[0], x[1], box.left, box.right), toY = logScale(y[0], y[1], box.bottom, box.top);
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  made.append(svg("title", {}, label));
  for (const tick of xTicks) {
    const at = toX(tick);
    made.append(svg("line", { x1: at, x2: at, y1: box.top, y2: box.bottom, class: "grid" }));
    made.append(svg("text", { x: at, y: box.bottom + 18, class: "tick", "text-anchor": "middle" }, xText(tick)));
  }
  for (const tick of yTicks) {
    const at = toY(tick);
    made.append(svg("line", { x1: box.left, x2: box.right, y1: at, y2: at, class: "grid" }));
    made.append(svg("text", { x: box.left - 8, y: at + 4, class: "tick", "text-anchor": "end" }, yText(tick)));
  }
  made.append(svg("path", { d: `M${box.left},${box.top}V${box.bottom}H${box.right}`, class: "axis" }));
  made.append(svg("text", { x: (box.left + box.right) / 2, y: height - 8, class: "axis-label", "text-anchor": "middle" }, xLabel));
  const middle = (box.top + box.bottom) / 2;
  made.append(
    svg("text", { x: 14, y: middle, class: "axis-label", "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, yLabel),
  );
  const clip = `clip-${host.id}`;
  made.append(
    svg("clipPath", { id: clip }, svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top })),
  );
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  made.append(inside);
  host.replaceChildren(made);
  return { made, inside, toX, toY, box };
}

function path(points, attributes) {
  return svg("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join(""), ...attributes });
}

// Draw a legend below a picture, with samples of its lines.
function legend(host, entries) {
  const items = entries.map(([name, text]) =>
    element("li", {}, svg("svg", { width: 30, height: 12, "aria-hidden": "true" }, svg("line", { x1: 1, x2: 29, y1: 6, y2: 6, class: name })), text),
  );
  host.append(element("ul", { class: "legend" }, ...items));
}

function note(host, text) {
  host.drawn = null;
  host.replaceChildren(element("p", { class: "note" }, text));
}

// The pen of a canvas as wide as its host, at the resolution of the screen.
function penOf(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}
