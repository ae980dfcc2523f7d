// SPDX-License-Identifier: MPL-2.0
// The series of the page as typed arrays, and where in them a place of the charts lies.

const FEATURES = ["motion", "motion2", "motion3"];
const NO_TIME = 0xffffffffffffffffn;

/** The bytes of a block: base64 of a raw DEFLATE stream. */
async function unpack(block) {
  const text = atob(block.textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

/** One session: its facts, its columns, its windows. */
class Session {
  constructor(facts, number) {
    this.facts = facts;
    this.number = number;
    this.shown = number < 8;
    this.count = facts.frames;
    this.frame = new BigUint64Array(this.count);
    this.time = new BigUint64Array(this.count);
    this.scores = FEATURES.map(() => new Float64Array(this.count));
    this.windows = [];
    this.filled = 0;
  }

  /** Takes rows of frame, timestamp and three scores, 64 bits each. */
  takeFrames(buffer) {
    const words = new BigUint64Array(buffer);
    const doubles = new Float64Array(buffer);
    for (let at = 0; at < words.length; at += 5, this.filled++) {
      this.frame[this.filled] = words[at];
      this.time[this.filled] = words[at + 1];
      for (let f = 0; f < 3; f++) this.scores[f][this.filled] = doubles[at + 2 + f];
    }
  }

  takeWindows(buffer) {
    this.windows.push(...JSON.parse(new TextDecoder().decode(buffer)));
  }

  /** Makes the horizontal places: seconds since the first frame, and frame numbers. */
  finish() {
    if (this.filled !== this.count) throw new Error(`${this.facts.file}: ${this.filled} of ${this.count} frames`);
    this.byFrame = Float64Array.from(this.frame, Number);
    this.byTime = null;
    if (this.facts.inTime && this.count > 1 && this.time[this.count - 1] > this.time[0]) {
      const start = this.time[0];
      this.byTime = Float64Array.from(this.time, (time) => Number(time - start) / 1e9);
    }
    this.cutSet = new Set(this.facts.cuts);
    this.byFirst = this.windows.every((w, i, all) => i === 0 || all[i - 1].first <= w.first)
      ? this.windows : [...this.windows].sort((a, b) => a.first - b.first);
  }

  /** The horizontal places by "time" or "frame". */
  places(mode) {
    return mode === "time" ? this.byTime : this.byFrame;
  }

  /** Place of a frame number, also of one that has no line: the next one's; behind the last one a step more. */
  placeOf(frame, mode) {
    const places = this.places(mode);
    const at = lowerBound(this.byFrame, frame);
    if (at < this.count) return places[at];
    const step = this.count > 1 ? places[this.count - 1] - places[this.count - 2] : 1;
    return places[this.count - 1] + step;
  }

  /** Index of the frame nearest to a place. */
  nearest(place, mode) {
    const places = this.places(mode);
    const at = lowerBound(places, place);
    if (at === 0) return 0;
    if (at === this.count) return this.count - 1;
    return place - places[at - 1] <= places[at] - place ? at - 1 : at;
  }

  /** Indices `[from, to)` of the frames in a range of places, with one neighbour on each side. */
  range(from, to, mode) {
    const places = this.places(mode);
    return [
      Math.max(0, lowerBound(places, from) - 1),
      Math.min(this.count, lowerBound(places, to) + 1),
    ];
  }

  timestamp(at) {
    return this.time[at] === NO_TIME ? null : this.time[at];
  }

  /** The windows that hold a frame. */
  windowsAt(frame) {
    return this.windows.filter((window) => window.first <= frame && frame <= window.last);
  }
}

/** First index whose value is not below `value`, in a sorted array. */
function lowerBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First index whose value is above `value`, in a sorted array. */
function upperBound(sorted, value) {
  const at = lowerBound(sorted, value);
  return at < sorted.length && sorted[at] === value ? upperBound(sorted.subarray(at + 1), value) + at + 1 : at;
}

/** All sessions of the page. `progress` is told how many blocks of how many are read. */
async function readSessions(report, progress) {
  const sessions = report.sessions.map((facts, number) => new Session(facts, number));
  const blocks = document.querySelectorAll("script.block");
  let done = 0;
  for (const block of blocks) {
    const session = sessions[Number(block.dataset.session)];
    const bytes = await unpack(block);
    if (block.dataset.kind === "frames") session.takeFrames(bytes);
    else session.takeWindows(bytes);
    // The text is not needed any more and may be large.
    block.remove();
    done += 1;
    progress(done, blocks.length);
  }
  sessions.forEach((session) => session.finish());
  return sessions;
}

/** Nanoseconds (BigInt or null) as h:mm:ss.mmm. */
function clock(nanoseconds) {
  if (nanoseconds === null) return "–";
  const ms = nanoseconds / 1000000n;
  const pad = (value, width) => String(value).padStart(width, "0");
  return `${ms / 3600000n}:${pad((ms / 60000n) % 60n, 2)}:${pad((ms / 1000n) % 60n, 2)}.${pad(ms % 1000n, 3)}`;
}

/** A double as it stands in the score file, whole numbers too. */
function exact(value) {
  if (value === null || value === undefined) return "–";
  const text = String(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}
