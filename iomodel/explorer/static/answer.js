// The first screen's answer: a model and a GPU by name, and the time, what binds and the tile in a few words.

class AnswerPanel {
  constructor(asked, answered, page) {
    const { data } = page.calls;
    const choice = (name, label, options) => {
      const select = element("select", { id: `ask-${name}`, onchange: () => select.value && page.change({ [name]: select.value }, name) }, ...options.map(([value, text]) => element("option", { value }, text)));
      asked.append(element("label", { for: select.id }, label, select));
      return select;
    };
    this.model = choice("preset", "Model", [["", "the call below"], ...Object.keys(data.presets).map((name) => [name, name])]);
    this.gpu = choice("hardware", "GPU", Object.entries(data.devices).map(([id, one]) => [id, one.name.replace(/^(NVIDIA|AMD) (GeForce )?/, "")]));
    this.algorithm = choice("algorithm", "Algorithm", Object.entries(data.algorithms).map(([id, one]) => [id, one.title]));
    this.host = answered;
    this.page = page;
  }

  show(view) {
    const { state, call, time } = view;
    this.model.value = this.page.form.presetOf(state);
    this.gpu.value = state.hardware;
    this.algorithm.value = state.algorithm;
    const words = `${grouped(call.numbers.q_len)} x ${grouped(call.numbers.kv_len)} tokens, batch ${grouped(call.numbers.batch)}, ${grouped(call.numbers.heads)} heads of ${grouped(call.numbers.head_dim)}, ${state.dtype}, ${state.mask} mask, ${state.direction}`;
    if (!time) {
      return renew(this.host, tree("p", { class: "big" }, "no time"), tree("p", {}, view.empty ? bindingText(view) : view.untimed), tree("p", { class: "note" }, [`${words}.`, ...assumedText(view.taken)].join(" ")));
    }
    const parts = partsOf(view);
    const bar = parts.map(([name, seconds]) => tree("i", { class: name === time.limited_by ? "binds" : RESOURCES[name] && !ADDED.includes(name) ? "" : "added", style: `width:${((100 * seconds) / time.seconds).toFixed(2)}%`, title: `${resource(name)}: ${short(seconds, "s")}` }));
    renew(
      this.host,
      tree("p", { class: "big" }, short(time.seconds, "s"), tree("small", {}, this.model.value ? " attention of one layer" : " one call of attention")),
      tree("p", {}, "bound by ", tree("strong", {}, resource(time.limited_by)), `; tile ${sizesText(time.tiles)}`),
      tree("div", { class: "parts", role: "img", "aria-label": `Parts of the time: ${parts.map(([name, seconds]) => `${resource(name)} ${short(seconds, "s")}`).join(", ")}` }, ...bar),
      tree("p", { class: "note" }, parts.slice(0, 4).map(([name, seconds]) => `${resource(name)} ${short(seconds, "s")}`).join(", ")),
      tree("p", { class: "note" }, `${time.implementation?.title ?? "One memory of the textbook"}. ${[`${words}.`, ...assumedText(view.taken)].join(" ")}`),
    );
  }
}

// The rows of a tile, such as 128 x 64.
const sizesText = (tiles) => Object.entries(tiles).filter(([name]) => name !== "warps" && name !== "stages").map(([, size]) => grouped(size)).join(" x ") || "none to choose";
const ADDED = ["steps", "tail", "launch", "host", "not overlapped"];

// Links to the docs beside the page, where it is part of them, and to the papers of the algorithm.
function drawLinks(view) {
  const docs = document.querySelector('meta[name="iomodel-docs"]').content;
  const { state, call } = view;
  const { software } = call.calls.data;
  const links = [
    ...(docs ? [[docs + "index.html", "Docs"], [`${docs}algorithms/${state.algorithm}.html`, `Formulas of ${state.algorithm}`]] : []),
    ...(software.url ? [[software.url, "Repository"]] : []),
  ];
  byId("links").replaceChildren(...links.map(([href, text]) => element("a", { href }, text)));
  document.title = view.time
    ? `${call.algorithm.title} on ${call.hardware.name}: ${short(view.time.seconds, "s")} - iomodel`
    : `${call.algorithm.title} on ${call.hardware.name} - iomodel`;
}

// A text in which the number of each arXiv paper is a link.
function cited(text) {
  return text.split(/(arXiv:\d{4}\.\d{4,5})/).map((part) => (part.startsWith("arXiv:") ? element("a", { href: `https://arxiv.org/abs/${part.slice(6)}`, rel: "noreferrer" }, part) : part));
}
