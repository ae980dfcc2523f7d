pub fn register(_: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    Ok(())
}
