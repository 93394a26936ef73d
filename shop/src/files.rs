//! WebShop's own files.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rand::RngExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spar_core::Seed;
use spar_python::Random;

use crate::error::ShopError;
use crate::goal::{Goal, GoalOptions, NO_LIMIT, price_upper};
use crate::index::{IndexBuilder, SearchIndex, Vocabulary};
use crate::product::{Product, price_tag};

/// Which of the published instructions are goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalSource {
    /// Those that people wrote: `items_human_ins.json`.
    Human,
    /// Those made from attributes and options: `items_ins_v2.json`.
    Synthetic,
}

/// The files of a folder: the products, what they are, and where it is there what people asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebShopFiles {
    /// `items_shuffle.json`, or `items_shuffle_1000.json`.
    pub products: PathBuf,
    /// `items_ins_v2.json`, or `items_ins_v2_1000.json`.
    pub attributes: PathBuf,
    /// `items_human_ins.json`.
    pub instructions: Option<PathBuf>,
}

impl WebShopFiles {
    /// The files of a folder; absent where it is no such folder. The full files go before the small ones.
    pub fn find(folder: &Path) -> Option<Self> {
        let first = |names: [&str; 2]| {
            names.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
        };
        Some(Self {
            products: first(["items_shuffle.json", "items_shuffle_1000.json"])?,
            attributes: first(["items_ins_v2.json", "items_ins_v2_1000.json"])?,
            instructions: first(["items_human_ins.json"; 2]),
        })
    }
}

/// Products and goals of files.
#[derive(Debug)]
pub(crate) struct LoadedProducts {
    pub(crate) products: Vec<Arc<Product>>,
    pub(crate) goals: Vec<Arc<Goal>>,
}

#[derive(Deserialize)]
struct Item {
    asin: String,
    name: String,
    #[serde(default)]
    full_description: Option<String>,
    #[serde(default)]
    small_description: Option<Points>,
    #[serde(default)]
    pricing: Option<String>,
    #[serde(default)]
    customization_options: Option<Options>,
    category: String,
    query: String,
    product_category: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Points {
    Many(Vec<String>),
    One(String),
}

/// Options by their names; an empty text stands for none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Options {
    Some(serde_json::Map<String, serde_json::Value>),
    None(String),
}

#[derive(Deserialize)]
struct OptionValue {
    value: String,
}

#[derive(Deserialize)]
struct ItemAttributes {
    #[serde(default)]
    attributes: Option<Vec<String>>,
    #[serde(default)]
    instruction: Option<String>,
    #[serde(default)]
    instruction_attributes: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct HumanInstruction {
    instruction: String,
    instruction_attributes: Vec<String>,
    instruction_options: HumanOptions,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HumanOptions {
    Values(Vec<String>),
    Named(serde_json::Map<String, serde_json::Value>),
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ShopError> {
    let file =
        File::open(path).map_err(|source| ShopError::Io { path: path.to_owned(), source })?;
    serde_json::from_reader(BufReader::with_capacity(1 << 20, file))
        .map_err(|source| ShopError::Form { path: path.to_owned(), source })
}

impl LoadedProducts {
    /// Reads a folder; without a word about the goals they are people's where it has those.
    ///
    /// Prices between two bounds and the limits of goals are drawn from seeds of their own; WebShop draws them anew in
    /// every process. The order of the goals is WebShop's.
    pub(crate) fn load(
        folder: &Path,
        goals: Option<GoalSource>,
    ) -> Result<(Self, SearchIndex), ShopError> {
        let wanted = "`items_shuffle.json` and `items_ins_v2.json`, or those with `_1000`";
        let missing = |wanted| ShopError::Missing { folder: folder.to_owned(), wanted };
        let files = WebShopFiles::find(folder).ok_or_else(|| missing(wanted))?;
        let source = match (goals, &files.instructions) {
            (None | Some(GoalSource::Human), Some(path)) => Some(path),
            (Some(GoalSource::Human), None) => return Err(missing("`items_human_ins.json`")),
            (None | Some(GoalSource::Synthetic), _) => None,
        };
        let about = read(&files.attributes)?;
        let said = source.map(|path| read(path)).transpose()?;
        Self::of(read(&files.products)?, about, said, &files.products)
    }

    /// What the files would hold, as values; with no `instructions` goals are made from attributes and options. `path` is
    /// where they come from, for errors.
    pub(crate) fn from_values(
        items: &serde_json::Value,
        attributes: &serde_json::Value,
        instructions: Option<&serde_json::Value>,
        path: &Path,
    ) -> Result<(Self, SearchIndex), ShopError> {
        let form = |source| ShopError::Form { path: path.to_owned(), source };
        let items = Vec::deserialize(items).map_err(form)?;
        let about = HashMap::deserialize(attributes).map_err(form)?;
        let said = instructions.map(HashMap::deserialize).transpose().map_err(form)?;
        Self::of(items, about, said, path)
    }

    fn of(
        items: Vec<Item>,
        mut about: HashMap<String, ItemAttributes>,
        mut said: Option<HashMap<String, Vec<HumanInstruction>>>,
        path: &Path,
    ) -> Result<(Self, SearchIndex), ShopError> {
        let mut seen = HashSet::new();
        let (mut products, mut goals) = (Vec::new(), Vec::new());
        let (mut vocabulary, mut index) = (Vocabulary::default(), IndexBuilder::default());
        let mut words = Vec::new();
        for item in items {
            // Those that WebShop leaves out.
            if item.asin == "nan"
                || item.asin.chars().count() > 10
                || !seen.insert(item.asin.clone())
            {
                continue;
            }
            let mut about = about.remove(&item.asin);
            let attributes = about.as_mut().and_then(|about| about.attributes.take());
            let product = product(item, attributes, path)?;
            words.clear();
            vocabulary.add(&document(&product), &mut words);
            index.add(&mut words);
            let place = products.len();
            match &mut said {
                Some(said) => {
                    for told in said.remove(&product.asin).unwrap_or_default() {
                        goals.extend(human_goal(&product, place, told, goals.len()));
                    }
                }
                None => goals.extend(synthetic_goals(&product, place, about, goals.len())),
            }
            products.push(Arc::new(product));
        }
        Random::from_u64(233).shuffle(&mut goals);
        let goals = goals.into_iter().map(Arc::new).collect();
        Ok((Self { products, goals }, index.build(vocabulary)))
    }
}

/// What a search looks at: title, description, the first point and the options.
fn document(product: &Product) -> String {
    let options: Vec<_> = product
        .options
        .iter()
        .map(|(name, values)| format!("{name}: {}", values.join(", ")))
        .collect();
    let first = product.bullet_points.first().map_or("", String::as_str);
    [&product.title, &product.description, first, &options.join(", and ")].join(" ")
}

fn product(item: Item, attributes: Option<Vec<String>>, path: &Path) -> Result<Product, ShopError> {
    let refuse = |detail: String| ShopError::Meaning {
        path: path.to_owned(),
        detail: format!("product `{}`: {detail}", item.asin),
    };
    let mut prices = Vec::new();
    for text in item.pricing.as_deref().unwrap_or_default().split('$').skip(1) {
        let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        let price: f64 = digits.parse().map_err(|_| refuse(format!("`${text}` is no price")))?;
        prices.push(price);
    }
    if prices.is_empty() && item.pricing.as_deref().is_some_and(|text| !text.is_empty()) {
        return Err(refuse("its `pricing` has no `$`".to_owned()));
    }
    prices.truncate(2);
    let price = match prices[..] {
        [] => 100.0,
        [price] => price,
        [low, high, ..] => {
            let mut rng = Seed::from_u64(0).derive("shop price", &item.asin).rng();
            low + (high - low) * rng.random::<f64>()
        }
    };
    let mut options: Vec<(String, Vec<String>)> = Vec::new();
    if let Some(Options::Some(given)) = &item.customization_options {
        for (name, values) in given {
            if values.is_null() {
                continue;
            }
            let values: Vec<OptionValue> = Vec::deserialize(values)
                .map_err(|error| refuse(format!("option `{name}`: {error}")))?;
            let shown = |it: &OptionValue| it.value.trim().replace('/', " | ").to_lowercase();
            let (name, values) = (name.to_lowercase(), values.iter().map(shown).collect());
            match options.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = values,
                None => options.push((name, values)),
            }
        }
    } else if let Some(Options::None(text)) = &item.customization_options
        && !text.is_empty()
    {
        return Err(refuse(format!("`customization_options` is `{text}`")));
    }
    Ok(Product {
        title: item.name,
        description: item.full_description.unwrap_or_default(),
        bullet_points: match item.small_description {
            Some(Points::Many(points)) => points,
            Some(Points::One(point)) => vec![point],
            None => Vec::new(),
        },
        price_tag: price_tag(&prices),
        price,
        options,
        attributes: attributes.unwrap_or_else(|| vec!["DUMMY_ATTR".to_owned()]),
        category: item.category,
        query: item.query.to_lowercase().trim().to_owned(),
        product_category: item.product_category,
        rating: "N.A.".to_owned(),
        reviews: Vec::new(),
        asin: item.asin,
    })
}

/// The limit of a goal's price, and what it adds to the instruction.
fn limit(product: &Product, number: usize) -> (f64, String) {
    let mut rng = Seed::from_u64(0).derive("shop limit", number).rng();
    match price_upper(product.price, |bound| rng.random_range(0..bound)) {
        Some(upper) => (upper, format!(", and price lower than {upper:.2} dollars")),
        None => (NO_LIMIT, String::new()),
    }
}

fn goal(
    product: &Product,
    place: usize,
    instruction: String,
    attributes: Vec<String>,
    price_upper: f64,
    options: GoalOptions,
) -> Goal {
    Goal {
        product: place,
        query: product.query.clone(),
        name: product.title.clone(),
        product_category: product.product_category.clone(),
        instruction,
        attributes,
        price_upper,
        options,
        way: OnceLock::new(),
    }
}

/// What a person asked for; nothing where that names no attributes, as in WebShop.
fn human_goal(
    product: &Product,
    place: usize,
    told: HumanInstruction,
    number: usize,
) -> Option<Goal> {
    if told.instruction_attributes.is_empty() {
        return None;
    }
    let (upper, said) = limit(product, number);
    let options = match told.instruction_options {
        HumanOptions::Values(values) => GoalOptions::Values(values),
        HumanOptions::Named(named) => GoalOptions::Named(
            named
                .into_iter()
                .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()))
                .collect(),
        ),
    };
    let text = format!("{}{said}", told.instruction.trim_matches('.'));
    Some(goal(product, place, text, told.instruction_attributes, upper, options))
}

/// Goals of one product that are kept: a value of every option, in all combinations, which may be very many.
const MOST_COMBINATIONS: usize = 10_000;

/// A goal for each combination of options, with one limit of the price for all.
fn synthetic_goals(
    product: &Product,
    place: usize,
    about: Option<ItemAttributes>,
    number: usize,
) -> Vec<Goal> {
    let Some((instruction, attributes)) =
        about.and_then(|about| Some((about.instruction?, about.instruction_attributes?)))
    else {
        return Vec::new();
    };
    if attributes.is_empty() {
        return Vec::new();
    }
    let (upper, said) = limit(product, number);
    let mut options: Vec<&(String, Vec<String>)> = product.options.iter().collect();
    options.sort_by(|a, b| a.0.cmp(&b.0));
    let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (name, values) in options {
        combinations = combinations
            .into_iter()
            .flat_map(|known| {
                values.iter().map(move |value| {
                    let mut known = known.clone();
                    known.push((name.clone(), value.clone()));
                    known
                })
            })
            .take(MOST_COMBINATIONS)
            .collect();
    }
    let make = |options: Vec<(String, String)>| {
        let named: Vec<String> =
            options.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let with = if named.is_empty() {
            String::new()
        } else {
            format!(" with {}", named.join(", and "))
        };
        let text = format!("{instruction}{with}{said}");
        goal(product, place, text, attributes.clone(), upper, GoalOptions::Named(options))
    };
    combinations.into_iter().map(make).collect()
}
