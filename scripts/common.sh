# Shared by the scripts beside it; sourced, not run.

# Results must not depend on the user's language.
export LC_ALL=C
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A heading, with the seconds since the script began; the step that it ends is kept for `print_seconds`.
steps=()
step="starting"
step_began=0
end_step() {
    steps+=("$(printf '%5d s  %s' "$((SECONDS - step_began))" "$step")")
    step_began=$SECONDS
}
say() {
    end_step
    step="$*"
    printf '\n== %4d s  %s\n' "$SECONDS" "$*"
}

# Where the seconds went, step by step, so that growth is seen.
print_seconds() {
    end_step
    printf '\nseconds of the steps, %d in all:\n' "$SECONDS"
    printf '%s\n' "${steps[@]}" | cut -c 1-150
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Without HOME, bash still knows the user's home folder.
if [ -z "${HOME:-}" ]; then
    HOME=~
    export HOME
fi

# rustup puts cargo where only interactive shells look.
if ! has cargo; then
    for folder in "${CARGO_HOME:-}/bin" "$HOME/.cargo/bin" /usr/local/cargo/bin; do
        if [ -x "$folder/cargo" ]; then
            export PATH="$folder:$PATH"
            break
        fi
    done
fi
has cargo || die "no cargo: install the Rust toolchain, 1.90 or later, from https://rustup.rs"

# Where HOME is not the one rustup was installed in, its toolchains lie beside its cargo.
if [ -z "${RUSTUP_HOME:-}" ] && [ ! -d "$HOME/.rustup" ]; then
    beside="$(dirname "$(dirname "$(dirname "$(command -v cargo)")")")/.rustup"
    if [ -d "$beside" ]; then
        export RUSTUP_HOME="$beside"
    fi
fi

# Cargo keeps what it downloads below the home folder; where it cannot, below target/.
if [ -z "${CARGO_HOME:-}" ] && [ ! -w "$HOME" ]; then
    export CARGO_HOME="$PWD/target/cargo-home"
    mkdir -p "$CARGO_HOME"
fi
