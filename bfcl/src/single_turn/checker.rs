//! One call against one possible answer.

use serde_json::Value as Json;
use spar_python::{
    Dict, Exception, Outcome, Value, contains, equal, iterate, length, repr, repr_str, to_float,
};

use super::types::python_type;
use super::{Language, SingleTurnVerdict, java, javascript};

pub(super) struct Checker {
    pub(super) language: Language,
    /// Whether underscores stand for dots in names.
    pub(super) underscores: bool,
}

/// What the check of a type says.
struct Typed {
    verdict: SingleTurnVerdict,
    /// The value is a variable: it has the type of the accepted values, which is not the documented one.
    is_variable: bool,
}

impl Checker {
    /// Name, required parameters, then for each parameter in the order of the call whether it is known, its type and its
    /// value, then what may not be left out.
    pub(super) fn check(
        &self,
        function: &Json,
        call: &Value,
        answer: &Value,
    ) -> Outcome<SingleTurnVerdict> {
        let malformed = |what: &str| Exception::refused(format_args!("{what} is not as expected"));
        let answer = answer.as_dict().and_then(|answer| answer.values().next());
        let answer =
            answer.and_then(Value::as_dict).ok_or_else(|| malformed("a possible answer"))?;
        let mut name = function["name"].as_str().unwrap_or_default().to_owned();
        if self.underscores {
            name = name.replace('.', "_");
        }
        let Some(given) = call.as_dict().and_then(|call| call.get_str(&name)) else {
            return Ok(wrong(
                "simple_function_checker:wrong_func_name",
                format!("Function name {} not found in model output.", repr_str(&name)),
            ));
        };
        let given = given.as_dict().ok_or_else(|| malformed("the arguments of a call"))?;
        let required = function["parameters"]["required"].as_array();
        for parameter in required.into_iter().flatten().filter_map(Json::as_str) {
            if given.get_str(parameter).is_none() {
                return Ok(wrong(
                    "simple_function_checker:missing_required",
                    format!("Missing required parameter: {}.", repr_str(parameter)),
                ));
            }
        }
        for (parameter, value) in given.iter() {
            let shown = repr(parameter)?;
            let parameter = parameter.as_str().unwrap_or_default();
            let details = &function["parameters"]["properties"][parameter];
            let (Some(accepted), false) = (answer.get_str(parameter), details.is_null()) else {
                return Ok(wrong(
                    "simple_function_checker:unexpected_param",
                    format!("Unexpected parameter: {shown}."),
                ));
            };
            let verdict = self.check_value(&shown, value, details, accepted)?;
            if !verdict.is_valid {
                return Ok(verdict);
            }
        }
        for (parameter, accepted) in answer.iter() {
            if !given.contains(parameter)? && !contains(accepted, &Value::from(""))? {
                return Ok(wrong(
                    "simple_function_checker:missing_optional",
                    format!(
                        "Optional parameter {} not provided and not marked as optional.",
                        repr(parameter)?
                    ),
                ));
            }
        }
        Ok(SingleTurnVerdict::valid())
    }

    fn check_value(
        &self,
        parameter: &str,
        value: &Value,
        details: &Json,
        accepted: &Value,
    ) -> Outcome<SingleTurnVerdict> {
        let documented = details["type"].as_str().unwrap_or_default();
        let expected = python_type(self.language, documented)?;
        let nests = match self.language {
            Language::Python => matches!(documented, "array" | "tuple"),
            Language::Java | Language::JavaScript => {
                matches!(documented, "Array" | "ArrayList" | "array")
            }
        };
        let inner = match nests {
            true => {
                let inner = details["items"]["type"].as_str();
                Some(inner.ok_or_else(|| Exception::key_error(&Value::from("items")))?)
            }
            false => None,
        };
        let mut value = value.clone();
        if self.language != Language::Python {
            let Value::Str(text) = &value else {
                let kind = if self.language == Language::Java { "java" } else { "js" };
                return Ok(wrong(
                    &format!("type_error:{kind}"),
                    format!(
                        "Incorrect type for parameter {parameter}. Expected type String, got {}. Parameter value: {}.",
                        value.type_name(),
                        repr(&value)?
                    ),
                ));
            };
            value = match self.language {
                Language::Java => java::converted(text, documented, inner)?,
                _ => javascript::converted(text, documented, inner)?,
            };
        }
        let inner = inner.map(|inner| python_type(self.language, inner)).transpose()?;
        if documented == "tuple"
            && let Value::Tuple(items) = &value
        {
            value = Value::List(items.clone());
        }
        if self.language == Language::Python
            && documented == "float"
            && matches!(value, Value::Int(_))
        {
            value = Value::Float(to_float(&value)?);
        }
        let typed = check_type(parameter, &value, accepted, documented, expected, inner)?;
        if !typed.verdict.is_valid {
            return Ok(typed.verdict);
        }
        if !typed.is_variable {
            match (expected, inner) {
                ("dict", _) => return check_dict(&value, &iterate(accepted)?),
                ("list", Some("dict")) => return check_dicts(&value, accepted),
                ("str", _) => return check_text(parameter, &value, accepted),
                ("list", _) => return check_list(parameter, &value, accepted),
                _ => {}
            }
        }
        if contains(accepted, &value)? {
            return Ok(SingleTurnVerdict::valid());
        }
        Ok(wrong(
            "value_error:others",
            format!(
                "Invalid value for parameter {parameter}: {}. Expected one of {}.",
                repr(&value)?,
                repr(accepted)?
            ),
        ))
    }
}

fn wrong(error_type: &str, error: String) -> SingleTurnVerdict {
    SingleTurnVerdict::wrong(error_type, error)
}

/// The type of the first accepted value that does not say "may be left out".
fn accepted_type(accepted: &Value) -> Outcome<Option<&'static str>> {
    let is_empty = |value: &Value| value.as_str() == Some("");
    Ok(iterate(accepted)?.iter().find(|value| !is_empty(value)).map(Value::type_name))
}

fn check_type(
    parameter: &str,
    value: &Value,
    accepted: &Value,
    documented: &str,
    expected: &str,
    inner: Option<&'static str>,
) -> Outcome<Typed> {
    let accepted_type = accepted_type(accepted)?;
    let is_variable = accepted_type.is_some_and(|accepted| accepted != expected);
    let mut errors = Vec::new();
    let mut error_type = "type_error:simple";
    if value.type_name() == expected {
        let right = |is_variable| Typed { verdict: SingleTurnVerdict::valid(), is_variable };
        let Some(inner) = inner else { return Ok(right(is_variable)) };
        let inner_class = format!("<class '{inner}'>");
        for option in iterate(accepted)? {
            let mut fits = true;
            if matches!(option, Value::List(_)) {
                for item in iterate(value)? {
                    let typed = check_type(parameter, &item, &option, &inner_class, inner, None)?;
                    if !typed.verdict.is_valid {
                        fits = false;
                        break;
                    }
                }
            }
            if fits {
                return Ok(right(is_variable));
            }
        }
        errors.push(Json::String(format!(
            "Nested type checking failed for parameter {parameter}. Expected outer type {documented} with inner type {inner_class}. Parameter value: {}.",
            repr(value)?
        )));
        error_type = "type_error:nested";
    }
    let is_accepted_type = accepted_type == Some(value.type_name());
    if is_accepted_type && errors.is_empty() {
        return Ok(Typed { verdict: SingleTurnVerdict::valid(), is_variable: true });
    }
    if !is_accepted_type {
        errors.push(Json::String(format!(
            "Incorrect type for parameter {parameter}. Expected type {documented}, got {}. Parameter value: {}.",
            value.type_name(),
            repr(value)?
        )));
        error_type = "type_error:simple";
    }
    let error_type = Some(error_type.to_owned());
    let verdict = SingleTurnVerdict { is_valid: false, error_type, errors };
    Ok(Typed { verdict, is_variable: is_accepted_type })
}

/// A text without blanks and marks, in small letters, with double quotes.
fn standard_text(text: &str) -> String {
    let kept: String = text.chars().filter(|c| !" ,./-_*^".contains(*c)).collect();
    kept.to_lowercase().replace('\'', "\"")
}

fn standard(value: &Value) -> Value {
    match value {
        Value::Str(text) => Value::from(standard_text(text)),
        other => other.clone(),
    }
}

fn check_text(parameter: &str, value: &Value, accepted: &Value) -> Outcome<SingleTurnVerdict> {
    let own = standard(value);
    let options = iterate(accepted)?;
    let mut texts = options.iter().filter(|option| option.as_str().is_some());
    if texts.any(|option| equal(&standard(option), &own)) {
        return Ok(SingleTurnVerdict::valid());
    }
    Ok(wrong(
        "value_error:string",
        format!(
            "Invalid value for parameter {parameter}: {}. Expected one of {}. Case insensitive.",
            repr(value)?,
            repr(accepted)?
        ),
    ))
}

fn check_list(parameter: &str, value: &Value, accepted: &Value) -> Outcome<SingleTurnVerdict> {
    let own = Value::list(iterate(value)?.iter().map(standard));
    for option in iterate(accepted)? {
        length(&option)?;
        let option = Value::list(iterate(&option)?.iter().map(standard));
        if equal(&own, &option) {
            return Ok(SingleTurnVerdict::valid());
        }
    }
    Ok(wrong(
        "value_error:list/tuple",
        format!(
            "Invalid value for parameter {parameter}: {}. Expected one of {}.",
            repr(value)?,
            repr(accepted)?
        ),
    ))
}

fn check_dict(value: &Value, options: &[Value]) -> Outcome<SingleTurnVerdict> {
    let mut verdict = SingleTurnVerdict {
        is_valid: false,
        error_type: Some("dict_checker:unclear".to_owned()),
        errors: Vec::new(),
    };
    let malformed = || Exception::refused("a dictionary is expected");
    let given = value.as_dict().ok_or_else(malformed)?;
    for option in options {
        if option.as_str() == Some("") {
            continue;
        }
        let option = option.as_dict().ok_or_else(malformed)?;
        let problems = dict_problems(given, option)?;
        if problems.is_empty() {
            return Ok(SingleTurnVerdict::valid());
        }
        verdict.error_type = problems.last().map(|(kind, _)| format!("value_error:{kind}"));
        verdict.errors = problems.into_iter().map(|(_, text)| Json::String(text)).collect();
    }
    Ok(verdict)
}

/// The first thing wrong with what is given, and the first that is missing.
fn dict_problems(given: &Dict, option: &Dict) -> Outcome<Vec<(&'static str, String)>> {
    let mut problems = Vec::new();
    for (key, value) in given.iter() {
        let Some(accepted) = option.get(key)? else {
            let key = spar_python::to_str(key)?;
            problems.push(("dict_key", format!("Unexpected dict key parameter: '{key}'.")));
            break;
        };
        length(accepted)?;
        let accepted = Value::list(iterate(accepted)?.iter().map(standard));
        if !contains(&accepted, &standard(value))? {
            problems.push((
                "dict_value",
                format!(
                    "Invalid value for parameter {}: {}. Expected one of {}.",
                    repr(key)?,
                    repr(value)?,
                    repr(&accepted)?
                ),
            ));
            break;
        }
    }
    for (key, accepted) in option.iter() {
        if !given.contains(key)? && !contains(accepted, &Value::from(""))? {
            let key = spar_python::to_str(key)?;
            problems.push(("dict_key", format!("Missing dict key parameter: '{key}'.")));
            break;
        }
    }
    Ok(problems)
}

fn check_dicts(value: &Value, accepted: &Value) -> Outcome<SingleTurnVerdict> {
    let mut verdict = SingleTurnVerdict {
        is_valid: false,
        error_type: Some("list_dict_checker:unclear".to_owned()),
        errors: Vec::new(),
    };
    let given = iterate(value)?;
    for option in iterate(accepted)? {
        if given.len() != length(&option)? {
            verdict = wrong(
                "value_error:list_dict_count",
                "Wrong number of dictionaries in the list.".to_owned(),
            );
            continue;
        }
        let mut fits = true;
        for (dict, option) in given.iter().zip(iterate(&option)?) {
            verdict = check_dict(dict, &[option])?;
            if !verdict.is_valid {
                fits = false;
                break;
            }
        }
        if fits {
            return Ok(SingleTurnVerdict::valid());
        }
    }
    Ok(verdict)
}
