# Stands where SWE-bench's images have conda's `activate`: puts the one environment in front of PATH.
conda() {
    case "${1-}" in
        activate)
            case "${2-base}" in
                testbed | base | /opt/miniconda3/envs/testbed) ;;
                *) echo "conda: there is no environment $2, only testbed" >&2; return 1 ;;
            esac
            export CONDA_DEFAULT_ENV=testbed CONDA_PREFIX=/opt/miniconda3/envs/testbed
            case ":$PATH:" in
                "$CONDA_PREFIX/bin:"* | ":$CONDA_PREFIX/bin:"*) ;;
                *) export PATH="$CONDA_PREFIX/bin:$PATH" ;;
            esac
            if [ -f /opt/miniconda3/etc/testbed.sh ]; then . /opt/miniconda3/etc/testbed.sh; fi ;;
        deactivate) ;;
        *) echo "conda: only activate and deactivate are here" >&2; return 1 ;;
    esac
}
