//! Chat templates: any source is a template or refused, any template renders or fails, and what stands
//! in messages never becomes a control token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use spar_policy::chat_template::{ChatInput, ChatTemplate, ControlTokens};

const PLAIN: &str = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";

fuzz_target!(|input: (String, Vec<String>)| {
    let (source, contents) = input;
    let control = ["<|im_start|>", "<|im_end|>"].map(str::to_owned);
    let control = ControlTokens::new(control).expect("two tokens are few");
    let message = |content: &String| json!({ "role": "user", "content": content });
    let messages: Vec<_> = contents.iter().map(message).collect();
    let num_messages = messages.len();
    let input = ChatInput::new(messages);
    if let Ok(template) = ChatTemplate::new(&source) {
        let _ = template.render(&input, &control);
    }
    let template = ChatTemplate::new(PLAIN).expect("it is well-formed");
    let Ok(chat) = template.render(&input, &control) else { return };
    let (mut start, mut found) = (0, 0);
    while let Some((_, range)) = control.find(chat.text(), start..chat.text().len()) {
        let is_content = chat.is_content(range.start);
        found += usize::from(!is_content);
        start = if is_content { range.start + 1 } else { range.end };
    }
    assert_eq!(found, 2 * num_messages);
});
