#!/usr/bin/env bash
# All checks a change has to pass: formatting, lints, documentation, licences, tests.
#
#   scripts/ci.sh
#
# The cheap checks come first, the tests last, so that the output ends with their numbers.
set -euo pipefail
exec </dev/null
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

skipped=()

run() {
    say "$*"
    "$@"
}

if cargo fmt --version >/dev/null 2>&1; then
    run cargo fmt --all --check
else
    skipped+=("cargo fmt: not installed; \`rustup component add rustfmt\`")
fi

if cargo clippy --version >/dev/null 2>&1; then
    run cargo clippy --workspace --all-targets --locked -- -D warnings

    # Each crate without features, and with each of them alone; those of the root package only pass on what
    # its crates have.
    for manifest in */Cargo.toml; do
        [ "$manifest" = fuzz/Cargo.toml ] && continue
        features="$(awk '/^\[/ { inside = $0 == "[features]" }
            inside && /^[A-Za-z0-9_-]+ *=/ { sub(/ *=.*/, ""); if ($0 != "default") print }' "$manifest")"
        [ -n "$features" ] || continue
        for feature in "" $features; do
            run cargo clippy --locked --manifest-path "$manifest" --no-default-features \
                --features "$feature" -- -D warnings
        done
    done
else
    skipped+=("cargo clippy: not installed; \`rustup component add clippy\`")
fi

RUSTDOCFLAGS="-D warnings" run cargo doc --workspace --no-deps --locked

if cargo deny --version >/dev/null 2>&1; then
    run cargo deny --locked check bans licenses sources
else
    skipped+=("cargo deny: not installed; \`cargo install cargo-deny --locked\`")
fi

if [ "${#skipped[@]}" -gt 0 ]; then
    say "checks that could not run"
    printf '  - %s\n' "${skipped[@]}"
fi

run scripts/test.sh
