//! What the program says to a policy beside the user's words.

use serde_json::Value as Json;

/// Said when functions that were withheld are there.
pub const MORE_FUNCTIONS: &str =
    "I have updated some more functions you can choose from. What about now?";

const BEFORE_FUNCTIONS: &str = "You are an expert in composing functions.You are given a question and a set of possible functions. Based on the question, you will need to make one or more function/tool calls to achieve the purpose. If none of the functions can be used, point it out. If the given question lacks the parameters required by the function, also point it out.\n\nYou should only return the function calls in your response.\n\nIf you decide to invoke any of the function(s), you MUST put it in the format of [func_name1(params_name1=params_value1, params_name2=params_value2...), func_name2(params)].  You SHOULD NOT include any other text in the response.\n\nAt each turn, you should try your best to complete the tasks requested by the user within the current turn. Continue to output functions to call until you have fulfilled the user's request to the best of your ability. Once you have no more functions to call, the system will consider the current turn complete and proceed to the next turn or task.\n\nHere is a list of functions in json format that you can invoke.\n";

/// The system prompt for policies that call in words.
pub fn system_prompt(functions: &[Json]) -> String {
    format!("{BEFORE_FUNCTIONS}{}\n", functions_in_json(functions))
}

/// Functions as they are shown in a prompt: JSON, indented by four blanks, in ASCII.
pub fn functions_in_json(functions: &[Json]) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    serde::Serialize::serialize(functions, &mut serializer).expect("JSON is written to memory");
    let text = String::from_utf8(out).expect("JSON is text");
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

/// The results of calls for policies that call in words: the representation of a list of messages.
pub fn results_in_words(calls: &[String], results: &[String]) -> String {
    let text = spar_python::repr_str;
    let messages: Vec<String> = calls
        .iter()
        .zip(results)
        .map(|(call, result)| {
            format!("{{'role': 'tool', 'name': {}, 'content': {}}}", text(call), text(result))
        })
        .collect();
    format!("[{}]", messages.join(", "))
}
