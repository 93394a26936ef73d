use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const FIXTURE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/chat_templates.json"));
const CONTROL: [&str; 6] = ["<|im_start|>", "<|im_end|>", "<|eot|>", "<|start|>", "</s>", "[INST]"];

fn control() -> ControlTokens {
    ControlTokens::new(CONTROL.map(str::to_owned)).unwrap()
}

fn user(content: &str) -> Value {
    json!({ "role": "user", "content": content })
}

fn assistant(content: &str) -> Value {
    json!({ "role": "assistant", "content": content })
}

fn render(source: &str, input: &ChatInput) -> Result<RenderedChat, ChatTemplateError> {
    ChatTemplate::new(source)?.render(input, &control())
}

#[test]
fn conversations_are_rendered_as_transformers_renders_them() {
    let fixture: Value = serde_json::from_str(FIXTURE).unwrap();
    for case in fixture["cases"].as_array().unwrap() {
        let name = format!("{} on {}", case["template"], case["conversation"]);
        let source = fixture["templates"][case["template"].as_str().unwrap()].as_str().unwrap();
        let conversation = &fixture["conversations"][case["conversation"].as_str().unwrap()];
        let list = |field: &str| conversation[field].as_array().cloned();
        let input = ChatInput {
            messages: list("messages").unwrap(),
            tools: list("tools"),
            add_generation_prompt: conversation["add_generation_prompt"] == true,
            variables: conversation["variables"].as_object().cloned().unwrap_or_default(),
            now: Some(
                SystemTime::UNIX_EPOCH + Duration::from_secs(fixture["now"].as_u64().unwrap()),
            ),
            ..ChatInput::default()
        };
        let mut template = ChatTemplate::new(source).unwrap();
        template.set_token("bos_token", "<s>");
        template.set_token("eos_token", "</s>");
        match template.render(&input, &control()) {
            Ok(chat) => {
                assert_eq!(Some(chat.text()), case["text"].as_str(), "{name}");
                let generated: Vec<_> =
                    chat.generated().iter().map(|range| &chat.text()[range.clone()]).collect();
                let expected = case["generated"].as_array().unwrap();
                let expected: Vec<_> = expected.iter().filter(|text| *text != "").collect();
                assert_eq!(json!(generated), json!(expected), "{name}");
            }
            Err(error) => assert!(case["refused"].is_string(), "{name}: {error}"),
        }
    }
}

#[test]
fn what_looks_like_a_control_token_in_a_message_is_told_apart() {
    let source = "{% for m in messages %}<|im_start|>{{ m.content | trim }}{% if m.parts %}\
                  {% for p in m.parts %}{{ p }}{% endfor %}{% endif %}<|im_end|>{% endfor %}";
    let input = ChatInput::new(vec![
        user(" <|im_end|> "),
        json!({ "role": "user", "content": "<|im", "parts": ["_start|>", "<|e", "ot|>"] }),
    ]);
    let chat = render(source, &input).unwrap();
    let text = "<|im_start|><|im_end|><|im_end|><|im_start|><|im_start|><|eot|><|im_end|>";
    assert_eq!(chat.text(), text);
    let found: Vec<bool> =
        text.match_indices('<').map(|(start, _)| chat.is_content(start)).collect();
    assert_eq!(found, [false, true, false, false, true, true, false]);
    // As part of JSON, escaped or not, and in the names of a tool's parameters.
    let source = "{{ tools | tojson }}{{ tools | tojson(ensure_ascii=true) }}{{ tools }}<|eot|>";
    let tools = Some(vec![json!({ "<|eot|>": "ü<|eot|>" })]);
    let chat = render(source, &ChatInput { tools, ..ChatInput::new(vec![user("")]) }).unwrap();
    assert_eq!(
        chat.text(),
        "[{\"<|eot|>\": \"ü<|eot|>\"}][{\"<|eot|>\": \"\\u00fc<|eot|>\"}]\
         [{'<|eot|>': 'ü<|eot|>'}]<|eot|>"
    );
    let found: Vec<bool> =
        chat.text().match_indices('<').map(|(start, _)| chat.is_content(start)).collect();
    assert_eq!(found, [true, true, true, true, true, true, false]);
}

#[test]
fn values_that_are_no_text_are_stripped_as_python_writes_them() {
    let fields = json!({ "far": 1e16, "near": 1e-5, "text": "\u{a0}", "flag": true, "none": null });
    let input = ChatInput::new(vec![
        json!({ "role": "tool", "content": fields }),
        user("\u{1c} a\u{1f}b \u{1d}"),
    ]);
    // What transformers renders.
    for (source, expected) in [
        (
            "{{ messages[0].content | trim }}",
            "{'far': 1e+16, 'near': 1e-05, 'text': '\\xa0', 'flag': True, 'none': None}",
        ),
        ("{{ messages[1].content | trim }}", "a\u{1f}b"),
        ("{{ messages[1].content.strip() }}", "a\u{1f}b"),
        ("{{ messages[1].content.split() | join('+') }}", "a+b"),
        ("{{ messages[1].content.rstrip().lstrip('\u{1c}') }}", " a\u{1f}b"),
        ("{{ 'xaxx' | trim('x') }}{{ nothing | trim }}{{ none | trim }}", "aNone"),
        ("{% for key, value in messages[1].parts | items %}{{ key }}{% endfor %}", ""),
    ] {
        assert_eq!(render(source, &input).unwrap().text(), expected, "{source}");
    }
}

#[test]
fn odd_characters_are_escaped_and_indented_as_in_python() {
    let input = ChatInput::new(vec![user("\u{7f}\u{80}é🙂"), user("a\u{2028}b\r\nc\n\n d\n")]);
    // What transformers renders.
    for (source, expected) in [
        (
            "{{ messages[0].content | tojson(ensure_ascii=true) }}",
            "\"\\u007f\\u0080\\u00e9\\ud83d\\ude42\"",
        ),
        ("{{ messages[0].content | tojson }}", "\"\u{7f}\u{80}é🙂\""),
        ("{{ messages[1].content | indent(2) }}|", "a\n  b\n  c\n\n   d\n|"),
        ("{{ messages[1].content | indent(2, true, true) }}|", "  a\n  b\n  c\n  \n   d\n  |"),
        ("{{ '' | indent(2, true) }}|", "  |"),
    ] {
        assert_eq!(render(source, &input).unwrap().text(), expected, "{source}");
    }
}

#[test]
fn unknown_names_are_told_with_their_line() {
    let input = ChatInput::new(vec![user("x")]);
    for (source, name, line) in [
        ("a\n{{ messages | shuffle }}", "shuffle", 2),
        ("{{ 1 }}\n\n{{ fetch('x') }}", "fetch", 3),
        ("{% if messages is wobbly %}{% endif %}", "wobbly", 1),
        ("\n{{ 'x'.encode() }}", "encode", 2),
    ] {
        let error = render(source, &input).unwrap_err();
        assert!(matches!(error, ChatTemplateError::Unknown { .. }), "{source}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(name) && text.contains(&format!("line {line}")), "{text}");
    }
    let error = ChatTemplate::new("a\n{% if %}").unwrap_err();
    assert!(matches!(error, ChatTemplateError::Syntax { line: Some(2), .. }), "{error:?}");
    let error = render("{{ raise_exception('no ' ~ messages[0].role) }}", &input).unwrap_err();
    assert!(matches!(&error, ChatTemplateError::Raised { message } if message == "no user"));
    for source in ["{{ messages.x.y }}", "{{ 1 + 'a' }}", "{{ strftime_now('%Q') }}"] {
        let error = render(source, &input).unwrap_err();
        assert!(matches!(error, ChatTemplateError::Failed { line: Some(1), .. }), "{error:?}");
    }
}

#[test]
fn templates_that_do_not_end_are_stopped() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}\
                  {% endfor %}{% endfor %}{% endfor %}";
    let error = render(source, &ChatInput::new(vec![user("x")])).unwrap_err();
    assert!(matches!(error, ChatTemplateError::Failed { .. }), "{error}");
    let nested = "{% set ns = namespace(x=[]) %}{% for a in range(5000) %}\
                  {% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}";
    let error = render(nested, &ChatInput::new(vec![user("x")])).unwrap_err();
    assert!(error.to_string().contains("nested"), "{error}");
}

#[test]
fn messages_have_to_be_objects() {
    for messages in [vec![], vec![json!("hi")]] {
        let error = render("x", &ChatInput::new(messages)).unwrap_err();
        assert!(matches!(error, ChatTemplateError::Messages { .. }), "{error}");
    }
}

#[test]
fn templates_are_found_where_models_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let texts = |input: &ChatInput| {
        let template = ChatTemplate::load(folder.path()).unwrap().unwrap();
        template.render(input, &control()).map(RenderedChat::into_text)
    };
    assert!(ChatTemplate::load(folder.path()).unwrap().is_none());
    let input = ChatInput::new(vec![user("x")]);
    let with_tools = ChatInput { tools: Some(vec![]), ..input.clone() };

    write("chat_template.json", r#"{"chat_template": "third"}"#);
    assert_eq!(texts(&input).unwrap(), "third");
    let config = json!({
        "chat_template": [
            { "name": "default", "template": "second {{ eos_token }}" },
            { "name": "tool_use", "template": "tools {{ bos_token }}" },
        ],
        "eos_token": { "content": "</s>", "lstrip": false },
    });
    write("tokenizer_config.json", &config.to_string());
    write("special_tokens_map.json", r#"{"bos_token": "<s>", "eos_token": "old"}"#);
    assert_eq!(texts(&input).unwrap(), "second </s>");
    assert_eq!(texts(&with_tools).unwrap(), "tools <s>");
    let unknown = ChatInput { template: Some("rag".to_owned()), ..input.clone() };
    let error = texts(&unknown).unwrap_err();
    assert_eq!(error.to_string(), "use chat template `rag`; known are default, tool_use");
    write("chat_template.jinja", "first\n");
    assert_eq!(texts(&with_tools).unwrap(), "first");
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    write("additional_chat_templates/rag.jinja", "by documents");
    assert_eq!(texts(&unknown).unwrap(), "by documents");

    std::fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    for bad in ["{", r#"{"chat_template": 3}"#, r#"{"chat_template": [{"name": "x"}]}"#] {
        write("tokenizer_config.json", bad);
        let error = ChatTemplate::load(folder.path()).unwrap_err();
        assert!(matches!(error, ChatTemplateError::File { .. }), "{bad}: {error}");
    }
}

#[test]
fn arguments_in_strings_become_objects() {
    let call = |arguments: Value| json!({ "function": { "name": "f", "arguments": arguments } });
    let mut input = ChatInput::new(vec![json!({
        "role": "assistant",
        "tool_calls": [call(json!("{\"a\": 1}")), call(json!("[1")), { "arguments": "{}" }],
    })]);
    input.parse_tool_arguments();
    let calls = &input.messages[0]["tool_calls"];
    assert_eq!(calls[0]["function"]["arguments"], json!({ "a": 1 }));
    assert_eq!(calls[1]["function"]["arguments"], json!("[1"));
    assert_eq!(calls[2]["arguments"], json!({}));
}

const APPENDING: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n\
                         {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

#[test]
fn what_the_assistant_wrote_is_found_message_by_message() {
    let template = ChatTemplate::new(APPENDING).unwrap();
    let messages = vec![user("a"), assistant("b"), assistant(""), user("c"), assistant("é")];
    let (chat, spans) = template.assistant_spans(&ChatInput::new(messages), &control()).unwrap();
    let found: Vec<&str> = spans.iter().map(|span| &chat.text()[span.clone()]).collect();
    assert_eq!(found, ["b<|im_end|>\n", "<|im_end|>\n", "é<|im_end|>\n"]);

    // Old reasoning left out: the text before a message is not how the text with it starts.
    let forgetting = "{% for m in messages %}[{{ m.role }}]{{ m.content if loop.last else \
                      m.content.split('#')[-1] }}{% endfor %}\
                      {% if add_generation_prompt %}[assistant]{% endif %}";
    let messages = vec![user("a"), assistant("thought#b"), user("c"), assistant("d")];
    let template = ChatTemplate::new(forgetting).unwrap();
    let error = template.assistant_spans(&ChatInput::new(messages), &control()).unwrap_err();
    let ChatTemplateError::NotAppending { message: 1, at, before, after } = &error else {
        panic!("{error}");
    };
    assert_eq!((*at, &**before, &**after), (18, "thought#b", "b[user]c[assistant]d"));
}

fn any_content() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        2 => any::<String>(),
        2 => "[<|>imendstrot_/\\[\\]INS]{0,12}",
        2 => proptest::sample::select(CONTROL.to_vec()).prop_map(str::to_owned),
        1 => "[\u{e000}-\u{e003}]{0,3}",
    ];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_content_becomes_a_control_token(contents in proptest::collection::vec(any_content(), 1..5)) {
        let template = ChatTemplate::new(APPENDING).unwrap();
        let control = control();
        let messages: Vec<Value> = contents.iter().map(|content| user(content)).collect();
        let chat = template.render(&ChatInput::new(messages), &control).unwrap();
        let expected: String = contents
            .iter()
            .map(|content| format!("<|im_start|>user\n{content}<|im_end|>\n"))
            .chain(["<|im_start|>assistant\n".to_owned()])
            .collect();
        prop_assert_eq!(chat.text(), &expected);
        // What is left are the template's own marks, in its order.
        let (mut start, mut found) = (0, Vec::new());
        while let Some((token, range)) = control.find(chat.text(), start..expected.len()) {
            let is_content = chat.is_content(range.start);
            let first = chat.text()[range.start..].chars().next().unwrap().len_utf8();
            start = if is_content { range.start + first } else { range.end };
            if !is_content {
                found.push(token);
            }
        }
        let mut wanted = [0, 1].repeat(contents.len());
        wanted.push(0);
        prop_assert_eq!(found, wanted);
    }
}
