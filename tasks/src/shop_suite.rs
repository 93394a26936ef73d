//! The suite of WebShop's own files.

use std::path::{Path, PathBuf};

use spar_shop::{Catalogue, WebShopFiles};

use crate::{Suite, SuiteError, SuiteManifest, Task};

const INSTRUCTION: &str = "You are in an online shop. Buy the product that fits the instruction best, with the options that it names. \
                           Answer with one action: `search[words]` searches, `click[what]` clicks on what stands on the page, such as \
                           a product's number, an option, `Next >`, `< Prev`, `Back to Search`, `Description`, `Features`, `Reviews` \
                           or `Buy Now`, which ends the task.";
const MAX_TURNS: u32 = 15;

/// The goals of a folder with WebShop's files, in WebShop's order: the first 500 are the split `test`, the next 1,000 `dev`, and all
/// others `train`, as in its baselines; of fewer than 3,000 goals, `test` and `dev` have a third each at most.
#[derive(Debug)]
pub struct ShopSuite {
    folder: PathBuf,
    manifest: SuiteManifest,
    /// Where each split begins among the goals.
    firsts: [usize; 3],
}

impl ShopSuite {
    /// Reads the folder.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] where a file is missing, of another form, or has no instruction.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| SuiteError::Io { path, source }
        };
        let folder = folder.canonicalize().map_err(io(folder))?;
        let catalogue =
            Catalogue::load(&folder, None).map_err(|error| SuiteError::Shop(Box::new(error)))?;
        let all = catalogue.goals().map_or(0, <[_]>::len);
        if all == 0 {
            let what = "an instruction about a product";
            return Err(SuiteError::EmptyData { path: folder, what });
        }
        let test = 500.min(all / 3);
        let dev = 1_000.min(all / 3);
        let mut hasher = blake3::Hasher::new();
        let files = WebShopFiles::find(&folder);
        let paths =
            files.map(|files| [Some(files.products), Some(files.attributes), files.instructions]);
        for path in paths.into_iter().flatten().flatten() {
            let file = std::fs::File::open(&path).map_err(io(&path))?;
            hasher.update_reader(file).map_err(io(&path))?;
        }
        let sizes = [("test", test), ("dev", dev), ("train", all - test - dev)];
        let manifest = SuiteManifest {
            name: "webshop".to_owned(),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes.map(|(name, size)| (name.to_owned(), size)).to_vec(),
        };
        Ok(Self { folder, manifest, firsts: [0, test, test + dev] })
    }
}

impl Suite for ShopSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "WebShop's products and instructions, from the user's own files."
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let place = self.manifest.splits.iter().position(|(name, _)| name == split);
        let first = place.map_or(0, |place| self.firsts[place]);
        Ok(Task {
            id: format!("webshop/{split}/{index}"),
            environment: "shop".to_owned(),
            parameters: serde_json::json!({
                "folder": self.folder.to_string_lossy(),
                "goal": first + index,
            }),
            instruction: INSTRUCTION.to_owned(),
            max_turns: MAX_TURNS,
            tags: Vec::new(),
            graders: Vec::new(),
        })
    }
}
