//! What is understood, and what is told of the rest.

use proptest::prelude::*;

use super::*;

fn refused(body: &str) -> ApiError {
    let error = chat(body.as_bytes()).unwrap_err();
    assert_eq!(error.status, 400);
    error
}

#[test]
fn what_is_wrong_is_named_by_its_path() {
    for (body, param, words) in [
        (r#"{"messages": "hello"}"#, Some("messages"), "sequence"),
        (r#"{"messages": [{"role": "user"}], "n": "two"}"#, Some("n"), "u32"),
        (r#"{"messages": [{"role": "king", "content": "a"}]}"#, Some("messages[0].role"), "user"),
        (r#"{"messages": [{"role": "user", "content": 5}]}"#, Some("messages[0].content"), "parts"),
        (
            r#"{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}"#,
            Some("messages[0].content"),
            "image_url",
        ),
        (r#"{"temprature": 1}"#, Some("temprature"), "unknown field"),
        (r#"{"logit_bias": {"a": 1}}"#, Some("logit_bias"), "`a` is no token id"),
        (r#"{"logit_bias": {"1": "much"}}"#, Some("logit_bias"), "f32"),
        (r#"{"response_format": {"type": "xml"}}"#, Some("response_format"), "json_schema"),
        ("[]", None, "the request cannot be used"),
        ("{", None, "not JSON"),
        ("{} {}", None, "not JSON"),
        ("", None, "not JSON"),
    ] {
        let error = refused(body);
        assert!(error.message.contains(words), "{body}: {}", error.message);
        if let (Some(wanted), Some(found)) = (param, &error.param) {
            assert!(found.starts_with(wanted), "{body}: {found}");
        }
        assert_eq!(error.param.is_some(), param.is_some(), "{body}: {}", error.message);
    }
}

#[test]
fn null_is_absent() {
    let body = br#"{"messages": null, "stop": null, "stream_options": null, "tools": null}"#;
    let request = chat(body).unwrap();
    assert!(request.messages.is_none() && request.common.stop.is_empty());
}

#[test]
fn forms_of_prompts_are_told_apart() {
    let prompt = |text: &str| {
        completion(format!(r#"{{"prompt": {text}}}"#).as_bytes()).map(|r| r.prompt.unwrap())
    };
    assert_eq!(prompt(r#""a""#).unwrap(), PromptForm::Texts(vec!["a".to_owned()]));
    assert_eq!(prompt("[1, 2]").unwrap(), PromptForm::Tokens(vec![vec![1, 2]]));
    assert_eq!(prompt("[[1], [2]]").unwrap(), PromptForm::Tokens(vec![vec![1], vec![2]]));
    for wrong in ["[]", r#"["a", 1]"#, "[-1]", "{}", "[4294967296]"] {
        assert!(prompt(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_answer_is_held_to_one_thing() {
    let body = br#"{"guided_regex": "a", "response_format": {"type": "json_object"}}"#;
    let error = chat(body).unwrap().common.check(4).unwrap_err();
    assert!(error.message.contains("guided_regex and response_format"), "{}", error.message);
    let body = br#"{"n": 5}"#;
    assert_eq!(chat(body).unwrap().common.check(4).unwrap_err().param.unwrap(), "n");
}

proptest! {
    #[test]
    fn bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_request(&bytes);
    }

    #[test]
    fn things_like_requests_are_read_without_panic(
        field in prop::sample::select(vec![
            "messages", "prompt", "n", "stop", "tools", "tool_choice", "response_format", "seed",
            "logit_bias", "max_tokens", "guided_json", "stream_options", "top_k",
        ]),
        value in prop::sample::select(vec![
            "null", "0", "-1", "1e999", "\"\"", "[]", "{}", "[[]]", "[{}]", "{\"type\": \"function\"}",
            "[{\"role\": \"tool\", \"content\": []}]", "18446744073709551616", "true", "[null]",
        ]),
    ) {
        check_request(format!("{{\"{field}\": {value}}}").as_bytes());
    }
}
