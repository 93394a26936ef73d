//! `/v1/chat/completions`.

use serde_json::{Value, json};

use super::client::post;
use super::support::start;

fn conversation() -> Value {
    json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "You see a door." },
    ])
}

fn tools() -> Value {
    json!([
        { "type": "function", "function": {
            "name": "open",
            "description": "Opens something.",
            "parameters": {
                "type": "object",
                "properties": {
                    "what": { "enum": ["door", "box"] },
                    "times": { "type": "integer", "minimum": 0, "maximum": 9 },
                },
                "required": ["what", "times"],
                "additionalProperties": false,
            },
        } },
        // It takes nothing.
        { "type": "function", "function": { "name": "wait" } },
    ])
}

/// The choice that a stream's events make.
fn joined(events: &[Value]) -> Value {
    let (mut content, mut thoughts, mut calls) =
        (String::new(), String::new(), Vec::<Value>::new());
    let (mut reason, mut logprobs) = (Value::Null, Vec::new());
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    for event in events {
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        content += delta["content"].as_str().unwrap_or_default();
        thoughts += delta["reasoning_content"].as_str().unwrap_or_default();
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = part["index"].as_u64().unwrap() as usize;
            if index == calls.len() {
                let mut call = part.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
                continue;
            }
            let more = part["function"]["arguments"].as_str().unwrap();
            let arguments = &mut calls[index]["function"]["arguments"];
            *arguments = json!(arguments.as_str().unwrap().to_owned() + more);
        }
        logprobs.extend(choice["logprobs"]["content"].as_array().into_iter().flatten().cloned());
        if !choice["finish_reason"].is_null() {
            reason = choice["finish_reason"].clone();
        }
    }
    // Names of calls differ from request to request.
    calls.iter_mut().for_each(|call| call["id"] = Value::Null);
    json!({
        "content": content,
        "thoughts": thoughts,
        "calls": calls,
        "reason": reason,
        "logprobs": logprobs,
    })
}

#[tokio::test]
async fn a_stream_says_what_the_whole_says() {
    let server = start().await;
    let thoughtful = "start: \"<think>\\n\" /[a-z ]{5}/ \"\\n</think>\\n\\n\" /[a-z]{3}/";
    let calling = "<tool_call>\\{\"name\": \"wait\", \"arguments\": \\{\\}\\}</tool_call>";
    for (seed, extra) in [
        json!({}),
        json!({ "logprobs": true, "top_logprobs": 3, "max_completion_tokens": 5 }),
        json!({ "response_format": { "type": "json_object" } }),
        json!({ "tools": tools() }),
        json!({ "tools": tools(), "tool_choice": "required" }),
        json!({ "tools": tools(), "tool_choice": { "type": "function", "function": {
            "name": "open",
        } } }),
        json!({ "guided_grammar": thoughtful }),
        json!({ "guided_regex": calling, "tools": tools() }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = json!({ "messages": conversation(), "max_tokens": 120, "seed": seed });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let whole = post(server.address, "/v1/chat/completions", &body).await.ok();
        assert_eq!(whole["object"], "chat.completion");
        body["stream"] = json!(true);
        let events = post(server.address, "/v1/chat/completions", &body).await.events();
        let found = joined(&events);
        let choice = &whole["choices"][0];
        let message = &choice["message"];
        let mut calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        calls.iter_mut().for_each(|call| call["id"] = Value::Null);
        let content = message["content"].as_str().unwrap_or_default();
        assert_eq!(found["content"].as_str(), Some(content));
        assert_eq!(
            found["thoughts"].as_str(),
            Some(message["reasoning_content"].as_str().unwrap_or_default())
        );
        assert_eq!(found["calls"], json!(calls), "{body}");
        assert_eq!(found["reason"], choice["finish_reason"]);
        let logprobs = choice["logprobs"]["content"].as_array().cloned().unwrap_or_default();
        assert_eq!(found["logprobs"], json!(logprobs));
    }
}

#[tokio::test]
async fn tools_that_have_to_be_called_are_called() {
    let server = start().await;
    for seed in 0..8 {
        let body = json!({
            "messages": conversation(), "tools": tools(), "tool_choice": "required", "seed": seed,
            "max_tokens": 200,
        });
        let whole = post(server.address, "/v1/chat/completions", &body).await.ok();
        let choice = &whole["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        assert_eq!(choice["message"]["content"], Value::Null);
        let function = &choice["message"]["tool_calls"][0]["function"];
        let arguments: Value =
            serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        if function["name"] == "open" {
            assert!(["door", "box"].contains(&arguments["what"].as_str().unwrap()));
            assert!(arguments["times"].as_u64().unwrap() < 10);
        } else {
            assert_eq!((&function["name"], arguments), (&json!("wait"), json!({})));
        }
        // The conversation goes on with what the tool answered.
        let mut messages = conversation();
        let list = messages.as_array_mut().unwrap();
        list.push(choice["message"].clone());
        list.push(json!({
            "role": "tool", "content": "It is open.",
            "tool_call_id": choice["message"]["tool_calls"][0]["id"],
        }));
        let body = json!({ "messages": messages, "tools": tools(), "max_tokens": 5 });
        post(server.address, "/v1/chat/completions", &body).await.ok();
    }
}

#[tokio::test]
async fn answers_keep_to_their_schema() {
    let server = start().await;
    let schema = json!({
        "type": "object",
        "properties": { "room": { "enum": ["attic", "hall"] }, "open": { "type": "boolean" } },
        "required": ["room", "open"],
        "additionalProperties": false,
    });
    for seed in 0..6 {
        let body = json!({
            "messages": conversation(), "seed": seed, "max_tokens": 200, "temperature": 2.0,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "x", "schema": schema },
            },
        });
        let whole = post(server.address, "/v1/chat/completions", &body).await.ok();
        let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(["attic", "hall"].contains(&value["room"].as_str().unwrap()), "{text}");
        assert!(value["open"].is_boolean() && value.as_object().unwrap().len() == 2, "{text}");
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let server = start().await;
    let long = "door ".repeat(3000);
    for (extra, param, words) in [
        (json!({ "model": "large" }), "model", "`large` does not exist"),
        (json!({ "messages": [] }), "messages", "empty"),
        (
            json!({ "messages": [{ "role": "assistant", "content": "a" }] }),
            "messages[0].role",
            "last",
        ),
        (json!({ "messages": [{ "role": "user" }] }), "messages[0].content", "says something"),
        (json!({ "messages": [{ "role": "user", "content": long }] }), "messages", "2048 tokens"),
        (json!({ "max_tokens": 5000 }), "max_tokens", "5000 for the answer"),
        (json!({ "temperature": 11 }), "temperature", "0 to 10"),
        (json!({ "temperature": "hot" }), "temperature", "f32"),
        (json!({ "top_p": 0 }), "top_p", "above 0"),
        (json!({ "min_tokens": 9, "max_tokens": 8 }), "min_tokens", "0 to 8"),
        (json!({ "n": 0 }), "n", "1 to"),
        (json!({ "top_logprobs": 3 }), "top_logprobs", "no effect"),
        (json!({ "logit_bias": { "99999": 1 } }), "logit_bias", "99999"),
        (json!({ "stop_token_ids": [1, 99_999] }), "stop_token_ids", "99999"),
        (json!({ "stop": ["a", ""] }), "stop[1]", "empty"),
        (json!({ "frobnicate": 1 }), "frobnicate", "unknown field"),
        (json!({ "tool_choice": "required" }), "tool_choice", "needs `tools`"),
        (json!({ "tools": tools(), "tool_choice": "maybe" }), "tool_choice", "allowed are"),
        (
            json!({ "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "a", "schema": { "type": "thing" } },
            } }),
            "response_format",
            "JSON schema",
        ),
        (json!({ "guided_regex": "(" }), "guided_regex", "regular expression"),
        (json!({ "guided_choice": [] }), "guided_choice", "no choices"),
        (json!({ "chat_template_kwargs": { "mood": 1 } }), "chat_template_kwargs", "mood"),
    ] {
        let mut body = json!({ "messages": conversation() });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let answer = post(server.address, "/v1/chat/completions", &body).await;
        let (status, message, found) = answer.error();
        assert!(status == 400 || status == 404, "{message}");
        assert_eq!(found, json!(param), "{message}");
        assert!(message.contains(words), "{message}");
    }
}
