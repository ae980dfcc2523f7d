/* SPDX-License-Identifier: MPL-2.0
 *
 * Reads the scores of vmafxmotion in C, with nothing but GStreamer's own headers: from the meta of the
 * buffers that reach the element named "reader", and from the bus.
 *
 *     cc -o read-scores read-scores.c $(pkg-config --cflags --libs gstreamer-1.0)
 *     ./read-scores 'videotestsrc num-buffers=50 ! vmafxmotion ! x264enc ! fakesink name=reader'
 *
 * Prints a line a buffer and a line a message; %.17g keeps every bit of a double.
 */
#include <gst/gst.h>

#define META "VmafxMotionMeta"
#define U64 "%" G_GUINT64_FORMAT

static GstPadProbeReturn on_buffer(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  /* The name is known once a vmafxmotion was made in this process; to ask for an unknown one is an error. */
  GstCustomMeta *meta = gst_meta_get_info(META) ? gst_buffer_get_custom_meta(buffer, META) : NULL;
  GstStructure *scores = meta ? gst_custom_meta_get_structure(meta) : NULL;
  guint64 session, frame, first, last;
  gdouble motion, motion2, motion3;
  gboolean is_final;
  gchar *finals;

  (void)pad, (void)data;
  if (!scores || !gst_structure_get(scores, "session", G_TYPE_UINT64, &session, "frame", G_TYPE_UINT64, &frame,
          "motion", G_TYPE_DOUBLE, &motion, "final", G_TYPE_BOOLEAN, &is_final, NULL)) {
    g_print("buffer without scores\n");
    return GST_PAD_PROBE_OK;
  }
  /* The frames that became final with this buffer: none at the start of a session. */
  if (gst_structure_get(scores, "final-first", G_TYPE_UINT64, &first, "final-frame", G_TYPE_UINT64, &last,
          "motion2", G_TYPE_DOUBLE, &motion2, "motion3", G_TYPE_DOUBLE, &motion3, NULL))
    finals = g_strdup_printf(" final-first=" U64 " final-frame=" U64 " motion2=%.17g motion3=%.17g", first, last,
        motion2, motion3);
  else
    finals = g_strdup("");
  g_print("buffer session=" U64 " frame=" U64 " motion=%.17g%s final=%s\n", session, frame, motion, finals,
      is_final ? "true" : "false");
  g_free(finals);
  return GST_PAD_PROBE_OK;
}

static void on_message(const GstStructure *scores)
{
  guint64 session, frame, time, frames;
  gdouble motion, motion2, motion3, mean;

  if (gst_structure_has_name(scores, "vmafxmotion-frame")
      && gst_structure_get(scores, "session", G_TYPE_UINT64, &session, "frame", G_TYPE_UINT64, &frame, "timestamp",
          G_TYPE_UINT64, &time, "motion", G_TYPE_DOUBLE, &motion, "motion2", G_TYPE_DOUBLE, &motion2, "motion3",
          G_TYPE_DOUBLE, &motion3, NULL))
    /* The timestamp is GST_CLOCK_TIME_NONE where the frame has none. */
    g_print("message session=" U64 " frame=" U64 " timestamp=" U64 " motion=%.17g motion2=%.17g motion3=%.17g\n",
        session, frame, time, motion, motion2, motion3);
  else if (gst_structure_has_name(scores, "vmafxmotion-summary")
      && gst_structure_get(scores, "session", G_TYPE_UINT64, &session, "n-frames", G_TYPE_UINT64, &frames,
          "motion2.mean", G_TYPE_DOUBLE, &mean, NULL))
    g_print("summary session=" U64 " n-frames=" U64 " motion2.mean=%.17g\n", session, frames, mean);
}

int main(int argc, char **argv)
{
  GError *error = NULL;
  gst_init(&argc, &argv);
  if (argc != 2)
    return g_printerr("usage: %s 'PIPELINE with an element named reader'\n", argv[0]), 2;
  GstElement *pipeline = gst_parse_launch(argv[1], &error);
  if (error)
    return g_printerr("%s\n", error->message), 1;
  GstElement *reader = GST_IS_BIN(pipeline) ? gst_bin_get_by_name(GST_BIN(pipeline), "reader") : NULL;
  GstPad *pad = reader ? gst_element_get_static_pad(reader, "sink") : NULL;
  if (!pad)
    return g_printerr("the pipeline has no element named reader with a sink pad\n"), 1;
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_buffer, NULL, NULL);

  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message = NULL;
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  do {
    gst_clear_message(&message);
    message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
        GST_MESSAGE_ELEMENT | GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT)
      on_message(gst_message_get_structure(message));
  } while (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error(message, &error, NULL);
    g_printerr("%s: %s\n", GST_MESSAGE_SRC_NAME(message), error->message);
  }
  gst_message_unref(message);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pad), gst_object_unref(reader), gst_object_unref(bus), gst_object_unref(pipeline);
  return error ? 1 : 0;
}
