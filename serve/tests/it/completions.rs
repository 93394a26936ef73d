//! `/v1/completions` and the small paths.

use serde_json::{Value, json};

use super::client::{get, post, send};
use super::support::{checkpoint, start, start_with};

#[tokio::test]
async fn a_stream_says_what_the_whole_says() {
    let server = start().await;
    for (number, extra) in [
        json!({}),
        json!({ "temperature": 0.0 }),
        json!({ "n": 3, "top_k": 5, "logprobs": 2, "return_token_ids": true }),
        json!({ "stop": ["e", "oo", "door"], "min_p": 0.01 }),
        json!({ "stop": "a", "include_stop_str_in_output": true, "repetition_penalty": 1.3 }),
        json!({ "guided_regex": "[a-d]{2,9} (open|close)" }),
        json!({ "guided_choice": ["open box", "open door"], "logprobs": 1 }),
        json!({ "prompt": [[65, 66], [67]], "ignore_eos": true, "presence_penalty": 1 }),
        json!({ "prompt": ["open", "You see"], "n": 2, "logit_bias": { "65": 5 } }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = json!({ "model": "small", "prompt": "You see", "max_tokens": 20 });
        body["seed"] = json!(number);
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let whole = post(server.address, "/v1/completions", &body).await.ok();
        // The same request has the same answer, whatever ran meanwhile.
        let again = post(server.address, "/v1/completions", &body).await.ok();
        assert_eq!(whole["choices"], again["choices"]);
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
        let answer = post(server.address, "/v1/completions", &body).await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
        let events = answer.events();
        let (usage, events) = events.split_last().unwrap();
        assert_eq!(usage["choices"], json!([]));
        assert_eq!(usage["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
        assert_eq!(usage["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"]);
        for choice in whole["choices"].as_array().unwrap() {
            let parts: Vec<&Value> = events
                .iter()
                .map(|event| &event["choices"][0])
                .filter(|part| part["index"] == choice["index"])
                .collect();
            let text: String = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
            assert_eq!(json!(text), choice["text"], "{body}");
            let last = parts.last().unwrap();
            assert_eq!(last["finish_reason"], choice["finish_reason"], "{body}");
            assert_eq!(last["stop_reason"], choice["stop_reason"], "{body}");
            for pointer in [
                "/token_ids",
                "/policy_versions",
                "/sampling_logprobs",
                "/logprobs/tokens",
                "/logprobs/token_logprobs",
                "/logprobs/text_offset",
                "/logprobs/top_logprobs",
            ] {
                let of_parts: Vec<Value> = parts
                    .iter()
                    .filter_map(|part| part.pointer(pointer)?.as_array())
                    .flatten()
                    .cloned()
                    .collect();
                let of_whole = choice.pointer(pointer).and_then(Value::as_array);
                assert_eq!(of_parts, of_whole.cloned().unwrap_or_default(), "{pointer} {body}");
            }
        }
    }
}

#[tokio::test]
async fn stop_strings_are_not_part_of_the_text() {
    let server = start().await;
    let mut found = 0;
    for seed in 0..20 {
        let body = json!({
            "prompt": "You see", "max_tokens": 40, "stop": ["e", "o"], "seed": seed,
        });
        let whole = post(server.address, "/v1/completions", &body).await.ok();
        let choice = &whole["choices"][0];
        let text = choice["text"].as_str().unwrap();
        assert!(!text.contains(['e', 'o']), "{text}");
        if choice["stop_reason"].is_string() {
            assert_eq!(choice["finish_reason"], "stop");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[tokio::test]
async fn tokens_come_with_all_that_a_trainer_needs() {
    let server = start().await;
    let body = json!({
        "prompt": "You see a box.", "max_tokens": 9, "return_token_ids": true, "seed": 1,
        "ignore_eos": true, "logprobs": 0,
    });
    let whole = post(server.address, "/v1/completions", &body).await.ok();
    let choice = &whole["choices"][0];
    let len = |value: &Value| value.as_array().unwrap().len();
    assert_eq!(len(&choice["token_ids"]), 9);
    assert_eq!(choice["policy_versions"], json!([0, 0, 0, 0, 0, 0, 0, 0, 0]));
    // At temperature 1 both distributions are the model's own.
    assert_eq!(choice["sampling_logprobs"], choice["logprobs"]["token_logprobs"]);
    assert!(choice["entropies"].as_array().unwrap().iter().all(|e| e.as_f64().unwrap() > 0.0));
    let tokenized =
        post(server.address, "/tokenize", &json!({ "prompt": "You see a box." })).await.ok();
    assert_eq!(choice["prompt_token_ids"], tokenized["tokens"]);
    assert_eq!(tokenized["count"].as_u64().unwrap() as usize, len(&tokenized["tokens"]));
    let body = json!({ "tokens": tokenized["tokens"] });
    let text = post(server.address, "/detokenize", &body).await.ok();
    assert_eq!(text, json!({ "prompt": "You see a box." }));
    let body = json!({ "tokens": [1, 99_999] });
    let (status, message, param) = post(server.address, "/detokenize", &body).await.error();
    assert_eq!((status, param), (400, json!("tokens")), "{message}");
    assert!(message.contains("99999"), "{message}");
    // Tokens are a prompt like its text.
    let body =
        json!({ "prompt": tokenized["tokens"], "max_tokens": 9, "seed": 1, "ignore_eos": true });
    let of_tokens = post(server.address, "/v1/completions", &body).await.ok();
    assert_eq!(of_tokens["choices"][0]["text"], choice["text"]);
}

#[tokio::test]
async fn what_could_be_drawn_is_told_with_the_tokens() {
    let server = start().await;
    let ask = async |more: Value| {
        let mut body =
            json!({ "prompt": "You", "max_tokens": 30, "return_token_ids": true, "seed": 1 });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        post(server.address, "/v1/completions", &body).await.ok()["choices"][0].clone()
    };
    let free = ask(json!({})).await;
    assert!(free.get("allowed_token_ids").is_none() && free.get("grammar").is_none());
    let listed = ask(json!({ "top_k": 3 })).await;
    let lists = listed["allowed_token_ids"].as_array().unwrap();
    assert!(lists.iter().all(|list| list.as_array().unwrap().len() == 3));
    assert_eq!(lists.len(), listed["token_ids"].as_array().unwrap().len());
    let held = ask(json!({ "structured_outputs": { "regex": "[ab]{4}" } })).await;
    let grammar = spar_core::GrammarSource::regex("[ab]{4}");
    assert_eq!(held["grammar"], json!(grammar.hash()));
    let lists = held["allowed_token_ids"].as_array().unwrap();
    assert!(lists.iter().all(|list| list.as_array().unwrap().len() < 2), "the grammar tells");
    // The same by its older name, and behind what was drawn.
    assert_eq!(ask(json!({ "guided_regex": "[ab]{4}" })).await["token_ids"], held["token_ids"]);
    let begun = held["token_ids"][0].clone();
    let rest = json!({ "guided_regex": "[ab]{4}", "partial_token_ids": [begun], "seed": 7 });
    let rest = ask(rest).await;
    assert_eq!(rest["token_ids"][0], begun);
    let text = rest["text"].as_str().unwrap();
    assert!(text.len() == 4 && text.chars().all(|c| "ab".contains(c)), "{text}");
}

#[tokio::test]
async fn what_an_answer_cannot_begin_with_is_refused() {
    let server = start().await;
    for (more, expected) in [
        (json!({ "partial_token_ids": [99_999] }), "99999"),
        (json!({ "partial_token_ids": [1, 2], "max_tokens": 2 }), "fewer than 2"),
        (json!({ "partial_token_ids": [200], "guided_regex": "a" }), "could not be drawn there"),
        (json!({ "structured_outputs": { "regex": "a" }, "guided_regex": "a" }), "older form"),
        (json!({ "structured_outputs": { "structural_tag": "a" } }), "structural_tag"),
    ] {
        let mut body = json!({ "prompt": "You", "max_tokens": 9 });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let (status, message, _) = post(server.address, "/v1/completions", &body).await.error();
        assert!(status == 400 && message.contains(expected), "{status}: {message}");
    }
}

#[tokio::test]
async fn tokens_that_are_parts_of_characters_are_told_apart() {
    let server = start().await;
    let body = json!({ "prompt": "You", "max_tokens": 60, "logprobs": 20, "ignore_eos": true });
    let whole = post(server.address, "/v1/completions", &body).await.ok();
    let logprobs = &whole["choices"][0]["logprobs"];
    let mut parts = 0;
    for (t, top) in logprobs["top_logprobs"].as_array().unwrap().iter().enumerate() {
        let top = top.as_object().unwrap();
        assert_eq!(top.len(), 20, "{top:?}");
        parts += top.keys().filter(|name| name.starts_with("bytes:\\x")).count();
        let token = logprobs["tokens"][t].as_str().unwrap();
        if let Some(logprob) = top.get(token) {
            assert_eq!(*logprob, logprobs["token_logprobs"][t], "{token}");
        }
    }
    assert!(parts > 0);
}

#[tokio::test]
async fn prompts_that_cannot_be_read_are_told() {
    let server = start().await;
    for (prompt, words) in [
        (json!("door ".repeat(3000)), "2048 tokens"),
        (json!([1, 99_999]), "99999"),
        (json!(""), "empty prompt"),
    ] {
        let body = json!({ "prompt": prompt });
        let (status, message, param) = post(server.address, "/v1/completions", &body).await.error();
        assert_eq!((status, param), (400, json!("prompt")), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn the_model_is_listed() {
    let server = start().await;
    let list = get(server.address, "/v1/models").await.ok();
    assert_eq!(list["data"][0]["id"], "small");
    assert_eq!(list["data"][0]["max_model_len"], 2048);
    assert_eq!(get(server.address, "/v1/models/small").await.ok(), list["data"][0]);
    let (status, message, param) = get(server.address, "/v1/models/large").await.error();
    assert_eq!((status, param), (404, json!("model")));
    assert!(message.contains("`large`") && message.contains("`small`"), "{message}");
    assert_eq!(get(server.address, "/health").await.ok()["status"], "ok");
}

#[tokio::test]
async fn a_key_is_asked_for() {
    let config =
        spar_serve::ServerConfig { api_key: Some("secret".to_owned()), ..Default::default() };
    let server = start_with(Default::default(), config).await;
    assert_eq!(get(server.address, "/health").await.status, 200);
    for headers in ["", "authorization: Bearer wrong\r\n", "authorization: secret\r\n"] {
        for path in ["/v1/models", "/metrics", "/nothing"] {
            let answer = send(server.address, "GET", path, headers, b"").await;
            assert_eq!(answer.error().0, 401);
            assert_eq!(answer.json()["error"]["code"], "invalid_api_key");
        }
    }
    let headers = "authorization: Bearer secret\r\n";
    assert_eq!(send(server.address, "GET", "/v1/models", headers, b"").await.status, 200);
}

#[tokio::test]
async fn other_weights_are_loaded_from_below_the_root_alone() {
    let root = tempfile::tempdir().unwrap();
    checkpoint(&root.path().join("next"), 7);
    let elsewhere = tempfile::tempdir().unwrap();
    checkpoint(elsewhere.path(), 8);
    let config = spar_serve::ServerConfig {
        weights_root: Some(root.path().to_owned()),
        ..Default::default()
    };
    let server = start_with(Default::default(), config).await;
    let body = json!({ "prompt": "You see", "max_tokens": 9, "seed": 1, "return_token_ids": true });
    let before = post(server.address, "/v1/completions", &body).await.ok();
    let loaded = post(server.address, "/weights", &json!({ "path": "next" })).await.ok();
    assert_eq!(loaded["version"], 1);
    let after = post(server.address, "/v1/completions", &body).await.ok();
    assert_eq!(after["choices"][0]["policy_versions"][0], 1);
    assert_ne!(before["choices"][0]["sampling_logprobs"], after["choices"][0]["sampling_logprobs"]);
    for path in [elsewhere.path().to_str().unwrap(), "..", "nothing", "next/../.."] {
        let (status, message, param) =
            post(server.address, "/weights", &json!({ "path": path })).await.error();
        assert_eq!((status, param), (400, json!("path")), "{message}");
    }
    assert_eq!(get(server.address, "/weights").await.ok()["version"], 1);
    // A broken checkpoint changes nothing.
    std::fs::write(root.path().join("next/model.safetensors"), b"broken").unwrap();
    let (status, message, _) =
        post(server.address, "/weights", &json!({ "path": "next" })).await.error();
    assert!(status == 400 && message.contains("safetensors"), "{message}");
    assert_eq!(
        post(server.address, "/v1/completions", &body).await.ok()["choices"],
        after["choices"]
    );
}
