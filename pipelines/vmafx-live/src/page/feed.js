// SPDX-License-Identifier: MPL-2.0
// The connection: keeps a copy of the server's state, and comes back by itself whatever happens to the server.

/** Milliseconds without a word after which the connection is given up: the server speaks every second. */
const SILENCE = 5000;
/** Milliseconds until the next try, and where the server refuses. */
const AGAIN = 1000;
const AGAIN_REFUSED = 5000;
/** The server keeps as many. */
const WINDOWS_KEPT = 900;
const NOTES_KEPT = 100;

/** A frame as it comes, `[frame, timestamp, motion, motion2, motion3]`, in names. */
function frameOf([frame, timestamp, motion, motion2, motion3]) {
  return { frame, timestamp, motion, motion2, motion3 };
}

/** Adds to `list` and forgets the oldest beyond `most`. */
function keep(list, more, most) {
  list.push(...more);
  if (list.length > most) list.splice(0, list.length - most);
}

/** A new state out of the first message of a connection. */
function everything(message) {
  return {
    ...message,
    frames: (message.frames ?? []).map(frameOf),
    windows: message.windows ?? [],
    notes: message.notes ?? [],
    decoders: message.decoders ?? [],
    session: message.session ?? null,
    origin: message.origin ?? null,
    video: message.video ?? null,
    failure: message.failure ?? null,
  };
}

/** Brings the state up to date with what is new. */
function merge(state, news) {
  if (news.session !== undefined) {
    state.session = news.session;
    state.origin = null;
    state.frames = [];
  }
  keep(state.frames, (news.frames ?? []).map(frameOf), state.history);
  keep(state.windows, news.windows ?? [], WINDOWS_KEPT);
  for (const note of news.notes ?? []) {
    const last = state.notes[state.notes.length - 1];
    if (last && last.number === note.number) state.notes.pop();
    keep(state.notes, [note], NOTES_KEPT);
  }
  for (const name of ["at", "phase", "origin", "video", "decoders", "health", "totals"]) {
    if (news[name] !== undefined) state[name] = news[name];
  }
  state.failure = news.failure ?? null;
}

/** Follows the server. `changed(state, connected)` is called whenever there is something to show. */
function follow(changed) {
  let state = null;
  let page = null;
  let source = null;
  let timer = null;
  let connected = false;

  function expect(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(connect, milliseconds);
  }

  function lose(again) {
    source.close();
    connected = false;
    changed(state, connected);
    expect(again);
  }

  function connect() {
    if (source) source.close();
    if (connected) {
      connected = false;
      changed(state, connected);
    }
    source = new EventSource("/events");
    // Also for a server that accepts and then says nothing.
    expect(SILENCE);
    source.addEventListener("everything", ({ data }) => {
      state = everything(JSON.parse(data));
      if (page !== null && page !== state.page) return location.reload();
      page = state.page;
      connected = true;
      expect(SILENCE);
      changed(state, connected);
    });
    source.addEventListener("news", ({ data }) => {
      merge(state, JSON.parse(data));
      expect(SILENCE);
      changed(state, connected);
    });
    source.onerror = () => lose(source.readyState === EventSource.CLOSED ? AGAIN_REFUSED : AGAIN);
  }

  connect();
}
