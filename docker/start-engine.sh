#!/usr/bin/env bash
# Makes sure that a container engine answers. Where one does, nothing is done. Where none does and
# this is root on Debian or Ubuntu, Docker Engine is installed from the distribution's packages and
# started without a service manager. Otherwise says what to do and exits with 1.
#
#   docker/start-engine.sh
#   ENGINE_WAIT=120 docker/start-engine.sh    # seconds that it may take to start; default 60
#
# An engine that DOCKER_HOST names is asked, never started.
set -euo pipefail

wait_secs="${ENGINE_WAIT:-60}"
socket=/var/run/docker.sock

say() { printf 'start-engine: %s\n' "$*" >&2; }

# Prints the version of the engine that answers.
engine_version() {
    if command -v docker >/dev/null 2>&1; then
        timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null
    elif [ -z "${DOCKER_HOST:-}" ] && command -v curl >/dev/null 2>&1; then
        curl -fsS -m 10 --unix-socket "$socket" http://localhost/version 2>/dev/null |
            sed -n 's/.*"Version":"\([^"]*\)".*/\1/p' | head -n 1 | grep .
    else
        return 1
    fi
}

# Whether the process that the file names runs this program. A dead one that nobody waited for
# still has its number and its name, but no program.
runs() {
    local pid
    pid="$(cat "$2" 2>/dev/null || true)"
    [ -n "$pid" ] && [[ "$(readlink "/proc/$pid/exe" 2>/dev/null || true)" = */"$1"* ]]
}

give_up() {
    say "$1"
    say "to do: $2"
    exit 1
}

if version="$(engine_version)"; then
    say "engine $version answers"
    exit 0
fi

[ -z "${DOCKER_HOST:-}" ] ||
    give_up "nothing answers at DOCKER_HOST=$DOCKER_HOST" "start that engine, or unset DOCKER_HOST"
[ "$(uname -s)" = Linux ] ||
    give_up "no engine answers" "install and start Docker Desktop, Colima or Podman"
[ "$(id -u)" = 0 ] ||
    give_up "no engine answers, and only root can start one" \
        "run this script as root, or start one of your own (\`systemctl start docker\`, or rootless
              Podman: \`systemctl --user start podman.socket\` and DOCKER_HOST=unix://\$XDG_RUNTIME_DIR/podman/podman.sock)"

if ! command -v dockerd >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 ||
        give_up "there is no dockerd, and this is no Debian" "install Docker Engine: https://docs.docker.com/engine/install"
    say "installing docker.io and runc"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || say "the package lists could not be refreshed; going on with the old ones"
    # runc: crun refuses machines whose control groups are mounted in both versions ("hybrid").
    # iptables is for the bridge.
    apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends docker.io runc iptables >/dev/null ||
        give_up "the packages cannot be installed" "see apt-get's message above"
fi

# The service manager's own daemon first, where there is one.
if [ -d /run/systemd/system ] && systemctl start docker 2>/dev/null; then
    say "started by systemd"
else
    log=/var/log/dockerd.log
    touch "$log" 2>/dev/null || log="${TMPDIR:-/tmp}/dockerd.log"
    pid_file=/var/run/docker.pid
    if runs dockerd "$pid_file"; then
        say "dockerd runs as process $(cat "$pid_file") and does not answer yet"
    else
        # A daemon that was killed leaves these, and the next one refuses to start, or waits for a
        # containerd that ends with its parent.
        containerd_file=/var/run/docker/containerd/containerd.pid
        for _ in $(seq 20); do
            runs containerd "$containerd_file" || break
            sleep 0.25
        done
        runs containerd "$containerd_file" || rm -f "$containerd_file"
        rm -f "$pid_file"
        # A session of its own: it outlives this script and whatever called it.
        setsid nohup dockerd >>"$log" 2>&1 </dev/null &
        say "dockerd is starting, its log is $log"
    fi
fi

deadline=$((SECONDS + wait_secs))
until version="$(engine_version)"; do
    if [ "$SECONDS" -ge "$deadline" ]; then
        [ -z "${log:-}" ] || tail -n 20 "$log" >&2
        give_up "the engine did not answer within $wait_secs s" "read its log${log:+ $log}"
    fi
    sleep 0.2
done
say "engine $version answers"
