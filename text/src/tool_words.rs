//! Tools and calls in words, for models whose chat template has no place for them: those of Qwen 2.5.

use serde_json::Value;

/// The words of a system message that offer tools, given as JSON objects
/// (`{"type": "function", "function": {...}}`).
pub fn offer(tools: impl IntoIterator<Item = Value>) -> String {
    let signatures: Vec<String> = tools.into_iter().map(|tool| tool.to_string()).collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with \
         function signatures within <tools></tools> XML tags:\n<tools>\n{}\n</tools>\n\nFor each function call, \
         return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>",
        signatures.join("\n")
    )
}

/// A call as Hermes models write it.
pub fn call(name: &str, arguments: &Value) -> String {
    let call = serde_json::json!({ "name": name, "arguments": arguments });
    format!("<tool_call>\n{call}\n</tool_call>")
}

/// What came of a call.
pub fn result(text: &str) -> String {
    format!("<tool_response>\n{text}\n</tool_response>")
}
