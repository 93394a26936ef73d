//! What endpoints may do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use spar_core::{
    GrammarSource, PolicyVersion, Role, SampledTokens, Sampling, Seed, StopCause, ToolSpec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// What the endpoint does with the request of this number, from 0.
type Script = fn(usize) -> Deed;

enum Deed {
    Answer(&'static str, &'static str),
    Hang,
    HangUp,
}

const GOOD: Deed = Deed::Answer(
    "200 OK",
    r#"{"id":"x","choices":[{"message":{"role":"assistant","content":"go"},"finish_reason":"stop"}]}"#,
);

/// A real endpoint on a free port.
async fn serve(script: Script) -> (HttpPolicyConfig, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                let mut buffer = [0; 4096];
                // The body is one JSON object, so it ends with a brace.
                while !seen.ends_with(b"}") {
                    match stream.read(&mut buffer).await {
                        Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                }
                let seen = String::from_utf8(seen).unwrap();
                assert!(seen.starts_with("POST /v1/chat/completions "), "{seen}");
                assert!(seen.contains(r#"{"role":"user","content":"a room"}"#), "{seen}");
                match script(counter.fetch_add(1, Ordering::SeqCst)) {
                    Deed::Answer(status, body) => {
                        let length = body.len();
                        let text = format!(
                            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                        );
                        stream.write_all(text.as_bytes()).await.unwrap();
                    }
                    Deed::Hang => std::future::pending().await,
                    Deed::HangUp => {}
                }
            });
        }
    });
    let config = HttpPolicyConfig {
        base_url,
        timeout_secs: 1,
        max_requests: 3,
        retry_delay_ms: 1,
        ..HttpPolicyConfig::default()
    };
    (config, requests)
}

fn request() -> CompletionRequest {
    CompletionRequest {
        messages: vec![Arc::new(Message::new(Role::User, "a room"))].into(),
        ..CompletionRequest::new(1, Seed::from_u64(0))
    }
}

async fn ask(script: Script) -> (Result<Completion, PolicyError>, usize) {
    let (config, requests) = serve(script).await;
    let result = HttpPolicy::open(config).unwrap().complete(request()).await;
    (result, requests.load(Ordering::SeqCst))
}

#[tokio::test]
async fn only_so_many_requests_are_with_the_endpoint() {
    let (config, requests) = serve(|_| Deed::Hang).await;
    let config = HttpPolicyConfig { concurrent_requests: 2, max_requests: 1, ..config };
    let policy = HttpPolicy::open(config).unwrap();
    let asking = futures::future::join_all((0..3).map(|_| policy.complete(request())));
    let early = tokio::time::timeout(Duration::from_millis(500), asking).await;
    assert!(early.is_err(), "the endpoint hangs");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_is_read() {
    let (result, requests) = ask(|_| GOOD).await;
    let completion = result.unwrap();
    assert_eq!((completion.text.as_str(), completion.stop), ("go", StopCause::EndOfTurn));
    assert_eq!((completion.author.as_str(), requests), ("default", 1));
    assert!(completion.tokens.ids.is_empty());
}

#[tokio::test]
async fn what_passes_is_asked_again() {
    let (result, requests) = ask(|number| match number {
        0 => Deed::Answer("429 Too Many Requests\r\nretry-after: 0", "slow down"),
        1 => Deed::HangUp,
        _ => GOOD,
    })
    .await;
    assert_eq!((result.unwrap().text.as_str(), requests), ("go", 3));
}

#[tokio::test]
async fn asking_again_has_an_end() {
    let (result, requests) = ask(|_| Deed::Answer("500 Oh", "no luck")).await;
    let error = result.unwrap_err();
    assert!(error.is_transient());
    assert!(error.to_string().contains("no luck"), "{error}");
    assert_eq!(requests, 3);
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up() {
    let (result, requests) = ask(|number| if number == 0 { Deed::Hang } else { GOOD }).await;
    assert_eq!((result.unwrap().text.as_str(), requests), ("go", 2));
}

#[tokio::test]
async fn nonsense_is_told_apart_and_not_asked_again() {
    let bodies: [Script; 4] = [
        |_| Deed::Answer("200 OK", "<html>\n</html>"),
        |_| Deed::Answer("200 OK", r#"{"choices":[]}"#),
        |_| Deed::Answer("200 OK", ""),
        |_| Deed::Answer("404 Not Found", "no such model"),
    ];
    for body in bodies {
        let (result, requests) = ask(body).await;
        let error = result.unwrap_err();
        assert!(matches!(error, PolicyError::Nonsense { .. }), "{error}");
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_as_such_and_not_asked_again() {
    let bodies: [Script; 3] = [
        |_| {
            Deed::Answer(
                "400 Bad Request",
                r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4120 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            )
        },
        |_| {
            Deed::Answer(
                "500 Internal Server Error",
                r#"{"error":{"code":500,"message":"the request exceeds the available context size.","type":"exceed_context_size_error","n_prompt_tokens":4056,"n_ctx":4096}}"#,
            )
        },
        |_| {
            Deed::Answer(
                "200 OK",
                r#"{"error":{"code":400,"message":"request (4056 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
            )
        },
    ];
    for body in bodies {
        let (result, requests) = ask(body).await;
        let error = result.unwrap_err();
        let PolicyError::ContextFull { tokens: Some(4120), limit: Some(4096) } = error else {
            panic!("{error:?}");
        };
        assert_eq!(requests, 1);
    }
    // Where no answer of this length fits, no conversation is to blame.
    let (result, _) = ask(|_| {
        Deed::Answer("400 Bad Request", r#"{"message":"maximum context length is 64 tokens"}"#)
    })
    .await;
    assert!(matches!(result, Err(PolicyError::Unsupported { .. })), "{result:?}");
    // Words in an answer are the policy's own.
    let (result, _) = ask(|_| {
        Deed::Answer(
            "200 OK",
            r#"{"choices":[{"message":{"content":"maximum context length is 1"}}]}"#,
        )
    })
    .await;
    assert_eq!(result.unwrap().stop, StopCause::Unknown);
}

#[tokio::test]
async fn why_an_answer_ended_and_how_long_it_is_are_kept() {
    let cut_off = |_: usize| {
        Deed::Answer(
            "200 OK",
            r#"{"choices":[{"message":{"content":"go"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":64}}"#,
        )
    };
    let completion = ask(cut_off).await.0.unwrap();
    assert_eq!((completion.stop, completion.num_tokens()), (StopCause::Length, Some(64)));
    let filtered = |_: usize| {
        Deed::Answer(
            "200 OK",
            r#"{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}"#,
        )
    };
    let completion = ask(filtered).await.0.unwrap();
    assert_eq!((completion.stop, completion.num_tokens()), (StopCause::Filtered, None));
}

#[tokio::test]
async fn a_conversation_that_a_filter_holds_back_is_refused() {
    let held_back = |_: usize| {
        Deed::Answer(
            "400 Bad Request",
            r#"{"error":{"code":"content_filter","message":"management policy","status":400}}"#,
        )
    };
    let (result, requests) = ask(held_back).await;
    assert!(matches!(result, Err(PolicyError::Refused { .. })), "{result:?}");
    assert_eq!(requests, 1);
    let words = |_: usize| {
        Deed::Answer("400 Bad Request", r#"{"error":{"code":"x","message":"content_filter"}}"#)
    };
    let (result, _) = ask(words).await;
    assert!(matches!(result, Err(PolicyError::Nonsense { .. })), "{result:?}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let config = HttpPolicyConfig { base_url, max_requests: 1, ..HttpPolicyConfig::default() };
    let request = CompletionRequest::new(1, Seed::from_u64(0));
    let error = HttpPolicy::open(config).unwrap().complete(request).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[test]
fn a_wrong_configuration_is_refused_before_anything_is_sent() {
    let open = |config| HttpPolicy::open(config).unwrap_err().to_string();
    let default = HttpPolicyConfig::default;
    assert!(open(HttpPolicyConfig { base_url: "nowhere".into(), ..default() }).contains("nowhere"));
    assert!(open(HttpPolicyConfig { base_url: "ftp://x".into(), ..default() }).contains("ftp"));
    let api_key_env = Some("SPAR_TEST_NO_SUCH_KEY".to_owned());
    assert!(open(HttpPolicyConfig { api_key_env, ..default() }).contains("NO_SUCH_KEY"));
}

/// Answers `body` to every request, and hands on what was sent.
async fn record(body: impl Into<String>) -> (HttpPolicyConfig, Arc<Mutex<Vec<Value>>>) {
    let body = body.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            let sent = loop {
                let text = String::from_utf8_lossy(&bytes);
                let sent = text.split_once("\r\n\r\n").map(|(_, sent)| serde_json::from_str(sent));
                if let Some(Ok(sent)) = sent {
                    break sent;
                }
                match stream.read(&mut buffer).await {
                    Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
                    _ => return,
                }
            };
            told.lock().unwrap().push(sent);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
            let _ = stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
        }
    });
    (HttpPolicyConfig { base_url, max_requests: 1, ..HttpPolicyConfig::default() }, seen)
}

async fn told(
    server: ServerKind,
    request: CompletionRequest,
    body: Value,
) -> Result<Completion, PolicyError> {
    let (config, _) = record(body.to_string()).await;
    let vocabulary = server.tells_tokens().then_some(100);
    let config = HttpPolicyConfig { server, vocabulary, ..config };
    HttpPolicy::open(config).unwrap().complete(request).await
}

fn chat(message: Value) -> Value {
    json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })
}

/// An answer of `spar serve policy` with all that it tells.
fn of_spar() -> Value {
    json!({
        "prompt_token_ids": [1, 2],
        "choices": [{
            "message": { "content": "go" },
            "finish_reason": "stop",
            "token_ids": [7, 9],
            "sampling_logprobs": [-0.5, 0.0],
            "policy_versions": [3, 4],
        }],
    })
}

#[tokio::test]
async fn tools_stop_strings_and_schemas_are_sent() {
    let (config, seen) = record(chat(json!({ "content": "go" })).to_string()).await;
    let schema = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    let grammar = Arc::new(GrammarSource::json_schema(schema.clone()));
    let tool = ToolSpec::new("look", "looks", json!({ "type": "object" }));
    let request = CompletionRequest {
        tools: [tool].into(),
        stop: [Arc::from("!")].into(),
        grammar: Some(grammar),
        ..request()
    };
    HttpPolicy::open(config.clone()).unwrap().complete(request).await.unwrap();
    let plain = CompletionRequest::new(1, Seed::from_u64(0));
    HttpPolicy::open(config).unwrap().complete(plain).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0]["tools"][0]["function"]["name"], "look");
    assert_eq!(seen[0]["stop"], json!(["!"]));
    let format = &seen[0]["response_format"];
    assert_eq!(
        (&format["type"], &format["json_schema"]["schema"]),
        (&json!("json_schema"), &schema)
    );
    for field in ["return_token_ids", "structured_outputs", "partial_token_ids", "logprobs"] {
        assert!(seen[0].get(field).is_none(), "{field} is none of OpenAI's");
    }
    for field in ["tools", "stop", "response_format"] {
        assert!(seen[1].get(field).is_none(), "{field} was not asked for");
    }
}

#[tokio::test]
async fn vllm_is_told_what_draws_are_to_be_without() {
    let neutral = [
        ("top_k", json!(-1)),
        ("top_p", json!(1.0)),
        ("min_p", json!(0.0)),
        ("repetition_penalty", json!(1.0)),
        ("presence_penalty", json!(0.0)),
        ("frequency_penalty", json!(0.0)),
    ];
    let partial = SampledTokens {
        ids: vec![7],
        logprobs: vec![-0.5],
        versions: vec![PolicyVersion(0)],
        ..SampledTokens::default()
    };
    let begun = CompletionRequest { partial, prompt_ids: [1, 2].into(), ..request() };
    let sampling = Sampling { top_k: Some(5), top_p: 0.5, min_p: 0.25, ..Sampling::default() };
    let cut = CompletionRequest { sampling, ..request() };
    let (config, seen) = record(chat(json!({ "content": "go" })).to_string()).await;
    for server in [ServerKind::Vllm, ServerKind::Spar, ServerKind::Openai] {
        let policy = HttpPolicy::open(HttpPolicyConfig { server, ..config.clone() }).unwrap();
        for request in [&request(), &begun, &cut] {
            // Not every server goes on with an answer, and what it says is not looked at here.
            let _ = policy.complete(request.clone()).await;
        }
    }
    let mut seen = seen.lock().unwrap().clone();
    // Not those of texts that are to be read as tokens.
    seen.retain(|body| body.get("temperature").is_some());
    let [whole, rest, cut, spar @ .., openai, _] = &seen[..] else { panic!("{seen:?}") };
    assert!(rest.get("prompt").is_some() && whole.get("messages").is_some());
    for (field, value) in &neutral {
        assert_eq!((&whole[field], &rest[field]), (value, value), "{field}");
        for body in [&spar[0], openai] {
            assert!(body.get(field).is_none(), "{field} was not asked for");
        }
    }
    assert_eq!((&cut["top_k"], &cut["top_p"]), (&json!(5), &json!(0.5)));
    assert_eq!((&cut["min_p"], &cut["repetition_penalty"]), (&json!(0.25), &json!(1.0)));
}

#[tokio::test]
async fn what_a_server_cannot_do_is_refused() {
    let begun = || SampledTokens {
        ids: vec![7],
        logprobs: vec![-0.5],
        versions: vec![PolicyVersion(3)],
        ..SampledTokens::default()
    };
    let regex = || Some(Arc::new(GrammarSource::regex("a")));
    let between = GrammarSource::JsonBetween {
        before: "<".to_owned(),
        schema: json!({}),
        after: ">".to_owned(),
    };
    let ids: Arc<[u32]> = [1, 2].into();
    let choices: spar_core::Choices = [Arc::from("go")].into();
    let cases = [
        (ServerKind::Openai, CompletionRequest { partial: begun(), ..request() }),
        (ServerKind::Openai, CompletionRequest { grammar: regex(), ..request() }),
        (ServerKind::Spar, CompletionRequest { grammar: Some(Arc::new(between)), ..request() }),
        (
            ServerKind::Spar,
            CompletionRequest { grammar: regex(), choices: Some(choices.clone()), ..request() },
        ),
        (ServerKind::Vllm, CompletionRequest { partial: begun(), ..request() }),
        (
            ServerKind::Vllm,
            CompletionRequest {
                partial: begun(),
                prompt_ids: ids,
                choices: Some(choices),
                ..request()
            },
        ),
    ];
    for (server, request) in cases {
        let error = told(server, request, of_spar()).await.unwrap_err();
        assert!(matches!(error, PolicyError::Unsupported { .. }), "{server:?}: {error}");
    }
}

#[tokio::test]
async fn calls_are_read_and_malformed_ones_are_the_policys_mistake() {
    let call = |arguments: Value| {
        json!({ "content": null, "reasoning_content": "hm", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "look", "arguments": arguments } },
        ] })
    };
    let read = async |message: Value| {
        told(ServerKind::Openai, request(), chat(message)).await.map(|completion| {
            assert_eq!((&*completion.text, completion.reasoning.as_deref()), ("", Some("hm")));
            completion.calls.unwrap()
        })
    };
    let calls = read(call(json!(r#"{"at": "box", "n": 1}"#))).await.unwrap().unwrap();
    assert_eq!((calls.len(), &*calls[0].id, &*calls[0].name), (1, "c1", "look"));
    assert_eq!(Value::from(calls[0].arguments.clone()), json!({ "at": "box", "n": 1 }));
    for nothing in [json!(""), json!(null), json!({})] {
        assert!(read(call(nothing)).await.unwrap().unwrap()[0].arguments.is_empty());
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for arguments in [json!("{"), json!("[1]"), json!("look"), json!(7), json!(deep)] {
        let malformed = read(call(arguments.clone())).await.unwrap().unwrap_err();
        assert_eq!(malformed.name, "look");
        let written: Value = serde_json::from_str(&malformed.written).unwrap();
        assert_eq!(written["function"]["arguments"], arguments);
        assert!(malformed.to_string().contains("JSON object"), "{malformed}");
        assert!(malformed.to_string().len() < 300);
    }
    for call in [json!("look"), json!({ "function": {} }), json!(null)] {
        let message = json!({ "content": null, "reasoning": "hm", "tool_calls": [call] });
        assert!(read(message).await.unwrap().is_err());
    }
    let called = |count| {
        let calls = vec![json!({ "id": "c", "function": { "name": "look" } }); count];
        json!({ "content": null, "reasoning": "hm", "tool_calls": calls })
    };
    assert_eq!(read(called(spar_parsers::MAX_CALLS)).await.unwrap().unwrap().len(), 128);
    let malformed = read(called(spar_parsers::MAX_CALLS + 1)).await.unwrap().unwrap_err();
    assert!(malformed.to_string().contains("more than 128 calls"), "{malformed}");
    assert_eq!(malformed.written.lines().count(), 129);
    let none =
        told(ServerKind::Openai, request(), chat(json!({ "content": "go", "tool_calls": [] })));
    assert_eq!(none.await.unwrap().calls, None);
    let error = read(json!({ "content": "go", "tool_calls": "look" })).await.unwrap_err();
    assert!(matches!(error, PolicyError::Nonsense { .. }), "{error}");
}

#[tokio::test]
async fn tokens_are_kept_where_the_server_tells_them() {
    let completion = told(ServerKind::Spar, request(), of_spar()).await.unwrap();
    assert_eq!(completion.prompt_ids.as_deref(), Some(&[1, 2][..]));
    let expected = SampledTokens {
        ids: vec![7, 9],
        logprobs: vec![-0.5, 0.0],
        versions: vec![PolicyVersion(3), PolicyVersion(4)],
        ..SampledTokens::default()
    };
    assert_eq!((&completion.tokens, completion.num_tokens()), (&expected, Some(2)));
    // Who was not asked for tokens is not believed to know what they are.
    let completion = told(ServerKind::Openai, request(), of_spar()).await.unwrap();
    assert_eq!((completion.tokens.ids.len(), completion.prompt_ids), (0, None));
    // What the answer began with stays as it was sampled.
    let mut begun = expected.first(1);
    begun.versions = vec![PolicyVersion(1)];
    let request = CompletionRequest { partial: begun, ..request() };
    let completion = told(ServerKind::Spar, request, of_spar()).await.unwrap();
    assert_eq!(completion.tokens.versions, [PolicyVersion(1), PolicyVersion(4)]);
}

#[tokio::test]
async fn of_vllm_tokens_are_kept_where_nothing_was_left_out() {
    let body = json!({
        "prompt_token_ids": [1, 2],
        "choices": [{
            "message": { "content": "go" },
            "finish_reason": "stop",
            "stop_reason": "!",
            "token_ids": [7, 9],
            "logprobs": { "content": [{ "token": "a", "logprob": -0.5 }, { "logprob": -0.25 }] },
        }],
    });
    let read = async |request| told(ServerKind::Vllm, request, body.clone()).await.unwrap();
    let completion = read(request()).await;
    assert_eq!(
        (completion.tokens.logprobs, completion.stop),
        (vec![-0.5, -0.25], StopCause::StopSequence)
    );
    for sampling in [
        Sampling { temperature: 0.7, ..Sampling::default() },
        Sampling { top_k: Some(2), ..Sampling::default() },
    ] {
        let completion = read(CompletionRequest { sampling, ..request() }).await;
        assert!(completion.tokens.ids.is_empty(), "what could be drawn is not known");
        assert_eq!(completion.num_tokens(), Some(2));
    }
    let grammar = Some(Arc::new(GrammarSource::regex("go")));
    assert!(read(CompletionRequest { grammar, ..request() }).await.tokens.ids.is_empty());
    let (config, _) = record(body.to_string()).await;
    let config = HttpPolicyConfig { server: ServerKind::Vllm, processed_logprobs: true, ..config };
    let sampling = Sampling { temperature: 0.7, ..Sampling::default() };
    let warm = CompletionRequest { sampling, ..request() };
    let completion = HttpPolicy::open(config).unwrap().complete(warm).await.unwrap();
    assert_eq!(completion.tokens.ids, [7, 9]);
}

#[tokio::test]
async fn tokens_that_cannot_be_are_told() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 15] = [
        ("token 100 in `token_ids`, the vocabulary has 100", |choice| {
            choice["token_ids"][0] = json!(100)
        }),
        ("invalid value: integer `-1`", |choice| choice["token_ids"][0] = json!(-1)),
        ("2 `token_ids` with 1 log-probabilities", |choice| {
            choice["sampling_logprobs"] = json!([0.0])
        }),
        ("expected f32", |choice| choice["sampling_logprobs"] = json!([null, 0.0])),
        ("log-probability of 0.5", |choice| choice["sampling_logprobs"] = json!([0.5, 0.0])),
        ("number out of range", |choice| choice["sampling_logprobs"] = json!([-1e300, 0.0])),
        ("2 `token_ids` with 3 versions", |choice| choice["policy_versions"] = json!([1, 2, 3])),
        ("without `sampling_logprobs`", |choice| choice["sampling_logprobs"] = Value::Null),
        ("1 lists of allowed", |choice| choice["allowed_token_ids"] = json!([[7]])),
        ("token 9, which was not allowed", |choice| {
            choice["allowed_token_ids"] = json!([[7], [8]])
        }),
        ("does not ascend", |choice| choice["allowed_token_ids"] = json!([[8, 7], [9]])),
        ("token 200 in `allowed_token_ids`", |choice| {
            choice["allowed_token_ids"] = json!([[7, 200], []])
        }),
        ("grammar ab", |choice| choice["grammar"] = json!("ab".repeat(32))),
        ("64 hexadecimal digits", |choice| choice["grammar"] = json!("ab")),
        ("65 `token_ids`, at the most 64", |choice| choice["token_ids"] = json!(vec![1; 65])),
    ];
    for (expected, change) in cases {
        let mut body = of_spar();
        change(&mut body["choices"][0]);
        let error = told(ServerKind::Spar, request(), body).await.unwrap_err();
        assert!(matches!(error, PolicyError::Nonsense { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    let mut body = of_spar();
    body["prompt_token_ids"] = Value::Null;
    let error = told(ServerKind::Spar, request(), body.clone()).await.unwrap_err().to_string();
    assert!(error.contains("without `prompt_token_ids`"), "{error}");
    body["prompt_token_ids"] = json!([1, 100]);
    let error = told(ServerKind::Spar, request(), body).await.unwrap_err().to_string();
    assert!(error.contains("token 100 in `prompt_token_ids`"), "{error}");
    let sampling = Sampling { top_k: Some(2), ..Sampling::default() };
    let cut = CompletionRequest { sampling, ..request() };
    let error = told(ServerKind::Spar, cut, of_spar()).await.unwrap_err().to_string();
    assert!(error.contains("without `allowed_token_ids`"), "{error}");
    let partial = SampledTokens {
        ids: vec![8],
        logprobs: vec![0.0],
        versions: vec![PolicyVersion(0)],
        ..SampledTokens::default()
    };
    let error = told(ServerKind::Spar, CompletionRequest { partial, ..request() }, of_spar()).await;
    assert!(error.unwrap_err().to_string().contains("do not begin as the answer did"));
}

#[tokio::test]
async fn an_answer_has_an_end() {
    let long = chat(json!({ "content": "a".repeat(17 << 20) }));
    let error = told(ServerKind::Openai, request(), long).await.unwrap_err();
    let PolicyError::Nonsense { detail, .. } = &error else { panic!("{error}") };
    assert!(detail.contains("more than 16777216 bytes"), "{detail}");
}
