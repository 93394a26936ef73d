//! In which form weights are kept in memory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::NumberType;
use crate::{HalfType, ParameterKind};

/// In which form weights are kept in memory on the CPU, which always computes in single precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepAs {
    /// As the files have them: in bf16 or f16 where all matrices are of that one type, and else in
    /// f32. Nothing is lost.
    #[default]
    Stored,
    /// In f32.
    F32,
    /// In bf16, rounded to the nearest where the files have more.
    Bf16,
    /// In f16, rounded to the nearest where the files have more.
    F16,
}

impl KeepAs {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Stored, Self::F32, Self::Bf16, Self::F16];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// The type that matrices are kept in, given what they are stored as; `None` for f32.
    pub(super) fn half_of(
        self,
        stored: impl IntoIterator<Item = (NumberType, ParameterKind)>,
    ) -> Option<HalfType> {
        match self {
            Self::F32 => None,
            Self::Bf16 => Some(HalfType::Bf16),
            Self::F16 => Some(HalfType::F16),
            Self::Stored => {
                let stored = stored.into_iter().filter(|(_, kind)| *kind != ParameterKind::Vector);
                let mut types = stored.map(|(number_type, _)| number_type);
                let first = types.next()?;
                types.all(|number_type| number_type == first).then(|| first.half()).flatten()
            }
        }
    }
}

impl fmt::Display for KeepAs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for KeepAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|form| form.as_str() == text)
            .ok_or_else(|| format!("`{text}` is none of stored, f32, bf16, f16"))
    }
}
