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

Starts Debian's OBS (Xvfb, software GL, a home folder of its own) with the profile and the scene collection
vmafx-text of pipelines/obs, feeds it with pipelines/obs/stream.sh, records some seconds, and checks the recording:
its picture moves, its text changes, and text that nobody writes any more does not. The recording and a picture of
OBS are kept in FOLDER (target/release/obs).

  OBS_GSTREAMER=FILE  obs-gstreamer.so, the plugin that Debian does not have: then the same with the collections
                      vmafx-source (the pipeline runs inside OBS) and vmafx-filter (OBS's own source is scored), too

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
export HOME=$work/home XDG_RUNTIME_DIR=$work/run
score_text=$work/score.txt
export VMAFX_OBS_PORT=5004 VMAFX_LIVE_PORT=0
unset XDG_CONFIG_HOME WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
mkdir -p "$HOME/.config/obs-studio" "$XDG_RUNTIME_DIR"
collections=(vmafx-text)
if [[ -n ${OBS_GSTREAMER-} ]]; then
    [[ -f $OBS_GSTREAMER ]] || fail 2 "OBS_GSTREAMER: there is no $OBS_GSTREAMER"
    plugin=$HOME/.config/obs-studio/plugins/obs-gstreamer/bin/64bit
    mkdir -p "$plugin"
    cp -- "$OBS_GSTREAMER" "$plugin/obs-gstreamer.so"
    collections+=(vmafx-source vmafx-filter)
fi
chmod 700 "$XDG_RUNTIME_DIR"
printf '[General]\nFirstRun=true\nLicenseAccepted=true\nEnableAutoUpdates=false\nConfirmOnExit=false\n' >"$HOME/.config/obs-studio/global.ini"
# shellcheck disable=SC2154
VMAFX_SCORE_TEXT=$score_text "$vmafx_root/pipelines/obs/install.sh"
# Software GL draws every picture on the processor, which the stream's encoder and OBS's need, too.
sed -i 's/^FPSCommon=.*/FPSCommon=10/' "$HOME/.config/obs-studio/basic/profiles/vmafx/basic.ini"

mkfifo "$work/display"
Xvfb -displayfd 3 -screen 0 1360x960x24 -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
running+=($!)
read -r display <"$work/display"
export DISPLAY=:$display LIBGL_ALWAYS_SOFTWARE=1 QT_QPA_PLATFORM=xcb
# changes COLLECTION FROM SECONDS CROP: how many frames of this part of the recording differ from the one before, and
# how many there are. motion is the difference of two frames; what the encoder makes of a still picture is below
# the threshold.
changes() {
    ffmpeg -v error -y -ss "$2" -t "$3" -i "$folder/$1.mkv" -an -vf "crop=$4,format=yuv420p" \
        -c:v ffv1 "$work/part.mkv"
    gst-launch-1.0 -q filesrc location="$work/part.mkv" ! matroskademux ! avdec_ffv1 \
        ! vmafxmotion scores-path="$work/part.ndjson" messages=0 ! fakesink
    sed -n 's/^{"type":"frame".*"motion":\([^,]*\),.*/\1/p' "$work/part.ndjson" |
        awk '{ if ($1 > 0.05) changed++ } END { print changed + 0, NR }'
}

# start_stream TEXT: the script that feeds OBS; its process is in $stream.
start_stream() {
    VMAFX_SCORE_TEXT=$1 "$vmafx_root/pipelines/obs/stream.sh" >"$work/stream.log" 2>&1 &
    stream=$!
    running+=("$stream")
    for _ in {1..300}; do
        grep -q '^window' "$1" 2>/dev/null && return
        kill -0 "$stream" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/stream.log" >&2
    fail 1 "no scores after 30 s"
}

# record COLLECTION: what OBS makes of it, in $folder/COLLECTION.mkv; a stream that feeds it ends 16 s after OBS began.
record() {
    rm -f -- "$HOME"/*.mkv
    obs --multi --profile vmafx --collection "$1" --startrecording >"$folder/$1.log" 2>&1 &
    local obs=$! recording=
    running+=("$obs")
    for _ in {1..300}; do
        recording=$(find "$HOME" -maxdepth 1 -name '*.mkv' -size +0 -print -quit)
        [[ -z $recording ]] || break
        kill -0 "$obs" 2>/dev/null || break
        sleep 0.1
    done
    [[ -n $recording ]] || {
        tail -n 40 "$folder/$1.log" >&2
        fail 1 "OBS does not record"
    }
    say "OBS records"
    sleep 16
    ffmpeg -v error -y -f x11grab -video_size 1360x960 -i "$DISPLAY" -frames:v 1 "$folder/$1.png" ||
        fail 1 "no picture of the screen"
    if [[ -n $stream ]]; then
        # From here on the text stands still.
        kill -INT "$stream"
        wait "$stream" || fail 1 "the stream ended with status $?: $(tail -n 3 "$work/stream.log")"
        say "the stream has ended: $(cat "$score_text")"
        sleep 10
    fi
    kill -INT "$obs"
    for _ in {1..100}; do
        kill -0 "$obs" 2>/dev/null || break
        sleep 0.1
    done
    # Its own muxer ends the file where it hangs over its own windows.
    kill -KILL "$obs" 2>/dev/null || true
    wait "$obs" || true
    sleep 1
    mv -- "$recording" "$folder/$1.mkv"
}

for collection in "${collections[@]}"; do
    say "scene collection $collection"
    # OBS looks for the file when it starts.
    : >"$score_text"
    stream=
    case $collection in
        vmafx-text) start_stream "$score_text" ;;
        # The text is the filter's, not that of the script.
        vmafx-filter) start_stream "$work/stream.txt" ;;
    esac
    record "$collection"
    grep -q '^window' "$score_text" || fail 1 "there is no score text: see $folder/$collection.log"

    # The picture is 1280x720 at the top, the text in the 80 lines below it.
    read -r moved frames < <(changes "$collection" 4 10 1280:720:0:0)
    say "picture: $moved of $frames frames differ from the one before"
    read -r written lines < <(changes "$collection" 4 10 1280:80:0:720)
    say "text: $written changes in $lines frames"
    ((frames >= 60)) || fail 1 "10 seconds have $frames frames"
    # A machine that is busy draws fewer than it records.
    ((moved >= 20)) || fail 1 "the picture stands still"
    # One window a second; OBS looks at the file once a second, so that it may pass over one.
    ((written >= 5 && written <= 12)) || fail 1 "the text does not change once a second"
    if [[ -n $stream ]]; then
        length=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$folder/$collection.mkv")
        read -r late _ < <(changes "$collection" $((${length%.*} - 4)) 3 1280:80:0:720)
        say "text after the end of the stream: $late changes"
        ((late == 0)) || fail 1 "text changes that nobody writes: the measure is wrong"
    fi
done
say "recordings move and their text changes (${collections[*]}); see $folder"
