//! Dictionaries and sets.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use num_bigint::BigInt;
use num_traits::FromPrimitive;
use smol_str::SmolStr;

use crate::{Int, Outcome, Value, equal};

/// Up to so many entries a dictionary is searched from its beginning.
const SEARCHED: usize = 16;

/// Between so many keys, told at once, a mark of each stands beside them: going over these costs less than a hash.
const MARKED: std::ops::RangeInclusive<usize> = 5..=32;

/// A dictionary: entries in the order of insertion, keys compared as Python does, so that `1`, `1.0` and `True` are one
/// key.
///
/// Its keys are shared with its copies until one of them gets or loses one, so that a copy costs what its values do.
#[derive(Debug, Clone)]
pub struct Dict {
    keys: Arc<Keys>,
    /// The values in the order of the keys.
    values: Vec<Value>,
}

/// The keys of a dictionary, which all dictionaries of one shape can share.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    keys: Vec<Value>,
    /// A mark of each key, in the order of the keys, where they are texts that were told at once and are neither few nor many.
    marks: Option<Box<[u32]>>,
    /// The places of keys by their hash, once there are many.
    places: Option<HashTable<u32>>,
}

/// The keys of a dictionary that has none.
static NO_KEYS: LazyLock<Arc<Keys>> = LazyLock::new(Arc::default);

/// How keys are hashed in this process: by a seed that nobody outside it knows.
static HASHING: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

impl Default for Dict {
    fn default() -> Self {
        Self { keys: Arc::clone(&NO_KEYS), values: Vec::new() }
    }
}

impl Keys {
    /// Keys in their order, which are texts of which no two are equal.
    pub fn from_distinct(keys: Vec<Value>) -> Self {
        let mut keys = Self { keys, ..Self::default() };
        if MARKED.contains(&keys.keys.len()) {
            keys.marks = keys.keys.iter().map(|key| key.as_str().map(mark)).collect();
        }
        keys.index_if_large();
        debug_assert!(
            keys.keys.iter().enumerate().all(|(at, key)| {
                key.as_str().is_some_and(|key| keys.place_of_str(key) == Some(at))
            }),
            "keys are texts, and no two are equal"
        );
        keys
    }

    /// Appends a key that is not there.
    fn push(&mut self, key: Value) {
        self.marks = None;
        let place = place_in_table(self.keys.len());
        if let Some(places) = &mut self.places {
            let keys = &self.keys;
            let hash = hash_at(&key, place);
            places.insert_unique(hash, place, |&place| hash_at(&keys[place as usize], place));
        }
        self.keys.push(key);
        self.index_if_large();
    }

    fn index_if_large(&mut self) {
        if self.keys.len() > SEARCHED && self.places.is_none() && self.marks.is_none() {
            let mut places = HashTable::with_capacity(self.keys.len());
            let keys = &self.keys;
            for (place, key) in keys.iter().enumerate() {
                let place = place_in_table(place);
                let hash = hash_at(key, place);
                places.insert_unique(hash, place, |&place| hash_at(&keys[place as usize], place));
            }
            self.places = Some(places);
        }
    }

    fn place(&self, key: &Value) -> Option<usize> {
        if let Value::Str(text) = key {
            return self.place_of_str(text);
        }
        match &self.places {
            None => self.keys.iter().position(|other| equal(key, other)),
            Some(places) => {
                let is_it = |&place: &u32| equal(key, &self.keys[place as usize]);
                places.find(hash(key), is_it).map(|&place| place as usize)
            }
        }
    }

    fn place_of_str(&self, key: &str) -> Option<usize> {
        let is_it = |other: &Value| matches!(other, Value::Str(text) if **text == *key);
        if let Some(marks) = &self.marks {
            let wanted = mark(key);
            let mut marked = marks.iter().zip(&self.keys);
            return marked.position(|(mark, other)| *mark == wanted && is_it(other));
        }
        match &self.places {
            None => self.keys.iter().position(is_it),
            Some(places) => {
                let is_it = |&place: &u32| is_it(&self.keys[place as usize]);
                places.find(hash_str(key), is_it).map(|&place| place as usize)
            }
        }
    }
}

impl Dict {
    /// An empty one with room for so many entries.
    pub fn with_capacity(entries: usize) -> Self {
        let keys = Keys { keys: Vec::with_capacity(entries), ..Keys::default() };
        Self { keys: Arc::new(keys), values: Vec::with_capacity(entries) }
    }

    /// The entries of names that are all different.
    pub(crate) fn of_different<const N: usize>(entries: [(&'static str, Value); N]) -> Self {
        let (mut keys, mut values) = (Vec::with_capacity(N), Vec::with_capacity(N));
        for (name, value) in entries {
            keys.push(Value::Str(SmolStr::new_static(name)));
            values.push(value);
        }
        Self::of_shape(Arc::new(Keys::from_distinct(keys)), values)
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Value, &Value)> + ExactSizeIterator {
        self.keys.keys.iter().zip(&self.values)
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.keys.keys.iter()
    }

    /// The values in their order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.values.iter()
    }

    /// A dictionary of these keys and their values, of which there are as many.
    pub fn of_shape(keys: Arc<Keys>, values: Vec<Value>) -> Self {
        assert_eq!(keys.keys.len(), values.len(), "every key has a value");
        Self { keys, values }
    }

    /// The entry at a place, counted from 0.
    pub fn entry(&self, place: usize) -> Option<(&Value, &Value)> {
        Some((self.keys.keys.get(place)?, self.values.get(place)?))
    }

    /// Its keys, which copies of it share.
    pub fn shape(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// The value at a place where its keys are these very ones, shared with whoever asks.
    pub fn at(&self, keys: &Arc<Keys>, place: usize) -> Option<&Value> {
        if Arc::ptr_eq(&self.keys, keys) { self.values.get(place) } else { None }
    }

    /// As [`at`](Self::at), to be changed.
    pub fn at_mut(&mut self, keys: &Arc<Keys>, place: usize) -> Option<&mut Value> {
        if Arc::ptr_eq(&self.keys, keys) { self.values.get_mut(place) } else { None }
    }

    /// The place of a key among the entries, counted from 0.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn place_of(&self, key: &Value) -> Outcome<Option<usize>> {
        key.check_hashable()?;
        Ok(self.keys.place(key))
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn get(&self, key: &Value) -> Outcome<Option<&Value>> {
        Ok(self.place_of(key)?.map(|place| &self.values[place]))
    }

    /// The value of a key, to be changed.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn get_mut(&mut self, key: &Value) -> Outcome<Option<&mut Value>> {
        Ok(self.place_of(key)?.map(|place| &mut self.values[place]))
    }

    /// The place of a text among the entries, counted from 0.
    pub fn place_of_str(&self, key: &str) -> Option<usize> {
        self.keys.place_of_str(key)
    }

    /// The value of a text.
    pub fn get_str(&self, key: &str) -> Option<&Value> {
        self.keys.place_of_str(key).map(|place| &self.values[place])
    }

    /// The value of a text, to be changed.
    pub fn get_str_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.keys.place_of_str(key).map(|place| &mut self.values[place])
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn contains(&self, key: &Value) -> Outcome<bool> {
        Ok(self.place_of(key)?.is_some())
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
    pub fn insert_str(&mut self, key: impl Into<SmolStr>, value: Value) {
        self.insert_hashable(Value::Str(key.into()), value);
    }

    /// Takes an entry out; the others keep their order.
    ///
    /// # Errors
    ///
    /// A `TypeError` when the key cannot be hashed.
    pub fn remove(&mut self, key: &Value) -> Outcome<Option<Value>> {
        let Some(place) = self.place_of(key)? else { return Ok(None) };
        let keys = Arc::make_mut(&mut self.keys);
        (keys.places, keys.marks) = (None, None);
        keys.keys.remove(place);
        keys.index_if_large();
        Ok(Some(self.values.remove(place)))
    }

    fn insert_hashable(&mut self, key: Value, value: Value) {
        match self.keys.place(&key) {
            Some(place) => self.values[place] = value,
            None => {
                Arc::make_mut(&mut self.keys).push(key);
                self.values.push(value);
            }
        }
    }
}

/// What tells most texts apart: their length, and their bytes at both ends and in the middle.
fn mark(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let [Some(first), Some(middle), Some(last)] =
        [0, bytes.len() / 2, bytes.len().saturating_sub(1)].map(|at| bytes.get(at))
    else {
        return 0;
    };
    u32::from_le_bytes([bytes.len().to_le_bytes()[0], *first, *middle, *last])
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

/// The hash that a key has in a table at its place. A key that is equal to nothing is found by no hash, so that its place will
/// do; with one hash for all that are no numbers, each would be compared with all before it.
fn hash_at(key: &Value, place: u32) -> u64 {
    if equals_nothing(key) { HASHING.hash_one(place) } else { hash(key) }
}

/// Whether a value that can be hashed is not even equal to itself.
fn equals_nothing(value: &Value) -> bool {
    match value {
        Value::Float(value) => value.is_nan(),
        Value::Complex(real, imaginary) => real.is_nan() || imaginary.is_nan(),
        Value::Tuple(items) => items.iter().any(equals_nothing),
        _ => false,
    }
}

fn write(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Str(text) => (0_u8, &**text).hash(hasher),
        Value::Bool(value) => (1_u8, Int::from(i64::from(*value))).hash(hasher),
        Value::Int(value) => (1_u8, value).hash(hasher),
        Value::Float(value) | Value::Complex(value, 0.0) => {
            match (value.fract() == 0.0).then(|| BigInt::from_f64(*value)).flatten() {
                Some(whole) => (1_u8, Int::from(whole)).hash(hasher),
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
    fn a_record_is_a_dictionary() {
        let record = Value::record([("b", Value::from(1_i64)), ("a", Value::None)]);
        let dict = Value::dict([("b", Value::from(1_i64)), ("a", Value::None)]);
        assert_eq!(crate::repr(&record), crate::repr(&dict));
        assert!(equal(&record, &dict));
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
    fn copies_of_one_shape_go_their_own_ways() {
        for size in [3, 40] {
            let names = (0..size).map(|number| Value::from(format!("k{number}")));
            let keys = Arc::new(Keys::from_distinct(names.collect()));
            let numbers = || (0..size).map(|number| Value::from(number as i64)).collect();
            let one = Dict::of_shape(Arc::clone(&keys), numbers());
            let mut other = one.clone();
            *other.get_str_mut("k2").unwrap() = Value::None;
            other.insert_str("new", Value::Bool(true));
            other.remove(&Value::from("k0")).unwrap();
            assert_eq!((one.len(), other.len()), (size, size));
            assert!(one.get_str("new").is_none() && one.get_str("k0").is_some());
            assert!(equal(one.get_str("k2").unwrap(), &Value::from(2_i64)));
            assert!(matches!(other.get_str("k2"), Some(Value::None)));
            assert!(matches!(other.get_str("new"), Some(Value::Bool(true))));
            assert!(matches!(other.entry(0), Some((key, _)) if key.as_str() == Some("k1")));
            assert!(other.get_str("k0").is_none() && Dict::default().is_empty());
        }
    }

    #[test]
    fn keys_that_are_equal_to_nothing_are_not_held_against_each_other() {
        // Were they, this would be more than ten thousand million comparisons.
        let nan = Value::Float(f64::NAN);
        let mut dict = Dict::default();
        for number in 0..50_000_i64 {
            dict.insert(nan.clone(), Value::from(number)).unwrap();
            dict.insert(Value::tuple([Value::from("x"), nan.clone()]), Value::None).unwrap();
            dict.insert(Value::Complex(1.0, f64::NAN), Value::None).unwrap();
            dict.insert(Value::from(number), Value::from(number)).unwrap();
        }
        assert_eq!(dict.len(), 200_000);
        assert!(dict.get(&nan).unwrap().is_none());
        let number = dict.get(&Value::Float(49_999.0)).unwrap().unwrap();
        assert_eq!(number.as_i64(), Some(49_999));
    }

    #[test]
    fn what_cannot_be_hashed_is_no_key() {
        let error = Dict::default().get(&Value::tuple([Value::list([])])).unwrap_err();
        assert_eq!(error.text, "unhashable type: 'list'");
    }
}
