//! Folders with WebShop's files.

use std::path::Path;

use spar_shop::WebShopFiles;

use super::SuiteFormat;
use crate::{ShopSuite, Suite, SuiteError};

/// A folder with WebShop's products and what they are: `items_shuffle.json` and `items_ins_v2.json`, or those with `_1000`.
#[derive(Debug, Clone, Copy)]
pub struct WebShop;

impl SuiteFormat for WebShop {
    fn name(&self) -> &'static str {
        "webshop"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with WebShop's items_shuffle*.json and items_ins_v2*.json"
    }

    fn matches(&self, path: &Path) -> bool {
        WebShopFiles::find(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(ShopSuite::open(path)?))
    }
}
