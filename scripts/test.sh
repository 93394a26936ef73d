#!/usr/bin/env bash
# Sets up what the tests need and runs all of them that can run here.
#
#   scripts/test.sh
#
# Needs the Rust toolchain and a C compiler (installed with apt-get where that is allowed). As root on
# Debian it also installs Podman, installs and starts a Docker engine where none answers
# (docker/start-engine.sh), and builds the tests' images from the machine's own files; with Python and pip
# it builds the WebAssembly guests into the user's cache folder (scripts/build_guests.sh). Running it again
# does no harm. At the end it says how many tests passed, and which could not run and why.
# ALFWORLD_DATA, a folder with ALFWorld's games, adds the tests on the real games.
set -euo pipefail
exec </dev/null
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

log="$(mktemp)"
trap 'rm -f "$log" "$log.setup"' EXIT
skipped=()

# 1. The C compiler, for the parts of dependencies that are written in C.
if ! has cc; then
    if [ "$(id -u)" = 0 ] && has apt-get; then
        say "installing a C compiler"
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy gcc libc6-dev
    else
        die "no C compiler (cc): install gcc or clang"
    fi
fi

status=0
run() {
    say "$*"
    "$@" 2>&1 | tee -a "$log" || status=1
}

# 2. Unit tests, integration tests, examples and doc tests.
run cargo test --workspace --locked --no-fail-fast

# 3. Tests that are ignored because they need something, which is set up here where that is possible.
# Those whose names hold one of the words. The whole workspace is named, for otherwise cargo would build
# the dependencies anew with other features.
run_ignored() {
    run cargo test --workspace --locked --no-fail-fast --lib --test it -- --ignored "$@"
}

# The last line of what a command wrote, if it failed.
why=""
set_up() {
    say "$*"
    if "$@" >"$log.setup" 2>&1; then
        return 0
    fi
    tail -n 20 "$log.setup"
    why="\`$*\` failed: $(tail -n 1 "$log.setup")"
    return 1
}

# The test starts a service of its own, with storage apart from what else there is.
need_podman() {
    if ! has podman; then
        if [ "$(id -u)" != 0 ] || ! has apt-get; then
            echo "it is not installed"
            return 1
        fi
        apt-get -o DPkg::Lock::Timeout=120 update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -qy \
                --no-install-recommends podman runc || return 1
    fi
    if [ "$(id -u)" != 0 ]; then
        echo "only root can give its containers limits"
        return 1
    fi
}

needs_data="needs ALFWorld's games in ALFWORLD_DATA"
while IFS= read -r reason; do
    case "$reason" in
    "$needs_data")
        if [ -d "${ALFWORLD_DATA:-}" ]; then
            run cargo test --locked -p spar-envs --test alfworld_games -- --ignored
        elif [ -n "${ALFWORLD_DATA:-}" ]; then
            skipped+=("$reason: \`$ALFWORLD_DATA\` is no folder")
        else
            skipped+=("$reason: it is not set")
        fi
        ;;
    "needs Docker")
        if set_up docker/start-engine.sh && set_up docker/build-images.sh; then
            run_ignored docker --skip podman
        else
            skipped+=("$reason: $why")
        fi
        ;;
    "needs Podman")
        if set_up docker/start-engine.sh && set_up docker/build-images.sh && set_up need_podman; then
            run_ignored podman
        else
            skipped+=("$reason: $why")
        fi
        ;;
    "needs namespaces")
        if set_up unshare --user --map-root-user --mount --pid --fork true; then
            run_ignored backends::local local_backend namespaces
        else
            skipped+=("$reason: $why")
        fi
        ;;
    "needs Python and PyPI")
        venv="$PWD/target/openai-client"
        if set_up python3 -m venv "$venv" && set_up "$venv/bin/pip" install -q openai; then
            export SPAR_OPENAI_PYTHON="$venv/bin/python"
            run_ignored openai_client
        else
            skipped+=("$reason: $why")
        fi
        ;;
    "needs a C++ compiler")
        # The kernels for GPUs, run by the host.
        if has c++ || { [ "$(id -u)" = 0 ] && has apt-get && set_up apt-get install -qy g++; }; then
            run_ignored emulated
        else
            skipped+=("$reason: no c++")
        fi
        ;;
    "needs NVRTC from PyPI")
        # Compiles the kernels for GPUs where there is none.
        venv="$PWD/target/nvrtc"
        if set_up python3 -m venv "$venv" && set_up "$venv/bin/pip" install -q "nvidia-cuda-nvrtc>=13,<14"; then
            nvrtc="$(dirname "$(find "$venv" -name 'libnvrtc.so.*' | head -n 1)")"
            LD_LIBRARY_PATH="$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" run_ignored nvrtc_
        else
            skipped+=("$reason: $why")
        fi
        ;;
    "needs NCCL")
        # Not set up here: the package holds code for every GPU, a third of a gigabyte.
        # Read to its end: with `grep -q`, ldconfig would fail at a closed pipe.
        if ldconfig -p 2>/dev/null | grep 'libnccl\.so' >/dev/null; then
            run_ignored nccl_tells
        else
            skipped+=("$reason: it is not installed")
        fi
        ;;
    "needs a GPU")
        if has nvidia-smi && set_up nvidia-smi; then
            run_ignored cuda::tests::gpu_
        else
            skipped+=("$reason: no nvidia-smi that finds one")
        fi
        ;;
    "needs the wasm guests")
        if set_up scripts/build_guests.sh; then
            run_ignored backends::wasm wasm_backend wasm_guests
        else
            skipped+=("$reason: $why")
        fi
        ;;
    *) skipped+=("$reason: this script does not know how to set that up") ;;
    esac
done < <(grep -rhoE --include='*.rs' '#\[ignore = "[^"]*"\]' \
    src core sandbox tasks envs agent policy serve trainer tests examples 2>/dev/null |
    sed -E 's/^#\[ignore = "(.*)"\]$/\1/' | sort -u)

# 4. The sum of all `test result` lines.
say "result"
awk '
    /^test result:/ { passed += $4; failed += $6; ignored += $8; binaries += 1 }
    END {
        printf "test result: %s. %d passed; %d failed; %d ignored; in %d test binaries and doc tests\n",
            failed ? "FAILED" : "ok", passed, failed, ignored, binaries
        exit failed > 0 || passed == 0
    }' "$log" || status=1
if [ "${#skipped[@]}" -gt 0 ]; then
    echo "could not run the tests marked as ignored because:"
    printf '  - %s\n' "${skipped[@]}"
fi
exit "$status"
