//! What is put around a task's environment.

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
