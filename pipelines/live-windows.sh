#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores a live source and prints windows as they become final: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: live-windows.sh [SECONDS]

Scores a live test picture of 30 frames a second for SECONDS (10; 1 to 3600) and prints the pooled scores of
every half second as soon as they are final, one frame after the window's last. The same lines are kept in
scores/live.ndjson with every frame; scores/live.txt holds the newest, for a text source in OBS.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 1 "$@"
seconds=${arguments[0]-10}
check_number SECONDS "$seconds" 1 3600
prepare run

launch -m videotestsrc is-live=true pattern=ball num-buffers=$((10#$seconds * 30)) \
    ! video/x-raw,format=I420,width=640,height=360,framerate=30/1 \
    ! vmafxmotion n-stats=0.5 messages=window scores-path=live.ndjson score-text-path=live.txt \
    ! fakesink sync=true |
    sed -n 's/.* window=(guint64)\([0-9]*\),.* first=(guint64)\([0-9]*\), last=(guint64)\([0-9]*\),.* motion2\.mean=(double)\([^,;]*\),.*/window \1: frames \2-\3, motion2 mean \4/p'
printf 'scores: %s\n' "$results_dir/live.ndjson"
