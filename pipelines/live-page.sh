#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# A live page of the scores of a stream, from nothing: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
    cat <<'END'
usage: live-page.sh [ARGUMENT...]

Builds vmafx-live and the plugins and starts it with the arguments; without arguments, on a live test picture.
The page is http://127.0.0.1:8086/ then, the overlay for OBS http://127.0.0.1:8086/?overlay=1, metrics for
Prometheus http://127.0.0.1:8086/metrics. Ctrl+C ends it. `live-page.sh --help` shows vmafx-live's own help below.

  VMAFX_PROFILE=debug   build without optimisation
  VMAFX_NO_APT=1        do not look at Debian's packages

Exit status: 0 the stream ended or was stopped, 1 it failed, 2 wrong usage, 3 something is missing.

END
}

if [[ ${1-} == -h || ${1-} == --help ]]; then
    usage
fi
need_packages build run
need_rust
choose_profile release
build -p gst-plugin-vmafxmotion -p vmafx-live
stage vmafxmotion
use_stage

if (($# == 0)); then
    set -- --launch 'videotestsrc is-live=true pattern=ball
        ! video/x-raw,format=I420,width=640,height=360,framerate=30/1
        ! vmafxmotion n-stats=1 ! fakesink sync=true'
fi
exec "$profile_dir/vmafx-live" "$@"
