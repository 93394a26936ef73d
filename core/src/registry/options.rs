//! The options of a row: described by a struct, read from what was written.

use std::any::TypeId;
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::known_names;
use super::{DescribedOption, RowError};

/// Options as they were written.
pub type Options = Map<String, Value>;

/// Options that were written as something else than JSON, such as a table of TOML.
///
/// Numbers that JSON does not have (infinite ones, and what is no number) become `null`, which no row takes.
pub fn to_options(written: &impl Serialize) -> Options {
    match serde_json::to_value(written) {
        Ok(Value::Object(options)) => options,
        _ => Options::new(),
    }
}

/// A struct of options: its doc comments describe them, its `Default` has their defaults.
///
/// It is read with `#[serde(deny_unknown_fields, default)]`.
pub trait NamedOptions:
    Serialize + DeserializeOwned + Default + JsonSchema + Send + Sync + 'static
{
    /// All values that are out of range or do not fit together; none by default.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The options of what has nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoOptions {}

impl NamedOptions for NoOptions {}

/// Which struct has the options of a row.
#[derive(Clone, Copy)]
pub struct OptionSet {
    type_id: fn() -> TypeId,
    describe: fn() -> Vec<DescribedOption>,
    check: fn(&Options) -> Vec<String>,
}

impl OptionSet {
    /// There is nothing to set.
    pub const NONE: Self = Self::of::<NoOptions>();

    /// The options are those of `T`.
    pub const fn of<T: NamedOptions>() -> Self {
        Self {
            type_id: TypeId::of::<T>,
            describe: describe::<T>,
            check: |given| read::<T>(given).err().unwrap_or_default(),
        }
    }

    /// Each option with its type, default and meaning, in the struct's order.
    pub fn describe(&self) -> Vec<DescribedOption> {
        (self.describe)()
    }

    /// All that is wrong with options; empty when nothing is.
    pub fn check(&self, given: &Options) -> Vec<String> {
        (self.check)(given)
    }
}

impl fmt::Debug for OptionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.describe().into_iter().map(|option| option.name);
        formatter.debug_list().entries(names).finish()
    }
}

/// Options that were given to a row.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    what: &'static str,
    name: &'static str,
    set: OptionSet,
    options: &'a Options,
}

impl<'a> Given<'a> {
    pub(super) fn new(
        what: &'static str,
        name: &'static str,
        set: OptionSet,
        options: &'a Options,
    ) -> Self {
        Self { what, name, set, options }
    }

    /// Reads them; those that were left out have their defaults.
    ///
    /// # Errors
    ///
    /// [`RowError::Options`] tells at once which options there are not, which values are of another type, and which are
    /// out of range.
    ///
    /// # Panics
    ///
    /// When the row says that its options are those of another struct.
    pub fn read<T: NamedOptions>(&self) -> Result<T, RowError> {
        let (what, name) = (self.what, self.name);
        assert!(
            (self.set.type_id)() == TypeId::of::<T>(),
            "the row of {what} `{name}` is opened with other options than it describes"
        );
        read(self.options).map_err(|problems| RowError::Options {
            what,
            name: name.to_owned(),
            problems,
        })
    }

    /// As they were written.
    pub fn as_written(&self) -> &'a Options {
        self.options
    }
}

/// Reads options, or tells all that is wrong with them.
fn read<T: NamedOptions>(given: &Options) -> Result<T, Vec<String>> {
    if given.values().any(holds_null) {
        return Err(diagnose::<T>(given));
    }
    match serde_json::from_value::<T>(Value::Object(given.clone())) {
        Ok(options) => match options.problems() {
            problems if problems.is_empty() => Ok(options),
            problems => Err(problems),
        },
        Err(_) => Err(diagnose::<T>(given)),
    }
}

/// Whether a value, or one within it, is absent or a number that JSON does not have.
fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(holds_null),
        Value::Object(values) => values.values().any(holds_null),
        _ => false,
    }
}

/// What is wrong with options that cannot be read: each is tried alone.
fn diagnose<T: NamedOptions>(given: &Options) -> Vec<String> {
    let known: Vec<String> = describe::<T>().into_iter().map(|option| option.name).collect();
    let (mut good, mut problems) = (given.clone(), Vec::new());
    good.retain(|name, value| {
        let alone = Options::from_iter([(name.clone(), value.clone())]);
        let told = match serde_json::from_value::<T>(Value::Object(alone)) {
            _ if known.contains(name) && holds_null(value) => {
                "leave it out, or give a value that is finite".to_owned()
            }
            Ok(_) => return true,
            Err(error) if known.contains(name) => error.to_string(),
            Err(_) => {
                let options = match known_names(name, known.iter().map(String::as_str)) {
                    none if none.is_empty() => "it has no options".to_owned(),
                    known => format!("options are {known}"),
                };
                problems.push(format!("there is no option `{name}`: {options}"));
                return false;
            }
        };
        problems.push(format!("{name}: {told}"));
        false
    });
    match serde_json::from_value::<T>(Value::Object(good)) {
        Ok(options) => problems.extend(options.problems()),
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

/// The options of a struct by its JSON schema, which its doc comments are part of.
fn describe<T: NamedOptions>() -> Vec<DescribedOption> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let defaults = serde_json::to_value(T::default()).unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    properties
        .iter()
        .map(|(name, schema)| DescribedOption::new(name, schema, defaults.get(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of a test.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Sample {
        /// A share,
        /// 0 to 1. Default 0.1.
        share: f32,
        /// A limit. Default absent.
        limit: Option<u64>,
        /// Words. Default one.
        words: Vec<String>,
    }

    impl Default for Sample {
        fn default() -> Self {
            Self { share: 0.1, limit: None, words: vec!["a".to_owned()] }
        }
    }

    impl NamedOptions for Sample {
        fn problems(&self) -> Vec<String> {
            let wrong = !(0.0..=1.0).contains(&self.share);
            wrong.then(|| format!("share is {}, must be 0 to 1", self.share)).into_iter().collect()
        }
    }

    fn options(text: &str) -> Options {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let set = OptionSet::of::<Sample>();
        assert!(set.check(&options(r#"{ "share": 1, "limit": 3 }"#)).is_empty());
        let told = set.check(&options(
            r#"{ "share": 2.0, "limt": 1, "limit": "many", "words": ["x"], "wrods": 1 }"#,
        ));
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(told[0], "there is no option `limt`: options are `limit`, `share`, `words`");
        assert!(told[1].starts_with("limit: invalid type"), "{told:?}");
        assert!(told[2].contains("options are `words`"), "{told:?}");
        assert_eq!(told[3], "share is 2, must be 0 to 1");
        let told = set.check(&to_options(&Sample { limit: None, ..Sample::default() }));
        assert_eq!(told, ["limit: leave it out, or give a value that is finite"]);
        let none = OptionSet::NONE.check(&options(r#"{ "share": 2 }"#));
        assert_eq!(none, ["there is no option `share`: it has no options"]);
    }

    #[test]
    fn options_are_described_by_their_comments_in_their_order() {
        let told = OptionSet::of::<Sample>().describe();
        let names: Vec<&str> = told.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names, ["share", "limit", "words"]);
        assert_eq!(told[0].doc, "A share, 0 to 1. Default 0.1.");
        assert_eq!(told[0].default, Value::from(0.1));
        assert_eq!(told[1].default_text(), "absent");
        assert_eq!(told[2].default_text(), "[\"a\"]");
    }

    #[test]
    #[should_panic(expected = "other options than it describes")]
    fn a_row_reads_the_options_that_it_describes() {
        let options = Options::new();
        let given = Given::new("thing", "one", OptionSet::NONE, &options);
        let _ = given.read::<Sample>();
    }
}
