//! `spar serve policy` and `spar audit` as they are typed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use spar::core::Seed;
use spar::policy::checkpoint::save_model;
use spar::policy::{ModelConfig, Tokenizer, TokenizerConfig, initial_parameters};

use crate::support::{run, spar, succeed};

/// Writes a small random model.
pub(crate) fn checkpoint(folder: &Path) {
    let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
    let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
    let config = ModelConfig {
        vocab_size: tokenizer.vocab_size(),
        hidden_size: 32,
        intermediate_size: 32,
        num_hidden_layers: 2,
        max_position_embeddings: 4096,
        ..ModelConfig::default()
    };
    let parameters = initial_parameters(&config, Seed::from_u64(1));
    save_model(folder, &config, &parameters, &tokenizer).unwrap();
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    /// Up to and without a path.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let serve = ["serve", "policy", "small", "--port", "0", "--threads", "2"];
        let mut child = spar(folder, &[&serve, arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap();
        let address = address.strip_suffix("/v1").unwrap_or_else(|| panic!("{line}")).to_owned();
        assert!(line.starts_with("serving `small` at "), "{line}");
        Self { child, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_checkpoint_is_served_until_the_server_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(&folder.path().join("small"));
    let mut server = Server::start(folder.path(), &["--max-model-len", "100"]);
    assert!(server.get("/v1/models").contains("\"max_model_len\":100"));
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["serve", "policy", "nothing"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("error: could not find a model in `nothing`"), "{}", ran.err);
    checkpoint(&folder.path().join("small"));
    let ran = run(folder.path(), &["serve", "policy", "small", "--host", "256.0.0.1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("error: could not listen at 256.0.0.1:8000"), "{}", ran.err);
    for option in ["--max-model-len", "--max-queue", "--max-active", "--answer-timeout"] {
        let ran = run(folder.path(), &["serve", "policy", "small", option, "0"]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(option) && ran.err.contains("zero"), "{}", ran.err);
    }
    let ran = run(folder.path(), &["serve", "policy", "small", "--kv-memory", "much"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn an_audit_finds_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(&folder.path().join("small"));
    let arguments = ["audit", "small", "--tokens", "700", "--threads", "2"];
    let ran = succeed(folder.path(), &[&arguments[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["tokens"], 700);
    assert_eq!(report["different"], 0);
    assert_eq!(report["max_abs_difference"], 0.0);
    let ran = succeed(folder.path(), &[&arguments[..], &["--top-p", "0.9"]].concat());
    assert!(ran.out.contains("tokens that differ    0\n"), "{}", ran.out);
}

#[test]
#[ignore = "needs Python and PyPI"]
fn openai_client_works_unchanged() {
    openai_client(&["--api-key", "secret"]);
}

/// Runs the script by the Python of a virtual environment that has the client.
fn openai_client(arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(&folder.path().join("small"));
    let server = Server::start(folder.path(), arguments);
    let python = std::env::var("SPAR_OPENAI_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check_openai_client.py");
    let url = format!("http://{}/v1", server.address);
    let output =
        Command::new(python).arg(script).args(["--url", &url]).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
}
