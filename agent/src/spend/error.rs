//! What is wrong with prices, limits and ledgers.

use std::path::PathBuf;

/// Spending cannot be counted or limited as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpendError {
    /// Settings are out of range or contradict each other.
    #[error("limit what is spent: {}", problems.join("; "))]
    Problems {
        /// All of them.
        problems: Vec<String>,
    },
    /// A price list cannot be read.
    #[error("read the price list `{}`: {detail}", path.display())]
    PriceList {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A price list does not have the model.
    #[error("find the price of model `{model}` in `{}`: it has {known}", path.display())]
    UnknownModel {
        /// The model.
        model: String,
        /// The file.
        path: PathBuf,
        /// Those that it has.
        known: String,
    },
    /// Prices that were typed cannot be read.
    #[error("read prices `{text}`: {detail}")]
    Prices {
        /// What was typed.
        text: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The ledger cannot be used.
    #[error("keep what is spent in `{}`: {detail}", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl SpendError {
    /// The same, to be told once more.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Ledger { path, detail } => {
                Self::Ledger { path: path.clone(), detail: detail.clone() }
            }
            other => Self::Problems { problems: vec![other.to_string()] },
        }
    }
}
