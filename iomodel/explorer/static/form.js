// The form: one control per field, built from the declarations, with errors next to the field.

class Form {
  constructor(calls, changed) {
    this.calls = calls;
    this.changed = changed;
    this.controls = {};
    this.drafts = {}; // texts that were refused, kept until they agree with the rest
    this.made = "";
  }

  show(state, call) {
    const { calls, calls: { data } } = this;
    const way = data.algorithms[state.algorithm].directions[state.direction];
    const made = [state.algorithm, state.direction, call.set.tiles.join(), call.parts.length].join("|");
    if (made !== this.made) {
      const focused = document.activeElement?.id;
      this.made = made;
      this.controls = {};
      const devices = Object.entries(data.devices).map(([id, one]) => [id, one.name]);
      const algorithms = Object.entries(data.algorithms).map(([id, one]) => [id, `${one.title}${one.approximates ? " (approximation)" : ""}`]);
      const words = (name) => data.alphabet[name]?.meaning ?? data.options[name] ?? name.replaceAll("_", " ");
      const fields = calls.fields(state.algorithm, state.direction);
      const control = (name, help = fields[name].help ?? "") => fields[name].choices
        ? this.choice(name, name, fields[name].choices.map((one) => [one]), help)
        : this.text(name, name, help);
      const options = [...Object.keys(way.switches).map((name) => control(name, data.options[name] ?? "")), ...Object.keys(way.numbers).map((name) => control(name, words(name)))];
      const kernels = data.clock.algorithms[state.algorithm].implementations.map(({ name, title }) => [name, title || name]);
      const pairs = call.parts.map((part, i) => [String(i + 1), `${part.outer}, ${part.inner}`]);
      const groups = [
        ["Device", [this.choice("hardware", "GPU", devices), this.choice("implementation", "kernels", [["auto", "auto: the fastest that runs the call"], ...kernels, ["textbook", "textbook: one memory of M bytes"]]), control("sram_bytes"), control("alignment")]],
        ["Algorithm", [this.choice("preset", "shape of a model", [["", "own"], ...Object.keys(data.presets).map((name) => [name])]), this.choice("algorithm", "algorithm", algorithms), control("direction"), ...options]],
        ["Shape", [...data.shape.map((name) => control(name)), control("dtype"), this.choice("packed", "packed", (fields.packed.declared === undefined ? fields.packed.choices : ["auto", ...fields.packed.choices]).map((one) => [one]), data.options.packed)]],
        ["Mask", ["mask", "window_left", "window_right", "align"].map((name) => control(name))],
        ["Tiles", [...call.set.tiles.map((name) => this.text(name, name, `${words(name)}; auto: that of the kernels`)), ...(pairs.length > 1 ? [this.choice("pair", "map shows", pairs)] : [])]],
      ];
      byId("fields").replaceChildren(
        ...groups.filter(([, fields]) => fields.length).map(([title, fields]) => element("fieldset", {}, element("legend", {}, title), element("div", { class: "grid" }, ...fields))),
      );
      if (focused) byId(focused)?.focus();
    }
    for (const [name, control] of Object.entries(this.controls)) {
      const value = this.drafts[name] ?? (name === "preset" ? this.presetOf(state) : state[name] ?? AUTO);
      const same = document.activeElement === control && digits(control.value.trim() || AUTO) === value; // "8K" stays
      if (!same) control.value = value;
    }
    const window_ = state.mask === "window";
    for (const name of ["window_left", "window_right", "align"]) this.controls[name].disabled = !window_;
    this.fault(null);
  }

  // The model with the shape and mask of a state.
  presetOf(state) {
    const same = (fields) => Object.entries(fields).every(([name, value]) => (name === "value_dim" && state[name] === AUTO ? state.head_dim : state[name]) === value);
    return Object.entries(this.calls.data.presets).find(([, fields]) => same(fields))?.[0] ?? "";
  }

  field(name, label, control, help) {
    this.controls[name] = control;
    control.id = `field-${name}`;
    control.addEventListener("change", () => this.changed({ [name]: control.value.trim() || AUTO }, name));
    control.name = name;
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

  // Show an error above the form and mark its field; null clears both.
  fault(error) {
    for (const control of Object.values(this.controls)) control.removeAttribute("aria-invalid");
    const box = byId("fault");
    box.hidden = !error;
    box.textContent = error ? `${error.message}. The results below are those of the last valid call.` : "";
    if (error && this.controls[error.field]) this.controls[error.field].setAttribute("aria-invalid", "true");
  }
}
