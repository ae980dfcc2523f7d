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

static GstPadProbeReturn
on_buffer (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  GstCustomMeta *meta;
  GstStructure *scores;
  guint64 session, frame, final_first, final_frame;
  gdouble motion, motion2, motion3;
  gboolean is_final;
  GString *line;

  (void) pad;
  (void) user_data;

  /* The name is known once a vmafxmotion was made in this process; to ask for an unknown one is an error. */
  meta = gst_meta_get_info (META) ? gst_buffer_get_custom_meta (buffer, META) : NULL;
  if (meta == NULL) {
    g_print ("buffer without scores\n");
    return GST_PAD_PROBE_OK;
  }

  scores = gst_custom_meta_get_structure (meta);
  if (!gst_structure_get (scores, "session", G_TYPE_UINT64, &session,
          "frame", G_TYPE_UINT64, &frame, "motion", G_TYPE_DOUBLE, &motion,
          "final", G_TYPE_BOOLEAN, &is_final, NULL)) {
    g_printerr ("a meta without the fields of every buffer\n");
    return GST_PAD_PROBE_OK;
  }
  line = g_string_new (NULL);
  g_string_printf (line, "buffer session=%" G_GUINT64_FORMAT " frame=%" G_GUINT64_FORMAT " motion=%.17g",
      session, frame, motion);
  /* The frames that became final with this buffer: none at the start of a session. */
  if (gst_structure_get (scores, "final-first", G_TYPE_UINT64, &final_first,
          "final-frame", G_TYPE_UINT64, &final_frame, "motion2", G_TYPE_DOUBLE, &motion2,
          "motion3", G_TYPE_DOUBLE, &motion3, NULL))
    g_string_append_printf (line, " final-first=%" G_GUINT64_FORMAT " final-frame=%" G_GUINT64_FORMAT
        " motion2=%.17g motion3=%.17g", final_first, final_frame, motion2, motion3);
  g_print ("%s final=%s\n", line->str, is_final ? "true" : "false");
  g_string_free (line, TRUE);
  return GST_PAD_PROBE_OK;
}

static void
on_message (const GstStructure * scores)
{
  guint64 session, frame, timestamp, frames;
  gdouble motion, motion2, motion3, mean;

  if (gst_structure_has_name (scores, "vmafxmotion-frame") &&
      gst_structure_get (scores, "session", G_TYPE_UINT64, &session, "frame", G_TYPE_UINT64, &frame,
          "timestamp", G_TYPE_UINT64, &timestamp, "motion", G_TYPE_DOUBLE, &motion,
          "motion2", G_TYPE_DOUBLE, &motion2, "motion3", G_TYPE_DOUBLE, &motion3, NULL)) {
    /* GST_CLOCK_TIME_NONE where the frame has no timestamp. */
    g_print ("message session=%" G_GUINT64_FORMAT " frame=%" G_GUINT64_FORMAT " timestamp=%" G_GUINT64_FORMAT
        " motion=%.17g motion2=%.17g motion3=%.17g\n", session, frame, timestamp, motion, motion2, motion3);
  } else if (gst_structure_has_name (scores, "vmafxmotion-summary") &&
      gst_structure_get (scores, "session", G_TYPE_UINT64, &session, "n-frames", G_TYPE_UINT64, &frames,
          "motion2.mean", G_TYPE_DOUBLE, &mean, NULL)) {
    g_print ("summary session=%" G_GUINT64_FORMAT " n-frames=%" G_GUINT64_FORMAT " motion2.mean=%.17g\n",
        session, frames, mean);
  }
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstElement *pipeline, *reader;
  GstPad *pad;
  GstBus *bus;
  gboolean running = TRUE;
  int status = 0;

  gst_init (&argc, &argv);
  if (argc != 2) {
    g_printerr ("usage: %s 'PIPELINE with an element named reader'\n", argv[0]);
    return 2;
  }
  pipeline = gst_parse_launch (argv[1], &error);
  if (error != NULL) {
    g_printerr ("%s\n", error->message);
    g_clear_error (&error);
    gst_clear_object (&pipeline);
    return 1;
  }
  reader = GST_IS_BIN (pipeline) ? gst_bin_get_by_name (GST_BIN (pipeline), "reader") : NULL;
  pad = reader ? gst_element_get_static_pad (reader, "sink") : NULL;
  if (pad == NULL) {
    g_printerr ("the pipeline has no element named reader with a sink pad\n");
    gst_clear_object (&reader);
    gst_object_unref (pipeline);
    return 1;
  }
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_buffer, NULL, NULL);
  gst_object_unref (pad);
  gst_object_unref (reader);

  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (running) {
    GstMessage *message = gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE,
        GST_MESSAGE_ELEMENT | GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

    switch (GST_MESSAGE_TYPE (message)) {
      case GST_MESSAGE_ELEMENT:
        on_message (gst_message_get_structure (message));
        break;
      case GST_MESSAGE_ERROR:
        gst_message_parse_error (message, &error, NULL);
        g_printerr ("%s: %s\n", GST_MESSAGE_SRC_NAME (message), error->message);
        g_clear_error (&error);
        status = 1;
        running = FALSE;
        break;
      default:
        running = FALSE;
        break;
    }
    gst_message_unref (message);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
  gst_deinit ();
  return status;
}
