# shellcheck shell=bash
# SPDX-License-Identifier: MPL-2.0
#
# Makes this shell find the staged plugins and the tools: source ./pipelines/env.sh
#
# A registry of its own keeps what the user's registry remembers of broken plugins out.
# VMAFX_PROFILE=debug takes what tests/run.sh has built, in place of what quickstart.sh has.

vmafx_built=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
vmafx_built=${CARGO_TARGET_DIR:-$vmafx_built/target}/${VMAFX_PROFILE:-release}
if [[ -e $vmafx_built/stage/gstreamer-1.0/libgstvmafxmotion.so ]]; then
    unset GST_PLUGIN_PATH_1_0 GST_REGISTRY_1_0
    export GST_PLUGIN_PATH=$vmafx_built/stage/gstreamer-1.0${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}
    export GST_REGISTRY=$vmafx_built/gst-registry.bin PATH=$vmafx_built:$PATH
else
    printf 'nothing is built in %s yet: run ./pipelines/quickstart.sh first\n' "$vmafx_built" >&2
    # Sourced it must not end the shell.
    # shellcheck disable=SC2317
    return 3 2>/dev/null || exit 3
fi
unset vmafx_built
