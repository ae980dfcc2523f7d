#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Puts the scene collections and the profile where OBS finds them: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/setup.sh"

usage() {
    cat <<'END'
usage: pipelines/obs/install.sh

Puts the scene collections vmafx-text, vmafx-browser, vmafx-source and vmafx-filter (the last two for the plugin
obs-gstreamer) and the profile vmafx into OBS's folder,
$XDG_CONFIG_HOME/obs-studio or ~/.config/obs-studio, in place of earlier ones of these names and of nothing
else. Close OBS before: it writes its files when it ends.

  VMAFX_SCORE_TEXT=FILE  the text that they show (score.txt in $XDG_RUNTIME_DIR, else in /tmp); made where it is missing

Exit status: 0 done, 1 the folder cannot be written, 2 wrong usage.
END
}

no_arguments "$@"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
target=${XDG_CONFIG_HOME:-$HOME/.config}/obs-studio/basic
score_text=${VMAFX_SCORE_TEXT:-${XDG_RUNTIME_DIR:-/tmp}/score.txt}

# in_json TEXT: inside a string of JSON, inside sed's replacement.
in_json() {
    printf '%s' "$1" | sed -e 's/[\\"]/\\&/g' -e 's/[\\&|]/\\&/g'
}

# fill FILE TARGET: the file with its places filled in.
fill() {
    local text word recordings
    text=$(in_json "$score_text")
    # As one word of gst-launch-1.0's language.
    word=$(in_json "\"$(printf '%s' "$score_text" | sed 's/[\\"]/\\&/g')\"")
    recordings=$(printf '%s' "$HOME" | sed 's/[\\&|]/\\&/g')
    sed -e "s|@SCORE_TEXT@|$text|" -e "s|@SCORE_TEXT_WORD@|$word|" -e "s|@RECORDINGS@|$recordings|" "$1" >"$2"
}

mkdir -p -- "$target/scenes" "$target/profiles/vmafx" || exit 1
for collection in vmafx-text vmafx-browser vmafx-source vmafx-filter; do
    fill "$here/$collection.json" "$target/scenes/$collection.json"
done
fill "$here/vmafx/basic.ini" "$target/profiles/vmafx/basic.ini"
# OBS asks for files that are missing when it starts, and then looks at them no more.
[[ -e $score_text ]] || : 2>/dev/null >"$score_text" || printf 'start the pipeline before OBS\n' >&2
printf 'score text: %s\nstart OBS with: obs --profile vmafx --collection vmafx-text\n' "$score_text"
