// Plans of a shipped model on some GPUs: figures of iomodel.plan at the points of a grid, computed when the page was built.

class Serving {
  constructor(host, data, fields, changed) {
    this.host = host;
    this.data = data;
    this.selects = Object.entries(fields).map(([name, { choices, label }]) => {
      const select = element("select", { id: `field-${name}`, onchange: () => changed({ [name]: select.value }, name) }, ...choices.map((value) => element("option", { value }, this.text(name, value))));
      select.name = name;
      return [label, select];
    });
    this.cards = element("dl", { class: "cards" });
    this.why = element("p", {});
    this.table = element("table", {});
    this.command = element("code", {});
    this.notes = element("p", { class: "note" });
    const controls = this.selects.map(([label, select]) => element("div", { class: "field" }, element("label", { for: select.id }, label), select));
    host.replaceChildren(
      element("div", { class: "serve" }, ...controls), this.cards, this.why,
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plans by requests decoded together" }, this.table),
      element("p", { class: "note" }, `Plans at the points of this grid, as of the build of the page: prompts of ${data.prompt.map(grouped).join(" or ")} tokens, outputs of ${grouped(data.output)}; one replica, with tensor parallelism across its GPUs; TTFT without a queue, TPOT with the prefills in between. Memory and steps are those under vLLM where it runs on the device, else 90 % of the memory, less 2 GiB. Other points: `, this.command),
      this.notes,
    );
  }

  text(name, value) {
    const known = { serve_model: this.data.titles, serve_hardware: this.data.names }[name];
    return known ? known[value] : grouped(Number(value));
  }

  show({ state }) {
    for (const [, select] of this.selects) select.value = state[select.name];
    const { serve_model: model, serve_hardware: device, serve_gpus: gpus, serve_prompt: prompt, serve_batch: batch } = state;
    const plan = this.data.plans[[model, device, gpus, prompt].join("|")];
    const at = plan.batches?.[batch];
    const options = { hardware: device, count: gpus, "tensor-parallel": gpus, prompt, output: this.data.output, batch };
    const words = ["iomodel plan", model, ...Object.entries(options).map(([name, value]) => `--${name} ${value}`)];
    this.command.replaceChildren(...words.flatMap((word) => [element("span", { class: "whole" }, word), " "]).slice(0, -1));
    const room = plan.refused ? [] : [["Fits", plan.fits < Number(batch) ? "no" : "yes", `at most ${grouped(plan.fits)} requests`], ["Weights per GPU", short(plan.weights, "B"), `of ${short(plan.usable, "B")} usable`]];
    const speed = at
      ? [["Time to first token", short(at.ttft, "s"), `bound by ${plan.prefill_bound}`], ["Time per output token", short(at.tpot, "s"), `decode bound by ${at.decode_bound}`], ["Tokens/s per GPU", rounded(at.tokens_per_second), `${rounded(at.tokens_per_second * Number(gpus))} for the replica`]]
      : [];
    this.cards.replaceChildren(...[...room, ...speed].map(([name, value, more]) => element("div", { class: "card" }, element("dt", {}, name), element("dd", {}, element("strong", {}, value), element("span", {}, more)))));
    this.why.textContent = plan.refused ?? (at ? "" : `${grouped(batch)} requests of ${grouped(Number(prompt) + this.data.output)} tokens do not fit: at most ${grouped(plan.fits)}, at ${short(plan.request_bytes, "B")} of cache each on a GPU.`);
    this.why.hidden = !this.why.textContent;
    const rows = Object.entries(plan.batches ?? {}).map(([size, one]) => element("tr", { class: size === batch ? "sum" : "" }, element("th", { scope: "row" }, grouped(size)), element("td", {}, short(one.tpot, "s")), element("td", {}, rounded(one.tokens_per_second)), element("td", {}, one.decode_bound)));
    this.table.hidden = !rows.length;
    this.table.replaceChildren(
      element("thead", {}, element("tr", {}, ...["requests", "TPOT", "tokens/s per GPU", "decode bound by"].map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, ...rows),
    );
    this.notes.hidden = !plan.notes?.length;
    this.notes.textContent = (plan.notes ?? []).map((note) => `Note: ${note}.`).join(" ");
  }
}
