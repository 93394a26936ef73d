#!/usr/bin/env bash
# Puts MCP's reference servers into a folder, for the tests that need them: server-everything and server-filesystem from npm,
# mcp-server-time and mcp-server-fetch from PyPI. Needs npm and Python 3.10. Running it again does no harm.
#
#   scripts/get_mcp_servers.sh FOLDER
#   SPAR_MCP_SERVERS=FOLDER cargo test -p spar-envs --lib reference_servers -- --ignored
set -euo pipefail
folder="${1:?name a folder}"
mkdir -p "$folder"
cd "$folder"
if [ ! -e node_modules/@modelcontextprotocol/server-filesystem ]; then
    npm install --no-fund --no-audit --silent @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
fi
if [ ! -e venv/bin/mcp-server-fetch ]; then
    python3 -m venv venv
    venv/bin/pip install --quiet mcp-server-time mcp-server-fetch
fi
