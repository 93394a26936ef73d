//! Tables of what has a name: one row for each estimator, environment, stage, and whatever else is chosen by name.
//!
//! ```text
//!  Table (one per axis) ─find─▶ Row ─open─▶ what it makes
//!     ▲ install                  │ options: OptionSet, described by the doc comments of a struct
//!   rows of other crates         ▼
//!                        lists, pages of rows, checks
//! ```
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use spar_core::registry::{Axis, Given, NamedOptions, OptionSet, Row, RowError, Table};
//!
//! /// Options of a greeting.
//! #[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields, default)]
//! struct Greeting {
//!     /// How often it is said, at least 1. Default 1.
//!     times: usize,
//! }
//!
//! impl Default for Greeting {
//!     fn default() -> Self {
//!         Self { times: 1 }
//!     }
//! }
//!
//! impl NamedOptions for Greeting {
//!     fn problems(&self) -> Vec<String> {
//!         let wrong = self.times == 0;
//!         wrong.then(|| "times is 0, must be at least 1".to_owned()).into_iter().collect()
//!     }
//! }
//!
//! type Open = fn(&Given<'_>) -> Result<String, RowError>;
//!
//! const ROWS: &[Row<Open>] = &[Row {
//!     name: "hello",
//!     about: "Says hello.",
//!     source: "own",
//!     formula: "",
//!     options: OptionSet::of::<Greeting>(),
//!     open: |given| Ok("hello ".repeat(given.read::<Greeting>()?.times)),
//! }];
//! static GREETINGS: Table<Open> = Table::new(
//!     Axis { name: "greetings", what: "greeting", about: "What is said first." },
//!     ROWS,
//! );
//!
//! let options = serde_json::from_str(r#"{ "times": 2 }"#)?;
//! let (row, given) = GREETINGS.choose("hello", &options)?;
//! assert_eq!((row.open)(&given)?, "hello hello ");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod described;
mod error;
mod names;
mod options;
mod row;
mod table;

pub use described::{DescribedDetail, DescribedOption, DescribedRow, Exactness};
pub use error::{InstallError, RowError};
pub use names::{closest_first, known_names};
pub use options::{Given, NamedOptions, NoOptions, OptionSet, Options, to_options};
pub use row::Row;
pub use table::{AnyTable, Axis, Table};
