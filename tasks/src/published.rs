//! Published schemas of rows of questions: which columns they have, and what becomes of a row.
//!
//! ```text
//!  first row's columns ──recognise──▶ QuestionSchema ──read──▶ PublishedQuestion { prompt, answer, grader, tags, metadata }
//! ```
//!
//! A file is of the schema whose columns its first row has; every further row is held to it, so that a row of another kind is an error
//! that tells its column. A new schema is one more of [`question_schemas`].

use serde_json::{Map, Value};
use spar_answers::{AnswerForm, last_answer};
use spar_search::questions::QuestionFormat;

use crate::ReferenceAnswer;
use crate::graders::{GraderConfig, letter};

/// How many choices a question may have: as many as there are letters.
const MAX_CHOICES: usize = 26;
const IN_A_BOX: &str = "Solve the problem of the first message. Put the final answer in \\boxed{}.";
const BEHIND_HASHES: &str = "Solve the problem of the first message. End with a line that has the answer, a number, behind `####`.";
const BY_LETTER: &str = "Choose the right answer to the question of the first message. End with: The answer is (letter).";

/// A row of a file.
pub type Columns = Map<String, Value>;

/// What a row asks, and what is right.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedQuestion {
    /// What is asked.
    pub prompt: String,
    /// What is right.
    pub answer: ReferenceAnswer,
    /// Who judges, where nobody else is named.
    pub grader: GraderConfig,
    /// Labels to report by, such as level and subject.
    pub tags: Vec<String>,
    /// What else is known, for graders and readers.
    pub metadata: Map<String, Value>,
}

/// A column that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}` {problem}")]
pub struct ColumnError {
    /// The column.
    pub column: String,
    /// What is wrong with it; reads well behind its name.
    pub problem: String,
}

impl ColumnError {
    fn new(column: &str, problem: impl Into<String>) -> Self {
        Self { column: column.to_owned(), problem: problem.into() }
    }
}

/// A published schema of rows.
#[derive(Debug, Clone, Copy)]
pub struct QuestionSchema {
    /// Its name.
    pub name: &'static str,
    /// Whose rows have it.
    pub about: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// How to act, in words.
    pub instruction: &'static str,
    /// Whether a row has its columns, by their names alone.
    matches: fn(&Columns) -> bool,
    read: fn(&Columns) -> Result<PublishedQuestion, ColumnError>,
}

impl QuestionSchema {
    /// What a row asks.
    ///
    /// # Errors
    ///
    /// [`ColumnError`] tells the first column that is missing or wrong.
    pub fn read(&self, row: &Columns) -> Result<PublishedQuestion, ColumnError> {
        (self.read)(row)
    }
}

/// All published schemas, in the order in which they are tried.
pub fn question_schemas() -> &'static [QuestionSchema] {
    SCHEMAS
}

/// The schema of a row; absent where it is of none.
pub fn recognise(row: &Columns) -> Option<&'static QuestionSchema> {
    SCHEMAS.iter().find(|schema| (schema.matches)(row))
}

const SCHEMAS: &[QuestionSchema] = &[
    QuestionSchema {
        name: "guru",
        about: "rows as verl trains on them, Guru's among them",
        source: "verl's data format; Guru, arXiv 2506.14965",
        instruction: IN_A_BOX,
        matches: |row| {
            // Search-R1's rows have these as well, and are questions over a corpus.
            ["data_source", "prompt", "reward_model"].iter().all(|it| row.contains_key(*it))
                && !row.contains_key("golden_answers")
        },
        read: verl,
    },
    QuestionSchema {
        name: "gpqa",
        about: "GPQA's questions with three wrong answers",
        source: "GPQA, arXiv 2311.12022",
        instruction: BY_LETTER,
        matches: |row| row.contains_key("Correct Answer"),
        read: gpqa,
    },
    QuestionSchema {
        name: "choices",
        about: "multiple choice: MMLU, MMLU-Pro, ARC, CommonsenseQA, MedQA",
        source: "MMLU, arXiv 2009.03300; ARC, arXiv 1803.05457; MMLU-Pro, arXiv 2406.01574",
        instruction: BY_LETTER,
        matches: |row| {
            row.contains_key("question") && CHOICES.iter().any(|it| row.contains_key(*it))
        },
        read: choices,
    },
    QuestionSchema {
        name: "math",
        about: "MATH, AIME, MATH-Beyond and the like: a problem with its answer or boxed solution",
        source: "MATH, arXiv 2103.03874; MATH-Beyond, arXiv 2510.11653",
        instruction: IN_A_BOX,
        matches: |row| {
            let has = |names: &[&str]| names.iter().any(|it| row.contains_key(*it));
            (has(&PROBLEM) && (has(&ANSWER) || has(&SOLUTION)))
                || (row.contains_key("question")
                    && row.get("answer").is_some_and(is_number)
                    && QuestionFormat::detect(row).is_none())
        },
        read: math,
    },
    QuestionSchema {
        name: "gsm8k",
        about: "GSM8K: a question, its answer behind ####",
        source: "GSM8K, arXiv 2110.14168",
        instruction: BEHIND_HASHES,
        matches: |row| {
            let answer = row.get("answer").and_then(Value::as_str);
            row.contains_key("question") && answer.is_some_and(|answer| answer.contains("####"))
        },
        read: gsm8k,
    },
];

const PROBLEM: [&str; 2] = ["problem", "Problem"];
/// What is asked, where an answer that is a number tells that it is mathematics: AIME 2025 has it so.
const ASKED: [&str; 3] = ["problem", "Problem", "question"];
const SOLUTION: [&str; 2] = ["solution", "Solution"];
const ANSWER: [&str; 2] = ["answer", "Answer"];
const CHOICES: [&str; 2] = ["choices", "options"];
const RIGHT: [&str; 6] = ["answerKey", "answer_idx", "answer_index", "answer", "label", "target"];

/// Whether an answer is a number, as a text perhaps.
fn is_number(answer: &Value) -> bool {
    answer.is_number()
        || answer.as_str().is_some_and(|it| it.trim().parse::<f64>().is_ok_and(f64::is_finite))
}

fn gsm8k(row: &Columns) -> Result<PublishedQuestion, ColumnError> {
    let prompt = text(row, "question")?.to_owned();
    let worked = text(row, "answer")?;
    let answer = last_answer(worked, AnswerForm::Hashes).filter(|answer| !answer.is_empty());
    let answer = answer.ok_or_else(|| ColumnError::new("answer", "has no answer behind `####`"))?;
    let mut metadata = Map::new();
    metadata.insert("solution".to_owned(), worked.into());
    Ok(question(prompt, answer, "math", Vec::new(), metadata))
}

fn math(row: &Columns) -> Result<PublishedQuestion, ColumnError> {
    let prompt = text(row, first(row, &ASKED))?.to_owned();
    let (mut tags, mut metadata) = (Vec::new(), Map::new());
    let worked = match first(row, &SOLUTION) {
        name if row.contains_key(name) => Some(text(row, name)?),
        _ => None,
    };
    let answer = match (ANSWER.iter().find(|it| row.contains_key(**it)), worked) {
        (Some(name), _) => plain(row, name)?,
        (None, Some(worked)) => {
            let boxed = last_answer(worked, AnswerForm::Boxed).filter(|it| !it.is_empty());
            boxed.ok_or_else(|| {
                ColumnError::new(first(row, &SOLUTION), "has no \\boxed{} with an answer")
            })?
        }
        (None, None) => {
            return Err(ColumnError::new("answer", "is missing, and so is `solution`"));
        }
    };
    if let Some(worked) = worked {
        metadata.insert("solution".to_owned(), worked.into());
    }
    for name in ["type", "subject", "level"] {
        match row.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(value)) => tags.push(tag(value)),
            Some(Value::Number(value)) => tags.push(format!("{name}-{value}")),
            Some(other) => return Err(ColumnError::new(name, wrong(other, "a text or a number"))),
        }
    }
    Ok(question(prompt, answer, "math", tags, metadata))
}

fn gpqa(row: &Columns) -> Result<PublishedQuestion, ColumnError> {
    let asked = text(row, "Question")?;
    let mut told = vec![text(row, "Correct Answer")?.trim().to_owned()];
    for number in 1..=3 {
        told.push(text(row, &format!("Incorrect Answer {number}"))?.trim().to_owned());
    }
    // The question decides where the right answer stands, so that it stands everywhere equally often, and always there.
    let hash = blake3::hash(asked.as_bytes());
    let right = usize::from(hash.as_bytes()[0]) % told.len();
    told.swap(0, right);
    let tags = match row.get("High-level domain").and_then(Value::as_str) {
        Some(domain) => vec![tag(domain)],
        None => Vec::new(),
    };
    choice_of(asked, &told, right, tags)
}

fn choices(row: &Columns) -> Result<PublishedQuestion, ColumnError> {
    let asked = match row.get("question") {
        // CommonsenseQA's first form nests the choices below the question.
        Some(Value::Object(nested)) => text(nested, "stem")?,
        _ => text(row, "question")?,
    };
    let column = first(row, &CHOICES);
    let (labels, told) = told_choices(row, column)?;
    if !(2..=MAX_CHOICES).contains(&told.len()) {
        let problem = format!("has {} choices, must have 2 to {MAX_CHOICES}", told.len());
        return Err(ColumnError::new(column, problem));
    }
    let Some(name) = RIGHT.iter().find(|it| row.get(**it).is_some_and(|it| !it.is_null())) else {
        return Err(ColumnError::new(
            "answer",
            format!("is missing (or one of {})", RIGHT.join(", ")),
        ));
    };
    let right = match &row[*name] {
        Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Value::String(said) => {
            let said = said.trim();
            let by_label = labels.iter().position(|label| label.eq_ignore_ascii_case(said));
            by_label.or_else(|| told.iter().position(|choice| choice == said))
        }
        other => return Err(ColumnError::new(name, wrong(other, "a number from 0 or a letter"))),
    };
    let right = right.filter(|right| *right < told.len()).ok_or_else(|| {
        ColumnError::new(
            name,
            format!("is {}, which is none of the {} choices", row[*name], told.len()),
        )
    })?;
    let tags =
        ["subject", "category"].iter().filter_map(|it| row.get(*it)?.as_str().map(tag)).collect();
    choice_of(asked, &told, right, tags)
}

/// What choices are called, and what they say.
fn told_choices(row: &Columns, column: &str) -> Result<(Vec<String>, Vec<String>), ColumnError> {
    let refuse = |value: &Value| ColumnError::new(column, wrong(value, "a list of texts"));
    let texts = |list: &[Value]| -> Result<Vec<String>, ColumnError> {
        let each = list.iter().map(|it| match it {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(refuse(other)),
        });
        each.collect()
    };
    match &row[column] {
        Value::Array(list)
            if list.iter().all(|it| it.get("label").is_some() && it.get("text").is_some())
                && !list.is_empty() =>
        {
            let of =
                |name: &str| texts(&list.iter().map(|it| it[name].clone()).collect::<Vec<_>>());
            Ok((of("label")?, of("text")?))
        }
        Value::Array(list) => {
            let told = texts(list)?;
            Ok(((0..told.len()).map(letter).collect(), told))
        }
        Value::Object(columns) => match (columns.get("label"), columns.get("text")) {
            (Some(Value::Array(labels)), Some(Value::Array(told)))
                if labels.len() == told.len() =>
            {
                Ok((texts(labels)?, texts(told)?))
            }
            _ => {
                let mut each: Vec<(&String, &Value)> = columns.iter().collect();
                each.sort_by_key(|(label, _)| label.as_str());
                let told = texts(&each.iter().map(|(_, it)| (*it).clone()).collect::<Vec<_>>())?;
                Ok((each.into_iter().map(|(label, _)| label.clone()).collect(), told))
            }
        },
        other => Err(refuse(other)),
    }
}

fn choice_of(
    asked: &str,
    told: &[String],
    right: usize,
    tags: Vec<String>,
) -> Result<PublishedQuestion, ColumnError> {
    let mut prompt = format!("{}\n", asked.trim());
    for (number, choice) in told.iter().enumerate() {
        prompt.push_str(&format!("\n{}) {}", letter(number), choice.trim()));
    }
    let mut metadata = Map::new();
    metadata.insert("choices".to_owned(), told.into());
    Ok(question(prompt, letter(right), "choice", tags, metadata))
}

fn verl(row: &Columns) -> Result<PublishedQuestion, ColumnError> {
    let source = text(row, "data_source")?;
    let raw = row.get("raw_prompt").and_then(Value::as_str);
    let prompt = asked_of(&row["prompt"], raw).ok_or_else(|| {
        let problem = match &row["prompt"] {
            Value::Array(_) => {
                "has no messages with a text `content` each, and there is no `raw_prompt`"
                    .to_owned()
            }
            other => wrong(other, "messages or a text"),
        };
        ColumnError::new("prompt", problem)
    })?;
    let judged = row["reward_model"].as_object().ok_or_else(|| {
        ColumnError::new("reward_model", wrong(&row["reward_model"], "an object"))
    })?;
    let right = judged.get("ground_truth").filter(|it| !it.is_null());
    let right = right.ok_or_else(|| ColumnError::new("reward_model.ground_truth", "is missing"))?;
    let domain = domain_of(source);
    let grader = match domain {
        "code" => {
            let problem = format!(
                "is `{source}`: its tests run programs, and a question has no sandbox; keep rows of code in a .jsonl file of their own, which is read as programs"
            );
            return Err(ColumnError::new("data_source", problem));
        }
        "logic" | "simulation" => "structured",
        _ => "math",
    };
    let answer = match right {
        Value::String(text) if grader == "math" => ReferenceAnswer::Text(text.trim().to_owned()),
        Value::Array(list) if grader == "math" && list.iter().all(Value::is_string) => {
            ReferenceAnswer::AnyOf(
                list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            )
        }
        Value::String(text) => ReferenceAnswer::Text(text.clone()),
        other => ReferenceAnswer::Text(other.to_string()),
    };
    let mut metadata = Map::new();
    metadata.insert("data_source".to_owned(), source.into());
    if let Some(extra) = row.get("extra_info").filter(|it| !it.is_null()) {
        metadata.insert("extra_info".to_owned(), extra.clone());
    }
    Ok(PublishedQuestion {
        prompt,
        answer,
        grader: GraderConfig::new(grader),
        tags: vec![domain.to_owned()],
        metadata,
    })
}

/// What a row of verl's asks: its `prompt`, messages or a text, or where that is empty its `raw_prompt`, as rows have it that are laid
/// out already.
pub(crate) fn asked_of(prompt: &Value, raw_prompt: Option<&str>) -> Option<String> {
    let asked = match prompt {
        Value::String(text) => text.clone(),
        Value::Array(messages) => {
            let contents: Option<Vec<&str>> =
                messages.iter().map(|message| message.get("content")?.as_str()).collect();
            contents?.join("\n\n")
        }
        Value::Null => String::new(),
        _ => return None,
    };
    let asked = if asked.trim().is_empty() { raw_prompt?.to_owned() } else { asked };
    (!asked.trim().is_empty()).then_some(asked)
}

/// Guru's domain of a source of data, which its first word tells; mathematics where none of them does.
fn domain_of(source: &str) -> &'static str {
    let first = source.split("__").next().unwrap_or_default();
    match first {
        "codegen" | "code" => "code",
        "logic" | "ordering_puzzle" | "zebra_puzzle" | "graph_logical" | "arcagi1" | "arcagi2"
        | "barc" => "logic",
        "simulation" | "codeio" => "simulation",
        "table" => "table",
        "stem" | "science" => "science",
        _ => "math",
    }
}

fn question(
    prompt: String,
    answer: String,
    grader: &str,
    tags: Vec<String>,
    metadata: Map<String, Value>,
) -> PublishedQuestion {
    let (answer, grader) = (ReferenceAnswer::Text(answer), GraderConfig::new(grader));
    PublishedQuestion { prompt, answer, grader, tags, metadata }
}

/// Of several names of a column the one that a row has, or else the first.
fn first<'a>(row: &Columns, names: &[&'a str]) -> &'a str {
    names.iter().find(|it| row.contains_key(**it)).unwrap_or(&names[0])
}

fn text<'a>(row: &'a Columns, column: &str) -> Result<&'a str, ColumnError> {
    match row.get(column) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(Value::String(_)) => Err(ColumnError::new(column, "is empty")),
        Some(other) => Err(ColumnError::new(column, wrong(other, "a text"))),
        None => Err(ColumnError::new(column, "is missing")),
    }
}

/// A text or a number.
fn plain(row: &Columns, column: &str) -> Result<String, ColumnError> {
    match row.get(column) {
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(Value::String(_)) => text(row, column).map(|text| text.trim().to_owned()),
        Some(other) => Err(ColumnError::new(column, wrong(other, "a text or a number"))),
        None => Err(ColumnError::new(column, "is missing")),
    }
}

fn wrong(found: &Value, wanted: &str) -> String {
    let is = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("is {is}, must be {wanted}")
}

/// A label of small letters without spaces.
fn tag(text: &str) -> String {
    text.to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(row: Value) -> (&'static str, Result<PublishedQuestion, ColumnError>) {
        let Value::Object(row) = row else { panic!("no object") };
        let schema = recognise(&row).unwrap();
        (schema.name, schema.read(&row))
    }

    #[test]
    fn rows_are_recognised_by_their_columns() {
        let cases = [
            (
                json!({"question": "Q?", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"}),
                "gsm8k",
                "2",
                "math",
            ),
            (
                json!({"problem": "P", "level": "Level 5", "type": "Number Theory", "solution": "so \\boxed{1}, then $\\boxed{\\frac12}$"}),
                "math",
                "\\frac12",
                "math",
            ),
            (
                json!({"ID": "2024-I-1", "Problem": "P", "Solution": "..", "Answer": 204}),
                "math",
                "204",
                "math",
            ),
            (
                json!({"problem": "P", "answer": "3", "subject": "Algebra", "level": 2, "unique_id": "u"}),
                "math",
                "3",
                "math",
            ),
            (
                json!({"question": "Q", "subject": "anatomy", "choices": ["a", "b", "c", "d"], "answer": 2}),
                "choices",
                "C",
                "choice",
            ),
            (
                json!({"question": "Q", "options": ["a", "b"], "answer": "B", "answer_index": 1}),
                "choices",
                "B",
                "choice",
            ),
            (
                json!({"question": "Q", "options": {"A": "x", "B": "y"}, "answer": "y", "answer_idx": "B"}),
                "choices",
                "B",
                "choice",
            ),
            (
                json!({"id": "1", "question": "Q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}),
                "choices",
                "B",
                "choice",
            ),
            (
                json!({"data_source": "math__dapo", "prompt": [{"role": "user", "content": "P"}], "reward_model": {"ground_truth": "7", "style": "rule"}, "extra_info": {"index": 0}}),
                "guru",
                "7",
                "math",
            ),
            (json!({"question": "Find n.", "answer": "070"}), "math", "070", "math"),
            (
                json!({"data_source": "math__orz", "prompt": [], "raw_prompt": "P", "reward_model": {"ground_truth": "7"}}),
                "guru",
                "7",
                "math",
            ),
            (
                json!({"data_source": "table__finqa", "prompt": "P", "reward_model": {"ground_truth": ["1", "one"]}}),
                "guru",
                "1",
                "math",
            ),
            (
                json!({"data_source": "simulation__codeio", "prompt": "P", "reward_model": {"ground_truth": {"a": 1}}}),
                "guru",
                "{\"a\":1}",
                "structured",
            ),
        ];
        for (row, name, answer, grader) in cases {
            let (schema, found) = read(row.clone());
            let found = found.unwrap();
            assert_eq!(
                (schema, found.answer.texts()[0].as_str(), found.grader.kind.as_str()),
                (name, answer, grader),
                "{row}"
            );
        }
        let (_, found) =
            read(json!({"question": "Where?", "choices": ["here", "there"], "answer": 0}));
        assert_eq!(found.unwrap().prompt, "Where?\n\nA) here\nB) there");
        let row = json!({"problem": "P", "level": "Level 5", "type": "Number Theory", "solution": "\\boxed{1}"});
        assert_eq!(read(row).1.unwrap().tags, ["number-theory", "level-5"]);
        let row = json!({"Question": "Why?", "Correct Answer": "so", "Incorrect Answer 1": "a", "Incorrect Answer 2": "b", "Incorrect Answer 3": "c"});
        let (name, found) = read(row);
        let (found, right) = (found.as_ref().unwrap(), found.as_ref().unwrap().answer.texts());
        assert!(name == "gpqa" && found.prompt.contains(&format!("{}) so", right[0])), "{found:?}");
        for other in [
            json!({"question": "Q", "answer": "Paris"}),
            // Questions over a corpus, whatever their answers and other columns.
            json!({"question": "Q", "answer": "1942", "paragraphs": []}),
            json!({"question": "Q", "golden_answers": ["a"], "data_source": "nq", "prompt": [], "reward_model": {}}),
        ] {
            assert!(recognise(other.as_object().unwrap()).is_none(), "{other}");
        }
    }

    #[test]
    fn wrong_columns_are_told() {
        for (row, told) in [
            (
                json!({"question": 3, "answer": "#### 2"}),
                "column `question` is a number, must be a text",
            ),
            (
                json!({"question": "Q", "answer": "####"}),
                "column `answer` has no answer behind `####`",
            ),
            (json!({"problem": "P", "solution": "no box"}), "column `solution` has no \\boxed{}"),
            (json!({"problem": " ", "answer": "1"}), "column `problem` is empty"),
            (
                json!({"problem": "P", "answer": [1]}),
                "column `answer` is a list, must be a text or a number",
            ),
            (json!({"problem": "P", "answer": "1", "level": []}), "column `level` is a list"),
            (
                json!({"question": "Q", "choices": ["a", "b"], "answer": 2}),
                "column `answer` is 2, which is none of the 2 choices",
            ),
            (
                json!({"question": "Q", "choices": ["a"], "answer": 0}),
                "column `choices` has 1 choices",
            ),
            (json!({"question": "Q", "choices": "ab", "answer": 0}), "column `choices` is a text"),
            (json!({"question": "Q", "choices": ["a", "b"]}), "column `answer` is missing"),
            (
                json!({"data_source": "math", "prompt": [{}], "reward_model": {}}),
                "column `prompt` has no messages with a text",
            ),
            (
                json!({"data_source": "math", "prompt": "P", "reward_model": {}}),
                "column `reward_model.ground_truth` is missing",
            ),
            (
                json!({"data_source": "codegen__taco", "prompt": "P", "reward_model": {"ground_truth": "x"}}),
                "a question has no sandbox",
            ),
            (
                json!({"Question": "Q", "Correct Answer": "a"}),
                "column `Incorrect Answer 1` is missing",
            ),
        ] {
            let error = read(row.clone()).1.unwrap_err().to_string();
            assert!(error.contains(told), "{row}: {error}");
        }
    }
}
