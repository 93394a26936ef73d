//! What a shop sells, and how it is found.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use spar_core::Seed;

use crate::Part;
use crate::error::ShopError;
use crate::files::{GoalSource, LoadedProducts};
use crate::generated::{GeneratedProducts, draw_goal};
use crate::goal::Goal;
use crate::index::SearchIndex;
use crate::product::Product;

/// Products that a search finds, at most.
pub(crate) const MOST_FOUND: usize = 50;

/// Searches whose results are kept: the episodes of a group begin with the same few.
const MOST_KEPT: usize = 4_096;

/// Sizes of generated catalogues.
const SIZES: std::ops::RangeInclusive<usize> = 10..=1_000_000;

/// What a shop sells, with its index; shared by all episodes.
#[derive(Debug)]
pub struct Catalogue {
    products: Products,
    index: SearchIndex,
    kept: Mutex<HashMap<Box<str>, Arc<[u32]>>>,
}

#[derive(Debug)]
enum Products {
    Generated(GeneratedProducts),
    Loaded(LoadedProducts),
}

type Known<K> = OnceLock<Mutex<HashMap<K, Weak<Catalogue>>>>;

/// The catalogue under a key, made where nobody has it any more. Whoever asks meanwhile waits, so that none is made twice.
fn shared<K: std::hash::Hash + Eq>(
    known: &Known<K>,
    key: K,
    make: impl FnOnce() -> Result<Catalogue, ShopError>,
) -> Result<Arc<Catalogue>, ShopError> {
    let mut known =
        known.get_or_init(Mutex::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(catalogue) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(catalogue);
    }
    let catalogue = Arc::new(make()?);
    known.retain(|_, catalogue| catalogue.strong_count() > 0);
    known.insert(key, Arc::downgrade(&catalogue));
    Ok(catalogue)
}

impl Catalogue {
    /// A generated catalogue of `count` products, 10 to 1,000,000. The last one that was asked for is kept, so that episodes one after the other do
    /// not make it anew.
    ///
    /// # Errors
    ///
    /// [`ShopError::Size`] where there would be fewer or more.
    pub fn generated(seed: u64, count: usize) -> Result<Arc<Self>, ShopError> {
        static KNOWN: Known<(u64, usize)> = OnceLock::new();
        static LAST: Mutex<Option<Arc<Catalogue>>> = Mutex::new(None);
        if !SIZES.contains(&count) {
            let (least, most) = (*SIZES.start(), *SIZES.end());
            return Err(ShopError::Size { found: count, least, most });
        }
        let catalogue = shared(&KNOWN, (seed, count), || {
            let (products, index) = GeneratedProducts::new(seed, count);
            Ok(Self::of(Products::Generated(products), index))
        })?;
        let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    /// The catalogue of a folder with WebShop's files, shared while somebody has it.
    ///
    /// # Errors
    ///
    /// [`ShopError`] where a file is missing or cannot be understood.
    pub fn load(folder: &Path, goals: Option<GoalSource>) -> Result<Arc<Self>, ShopError> {
        type Key = (std::path::PathBuf, Option<GoalSource>);
        static KNOWN: Known<Key> = OnceLock::new();
        shared(&KNOWN, (folder.to_owned(), goals), || {
            let (products, index) = LoadedProducts::load(folder, goals)?;
            Ok(Self::of(Products::Loaded(products), index))
        })
    }

    /// A catalogue of what is loaded already.
    pub(crate) fn from_loaded(products: LoadedProducts, index: SearchIndex) -> Self {
        Self::of(Products::Loaded(products), index)
    }

    fn of(products: Products, index: SearchIndex) -> Self {
        Self { products, index, kept: Mutex::default() }
    }

    /// How many products there are.
    pub fn len(&self) -> usize {
        match &self.products {
            Products::Generated(products) => products.len(),
            Products::Loaded(products) => products.products.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The goals that its files have; absent where goals are drawn from seeds.
    pub fn goals(&self) -> Option<&[Arc<Goal>]> {
        match &self.products {
            Products::Generated(_) => None,
            Products::Loaded(products) => Some(&products.goals),
        }
    }

    /// The goal of a seed, about a product of a part of the catalogue; absent where goals are those of files.
    pub fn draw_goal(&self, seed: Seed, part: Part) -> Option<Goal> {
        match &self.products {
            Products::Generated(products) => Some(draw_goal(products, seed, part)),
            Products::Loaded(_) => None,
        }
    }

    /// A product with all that its pages show.
    ///
    /// # Panics
    ///
    /// Where there is none of that number.
    pub fn product(&self, number: usize) -> Arc<Product> {
        match &self.products {
            Products::Generated(products) => {
                assert!(number < products.len(), "product {number} of {}", products.len());
                Arc::new(products.product(number))
            }
            Products::Loaded(products) => Arc::clone(&products.products[number]),
        }
    }

    pub(crate) fn asin(&self, number: usize) -> String {
        match &self.products {
            Products::Generated(products) => products.asin(number),
            Products::Loaded(products) => products.products[number].asin.clone(),
        }
    }

    pub(crate) fn write_title(&self, number: usize, out: &mut String) {
        match &self.products {
            Products::Generated(products) => products.write_title(number, out),
            Products::Loaded(products) => out.push_str(&products.products[number].title),
        }
    }

    pub(crate) fn price_tag(&self, number: usize) -> String {
        match &self.products {
            Products::Generated(products) => products.price_tag(number),
            Products::Loaded(products) => products.products[number].price_tag.clone(),
        }
    }

    /// The products that words find, the best first, up to fifty. What the last searches found is kept.
    pub fn search(&self, words: &str) -> Arc<[u32]> {
        let lock = || self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(words) {
            return Arc::clone(found);
        }
        let found: Arc<[u32]> = self.search_anew(words).into();
        let mut kept = lock();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(words.into(), Arc::clone(&found));
        found
    }

    /// The same, without looking at what other searches found.
    pub fn search_anew(&self, words: &str) -> Vec<u32> {
        self.index.search(words, MOST_FOUND)
    }
}
