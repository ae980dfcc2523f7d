// SPDX-License-Identifier: MPL-2.0
// Drawing: curves of the newest frames over time, and the means of windows.

const MARGIN = { left: 52, right: 12, top: 10, bottom: 22 };
const FEATURES = ["motion", "motion3", "motion2"];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A canvas that fits its element and the screen's pixels; `null` where it is not shown. */
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0 || height === 0) return null;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}

/** A step of 1, 2 or 5 times a power of ten that gives at most `most` ticks. */
function decimalStep(range, most) {
  const rough = range / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999999);
}

/** The same for seconds, which go by sixties above one. */
function timeStep(range, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
  if (range / most <= 1) return decimalStep(range, most);
  return steps.find((step) => step >= range / most) ?? 3600 * Math.ceil(range / most / 3600);
}

/** Seconds as m:ss or h:mm:ss, as fine as the step between ticks. */
function clockText(place, step) {
  const digits = step >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(step) - 1e-9));
  const rounded = Number(place.toFixed(digits));
  const seconds = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const minutes = Math.floor(rounded / 60);
  return minutes < 60 ? `${minutes}:${seconds}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds}`;
}

/**
 * The part of a state that is in view: the last `span` seconds, or `span` times 30 frames where frames have no
 * time. `timed` says which. Time begins with the session: an encoder may start its timestamps at 1000 hours.
 */
function inView(state, span) {
  const timed = state.frames.length > 0 && state.frames.every((frame) => frame.timestamp !== null);
  const origin = state.origin ?? 0;
  const seconds = (timestamp) => (timestamp - origin) / 1e9;
  const place = (frame) => (timed ? seconds(frame.timestamp) : frame.frame);
  const last = state.frames[state.frames.length - 1];
  const windows = state.windows.filter((w) => w.session === state.session && w.reason === undefined && (!timed || w.end !== null));
  const lastWindow = windows[windows.length - 1];
  const byTime = timed || (!last && lastWindow && lastWindow.end !== null);
  let to = last ? place(last) : 0;
  if (!last && lastWindow) to = byTime ? seconds(lastWindow.end) : lastWindow.last;
  const range = span === Infinity ? Infinity : byTime ? span : span * 30;
  let from = Math.max(to - range, state.frames.length ? place(state.frames[0]) : -Infinity);
  if (!last && lastWindow) from = Math.max(to - range, byTime ? seconds(windows[0].start) : windows[0].first);
  // A stream that has just begun grows from the left, and not from a chart one frame wide.
  if (to - from < (byTime ? 5 : 100)) to = from + (byTime ? 5 : 100);
  const frames = state.frames.map((frame) => ({ ...frame, place: place(frame) })).filter((frame) => frame.place >= from);
  const means = windows
    .map((w) => ({
      window: w,
      from: byTime ? seconds(w.start) : w.first,
      to: byTime ? seconds(w.end) : w.last + 1,
      mean: w["motion2.mean"],
    }))
    .filter((w) => w.mean !== undefined && w.to > from && w.from < to);
  return { timed: byTime, from, to, frames, means };
}

/** Joins points with lines; a gap in the frames' numbers stays one. */
function drawCurve(context, points) {
  context.beginPath();
  points.forEach((point, i) => {
    if (i === 0 || point.frame - points[i - 1].frame > 1) context.moveTo(point.x, point.y);
    else context.lineTo(point.x, point.y);
  });
  context.stroke();
}

function drawAxes(context, view, box, highest) {
  context.font = "11px system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  context.fillStyle = colour("--quiet");
  context.strokeStyle = colour("--grid");
  context.lineWidth = 1;
  const step = decimalStep(highest, Math.max(2, Math.floor(box.height / 40)));
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let n = 0; n * step <= highest * 1.000001; n++) {
    const at = Math.round(box.y(n * step)) + 0.5;
    context.beginPath();
    context.moveTo(box.left, at);
    context.lineTo(box.left + box.width, at);
    context.stroke();
    context.fillText(String(Number((n * step).toPrecision(6))), box.left - 7, at);
  }
  const most = Math.max(2, Math.floor(box.width / 95));
  const range = view.to - view.from;
  const along = view.timed ? timeStep(range, most) : Math.max(1, decimalStep(range, most));
  context.textAlign = "center";
  context.textBaseline = "top";
  for (let n = Math.ceil(view.from / along); n * along <= view.to; n++) {
    const at = Math.round(box.x(n * along)) + 0.5;
    context.beginPath();
    context.moveTo(at, box.top);
    context.lineTo(at, box.top + box.height);
    context.stroke();
    const text = view.timed ? clockText(n * along, along) : String(n * along);
    context.fillText(text, Math.min(at, box.left + box.width - 14), box.top + box.height + 6);
  }
}

function drawNothing(context, box) {
  context.font = "14px system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  context.fillStyle = colour("--quiet");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("no scores yet", box.left + box.width / 2, box.top + box.height / 2);
}

/**
 * Draws the chart and returns what was drawn: the view, the box, and per feature the points
 * `{frame, x, y, value}` in CSS pixels.
 */
function drawChart(canvas, state, { span, shown, plain = false }) {
  const prepared = prepare(canvas);
  if (!prepared) return null;
  const { context, width, height } = prepared;
  const view = inView(state, span);
  const margin = plain ? { left: 2, right: 2, top: 3, bottom: 3 } : MARGIN;
  const box = {
    left: margin.left,
    top: margin.top,
    width: width - margin.left - margin.right,
    height: height - margin.top - margin.bottom,
  };
  const features = FEATURES.filter((feature) => shown.has(feature));
  const tops = features.map((feature) => Math.max(0, ...view.frames.map((frame) => frame[feature])));
  if (shown.has("mean")) tops.push(...view.means.map(({ mean }) => mean));
  // A still picture has scores of 0; a scale needs some height.
  const highest = Math.max(...tops, 0.1) * 1.08;
  box.x = (place) => box.left + ((place - view.from) / (view.to - view.from)) * box.width;
  box.y = (value) => box.top + (1 - value / highest) * box.height;

  if (view.frames.length === 0 && view.means.length === 0) {
    if (!plain) drawNothing(context, box);
    return { view, box, drawn: {} };
  }
  if (!plain) drawAxes(context, view, box, highest);
  context.save();
  context.beginPath();
  context.rect(box.left, 0, box.width, height);
  context.clip();
  if (shown.has("mean") && !plain) {
    context.fillStyle = colour("--band");
    for (const { window, from, to } of view.means) {
      if (window.window % 2 === 1 && !window.submitted) context.fillRect(box.x(from), box.top, box.x(to) - box.x(from), box.height);
    }
  }
  const drawn = {};
  context.lineJoin = "round";
  for (const feature of features) {
    const points = view.frames.map((frame) => ({ frame: frame.frame, x: box.x(frame.place), y: box.y(frame[feature]), value: frame[feature] }));
    context.strokeStyle = colour(`--${feature}`);
    context.lineWidth = feature === "motion2" ? 1.8 : 1.1;
    drawCurve(context, points);
    drawn[feature] = points;
  }
  if (shown.has("mean")) {
    drawn.means = view.means.map(({ window, from, to, mean }) => ({ window: window.window, x: box.x(from), to: box.x(to), y: box.y(mean), value: mean }));
    for (const [lineWidth, style] of [[4.6, colour("--card")], [2.4, colour("--mean")]]) {
      if (plain && lineWidth > 4) continue;
      context.lineWidth = lineWidth;
      context.strokeStyle = style;
      context.beginPath();
      for (const { x, to, y } of drawn.means) {
        context.moveTo(x + 1, y);
        context.lineTo(Math.max(x + 2, to - 1), y);
      }
      context.stroke();
    }
  }
  context.restore();
  return { view, box, drawn };
}
