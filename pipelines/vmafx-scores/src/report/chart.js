// SPDX-License-Identifier: MPL-2.0
// Drawing: one panel a feature over one horizontal range, and an overview of everything.

const MARGIN = { left: 58, right: 14, top: 8, bottom: 22 };

/** A step of 1, 2 or 5 times a power of ten that gives at most `most` ticks. */
function decimalStep(range, most) {
  const rough = range / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999999);
}

/** The same for seconds, which go by sixties above one. */
function timeStep(range, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  if (range / most <= 1) return decimalStep(range, most);
  return steps.find((step) => step >= range / most) ?? 86400 * Math.ceil(range / most / 86400);
}

/** A place on the horizontal axis as text, as fine as the step between ticks. */
function placeText(place, mode, step) {
  if (mode === "frame") return String(Math.round(place * 1000) / 1000);
  const digits = step >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(step) - 1e-9));
  const rounded = Number(place.toFixed(digits));
  const seconds = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const minutes = Math.floor(rounded / 60);
  return minutes < 60 ? `${minutes}:${seconds}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds}`;
}

/** What a session draws in `width` columns: points where there are few, else each column's extremes. */
function trace(session, feature, view, width) {
  const places = session.places(view.mode);
  const values = session.scores[feature];
  const [from, to] = session.range(view.from, view.to, view.mode);
  const scale = width / (view.to - view.from);
  let highest = 0;
  if (to - from <= 2 * width) {
    const points = [];
    for (let i = from; i < to; i++) {
      const gap = i > from && session.byFrame[i] - session.byFrame[i - 1] > 1;
      points.push({ x: (places[i] - view.from) * scale, y: values[i], gap });
      if (values[i] > highest) highest = values[i];
    }
    return { points, highest };
  }
  const low = new Float64Array(width).fill(Infinity);
  const high = new Float64Array(width).fill(-Infinity);
  for (let i = from; i < to; i++) {
    const column = Math.min(width - 1, Math.max(0, Math.floor((places[i] - view.from) * scale)));
    const value = values[i];
    if (value < low[column]) low[column] = value;
    if (value > high[column]) high[column] = value;
    if (value > highest) highest = value;
  }
  return { low, high, highest };
}

/** A canvas that fits its element and the screen's pixels. */
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function sessionColour(session) {
  return colour(`--s${session.number % 8}`);
}

function drawTrace(context, drawn, y, stroke, dots = true) {
  context.strokeStyle = stroke;
  context.fillStyle = stroke;
  context.lineWidth = 1.3;
  context.lineJoin = "round";
  context.beginPath();
  if (drawn.points) {
    drawn.points.forEach(({ x, y: value, gap }, i) => (i === 0 || gap ? context.moveTo(x, y(value)) : context.lineTo(x, y(value))));
    context.stroke();
    if (dots && drawn.points.length < 120) {
      for (const { x, y: value } of drawn.points) {
        context.beginPath();
        context.arc(x, y(value), 2.4, 0, 7);
        context.fill();
      }
    }
    return;
  }
  let begun = false;
  for (let column = 0; column < drawn.low.length; column++) {
    if (drawn.low[column] > drawn.high[column]) continue;
    const x = column + 0.5;
    if (begun) context.lineTo(x, y(drawn.high[column]));
    else context.moveTo(x, y(drawn.high[column]));
    context.lineTo(x, y(drawn.low[column]));
    begun = true;
  }
  context.stroke();
}

/** The windows in view with their places; none where they are narrower than three pixels, which is left to zooming. */
function windowsInView(session, view, box) {
  const place = (frame) => ((session.placeOf(frame, view.mode) - view.from) / (view.to - view.from)) * box.width;
  const windows = session.byFirst
    .map((window) => ({ window, from: place(window.first), to: place(window.last + 1) }))
    .filter(({ from, to }) => to > 0 && from < box.width);
  return windows.length > box.width / 3 ? [] : windows;
}

/** Every other window of a cut stream on a band. */
function drawBands(context, windows, box) {
  context.fillStyle = colour("--band");
  for (const { window, from, to } of windows) {
    if (window.window % 2 === 1 && !window.submitted) context.fillRect(from, 0, to - from, box.height);
  }
}

/** The mean of each window, with a rim that sets it off from the curve. */
function drawMeans(context, windows, feature, y, stroke) {
  for (const [width, style] of [[4.5, colour("--card")], [2.2, stroke]]) {
    context.lineWidth = width;
    context.strokeStyle = style;
    context.beginPath();
    for (const { window, from, to } of windows) {
      const mean = window[`${FEATURES[feature]}.mean`];
      if (mean === undefined) continue;
      context.moveTo(from + 1, y(mean));
      context.lineTo(Math.max(from + 2, to - 1), y(mean));
    }
    context.stroke();
  }
}

function drawCuts(context, session, view, box) {
  const cuts = session.facts.cuts
    .map((frame) => ((session.placeOf(frame, view.mode) - view.from) / (view.to - view.from)) * box.width)
    .filter((x) => x >= 0 && x <= box.width);
  context.strokeStyle = context.fillStyle = colour("--cut");
  context.lineWidth = 1;
  if (cuts.length > box.width / 12) {
    // Too many to tell apart: short lines, which zooming turns into marks.
    context.globalAlpha = 0.5;
    cuts.forEach((x) => context.fillRect(x, 0, 1, 5));
    context.globalAlpha = 1;
    return;
  }
  for (const x of cuts) {
    context.setLineDash([3, 3]);
    context.globalAlpha = 0.55;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, box.height);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(x - 3.5, 0);
    context.lineTo(x + 3.5, 0);
    context.lineTo(x, 6);
    context.fill();
  }
}

function drawAxes(context, view, box, highest) {
  context.font = "11px system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  context.fillStyle = colour("--quiet");
  context.strokeStyle = colour("--grid");
  context.lineWidth = 1;
  const step = decimalStep(highest, Math.max(2, Math.floor(box.height / 32)));
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let n = 0; n * step <= highest; n++) {
    const at = Math.round(box.height * (1 - (n * step) / highest)) + 0.5;
    context.beginPath();
    context.moveTo(0, at);
    context.lineTo(box.width, at);
    context.stroke();
    context.fillText(String(Number((n * step).toPrecision(6))), -7, at);
  }
  const range = view.to - view.from;
  const most = Math.max(2, Math.floor(box.width / 95));
  const along = view.mode === "time" ? timeStep(range, most) : Math.max(1, decimalStep(range, most));
  context.textAlign = "center";
  context.textBaseline = "top";
  for (let n = Math.ceil(view.from / along); n * along <= view.to; n++) {
    const at = Math.round(((n * along - view.from) / range) * box.width) + 0.5;
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, box.height);
    context.stroke();
    context.fillText(placeText(n * along, view.mode, along), at, box.height + 6);
  }
}

/** Draws one feature's panel. */
function drawPanel(canvas, feature, view) {
  const { context, width, height } = prepare(canvas);
  const box = { width: Math.max(1, Math.floor(width - MARGIN.left - MARGIN.right)), height: height - MARGIN.top - MARGIN.bottom };
  context.translate(MARGIN.left, MARGIN.top);
  const shown = view.sessions.filter((session) => session.shown && session.count > 0);
  const traces = shown.map((session) => trace(session, feature, view, box.width));
  const highest = Math.max(...traces.map((drawn) => drawn.highest), 1e-3) * 1.06;
  const y = (value) => box.height * (1 - value / highest);
  drawAxes(context, view, box, highest);
  context.save();
  context.beginPath();
  context.rect(0, -MARGIN.top, box.width, box.height + MARGIN.top + 1);
  context.clip();
  const windows = shown.map((session) => (view.windows ? windowsInView(session, view, box) : []));
  if (shown.length === 1) drawBands(context, windows[0], box);
  traces.forEach((drawn, i) => drawTrace(context, drawn, y, sessionColour(shown[i])));
  windows.forEach((some, i) => drawMeans(context, some, feature, y, shown.length === 1 ? colour("--window") : sessionColour(shown[i])));
  if (view.cuts) shown.forEach((session) => drawCuts(context, session, view, box));
  context.restore();
}

/** Draws what moves with the pointer: cursor, selection, the pinned frame. */
function drawOverlay(canvas, view, marks) {
  const { context, width, height } = prepare(canvas);
  const inner = width - MARGIN.left - MARGIN.right;
  const x = (place) => MARGIN.left + ((place - view.from) / (view.to - view.from)) * inner;
  const line = (place, dash) => {
    if (place === null || place < view.from || place > view.to) return;
    context.strokeStyle = colour("--cursor");
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x(place), MARGIN.top);
    context.lineTo(x(place), height - MARGIN.bottom);
    context.stroke();
  };
  if (marks.selection) {
    const [from, to] = marks.selection.map((place) => Math.min(width - MARGIN.right, Math.max(MARGIN.left, x(place))));
    context.fillStyle = colour("--shade");
    context.fillRect(from, MARGIN.top, to - from, height - MARGIN.top - MARGIN.bottom);
  }
  line(marks.cursor, [2, 3]);
  line(marks.pinned, []);
}

/** Draws all of motion2, with the range that the panels show. */
function drawOverview(canvas, view) {
  const { context, width, height } = prepare(canvas);
  const whole = { ...view, from: view.all[0], to: view.all[1] };
  const inner = Math.max(1, Math.floor(width - MARGIN.left - MARGIN.right));
  context.translate(MARGIN.left, 2);
  const shown = view.sessions.filter((session) => session.shown && session.count > 0);
  const traces = shown.map((session) => trace(session, 1, whole, inner));
  const highest = Math.max(...traces.map((drawn) => drawn.highest), 1e-3);
  const y = (value) => (height - 4) * (1 - value / highest);
  context.globalAlpha = 0.6;
  traces.forEach((drawn, i) => drawTrace(context, drawn, y, sessionColour(shown[i]), false));
  context.globalAlpha = 1;
  const x = (place) => ((place - whole.from) / (whole.to - whole.from)) * inner;
  context.fillStyle = colour("--shade");
  context.fillRect(x(view.from), 0, Math.max(2, x(view.to) - x(view.from)), height - 4);
  context.strokeStyle = colour("--accent");
  context.strokeRect(x(view.from), 0, Math.max(2, x(view.to) - x(view.from)), height - 4);
}
