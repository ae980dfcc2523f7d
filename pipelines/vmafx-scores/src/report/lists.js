// SPDX-License-Identifier: MPL-2.0
// Tables: the sessions, the pinned frame, and the lists of frames, windows and scene cuts.

const ROWS = 25;

/** An element with text and children; text never is markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return element;
}

function row(tag, cells, numbers = []) {
  return make("tr", {}, ...cells.map((cell, i) => make(tag, numbers.includes(i) ? { class: "number" } : {}, cell)));
}

function swatch(session) {
  return make("span", { class: "swatch", style: `background: var(--s${session.number % 8})` });
}

/** Name of a session: that of its file, and its number where the file has several. */
function nameOf(session, sessions) {
  const several = sessions.filter((other) => other.facts.file === session.facts.file).length > 1;
  return several ? `${session.facts.file}, session ${session.facts.session}` : session.facts.file;
}

/** Four decimals, for tables that compare. */
function short(value) {
  return value === null || value === undefined ? "–" : value.toFixed(4);
}

function fillSessions(table, sessions, changed) {
  const head = ["Session", "Picture", "Frames", "Length", "Feature", "Min", "Mean", "Max", "Harmonic mean"];
  const numbers = [2, 3, 5, 6, 7, 8];
  const rows = sessions.flatMap((session) => {
    const facts = session.facts;
    const check = make("input", { type: "checkbox", checked: session.shown, onchange: (event) => {
      session.shown = event.target.checked;
      changed();
    } });
    const length = session.byTime ? clock(session.time[session.count - 1] - session.time[0]) : "–";
    const about = [
      make("label", {}, check, swatch(session), nameOf(session, sessions)),
      `${facts.width}×${facts.height} ${facts.format}, ${facts.depth} bit`,
      facts.frames,
      length,
    ];
    return FEATURES.map((feature, i) => {
      const pool = facts.pools[feature];
      const cells = i === 0 ? about : i === 1 ? ["", `${facts.extractor} motion`, "", ""] : ["", "", "", ""];
      return row("td", [...cells, feature, ...["min", "mean", "max", "harmonic-mean"].map((method) => short(pool[method]))], numbers);
    });
  });
  table.replaceChildren(make("thead", {}, row("th", head, numbers)), make("tbody", {}, ...rows));
}

function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** What a reader of the numbers should know. */
function notesOf(session, sessions) {
  const facts = session.facts;
  const notes = [];
  if (facts.options.length) notes.push(`options: ${facts.options.join(" ")}`);
  if (facts.frames === 0) notes.push("no frame was scored");
  if (facts.missing) notes.push(`${counted(facts.missing, "frame line")} missing: the writer could not keep up, or the file was edited`);
  if (facts.untimed && facts.untimed < facts.frames) notes.push(`${counted(facts.untimed, "frame")} without timestamp`);
  if (facts.frames && facts.untimed === 0 && !facts.inTime) notes.push("timestamps go back; shown by frame");
  if (facts.jumps === null) notes.push("no summary line: the session did not end properly");
  if (facts.jumps) notes.push(`${counted(facts.jumps, "discontinuity", "discontinuities")} in the stream; scores go on over them`);
  if (facts.windowsLeftOut) notes.push(`${facts.windowsLeftOut} of ${facts.windows} windows are not in this page; vmafx-scores csv --windows lists all`);
  if (facts.cutsFound > facts.cuts.length) notes.push(`${facts.cutsFound} likely scene cuts, of which the highest ${facts.cuts.length} are marked`);
  return notes.map((note) => (sessions.length > 1 ? `${nameOf(session, sessions)}: ${note}` : note));
}

/** The windows of a frame in words. */
function windowsText(session, frame) {
  return session.windowsAt(frame).slice(0, 2).map((window) => {
    const mean = window["motion2.mean"];
    return `${window.submitted ? "asked for " : ""}${window.window}: ${window.first}-${window.last}${mean === undefined ? "" : `, motion2 mean ${exact(mean)}`}`;
  }).join("; ");
}

/** What stands beside the pointer: the frame nearest to it in each session. */
function fillTip(tip, sessions, indices) {
  const blocks = sessions.flatMap((session, i) => {
    const at = indices[i];
    if (at < 0 || !session.shown) return [];
    const frame = Number(session.frame[at]);
    const lines = [
      make("div", {}, swatch(session), make("b", {}, nameOf(session, sessions))),
      make("div", {}, `frame ${session.frame[at]}, ${clock(session.timestamp(at))}`),
      make("table", {}, ...FEATURES.map((feature, f) => row("td", [feature, exact(session.scores[f][at])], [1]))),
    ];
    const windows = windowsText(session, frame);
    if (windows) lines.push(make("div", { class: "quiet" }, `window ${windows}`));
    if (session.cutSet.has(frame)) lines.push(make("div", { class: "cut" }, "likely a scene cut"));
    return [make("div", {}, ...lines)];
  });
  tip.replaceChildren(...blocks.slice(0, 6));
}

/** The exact values of one frame in every session that has it; `indices` gives its index or -1. */
function fillValues(table, sessions, indices) {
  const head = ["Session", "Frame", "Timestamp", ...FEATURES, "Window", ""];
  const rows = sessions.flatMap((session, i) => {
    const at = indices[i];
    if (at < 0 || !session.shown) return [];
    const frame = Number(session.frame[at]);
    return [row("td", [
      make("span", {}, swatch(session), nameOf(session, sessions)),
      session.frame[at],
      clock(session.timestamp(at)),
      ...session.scores.map((scores) => exact(scores[at])),
      windowsText(session, frame),
      session.cutSet.has(frame) ? "likely a scene cut" : "",
    ], [1, 2, 3, 4, 5])];
  });
  table.replaceChildren(make("thead", {}, row("th", head, [1, 2, 3, 4, 5])), make("tbody", {}, ...rows));
  return rows.length > 0;
}

/** The lists by name: their columns, which of them are numbers, the rows' number, and one row. */
const LISTS = {
  frames: {
    title: "Frames in view",
    head: ["Frame", "Timestamp", ...FEATURES],
    numbers: [0, 1, 2, 3, 4],
    rows(session, view) {
      const places = session.places(view.mode);
      const from = lowerBound(places, view.from);
      const to = upperBound(places, view.to);
      return { count: Math.max(0, to - from), at: (i) => {
        const at = from + i;
        return { frame: Number(session.frame[at]), cells: [session.frame[at], clock(session.timestamp(at)), ...session.scores.map((scores) => exact(scores[at]))] };
      } };
    },
  },
  windows: {
    title: "Windows",
    head: ["Window", "Frames", "Start", "End", "Scored", "motion2 mean", "motion2 min", "motion2 max", "motion3 mean", ""],
    numbers: [0, 1, 2, 3, 4, 5, 6, 7, 8],
    rows(session) {
      return { count: session.windows.length, at: (i) => {
        const window = session.windows[i];
        const time = (text) => clock(text === null || text === undefined ? null : BigInt(text));
        const value = (name) => exact(window[name]);
        const remarks = [window.submitted && "asked for", window.partial && "partial", window.reason].filter(Boolean);
        return { range: [window.first, window.last], cells: [window.window, `${window.first}-${window.last}`, time(window.start), time(window.end),
          window["n-scored"], value("motion2.mean"), value("motion2.min"), value("motion2.max"), value("motion3.mean"), remarks.join(", ")] };
      } };
    },
  },
  cuts: {
    title: "Scene cuts",
    head: ["Frame", "Timestamp", ...FEATURES],
    numbers: [0, 1, 2, 3, 4],
    rows(session) {
      const cuts = session.facts.cuts;
      return { count: cuts.length, at: (i) => {
        const at = lowerBound(session.byFrame, cuts[i]);
        return { frame: cuts[i], cells: [session.frame[at], clock(session.timestamp(at)), ...session.scores.map((scores) => exact(scores[at]))] };
      } };
    },
  },
};

/** Fills the list; gives the text that says which rows of how many are shown. */
function fillList(table, kind, session, view, first, chosen) {
  const list = LISTS[kind];
  const { count, at } = list.rows(session, view);
  const from = Math.min(Math.max(0, first), Math.max(0, Math.ceil(count / ROWS) - 1) * ROWS);
  const rows = [];
  for (let i = from; i < Math.min(count, from + ROWS); i++) {
    const { cells, ...place } = at(i);
    const element = row("td", cells, list.numbers);
    element.addEventListener("click", () => chosen(place));
    rows.push(element);
  }
  table.replaceChildren(make("thead", {}, row("th", list.head, list.numbers)), make("tbody", {}, ...rows));
  const place = count === 0 ? "none" : `${from + 1}–${from + rows.length} of ${count}`;
  return { from, count, place };
}
