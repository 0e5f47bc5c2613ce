// One call kept beside the next ones, and a slider over lengths.

class Compare {
  constructor(host, current) {
    this.host = host;
    this.current = current;
    this.kept = null;
    this.pin = element("button", { type: "button", id: "pin", "aria-pressed": "false", onclick: () => this.toggle() }, "Pin this call");
  }

  toggle() {
    const view = this.current();
    this.kept = this.kept ? null : { name: this.nameOf(view), figures: figuresOf(view) };
    this.pin.textContent = this.kept ? "Unpin" : "Pin this call";
    this.pin.setAttribute("aria-pressed", String(Boolean(this.kept)));
    this.draw(view);
    say(this.kept ? "The call is pinned; the next ones are compared with it." : "Nothing is pinned.");
  }

  nameOf({ call, state }) {
    return `${call.algorithm.title}, ${call.hardware.name}, ${grouped(call.numbers.q_len)} x ${grouped(call.numbers.kv_len)}, ${state.mask}`;
  }

  draw(view) {
    this.host.hidden = !this.kept;
    if (!this.kept || view.empty) return;
    const now = new Map(figuresOf(view).map(([name, ...rest]) => [name, rest]));
    const rows = this.kept.figures.filter(([name]) => now.has(name)).map(([name, before, text]) => {
      const [value, words] = now.get(name);
      return tree("tr", {}, tree("th", { scope: "row" }, name), tree("td", {}, text), tree("td", {}, words), tree("td", {}, before ? `${(value / before).toPrecision(3)} x` : "-"));
    });
    renew(
      this.host,
      tree("caption", {}, `This call against the pinned one: ${this.kept.name}`),
      tree("thead", {}, tree("tr", {}, ...["quantity", "pinned", "this call", "this / pinned"].map((text) => tree("th", { scope: "col" }, text)))),
      tree("tbody", {}, ...rows),
    );
  }
}

const STEPS = 4; // positions of the slider for each doubling
const LONGEST = 20 * STEPS;

class Lengths {
  constructor(host, page) {
    this.page = page;
    this.slider = element("input", { id: "length", type: "range", min: 0, max: LONGEST, oninput: () => this.slide(), onchange: () => this.end() });
    this.out = element("output", { for: "length" });
    this.spent = []; // time of each answer [ms]
    host.replaceChildren(element("label", { for: "length" }, "Length ", this.slider), this.out);
  }

  show(view) {
    const q_len = Number(view.call.numbers.q_len);
    this.slider.value = String(Math.round(STEPS * Math.log2(q_len)));
    this.tell(q_len);
  }

  tell(q_len) {
    this.out.textContent = `${grouped(q_len)} queries`;
    this.slider.setAttribute("aria-valuetext", this.out.textContent);
  }

  get length() {
    return Math.round(2 ** (Number(this.slider.value) / STEPS));
  }

  // Answer at once with the time and the counts; the pictures follow when the slider rests.
  slide() {
    const began = performance.now();
    byId("results").classList.add("sliding");
    const state = { ...this.page.state, q_len: String(this.length) };
    this.tell(this.length);
    this.page.quick(state);
    this.spent.push(performance.now() - began);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.page.change({ q_len: state.q_len }, null, "none"), 300);
  }

  rest() {
    clearTimeout(this.later);
    byId("results").classList.remove("sliding");
  }

  end() {
    this.page.change({ q_len: String(this.length) }, "q_len");
  }
}
