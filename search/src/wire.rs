//! What is said between retrieval servers and those who ask them.
//!
//! `POST /retrieve` with `{"queries": ["..."], "topk": 3, "return_scores": true}` is answered with
//! `{"result": [[{"document": {"id": "0", "contents": "..."}, "score": 7.5}]]}`, a list for every query; without
//! `return_scores`, documents stand there by themselves. Source: Search-R1, `search_r1/search/retrieval_server.py`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Document, FieldError, Hit};

/// What a retrieval server is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetrieveRequest {
    /// What is searched for.
    pub queries: Vec<String>,
    /// How many documents are wanted for each; absent or 0: as many as the server thinks right.
    #[serde(default)]
    pub topk: Option<usize>,
    /// Whether scores are wanted. Default false.
    #[serde(default)]
    pub return_scores: bool,
}

/// The answer to a request, with what was found for every query of it.
pub fn answer(found: &[Vec<Hit>], return_scores: bool) -> Value {
    let told = |hit: &Hit| match return_scores {
        true => json!({ "document": hit.document.to_json(), "score": hit.score }),
        false => hit.document.to_json(),
    };
    let result: Vec<Vec<Value>> =
        found.iter().map(|hits| hits.iter().map(told).collect()).collect();
    json!({ "result": result })
}

/// Reads the answer to a request of `queries` queries for `k` documents each; of more documents, the first count. Documents need no
/// id: their place stands for it. Without a score, it is 0.
///
/// # Errors
///
/// [`FieldError`] names what is absent or of another type.
pub fn read_answer(answer: &[u8], queries: usize, k: usize) -> Result<Vec<Vec<Hit>>, FieldError> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|error| FieldError::new("the answer", format!("is no JSON: {error}")))?;
    let result = answer.get("result").ok_or_else(|| FieldError::absent("result"))?;
    let result = list(result, "result")?;
    if result.len() != queries {
        let detail = format!("has {} lists for {queries} queries", result.len());
        return Err(FieldError::new("result", detail));
    }
    let read = |(query, found): (usize, &Value)| {
        let path = format!("result[{query}]");
        let found = list(found, &path)?;
        let hits = found.iter().take(k).enumerate();
        hits.map(|(place, item)| read_hit(item, &format!("{path}[{place}]"), place)).collect()
    };
    result.iter().enumerate().map(read).collect()
}

fn list<'a>(value: &'a Value, path: &str) -> Result<&'a Vec<Value>, FieldError> {
    value.as_array().ok_or_else(|| FieldError::wrong_type(path, "a list", value))
}

fn read_hit(item: &Value, path: &str, place: usize) -> Result<Hit, FieldError> {
    let object = |value: &Value, path: &str| -> Result<Map<String, Value>, FieldError> {
        let found = value.as_object().cloned();
        found.ok_or_else(|| FieldError::wrong_type(path, "an object", value))
    };
    let outer = object(item, path)?;
    let (mut document, score) = match outer.get("document") {
        None => (outer, 0.0),
        Some(inner) => {
            let score = match outer.get("score") {
                None | Some(Value::Null) => 0.0,
                Some(score) => score.as_f64().ok_or_else(|| {
                    FieldError::wrong_type(format!("{path}.score"), "a number", score)
                })?,
            };
            (object(inner, &format!("{path}.document"))?, score)
        }
    };
    document.entry("id").or_insert_with(|| place.to_string().into());
    let document = Document::from_json(&document).map_err(|error| FieldError {
        field: format!("{path}.{}", error.field),
        detail: error.detail,
    })?;
    Ok(Hit { document: Arc::new(document), score: score as f32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(id: &str, contents: &str, score: f32) -> Hit {
        Hit { document: Arc::new(Document::from_contents(id, contents)), score }
    }

    #[test]
    fn answers_are_read_as_they_were_told() {
        let found = vec![vec![hit("7", "\"A\"\nb\nc", 2.5), hit("8", "D\ne", 0.25)], Vec::new()];
        let told = answer(&found, true).to_string();
        assert_eq!(read_answer(told.as_bytes(), 2, 3).unwrap(), found);
        assert_eq!(read_answer(told.as_bytes(), 2, 1).unwrap()[0].len(), 1);
        let bare = answer(&found, false).to_string();
        let read = read_answer(bare.as_bytes(), 2, 3).unwrap();
        assert_eq!((&read[0][0].document, read[0][0].score), (&found[0][0].document, 0.0));
    }

    /// The shapes of Search-R1's servers: rows of the corpus, stored rows without an id.
    #[test]
    fn the_shapes_of_other_servers_are_read() {
        let rows =
            br#"{"result": [[{"document": {"id": "3", "contents": "\"T\"\nx"}, "score": 12.5}]]}"#;
        assert_eq!(read_answer(rows, 1, 3).unwrap()[0], [hit("3", "\"T\"\nx", 12.5)]);
        let stored = br#"{"result": [[{"document": {"title": "T", "text": "x", "contents": "\"T\"\nx"}, "score": 1}]]}"#;
        assert_eq!(read_answer(stored, 1, 3).unwrap()[0], [hit("0", "\"T\"\nx", 1.0)]);
        let request: RetrieveRequest = serde_json::from_str(r#"{"queries": ["a"]}"#).unwrap();
        assert_eq!((request.topk, request.return_scores), (None, false));
    }

    #[test]
    fn wrong_answers_are_told_with_the_way_to_what_is_wrong() {
        for (answer, part) in [
            ("", "no JSON"),
            ("{}", "`result` is absent"),
            (r#"{"result": {}}"#, "`result` is an object"),
            (r#"{"result": []}"#, "has 0 lists for 1 queries"),
            (r#"{"result": [1]}"#, "`result[0]` is a number"),
            (r#"{"result": [[1]]}"#, "`result[0][0]` is a number"),
            (r#"{"result": [[{"document": 1}]]}"#, "`result[0][0].document` is a number"),
            (
                r#"{"result": [[{"document": {}, "score": 1}]]}"#,
                "`result[0][0].contents` is absent",
            ),
            (
                r#"{"result": [[{"document": {"contents": ""}, "score": "x"}]]}"#,
                "score` is a string",
            ),
        ] {
            let told = read_answer(answer.as_bytes(), 1, 3).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
        let deep = "[".repeat(100_000);
        assert!(read_answer(deep.as_bytes(), 1, 3).is_err());
    }
}
