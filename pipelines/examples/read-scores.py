#!/usr/bin/python3
# SPDX-License-Identifier: MPL-2.0
"""Reads the scores of vmafxmotion in Python: from the meta of the buffers that reach the element named
"reader", and from the bus. Debian: python3-gst-1.0, and the system's own python3.

    read-scores.py 'videotestsrc num-buffers=50 ! vmafxmotion ! x264enc ! fakesink name=reader'

Prints a line a buffer and a line a message; Python prints floats so that every bit is kept.
"""

import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst
except (ImportError, ValueError) as error:
    sys.exit(f"read-scores.py: {error}; Debian: apt install python3-gst-1.0, and run it with /usr/bin/python3")

META = "VmafxMotionMeta"


def show(kind, structure, names):
    values = ((name, structure.get_value(name)) for name in names if structure.has_field(name))
    line = " ".join([kind, *(f"{name}={str(value).lower()}" for name, value in values)])
    # In one piece: two threads print.
    sys.stdout.write(line + "\n")


def on_buffer(_pad, info):
    # The name is known once a vmafxmotion was made in this process; to ask for an unknown one is an error.
    meta = info.get_buffer().get_custom_meta(META) if Gst.Meta.get_info(META) else None
    if meta is None:
        sys.stdout.write("buffer without scores\n")
    else:
        # final-first to motion3 speak of the frames that became final with this buffer: none at the
        # start of a session.
        names = ("session", "frame", "motion", "final-first", "final-frame", "motion2", "motion3", "final")
        show("buffer", meta.get_structure(), names)
    return Gst.PadProbeReturn.OK


def on_message(structure):
    if structure.get_name() == "vmafxmotion-frame":
        # The timestamp is Gst.CLOCK_TIME_NONE where the frame has none.
        show("message", structure, ("session", "frame", "timestamp", "motion", "motion2", "motion3"))
    elif structure.get_name() == "vmafxmotion-summary":
        show("summary", structure, ("session", "n-frames", "motion2.mean"))


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} 'PIPELINE with an element named reader'")
    Gst.init(None)
    try:
        pipeline = Gst.parse_launch(sys.argv[1])
    except GLib.Error as error:
        sys.exit(error.message)
    reader = pipeline.get_by_name("reader") if isinstance(pipeline, Gst.Bin) else None
    pad = reader.get_static_pad("sink") if reader else None
    if pad is None:
        sys.exit("the pipeline has no element named reader with a sink pad")
    pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)

    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    wanted = Gst.MessageType.ELEMENT | Gst.MessageType.EOS | Gst.MessageType.ERROR
    failure = None
    while True:
        message = bus.timed_pop_filtered(Gst.CLOCK_TIME_NONE, wanted)
        if message.type == Gst.MessageType.ELEMENT:
            on_message(message.get_structure())
            continue
        if message.type == Gst.MessageType.ERROR:
            failure = f"{message.src.get_name()}: {message.parse_error()[0].message}"
        break
    pipeline.set_state(Gst.State.NULL)
    sys.exit(failure)


if __name__ == "__main__":
    main()
