//! Dictionaries and sets.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use num_bigint::BigInt;
use num_traits::FromPrimitive;

use crate::{Outcome, Value, equal};

/// Up to so many entries a dictionary is searched from its beginning.
const SEARCHED: usize = 16;

/// A dictionary: entries in the order of insertion, keys compared as Python does, so that `1`, `1.0` and `True` are one
/// key.
#[derive(Debug, Clone, Default)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    /// The places of entries by the hash of their key, once there are many. A copy of it is a copy of its bytes.
    places: Option<HashTable<u32>>,
}

/// How keys are hashed in this process: by a seed that nobody outside it knows.
static HASHING: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

impl Dict {
    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Value, &Value)> + ExactSizeIterator {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The values in their order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.iter().map(|(_, value)| value)
    }

    /// A dictionary of entries in their order, whose keys are texts of which no two are equal.
    pub fn from_distinct(entries: Vec<(Value, Value)>) -> Self {
        let mut dict = Self { entries, places: None };
        dict.index_if_large();
        debug_assert!(
            dict.keys().enumerate().all(|(at, key)| {
                key.as_str().is_some_and(|key| dict.place_of_str(key) == Some(at))
            }),
            "keys are texts, and no two are equal"
        );
        dict
    }

    /// The entry at a place, counted from 0.
    pub fn entry(&self, place: usize) -> Option<(&Value, &Value)> {
        self.entries.get(place).map(|(key, value)| (key, value))
    }

    /// The place of a key among the entries, counted from 0.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn place_of(&self, key: &Value) -> Outcome<Option<usize>> {
        key.check_hashable()?;
        Ok(self.place(key))
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn get(&self, key: &Value) -> Outcome<Option<&Value>> {
        key.check_hashable()?;
        Ok(self.place(key).map(|place| &self.entries[place].1))
    }

    /// The value of a key, to be changed.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn get_mut(&mut self, key: &Value) -> Outcome<Option<&mut Value>> {
        key.check_hashable()?;
        Ok(self.place(key).map(|place| &mut self.entries[place].1))
    }

    /// The value of a text.
    pub fn get_str(&self, key: &str) -> Option<&Value> {
        self.place_of_str(key).map(|place| &self.entries[place].1)
    }

    /// The value of a text, to be changed.
    pub fn get_str_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.place_of_str(key).map(|place| &mut self.entries[place].1)
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn contains(&self, key: &Value) -> Outcome<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Sets the value of a key. A key that is there already keeps its place and its form.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn insert(&mut self, key: Value, value: Value) -> Outcome<()> {
        key.check_hashable()?;
        self.insert_hashable(key, value);
        Ok(())
    }

    /// Sets the value of a text.
    pub fn insert_str(&mut self, key: impl Into<Arc<str>>, value: Value) {
        self.insert_hashable(Value::Str(key.into()), value);
    }

    /// Takes an entry out; the others keep their order.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn remove(&mut self, key: &Value) -> Outcome<Option<Value>> {
        key.check_hashable()?;
        let Some(place) = self.place(key) else { return Ok(None) };
        self.places = None;
        let (_, value) = self.entries.remove(place);
        self.index_if_large();
        Ok(Some(value))
    }

    fn insert_hashable(&mut self, key: Value, value: Value) {
        match self.place(&key) {
            Some(place) => self.entries[place].1 = value,
            None => self.push(key, value),
        }
    }

    /// Appends an entry whose key is not there.
    fn push(&mut self, key: Value, value: Value) {
        let place = place_in_table(self.entries.len());
        if let Some(places) = &mut self.places {
            let entries = &self.entries;
            places.insert_unique(hash(&key), place, |&place| hash(&entries[place as usize].0));
        }
        self.entries.push((key, value));
        self.index_if_large();
    }

    fn index_if_large(&mut self) {
        if self.entries.len() > SEARCHED && self.places.is_none() {
            let mut places = HashTable::with_capacity(self.entries.len());
            let entries = &self.entries;
            for (place, (key, _)) in entries.iter().enumerate() {
                let place = place_in_table(place);
                places.insert_unique(hash(key), place, |&place| hash(&entries[place as usize].0));
            }
            self.places = Some(places);
        }
    }

    fn place(&self, key: &Value) -> Option<usize> {
        if let Value::Str(text) = key {
            return self.place_of_str(text);
        }
        match &self.places {
            None => self.entries.iter().position(|(other, _)| equal(key, other)),
            Some(places) => {
                let is_it = |&place: &u32| equal(key, &self.entries[place as usize].0);
                places.find(hash(key), is_it).map(|&place| place as usize)
            }
        }
    }

    fn place_of_str(&self, key: &str) -> Option<usize> {
        let is_it = |other: &Value| matches!(other, Value::Str(text) if **text == *key);
        match &self.places {
            None => self.entries.iter().position(|(other, _)| is_it(other)),
            Some(places) => {
                let is_it = |&place: &u32| is_it(&self.entries[place as usize].0);
                places.find(hash_str(key), is_it).map(|&place| place as usize)
            }
        }
    }
}

/// A place as tables hold it, in four bytes.
fn place_in_table(place: usize) -> u32 {
    u32::try_from(place)
        .expect("a dictionary of four thousand million entries does not fit into memory")
}

/// A set, in the order of insertion.
#[derive(Debug, Clone, Default)]
pub struct Set {
    elements: Dict,
}

impl Set {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements in the order of insertion.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.elements.keys()
    }

    /// Whether an element is in it.
    ///
    /// # Errors
    ///
    /// A `TypeError` when it cannot be hashed.
    pub fn contains(&self, element: &Value) -> Outcome<bool> {
        self.elements.contains(element)
    }

    /// Adds an element.
    ///
    /// # Errors
    ///
    /// A `TypeError` when it cannot be hashed.
    pub fn insert(&mut self, element: Value) -> Outcome<()> {
        self.elements.insert(element, Value::None)
    }
}

fn hash_str(text: &str) -> u64 {
    HASHING.hash_one(text)
}

/// A hash under which equal values are equal. Of a value that cannot be hashed it is any number.
fn hash(value: &Value) -> u64 {
    if let Value::Str(text) = value {
        return hash_str(text);
    }
    let mut hasher = HASHING.build_hasher();
    write(value, &mut hasher);
    hasher.finish()
}

fn write(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Str(text) => (0_u8, &**text).hash(hasher),
        Value::Bool(value) => (1_u8, BigInt::from(u8::from(*value))).hash(hasher),
        Value::Int(value) => (1_u8, value).hash(hasher),
        Value::Float(value) | Value::Complex(value, 0.0) => {
            match (value.fract() == 0.0).then(|| BigInt::from_f64(*value)).flatten() {
                Some(whole) => (1_u8, whole).hash(hasher),
                None => (2_u8, value.to_bits()).hash(hasher),
            }
        }
        Value::Complex(real, imaginary) => {
            (3_u8, real.to_bits(), imaginary.to_bits()).hash(hasher);
        }
        Value::Tuple(items) => {
            (4_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| write(item, hasher));
        }
        Value::Opaque(opaque) => (5_u8, &opaque.repr).hash(hasher),
        Value::None => 6_u8.hash(hasher),
        Value::Ellipsis => 7_u8.hash(hasher),
        Value::List(_) | Value::Dict(_) | Value::Set(_) => 8_u8.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_equal_value_are_one_key() {
        let mut dict = Dict::default();
        for (key, value) in
            [(Value::from(1_i64), "int"), (Value::Bool(true), "bool"), (Value::Float(1.0), "float")]
        {
            dict.insert(key, Value::from(value)).unwrap();
        }
        assert_eq!(dict.len(), 1);
        assert!(matches!(dict.keys().next(), Some(Value::Int(_))), "the first form stays");
        assert_eq!(dict.get(&Value::Float(1.0)).unwrap().and_then(Value::as_str), Some("float"));
    }

    #[test]
    fn a_large_dictionary_answers_as_a_small_one() {
        let mut dict = Dict::default();
        for number in 0..200_i64 {
            dict.insert(Value::from(number), Value::from(number * 2)).unwrap();
            dict.insert_str(format!("k{number}"), Value::from(number));
        }
        assert!(equal(dict.get(&Value::Float(150.0)).unwrap().unwrap(), &Value::from(300_i64)));
        dict.remove(&Value::from(3_i64)).unwrap();
        assert!(dict.get(&Value::from(3_i64)).unwrap().is_none());
        assert!(equal(dict.get_str("k199").unwrap(), &Value::from(199_i64)));
        assert_eq!(dict.len(), 399);
    }

    #[test]
    fn what_cannot_be_hashed_is_no_key() {
        let error = Dict::default().get(&Value::tuple([Value::list([])])).unwrap_err();
        assert_eq!(error.text, "unhashable type: 'list'");
    }
}
