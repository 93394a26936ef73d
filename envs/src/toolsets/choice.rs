//! Which toolset is used.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spar_core::registry::{Options, RowError};

use super::{Toolset, toolset_registry};

/// Which toolset is used, with which options, such as `{ "kind": "mini", "form": "xml" }`.
#[derive(Clone)]
pub struct ToolsetChoice {
    written: Written,
    toolset: Arc<dyn Toolset>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Written {
    kind: String,
    #[serde(flatten)]
    options: Options,
}

impl ToolsetChoice {
    /// The toolset of this name with these options.
    ///
    /// # Errors
    ///
    /// [`RowError`] lists the names that there are, or tells all that is wrong with the options.
    pub fn new(kind: &str, options: Options) -> Result<Self, RowError> {
        let (row, given) = toolset_registry().choose(kind, &options)?;
        let toolset = (row.open)(&given)?;
        Ok(Self { written: Written { kind: kind.to_owned(), options }, toolset })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.written.kind
    }

    /// The toolset.
    pub fn toolset(&self) -> &dyn Toolset {
        &*self.toolset
    }
}

impl PartialEq for ToolsetChoice {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl fmt::Debug for ToolsetChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(formatter)
    }
}

impl Serialize for ToolsetChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolsetChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { kind, options } = Written::deserialize(deserializer)?;
        Self::new(&kind, options).map_err(serde::de::Error::custom)
    }
}
