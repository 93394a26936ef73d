//! The checker of the single-turn categories.

mod checker;
mod java;
mod javascript;
mod types;

use std::str::FromStr;

use serde_json::{Value as Json, json};
use spar_python::{Exception, Outcome, Value, from_json, is_json_shallow};

use checker::Checker;

/// The language whose functions an entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Python 3.
    Python,
    /// Java 8.
    Java,
    /// JavaScript.
    JavaScript,
}

impl Language {
    /// The language of a category.
    pub fn of_category(category: &str) -> Self {
        if category.contains("javascript") {
            Self::JavaScript
        } else if category.contains("java") {
            Self::Java
        } else {
            Self::Python
        }
    }

    /// What is put behind the descriptions of its functions.
    pub fn description_suffix(self) -> &'static str {
        match self {
            Self::Python => " Note that the provided function is in Python 3 syntax.",
            Self::Java => " Note that the provided function is in Java 8 SDK syntax.",
            Self::JavaScript => " Note that the provided function is in JavaScript syntax.",
        }
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "python" => Ok(Self::Python),
            "java" => Ok(Self::Java),
            "javascript" => Ok(Self::JavaScript),
            other => {
                Err(format!("there is no language `{other}`, known are python, java, javascript"))
            }
        }
    }
}

/// What the checker says of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleTurnVerdict {
    /// Whether it is right.
    pub is_valid: bool,
    /// The kind of the error, in the program's words.
    pub error_type: Option<String>,
    /// The errors in the program's words: texts, or for parallel calls what every call lacks.
    pub errors: Vec<Json>,
}

impl SingleTurnVerdict {
    fn valid() -> Self {
        Self { is_valid: true, error_type: None, errors: Vec::new() }
    }

    fn wrong(error_type: &str, error: impl Into<String>) -> Self {
        Self {
            is_valid: false,
            error_type: Some(error_type.to_owned()),
            errors: vec![Json::String(error.into())],
        }
    }

    /// As it is recorded: with the errors, or the validity alone.
    pub fn as_json(&self, with_errors: bool) -> Json {
        if with_errors {
            json!({"valid": self.is_valid, "error_type": self.error_type, "error": self.errors})
        } else {
            json!({ "valid": self.is_valid })
        }
    }
}

/// Checks the calls of an answer: a list of `{name: {parameter: value}}`, or nothing where none could be read.
///
/// The functions are those of the entry, the possible answers a list of `{name: {parameter: [accepted, ...]}}`. In the
/// categories of irrelevance any call is wrong, in those of relevance any call is right.
///
/// # Errors
///
/// What the program raises where an entry or an answer is not as it expects.
pub fn check_single_turn(
    category: &str,
    language: Language,
    functions: &Json,
    possible_answers: &Json,
    calls: &Json,
) -> Outcome<SingleTurnVerdict> {
    check_with_names(category, language, functions, possible_answers, calls, false)
}

/// As [`check_single_turn`] for native tool calls, in whose names underscores stand for dots.
///
/// # Errors
///
/// As [`check_single_turn`].
pub fn check_native(
    category: &str,
    language: Language,
    functions: &Json,
    possible_answers: &Json,
    calls: &Json,
) -> Outcome<SingleTurnVerdict> {
    check_with_names(category, language, functions, possible_answers, calls, true)
}

fn check_with_names(
    category: &str,
    language: Language,
    functions: &Json,
    possible_answers: &Json,
    calls: &Json,
    underscores: bool,
) -> Outcome<SingleTurnVerdict> {
    if category.contains("relevance") {
        let has_call = has_call(calls);
        if has_call != category.contains("irrelevance") {
            return Ok(SingleTurnVerdict::valid());
        }
        return Ok(if has_call {
            SingleTurnVerdict::wrong(
                "irrelevance_error:decoder_success",
                "Valid syntax. Successfully decode AST when it should not.",
            )
        } else {
            SingleTurnVerdict::wrong(
                "relevance_error:decoder_failed",
                "Invalid syntax. Failed to decode AST when it should have.",
            )
        });
    }
    let refuse =
        |what: &str| Exception::refused(format_args!("{what} is not as the release has it"));
    let is_read = |calls: &&Vec<Json>| calls.iter().all(|it| it.is_object() && is_json_shallow(it));
    let Some(calls) = calls.as_array().filter(is_read) else {
        return Ok(SingleTurnVerdict::wrong(
            "ast_decoder:decoder_failed",
            "Invalid syntax. Failed to decode AST.",
        ));
    };
    let functions = functions.as_array().ok_or_else(|| refuse("`function`"))?;
    let answers = possible_answers.as_array().ok_or_else(|| refuse("the possible answer"))?;
    let answer_values: Vec<Value> = answers.iter().map(from_json).collect();
    let call_values: Vec<Value> = calls.iter().map(from_json).collect();
    let checker = Checker { language, underscores };
    let described = |answer: &Value| -> Outcome<&Json> {
        let name = answer.as_dict().and_then(|answer| answer.keys().next()).and_then(Value::as_str);
        let found = functions.iter().find(|function| function["name"].as_str() == name);
        found.ok_or_else(|| refuse("the function of a possible answer"))
    };
    let wrong_count = |checker: &str| {
        SingleTurnVerdict::wrong(&format!("{checker}:wrong_count"), "Wrong number of functions.")
    };
    if category.contains("parallel") {
        if calls.len() != answers.len() {
            return Ok(wrong_count("parallel_function_checker_no_order"));
        }
        let mut matched: Vec<usize> = Vec::new();
        for (at, answer) in answer_values.iter().enumerate() {
            let function = described(answer)?;
            let mut errors = Vec::new();
            let mut found = None;
            for index in (0..calls.len()).filter(|index| !matched.contains(index)) {
                let verdict = checker.check(function, &call_values[index], answer)?;
                if verdict.is_valid {
                    found = Some(index);
                    break;
                }
                errors.push(json!({ format!("Model Result Index {index}"): {
                    "sub_error": verdict.errors,
                    "sub_error_type": verdict.error_type,
                    "model_output_item": calls[index],
                    "possible_answer_item": answers[at],
                }}));
            }
            let Some(found) = found else {
                let left: Vec<usize> =
                    (0..calls.len()).filter(|index| !matched.contains(index)).collect();
                let told = format!(
                    "Could not find a matching function among index {left:?} of model output for index {at} of possible answers."
                );
                errors.insert(0, Json::String(told));
                let error_type = "parallel_function_checker_no_order:cannot_find_match";
                return Ok(SingleTurnVerdict {
                    is_valid: false,
                    error_type: Some(error_type.to_owned()),
                    errors,
                });
            };
            matched.push(found);
        }
        return Ok(SingleTurnVerdict::valid());
    }
    if category.contains("multiple") {
        if calls.len() != answers.len() {
            return Ok(wrong_count("multiple_function_checker"));
        }
        let answer = answer_values.first().ok_or_else(|| refuse("the possible answer"))?;
        return checker.check(described(answer)?, &call_values[0], answer);
    }
    if calls.len() != 1 {
        return Ok(wrong_count("simple_function_checker"));
    }
    let answer = answer_values.first().ok_or_else(|| refuse("the possible answer"))?;
    let function = functions.first().ok_or_else(|| refuse("`function`"))?;
    checker.check(function, &call_values[0], answer)
}

fn has_call(calls: &Json) -> bool {
    match calls.as_array().map(Vec::as_slice) {
        None | Some([]) => false,
        Some([only]) => only.as_object().is_some_and(|call| !call.is_empty()),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_nest_too_deeply_are_none() {
        let mut deep = json!("x");
        for _ in 0..1000 {
            deep = json!([deep]);
        }
        let functions = json!([{ "name": "f", "parameters": {
            "properties": { "a": { "type": "any" } }, "required": ["a"] } }]);
        let answers = json!([{ "f": { "a": ["x"] } }]);
        let check = |a: Json| {
            let calls = json!([{ "f": { "a": a } }]);
            check_single_turn("simple_python", Language::Python, &functions, &answers, &calls)
        };
        assert!(check(json!("x")).unwrap().is_valid);
        let error_type = check(deep).unwrap().error_type;
        assert_eq!(error_type.as_deref(), Some("ast_decoder:decoder_failed"));
    }
}
