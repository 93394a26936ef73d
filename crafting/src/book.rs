//! Recipes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

/// What the names of items begin with.
pub(crate) const PREFIX: &str = "minecraft:";

/// An item of a recipe: one of that name, or any that has a tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// Its tag; absent where it has none, or none is asked for.
    pub tag: Option<String>,
    /// Its name; absent where any of the tag will do.
    pub id: Option<String>,
}

impl Item {
    pub(crate) fn of_id(id: &str) -> Self {
        Self { tag: None, id: Some(id.to_owned()) }
    }

    fn of_tag(tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), id: None }
    }

    /// Its name, or else its tag.
    pub fn name(&self) -> &str {
        self.id.as_deref().or(self.tag.as_deref()).unwrap_or_default()
    }
}

/// So many of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Amount {
    /// The item.
    pub item: Item,
    /// How many.
    pub count: u64,
}

/// What becomes of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// What goes in.
    pub inputs: Vec<Amount>,
    /// What comes out.
    pub output: Amount,
}

impl Recipe {
    /// The recipe as a command.
    pub fn command(&self) -> String {
        let amount = |amount: &Amount| format!("{} {}", amount.count, shown(amount.item.name()));
        let inputs: Vec<_> = self.inputs.iter().map(amount).collect();
        format!("craft {} using {}", amount(&self.output), inputs.join(", "))
    }
}

/// A name as players read it.
pub(crate) fn shown(name: &str) -> String {
    name.replace(PREFIX, "").replace('_', " ")
}

/// Recipes cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// A file or folder could not be read.
    #[error("read `{path}`")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file is no JSON.
    #[error("`{path}` is no JSON")]
    Json {
        /// The path.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A file is no recipe.
    #[error("`{path}`: {detail}")]
    Form {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A folder has no recipe.
    #[error("`{path}` has no recipe of the types crafting_shaped and crafting_shapeless")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// A book of recipes.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Recipes by what comes out, in the order in which they were read.
    by_id: IndexMap<String, Vec<Recipe>>,
    by_tag: IndexMap<String, Vec<Recipe>>,
    tags: HashSet<String>,
    ids: HashSet<String>,
    tag_of: IndexMap<String, String>,
    /// What everything is made of, as far as it was read; recipes that would make circles are left out.
    needs: HashMap<String, BTreeSet<String>>,
    depths: HashMap<String, usize>,
}

impl Book {
    /// A book of recipes, in their order.
    pub(crate) fn of(recipes: impl IntoIterator<Item = Recipe>) -> Self {
        let mut book = Self::default();
        for recipe in recipes {
            book.add(recipe);
        }
        book.finish();
        book
    }

    /// The recipes of a folder with Minecraft's JSON files, in the order of their names; types other than `crafting_shaped` and `crafting_shapeless` are passed over.
    ///
    /// Of an ingredient with several choices the first counts, recipes that only unpack a block are left out, and so are those whose inputs are made of
    /// their output, as in TextCraft.
    ///
    /// # Errors
    ///
    /// [`BookError`] where the folder or a file cannot be read, or has none of the form.
    pub fn load(folder: &Path) -> Result<Self, BookError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| BookError::Io { path, source }
        };
        let inner = folder.join("recipes");
        let folder = if inner.is_dir() { &inner } else { folder };
        let entries = std::fs::read_dir(folder).map_err(io(folder))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(io(folder))?.path();
            if path.extension().is_some_and(|it| it == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut book = Self::default();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(io(&path))?;
            let value: Value = serde_json::from_str(&text)
                .map_err(|source| BookError::Json { path: path.clone(), source })?;
            match recipe(&value) {
                Ok(Some(recipe)) => book.add(recipe),
                Ok(None) => {}
                Err(detail) => return Err(BookError::Form { path, detail }),
            }
        }
        if book.by_id.is_empty() {
            return Err(BookError::Empty { path: folder.to_owned() });
        }
        book.finish();
        Ok(book)
    }

    fn add(&mut self, recipe: Recipe) {
        let output = recipe.output.item.name().to_owned();
        for input in &recipe.inputs {
            match (&input.item.id, &input.item.tag) {
                (Some(id), _) => self.ids.insert(id.clone()),
                (None, Some(tag)) => self.tags.insert(tag.clone()),
                (None, None) => false,
            };
        }
        self.ids.insert(output.clone());
        if let [only] = &recipe.inputs[..]
            && only.item.name().ends_with("_block")
        {
            return;
        }
        if let Some(tag) = recipe.output.item.tag.as_ref().filter(|tag| **tag != output) {
            self.tags.insert(tag.clone());
            self.tag_of.insert(output.clone(), tag.clone());
        }
        self.needs.entry(output.clone()).or_default();
        let names: Vec<String> =
            recipe.inputs.iter().map(|input| input.item.name().to_owned()).collect();
        let is_circle = |name: &String| self.needs.get(name).is_some_and(|it| it.contains(&output));
        if names.iter().any(is_circle) {
            return;
        }
        for name in names {
            let behind = self.needs.get(&name).cloned().unwrap_or_default();
            let needs = self.needs.entry(output.clone()).or_default();
            needs.extend(behind);
            needs.insert(name);
        }
        if let Some(tag) = &recipe.output.item.tag {
            self.by_tag.entry(tag.clone()).or_default().push(recipe.clone());
        }
        self.by_id.entry(output).or_default().push(recipe);
    }

    /// Tags of which nothing can be made are items; then the depths of all.
    fn finish(&mut self) {
        let is_made = |tag: &String| {
            self.tag_of.iter().any(|(id, of)| of == tag && self.by_id.contains_key(id))
        };
        let plain: HashSet<String> =
            self.tags.iter().filter(|tag| !is_made(tag)).cloned().collect();
        let asked: HashSet<String> = self
            .by_id
            .values()
            .flatten()
            .flat_map(|recipe| &recipe.inputs)
            .filter(|input| input.item.id.is_none())
            .filter_map(|input| input.item.tag.clone())
            .filter(|tag| plain.contains(tag))
            .collect();
        for recipe in self.by_id.values_mut().chain(self.by_tag.values_mut()).flatten() {
            for input in &mut recipe.inputs {
                if input.item.id.is_none()
                    && let Some(tag) = input.item.tag.clone().filter(|tag| asked.contains(tag))
                {
                    input.item = Item::of_id(&tag);
                }
            }
        }
        for tag in asked {
            self.tags.remove(&tag);
            self.ids.insert(tag);
        }
        let names: Vec<String> = self.by_id.keys().chain(self.by_tag.keys()).cloned().collect();
        for name in names {
            self.find_depth(&name, 0);
        }
    }

    fn find_depth(&mut self, name: &str, deep: usize) -> usize {
        if let Some(known) = self.depths.get(name) {
            return *known;
        }
        let recipes = self.by_id.get(name).or_else(|| self.by_tag.get(name)).cloned();
        let Some(recipes) = recipes.filter(|_| deep < 200) else { return 0 };
        let mut of_recipe = |recipe: &Recipe| {
            let inputs = recipe.inputs.iter();
            inputs.map(|input| self.find_depth(input.item.name(), deep + 1) + 1).max().unwrap_or(1)
        };
        let depth = recipes.iter().map(&mut of_recipe).min().unwrap_or(0);
        self.depths.insert(name.to_owned(), depth);
        depth
    }

    /// How many crafts lie between an item and what can be fetched: 0 for what can be.
    pub fn depth(&self, name: &str) -> usize {
        self.depths.get(name).copied().unwrap_or(0)
    }

    /// The items that can be made, the least deep first, else in the order in which they were read.
    pub fn goals(&self) -> Vec<(&str, usize)> {
        let mut goals: Vec<_> = self.by_id.keys().map(|id| (id.as_str(), self.depth(id))).collect();
        goals.retain(|(_, depth)| *depth > 0);
        goals.sort_by_key(|(_, depth)| *depth);
        goals
    }

    /// The recipes of an item.
    pub fn recipes(&self, id: &str) -> &[Recipe] {
        self.by_id.get(id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Recipe> {
        self.by_id.values().flatten()
    }

    pub(crate) fn is_tag(&self, name: &str) -> bool {
        self.tags.contains(name)
    }

    pub(crate) fn is_craftable(&self, name: &str) -> bool {
        self.by_id.contains_key(name) || self.by_tag.contains_key(name)
    }

    /// Whether an item can be fetched.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.ids.contains(name) && !self.is_craftable(name) && !self.is_tag(name)
    }

    /// The items of a tag.
    pub(crate) fn tagged(&self, tag: &str) -> impl Iterator<Item = &str> {
        self.tag_of.iter().filter(move |(_, of)| *of == tag).map(|(id, _)| id.as_str())
    }

    /// Whether an item will do where one is asked for.
    pub(crate) fn fits(&self, given: &Item, wanted: &Item) -> bool {
        match (&wanted.id, &wanted.tag) {
            (Some(id), _) => given.id.as_ref() == Some(id),
            (None, Some(tag)) => {
                given.tag.as_ref() == Some(tag)
                    || given.id.as_ref().and_then(|id| self.tag_of.get(id)) == Some(tag)
            }
            (None, None) => false,
        }
    }

    /// All recipes on the way to an item, the item's own first, each once.
    pub(crate) fn way(&self, name: &str) -> Vec<&Recipe> {
        let (mut found, mut open, mut known) = (Vec::new(), vec![name], HashSet::from([name]));
        while let Some(name) = open.pop() {
            let recipes = self.by_id.get(name).or_else(|| self.by_tag.get(name));
            for recipe in recipes.into_iter().flatten() {
                if !found.contains(&recipe) {
                    found.push(recipe);
                }
                for input in &recipe.inputs {
                    if known.insert(input.item.name()) {
                        open.push(input.item.name());
                    }
                }
            }
        }
        found
    }
}

/// The recipe of a file; nothing where it is of another type.
fn recipe(value: &Value) -> Result<Option<Recipe>, String> {
    let kind = value["type"].as_str().ok_or("`type` is missing")?;
    let mut inputs: Vec<Amount> = Vec::new();
    let mut add = |item: Item, count: u64| match inputs.iter_mut().find(|input| input.item == item)
    {
        Some(input) => input.count += count,
        None => inputs.push(Amount { item, count }),
    };
    match kind.trim_start_matches(PREFIX) {
        "crafting_shaped" => {
            let pattern = value["pattern"].as_array().ok_or("`pattern` is no list")?;
            let keys = value["key"].as_object().ok_or("`key` is no object")?;
            for (key, ingredient) in keys {
                let lines = pattern.iter().filter_map(Value::as_str);
                let count: usize = lines.map(|line| line.matches(key.as_str()).count()).sum();
                let item = ingredient_of(ingredient)
                    .ok_or("an ingredient has neither `item` nor `tag`")?;
                // Of a shape every letter is an input of its own.
                inputs.push(Amount { item, count: count as u64 });
            }
        }
        "crafting_shapeless" => {
            for ingredient in value["ingredients"].as_array().ok_or("`ingredients` is no list")? {
                add(
                    ingredient_of(ingredient)
                        .ok_or("an ingredient has neither `item` nor `tag`")?,
                    1,
                );
            }
        }
        _ => return Ok(None),
    }
    if inputs.is_empty() {
        return Err("nothing goes in".to_owned());
    }
    let result = &value["result"];
    let id = result.as_str().or_else(|| result["item"].as_str()).or_else(|| result["id"].as_str());
    let id = id.ok_or("`result` names no item")?.to_owned();
    let count = result["count"].as_u64().filter(|count| *count > 0).unwrap_or(1);
    let tag = value["group"].as_str().map(|group| format!("{PREFIX}{group}"));
    Ok(Some(Recipe { inputs, output: Amount { item: Item { tag, id: Some(id) }, count } }))
}

/// The first choice of an ingredient; newer files have a text for each, with `#` before tags.
fn ingredient_of(value: &Value) -> Option<Item> {
    let first = value.as_array().map_or(Some(value), |choices| choices.first())?;
    if let Some(text) = first.as_str() {
        return Some(text.strip_prefix('#').map_or_else(|| Item::of_id(text), Item::of_tag));
    }
    let field = |name: &str| first[name].as_str();
    field("item").map(Item::of_id).or_else(|| field("tag").map(Item::of_tag))
}
