//! Spider's folder.

use std::path::Path;

use super::SuiteFormat;
use crate::sql_suite::{Layout, SqlSuite};
use crate::{Suite, SuiteError};

/// Questions about databases as Spider is released: `train_spider.json`, `train_others.json`, `dev.json` and `test.json`, of which
/// each is a list of `db_id`, `question` and `query`; with databases in `database/NAME/NAME.sqlite`, and those of the test split in
/// `test_database` where that is there. Other files beside a database are further contents of it, on which a query has to be right too.
#[derive(Debug, Clone, Copy)]
pub struct Spider;

static LAYOUT: Layout = Layout {
    name: "spider",
    about: "Questions about databases, answered by SQL: Spider, from the user's own download.",
    splits: &[
        ("train", "train_spider.json", &["database"]),
        ("train-others", "train_others.json", &["database"]),
        ("dev", "dev.json", &["database"]),
        ("test", "test.json", &["test_database", "database"]),
    ],
    is_bird: false,
};

impl SuiteFormat for Spider {
    fn name(&self) -> &'static str {
        "spider"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with train_spider.json, dev.json or test.json and database/"
    }

    fn matches(&self, path: &Path) -> bool {
        LAYOUT.matches(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(SqlSuite::open(path, &LAYOUT)?))
    }
}
