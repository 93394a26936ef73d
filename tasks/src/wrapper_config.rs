//! What is put around a task's environment.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::Options;

use crate::Task;

/// Which wrapper is around a task's environment, with its options.
///
/// ```
/// use spar_tasks::WrapperConfig;
///
/// let wrapper: WrapperConfig = toml::from_str("kind = 'unary_feedback'\nattempts = 3")?;
/// assert_eq!(wrapper.options["attempts"], 3);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrapperConfig {
    /// The wrapper's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

impl WrapperConfig {
    /// The parameter that every task may have beside those of its environment: a list of wrappers, the innermost first.
    pub const PARAMETER: &str = "wrappers";

    /// Adds wrappers to the parameters of a task, unless they name some already.
    pub fn put(wrappers: &[Self], parameters: &mut serde_json::Map<String, Value>) {
        if !wrappers.is_empty() && !parameters.contains_key(Self::PARAMETER) {
            let list = serde_json::to_value(wrappers).expect("names and options are JSON");
            parameters.insert(Self::PARAMETER.to_owned(), list);
        }
    }

    /// Adds wrappers to the parameters of a task, outside of those that it names already.
    pub fn add(wrappers: &[Self], parameters: &mut serde_json::Map<String, Value>) {
        let added = wrappers
            .iter()
            .map(|wrapper| serde_json::to_value(wrapper).expect("names and options are JSON"));
        match parameters.get_mut(Self::PARAMETER) {
            Some(Value::Array(named)) => named.extend(added),
            // What is no list is refused when the task is opened.
            Some(_) => {}
            None => {
                parameters.insert(Self::PARAMETER.to_owned(), added.collect());
            }
        }
    }

    /// The wrappers of a task, and the task as its environment is given it; `None` where it has none.
    ///
    /// # Errors
    ///
    /// What is wrong with the parameter.
    pub fn take(task: &Task) -> Result<Option<(Vec<Self>, Task)>, serde_json::Error> {
        let Some(list) = task.parameters.get(Self::PARAMETER) else { return Ok(None) };
        let wrappers = Vec::<Self>::deserialize(list)?;
        let mut inner = task.clone();
        if let Some(parameters) = inner.parameters.as_object_mut() {
            parameters.remove(Self::PARAMETER);
        }
        Ok(Some((wrappers, inner)))
    }
}

/// How a wrapper is typed: `NAME`, or `NAME,OPTION=VALUE,...` with values as TOML has them.
///
/// ```
/// use spar_tasks::WrapperConfig;
///
/// let typed: WrapperConfig = "unary_feedback,attempts=3,feedback=\"Wrong, try again.\"".parse()?;
/// assert_eq!(typed.options["attempts"], 3);
/// # Ok::<(), String>(())
/// ```
impl FromStr for WrapperConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, options) = text.split_once(',').unwrap_or((text, ""));
        let kind = kind.trim();
        if kind.is_empty() || kind.contains(['=', '{', '"']) {
            return Err("it has the form NAME or NAME,OPTION=VALUE,...".to_owned());
        }
        let table: toml::Table =
            toml::from_str(&format!("options = {{ {options} }}")).map_err(|error| {
                format!("options are OPTION=VALUE,... with texts in quotes: {}", error.message())
            })?;
        // Where a bracket closes the table early, more stands behind it.
        let (Some(toml::Value::Table(options)), 1) = (table.get("options"), table.len()) else {
            return Err("options are OPTION=VALUE,... with texts in quotes".to_owned());
        };
        if options.contains_key("kind") {
            return Err(
                "the wrapper's name stands at the beginning, and `kind` is no option".to_owned()
            );
        }
        let options = serde_json::to_value(options).and_then(serde_json::from_value);
        let options = options.map_err(|error| error.to_string())?;
        Ok(Self { kind: kind.to_owned(), options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_typed_with_their_options() {
        let plain: WrapperConfig = "unary_feedback".parse().unwrap();
        assert_eq!((plain.kind.as_str(), plain.options.len()), ("unary_feedback", 0));
        let typed: WrapperConfig =
            "unary_feedback,attempts=3, decay = 0.5,feedback='no, no'".parse().unwrap();
        assert_eq!(typed.options["attempts"], 3);
        assert_eq!(typed.options["decay"], 0.5);
        assert_eq!(typed.options["feedback"], "no, no");
    }

    #[test]
    fn what_is_no_wrapper_is_refused_when_it_is_typed() {
        let told = |text: &str| text.parse::<WrapperConfig>().unwrap_err();
        assert!(told("").contains("NAME"));
        assert!(told("attempts=3").contains("NAME"));
        assert!(told("w,attempts").contains("OPTION=VALUE"));
        assert!(told("w,feedback=no").contains("quotes"));
        assert!(told("w,kind='x'").contains("beginning"));
        assert!(told("w,a=1 }\nb = { c = 1").contains("quotes"));
        assert!(told("w,a=1,a=2").contains("OPTION=VALUE"));
    }
}
