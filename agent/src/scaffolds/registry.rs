//! The scaffolds that have a name.

use spar_core::registry::{Axis, OptionSet, Row, Table};

use spar_envs::toolsets::{mini_texts, openhands};

use super::{Scaffold, ToolUse};

/// A scaffold that has a name.
pub type ScaffoldRow = Row<&'static Scaffold>;

const ROWS: &[ScaffoldRow] = &[
    Row {
        name: "plain",
        about: "What task and environment say, and nothing else; the first line of an answer is the action.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: &Scaffold::PLAIN,
    },
    Row {
        name: "react",
        about: "Thought, action and observation in turn; tools are described in words.",
        source: "ReAct, arXiv 2210.03629, section 2; words reconstructed",
        formula: "",
        options: OptionSet::NONE,
        open: &REACT,
    },
    Row {
        name: "tools",
        about: "Tools are offered, called and answered as the model's chat template lays them out.",
        source: "the tool use of chat templates; calls as Hermes 2 Pro and Qwen 2.5 and 3 write them",
        formula: "",
        options: OptionSet::NONE,
        open: &TOOLS,
    },
    Row {
        name: "search-r1",
        about: "A question answered by searches, in Search-R1's tags: thoughts are free, the first tag counts.",
        source: "Search-R1, arXiv 2503.09516, its program and template",
        formula: "",
        options: OptionSet::NONE,
        open: &SEARCH_R1,
    },
    Row {
        name: "retool",
        about: "Code between tags runs as soon as it is written, and its output is read in the same answer.",
        source: "ReTool, arXiv 2504.11536, section 3 and its prompt template; words reconstructed",
        formula: "",
        options: OptionSet::NONE,
        open: &RETOOL,
    },
    Row {
        name: "mini",
        about: "A shell that remembers nothing, called as a tool; what the agent prints at last is its patch. `mini:FILE` reads the original's configuration.",
        source: "mini-swe-agent 2.4.6, `config/benchmarks/swebench.yaml`",
        formula: "",
        options: OptionSet::NONE,
        open: &MINI,
    },
    Row {
        name: "mini-backticks",
        about: "As `mini`, with one command in a fenced block of every answer.",
        source: "mini-swe-agent 2.4.6, `config/benchmarks/swebench_backticks.yaml`",
        formula: "",
        options: OptionSet::NONE,
        open: &MINI_BACKTICKS,
    },
    Row {
        name: "mini-xml",
        about: "As `mini`, with one command in a tag of every answer.",
        source: "mini-swe-agent 2.4.6, `config/benchmarks/swebench_xml.yaml`",
        formula: "",
        options: OptionSet::NONE,
        open: &MINI_XML,
    },
    Row {
        name: "mini-v1",
        about: "As version 1 of `mini` had it: one command in a block ```bash of every answer.",
        source: "mini-swe-agent 1.17.5, `config/extra/swebench.yaml`",
        formula: "",
        options: OptionSet::NONE,
        open: &MINI_V1,
    },
    Row {
        name: "aci",
        about: "A bash that remembers, an editor of files, searches, and a submission that is looked over once.",
        source: "the tools of SWE-agent 1.1, `config/default.yaml`, in words of our own",
        formula: "",
        options: OptionSet::NONE,
        open: &ACI,
    },
    Row {
        name: "terminus",
        about: "Keys on a terminal, as JSON in every answer; the task is complete when that is said twice.",
        source: "Terminus 2 of harbor 0.26.0",
        formula: "",
        options: OptionSet::NONE,
        open: &TERMINUS,
    },
    Row {
        name: "openhands",
        about: "A bash that remembers and may go on while others wait, an editor of files, thoughts, and an end.",
        source: "OpenHands 0.62.0, its CodeActAgent; the task in words of our own",
        formula: "",
        options: OptionSet::NONE,
        open: &OPENHANDS,
    },
];

const MINI: Scaffold = Scaffold {
    version: 1,
    system: Some(mini_texts::CALLS_SYSTEM),
    format_error: Some(mini_texts::CALLS_FORMAT_ERROR),
    no_call: Some(mini_texts::NO_CALL),
    toolset: Some(r#"{"kind":"mini"}"#),
    max_format_errors: Some(3),
    parser: "hermes",
    tools: ToolUse::Native,
    max_turns: Some(250),
    max_cost: Some(3.0),
    ..Scaffold::PLAIN
};

const MINI_BACKTICKS: Scaffold = Scaffold {
    version: 1,
    system: Some(mini_texts::BACKTICKS_SYSTEM),
    format_error: Some(mini_texts::BACKTICKS_FORMAT_ERROR),
    toolset: Some(r#"{"kind":"mini","form":"backticks"}"#),
    max_format_errors: Some(3),
    parser: "mini_backticks",
    max_turns: Some(250),
    max_cost: Some(3.0),
    ..Scaffold::PLAIN
};

const MINI_XML: Scaffold = Scaffold {
    version: 1,
    system: Some(mini_texts::XML_SYSTEM),
    format_error: Some(mini_texts::XML_FORMAT_ERROR),
    toolset: Some(r#"{"kind":"mini","form":"xml"}"#),
    parser: "mini_xml",
    ..MINI_BACKTICKS
};

const MINI_V1: Scaffold = Scaffold {
    version: 1,
    system: Some(mini_texts::V1_SYSTEM),
    format_error: Some(mini_texts::V1_FORMAT_ERROR),
    toolset: Some(r#"{"kind":"mini","form":"v1"}"#),
    parser: "mini_v1",
    max_turns: Some(250),
    max_cost: Some(3.0),
    ..Scaffold::PLAIN
};

const ACI: Scaffold = Scaffold {
    version: 1,
    system: Some("You solve tasks at a computer by calls of tools."),
    toolset: Some(r#"{"kind":"aci"}"#),
    max_format_errors: Some(3),
    parser: "hermes",
    tools: ToolUse::Native,
    ..Scaffold::PLAIN
};

const TERMINUS: Scaffold = Scaffold {
    version: 1,
    // The original has no message of the system.
    system: Some(""),
    toolset: Some(r#"{"kind":"terminus"}"#),
    parser: "whole",
    ..Scaffold::PLAIN
};

const OPENHANDS: Scaffold = Scaffold {
    version: 1,
    system: Some(openhands::SYSTEM),
    no_call: Some(openhands::NO_CALL),
    toolset: Some(r#"{"kind":"openhands"}"#),
    parser: "hermes",
    tools: ToolUse::Native,
    max_turns: Some(100),
    ..Scaffold::PLAIN
};

const SEARCH_R1: Scaffold = Scaffold {
    version: 1,
    format_error: Some(
        "\nMy previous action is invalid. If I want to search, I should put the query between <search> and \
         </search>. If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try \
         again.\n",
    ),
    parser: "search_tags",
    ..Scaffold::PLAIN
};

const REACT: Scaffold = Scaffold {
    version: 1,
    system: Some(
        "{{ instruction }}{% if tools %}\n\nThese tools can be called:\n{% for tool in tools %}\
         {{ tool.name }}: {{ tool.description }} Its input: {{ tool.parameters }}\n{% endfor %}\
         \nIn every answer, think, then call one tool:\nThought: what you think\nAction: the tool's name\n\
         Action Input: its arguments as a JSON object\n\nWhen you are done:\nThought: what you think\n\
         Final Answer: finish{% else %}\n\nIn every answer, think, then act:\nThought: what you think\n\
         Action: what you do\n\nWhen you are done:\nThought: what you think\nFinal Answer: finish{% endif %}",
    ),
    observation: Some(
        "Observation: {% for result in results %}{{ result.text }}\n{% endfor %}{{ observation }}",
    ),
    format_error: Some(
        "No action could be read: {{ reason }}. Answer with a line that begins with `Thought:`, and \
         behind it one that begins with `Action:`.",
    ),
    parser: "react",
    tools: ToolUse::InWords,
    stop_action: Some("finish"),
    ..Scaffold::PLAIN
};

const TOOLS: Scaffold =
    Scaffold { version: 1, parser: "hermes", tools: ToolUse::Native, ..Scaffold::PLAIN };

const RETOOL: Scaffold = Scaffold {
    version: 1,
    system: Some(
        "{{ instruction }}{% if tools %}\n\nYou can run code while you think. Write it between `<code>` and `</code>`; \
         it runs at once, and what it writes comes next, between `<interpreter>` and `</interpreter>`. Its variables \
         are kept for the code behind it.{% for tool in tools %}\n{{ tool.description }}{% endfor %}\
         \nWhen you know the answer, write it in `\\boxed{}`.{% endif %}",
    ),
    observation: Some(
        "\n<interpreter>\n{% for result in results %}{{ result.text }}\n{% endfor %}{{ observation }}</interpreter>{{ '\\n' }}",
    ),
    format_error: Some(
        "No action could be read: {{ reason }}. Write code between `<code>` and `</code>`, or the answer in `\\boxed{}`.",
    ),
    parser: "code_tags",
    tools: ToolUse::InWords,
    in_turn: Some("</code>"),
    ..Scaffold::PLAIN
};

static SCAFFOLDS: Table<&'static Scaffold> = Table::with_details(
    Axis { name: "scaffolds", what: "scaffold", about: "How a task is put to a policy." },
    ROWS,
    |scaffold| scaffold.details(),
);

/// All scaffolds that have a name; a new one is one row here.
pub fn scaffold_registry() -> &'static Table<&'static Scaffold> {
    &SCAFFOLDS
}

#[cfg(test)]
mod tests {
    use spar_core::registry::AnyTable;

    use super::*;
    use crate::ScaffoldChoice;

    #[test]
    fn every_scaffold_can_be_used_with_its_own_parser() {
        for row in scaffold_registry().iter() {
            assert_eq!(row.problems(), [""; 0], "{}", row.name);
            let choice = ScaffoldChoice::named(row.name).unwrap();
            assert_eq!(choice.name(), row.name);
            assert_eq!(choice.scaffold().problems(choice.parser()), [""; 0], "{}", row.name);
        }
        let error = ScaffoldChoice::named("plane").unwrap_err().to_string();
        assert!(error.contains("`plane`") && error.contains("`plain`"), "{error}");
    }

    #[test]
    fn descriptions_tell_all_that_a_scaffold_consists_of() {
        let rows = scaffold_registry().describe();
        let react = rows.iter().find(|row| row.name == "react").unwrap();
        let detail = |name: &str| {
            let detail = react.details.iter().find(|detail| detail.name == name);
            detail.map(|detail| detail.value.clone()).unwrap()
        };
        assert_eq!(detail("system"), REACT.system.unwrap());
        assert_eq!(detail("instance"), serde_json::Value::Null);
        assert_eq!((detail("parser"), detail("version")), ("react".into(), 1.into()));
        // One for each field.
        assert_eq!(react.details.len(), 18);
    }
}
