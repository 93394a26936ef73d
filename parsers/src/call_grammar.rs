//! Calls in a syntax as a grammar, whose arguments keep to the schemas of the tools.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use spar_core::{GrammarSource, ToolSpec};

use crate::MAX_CALLS;
use crate::json::to_line;

/// What an answer may consist of that is held to calls of the tools that are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallRules {
    /// Calls in an answer, at the most; 1 to 128. Default 1.
    pub max_calls: usize,
    /// Where words may stand. Default nowhere.
    pub words: CallWords,
}

/// Where words may stand in an answer that is held to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallWords {
    /// Nowhere: an answer is calls alone.
    #[default]
    Nowhere,
    /// Before the first call, such as thoughts.
    Before,
    /// Before the first call, or in place of all calls.
    Instead,
}

impl Default for CallRules {
    fn default() -> Self {
        Self { max_calls: 1, words: CallWords::default() }
    }
}

/// Reads well behind "hold an answer to".
impl fmt::Display for CallRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = if self.max_calls == 1 { "call" } else { "calls" };
        let words = match self.words {
            CallWords::Nowhere => "without words",
            CallWords::Before => "behind words",
            CallWords::Instead => "or words in their place",
        };
        write!(f, "{} {calls} {words}", self.max_calls)
    }
}

impl CallRules {
    /// Every setting that is outside its range.
    pub fn problems(&self) -> Vec<String> {
        match self.max_calls {
            1..=MAX_CALLS => Vec::new(),
            found => vec![format!("max_calls is {found}, allowed are 1 to {MAX_CALLS}")],
        }
    }
}

/// How a syntax writes calls whose arguments are a JSON object.
pub(crate) struct CallForm {
    /// What stands before the first call.
    pub(crate) before: &'static str,
    /// What stands before the name of the tool, which is a JSON string.
    pub(crate) open: &'static str,
    /// What stands between name and arguments.
    pub(crate) between: &'static str,
    /// What stands behind the arguments.
    pub(crate) close: &'static str,
    /// What stands between two calls; absent where there is only one.
    pub(crate) next: Option<&'static str>,
    /// What words cannot hold, since calls begin with it; absent where words and calls cannot be told apart.
    pub(crate) mark: Option<&'static str>,
}

impl CallForm {
    /// The texts that the syntax writes for calls of `tools` under `rules`; none where there are no tools, or where the
    /// syntax does not have what the rules allow.
    ///
    /// JSON stands on one line with a space behind commas and colons, as the syntax writes it. Arguments that a schema
    /// does not name are left out unless it says that it takes others.
    pub(crate) fn grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        if tools.is_empty() || (rules.max_calls > 1 && self.next.is_none()) {
            return None;
        }
        let quoted = |text: &str| Value::from(text).to_string();
        let first = format!("{}{}", self.before, self.open);
        let mut grammar = String::new();
        let rest = match self.next {
            Some(next) if rules.max_calls > 1 => {
                let more = format!("{next}{}", self.open);
                format!(" ({} body){{0,{}}}", quoted(&more), rules.max_calls - 1)
            }
            _ => String::new(),
        };
        let mut line = |text: String| {
            writeln!(grammar, "{text}").expect("memory takes every text");
        };
        match (rules.words, self.mark) {
            (CallWords::Nowhere, _) => line(format!("start: {} body{rest}", quoted(&first))),
            (_, None) => return None,
            (words, Some(mark)) => {
                // The words up to the mark and the mark are one token of the lexer, which ends at the first mark.
                let behind = first.strip_prefix(mark)?;
                let alone = if words == CallWords::Instead { " | WORDS" } else { "" };
                let behind = match behind {
                    "" => String::new(),
                    behind => format!("{} ", quoted(behind)),
                };
                line(format!("start: head {behind}body{rest}{alone}"));
                let pattern = mark.replace('|', "\\|").replace('/', "\\/");
                line(format!("head[lazy]: /(?s:.)*{pattern}/"));
                if words == CallWords::Instead {
                    line(format!("WORDS: /(?s:.+)/ & ~/(?s:.*){pattern}(?s:.*)/"));
                }
            }
        }
        let names: Vec<String> = (0..tools.len()).map(|index| format!("tool_{index}")).collect();
        line(format!("body: ({}) {}", names.join(" | "), quoted(self.close)));
        for (name, tool) in names.iter().zip(tools) {
            let before = format!("{}{}", to_line(&tool.name), self.between);
            let schema = strict(&tool.parameters);
            line(format!("{name}: {} %json {schema}", quoted(&before)));
        }
        Some(GrammarSource::lark(grammar))
    }
}

/// The schema of arguments as a grammar takes it: on one line, without what it does not name.
fn strict(parameters: &Value) -> Value {
    let mut schema: Map<String, Value> = parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    let written =
        json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " });
    schema.insert("x-guidance".to_owned(), written);
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActionParser, open_parser, parser_registry};

    fn tools() -> [ToolSpec; 2] {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        [ToolSpec::new("add", "", schema), ToolSpec::new("end", "", json!({}))]
    }

    #[test]
    fn a_grammar_tells_tools_rules_and_syntaxes_apart() {
        let parser = |name: &str| open_parser(name).unwrap();
        let of = |parser: &dyn ActionParser, max_calls, words| {
            parser.call_grammar(&tools(), CallRules { max_calls, words })
        };
        let hermes = parser("hermes");
        let Some(GrammarSource::Lark { grammar }) = of(&*hermes, 1, CallWords::Nowhere) else {
            panic!()
        };
        assert!(grammar.contains(r#"tool_0: "\"add\", \"arguments\": " %json"#), "{grammar}");
        assert!(grammar.contains(r#""additionalProperties":false"#), "{grammar}");
        let mut all: Vec<GrammarSource> = Vec::new();
        for words in [CallWords::Nowhere, CallWords::Before, CallWords::Instead] {
            all.extend([1, 3].map(|max_calls| of(&*hermes, max_calls, words).unwrap()));
        }
        all.push(of(&*parser("llama3_json"), 1, CallWords::Nowhere).unwrap());
        all.push(of(&*parser("json_object"), 1, CallWords::Nowhere).unwrap());
        for (index, grammar) in all.iter().enumerate() {
            assert!(!all[..index].contains(grammar));
        }
        assert_eq!(of(&*parser("json_object"), 2, CallWords::Nowhere), None);
        assert_eq!(of(&*parser("llama3_json"), 1, CallWords::Before), None);
        assert_eq!(of(&*parser("plain"), 1, CallWords::Nowhere), None);
    }

    #[test]
    fn without_tools_there_are_no_calls() {
        for row in parser_registry().iter() {
            assert_eq!(
                (row.open.open)().call_grammar(&[], CallRules::default()),
                None,
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn numbers_of_calls_are_bounded() {
        let problems = |max_calls| CallRules { max_calls, ..CallRules::default() }.problems();
        assert!(problems(1).is_empty() && problems(128).is_empty());
        assert!(problems(0)[0].contains("1 to 128") && !problems(129).is_empty());
    }
}
