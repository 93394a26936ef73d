//! Renders conversations by chat templates, for `scripts/compare_chat_templates.py`.
//!
//! ```text
//! cargo run -p spar-text --example render_chats < REQUESTS > ANSWERS
//! ```
//!
//! A request is a line of JSON: `template`, `tokens` (such as `bos_token`), `control` (control
//! tokens), `now` (seconds since 1970), and the conversation (`messages`, `tools`, `documents`,
//! `add_generation_prompt`, `variables`). The answer has `text`, and with
//! `generated` what is between `{% generation %}` tags, or `error`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use spar_text::chat_template::{ChatInput, ChatTemplate, ControlTokens};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut last: Option<(String, ChatTemplate)> = None;
    for line in std::io::stdin().lock().lines() {
        let mut request: Value = serde_json::from_str(&line?)?;
        let source = request["template"].as_str().ok_or("`template` is no string")?.to_owned();
        // Requests for one template come in a row.
        let kept = last.take().filter(|(known, _)| *known == source);
        let parsed = match kept {
            Some((_, template)) => Ok(template),
            None => ChatTemplate::new(&source),
        };
        let answer = match parsed {
            Err(error) => json!({ "error": error.to_string() }),
            Ok(mut template) => {
                let answer = render(&mut template, &mut request)?;
                last = Some((source, template));
                answer
            }
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn render(template: &mut ChatTemplate, request: &mut Value) -> Result<Value, Box<dyn Error>> {
    for (name, text) in request["tokens"].as_object().into_iter().flatten() {
        template.set_token(name, text.as_str().ok_or("a token is no string")?);
    }
    let control = request["control"].as_array().into_iter().flatten();
    let control = control.filter_map(Value::as_str).map(str::to_owned);
    let control = ControlTokens::new(control)?;
    let mut list = |name: &str| match request[name].take() {
        Value::Array(values) => Some(values),
        _ => None,
    };
    let (messages, tools, documents) = (list("messages"), list("tools"), list("documents"));
    let input = ChatInput {
        messages: messages.unwrap_or_default(),
        tools,
        documents,
        add_generation_prompt: request["add_generation_prompt"] == true,
        variables: request["variables"].as_object().cloned().unwrap_or_default(),
        template: None,
        now: request["now"].as_u64().map(|now| SystemTime::UNIX_EPOCH + Duration::from_secs(now)),
    };
    Ok(match template.render(&input, &control) {
        Ok(chat) => {
            let generated: Vec<&str> =
                chat.generated().iter().map(|range| &chat.text()[range.clone()]).collect();
            json!({ "text": chat.text(), "generated": generated })
        }
        Err(error) => json!({ "error": error.to_string() }),
    })
}
