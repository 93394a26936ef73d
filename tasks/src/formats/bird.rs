//! BIRD's folder.

use std::path::Path;

use super::SuiteFormat;
use crate::sql_suite::{Layout, SqlSuite};
use crate::{Suite, SuiteError};

/// Questions about databases as BIRD is released: `train.json`, `dev.json` and `mini_dev_sqlite.json`, of which each is a list of
/// `db_id`, `question`, `evidence`, `SQL` and `difficulty`; with databases in `train_databases` and `dev_databases`, as
/// `NAME/NAME.sqlite`, and descriptions of their columns in `NAME/database_description/TABLE.csv`.
#[derive(Debug, Clone, Copy)]
pub struct Bird;

static LAYOUT: Layout = Layout {
    name: "bird",
    about: "Questions about databases, answered by SQL: BIRD, from the user's own download.",
    splits: &[
        ("train", "train.json", &["train_databases"]),
        ("dev", "dev.json", &["dev_databases"]),
        ("mini-dev", "mini_dev_sqlite.json", &["dev_databases"]),
    ],
    is_bird: true,
};

impl SuiteFormat for Bird {
    fn name(&self) -> &'static str {
        "bird"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with dev.json and dev_databases/, or train.json and train_databases/"
    }

    fn matches(&self, path: &Path) -> bool {
        LAYOUT.matches(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(SqlSuite::open(path, &LAYOUT)?))
    }
}
