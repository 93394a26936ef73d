#!/usr/bin/env bash
# All checks a change has to pass: formatting, lints, documentation, licences, tests.
#
#   scripts/ci.sh
#
# The cheap checks come first, the tests last, so that the output ends with their numbers. Everything is
# compiled in one target folder in the user's cache folder, so that the next run finds the dependencies
# there: by lock file, profiles, flags and compiler; folders of others that nobody used for two weeks are
# removed. With CARGO_TARGET_DIR set, that folder is taken as it is.
set -euo pipefail
exec </dev/null
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# What this workspace's own crates leave there is removed before the next run, so that nothing is gained by compiling
# them in parts, which takes longer; and nobody debugs here: a panic tells its place without line tables.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}" CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-false}"

skipped=()

run() {
    say "$*"
    "$@"
}

if [ -z "${CARGO_TARGET_DIR:-}" ]; then
    caches="${XDG_CACHE_HOME:-$HOME/.cache}/spar/ci"
    key="$({
        cat Cargo.lock
        sed -n '/^\[profile/,/^$/p' Cargo.toml
        rustc -vV
        cc --version 2>/dev/null || true
        env | grep -E '^(RUSTFLAGS|CARGO_BUILD|CARGO_PROFILE|CFLAGS)' | sort || true
    } | sha256sum | cut -c 1-16)"
    mkdir -p "$caches/$key"
    touch "$caches/$key"
    find "$caches" -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} +
    # Another run in the same folder would wait for it at every step: one of them takes a folder of its own.
    exec 8>"$caches/$key/.in-use"
    if has flock && ! flock -n 8; then
        say "another run uses $caches/$key: compiling in target/"
    else
        export CARGO_TARGET_DIR="$caches/$key"
        # Of the dependencies alone: a checkout whose files are older than what another one left there
        # would be taken for unchanged.
        run cargo clean --quiet --workspace --locked
    fi
fi

if cargo fmt --version >/dev/null 2>&1; then
    run cargo fmt --all --check
else
    skipped+=("cargo fmt: not installed; \`rustup component add rustfmt\`")
fi

if cargo clippy --version >/dev/null 2>&1; then
    run cargo clippy --workspace --all-targets --locked -- -D warnings

    # Each crate that has features without them, and with each of them alone: round i has the i-th feature of
    # every crate. Only these crates, and no tests: what others depend on would turn features on. The dependencies
    # are those that `cargo doc` checks (tests/it/architecture.rs). The root
    # package's features only pass on what its crates have. A feature whose comment ends in "needs PROGRAM" has a
    # round of its own, and is left out where there is no such program.
    crates=()
    sets=("")
    apart=()
    for manifest in */Cargo.toml; do
        # features/ has no code: its feature is what tests need of dependencies, which would be checked anew with it.
        [[ "$manifest" = f@(uzz|eatures)/Cargo.toml ]] && continue
        features="$(awk '/^\[/ { inside = $0 == "[features]" }
            /^#/ { needs = ""; if (match($0, / needs [^ ]+$/)) needs = ":" substr($0, RSTART + 7) }
            inside && /^[A-Za-z0-9_-]+ *=/ { sub(/ *=.*/, ""); if ($0 != "default") print $0 needs; needs = "" }' "$manifest")"
        [ -n "$features" ] || continue
        crate="$(awk -F'"' '/^name *=/ { print $2; exit }' "$manifest")"
        crates+=(--package "$crate")
        round=1
        for feature in $features; do
            program="${feature#*:}" feature="${feature%%:*}"
            if [ "$program" != "$feature" ]; then
                if has "$program"; then
                    apart+=("$crate/$feature")
                else
                    skipped+=("feature \`$feature\` of $crate: no $program")
                fi
                continue
            fi
            sets[round]="${sets[round]:+${sets[round]},}$crate/$feature"
            round=$((round + 1))
        done
    done
    for features in "${sets[@]}" ${apart[@]+"${apart[@]}"}; do
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

# Without the lock, which what it starts for good (an engine) would keep.
say "scripts/test.sh"
scripts/test.sh 8>&- || status=$?
print_seconds
exit "${status:-0}"
