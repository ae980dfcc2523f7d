# shellcheck shell=bash
# SPDX-License-Identifier: MPL-2.0
#
# What every script needs before it can start: packages, a build, staged plugins, the environment.
# Sourced by bash scripts that run under `set -euo pipefail`. Functions leave the program with
# exit status 3 when the machine lacks something. All of it is cheap when nothing is to be done.
#
# Read from the environment:
#   VMAFX_PROFILE   cargo profile: release or debug
#   VMAFX_NO_APT    set: do not look at Debian's packages (for a GStreamer of your own)

# A search path for cd would answer for folders that are meant as they stand.
unset CDPATH
vmafx_root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

# Debian's packages by what they are for.
declare -rA packages=(
    [build]='gcc libc6-dev pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev'
    [run]='gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
        gstreamer1.0-plugins-bad gstreamer1.0-libav'
    # x264enc.
    [encode]='gstreamer1.0-plugins-ugly'
    # The Python readers; NVIDIA's headers; a client of the CUDA stand-in; a render node for qsv; a browser for
    # the pages of scores.
    [test]='gstreamer1.0-plugins-ugly python3-gst-1.0 gir1.2-gst-plugins-base-1.0 libffmpeg-nvenc-dev
        libvpl-dev libvpl2 onevpl-tools ffmpeg valgrind umockdev chromium chromium-driver'
    # The software runtimes: libavcodec and libdav1d, and what makes bindings of the former.
    [runtimes]='libavcodec-dev libavutil-dev libdav1d-dev libclang-dev'
    # Debian packages: what their dependencies are found and their debug information is taken out with, and
    # a chroot to try them in.
    [package]='dpkg-dev binutils'
    [chroot]='mmdebstrap'
    # OBS without a screen.
    [obs]='obs-studio xvfb fonts-dejavu-core ffmpeg'
)

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# fail STATUS MESSAGE...
fail() {
    local status=$1
    shift
    say "$*"
    exit "$status"
}

# no_arguments [ARGUMENT...]: for a script that takes none but -h or --help; `usage` prints how to call it.
no_arguments() {
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
}

# missing_packages PACKAGE...: those that are not installed, one a line.
missing_packages() {
    local installed package
    # dpkg-query fails where it does not know one of them, which is an answer here.
    # shellcheck disable=SC2016 # the format is dpkg-query's, not the shell's
    installed=$(dpkg-query -W -f='${db:Status-Status}:${Package}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        case $'\n'$installed$'\n' in
            *$'\n'installed:"$package"$'\n'*) ;;
            *) printf '%s\n' "$package" ;;
        esac
    done
}

# need_packages PURPOSE...: installs what is missing for build, run or test as root; else says how and stops.
need_packages() {
    local purpose
    local -a wanted=() missing apt install
    [[ -z ${VMAFX_NO_APT:-} ]] || return 0
    for purpose in "$@"; do
        read -r -d '' -a missing <<<"${packages[$purpose]}" || true
        wanted+=("${missing[@]}")
    done
    if ! command -v dpkg-query >/dev/null; then
        say "this is no Debian; what these packages hold must be there: ${wanted[*]}"
        return 0
    fi
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    ((${#missing[@]} > 0)) || return 0
    apt=(apt-get -o DPkg::Lock::Timeout=300)
    install=("${apt[@]}" install -y --no-install-recommends "${missing[@]}")
    if (($(id -u) != 0)); then
        say "these Debian packages are missing: ${missing[*]}"
        say "install them, then start again:"
        printf '    sudo %s update && sudo %s\n' "${apt[*]}" "${install[*]}" >&2
        exit 3
    fi
    say "these Debian packages are missing and will be installed: ${missing[*]}"
    say "running: ${apt[*]} update && ${install[*]}"
    DEBIAN_FRONTEND=noninteractive "${apt[@]}" update </dev/null >&2 ||
        fail 3 "apt-get update failed, see above"
    DEBIAN_FRONTEND=noninteractive "${install[@]}" </dev/null >&2 ||
        fail 3 "apt-get install failed, see above"
    # A registry written before an install may have filed the new plugins as broken.
    fresh_registry=yes
}

need_rust() {
    command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    command -v cargo >/dev/null ||
        fail 3 "cargo is missing: install Rust 1.92 or later, see https://rustup.rs"
}

# choose_profile DEFAULT: sets profile, profile_dir and stage_dir, and cargo_profile for cargo's command line.
choose_profile() {
    local target_dir
    profile=${VMAFX_PROFILE:-$1}
    case $profile in
        release) cargo_profile=(--release) ;;
        debug) cargo_profile=() ;;
        *) fail 2 "VMAFX_PROFILE is '$profile', but must be release or debug" ;;
    esac
    target_dir=$(in_root cargo metadata --no-deps --format-version 1 |
        sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
    [[ -n $target_dir ]] || fail 3 "cargo metadata does not name the target directory"
    profile_dir=$target_dir/$profile
    stage_dir=$profile_dir/stage
}

# in_root COMMAND...: runs it in the workspace's root, where cargo finds its files.
in_root() {
    (cd "$vmafx_root" && "$@")
}

# build CARGO_ARGUMENT...
build() {
    in_root cargo build --locked "${cargo_profile[@]}" "$@"
}

# put FILE TARGET: copies a built library and keeps its time, which tells a stale copy. GStreamer may
# scan the folder meanwhile, and another script may do the same: TARGET never is half a file, and the half
# file is no .so and this script's own.
put() {
    if [[ ! -e $2 || $1 -nt $2 || $1 -ot $2 ]]; then
        mkdir -p "${2%/*}"
        cp -p "$1" "$2.part.$$"
        mv -f "$2.part.$$" "$2"
    fi
}

# stage PLUGIN...: stages the built plugins of these folders of plugins/.
stage() {
    local plugin
    for plugin in "$@"; do
        if [[ $plugin == vplsoft ]]; then
            put "$profile_dir/libvplsoft.so" "$stage_dir/vplsoft/libvplsoft.so"
        else
            put "$profile_dir/libgst$plugin.so" "$stage_dir/gstreamer-1.0/libgst$plugin.so"
        fi
    done
}

# stage_all: stages every plugin and stand-in of the workspace, and nothing else: what an earlier
# state of the project left goes.
stage_all() {
    local manifest plugin library staged
    local -a plugins=()
    for manifest in "$vmafx_root"/plugins/*/Cargo.toml; do
        [[ -e $manifest ]] || continue
        plugin=${manifest%/Cargo.toml}
        plugins+=("${plugin##*/}")
    done
    for staged in "$stage_dir"/gstreamer-1.0/*; do
        plugin=${staged##*/libgst}
        case " ${plugins[*]} " in
            *" ${plugin%.so} "*) ;;
            # Another script is about to stage it.
            *" ${plugin%%.so.part.*} "*) ;;
            *) rm -f "$staged" ;;
        esac
    done
    mkdir -p "$stage_dir/gstreamer-1.0"
    stage "${plugins[@]}"
    for library in cuda nvcuvid; do
        [[ -e $profile_dir/libstandin_$library.so ]] || continue
        put "$profile_dir/libstandin_$library.so" "$stage_dir/standins/lib$library.so.1"
        # One file: under two names of their own the loader would make two libraries of it.
        ln -sfn "lib$library.so.1" "$stage_dir/standins/lib$library.so"
    done
}

# use_stage: the staged plugins before those of GST_PLUGIN_PATH, and a registry of their own, so that
# what the user's registry remembers of broken plugins has no say.
use_stage() {
    local others=${GST_PLUGIN_PATH_1_0:-${GST_PLUGIN_PATH:-}}
    # GStreamer prefers the names with the suffix.
    unset GST_PLUGIN_PATH_1_0 GST_REGISTRY_1_0
    export GST_PLUGIN_PATH=$stage_dir/gstreamer-1.0${others:+:$others}
    export GST_REGISTRY=$profile_dir/gst-registry.bin
    [[ -z ${fresh_registry:-} ]] || rm -f "$GST_REGISTRY"
}

# test_streams: the folder of the cros-codecs package, which carries real streams as test data.
test_streams() {
    local folder
    folder=$(in_root cargo metadata --locked --format-version 1 | tr ',' '\n' |
        sed -n 's/.*"manifest_path":"\(.*\/cros-codecs-0\.0\.6\)\/Cargo\.toml".*/\1/p')
    [[ -d $folder ]] || fail 3 "the test streams of the cros-codecs package cannot be found"
    printf '%s\n' "$folder"
}
