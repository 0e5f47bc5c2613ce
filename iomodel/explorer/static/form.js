// The form: one control a field, made from the declarations; what is wrong stands beside the field.

class Form {
  constructor(calls, changed) {
    this.calls = calls;
    this.changed = changed;
    this.controls = {};
    this.made = "";
  }

  show(state, call) {
    const { data } = this.calls;
    const way = data.algorithms[state.algorithm].directions[state.direction];
    const made = [state.algorithm, state.direction, call.set.tiles.join(), call.parts.length].join("|");
    if (made !== this.made) {
      const focused = document.activeElement?.id;
      this.made = made;
      this.controls = {};
      const devices = Object.entries(data.devices).map(([id, one]) => [id, one.name]);
      const algorithms = Object.entries(data.algorithms).map(([id, one]) => [id, `${one.title}${one.approximates ? " (approximation)" : ""}`]);
      const words = (name) => data.alphabet[name]?.meaning ?? name.replaceAll("_", " ");
      const options = [
        ...Object.keys(way.switches).map((name) => this.choice(name, name, way.switches[name].allowed.map((on) => [on ? "on" : "off"])) ),
        ...Object.keys(way.numbers).map((name) => this.text(name, name, words(name))),
      ];
      const pairs = call.parts.map((part, i) => [String(i + 1), `${part.outer}, ${part.inner}`]);
      const groups = [
        ["Device", [this.choice("hardware", "GPU", devices), this.text("sram_bytes", "sram_bytes", "budget of the tiles [B]; auto: of the GPU"), this.text("alignment", "alignment", "tiles are multiples of it; auto: of the GPU")]],
        ["Algorithm", [this.choice("algorithm", "algorithm", algorithms), this.choice("direction", "direction", Object.keys(data.algorithms[state.algorithm].directions).map((one) => [one])), ...options]],
        ["Shape", [...SHAPE.map(([name, , help]) => this.text(name, name, help)), this.choice("dtype", "dtype", Object.keys(data.dtypes).map((one) => [one])), this.choice("packed", "packed", [["off"], ["on"]], "the heads of a group in one tile")]],
        ["Mask", [this.choice("mask", "mask", MASK_NAMES.map((one) => [one])), this.text("window_left", "window_left", "keys to the left; auto: all"), this.text("window_right", "window_right", "keys to the right; auto: all"), this.choice("align", "align", data.aligns.map((one) => [one]))]],
        ["Tiles", [...call.set.tiles.map((name) => this.text(name, name, `${words(name)}; auto: the best`)), ...(pairs.length > 1 ? [this.choice("pair", "map shows", pairs)] : [])]],
      ];
      byId("fields").replaceChildren(
        ...groups.filter(([, fields]) => fields.length).map(([title, fields]) => element("fieldset", {}, element("legend", {}, title), element("div", { class: "grid" }, ...fields))),
      );
      if (focused) byId(focused)?.focus();
    }
    for (const [name, control] of Object.entries(this.controls)) {
      if (document.activeElement !== control || control.tagName === "SELECT") control.value = state[name] ?? AUTO;
    }
    const window_ = state.mask === "window";
    for (const name of ["window_left", "window_right", "align"]) this.controls[name].disabled = !window_;
    this.fault(null);
  }

  field(name, label, control, help) {
    this.controls[name] = control;
    control.id = `field-${name}`;
    control.addEventListener("change", () => this.changed({ [name]: control.value.trim() || AUTO }, name));
    const hint = help ? element("small", { id: `help-${name}` }, help) : null;
    if (hint) control.setAttribute("aria-describedby", hint.id);
    return element("div", { class: "field" }, element("label", { for: control.id }, label), control, hint);
  }

  choice(name, label, options, help = "") {
    const control = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text ?? value)));
    return this.field(name, label, control, help);
  }

  text(name, label, help) {
    return this.field(name, label, element("input", { type: "text", inputmode: "numeric", autocomplete: "off", spellcheck: "false" }), help);
  }

  // Say what is wrong above the form and at its field; nothing to say takes it away.
  fault(error) {
    for (const control of Object.values(this.controls)) control.removeAttribute("aria-invalid");
    const box = byId("fault");
    box.hidden = !error;
    box.textContent = error ? `${error.message}. What is shown below is still the call before.` : "";
    if (error && this.controls[error.field]) this.controls[error.field].setAttribute("aria-invalid", "true");
  }
}
