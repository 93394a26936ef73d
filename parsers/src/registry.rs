//! The parsers that have a name.

use std::sync::Arc;

use spar_core::registry::{Axis, OptionSet, Row, RowError, Table};

use crate::ActionParser;
use crate::syntaxes::{
    Bracketed, CodeTags, DeepSeek, FencedBash, Hermes, JsonObject, Llama3Json, Mini, Mistral,
    Plain, PythonCalls, Qwen3Coder, React, SearchTags, Tags, Whole,
};

/// What a parser reads, and what makes it.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Whether it reads actions in words.
    pub has_text: bool,
    /// Whether it reads calls of tools.
    pub has_calls: bool,
    /// Makes it.
    pub open: fn() -> Arc<dyn ActionParser>,
}

/// A parser that has a name; its source tells which parser it was compared with.
pub type ParserRow = Row<Syntax>;

const AXIS: Axis =
    Axis { name: "parsers", what: "parser", about: "How actions are read in answers." };

const ROWS: &[ParserRow] = &[
    Row {
        name: "plain",
        about: "The first line that is not empty.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Plain) },
    },
    Row {
        name: "tags",
        about: "The last `<action>...</action>`.",
        source: "R1-style prompts; compared with `XMLParser` of verifiers",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Tags) },
    },
    Row {
        name: "search_tags",
        about: "The first `<search>...</search>` or `<answer>...</answer>`, as it stands; else all that was written.",
        source: "Search-R1, arXiv 2503.09516; compared with the expression of its program",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(SearchTags) },
    },
    Row {
        name: "bracketed",
        about: "The last `[...]`.",
        source: "the games of TextArena; compared with the pattern of one of them",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Bracketed) },
    },
    Row {
        name: "react",
        about: "Lines with `Thought:`, `Action:`, `Action Input:` and `Final Answer:`.",
        source: "ReAct (Yao et al. 2022); compared with `ReActSingleInputOutputParser` of LangChain",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(React) },
    },
    Row {
        name: "hermes",
        about: "`<tool_call>{\"name\": ..., \"arguments\": {...}}</tool_call>`.",
        source: "Hermes 2 Pro, Qwen 2.5 and 3; compared with `HermesDetector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(Hermes) },
    },
    Row {
        name: "qwen3_coder",
        about: "`<tool_call>` with `<function=...>` and `<parameter=...>`, typed by schemas.",
        source: "Qwen3-Coder; compared with `Qwen3CoderDetector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(Qwen3Coder) },
    },
    Row {
        name: "llama3_json",
        about: "An answer that is `{\"name\": ..., \"parameters\": {...}}`.",
        source: "Llama 3.1 to 3.3; compared with `Llama32Detector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(Llama3Json) },
    },
    Row {
        name: "mistral",
        about: "`[TOOL_CALLS]` with a JSON list of calls, or with names and arguments.",
        source: "Mistral's templates; compared with `MistralDetector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(Mistral) },
    },
    Row {
        name: "deepseek_v3",
        about: "Calls between special tokens, arguments in fenced JSON.",
        source: "DeepSeek V3 and R1; compared with `DeepSeekV3Detector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(DeepSeek::V3) },
    },
    Row {
        name: "deepseek_v31",
        about: "Calls between special tokens, arguments in bare JSON.",
        source: "DeepSeek V3.1; compared with `DeepSeekV31Detector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(DeepSeek::V31) },
    },
    Row {
        name: "fenced_bash",
        about: "The only block that is fenced as ```bash.",
        source: "SWE-agent and its kin; compared with `parse_regex_actions` of mini-swe-agent",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(FencedBash) },
    },
    Row {
        name: "mini_backticks",
        about: "The only block of a fence ```mswea_bash_command.",
        source: "mini-swe-agent 2.4.6, `action_regex` of its text-based models; compared with its expression",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Mini::BACKTICKS) },
    },
    Row {
        name: "mini_xml",
        about: "The only `<mswea_bash_command>...</mswea_bash_command>`.",
        source: "mini-swe-agent 2.4.6, `config/benchmarks/swebench_xml.yaml`; compared with its expression",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Mini::XML) },
    },
    Row {
        name: "mini_v1",
        about: "The only block of a fence ```bash, wherever it stands.",
        source: "mini-swe-agent 1.17.5, `action_regex` of its agent; compared with its expression",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Mini::V1) },
    },
    Row {
        name: "json_object",
        about: "A JSON object with `name` and `arguments`, or with `action`.",
        source: "agents that ask for JSON; compared with `parse_json_blob` of smolagents",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(JsonObject) },
    },
    Row {
        name: "python_calls",
        about: "A list of calls in Python's syntax, `[f(a=1), g()]`.",
        source: "Llama 3.2 and 4; compared with `PythonicDetector` of SGLang",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(PythonCalls) },
    },
    Row {
        name: "code_tags",
        about: "Code for an interpreter in `<code>...</code>` at the end of an answer; else words.",
        source: "ReTool, arXiv 2504.11536, its prompt template",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: true, open: || Arc::new(CodeTags) },
    },
    Row {
        name: "whole",
        about: "All that was written.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: Syntax { has_text: true, has_calls: false, open: || Arc::new(Whole) },
    },
];

static TABLE: Table<Syntax> = Table::new(AXIS, ROWS);

/// All parsers that have a name; a new one is one file and one row here.
pub fn parser_registry() -> &'static Table<Syntax> {
    &TABLE
}

/// Finds a parser by its name.
///
/// # Errors
///
/// [`RowError::Unknown`] when none has it.
pub fn open_parser(name: &str) -> Result<Arc<dyn ActionParser>, RowError> {
    parser_registry().find(name).map(|row| (row.open.open)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_is_found_by_its_name() {
        for (index, entry) in parser_registry().iter().enumerate() {
            assert_eq!(open_parser(entry.name).unwrap().name(), entry.name);
            let others = &parser_registry()[index + 1..];
            assert!(others.iter().all(|other| other.name != entry.name));
        }
        let Err(error) = open_parser("xml") else { panic!() };
        assert!(error.to_string().starts_with("find parser `xml`: known are `plain`, `tags`"));
    }
}
