// Reports of others: tables of `ncu --csv` and results of benchmarks of servers, read as the library reads them.

class ReportError extends Error {}

const BREAKS = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;
const FIELD = 131072; // letters of a cell, as Python's reader allows

// The rows of a table with the number of the line that each ends on; quotes are strict.
function* csvRows(text, most) {
  const lines = text.split(BREAKS);
  if (lines.at(-1) === "") lines.pop();
  let cells = [], cell = "", state = "start";
  const fail = (line, words) => { throw new ReportError(`line ${line}: ${words}; the file may be cut short`); };
  const end = () => { cells.push(cell); cell = ""; state = "start"; };
  for (const [i, line] of lines.entries()) {
    if (i >= most) throw new ReportError(`more than ${most.toLocaleString("en-US")} lines; allowed: a report of fewer kernels`);
    for (const letter of line) {
      if (state === "quoted") { if (letter === '"') state = "after"; else cell += letter; }
      else if (letter === ",") end();
      else if (letter === '"' && state === "start") state = "quoted";
      else if (letter === '"' && state === "after") { cell += letter; state = "quoted"; }
      else if (state === "after") fail(i + 1, "',' expected after '\"'");
      else { cell += letter; state = "plain"; }
      if (cell.length > FIELD) fail(i + 1, `field larger than field limit (${FIELD})`);
    }
    if (state === "quoted") continue;
    if (cells.length || state !== "start") end();
    if (cells.length) yield [i + 1, cells];
    cells = [];
  }
  if (state === "quoted") fail(lines.length, "unexpected end of data");
}

class Reports {
  constructor(data) {
    this.data = data;
    const { whole, comma } = data.counters;
    this.whole = new RegExp(whole);
    this.comma = new RegExp(comma);
  }

  // What a file holds: launches of kernels, or the run of a benchmark.
  read(text) {
    const start = text.replace(/^\ufeff/, "");
    const run = /^\s*[[{]/.test(start) ? this.run(start) : null;
    if (run) return { run };
    if (/^\s*[[{]/.test(start)) throw new ReportError(`no result of a known program; allowed: JSON that ${this.data.formats.map(({ source }) => source).join(", ")} write`);
    return { launches: this.launches(start) };
  }

  // The launches of a table of ncu: { kernel, launch, values }, values in base units.
  launches(text) {
    const { columns: [NAME, LAUNCH, METRIC, UNIT, VALUE], most } = this.data.counters;
    const rows = [...csvRows(text, most)].filter(([, cells]) => cells.length > 1 && !cells[0].startsWith("=="));
    const first = rows.findIndex(([, cells]) => cells.includes(NAME));
    if (first < 0) throw new ReportError(`no header with '${NAME}' found; allowed: the output of ncu --csv (--page raw or --metrics ...), or the JSON of a benchmark; iomodel judge reads logs`);
    const header = rows[first][1], byRows = header.includes(METRIC);
    if (byRows && ![UNIT, VALUE].every((name) => header.includes(name))) throw new ReportError(`a header without '${VALUE}' found; the file is cut short`);
    const least = header.includes(VALUE) ? header.indexOf(VALUE) + 1 : header.length;
    const body = rows.slice(first + 1).map(([line, cells]) => {
      if (cells.length < least || cells.length > header.length) throw new ReportError(`line ${line}: ${cells.length} cells found, ${header.length} in the header; the file is cut short`);
      return header.map((_, i) => cells[i] ?? "");
    });
    const at = (name) => header.indexOf(name), launches = [];
    const launch = (cells, place) => launches[launches.push({ kernel: cells[at(NAME)], launch: at(LAUNCH) < 0 ? place : cells[at(LAUNCH)], values: {} }) - 1];
    if (byRows) {
      const commas = this.hasCommas(body.map((cells) => cells[at(VALUE)])), known = new Map();
      for (const cells of body) {
        const key = JSON.stringify([at(LAUNCH) < 0 ? "0" : cells[at(LAUNCH)], cells[at(NAME)]]);
        if (!known.has(key)) known.set(key, launch(cells, "0").values);
        this.keep(known.get(key), cells[at(METRIC)], cells[at(VALUE)], cells[at(UNIT)], commas);
      }
    } else {
      const units = body.length && !body[0][at(NAME)] ? body.shift() : header.map(() => "");
      const measured = header.flatMap((metric, i) => (metric.includes("__") ? [i] : []));
      const commas = this.hasCommas(body.flatMap((cells) => measured.map((i) => cells[i])));
      body.forEach((cells, row) => {
        const { values } = launch(cells, String(row));
        for (const i of measured) this.keep(values, header[i], cells[i], units[i], commas);
      });
    }
    launches.forEach(({ values }) => this.addBytes(values));
    if (!launches.length) throw new ReportError("no kernel found below the header; the file may be cut short");
    const last = launches.at(-1), others = launches.slice(0, -1);
    const lacking = others.length && Object.keys(others[0].values).filter((name) => !has(last.values, name) && others.every((one) => has(one.values, name))).sort()[0];
    if (lacking && (byRows || !text.endsWith("\n"))) throw new ReportError(`the last launch, ${last.launch} of '${last.kernel.slice(0, 60)}', lacks ${lacking}; the file is cut short`);
    return launches;
  }

  keep(values, metric, text, unit, commas) {
    const number = this.number(text, unit, commas), { labels } = this.data.counters;
    const [counter, units] = has(labels, metric) ? labels[metric] : [metric, []];
    if (metric && number !== null) values[units.includes(unit.trim()) ? counter : metric] = number;
  }

  // The bytes of DRAM that a rate and a time state, where the bytes themselves are not reported.
  addBytes(values) {
    const { rate, duration, bytes: { dram: [dram] } } = this.data.counters, time = duration.find((name) => has(values, name));
    if (time && has(values, rate) && !has(values, dram)) values[dram] = values[rate] * values[time];
  }

  // True if decimals follow a comma, as with the settings of French or German.
  hasCommas(values) {
    const texts = values.map((value) => value.trim());
    if (texts.some((text) => this.whole.test(text) && text.includes(".") && text.includes(","))) return false;
    return texts.some((text) => this.comma.test(text) && !this.whole.test(text));
  }

  // A number in base units; null for a text that is none.
  number(value, unit, commas) {
    const { prefixes, scales, largest } = this.data.counters;
    let text = value.trim();
    if (commas && this.comma.test(text)) text = text.replace(/\s/g, "").replaceAll(".", "").replace(",", ".");
    if (!this.whole.test(text)) return null;
    const number = Number(text.replaceAll(",", "")), stem = unit.trim();
    if (Math.abs(number) > largest) return null;
    if (has(scales, stem)) return number * scales[stem];
    const suffix = ["byte", "sector"].find((one) => stem.endsWith(one) && has(prefixes, stem.slice(0, -one.length)));
    return suffix ? number * prefixes[stem.slice(0, -suffix.length)] : number;
  }

  // The bytes and the time of some launches together; null where a counter is missing in one of them.
  measured(launches) {
    const { sector, l2, bytes, duration } = this.data.counters;
    const sum = (of) => launches.reduce((all, one) => (all === null || of(one.values) === null ? null : all + of(one.values)), 0);
    const either = ([whole, sectors]) => (values) => (has(values, whole) ? Math.round(values[whole]) : has(values, sectors) ? sector * Math.round(values[sectors]) : null);
    const [reads, writes] = [sum(either(bytes.dram_read)), sum(either(bytes.dram_written))];
    const asked = (values) => (l2.slice(0, 2).every((name) => has(values, name)) ? sector * Math.round(l2.reduce((all, name) => all + (values[name] ?? 0), 0)) : either(bytes.l2)(values));
    return {
      seconds: sum((values) => values[duration.find((name) => has(values, name))] ?? null),
      dram: reads === null || writes === null ? sum(either(bytes.dram)) : reads + writes,
      l2: sum(asked),
    };
  }

  // The run of a benchmark in a JSON text, or lines of JSON, the last one that is known; null if there is none.
  run(text) {
    const runs = documents(text, this.data.runs).map((one) => this.ofDocument(one)).filter(Boolean);
    return runs.length ? this.joined(runs) : null;
  }

  // The last run, with the last tests of other figures of its set-up; `runs` counts the others and itself.
  joined(runs) {
    const last = runs.at(-1), { tests } = this.data.formats.find(({ source }) => source === last.source);
    const rest = ({ setting: { prompt, output, ...others } }) => JSON.stringify(others);
    const whole = { ...last, runs: runs.length };
    if (Object.keys(tests).length) for (const run of runs.slice(0, -1).reverse()) {
      const same = run.source === last.source && rest(run) === rest(last);
      if (!same || Object.keys(run.measured).some((name) => has(whole.measured, name))) continue;
      Object.assign(whole, { setting: { ...whole.setting, ...run.setting }, measured: { ...whole.measured, ...run.measured }, runs: whole.runs - 1 });
    }
    return whole;
  }

  ofDocument(document_) {
    const format = this.data.formats.find(({ known }) => known.every((path) => (entryAt(document_, path) ?? null) !== null));
    if (!format) return null;
    const taken = (path) => { const entry = entryAt(document_, path) ?? null; return entry === "" ? null : entry; };
    const setting = {}, measured = {};
    for (const [name, path] of Object.entries(format.setting)) if (taken(path) !== null) setting[name] = taken(path);
    for (const [name, [path, factor]] of Object.entries(format.measured)) {
      const number = this.figure(taken(path));
      if (number !== null && number > 0) measured[name] = factor * number;
    }
    const tokens = Object.entries(format.tests).map(([name, path]) => [name, this.figure(taken(path)) ?? 0]).filter(([, number]) => number > 0);
    if (Object.keys(format.tests).length) {
      const [[name, number] = []] = tokens, filled = format.before ? this.figure(entryAt(document_, format.before) ?? null) ?? 0 : 0;
      if (tokens.length !== 1 || !(name in measured) || filled > 0) return null;
      const figure = measured[name] / (name === "tpot" ? number : 1);
      for (const other of Object.keys(measured)) delete measured[other];
      measured[name] = figure;
    }
    if (format.in_flight && !("clients" in setting) && !("load" in setting)) setting.clients = entryAt(document_, format.in_flight) ?? null;
    if (format.latency && entryAt(document_, format.latency) === entryAt(document_, format.measured.ttft[0])) delete measured.ttft;
    if (!Object.keys(measured).length) throw new ReportError(`${format.source} without a figure above 0; allowed: a run that has succeeded`);
    return { source: format.source, setting: this.settings(setting), measured };
  }

  // The set-up of a file: mean lengths of totals, whole numbers, names.
  settings(setting) {
    const { counted, real, most } = this.data, read = {}, done = this.figure(setting.requests ?? null);
    for (const [name, total] of [["prompt", setting.tokens_in], ["output", setting.tokens_out]]) {
      const tokens = this.figure(total ?? null);
      if (tokens && done >= 1) read[name] = Math.max(1, Math.round(tokens / done));
    }
    for (const [name, entry] of Object.entries(setting)) {
      const value = Array.isArray(entry) && entry.length ? entry[0] : entry, number = this.figure(value);
      if (counted.includes(name) && number !== null && number >= 0.5 && number < most) read[name] ??= Math.round(number);
      else if (real.includes(name) && number !== null && number > 0 && number < most) read[name] = number;
      else if (typeof value === "string" && value && ![...counted, ...real].includes(name) && value.length < 500) read[name] = value;
    }
    return read;
  }

  // A number of a file; null for what is none, or lies far outside.
  figure(entry) {
    if (typeof entry === "string" ? !/^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?\s*$/i.test(entry) : typeof entry !== "number") return null;
    const number = Number(entry);
    return Number.isFinite(number) && Math.abs(number) < this.data.most * this.data.gib ? number : null;
  }
}

// The documents of JSON in a text: all of it, its runs, or single lines; Python's NaN and Infinity are no figures.
function documents(text, runs) {
  const parsed = (part) => {
    try {
      return [JSON.parse(part.replace(/([:[,]\s*)(?:NaN|-?Infinity)(?=\s*[,}\]])/g, "$1null"))];
    } catch {
      return [];
    }
  };
  const [whole] = parsed(text);
  const listed = whole !== null && typeof whole === "object" && !Array.isArray(whole) ? whole[runs] : whole;
  if (whole !== undefined) return Array.isArray(listed) ? listed : [whole];
  return text.split(BREAKS).filter((line) => line.startsWith("{") && line.trimEnd().endsWith("}")).flatMap(parsed);
}

function entryAt(document_, paths) {
  for (const path of paths.split("|")) {
    let entry = document_;
    for (const word of path.split(".")) {
      if (Array.isArray(entry)) entry = entry.at(-1);
      entry = entry !== null && typeof entry === "object" && !Array.isArray(entry) && has(entry, word) ? entry[word] : null;
    }
    if (entry !== null) return entry;
  }
  return null;
}
