// What would make a call faster, and reports that are dropped on the page, beside what it predicts.

const LARGEST_REPORT = 64 * 2 ** 20; // [B]
const NARROWER = { fp32: ["tf32", "bf16"], tf32: ["bf16"], bf16: ["fp8"], fp16: ["fp8"] };
const LEAST_GAIN = 1.01;

// A command whose words are not broken at hyphens.
const shell = (line) => element("code", {}, ...line.split(" ").flatMap((word) => [element("span", { class: "whole" }, word), " "]).slice(0, -1));

// Changes to a call with their gain by the model, the largest first: { name, change, gain }.
function fasterThan(view, page) {
  const { state, call, time } = view, { calls, timer } = page;
  const common = ["hardware", "direction", ...calls.data.shape, "dtype", "mask", "window_left", "window_right", "align"];
  const kept = Object.fromEntries(common.map((name) => [name, state[name]]));
  const tiles = Object.fromEntries(calls.tileNames().map((name) => [name, AUTO]));
  const narrower = (NARROWER[state.dtype] ?? []).filter((dtype) => dtype in call.hardware.peak);
  const changes = [
    ...(view.default ? [] : [["the tile that ships", { ...state, ...tiles }]]),
    ...(page.map.by === "time" && page.map.view === view ? [[`tile ${page.map.best.map(grouped).join(" x ")}`, { ...state, ...Object.fromEntries(page.map.names.map((name, i) => [name, String(page.map.best[i])])) }]] : []),
    ...narrower.map((dtype) => [`${dtype} data`, { ...state, ...tiles, dtype }]),
    ...(state.packed === "off" && Number(call.numbers.heads) > Number(call.numbers.kv_heads) ? [["packed heads", { ...state, packed: "on" }]] : []),
    ...Object.entries(calls.data.algorithms)
      .filter(([name, one]) => name !== state.algorithm && !one.approximates && !call.algorithm.approximates && state.direction in one.directions)
      .flatMap(([name, one]) => [
        [one.title, { ...kept, algorithm: name }],
        ...narrower.map((dtype) => [`${one.title} in ${dtype}`, { ...kept, algorithm: name, dtype }]),
      ]),
  ];
  return changes.flatMap(([name, wanted]) => {
    try {
      const changed = calls.complete(wanted), after = page.timeOf(calls.call(changed)).time;
      const real = after && (after.implementation || !time.implementation); // a kernel on file is not replaced by none
      const gain = real ? time.seconds / after.seconds : 0;
      return gain > LEAST_GAIN ? [{ name, change: changed, gain }] : [];
    } catch (error) {
      if (!(error instanceof FieldError || error instanceof TooManyTiles)) throw error;
      return []; // the change does not fit the call
    }
  }).sort((a, b) => b.gain - a.gain);
}

// A file of a profiler or of a benchmark; nothing of it leaves the machine.
class Measured {
  constructor(host, page) {
    this.page = page;
    this.reports = new Reports(page.calls.data.reports);
    this.file = element("input", { type: "file", id: "report", accept: ".csv,.json,.jsonl,.txt", onchange: () => this.file.files[0] && this.take(this.file.files[0]) });
    this.fault = element("p", { class: "warn", role: "alert", hidden: true });
    this.faster = element("div", { class: "controls", role: "group", "aria-label": "Changes that gain" });
    this.out = element("div", {});
    host.replaceChildren(
      this.faster,
      element("p", {}, element("label", { for: "report" }, "Measured it? ", this.file)),
      element("p", { class: "note" }, "Choose or drop the CSV of Nsight Compute (", shell("ncu --csv"), ") or the JSON of a serving benchmark: measured figures stand beside predicted ones. Nothing leaves this machine."),
      this.fault, this.out,
    );
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      const [file] = event.dataTransfer?.files ?? [];
      if (file) this.take(file);
    });
  }

  // Read a file; one that is cut or no report ends in one line.
  async take(file) {
    this.fault.hidden = true;
    try {
      if (file.size > LARGEST_REPORT) throw new ReportError("more than 64 MiB given; allowed: fewer kernels or metrics");
      const found = this.reports.read(await file.text());
      Object.assign(this, { run: null, launches: null, at: 0 }, found, { name: file.name.slice(0, 60) });
      if (found.launches) this.longest();
      else this.planned(); // which draws the page
      this.page.draw();
      say(`${this.name} is read.`);
    } catch (error) {
      this.fault.hidden = false;
      this.fault.textContent = `${file.name.slice(0, 60)}: ${error instanceof ReportError ? error.message : `cannot be read: ${error.message}`}`;
    }
  }

  // Choose the launch of the longest duration.
  longest() {
    const times = this.launches.map((one) => this.reports.measured([one]).seconds ?? 0);
    this.at = times.reduce((most, time, i) => (time > times[most] ? i : most), 0);
  }

  // The bytes and the time of the launches of a call; null without a report of kernels.
  figures(view) {
    const kernels = view.time?.kernels.length ?? 1;
    return this.launches ? this.reports.measured(this.launches.slice(this.at, this.at + kernels)) : null;
  }

  // The plan of the page nearest to a run.
  planned() {
    const { data } = this.page.serving ?? {}, { setting } = this.run;
    if (!data) throw new ReportError("a run of a server given; allowed: on a page of all algorithms and devices, which has plans");
    const named = (names, text) => names.find((name) => plainName(String(text ?? "")).includes(plainName(name)));
    const near = (sizes, wanted, usual) => (wanted ? sizes.reduce((best, size) => (Math.abs(Math.log(size / wanted)) < Math.abs(Math.log(best / wanted)) ? size : best)) : Number(usual));
    const { state } = this.page, first = (name) => name.split("-")[0];
    this.model = named(data.model, setting.model);
    const device = data.hardware.find((name) => named([first(name)], setting.hardware)) ?? state.serve_hardware;
    this.page.change({
      serve_model: this.model ?? state.serve_model,
      serve_hardware: device,
      serve_gpus: String(near(data.gpus, setting.tensor_parallel ?? setting.device_count, state.serve_gpus)),
      serve_prompt: String(near(data.prompt, setting.prompt, state.serve_prompt)),
      serve_batch: String(near(data.batch, setting.clients, state.serve_batch)),
    });
  }

  show(view) {
    clearTimeout(this.later);
    this.faster.replaceChildren();
    if (view.time) this.later = setTimeout(() => this.tellFaster(view), 0); // after the first picture
    this.out.replaceChildren(...(this.launches ? this.kernels(view) : this.run ? this.service(view) : []));
  }

  tellFaster(view) {
    const found = fasterThan(view, this.page).slice(0, 4), measured = this.figures(view)?.seconds;
    const text = ({ name, gain }) => `${name}: ${gain.toFixed(2)} x${measured ? `, ${short(measured / gain, "s")}` : ""}`;
    this.faster.replaceChildren(
      element("strong", {}, found.length ? "Faster, by the model:" : "Nothing that the page can change is faster by the model."),
      ...found.map((one) => element("button", { type: "button", class: "gain", onclick: () => this.page.take(one.change, "push") }, text(one))),
    );
  }

  // Kernels of Nsight Compute beside the call.
  kernels(view) {
    const { time, counts } = view, found = this.figures(view), several = time?.kernels.length > 1;
    const select = element("select", { id: "launch", onchange: () => { this.at = Number(select.value); this.page.draw(); } },
      ...this.launches.slice(0, 500).map(({ kernel, launch }, i) => element("option", { value: i, selected: i === this.at }, `${launch}: ${kernel.slice(0, 70)}`)));
    const rows = [
      ["Time", found.seconds, time?.seconds, "s", ""],
      [sentence(LABELS.requests), found.l2, Number(counts.hbm_bytes), "B", "measured: sectors that the SMs ask the L2 for"],
      [sentence(LABELS.dram), found.dram, time?.streamed, "B", time && time.dram[0] !== time.dram[1] ? `caches allow ${interval(time.dram)}` : ""],
    ].filter(([, measured]) => measured !== null);
    return [
      element("p", {}, element("label", { for: "launch" }, `${this.name}: `, select), several ? ` and the ${time.kernels.length - 1} after it, as the call has ${time.kernels.length} kernels` : ""),
      rows.length ? this.table(rows) : element("p", { class: "warn" }, `No counter of bytes or time; profile with ncu --csv --metrics ${this.reports.data.counters.metrics.join(",")}`),
      ...(found.seconds && time ? [element("p", { class: "note" }, "The square in the roofline is the measurement. Reasons: ", shell(`${commandOf(view).replace("iomodel estimate", "iomodel diagnose")} --time ${found.seconds.toPrecision(4)}s`), "; bytes: ", shell("iomodel audit"), ".")] : []),
    ];
  }

  // The run of a server beside the plan of the view below.
  service({ state }) {
    const { setting, measured, source, runs } = this.run, gpus = Number(state.serve_gpus);
    const plan = this.page.serving.data.plans[[state.serve_model, state.serve_hardware, state.serve_gpus, state.serve_prompt].join("|")];
    const at = this.model ? plan.batches?.[state.serve_batch] : undefined;
    const rows = [
      ["Time to first token", measured.ttft, at?.ttft, "s", ""],
      ["Time per output token", measured.tpot, at?.tpot, "s", ""],
      ["Tokens/s", measured.tokens_per_second, at && at.tokens_per_second * gpus, "", ""],
      ["Tokens/s per GPU", measured.tokens_per_device, at?.tokens_per_second, "", ""],
    ].filter(([, value]) => value !== undefined);
    const own = ["model", "hardware", "precision", "prompt", "output", "clients", "load", "tensor_parallel"].filter((name) => setting[name] !== undefined).map((name) => `${name} ${String(setting[name]).slice(0, 60)}`);
    const point = this.model
      ? `The plan is the nearest of this page, in the types of the checkpoint: ${state.serve_model}, ${gpus} x ${state.serve_hardware}, prompts of ${grouped(Number(state.serve_prompt))} tokens, outputs of ${grouped(this.page.serving.data.output)}, ${grouped(Number(state.serve_batch))} requests${plan.refused ? `, which it refuses: ${plan.refused}` : at ? "" : ", which do not fit"}.`
      : `The model is not among those of this page: ${this.page.serving.data.model.join(", ")}.`;
    return [
      element("p", {}, `${this.name}, ${source}${runs > 1 ? `, the last of ${runs} runs` : ""}: ${own.join(", ")}`),
      rows.length ? this.table(rows) : element("p", { class: "warn" }, "No time and no rate of tokens in this result."),
      element("p", { class: "note" }, `${point} The run itself, with intervals: `, shell(`iomodel judge ${this.name}${setting.hardware ? "" : ` --hardware ${state.serve_hardware}`}${setting.model ? "" : " --model NAME"}`)),
    ];
  }

  table(rows) {
    const text = (value, unit) => (unit ? short(value, unit) : rounded(value));
    const cells = ([name, measured, predicted, unit, more]) => [
      element("th", { scope: "row", title: more }, name), element("td", {}, text(measured, unit)), element("td", {}, predicted ? text(predicted, unit) : "-"),
      element("td", {}, predicted ? `${(measured / predicted).toPrecision(3)} x` : "-"),
    ];
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measured beside predicted" }, element("table", { id: "against" },
      element("thead", {}, element("tr", {}, ...["quantity", "measured", "predicted", "measured / predicted"].map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row))))));
  }
}
