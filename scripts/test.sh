#!/usr/bin/env bash
# Sets up what the tests need and runs all of them that can run here.
#
#   scripts/test.sh          what a change has to pass
#   scripts/test.sh --all    the long forms as well, as a release has to: more seeds, larger games
#
# Needs the Rust toolchain and a C compiler (installed with apt-get where that is allowed). As root on
# Debian it also installs Podman, installs and starts a Docker engine where none answers
# (docker/start-engine.sh), and builds the tests' images from the machine's own files and Debian's packages; with Python and pip
# it builds the WebAssembly guests into the user's cache folder (scripts/build_guests.sh) and fetches a small
# language model there (scripts/get_smollm2.sh, 98 MB). All of that goes
# on while the tests are compiled. Running it again does no harm. At the end it says how many tests passed,
# which could not run and why, and where the seconds went.
# ALFWORLD_DATA, a folder with ALFWorld's games, adds the tests on the real games; SPAR_CODE_PROBLEMS, a file of
# HumanEval's or its kin's, those on its problems.
set -euo pipefail
exec </dev/null
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
"") ;;
--all) export SPAR_TEST_ALL=1 PROPTEST_CASES="${PROPTEST_CASES:-2000}" ;;
-h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
*) die "there is no option \`$1\`: use --all, or nothing" ;;
esac

work="$(mktemp -d)"
trap end_all EXIT
# Whatever still runs: `timeout` ends the commands that it watches over.
end_all() {
    jobs -p | xargs -r kill 2>/dev/null || true
    for bounded in "$work"/bounded.*; do kill "${bounded##*.}" 2>/dev/null || true; done
    cat "$work/others.log" "$work/engines.log" 2>/dev/null || true
    rm -rf "$work"
}
# SECONDS COMMAND...: no longer than that, and no longer than this script.
bounded() {
    timeout "$@" &
    local timeout=$! result=0
    : >"$work/bounded.$timeout"
    wait "$timeout" || result=$?
    rm -f "$work/bounded.$timeout"
    return "$result"
}
log="$work/log"
export cache="${XDG_CACHE_HOME:-$HOME/.cache}/spar"
status=0
tests_passed=true
skipped=()

# 1. The C compiler, for the parts of dependencies that are written in C.
may_install() { [ "$(id -u)" = 0 ] && has apt-get; }
install_packages() {
    apt-get -o DPkg::Lock::Timeout=120 update -q &&
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -qy --no-install-recommends "$@"
}
if ! has cc; then
    if may_install; then
        say "installing a C compiler"
        install_packages gcc libc6-dev
    else
        die "no C compiler (cc): install gcc or clang"
    fi
fi

# 2. What tests need beside that, set up while they are compiled. Each is a function; its last line, if it
# fails, is the reason why tests do not run.
set_up_docker() { docker/start-engine.sh && docker/build-images.sh; }
# Debian with git and Python: a minute of processor time, once.
set_up_base() { set_up_docker && docker/build-images.sh base; }
set_up_podman() {
    # The test starts a service of its own, with storage apart from what else there is.
    set_up_docker
    if ! has podman; then
        may_install || { echo "it is not installed" && return 1; }
        install_packages podman runc
    fi
    [ "$(id -u)" = 0 ] || { echo "only root can give its containers limits" && return 1; }
}
set_up_namespaces() { unshare --user --map-root-user --mount --pid --fork true; }
set_up_guests() { scripts/build_guests.sh; }
set_up_cxx() {
    has c++ && return
    may_install || { echo "no c++" && return 1; }
    install_packages g++
}
# A virtual environment NAME with a PACKAGE.
virtual_environment() {
    [ -x "$cache/venvs/$1/bin/pip" ] || python3 -m venv "$cache/venvs/$1"
    "$cache/venvs/$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}
set_up_openai() { virtual_environment openai openai; }
set_up_gymnasium() { virtual_environment gymnasium gymnasium; }
set_up_pytest() { virtual_environment pytest pytest; }
set_up_mini() { virtual_environment mini "mini-swe-agent==2.4.6"; }
set_up_ors() { virtual_environment ors ors-sdk; }
set_up_mcp() {
    has npm || { echo "no npm" && return 1; }
    scripts/get_mcp_servers.sh "$cache/mcp"
}
set_up_smollm2() {
    has python3 || { echo "no Python" && return 1; }
    scripts/get_smollm2.sh
}
set_up_scienceworld() { [ -n "${SPAR_SCIENCE_WORLD_PYTHON:-}" ] || { echo "SPAR_SCIENCE_WORLD_PYTHON is not set" && return 1; }; }
set_up_textarena() { [ -f "${SPAR_TEXTARENA_TRACES:-}" ] || { echo "it names no file" && return 1; }; }
# Minutes of a browser, whose pages time out on a loaded machine: for those who ask for it.
set_up_chromium() {
    [ -n "${SPAR_TEST_CHROMIUM:-}" ] || { echo "SPAR_TEST_CHROMIUM is not set" && return 1; }
    for program in "${SPAR_CHROMIUM:-chromium}" chromium google-chrome; do has "$program" && return; done
    may_install || { echo "no Chromium" && return 1; }
    install_packages chromium
}
set_up_nvrtc() { virtual_environment nvrtc "nvidia-cuda-nvrtc>=13,<14"; }
# Not installed here: the package holds code for every GPU, a third of a gigabyte. Read to its end: with
# `grep -q`, ldconfig would fail at a closed pipe.
set_up_nccl() { ldconfig -p 2>/dev/null | grep 'libnccl\.so' >/dev/null || { echo "it is not installed" && return 1; }; }
set_up_gpu() { nvidia-smi || { echo "no nvidia-smi that finds one" && return 1; }; }
set_up_alfworld() {
    [ -n "${ALFWORLD_DATA:-}" ] || { echo "it is not set" && return 1; }
    [ -d "$ALFWORLD_DATA" ] || { echo "\`$ALFWORLD_DATA\` is no folder" && return 1; }
}
set_up_problems() {
    [ -n "${SPAR_CODE_PROBLEMS:-}" ] || { echo "it is not set" && return 1; }
    [ -f "$SPAR_CODE_PROBLEMS" ] || { echo "\`$SPAR_CODE_PROBLEMS\` is no file" && return 1; }
}

# Reason in the tests' sources, set-up, words in the names of the tests.
needs() {
    cat <<'TABLE'
needs Docker|docker|docker
needs Docker and its image spar-base|base|docker_base
needs Podman|podman|podman
needs namespaces|namespaces|backends::local local_backend namespaces
needs the wasm guests|guests|backends::wasm wasm_backend wasm_guests
needs Python and PyPI|openai|openai_client
needs pytest|pytest|with_pytest
needs gymnasium from PyPI|gymnasium|gymnasium_is_played
needs mini-swe-agent from PyPI|mini|recordings_are_those_of_mini
needs MCP servers from npm and PyPI|mcp|reference_servers
needs the ORS server from PyPI|ors|ors_server_of_pypi
needs Chromium|chromium|chromium_
needs Java, and scienceworld from PyPI|scienceworld|science_world_is_played
needs recordings of TextArena, named by SPAR_TEXTARENA_TRACES|textarena|fresh_recordings_go_as_they_went
needs a C++ compiler|cxx|emulated
needs SmolLM2 from PyPI|smollm2|smollm2_
needs NVRTC from PyPI|nvrtc|nvrtc_
needs NCCL|nccl|nccl_tells
needs a GPU|gpu|cuda::tests::gpu_
needs ALFWorld's games in ALFWORLD_DATA|alfworld|alfworld_games
needs a file of problems in SPAR_CODE_PROBLEMS|problems|problems_of_a_published_file
TABLE
}
mkdir -p "$cache"
# apt-get, Docker and Podman one after the other, the rest beside them.
in_background() {
    for name in "$@"; do
        # A shell of its own, so that `set -e` holds in it and a deadline ends it.
        if bounded 1200 bash -euo pipefail -c "$(declare -f); set_up_$name" >"$work/$name.out" 2>&1; then
            : >"$work/$name.ready"
        else
            [ "$?" != 124 ] || echo "it was not set up within 20 minutes" >>"$work/$name.out"
        fi
        : >"$work/$name.tried"
    done
}
in_background guests openai gymnasium mini pytest mcp ors smollm2 nvrtc &

# 3. Tests that wait for an engine go beside all others, as soon as the engines are there and the tests are
# compiled, in runs of the same binaries of their own; what they print comes in the end. The whole workspace is
# named in each, for otherwise cargo would build dependencies anew with other features.
run() {
    say "$*"
    "$@" 2>&1 | tee -a "$log" || tests_passed=false
}
# Those that are ignored because they need something that is there: words in their names and, behind --, what leaves
# out those that need what is not.
ignored() { bounded 1500 cargo test --workspace --locked --no-fail-fast --lib --tests -- --ignored "$@"; }
# The words of what is there, of the needs in `$@`, and of what is not, of all.
find_words() {
    words=() without=() skipped=()
    while IFS='|' read -r reason name filters; do
        read -ra filters <<<"$filters"
        if [ -e "$work/$name.ready" ]; then
            [[ " $* " != *" $name "* ]] || words+=("${filters[@]}")
        else
            for filter in "${filters[@]}"; do without+=(--skip "$filter"); done
            skipped+=("$reason: $(grep -v '^$' "$work/$name.out" 2>/dev/null | tail -n 1 || true)")
        fi
    done < <(needs)
}
with_engines() {
    in_background docker podman base cxx chromium gpu nccl alfworld problems scienceworld textarena namespaces
    until [ -e "$work/compiled" ]; do sleep 1; done
    find_words docker podman base
    [ "${#words[@]}" = 0 ] ||
        ignored --test-threads 4 "${words[@]}" "${without[@]}" >"$work/engines.log" 2>&1
}
with_engines &
with_engines=$!

# So do those that need something else: they wait more than they compute.
others=(namespaces guests openai gymnasium mini pytest mcp ors smollm2 cxx chromium nvrtc nccl gpu alfworld problems scienceworld textarena)
tell_where() {
    [ ! -e "$work/openai.ready" ] || export SPAR_OPENAI_PYTHON="$cache/venvs/openai/bin/python"
    [ ! -e "$work/gymnasium.ready" ] || export SPAR_GYMNASIUM_PYTHON="$cache/venvs/gymnasium/bin/python"
    [ ! -e "$work/mini.ready" ] || export SPAR_MINI_PYTHON="$cache/venvs/mini/bin/python"
    [ ! -e "$work/pytest.ready" ] || export SPAR_PYTEST_PYTHON="$cache/venvs/pytest/bin/python"
    [ ! -e "$work/ors.ready" ] || export SPAR_ORS_SERVER="$cache/venvs/ors"
    [ ! -e "$work/mcp.ready" ] || export SPAR_MCP_SERVERS="$cache/mcp"
    if [ -e "$work/smollm2.ready" ]; then
        SPAR_SMOLLM2="$(tail -n 1 "$work/smollm2.out")"
        export SPAR_SMOLLM2
    fi
    if [ -e "$work/nvrtc.ready" ]; then
        nvrtc="$(dirname "$(find "$cache/venvs/nvrtc" -name 'libnvrtc.so.*' | head -n 1)")"
        export LD_LIBRARY_PATH="$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    fi
}
with_others() {
    for file in compiled "${others[@]/%/.tried}"; do
        until [ -e "$work/$file" ]; do sleep 1; done
    done
    tell_where
    find_words "${others[@]}"
    [ "${#words[@]}" = 0 ] ||
        ignored --test-threads 2 --skip docker --skip podman "${words[@]}" "${without[@]}" >"$work/others.log" 2>&1
}
with_others &
with_others=$!

say "compiling"
cargo test --workspace --locked --no-run --lib --bins --tests || status=1
: >"$work/compiled"

# 4. Unit tests, integration tests and doc tests; no examples, of which two dozen would be linked and none has tests: the lints
# compile them. What tests print is kept; a binary that is killed leaves no result, which is found in the end.
run cargo test --workspace --locked --no-fail-fast --lib --bins --tests
run cargo test --workspace --locked --no-fail-fast --doc

while IFS= read -r reason; do
    needs | cut -d'|' -f1 | grep -qxF "$reason" || die "tests are ignored with \`$reason\`, which this script does not know"
done < <(grep -rhoE --include='*.rs' --exclude-dir=target --exclude-dir=fuzz '#\[ignore = "[^"]*"\]' . |
    sed -E 's/^#\[ignore = "(.*)"\]$/\1/' | sort -u)

say "tests that need more than a compiler"
wait "$with_others" || tests_passed=false
wait "$with_engines" || tests_passed=false
for name in others engines; do
    if [ -e "$work/$name.log" ]; then
        tee -a "$log" <"$work/$name.log"
        rm "$work/$name.log"
    fi
done
tell_where
find_words "${others[@]}"

# 5. The sum of all `test result` lines; a binary that was started and has none has failed.
say "result"
awk '
    /^ *(Running|Doc-tests) / {
        if (open) lost[++num_lost] = open
        open = $0
        sub(/^ *(Running )?/, "", open)
    }
    /^test result:/ {
        passed += $4; failed += $6; ignored += $8; binaries += 1
        seconds = $0; sub(/.*finished in /, "", seconds); sub(/s.*/, "", seconds)
        name = open; sub(/ \(.*\/deps\//, " (", name)
        if (seconds + 0 >= 2) slow = slow sprintf("%8.1f s  %s\n", seconds, name)
        open = ""
    }
    END {
        if (open) lost[++num_lost] = open
        printf "seconds of the test binaries, those below 2 apart:\n%s", slow
        for (i = 1; i <= num_lost; i++) printf "no result, so it was killed or could not start: %s\n", lost[i]
        bad = failed > 0 || num_lost > 0 || passed == 0
        printf "test result: %s. %d passed; %d failed; %d ignored; in %d test binaries and doc tests%s\n",
            bad ? "FAILED" : "ok", passed, failed, ignored, binaries,
            num_lost ? sprintf("; %d without a result", num_lost) : ""
        exit num_lost > 0 || passed == 0
    }' "$log" || status=1
if [ "${#skipped[@]}" -gt 0 ]; then
    echo "could not run the tests marked as ignored because:"
    printf '  - %s\n' "${skipped[@]}"
fi

# 6. Of each test that failed what it said, whether up to five of them fail when they run alone, and in the end all their
# names: whoever is shown the last lines alone needs them. What passes alone has failed all the same.
if ! $tests_passed; then
    status=1
    awk '
        /^---- .* (stdout|stderr) ----$/ { left = 40 }
        /^failures:$/ || /^test result:/ { left = 0 }
        left > 0 { print; left -= 1 }' "$log"
    mapfile -t failed < <(sed -nE 's/^---- (.*) stdout ----$/\1/p' "$log" | sort -u)
    if [ "${#failed[@]}" -ge 1 ] && [ "${#failed[@]}" -le 5 ]; then
        say "failed tests once more, alone"
        bounded 1500 cargo test --workspace --locked --no-fail-fast --lib --bins --tests -- \
            --include-ignored --exact --test-threads 1 "${failed[@]}" 2>&1 |
            grep -E '^test .* \.\.\. |panicked at|^error' || true
    fi
    [ "${#failed[@]}" = 0 ] || printf 'failed: %s\n' "${failed[@]}"
fi
[ "$status" = 0 ] || echo "something above has failed"
print_seconds
exit "$status"
