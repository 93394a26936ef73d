//! One question, in any of the forms that are known.

use serde_json::{Map, Value};

use crate::{Document, FieldError};

/// A question with what is right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionRecord {
    /// Its name in its file, where it has one.
    pub id: Option<String>,
    /// What is asked.
    pub question: String,
    /// The answers any of which is right; at least one.
    pub answers: Vec<String>,
    /// The titles of what one has to read for it, each once, in the order in which the file names them; empty where it
    /// does not tell.
    pub supporting: Vec<String>,
    /// What stands beside it to be read.
    pub paragraphs: Vec<Document>,
    /// What kind of question it is, as the file has it; may be empty.
    pub tags: Vec<String>,
}

/// A form in which questions are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionFormat {
    /// HotpotQA, arXiv 1809.09600: `_id`, `question`, `answer`, `supporting_facts`, `context`; in Parquet `id`, and lists of each part
    /// in place of pairs (`{"title": [..], "sentences": [[..]]}`).
    HotpotQa,
    /// 2WikiMultihopQA, arXiv 2011.01060: as HotpotQA, with `evidences`.
    TwoWiki,
    /// MuSiQue, arXiv 2108.00573: `question`, `answer`, `answer_aliases`, `paragraphs`.
    Musique,
    /// Natural Questions as open questions, arXiv 1906.00300: `question`, `answer` being a list.
    NqOpen,
    /// Search-R1's own, arXiv 2503.09516: `question`, `golden_answers`.
    SearchR1,
}

impl QuestionFormat {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::HotpotQa, Self::TwoWiki, Self::Musique, Self::NqOpen, Self::SearchR1];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::HotpotQa => "hotpotqa",
            Self::TwoWiki => "2wikimultihopqa",
            Self::Musique => "musique",
            Self::NqOpen => "nq-open",
            Self::SearchR1 => "search-r1",
        }
    }

    /// The form of a row, by the fields that it has.
    pub fn detect(row: &Map<String, Value>) -> Option<Self> {
        let has = |name| row.contains_key(name);
        if !has("question") {
            return None;
        }
        if has("golden_answers") {
            Some(Self::SearchR1)
        } else if has("paragraphs") {
            Some(Self::Musique)
        } else if has("context") && (has("_id") || has("supporting_facts")) {
            Some(if has("evidences") { Self::TwoWiki } else { Self::HotpotQa })
        } else if row.get("answer").is_some_and(Value::is_array) {
            Some(Self::NqOpen)
        } else {
            None
        }
    }

    /// What a row says.
    ///
    /// # Errors
    ///
    /// [`FieldError`] names the field that is absent, empty or of another type.
    pub fn read(self, row: &Map<String, Value>) -> Result<QuestionRecord, FieldError> {
        let question = text(row, "question")?.to_owned();
        let record = QuestionRecord { question, ..QuestionRecord::default() };
        match self {
            Self::HotpotQa | Self::TwoWiki => Ok(QuestionRecord {
                id: Some(text(row, if row.contains_key("_id") { "_id" } else { "id" })?.to_owned()),
                answers: vec![text(row, "answer")?.to_owned()],
                supporting: supporting_facts(row)?,
                paragraphs: context(row)?,
                tags: ["type", "level"].iter().filter_map(|name| tag(row, name)).collect(),
                ..record
            }),
            Self::Musique => musique(row, record),
            Self::NqOpen => Ok(QuestionRecord { answers: texts(row, "answer")?, ..record }),
            Self::SearchR1 => Ok(QuestionRecord {
                id: row.get("id").map(|_| text(row, "id").map(str::to_owned)).transpose()?,
                answers: texts(row, "golden_answers")?,
                ..record
            }),
        }
    }
}

/// The text of a field, which says something.
fn text<'a>(row: &'a Map<String, Value>, name: &str) -> Result<&'a str, FieldError> {
    match row.get(name) {
        None => Err(FieldError::absent(name)),
        Some(Value::String(text)) if text.trim().is_empty() => {
            Err(FieldError::new(name, "is empty"))
        }
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(FieldError::wrong_type(name, "a string", other)),
    }
}

fn list<'a>(row: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], FieldError> {
    match row.get(name) {
        None => Err(FieldError::absent(name)),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(FieldError::wrong_type(name, "a list", other)),
    }
}

/// The texts of a field: a list of at least one, or one by itself.
fn texts(row: &Map<String, Value>, name: &str) -> Result<Vec<String>, FieldError> {
    if row.get(name).is_some_and(Value::is_string) {
        return Ok(vec![text(row, name)?.to_owned()]);
    }
    let items = list(row, name)?;
    if items.is_empty() {
        return Err(FieldError::new(name, "is empty"));
    }
    let each = items.iter().enumerate().map(|(place, item)| {
        let path = || format!("{name}[{place}]");
        match item {
            Value::String(text) if text.trim().is_empty() => {
                Err(FieldError::new(path(), "is empty"))
            }
            Value::String(text) => Ok(text.clone()),
            other => Err(FieldError::wrong_type(path(), "a string", other)),
        }
    });
    each.collect()
}

fn tag(row: &Map<String, Value>, name: &str) -> Option<String> {
    row.get(name)?.as_str().filter(|tag| !tag.is_empty()).map(str::to_owned)
}

/// The pairs of a field: a list of them, or, as columns have them, an object with the list of the first and that of the second.
fn pairs(
    row: &Map<String, Value>,
    name: &str,
    [first, second]: [&str; 2],
) -> Result<Vec<(Value, Value)>, FieldError> {
    let Some(Value::Object(columns)) = row.get(name) else {
        let pair = |pair: &Value| (pair[0].clone(), pair[1].clone());
        return Ok(list(row, name)?.iter().map(pair).collect());
    };
    let wrong = |detail: &str| FieldError::new(format!("{name}.{second}"), detail);
    let told = |part| list(columns, part).map_err(|_| wrong("or what it stands beside is no list"));
    let (firsts, seconds) = (told(first)?, told(second)?);
    if firsts.len() != seconds.len() {
        return Err(wrong("is of another length than what it stands beside"));
    }
    Ok(firsts.iter().cloned().zip(seconds.iter().cloned()).collect())
}

/// `[[title, sentence], ...]`: the titles, each once.
fn supporting_facts(row: &Map<String, Value>) -> Result<Vec<String>, FieldError> {
    let mut titles: Vec<String> = Vec::new();
    let facts = pairs(row, "supporting_facts", ["title", "sent_id"])?;
    for (place, (title, _)) in facts.iter().enumerate() {
        let title = title.as_str().ok_or_else(|| {
            FieldError::new(format!("supporting_facts[{place}]"), "is not [title, sentence]")
        })?;
        if !titles.iter().any(|known| known == title) {
            titles.push(title.to_owned());
        }
    }
    Ok(titles)
}

/// `[[title, [sentence, ...]], ...]`.
fn context(row: &Map<String, Value>) -> Result<Vec<Document>, FieldError> {
    let paragraph = |(place, (title, sentences)): (usize, &(Value, Value))| {
        let read = || {
            let sentences: Option<Vec<&str>> =
                sentences.as_array()?.iter().map(Value::as_str).collect();
            Some(document(title.as_str()?, sentences?.concat().trim()))
        };
        let wrong = || FieldError::new(format!("context[{place}]"), "is not [title, [sentences]]");
        read().ok_or_else(wrong)
    };
    pairs(row, "context", ["title", "sentences"])?.iter().enumerate().map(paragraph).collect()
}

fn musique(row: &Map<String, Value>, record: QuestionRecord) -> Result<QuestionRecord, FieldError> {
    if row.get("answerable").and_then(Value::as_bool) == Some(false) {
        let detail = "is false: such questions have no right answer; take the release without them (musique_ans)";
        return Err(FieldError::new("answerable", detail));
    }
    let mut answers = vec![text(row, "answer")?.to_owned()];
    if row
        .get("answer_aliases")
        .is_some_and(|aliases| aliases.as_array().is_none_or(|it| !it.is_empty()))
    {
        answers.extend(texts(row, "answer_aliases")?);
    }
    let mut paragraphs = Vec::new();
    let mut is_supporting = Vec::new();
    for (place, item) in list(row, "paragraphs")?.iter().enumerate() {
        let path = |name: &str| format!("paragraphs[{place}].{name}");
        let field = |name: &str| match item.get(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(FieldError::wrong_type(path(name), "a string", other)),
            None => Err(FieldError::absent(path(name))),
        };
        paragraphs.push(document(field("title")?, field("paragraph_text")?));
        is_supporting.push(item.get("is_supporting").and_then(Value::as_bool).unwrap_or(false));
    }
    // In the order in which the steps of the question need them.
    let steps = row.get("question_decomposition").and_then(Value::as_array);
    let of_steps =
        steps.into_iter().flatten().filter_map(|step| step.get("paragraph_support_idx")?.as_u64());
    let of_flags =
        is_supporting.iter().enumerate().filter(|(_, is)| **is).map(|(place, _)| place as u64);
    let mut supporting: Vec<String> = Vec::new();
    for place in of_steps.chain(of_flags) {
        let Some(paragraph) = paragraphs.get(place as usize) else {
            let detail = format!("names paragraph {place} of {}", paragraphs.len());
            return Err(FieldError::new("question_decomposition", detail));
        };
        if !supporting.contains(&paragraph.title) {
            supporting.push(paragraph.title.clone());
        }
    }
    let id = row.get("id").map(|_| text(row, "id").map(str::to_owned)).transpose()?;
    Ok(QuestionRecord { id, answers, supporting, paragraphs, ..record })
}

fn document(title: &str, text: &str) -> Document {
    Document { id: String::new(), title: title.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(row: Value) -> Result<QuestionRecord, String> {
        let row = row.as_object().unwrap();
        let format = QuestionFormat::detect(row).expect("it is of a known form");
        format.read(row).map_err(|error| format!("{}: {error}", format.name()))
    }

    fn hotpot() -> Value {
        json!({
            "_id": "5a8b57f25542995d1e6f1371", "question": "Who?", "answer": "yes", "type": "bridge", "level": "hard",
            "supporting_facts": [["A", 0], ["B", 1], ["A", 2]],
            "context": [["A", ["One.", " Two."]], ["B", ["Three."]]],
        })
    }

    #[test]
    fn every_form_is_read() {
        let record = read(hotpot()).unwrap();
        assert_eq!(record.id.as_deref(), Some("5a8b57f25542995d1e6f1371"));
        assert_eq!(
            (&*record.answers, &*record.supporting),
            (&["yes".to_owned()][..], &["A".to_owned(), "B".to_owned()][..])
        );
        assert_eq!(record.paragraphs[0], document("A", "One. Two."));
        assert_eq!(record.tags, ["bridge", "hard"]);
        let mut columns = hotpot();
        columns["id"] = columns.as_object_mut().unwrap().remove("_id").unwrap();
        columns["supporting_facts"] = json!({ "title": ["A", "B", "A"], "sent_id": [0, 1, 2] });
        columns["context"] =
            json!({ "title": ["A", "B"], "sentences": [["One.", " Two."], ["Three."]] });
        assert_eq!(read(columns.clone()).unwrap(), record);
        columns["context"]["title"] = json!(["A"]);
        let told = read(columns).unwrap_err();
        assert!(told.contains("`context.sentences` is of another length"), "{told}");
        let mut wiki = hotpot();
        wiki["evidences"] = json!([["A", "director", "B"]]);
        assert_eq!(
            QuestionFormat::detect(wiki.as_object().unwrap()),
            Some(QuestionFormat::TwoWiki)
        );
        assert!(read(wiki).is_ok());
        let musique = json!({
            "id": "2hop__1_2", "question": "Q?", "answer": "X", "answer_aliases": ["Y"], "answerable": true,
            "paragraphs": [
                { "idx": 0, "title": "A", "paragraph_text": "a", "is_supporting": true },
                { "idx": 1, "title": "B", "paragraph_text": "b", "is_supporting": true },
                { "idx": 2, "title": "C", "paragraph_text": "c", "is_supporting": false },
            ],
            "question_decomposition": [
                { "id": 1, "question": "q", "answer": "z", "paragraph_support_idx": 1 },
                { "id": 2, "question": "r #1", "answer": "X", "paragraph_support_idx": 0 },
            ],
        });
        let record = read(musique).unwrap();
        assert_eq!(
            (record.answers, record.supporting),
            (vec!["X".into(), "Y".into()], vec!["B".into(), "A".into()])
        );
        let record = read(json!({ "question": "q", "answer": ["a", "b"] })).unwrap();
        assert_eq!((record.id, record.answers.len()), (None, 2));
        let record =
            read(json!({ "id": "t_1", "question": "q", "golden_answers": ["a"], "metadata": {} }))
                .unwrap();
        assert_eq!(record.id.as_deref(), Some("t_1"));
        assert!(
            QuestionFormat::detect(json!({ "question": "q", "answer": "a" }).as_object().unwrap())
                .is_none()
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field() {
        let with = |name: &str, value: Value| {
            let mut row = hotpot();
            row[name] = value;
            read(row).unwrap_err()
        };
        assert_eq!(with("answer", json!(3)), "hotpotqa: `answer` is a number, must be a string");
        assert_eq!(with("question", json!(" ")), "hotpotqa: `question` is empty");
        assert!(
            with("supporting_facts", json!([["A", 0], 4])).contains("`supporting_facts[1]` is not")
        );
        assert!(
            with("context", json!([["A", "text"]]))
                .contains("`context[0]` is not [title, [sentences]]")
        );
        for (row, part) in [
            (json!({ "question": "q", "answer": [] }), "`answer` is empty"),
            (json!({ "question": "q", "answer": ["a", null] }), "`answer[1]` is null"),
            (
                json!({ "question": "q", "golden_answers": { "a": 1 } }),
                "`golden_answers` is an object",
            ),
            (
                json!({ "question": "q", "answer": "a", "paragraphs": [{ "title": "T" }] }),
                "`paragraphs[0].paragraph_text` is absent",
            ),
            (
                json!({ "question": "q", "answer": "a", "paragraphs": [], "answerable": false }),
                "`answerable` is false",
            ),
            (
                json!({ "question": "q", "answer": "a", "paragraphs": [], "question_decomposition": [{ "paragraph_support_idx": 9 }] }),
                "names paragraph 9 of 0",
            ),
        ] {
            let told = read(row).unwrap_err();
            assert!(told.contains(part), "{told}");
        }
    }
}
