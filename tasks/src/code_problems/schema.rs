//! How benchmarks write their problems.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::livecodebench;
use crate::graders::{CallCase, StreamCase, UnitTests};
use crate::{CodeInterpreter, CodeTask};

/// What solutions of online judges are used to find imported.
pub(super) const IMPORTS: &str = "import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys\n\
    from bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n\
    from math import *\nfrom typing import *\n";

/// How a benchmark writes its problems, an object on every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// The parameters of a [`CodeTask`], with `id` and `tags` where there are any.
    Own,
    /// HumanEval: `task_id`, `prompt`, `canonical_solution`, `test`, `entry_point`.
    HumanEval,
    /// MBPP: `task_id`, `text` or `prompt`, `code`, `test_list`, `test_setup_code` or `test_imports`.
    Mbpp,
    /// APPS: `question`, `solutions`, `input_output`, `starter_code`, `difficulty`.
    Apps,
    /// TACO: as APPS, and `raw_tags`, `source`.
    Taco,
    /// LiveCodeBench: `question_content`, `public_test_cases`, `private_test_cases`, `starter_code`, `metadata`.
    LiveCodeBench,
    /// Guru's programs: `data_source` beginning with `codegen`, `prompt` or `raw_prompt`, `reward_model.ground_truth`, `extra_info`.
    Guru,
}

/// A problem as it was read.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) id: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) task: CodeTask,
}

/// The id of a problem, by whatever name; the rest of the line is passed over.
#[derive(Debug, Deserialize)]
pub(super) struct IdOnly {
    #[serde(default, alias = "task_id", alias = "question_id", alias = "problem_id")]
    id: Option<Value>,
    #[serde(flatten)]
    _rest: std::collections::HashMap<String, IgnoredAny>,
}

impl IdOnly {
    pub(super) fn id(&self) -> Option<String> {
        self.id.as_ref().and_then(id_of)
    }
}

fn id_of(id: &Value) -> Option<String> {
    let text = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("n{number}"),
        _ => return None,
    };
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let is_number = plain.bytes().all(|byte| byte.is_ascii_digit());
    match plain.is_empty() {
        true => None,
        false if is_number => Some(format!("n{plain}")),
        false => Some(plain),
    }
}

impl Schema {
    /// All that benchmarks publish.
    pub const PUBLISHED: [Self; 6] =
        [Self::HumanEval, Self::Mbpp, Self::LiveCodeBench, Self::Taco, Self::Apps, Self::Guru];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "code",
            Self::HumanEval => "humaneval",
            Self::Mbpp => "mbpp",
            Self::Apps => "apps",
            Self::Taco => "taco",
            Self::LiveCodeBench => "livecodebench",
            Self::Guru => "guru-code",
        }
    }

    /// The published schema of a first line; absent where it is of none.
    pub fn of(line: &Map<String, Value>) -> Option<Self> {
        Self::PUBLISHED.into_iter().find(|schema| schema.is_of(line))
    }

    fn is_of(self, line: &Map<String, Value>) -> bool {
        let has = |keys: &[&str]| keys.iter().all(|key| line.contains_key(*key));
        match self {
            Self::Own => has(&["prompt"]),
            Self::HumanEval => has(&["prompt", "test", "entry_point"]),
            Self::Mbpp => has(&["test_list", "code"]),
            Self::LiveCodeBench => has(&["question_content", "public_test_cases"]),
            Self::Taco => has(&["question", "input_output", "raw_tags"]),
            Self::Apps => has(&["question", "input_output"]) && !has(&["raw_tags"]),
            Self::Guru => {
                has(&["reward_model"]) && line.get("data_source").is_some_and(is_of_programs)
            }
        }
    }

    /// The problem on a line.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn read(self, line: Map<String, Value>) -> Result<Problem, String> {
        let problem = match self {
            Self::Own => own(line)?,
            Self::HumanEval => humaneval(read(line)?),
            Self::Mbpp => mbpp(read(line)?)?,
            Self::Apps | Self::Taco => apps(read(line)?)?,
            Self::LiveCodeBench => live_code_bench(read(line)?)?,
            Self::Guru => guru(read(line)?)?,
        };
        let problems = problem.task.problems();
        if problems.is_empty() { Ok(problem) } else { Err(problems.join("; ")) }
    }
}

fn read<T: serde::de::DeserializeOwned>(line: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(line)).map_err(|error| error.to_string())
}

fn problem(id: Option<&Value>, tags: Vec<String>, prompt: String, tests: UnitTests) -> Problem {
    let task = CodeTask {
        prompt,
        answer: None,
        tests: Some(tests),
        solution: None,
        interpreter: CodeInterpreter::default(),
        metadata: Map::new(),
    };
    Problem { id: id.and_then(id_of), tags, task }
}

fn own(mut line: Map<String, Value>) -> Result<Problem, String> {
    let id = line.remove("id");
    let tags = match line.remove("tags") {
        None => Vec::new(),
        Some(tags) => serde_json::from_value(tags).map_err(|error| format!("`tags`: {error}"))?,
    };
    Ok(Problem { id: id.as_ref().and_then(id_of), tags, task: read(line)? })
}

#[derive(Debug, Deserialize)]
struct HumanEval {
    task_id: Option<Value>,
    prompt: String,
    #[serde(default)]
    canonical_solution: Option<String>,
    test: String,
    entry_point: String,
}

fn humaneval(found: HumanEval) -> Problem {
    let HumanEval { task_id, prompt, canonical_solution, test, entry_point } = found;
    let asked = format!(
        "Complete this function. Answer with the whole program in a block that is fenced by ```python.\n\n\
         ```python\n{}\n```",
        prompt.trim_end()
    );
    let tests = UnitTests::Asserts {
        // What the prompt defines is there for a program that is only the function.
        prelude: stub(&prompt),
        setup: stub(&prompt),
        tests: vec![test],
        entry_point: Some(entry_point),
    };
    let mut read = problem(task_id.as_ref(), Vec::new(), asked, tests);
    read.task.solution = canonical_solution.map(|rest| format!("{prompt}{rest}"));
    read
}

/// A prompt that ends within a function, so that it can be run: functions without a body get one.
fn stub(prompt: &str) -> String {
    format!("{}\n    pass\n", prompt.trim_end())
}

#[derive(Debug, Deserialize)]
struct Mbpp {
    task_id: Option<Value>,
    #[serde(alias = "prompt")]
    text: String,
    code: String,
    test_list: Vec<String>,
    #[serde(default)]
    test_setup_code: String,
    #[serde(default)]
    test_imports: Vec<String>,
}

fn mbpp(found: Mbpp) -> Result<Problem, String> {
    let Mbpp { task_id, text, code, test_list, test_setup_code, test_imports } = found;
    let first = test_list.first().ok_or("`test_list` is empty")?;
    let asked = format!(
        "{}\nAnswer with the program in a block that is fenced by ```python. A test of it:\n\n```python\n{}\n```",
        text.trim(),
        first.trim()
    );
    let setup = test_imports.iter().map(String::as_str).chain([&*test_setup_code]);
    let setup = setup.collect::<Vec<_>>().join("\n");
    let tests =
        UnitTests::Asserts { prelude: String::new(), setup, tests: test_list, entry_point: None };
    let mut read = problem(task_id.as_ref(), Vec::new(), asked, tests);
    read.task.solution = Some(code.replace("\r\n", "\n"));
    Ok(read)
}

#[derive(Debug, Deserialize)]
struct Apps {
    #[serde(default, alias = "problem_id")]
    id: Option<Value>,
    question: String,
    #[serde(default)]
    starter_code: Option<String>,
    #[serde(default)]
    solutions: Value,
    input_output: Value,
    #[serde(default)]
    difficulty: Option<String>,
}

#[derive(Debug, Deserialize)]
struct InputOutput {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    #[serde(default)]
    fn_name: Option<String>,
}

fn apps(found: Apps) -> Result<Problem, String> {
    let Apps { id, question, starter_code, solutions, input_output, difficulty } = found;
    let InputOutput { inputs, outputs, fn_name } =
        nested(input_output).map_err(|error| format!("`input_output`: {error}"))?;
    if inputs.len() != outputs.len() {
        let (inputs, outputs) = (inputs.len(), outputs.len());
        return Err(format!("`input_output` has {inputs} inputs and {outputs} outputs"));
    }
    let pairs = inputs.into_iter().zip(outputs);
    let tests = match &fn_name {
        None => {
            let case = |(input, output)| StreamCase { input: text(input), output: text(output) };
            UnitTests::Streams { cases: pairs.map(case).collect() }
        }
        Some(function) => {
            let case = |(input, output)| match input {
                Value::Array(arguments) => {
                    // The right one itself, or the first of a list of one, as the benchmark's own checker takes it.
                    let first = match &output {
                        Value::Array(items) => items.first().cloned(),
                        _ => None,
                    };
                    let results = std::iter::once(output).chain(first).collect();
                    Ok(CallCase { arguments, results })
                }
                _ => Err("`input_output` has arguments that are no list".to_owned()),
            };
            let cases: Result<Vec<CallCase>, String> = pairs.map(case).collect();
            let (function, prelude) = (function.clone(), IMPORTS.to_owned());
            UnitTests::Calls { function, prelude, cases: cases? }
        }
    };
    let asked = asked(&question, starter_code.as_deref(), fn_name.is_some());
    let solutions: Vec<String> = nested(solutions).unwrap_or_default();
    let mut read = problem(id.as_ref(), difficulty.into_iter().collect(), asked, tests);
    read.task.solution = solutions.into_iter().next();
    Ok(read)
}

/// JSON, or a text that is JSON.
fn nested<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    match value {
        Value::String(text) => serde_json::from_str(&text),
        value => serde_json::from_value(value),
    }
}

/// A text, or its lines.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(lines) => lines.into_iter().map(text).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

fn asked(question: &str, starter: Option<&str>, is_called: bool) -> String {
    let how = match (starter.map(str::trim).filter(|it| !it.is_empty()), is_called) {
        (Some(starter), _) => format!("Begin with this code:\n\n```python\n{starter}\n```"),
        (None, true) => "Write the function that is asked for.".to_owned(),
        (None, false) => "Read from standard input and write to standard output.".to_owned(),
    };
    format!(
        "{}\n\nAnswer with the whole program in a block that is fenced by ```python. {how}",
        question.trim()
    )
}

#[derive(Debug, Deserialize)]
struct LiveCodeBench {
    question_id: Option<Value>,
    #[serde(default)]
    question_title: String,
    question_content: String,
    #[serde(default)]
    starter_code: Option<String>,
    #[serde(default)]
    difficulty: Option<String>,
    #[serde(default)]
    platform: Option<String>,
    public_test_cases: String,
    #[serde(default)]
    private_test_cases: String,
    #[serde(default)]
    metadata: Value,
}

fn live_code_bench(found: LiveCodeBench) -> Result<Problem, String> {
    let function = match nested::<Value>(found.metadata) {
        Ok(metadata) => metadata["func_name"].as_str().map(str::to_owned),
        Err(_) => None,
    };
    let (public, private) = (&found.public_test_cases, &found.private_test_cases);
    let tests = livecodebench::tests(public, private, function.as_deref())?;
    let is_called = matches!(tests, UnitTests::Calls { .. });
    let question = format!("{}\n\n{}", found.question_title.trim(), found.question_content);
    let asked = asked(&question, found.starter_code.as_deref(), is_called);
    let tags = found.difficulty.into_iter().chain(found.platform).collect();
    Ok(problem(found.question_id.as_ref(), tags, asked, tests))
}

/// Whether a source of data is one of Guru's domain of programs.
fn is_of_programs(source: &Value) -> bool {
    source.as_str().is_some_and(|it| it.starts_with("codegen_") || it == "codegen")
}

#[derive(Debug, Deserialize)]
struct Guru {
    data_source: Value,
    #[serde(default)]
    prompt: Value,
    #[serde(default)]
    raw_prompt: Option<String>,
    reward_model: GuruJudge,
    #[serde(default)]
    extra_info: GuruExtra,
}

#[derive(Debug, Deserialize)]
struct GuruJudge {
    ground_truth: Value,
}

#[derive(Debug, Default, Deserialize)]
struct GuruExtra {
    #[serde(default)]
    reference: Option<String>,
    #[serde(default)]
    prefix: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GuruTests {
    /// Python code with asserts.
    #[serde(default)]
    functional: Option<String>,
    #[serde(default)]
    inputs: Vec<Value>,
    #[serde(default)]
    outputs: Vec<Value>,
}

fn guru(found: Guru) -> Result<Problem, String> {
    let Guru { data_source, prompt, raw_prompt, reward_model, extra_info } = found;
    if !is_of_programs(&data_source) {
        return Err(format!(
            "`data_source` is {data_source}, which is none of programs (`codegen`): keep other rows in a file of their own"
        ));
    }
    let asked = crate::published::asked_of(&prompt, raw_prompt.as_deref())
        .ok_or("`prompt` is none, and neither is `raw_prompt`")?;
    let GuruTests { functional, inputs, outputs } = nested(reward_model.ground_truth)
        .map_err(|error| format!("`reward_model.ground_truth`: {error}"))?;
    if inputs.len() != outputs.len() {
        let (inputs, outputs) = (inputs.len(), outputs.len());
        return Err(format!(
            "`reward_model.ground_truth` has {inputs} inputs and {outputs} outputs"
        ));
    }
    let prelude = extra_info.prefix.unwrap_or_default();
    let tests = match functional {
        Some(test) => UnitTests::Asserts {
            prelude: prelude.clone(),
            setup: String::new(),
            tests: vec![test],
            entry_point: None,
        },
        None => {
            let pairs = inputs.into_iter().zip(outputs);
            let case = |(input, output)| StreamCase { input: text(input), output: text(output) };
            UnitTests::Streams { cases: pairs.map(case).collect() }
        }
    };
    let asked = format!(
        "{}\n\nAnswer with the whole program in a block that is fenced by ```python.",
        asked.trim()
    );
    let mut read = problem(None, Vec::new(), asked, tests);
    let solution = extra_info.reference.filter(|solution| !solution.trim().is_empty());
    read.task.solution = solution.map(|solution| solution.replace("\r\n", "\n"));
    Ok(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// A line of every published schema, of own making.
    fn lines() -> Vec<(Schema, Map<String, Value>)> {
        let stdin = r#"[{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]"#;
        vec![
            (
                Schema::HumanEval,
                object(json!({
                    "task_id": "HumanEval/0", "entry_point": "add",
                    "prompt": "def add(a, b):\n    \"\"\"Adds.\"\"\"\n", "canonical_solution": "    return a + b\n",
                    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
                })),
            ),
            (
                Schema::Mbpp,
                object(json!({
                    "task_id": 2, "text": "Write a function to add.", "code": "def add(a, b):\r\n  return a + b",
                    "test_list": ["assert add(1, 2) == 3"], "test_setup_code": "", "challenge_test_list": [],
                })),
            ),
            (
                Schema::Apps,
                object(json!({
                    "id": 3, "question": "Add.", "solutions": "[\"print(sum(map(int, input().split())))\"]",
                    "input_output": "{\"inputs\": [\"1 2\\n\"], \"outputs\": [\"3\\n\"]}", "difficulty": "interview",
                    "url": "", "starter_code": "",
                })),
            ),
            (
                Schema::Taco,
                object(json!({
                    "question": "Add.", "starter_code": "class Solution:\n    def add(self, a, b):\n", "solutions": "[]",
                    "input_output": "{\"fn_name\": \"add\", \"inputs\": [[1, 2]], \"outputs\": [[3]]}",
                    "difficulty": "EASY", "raw_tags": "[]", "source": "leetcode",
                })),
            ),
            (
                Schema::LiveCodeBench,
                object(json!({
                    "question_title": "Sum", "question_content": "Add.", "platform": "atcoder", "question_id": "abc_a",
                    "difficulty": "easy", "starter_code": "", "public_test_cases": stdin, "private_test_cases": "[]",
                    "metadata": "{}",
                })),
            ),
            (
                Schema::Guru,
                object(json!({
                    "data_source": "codegen__mbpp", "prompt": [], "raw_prompt": "Write add.", "ability": "codegen",
                    "reward_model": { "style": "rule", "ground_truth": "{\"functional\": \"assert add(1, 2) == 3\\n\"}" },
                    "extra_info": { "reference": "def add(a, b):\n    return a + b", "index": 0 },
                })),
            ),
        ]
    }

    #[test]
    fn programs_of_guru_are_called_or_read_and_write() {
        let (_, mut row) = lines().remove(5);
        let tests = |row: &Map<String, Value>| {
            Schema::Guru.read(row.clone()).map(|it| it.task.tests.unwrap())
        };
        assert!(matches!(tests(&row).unwrap(), UnitTests::Asserts { .. }));
        row["extra_info"]["prefix"] = json!("import math");
        row["prompt"] = json!([{ "role": "user", "content": "Add them." }]);
        let read = Schema::Guru.read(row.clone()).unwrap();
        assert!(read.task.prompt.starts_with("Add them.\n") && read.task.solution.is_some());
        let UnitTests::Asserts { prelude, .. } = read.task.tests.unwrap() else { panic!() };
        assert_eq!(prelude, "import math");
        row["reward_model"]["ground_truth"] =
            json!("{\"inputs\": [\"1\\n\"], \"outputs\": [\"2\\n\"]}");
        assert!(
            matches!(tests(&row).unwrap(), UnitTests::Streams { cases } if cases[0].output == "2\n")
        );
        for (wrong, part) in [
            ("{\"inputs\": [], \"outputs\": [1]}", "0 inputs"),
            ("{}", "has none"),
            ("x", "ground_truth"),
        ] {
            row["reward_model"]["ground_truth"] = json!(wrong);
            let told = tests(&row).unwrap_err();
            assert!(told.contains(part), "{told}");
        }
        row["data_source"] = json!("math__deepscaler");
        assert!(tests(&row).unwrap_err().contains("codegen"));
    }

    #[test]
    fn every_published_schema_is_told_apart_and_read() {
        let lines = lines();
        assert_eq!(lines.len(), Schema::PUBLISHED.len());
        for (schema, line) in lines {
            assert_eq!(Schema::of(&line), Some(schema));
            let Problem { task, .. } = schema.read(line).unwrap();
            assert_eq!(task.tests.unwrap().len(), 1, "{}", schema.name());
            assert!(task.prompt.contains("fenced by ```python"));
        }
        assert_eq!(Schema::of(&object(json!({ "prompt": "1 + 1?", "answer": 2 }))), None);
    }

    #[test]
    fn what_is_right_is_read_as_the_checkers_take_it() {
        let (_, taco) = lines().remove(3);
        let Some(UnitTests::Calls { function, cases, .. }) =
            Schema::Taco.read(taco).unwrap().task.tests
        else {
            panic!()
        };
        assert_eq!((&*function, &cases[0].results[..]), ("add", &[json!([3]), json!(3)][..]));
        let (_, humaneval) = lines().remove(0);
        let read = Schema::HumanEval.read(humaneval).unwrap();
        assert_eq!(read.id.as_deref(), Some("HumanEval-0"));
        assert!(read.task.solution.unwrap().ends_with("return a + b\n"));
        let (_, mbpp) = lines().remove(1);
        assert_eq!(Schema::Mbpp.read(mbpp).unwrap().id.as_deref(), Some("n2"));
    }

    #[test]
    fn broken_problems_are_told() {
        let (_, mut apps) = lines().remove(2);
        apps["input_output"] = json!("{\"inputs\": [1], \"outputs\": []}");
        assert!(Schema::Apps.read(apps.clone()).unwrap_err().contains("1 inputs and 0 outputs"));
        apps["input_output"] = json!("");
        assert!(Schema::Apps.read(apps).unwrap_err().contains("input_output"));
        let (_, mut mbpp) = lines().remove(1);
        mbpp["test_list"] = json!([]);
        assert!(Schema::Mbpp.read(mbpp).unwrap_err().contains("test_list"));
    }
}
