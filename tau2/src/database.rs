//! A database: an immutable base that all episodes share, and what one episode changed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use sha2::{Digest, Sha256};
use spar_python::{Dict, Exception, JsonOptions, Outcome, Value, json_dumps, json_dumps_with};

use crate::reply::Reply;
use crate::schema::{Kind, Model};
use crate::validate::validate;

/// Tables with fewer rows are kept as plain dictionaries.
const LARGE: usize = 16;

/// A database. A clone shares everything and costs two counts; what is changed afterwards is copied then, row by row.
#[derive(Clone)]
pub struct Database {
    model: &'static Model,
    fields: Arc<[Field]>,
    /// The fields, as bits by their places, that were handed out to be changed since the database was
    /// [settled](Database::settle).
    touched: u32,
}

#[derive(Clone)]
struct Field {
    name: &'static str,
    store: Store,
}

#[derive(Clone)]
enum Store {
    /// Whatever it is, as one value.
    Plain(Value),
    /// A dictionary with many rows.
    Table(Table),
}

/// A dictionary of rows over a shared base. No row of it is ever taken out.
#[derive(Clone)]
struct Table {
    base: Arc<Base>,
    /// Rows that replace those of the base, and new ones, in the order in which they came.
    changes: Arc<Dict>,
    /// How many of the changes are new rows.
    num_added: usize,
}

struct Base {
    rows: Dict,
    /// The rows as JSON, as tools answer with them; each made when it is asked for first.
    texts: Box<[OnceLock<Box<str>>]>,
    /// The places of rows by texts, a slot for each [`Key`] of the table; made when it is asked for first.
    indices: [OnceLock<HashMap<Box<str>, Vec<u32>>>; KEYS],
    /// The rows in the order of their keys, as JSON with sorted keys; made when a hash is asked for first.
    written: OnceLock<Vec<(Arc<str>, Box<str>)>>,
}

/// Keys that a table can have at the most.
const KEYS: usize = 2;

/// What rows of a table are looked for by, so that not all of them are gone over.
pub(crate) struct Key {
    /// Its own place among the keys of the table, below [`KEYS`].
    pub slot: usize,
    /// The texts under which a row is found.
    pub texts: fn(&Value) -> Vec<String>,
}

/// Objects of Python's that a tool got where it expected another are named by the database's class.
fn no_field(model: &Model, name: &str) -> Exception {
    Exception::no_attribute(model.name, name)
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.fields.iter().map(|Field { name, store, .. }| match store {
            Store::Table(table) => format!("{name}: {} rows", table.len()),
            Store::Plain(_) => (*name).to_owned(),
        });
        write!(formatter, "{}({})", self.model.name, sizes.collect::<Vec<_>>().join(", "))
    }
}

impl Database {
    /// Reads a database of a model.
    ///
    /// # Errors
    ///
    /// The `ValidationError` that lists what is wrong.
    pub(crate) fn read(model: &'static Model, value: &Value) -> Outcome<Self> {
        let read = validate(model, value)?;
        let object = read.as_dict().expect("models are read as dictionaries");
        let fields = model.fields.iter().map(|field| {
            let value = object.get_str(field.name).expect("every field is read").clone();
            let store = match (&field.kind, value) {
                (Kind::Dict(..), Value::Dict(rows)) if rows.len() >= LARGE => Store::Table(Table {
                    base: Arc::new(Base::new(Arc::unwrap_or_clone(rows))),
                    changes: Arc::default(),
                    num_added: 0,
                }),
                (_, value) => Store::Plain(value),
            };
            Field { name: field.name, store }
        });
        Ok(Self { model, fields: fields.collect(), touched: u32::MAX })
    }

    /// The database with the entries of a dictionary merged in, deep, and everything read anew.
    ///
    /// # Errors
    ///
    /// The `ValidationError` that lists what is wrong then.
    pub(crate) fn merged(&self, update: &Value) -> Outcome<Self> {
        let mut merged = self.to_value();
        merge(&mut merged, update);
        Self::read(self.model, &merged)
    }

    /// All of it as one value.
    pub fn to_value(&self) -> Value {
        Value::dict(self.fields.iter().map(|Field { name, store, .. }| {
            let value = match store {
                Store::Plain(value) => value.clone(),
                Store::Table(table) => {
                    let mut rows = Dict::default();
                    for (key, row) in table.iter() {
                        if let Some(key) = key.as_str() {
                            rows.insert_str(key, row.clone());
                        }
                    }
                    Value::Dict(rows.into())
                }
            };
            (*name, value)
        }))
    }

    /// Whether a field, or any where none is named, may have changed since the database was settled.
    pub(crate) fn is_touched(&self, name: Option<&str>) -> bool {
        self.touched != 0
            && name.is_none_or(|name| {
                self.place(name).is_some_and(|place| self.touched & bit(place) != 0)
            })
    }

    /// Takes all changes so far as known.
    pub(crate) fn settle(&mut self) {
        self.touched = 0;
    }

    #[inline]
    fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    #[inline]
    fn store(&self, name: &str) -> Option<&Store> {
        self.fields.iter().find(|field| field.name == name).map(|field| &field.store)
    }

    #[inline]
    fn store_mut(&mut self, name: &str) -> Option<&mut Store> {
        let place = self.place(name)?;
        self.touched |= bit(place);
        Some(&mut Arc::make_mut(&mut self.fields)[place].store)
    }

    /// The value of a field that is no table.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where the database has no such field.
    #[inline]
    pub fn field(&self, name: &str) -> Outcome<&Value> {
        match self.store(name) {
            Some(Store::Plain(value)) => Ok(value),
            _ => Err(no_field(self.model, name)),
        }
    }

    /// As [`field`](Self::field), to be changed.
    ///
    /// # Errors
    ///
    /// The same.
    #[inline]
    pub fn field_mut(&mut self, name: &str) -> Outcome<&mut Value> {
        let model = self.model;
        match self.store_mut(name) {
            Some(Store::Plain(value)) => Ok(value),
            _ => Err(no_field(model, name)),
        }
    }

    fn table(&self, name: &str) -> Outcome<Rows<'_>> {
        let rows = match self.store(name) {
            Some(Store::Table(table)) => Some(Rows::Many(table)),
            Some(Store::Plain(value)) => value.as_dict().map(Rows::Few),
            None => None,
        };
        rows.ok_or_else(|| no_field(self.model, name))
    }

    /// A row of a table.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where there is no such table, the `TypeError` of keys that cannot be hashed.
    pub fn row(&self, table: &str, key: &Value) -> Outcome<Option<&Value>> {
        match self.table(table)? {
            Rows::Many(table) => table.get(key),
            Rows::Few(rows) => rows.get(key),
        }
    }

    /// A row of a table as an answer. One that nobody changed is written once for all.
    ///
    /// # Errors
    ///
    /// Those of [`row`](Self::row), and the `ValueError` of numbers with thousands of digits.
    pub(crate) fn reply(&self, table: &str, key: &Value) -> Outcome<Option<Reply>> {
        let row = match self.table(table)? {
            Rows::Few(rows) => rows.get(key)?,
            Rows::Many(table) => match table.changes.get(key)? {
                Some(row) => Some(row),
                None => {
                    let place = table.base.rows.place_of(key)?;
                    let text = place.map(|place| table.base.text(place)).transpose()?.flatten();
                    return Ok(text.map(|text| Reply::Written(text.to_owned())));
                }
            },
        };
        Ok(row.cloned().map(Reply::Models))
    }

    /// As [`row`](Self::row), to be changed.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn row_mut(&mut self, table: &str, key: &Value) -> Outcome<Option<&mut Value>> {
        let model = self.model;
        match self.store_mut(table) {
            Some(Store::Table(table)) => table.get_mut(key),
            Some(Store::Plain(value)) => match value.as_dict_mut() {
                Some(rows) => rows.get_mut(key),
                None => Err(no_field(model, table)),
            },
            None => Err(no_field(model, table)),
        }
    }

    /// Sets a row.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where there is no such table, the `TypeError` of keys that cannot be hashed.
    pub fn insert(&mut self, table: &str, key: Value, row: Value) -> Outcome<()> {
        let model = self.model;
        match self.store_mut(table) {
            Some(Store::Table(table)) => table.insert(key, row),
            Some(Store::Plain(value)) => match value.as_dict_mut() {
                Some(rows) => rows.insert(key, row),
                None => Err(no_field(model, table)),
            },
            None => Err(no_field(model, table)),
        }
    }

    /// The rows of a table, in their order.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where there is no such table.
    pub fn rows(&self, table: &str) -> Outcome<Box<dyn Iterator<Item = (&Value, &Value)> + '_>> {
        Ok(match self.table(table)? {
            Rows::Many(table) => Box::new(table.iter()),
            Rows::Few(rows) => Box::new(rows.iter()),
        })
    }

    /// The rows of a table, in their order, as far as a text may stand under a key: all of which it does, and maybe others.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where there is no such table.
    pub(crate) fn rows_under(
        &self,
        table: &str,
        key: &Key,
        text: &str,
    ) -> Outcome<Vec<(&Value, &Value)>> {
        Ok(match self.table(table)? {
            Rows::Many(table) => table.under(key, text),
            Rows::Few(rows) => rows.iter().collect(),
        })
    }

    /// How many rows a table has.
    ///
    /// # Errors
    ///
    /// The `AttributeError` where there is no such table.
    pub fn num_rows(&self, table: &str) -> Outcome<usize> {
        Ok(match self.table(table)? {
            Rows::Many(table) => table.len(),
            Rows::Few(rows) => rows.len(),
        })
    }

    /// SHA-256 of the database as JSON with sorted keys, 64 hexadecimal digits.
    pub fn hash(&self) -> String {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_by_key(|field| field.name);
        let mut digest = Sha256::new();
        for (at, Field { name, store, .. }) in fields.into_iter().enumerate() {
            digest.update(if at == 0 { "{" } else { ", " });
            digest.update(format!("\"{name}\": "));
            match store {
                Store::Plain(value) => digest.update(written(value)),
                Store::Table(table) => table.digest(&mut digest),
            }
        }
        digest.update("}");
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether both are the same JSON, which is what equal hashes mean. Costs what the two have changed, where they
    /// share a base.
    pub fn is_same(&self, other: &Self) -> bool {
        self.model.name == other.model.name
            && self.fields.len() == other.fields.len()
            && self.fields.iter().zip(other.fields.iter()).all(|(one, other)| {
                one.name == other.name
                    && match (&one.store, &other.store) {
                        (Store::Plain(one), Store::Plain(other)) => written(one) == written(other),
                        (Store::Table(one), Store::Table(other)) => one.is_same(other),
                        _ => false,
                    }
            })
    }
}

/// The database as one JSON document.
impl Serialize for Database {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = json_dumps(&self.to_value()).map_err(serde::ser::Error::custom)?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

/// The bit of a field among those that were touched; those of models with very many fields share the last.
fn bit(place: usize) -> u32 {
    1 << place.min(31)
}

/// The rows of a table.
enum Rows<'d> {
    Many(&'d Table),
    Few(&'d Dict),
}

impl Table {
    fn len(&self) -> usize {
        self.base.rows.len() + self.num_added
    }

    fn get(&self, key: &Value) -> Outcome<Option<&Value>> {
        match self.changes.get(key)? {
            Some(row) => Ok(Some(row)),
            None => self.base.rows.get(key),
        }
    }

    fn get_mut(&mut self, key: &Value) -> Outcome<Option<&mut Value>> {
        if !self.changes.contains(key)? {
            let Some(row) = self.base.rows.get(key)? else { return Ok(None) };
            Arc::make_mut(&mut self.changes).insert(key.clone(), row.clone())?;
        }
        Arc::make_mut(&mut self.changes).get_mut(key)
    }

    fn insert(&mut self, key: Value, row: Value) -> Outcome<()> {
        let is_new = self.get(&key)?.is_none();
        self.num_added += usize::from(is_new);
        Arc::make_mut(&mut self.changes).insert(key, row)
    }

    fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        let old = self.base.rows.iter().map(|(key, row)| {
            let changed = match self.changes.is_empty() {
                true => None,
                false => self.changes.get(key).ok().flatten(),
            };
            (key, changed.unwrap_or(row))
        });
        let is_new = |key: &Value| matches!(self.base.rows.get(key), Ok(None));
        old.chain(self.changes.iter().filter(move |(key, _)| is_new(key)))
    }

    /// The rows under a text, those that were changed, and new ones.
    fn under(&self, key: &Key, text: &str) -> Vec<(&Value, &Value)> {
        let base = &*self.base;
        let of_base = base.index(key).get(text).map(Vec::as_slice).unwrap_or_default();
        let entry = |place: &u32| base.rows.entry(*place as usize);
        if self.changes.is_empty() {
            return of_base.iter().filter_map(entry).collect();
        }
        let place_of = |key: &Value| base.rows.place_of(key).ok().flatten();
        let changed = self.changes.keys().filter_map(|key| u32::try_from(place_of(key)?).ok());
        let mut places: Vec<u32> = of_base.iter().copied().chain(changed).collect();
        places.sort_unstable();
        places.dedup();
        let old = places.iter().filter_map(entry);
        let old = old.map(|(key, row)| (key, self.changes.get(key).ok().flatten().unwrap_or(row)));
        old.chain(self.changes.iter().filter(|(key, _)| place_of(key).is_none())).collect()
    }

    fn digest(&self, digest: &mut Sha256) {
        let written = self.base.written();
        let mut changes: Vec<(&str, String)> = self
            .changes
            .iter()
            .map(|(key, row)| (key.as_str().unwrap_or_default(), self::written(row)))
            .collect();
        changes.sort();
        let mut changes = changes.into_iter().peekable();
        let mut is_first = true;
        let mut put = |key: &str, row: &str| {
            digest.update(if is_first { "{" } else { ", " });
            is_first = false;
            digest.update(self::written(&Value::from(key)));
            digest.update(": ");
            digest.update(row.as_bytes());
        };
        for (key, row) in written {
            while let Some((new_key, new_row)) = changes.next_if(|(new, _)| **new < **key) {
                put(new_key, &new_row);
            }
            match changes.next_if(|(new, _)| **new == **key) {
                Some((_, new_row)) => put(key, &new_row),
                None => put(key, row),
            }
        }
        for (new_key, new_row) in changes {
            put(new_key, &new_row);
        }
        digest.update(if is_first { "{}" } else { "}" });
    }

    fn is_same(&self, other: &Self) -> bool {
        if !Arc::ptr_eq(&self.base, &other.base) {
            return written(&self.to_value()) == written(&other.to_value());
        }
        let keys = self.changes.keys().chain(other.changes.keys());
        keys.into_iter().all(|key| match (self.get(key), other.get(key)) {
            (Ok(Some(one)), Ok(Some(other))) => written(one) == written(other),
            _ => false,
        })
    }

    fn to_value(&self) -> Value {
        Value::dict(self.iter().map(|(key, row)| (key.as_str().unwrap_or_default(), row.clone())))
    }
}

impl Base {
    fn new(rows: Dict) -> Self {
        let texts = rows.iter().map(|_| OnceLock::new()).collect();
        Self { rows, texts, indices: Default::default(), written: OnceLock::new() }
    }

    /// The row at a place as JSON.
    fn text(&self, place: usize) -> Outcome<Option<&str>> {
        let (Some(text), Some((_, row))) = (self.texts.get(place), self.rows.entry(place)) else {
            return Ok(None);
        };
        if text.get().is_none() {
            // Another thread may have been faster, with the same text.
            let _ = text.set(json_dumps(row)?.into());
        }
        Ok(text.get().map(|text| &**text))
    }

    fn index(&self, key: &Key) -> &HashMap<Box<str>, Vec<u32>> {
        self.indices[key.slot].get_or_init(|| {
            let mut index: HashMap<Box<str>, Vec<u32>> = HashMap::new();
            for (place, row) in (0..).zip(self.rows.values()) {
                for text in (key.texts)(row) {
                    index.entry(text.into()).or_default().push(place);
                }
            }
            index
        })
    }

    fn written(&self) -> &[(Arc<str>, Box<str>)] {
        self.written.get_or_init(|| {
            let mut written: Vec<(Arc<str>, Box<str>)> = self
                .rows
                .iter()
                .map(|(key, row)| {
                    let key = key.as_str().unwrap_or_default();
                    (key.into(), written(row).into_boxed_str())
                })
                .collect();
            written.sort();
            written
        })
    }
}

/// A value as JSON with sorted keys.
fn written(value: &Value) -> String {
    let options = JsonOptions { sort_keys: true, ..JsonOptions::default() };
    // What it could refuse are numbers of thousands of digits, which are themselves then.
    json_dumps_with(value, options).unwrap_or_else(|error| error.text)
}

/// Merges a dictionary into another, deep where both have one.
fn merge(into: &mut Value, update: &Value) {
    let (Some(into), Some(update)) = (into.as_dict_mut(), update.as_dict()) else { return };
    for (key, value) in update.iter() {
        let Some(key) = key.as_str() else { continue };
        match into.get_str_mut(key) {
            Some(old @ Value::Dict(_)) if value.as_dict().is_some() => merge(old, value),
            _ => into.insert_str(key, value.clone()),
        }
    }
}
