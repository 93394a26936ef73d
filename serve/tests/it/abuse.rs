//! Clients that hang up, stall, flood and talk nonsense.

use std::time::{Duration, Instant};

use serde_json::json;
use spar_policy::GeneratorConfig;
use spar_serve::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{get, open, post, read, read_chunk, read_head, send};
use super::support::{eventually, metric, start, start_with};

fn endless(stream: bool) -> serde_json::Value {
    json!({ "prompt": "You see", "max_tokens": 2000, "ignore_eos": true, "stream": stream, "n": 8 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_up_cancels() {
    let server = start().await;
    for is_stream in [true, false] {
        let before = metric(server.address, "spar_requests_cancelled_total").await;
        let body = endless(is_stream).to_string();
        let mut stream = open(server.address, "POST", "/v1/completions", "", body.as_bytes()).await;
        if is_stream {
            assert_eq!(read_head(&mut stream).await.0, 200);
            read_chunk(&mut stream).await.unwrap();
        } else {
            eventually(async || metric(server.address, "spar_requests_running").await > 0.0).await;
        }
        drop(stream);
        eventually(async || metric(server.address, "spar_requests_running").await == 0.0).await;
        assert!(metric(server.address, "spar_requests_cancelled_total").await > before);
        eventually(async || metric(server.address, "spar_kv_memory_used_bytes").await == 0.0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_do_not_fit_are_told_to_come_back() {
    let generator = GeneratorConfig { max_active: 1, max_queue: 2, ..Default::default() };
    let server = start_with(generator, ServerConfig::default()).await;
    let body = json!({ "prompt": "a", "max_tokens": 500, "ignore_eos": true, "stream": true });
    let body = body.to_string();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = open(server.address, "POST", "/v1/completions", "", body.as_bytes()).await;
        read_head(&mut stream).await;
        streams.push(stream);
        // The first has to be under way before the others queue.
        if streams.len() == 1 {
            read_chunk(streams.last_mut().unwrap()).await;
        }
    }
    let answer = send(server.address, "POST", "/v1/completions", "", body.as_bytes()).await;
    // Unless one of them was done by then.
    if answer.status != 200 {
        assert_eq!(answer.error().0, 429);
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.json()["error"]["code"], "queue_full");
    }
    drop(streams);
    for gauge in ["spar_requests_running", "spar_requests_waiting"] {
        eventually(async || metric(server.address, gauge).await == 0.0).await;
    }
    post(server.address, "/v1/completions", &json!({ "prompt": "a", "max_tokens": 2 })).await.ok();
}

#[tokio::test]
async fn bodies_have_bounds() {
    let config = ServerConfig {
        max_body_bytes: 1000,
        body_timeout: Duration::from_millis(200),
        head_timeout: Duration::from_millis(300),
        ..ServerConfig::default()
    };
    let server = start_with(GeneratorConfig::default(), config).await;
    let large = vec![b' '; 5000];
    let answer = send(server.address, "POST", "/v1/completions", "", &large).await;
    assert_eq!(answer.error().0, 413);
    // Without a length, it is noticed on the way.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /tokenize HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(format!("5dc\r\n{}\r\n", " ".repeat(1500)).as_bytes()).await.unwrap();
    let mut stream = tokio::io::BufReader::new(stream);
    assert_eq!(read(&mut stream).await.error().0, 413);
    // A body that never comes.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /tokenize HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut stream = tokio::io::BufReader::new(stream);
    assert_eq!(read(&mut stream).await.error().0, 408);
    // A head that never ends.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest))
        .await
        .expect("the server gives up")
        .unwrap();
}

#[tokio::test]
async fn nonsense_is_refused_and_the_server_goes_on() {
    let server = start().await;
    for body in ["", "{", "[]", "null", "{\"prompt\": }", "\u{feff}{}", "{\"prompt\": \"\\ud800\"}"]
    {
        for path in ["/v1/completions", "/v1/chat/completions", "/tokenize", "/weights"] {
            let answer = send(server.address, "POST", path, "", body.as_bytes()).await;
            assert_eq!(answer.error().0, 400, "{path} {body}");
        }
    }
    let deep = format!("{{\"prompt\": {}", "[".repeat(100_000));
    let answer = send(server.address, "POST", "/v1/completions", "", deep.as_bytes()).await;
    assert_eq!(answer.error().0, 400);
    let answer = send(server.address, "POST", "/v1/completions", "", &[0xff, 0xfe, 0]).await;
    assert_eq!(answer.error().0, 400);
    for (method, path, status) in [
        ("GET", "/v1/completions", 405),
        ("DELETE", "/health", 405),
        ("POST", "/v1/nothing", 404),
        ("GET", "/", 404),
    ] {
        let answer = send(server.address, method, path, "", b"").await;
        assert_eq!(answer.error().0, status, "{method} {path}");
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(get(server.address, "/health").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_finishes_what_is_under_way() {
    let server = start().await;
    let body = json!({ "prompt": "a", "max_tokens": 100, "ignore_eos": true, "stream": true });
    let body = body.to_string();
    let mut stream = open(server.address, "POST", "/v1/completions", "", body.as_bytes()).await;
    read_head(&mut stream).await;
    let address = server.address;
    let stopping = tokio::spawn(server.stop());
    let mut text = Vec::new();
    while let Some(chunk) = read_chunk(&mut stream).await {
        text.extend(chunk);
    }
    assert!(text.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(stopping.await.unwrap(), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let config =
        ServerConfig { shutdown_grace: Duration::from_millis(300), ..ServerConfig::default() };
    let server = start_with(GeneratorConfig::default(), config).await;
    // A client that reads nothing.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"POST /tokenize HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n")
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.stop().await, 1);
}

#[tokio::test]
async fn an_answer_that_takes_too_long_breaks_off() {
    let config =
        ServerConfig { answer_timeout: Duration::from_millis(1), ..ServerConfig::default() };
    let server = start_with(GeneratorConfig::default(), config).await;
    let answer = post(server.address, "/v1/completions", &endless(false)).await;
    assert_eq!(answer.error().0, 504);
    let events = post(server.address, "/v1/completions", &endless(true)).await.events();
    assert_eq!(events.last().unwrap()["error"]["type"], "timeout_error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_bodies_do_not_keep_others_waiting() {
    let server = start().await;
    let address = server.address;
    // More of them than there are processors, each of which is worked on for a while.
    let text = "You see a door. ".repeat(400_000);
    let bodies = [
        ("/tokenize", json!({ "prompt": text })),
        ("/v1/completions", json!({ "prompt": text })),
        ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": text }] })),
    ];
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for (path, body) in bodies {
        let body = body.to_string();
        clients.spawn_blocking(move || {
            // The server's thread is not to be lent to its clients.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(send(address, "POST", path, "", body.as_bytes())).status
        });
    }
    let (mut longest, mut count) = (Duration::ZERO, 0);
    let mut statuses = Vec::new();
    while statuses.len() < 3 {
        let asked = Instant::now();
        assert_eq!(get(address, "/health").await.status, 200);
        longest = longest.max(asked.elapsed());
        count += 1;
        while let Some(status) = clients.try_join_next() {
            statuses.push(status.unwrap());
        }
    }
    let all = started.elapsed();
    statuses.sort_unstable();
    // The model reads less than that.
    assert_eq!(statuses, [200, 400, 400]);
    assert!(count > 10 && longest * 4 < all, "{count} answers, {longest:?} of {all:?}");
}
