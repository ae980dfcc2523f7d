// SPDX-License-Identifier: MPL-2.0
// The page: puts the state where it is seen. `?overlay=1` is the form for OBS; `?theme=dark`, `?theme=light`,
// `?span=15` choose what the buttons choose.

const $ = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);
const overlay = asked.get("overlay") === "1";

const SPANS = [[15, "15 s"], [60, "1 min"], [300, "5 min"], [Infinity, "all"]];
const CURVES = [["motion2", "motion2"], ["motion3", "motion3"], ["motion", "motion"], ["mean", "window mean"]];
const WINDOWS_LISTED = 20;
const NOTES_LISTED = 50;

const options = { span: Number(asked.get("span")) || 60, shown: new Set(["motion2", "motion3", "motion", "mean"]) };
/** What was drawn last, for the pointer and for tests. */
const shown = { state: null, connected: false, chart: null, pointer: null };

function score(value) {
  return value === undefined ? "–" : value.toFixed(4);
}

function count(value) {
  return value.toLocaleString("en-US").replaceAll(",", "\u202f");
}

function clock(milliseconds) {
  return clockText(milliseconds / 1000, 0.1);
}

/** An element with text or children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets text only where it differs, so that a selection in it survives. */
function say(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}

function frameRate(frames) {
  const recent = frames.slice(-120).filter((frame) => frame.timestamp !== null);
  if (recent.length < 2) return null;
  const time = recent[recent.length - 1].timestamp - recent[0].timestamp;
  return time > 0 ? ((recent.length - 1) * 1e9) / time : null;
}

const PHASES = {
  starting: ["waiting for the first frame", "warn"],
  running: ["live", "good"],
  ended: ["ended", ""],
  stopped: ["stopped", ""],
  failed: ["failed", "bad"],
};

function phaseOf(state, connected) {
  if (connected) return PHASES[state.phase] ?? [state.phase, ""];
  // The end was told before the server went: it is no loss.
  if (state && (state.phase === "ended" || state.phase === "stopped")) return [`${state.phase}, server gone`, ""];
  if (state && state.phase === "failed") return ["failed, server gone", "bad"];
  return [state ? "connection lost, trying again" : "connecting", "warn"];
}

function showTiles(state) {
  const frame = state.frames[state.frames.length - 1];
  say("now-motion2", score(frame?.motion2));
  say("now-frame", frame ? `frame ${count(frame.frame)}, motion3 ${score(frame.motion3)}` : "no frame yet");
  const window = state.windows[state.windows.length - 1];
  say("now-mean", score(window?.["motion2.mean"]));
  const { ["motion2.min"]: min, ["motion2.max"]: max } = window ?? {};
  say("now-range", window ? `window ${count(window.window)}` + (min === undefined || max === undefined ? "" : `, ${score(min)} to ${score(max)}`) : "no window yet");
  say("frames", count(state.totals.frames));
  const rate = frameRate(state.frames);
  const { video } = state;
  say("rate", [video && `${video.width}×${video.height} ${video.format}`, rate && `${rate.toFixed(rate < 100 ? 1 : 0)} frames/s`].filter(Boolean).join(", "));
  const { delay, latency, live, late } = state.health;
  say("delay", delay === null ? "–" : `${delay} ms`);
  say("latency", (live ? `pipeline latency ${latency ?? "unknown"} ms` : "not a live pipeline") + (late ? `, ${count(late)} late` : ""));
  const { decoders } = state;
  const counting = decoders.filter((decoder) => decoder.counts);
  const sum = (name) => counting.reduce((total, decoder) => total + decoder.counts[name], 0);
  // The worst first.
  const trouble = ["dropped", "corrupted", "recoveries"].find((name) => sum(name) > 0);
  $("tile-decoder").classList.toggle("warn", trouble !== undefined);
  say("decoder-word", counting.length === 0 ? "–" : trouble ? `${count(sum(trouble))} ${sum(trouble) === 1 ? trouble.replace("ies", "y") : trouble}` : "all well");
  say("decoder-name", decoders.map((decoder) => decoder.factory).join(", ") || "none in the pipeline");
}

function windowRow(window) {
  const value = (name) => make("td", { class: "number" }, score(window[name]));
  const number = `${count(window.window)}${window.submitted ? " (asked for)" : ""}${window.partial ? " (partial)" : ""}`;
  const scores = window.reason === undefined
    ? ["motion2.mean", "motion2.min", "motion2.max", "motion3.mean"].map(value)
    : [make("td", { class: "number", colspan: 4 }, `no scores: ${window.reason}`)];
  return make("tr", {}, make("td", {}, number), make("td", {}, `${count(window.first)}–${count(window.last)}`), ...scores);
}

let listed = "";
function showWindows(state) {
  const newest = state.windows.slice(-WINDOWS_LISTED).reverse();
  const key = JSON.stringify(newest.map((window) => [window.session, window.window, window.submitted]));
  if (key === listed) return;
  listed = key;
  $("windows").replaceChildren(...newest.map(windowRow));
  $("no-windows").hidden = newest.length > 0;
}

const COUNTS = ["frames", "retries", "recoveries", "dropped", "corrupted"];
const open = new Set();

function decoderBlock(decoder) {
  const title = make("p", {}, make("b", {}, decoder.factory), ` ${decoder.element}`);
  if (decoder.implementation) title.append(`, ${decoder.implementation}`);
  if (!decoder.counts) return make("div", {}, title, make("p", { class: "quiet" }, "It does not count retries or drops."));
  const counts = COUNTS.map((name) => {
    const value = decoder.counts[name];
    const raised = name !== "frames" && name !== "retries" && value > 0;
    return make("div", {}, make("b", raised ? { class: "raised" } : {}, count(value)), make("span", { class: "label" }, name));
  });
  const rows = Object.entries(decoder.stats).map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", { class: "number" }, String(value))));
  const details = make("details", {}, make("summary", {}, "everything it counts"), make("table", {}, ...rows));
  details.open = open.has(decoder.element);
  details.addEventListener("toggle", () => (details.open ? open.add(decoder.element) : open.delete(decoder.element)));
  return make("div", {}, title, make("div", { class: "counts" }, ...counts), details);
}

let described = "";
function showDecoders(state) {
  const key = JSON.stringify(state.decoders);
  if (key === described) return;
  described = key;
  $("decoders").replaceChildren(...state.decoders.map(decoderBlock));
  $("no-decoders").hidden = state.decoders.length > 0;
}

let noted = "";
function showNotes(state) {
  const newest = state.notes.slice(-NOTES_LISTED).reverse();
  const key = JSON.stringify(newest.map((note) => [note.number, note.times]));
  if (key === noted) return;
  noted = key;
  $("notes").replaceChildren(
    ...newest.map((note) =>
      make("li", { class: note.level }, make("span", { class: "quiet" }, `${clock(note.at)} ${note.from} `), note.text, note.times > 1 ? ` (${count(note.times)} times)` : ""),
    ),
  );
  $("no-notes").hidden = newest.length > 0;
}

function showChart(state) {
  shown.chart = drawChart($("chart"), state, options) ?? shown.chart;
  showTip();
}

/** The frame under the pointer. */
function showTip() {
  const tip = $("tip");
  const points = shown.chart?.drawn.motion2 ?? shown.chart?.drawn.motion ?? shown.chart?.drawn.motion3;
  tip.hidden = shown.pointer === null || !points?.length;
  if (tip.hidden) return;
  const nearest = points.reduce((best, point) => (Math.abs(point.x - shown.pointer) < Math.abs(best.x - shown.pointer) ? point : best));
  const frame = shown.state.frames.find((candidate) => candidate.frame === nearest.frame);
  if (!frame) return;
  const lines = [`frame ${frame.frame}` + (frame.timestamp === null ? "" : `  ${clockText((frame.timestamp - shown.state.origin) / 1e9, 0.001)}`)];
  for (const feature of ["motion", "motion2", "motion3"]) lines.push(`${feature.padEnd(8)} ${frame[feature].toFixed(4)}`);
  tip.textContent = lines.join("\n");
  const width = $("chart").clientWidth;
  tip.style.left = nearest.x > width / 2 ? "" : `${nearest.x + 14}px`;
  tip.style.right = nearest.x > width / 2 ? `${width - nearest.x + 14}px` : "";
}

function showOverlay(state, connected) {
  const frame = state?.frames[state.frames.length - 1];
  const window = state?.windows[state.windows.length - 1];
  say("over-score", score(window?.["motion2.mean"] ?? frame?.motion2));
  const parts = [];
  for (const { factory, counts } of state?.decoders ?? []) {
    if (counts) parts.push(`${factory}: ${count(counts.retries)} retries, ${count(counts.recoveries)} recoveries, ${count(counts.dropped)} dropped`);
  }
  const health = state?.health ?? {};
  if (health.delay !== null && health.delay !== undefined) parts.push(`delay ${health.delay} ms`);
  if (health.late) parts.push(`${count(health.late)} late`);
  say("over-line", parts.join("  ·  "));
  const [text, kind] = phaseOf(state, connected);
  $("over-state").hidden = connected && state.phase === "running";
  $("over-state").className = kind;
  say("over-state", state?.failure ? `${text}: ${state.failure}` : text);
  if (state) shown.chart = drawChart($("over-chart"), state, { ...options, shown: new Set(["motion2", "mean"]), plain: true }) ?? shown.chart;
}

function show() {
  const { state, connected } = shown;
  const [text, kind] = phaseOf(state, connected);
  say("phase", text);
  $("phase").className = `pill ${kind}`;
  document.title = `${text} – motion scores`;
  if (overlay) return showOverlay(state, connected);
  if (!state) return;
  say("source", state.source);
  $("failure").hidden = !state.failure;
  say("failure", state.failure ?? "");
  showTiles(state);
  showWindows(state);
  showDecoders(state);
  showNotes(state);
  showChart(state);
  const { sessions, warnings, skipped } = state.totals;
  say("footer", `up ${clockText(state.at / 1000, 1)}, ${count(sessions)} session${sessions === 1 ? "" : "s"}, ${count(warnings)} warning${warnings === 1 ? "" : "s"}` + (skipped ? `, ${count(skipped)} frames faster than a page shows` : ""));
}

let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    show();
  });
}

function pressable(group, entries, isOn, press) {
  const buttons = entries.map(([value, label]) => {
    const button = make("button", { type: "button" });
    if (group === "curves") button.append(make("span", { class: `swatch ${value}` }));
    button.append(label);
    button.addEventListener("click", () => {
      press(value);
      mark();
      soon();
    });
    return [value, button];
  });
  const mark = () => buttons.forEach(([value, button]) => button.setAttribute("aria-pressed", String(isOn(value))));
  $(group).append(...buttons.map(([, button]) => button));
  mark();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  say("theme", theme === "dark" ? "Light" : "Dark");
  soon();
}

function begin() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themes = ["light", "dark"];
  setTheme(overlay ? "dark" : themes.includes(asked.get("theme")) ? asked.get("theme") : themes[Number(dark.matches)]);
  dark.addEventListener("change", () => overlay || asked.has("theme") || setTheme(themes[Number(dark.matches)]));
  document.documentElement.classList.toggle("overlay", overlay);
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  pressable("spans", SPANS, (span) => span === options.span, (span) => (options.span = span));
  pressable("curves", CURVES, (curve) => options.shown.has(curve), (curve) => options.shown.delete(curve) || options.shown.add(curve));
  $("chart").addEventListener("pointermove", (event) => {
    shown.pointer = event.offsetX;
    showTip();
  });
  $("chart").addEventListener("pointerleave", () => {
    shown.pointer = null;
    showTip();
  });
  addEventListener("resize", soon);
  follow((state, connected) => {
    shown.state = state;
    shown.connected = connected;
    soon();
  });
}

begin();
