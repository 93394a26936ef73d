//! Real programs that are talked to in a sandbox, for the tests of backends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};

use crate::{ExecEnd, ExecRequest, Image, NetworkPolicy, Process, SandboxBackend, SandboxSpec};

/// A server of the Model Context Protocol over standard streams, with one tool, in Python.
const MCP_PYTHON: &str = r#"
import json, sys

def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "adder", "version": "1"}}
    if method == "tools/list":
        number = {"type": "integer"}
        schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
        return {"tools": [{"name": "add", "description": "adds", "inputSchema": schema}]}
    numbers = params["arguments"]
    return {"content": [{"type": "text", "text": str(numbers["a"] + numbers["b"])}]}

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}
        print(json.dumps(reply), flush=True)
"#;

/// The same where there is no Python.
const MCP_SHELL: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    number() { printf '%s' "$line" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }
    case "$line" in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"adder","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"add","description":"adds","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result="{\"content\":[{\"type\":\"text\",\"text\":\"$(($(number a) + $(number b)))\"}]}" ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Serves the folder `/tmp/site` on port 8000 of loopback, and does not return.
const WEB: &str = "cd /tmp/site || exit 1; \
                   if command -v busybox >/dev/null; then exec busybox httpd -f -p 127.0.0.1:8000; \
                   else exec python3 -m http.server --bind 127.0.0.1 8000; fi";

struct Mcp {
    stdin: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    lines: Lines<BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>>,
    id: u64,
}

impl Mcp {
    async fn tell(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.stdin.flush().await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await;
        let line = line.expect("it answers in time").unwrap().expect("it does not end");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }
}

/// A server of the Model Context Protocol is started, asked what it can do, and used.
pub(crate) async fn an_mcp_server_answers(backend: &dyn SandboxBackend) {
    let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await.unwrap();
    sandbox.write_file("/tmp/mcp.py", MCP_PYTHON.as_bytes(), 0o644).await.unwrap();
    sandbox.write_file("/tmp/mcp.sh", MCP_SHELL.as_bytes(), 0o644).await.unwrap();
    let start =
        "if python3 -c 1 2>/dev/null; then exec python3 /tmp/mcp.py; fi; exec sh /tmp/mcp.sh";
    let Process { stdin, stdout, mut handle, .. } =
        sandbox.spawn(&ExecRequest::sh(start)).await.unwrap();
    let mut server = Mcp { stdin, lines: BufReader::new(stdout).lines(), id: 0 };
    let client = json!({ "name": "spar", "version": "0" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let hello = server.ask("initialize", hello).await;
    assert_eq!(hello["protocolVersion"], "2025-06-18", "{hello}");
    server.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let tools = server.ask("tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["name"], "add", "{tools}");
    let call = json!({ "name": "add", "arguments": { "a": 40, "b": 2 } });
    let called = server.ask("tools/call", call).await;
    assert_eq!(called["content"][0]["text"], "42", "{called}");
    drop(server);
    let end = handle.wait().await.unwrap();
    assert_eq!(end, ExecEnd::Exited { code: 0 }, "it ends with its input");
    sandbox.close().await.unwrap();
}

/// A web server is started and asked for a page, from a sandbox without a network.
pub(crate) async fn a_web_server_is_reached(backend: &dyn SandboxBackend) {
    let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await.unwrap();
    assert_eq!(sandbox.spec().network, NetworkPolicy::None);
    let page = "<p>hello from inside</p>".repeat(10_000);
    sandbox.write_file("/tmp/site/index.html", page.as_bytes(), 0o644).await.unwrap();
    let server = sandbox.spawn(&ExecRequest::sh(WEB)).await.unwrap();
    for _ in 0..3 {
        let mut stream = sandbox.connect_within(8000, Duration::from_secs(60)).await.unwrap();
        let ask = b"GET /index.html HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n\r\n";
        stream.write_all(ask).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
        assert_eq!(body.len(), page.len());
        assert_eq!(body, page);
    }
    drop(server);
    sandbox.close().await.unwrap();
}
