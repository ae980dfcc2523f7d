#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Runs OBS without a screen on a scored stream and looks at what it records: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

usage() {
    cat <<'END'
usage: tests/obs/run.sh [FOLDER]

Starts Debian's OBS (Xvfb, software GL, a home folder of its own) with the profile and the scene collection of
pipelines/obs, feeds it with pipelines/obs/stream.sh, records some seconds, and checks the recording: its
picture moves, its text changes, and text that nobody writes any more does not. The recording and a picture of
OBS are kept in FOLDER (target/release/obs).

Exit status: 0 as it should be, 1 not, 2 wrong usage, 3 something is missing on this machine.
END
}

case ${1-} in
    -h | --help)
        usage
        exit 0
        ;;
esac
(($# <= 1)) || fail 2 "one folder, please"
need_packages build run encode obs
need_rust
choose_profile release
folder=${1:-$profile_dir/obs}
mkdir -p -- "$folder"
folder=$(cd -- "$folder" && pwd)
build -p gst-plugin-vmafxmotion -p vmafx-live
stage vmafxmotion
use_stage

work=$(mktemp -d)
running=()
end() {
    local process
    for process in "${running[@]}"; do
        kill "$process" 2>/dev/null || true
    done
    wait
    rm -rf -- "$work"
}
trap end EXIT

# Cargo and rustup have their folders in the user's home.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
# Nothing of the user's OBS, runtime folder or display has a say.
export HOME=$work/home XDG_RUNTIME_DIR=$work/run VMAFX_SCORE_TEXT=$work/score.txt
export VMAFX_OBS_PORT=5004 VMAFX_LIVE_PORT=0
unset XDG_CONFIG_HOME WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
mkdir -p "$HOME/.config/obs-studio" "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
printf '[General]\nFirstRun=true\nLicenseAccepted=true\nEnableAutoUpdates=false\nConfirmOnExit=false\n' >"$HOME/.config/obs-studio/global.ini"
"$vmafx_root/pipelines/obs/install.sh"
# Software GL draws every picture on the processor, which the stream's encoder and OBS's need, too.
sed -i 's/^FPSCommon=.*/FPSCommon=10/' "$HOME/.config/obs-studio/basic/profiles/vmafx/basic.ini"

"$vmafx_root/pipelines/obs/stream.sh" >"$work/stream.log" 2>&1 &
stream=$!
running+=("$stream")
for _ in {1..300}; do
    grep -q '^window' "$VMAFX_SCORE_TEXT" 2>/dev/null && break
    kill -0 "$stream" 2>/dev/null || break
    sleep 0.1
done
grep -q '^window' "$VMAFX_SCORE_TEXT" || {
    cat "$work/stream.log" >&2
    fail 1 "no scores after 30 s"
}

mkfifo "$work/display"
Xvfb -displayfd 3 -screen 0 1360x960x24 -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
running+=($!)
read -r display <"$work/display"
export DISPLAY=:$display LIBGL_ALWAYS_SOFTWARE=1 QT_QPA_PLATFORM=xcb
obs --multi --profile vmafx --collection vmafx-text --startrecording >"$work/obs.log" 2>&1 &
obs=$!
running+=("$obs")
recording=
for _ in {1..300}; do
    recording=$(find "$HOME" -maxdepth 1 -name '*.mkv' -size +0 -print -quit)
    [[ -z $recording ]] || break
    kill -0 "$obs" 2>/dev/null || break
    sleep 0.1
done
[[ -n $recording ]] || {
    tail -n 40 "$work/obs.log" >&2
    fail 1 "OBS does not record"
}
say "OBS records"
sleep 16
ffmpeg -v error -y -f x11grab -video_size 1360x960 -i "$DISPLAY" -frames:v 1 "$folder/obs.png" ||
    fail 1 "no picture of the screen"
# From here on the text stands still.
kill -INT "$stream"
wait "$stream" || fail 1 "the stream ended with status $?: $(tail -n 3 "$work/stream.log")"
say "the stream has ended: $(cat "$VMAFX_SCORE_TEXT")"
sleep 10
kill -INT "$obs"
for _ in {1..100}; do
    kill -0 "$obs" 2>/dev/null || break
    sleep 0.1
done
# Its own muxer ends the file where it hangs over its own windows.
kill -KILL "$obs" 2>/dev/null || true
wait "$obs" || true
sleep 1
cp -- "$recording" "$folder/recording.mkv"
cp -- "$work/obs.log" "$folder/obs.log"

# changes FROM SECONDS CROP: how many frames of this part of the recording differ from the one before, and how
# many there are. motion is the difference of two frames; what the encoder makes of a still picture is below
# the threshold.
changes() {
    ffmpeg -v error -y -ss "$1" -t "$2" -i "$folder/recording.mkv" -an -vf "crop=$3,format=yuv420p" \
        -c:v ffv1 "$work/part.mkv"
    gst-launch-1.0 -q filesrc location="$work/part.mkv" ! matroskademux ! avdec_ffv1 \
        ! vmafxmotion scores-path="$work/part.ndjson" messages=0 ! fakesink
    sed -n 's/^{"type":"frame".*"motion":\([^,]*\),.*/\1/p' "$work/part.ndjson" |
        awk '{ if ($1 > 0.05) changed++ } END { print changed + 0, NR }'
}

# The picture is 1280x720 at the top, the text in the 80 lines below it.
read -r moved frames < <(changes 4 10 1280:720:0:0)
say "picture: $moved of $frames frames differ from the one before"
read -r written lines < <(changes 4 10 1280:80:0:720)
say "text: $written changes in $lines frames"
length=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$folder/recording.mkv")
read -r late _ < <(changes $((${length%.*} - 4)) 3 1280:80:0:720)
say "text after the end of the stream: $late changes"
((frames >= 60)) || fail 1 "10 seconds have $frames frames"
# A machine that is busy draws fewer than it records.
((moved >= 20)) || fail 1 "the picture stands still"
# One window a second; OBS looks at the file once a second, so that it may pass over one.
((written >= 5 && written <= 12)) || fail 1 "the text does not change once a second"
((late == 0)) || fail 1 "text changes that nobody writes: the measure is wrong"
say "the recording moves and its text changes; see $folder"
