//! Endpoints as players, played by a small real server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Ran, run};

/// A server that answers every request alike, until the test ends; its address.
fn serve(status: &'static str, body: &'static str) -> String {
    serve_and_keep(status, body).0
}

/// The same, and what it is asked.
fn serve_and_keep(status: &'static str, body: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, kept) = (stream.unwrap(), Arc::clone(&kept));
            std::thread::spawn(move || {
                let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
                // The body is one JSON object, so it ends with a brace.
                while !seen.ends_with(b"}") {
                    match stream.read(&mut buffer) {
                        Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                }
                kept.lock().unwrap().push(String::from_utf8_lossy(&seen).into_owned());
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n");
                // The client may have hung up.
                let _ = write!(stream, "{head}connection: close\r\n\r\n{body}");
            });
        }
    });
    (address, asked)
}

fn eval(address: &str, extra: &[&str]) -> Ran {
    let arguments = ["eval", "--endpoint", address, "--model", "m", "--suite", "frozen-lake"];
    run(Path::new("."), &[&arguments[..], &["--split", "test", "--limit", "3"], extra].concat())
}

#[test]
fn an_endpoint_that_answers_is_evaluated() {
    let address =
        serve("200 OK", r#"{"choices":[{"message":{"content":"hm\n<action>down</action>"}}]}"#);
    let ran = eval(&address, &["--parser", "tags", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["evaluations"][0]["player"], "m");
    assert_eq!(report["evaluations"][0]["overall"]["episodes"], 3);
    assert_eq!(report["evaluations"][0]["overall"]["invalid_rate"], 0.0);
    assert_eq!(report["episode"]["context"]["list_admissible"], true);
}

/// The system's message of the first turn; what asks whether the endpoint is there has none.
fn first_system(asked: &Mutex<Vec<String>>) -> String {
    let asked = asked.lock().unwrap();
    let system = |request: &String| {
        let (_, body) = request.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).unwrap();
        let first = &body["messages"][0];
        (first["role"] == "system").then(|| first["content"].as_str().unwrap().to_owned())
    };
    asked.iter().find_map(system).expect("a turn was asked for, with a system message")
}

#[test]
fn seats_are_told_what_is_for_them_alone() {
    let tau2 = ["eval", "--suite", "tau2", "--split", "test", "--limit", "1", "--json"];
    let body = r####"{"choices":[{"message":{"content":"###STOP###"}}]}"####;
    let (address, asked) = serve_and_keep("200 OK", body);
    let user = format!("user={address}#m");
    let ran = run(Path::new("."), &[&tau2[..], &["--policy", "oracle", "--seat", &user]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let system = first_system(&asked);
    assert!(system.contains("<scenario>") && !system.contains("<policy>"), "{system}");

    let (address, asked) = serve_and_keep("200 OK", body);
    let agent = ["--endpoint", &*address, "--model", "m", "--scaffold", "tools"];
    let ran = run(Path::new("."), &[&tau2[..], &agent].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let system = first_system(&asked);
    assert!(system.contains("<policy>") && !system.contains("<scenario>"), "{system}");
}

#[test]
fn nonsense_is_told_before_anything_is_played() {
    for (status, body) in [
        ("200 OK", "<html>hello</html>"),
        ("200 OK", r#"{"choices":[]}"#),
        ("404 Not Found", "no such model"),
    ] {
        let ran = eval(&serve(status, body), &[]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(
            ran.err.starts_with("error: could not understand the answer of policy `m`"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("hint: --endpoint is the address"), "{}", ran.err);
    }
}

#[test]
fn a_malformed_call_is_the_policys_mistake() {
    let address = serve(
        "200 OK",
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"go","arguments":"{"}}]}}]}"#,
    );
    let ran = eval(&address, &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let overall = &report["evaluations"][0]["overall"];
    assert_eq!((&overall["episodes"], &overall["invalid_rate"]), (&3.into(), &1.0.into()));
}

#[test]
fn tokens_that_cannot_be_are_told_before_anything_is_played() {
    let address = serve(
        "200 OK",
        r#"{"prompt_token_ids":[1],"choices":[{"message":{"content":"go"},"token_ids":[1],"sampling_logprobs":[0.5]}]}"#,
    );
    // Who is not asked for tokens may tell what it likes.
    assert_eq!(eval(&address, &[]).code, Some(0));
    let ran = eval(&address, &["--server", "spar"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("a log-probability of 0.5, must be finite and at most 0"),
        "{}",
        ran.err
    );
}

#[test]
fn nobody_there_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let ran = eval(&address, &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("could not reach policy `m`"), "{}", ran.err);
    assert!(ran.err.contains("hint: look whether the server runs"), "{}", ran.err);
}
