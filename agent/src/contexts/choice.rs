//! Which context policy is used.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spar_core::registry::{Options, RowError};

use super::{ContextPolicy, KeepAll, context_registry};

/// Which context policy is used, with which options; in recipes a table such as `{ kind = "window", tokens = 4000 }`.
#[derive(Clone)]
pub struct ContextPolicyChoice {
    written: Written,
    policy: Arc<dyn ContextPolicy>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Written {
    kind: String,
    #[serde(flatten)]
    options: Options,
}

impl ContextPolicyChoice {
    /// The context policy of this name with these options.
    ///
    /// # Errors
    ///
    /// [`RowError`] lists the names that there are, or tells all that is wrong with the options.
    pub fn new(kind: &str, options: Options) -> Result<Self, RowError> {
        let (row, given) = context_registry().choose(kind, &options)?;
        let policy = (row.open)(&given)?;
        Ok(Self { written: Written { kind: kind.to_owned(), options }, policy })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.written.kind
    }

    /// The policy.
    pub fn policy(&self) -> &dyn ContextPolicy {
        &*self.policy
    }
}

impl Default for ContextPolicyChoice {
    /// `keep_all`.
    fn default() -> Self {
        let written = Written { kind: KeepAll.name().to_owned(), options: Options::new() };
        Self { written, policy: Arc::new(KeepAll) }
    }
}

impl PartialEq for ContextPolicyChoice {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl fmt::Debug for ContextPolicyChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.policy.fmt(formatter)
    }
}

impl Serialize for ContextPolicyChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextPolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { kind, options } = Written::deserialize(deserializer)?;
        Self::new(&kind, options).map_err(serde::de::Error::custom)
    }
}
