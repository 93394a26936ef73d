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

    # Each crate that has features without them, and with each of them alone: round i has the i-th feature of
    # every crate. Only these crates, and no tests: what others depend on would turn features on. The root
    # package's features only pass on what its crates have.
    crates=()
    sets=("")
    for manifest in */Cargo.toml; do
        [ "$manifest" = fuzz/Cargo.toml ] && continue
        features="$(awk '/^\[/ { inside = $0 == "[features]" }
            inside && /^[A-Za-z0-9_-]+ *=/ { sub(/ *=.*/, ""); if ($0 != "default") print }' "$manifest")"
        [ -n "$features" ] || continue
        crate="$(awk -F'"' '/^name *=/ { print $2; exit }' "$manifest")"
        crates+=(--package "$crate")
        round=1
        for feature in $features; do
            sets[round]="${sets[round]:+${sets[round]},}$crate/$feature"
            round=$((round + 1))
        done
    done
    for features in "${sets[@]}"; do
        run cargo clippy "${crates[@]}" --locked --no-default-features --features "$features" -- -D warnings
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
