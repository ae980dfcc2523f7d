#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Puts the scene collections and the profile where OBS finds them: see usage below.
set -euo pipefail

usage() {
    cat <<'END'
usage: pipelines/obs/install.sh

Puts the scene collections vmafx-text and vmafx-browser and the profile vmafx into OBS's folder,
$XDG_CONFIG_HOME/obs-studio or ~/.config/obs-studio, in place of earlier ones of these names and of nothing
else. Close OBS before: it writes its files when it ends.

  VMAFX_SCORE_TEXT=FILE  the text that vmafx-text shows (score.txt in $XDG_RUNTIME_DIR, else in /tmp)

Exit status: 0 done, 1 the folder cannot be written, 2 wrong usage.
END
}

case ${1-} in
    '') ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
target=${XDG_CONFIG_HOME:-$HOME/.config}/obs-studio/basic
score_text=${VMAFX_SCORE_TEXT:-${XDG_RUNTIME_DIR:-/tmp}/score.txt}

# fill FILE TARGET: the file with its places filled in. A path is text of JSON, then of sed's replacement.
fill() {
    local text recordings
    text=$(printf '%s' "$score_text" | sed -e 's/[\\"]/\\&/g' -e 's/[\\&|]/\\&/g')
    recordings=$(printf '%s' "$HOME" | sed 's/[\\&|]/\\&/g')
    sed -e "s|@SCORE_TEXT@|$text|" -e "s|@RECORDINGS@|$recordings|" "$1" >"$2"
}

mkdir -p -- "$target/scenes" "$target/profiles/vmafx" || exit 1
for collection in vmafx-text vmafx-browser; do
    fill "$here/$collection.json" "$target/scenes/$collection.json"
done
fill "$here/vmafx/basic.ini" "$target/profiles/vmafx/basic.ini"
printf 'score text: %s\nstart OBS with: obs --profile vmafx --collection vmafx-text\n' "$score_text"
