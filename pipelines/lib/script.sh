# shellcheck shell=bash
# SPDX-License-Identifier: MPL-2.0
#
# What the short scripts of pipelines/ share: reading their command line, building what they use, names of
# files that gst-launch-1.0 can take. Sourced after setup.sh by scripts that define usage().

# bad_usage MESSAGE...
bad_usage() {
    say "$*"
    usage >&2
    exit 2
}

# read_arguments LEAST MOST ARGUMENT...: sets `arguments`; -h and --help print the usage and end the script.
read_arguments() {
    local least=$1 most=$2 argument options=yes
    shift 2
    arguments=()
    for argument in "$@"; do
        case $options$argument in
            yes-h | yes--help)
                usage
                exit 0
                ;;
            yes--) options= ;;
            # A file may have such a name.
            yes-*) [[ -e $argument ]] || bad_usage "unknown option $argument"
                arguments+=("$argument") ;;
            *) arguments+=("$argument") ;;
        esac
    done
    ((${#arguments[@]} >= least)) || bad_usage "something is missing on the command line"
    ((${#arguments[@]} <= most)) || bad_usage "too much on the command line"
}

# check_file FILE: what is plain about it before anything is installed or built.
check_file() {
    [[ -e $1 ]] || fail 1 "$1: no such file"
    [[ ! -d $1 ]] || fail 1 "$1: is a folder, not a video"
    [[ -f $1 ]] || fail 1 "$1: is not a regular file"
    [[ -r $1 ]] || fail 1 "$1: may not be read"
    [[ -s $1 ]] || fail 1 "$1: is empty"
}

# check_number NAME VALUE LEAST MOST
check_number() {
    [[ $2 =~ ^[0-9]{1,9}$ ]] && ((10#$2 >= $3 && 10#$2 <= $4)) ||
        bad_usage "$1 is '$2', but must be a whole number from $3 to $4"
}

# prepare PURPOSE...: packages for them and the build, Rust, the plugins and the tools, and the folder of the
# results (results_dir).
prepare() {
    results_dir=${VMAFX_SCORES_DIR:-scores}
    mkdir -p -- "$results_dir" || fail 1 "cannot make the folder $results_dir for the results"
    results_dir=$(cd -- "$results_dir" && pwd)
    need_packages build runtimes "$@"
    need_rust
    choose_profile release
    # The same packages in one go as quickstart.sh: for others cargo would compile dependencies anew.
    build -p gst-plugin-vmafxmotion -p gst-plugin-vplretry -p vplsoft -p score-file -p vmafx-scores
    stage vmafxmotion vplretry vplsoft
    use_stage
    work_dir=$(mktemp -d)
    trap end_script EXIT
}

# What a script leaves behind on its way out: nothing that runs, nothing in the temporary folder.
background=()
end_script() {
    local process
    for process in "${background[@]}"; do
        kill "$process" 2>/dev/null || true
    done
    rm -rf -- "$work_dir"
}

# easy_name FILE: a name for FILE without a character that gst-launch-1.0 reads in its own way.
easy_name() {
    local end=${1##*.}
    [[ $end =~ ^[A-Za-z0-9]{1,8}$ ]] || end=video
    ln -sfn -- "$(realpath -- "$1")" "$work_dir/input.$end"
    printf '%s\n' "$work_dir/input.$end"
}

# launch ARGUMENT...: gst-launch-1.0 in the folder of the results.
launch() {
    (cd -- "$results_dir" && exec gst-launch-1.0 "$@")
}

# example_video: a real video with timestamps; part of a package that the build has fetched.
example_video() {
    printf '%s\n' "$(test_streams)/src/codec/vp9/test_data/test-25fps.vp9"
}

# The front of a pipeline that decodes the first video of a file in software.
decode() {
    printf '%s ' filesrc location="$1" ! decodebin force-sw-decoders=true expose-all-streams=false \
        "caps=video/x-raw(ANY)" ! videoconvert
}

# read_coded FILE: sets `coded`, the front of a pipeline that ends in FILE's coded video. The parser behind
# parsebin gives each decoder the form of stream that it takes.
read_coded() {
    local kind
    kind=$(launch -v filesrc location="$1" ! parsebin ! fakesink num-buffers=1 2>/dev/null |
        sed -n 's/.*fakesink0.GstPad:sink: caps = \([a-z0-9/-]*\).*/\1/p' | head -n 1) || true
    coded=(filesrc location="$1" ! parsebin)
    case $kind in
        video/x-h264) coded+=(! h264parse) ;;
        video/x-h265) coded+=(! h265parse) ;;
        video/x-vp9) coded+=(! vp9parse) ;;
        video/x-av1) coded+=(! av1parse) ;;
    esac
}

# prepare_nvdecring: builds and stages nvdecringdec, which no other script uses.
prepare_nvdecring() {
    [[ -e $vmafx_root/plugins/nvdecring/Cargo.toml ]] || return 0
    build -p gst-plugin-nvdecring
    stage nvdecring
}

# why_not DECODER: why this machine cannot run it, in one line; nothing where it can.
why_not() {
    local log=$work_dir/why
    if ! gst-inspect-1.0 "$1" >/dev/null 2>&1; then
        printf 'there is no element of that name\n'
    # Without data: libraries and devices are looked for on the way to READY.
    elif ! launch -q fakesrc num-buffers=0 ! "$1" ! fakesink >"$log" 2>&1; then
        sed -n 's/^ERROR: from element [^ ]*: //p; t; $s/.*/it does not start: &/p' "$log" | head -n 1
    fi
}
