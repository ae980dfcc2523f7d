// SPDX-License-Identifier: MPL-2.0
// The page: state, pointer, keys, and what the address's fragment asks for (#frame=30&theme=dark).

const $ = (id) => document.getElementById(id);

function show(report, sessions, asked) {
  const drawn = sessions.filter((session) => session.count > 0);
  const timed = drawn.length > 0 && drawn.every((session) => session.byTime);
  const view = { sessions, mode: "frame", from: 0, to: 1, all: [0, 1], windows: true, cuts: true };
  const marks = { cursor: null, selection: null, pinned: null };
  const list = { kind: "frames", session: drawn[0] ?? sessions[0], first: 0 };
  let pinnedFrame = null;

  const panels = FEATURES.map((feature) => makePanel(feature, 170));
  const overview = makePanel("", 44);
  $("charts").append(...panels.map((panel) => panel.element), overview.element);

  function makePanel(name, height) {
    const base = make("canvas");
    const overlay = make("canvas");
    const element = make("div", { class: "panel", style: `height: ${height}px` }, base, overlay);
    if (name) element.append(make("span", { class: "name" }, name));
    return { element, base, overlay };
  }

  function measure() {
    const places = drawn.map((session) => session.places(view.mode));
    const from = Math.min(...places.map((place) => place[0]));
    const to = Math.max(...places.map((place) => place[place.length - 1]));
    view.all = drawn.length === 0 ? [0, 1] : [from, to > from ? to : from + 1];
  }

  function setMode(mode) {
    const factor = view.mode === mode || drawn.length === 0 ? null : drawn[0];
    const frames = factor && [view.from, view.to].map((place) => factor.byFrame[factor.nearest(place, view.mode)]);
    const whole = view.from === view.all[0] && view.to === view.all[1];
    view.mode = mode;
    measure();
    if (whole || !frames || frames[0] === frames[1]) [view.from, view.to] = view.all;
    else [view.from, view.to] = frames.map((frame) => factor.placeOf(frame, mode));
    $("unit").textContent = mode === "time" ? "time" : "frames";
    $("by-time").setAttribute("aria-pressed", mode === "time");
    $("by-frame").setAttribute("aria-pressed", mode === "frame");
    pin(pinnedFrame);
    redraw();
  }

  function zoom(from, to) {
    const [first, last] = view.all;
    const step = (last - first) / Math.max(1, (drawn[0]?.count ?? 1) - 1);
    const width = Math.min(last - first, Math.max(to - from, 2 * step));
    const middle = (from + to) / 2;
    view.from = Math.min(Math.max(first, middle - width / 2), last - width);
    view.to = view.from + width;
    list.first = 0;
    redraw();
  }

  function zoomBy(factor, place = (view.from + view.to) / 2) {
    zoom(place - (place - view.from) * factor, place + (view.to - place) * factor);
  }

  /** Zooms to a frame or a range of frames and some around them. */
  function visit({ frame, range }) {
    const [first, last] = range ?? [frame - 25, frame + 25];
    zoom(list.session.placeOf(Math.max(0, first), view.mode), list.session.placeOf(last + (range ? 1 : 0), view.mode));
    if (frame !== undefined) pin(frame);
  }

  function pin(frame) {
    pinnedFrame = frame;
    const indices = sessions.map((session) => {
      const at = frame === null ? -1 : lowerBound(session.byFrame, frame);
      return at >= 0 && at < session.count && session.byFrame[at] === frame ? at : -1;
    });
    const some = fillValues($("pinned-table"), sessions, indices);
    $("pinned").hidden = !some;
    const holder = drawn.find((session) => indices[session.number] >= 0);
    marks.pinned = some && holder ? holder.placeOf(frame, view.mode) : null;
    overlays();
  }

  function overlays() {
    panels.forEach((panel) => drawOverlay(panel.overlay, view, marks));
  }

  let pending = false;
  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      panels.forEach((panel, feature) => drawPanel(panel.base, feature, view));
      drawOverview(overview.base, view);
      overlays();
      relist();
    });
  }

  function relist() {
    const { from, count, place } = fillList($("list"), list.kind, list.session, view, list.first, visit);
    list.first = from;
    $("list-place").textContent = place;
    $("list-back").disabled = from === 0;
    $("list-on").disabled = from + ROWS >= count;
    for (const tab of $("tabs").children) tab.setAttribute("aria-pressed", tab.dataset.kind === list.kind);
  }

  function placeAt(event) {
    const box = panels[0].overlay.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / Math.max(1, box.width - MARGIN.left - MARGIN.right);
    return { share, place: view.from + Math.min(1, Math.max(0, share)) * (view.to - view.from) };
  }

  function hover(event) {
    const { place } = placeAt(event);
    const shown = drawn.filter((session) => session.shown);
    if (shown.length === 0) return;
    const indices = sessions.map((session) => (session.count ? session.nearest(place, view.mode) : -1));
    marks.cursor = shown[0].places(view.mode)[indices[shown[0].number]];
    const tip = $("tip");
    fillTip(tip, sessions, indices);
    tip.hidden = false;
    const side = event.pageX + 24 + tip.offsetWidth > document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, side ? event.pageX - tip.offsetWidth - 16 : event.pageX + 16)}px`;
    tip.style.top = `${event.pageY + 18}px`;
    overlays();
  }

  function leave() {
    $("tip").hidden = true;
    marks.cursor = null;
    overlays();
  }

  let dragged = null;
  for (const { overlay } of panels) {
    overlay.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      overlay.setPointerCapture(event.pointerId);
      dragged = { x: event.clientX, place: placeAt(event).place };
    });
    overlay.addEventListener("pointermove", (event) => {
      if (dragged && Math.abs(event.clientX - dragged.x) > 4) {
        marks.selection = [dragged.place, placeAt(event).place].sort((a, b) => a - b);
      }
      hover(event);
    });
    overlay.addEventListener("pointerup", (event) => {
      const selection = marks.selection;
      marks.selection = null;
      if (selection) zoom(...selection);
      else if (dragged && drawn.length) {
        const session = drawn.find((s) => s.shown) ?? drawn[0];
        pin(session.byFrame[session.nearest(placeAt(event).place, view.mode)]);
      }
      dragged = null;
    });
    overlay.addEventListener("pointercancel", () => {
      dragged = marks.selection = null;
      leave();
    });
    overlay.addEventListener("pointerleave", leave);
    overlay.addEventListener("dblclick", () => zoom(...view.all));
    overlay.addEventListener("wheel", (event) => {
      // Without Ctrl the wheel scrolls the page, as everywhere.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? 1.25 : 0.8, placeAt(event).place);
    }, { passive: false });
  }

  const follow = (event) => {
    if (event.buttons === 0) return;
    const middle = view.all[0] + Math.min(1, Math.max(0, placeAt(event).share)) * (view.all[1] - view.all[0]);
    const half = (view.to - view.from) / 2;
    zoom(middle - half, middle + half);
  };
  overview.overlay.addEventListener("pointerdown", follow);
  overview.overlay.addEventListener("pointermove", follow);

  $("charts").addEventListener("keydown", (event) => {
    const quarter = (view.to - view.from) / 4;
    const action = {
      "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2), 0: () => zoom(...view.all),
      ArrowLeft: () => zoom(view.from - quarter, view.to - quarter),
      ArrowRight: () => zoom(view.from + quarter, view.to + quarter),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  $("zoom-in").onclick = () => zoomBy(0.5);
  $("zoom-out").onclick = () => zoomBy(2);
  $("zoom-all").onclick = () => zoom(...view.all);
  $("by-time").onclick = () => setMode("time");
  $("by-frame").onclick = () => setMode("frame");
  $("show-windows").onchange = (event) => { view.windows = event.target.checked; redraw(); };
  $("show-cuts").onchange = (event) => { view.cuts = event.target.checked; redraw(); };
  $("list-back").onclick = () => { list.first -= ROWS; relist(); };
  $("list-on").onclick = () => { list.first += ROWS; relist(); };
  $("tabs").append(...Object.entries(LISTS).map(([kind, { title }]) =>
    make("button", { type: "button", "data-kind": kind, onclick: () => { list.kind = kind; list.first = 0; relist(); } }, title)));
  $("list-session").append(...sessions.map((session) => make("option", { value: session.number }, nameOf(session, sessions))));
  $("list-session").hidden = sessions.length < 2;
  $("list-session").onchange = (event) => { list.session = sessions[event.target.value]; list.first = 0; relist(); };
  $("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  document.addEventListener("themechange", redraw);
  new ResizeObserver(redraw).observe($("charts"));

  fillSessions($("sessions"), sessions, () => { pin(pinnedFrame); redraw(); });
  $("notes").replaceChildren(...sessions.flatMap((session) => notesOf(session, sessions)).map((note) => make("li", {}, note)));
  $("by-time").disabled = !timed;
  if (!timed) $("by-time").title = "Not every session has a timestamp for each frame, in order";
  measure();
  [view.from, view.to] = view.all;
  if (LISTS[asked.get("list")]) list.kind = asked.get("list");
  setMode(timed && asked.get("axis") !== "frame" ? "time" : "frame");
  const number = (name) => (/^\d+$/.test(asked.get(name) ?? "") ? Number(asked.get(name)) : null);
  if (drawn.length && number("from") !== null && number("to") !== null) {
    visit({ range: [number("from"), number("to")] });
  }
  if (drawn.length && number("frame") !== null) pin(number("frame"));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  document.dispatchEvent(new Event("themechange"));
}

(async () => {
  const asked = new URLSearchParams(location.hash.slice(1));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(["dark", "light"].includes(asked.get("theme")) ? asked.get("theme") : dark ? "dark" : "light");
  try {
    const report = JSON.parse($("report").textContent);
    $("title").textContent = report.title;
    const frames = report.sessions.reduce((sum, session) => sum + session.frames, 0);
    $("subtitle").textContent = `VMAF motion: ${report.sessions.length === 1 ? "1 session" : `${report.sessions.length} sessions`}, ${frames} frames`;
    $("footer").textContent = `Written by vmafx-scores ${report.version}. Values are exact; curves show each pixel column's smallest and largest score.`;
    const sessions = await readSessions(report, (done, all) => { $("status").textContent = `Reading ${done} of ${all} ...`; });
    $("main").hidden = false;
    show(report, sessions, asked);
    $("status").hidden = true;
  } catch (error) {
    $("status").className = "notice";
    $("status").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  }
})();
