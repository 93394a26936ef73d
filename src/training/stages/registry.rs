//! The kinds of stages that have a name.

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::{Serialize, forward_to_deserialize_any};

use super::Stage;
use super::evaluate::Evaluate;
use super::imitate::Imitate;
use super::prefer::Prefer;
use super::reinforce::Reinforce;
use crate::recipe::StageConfig;

/// A kind of stage that has a name.
pub struct StageEntry {
    /// The name in recipes.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Makes one of its options, or tells all that is wrong with them.
    open: fn(&toml::Table) -> Opened,
}

/// A stage, or all that is wrong with its options.
type Opened = Result<Box<dyn Stage>, Vec<String>>;

impl StageEntry {
    /// Its options with their defaults, as a recipe has them; those that are absent by default are left out.
    pub fn defaults(&self) -> toml::Table {
        (self.open)(&toml::Table::new()).map(|stage| stage.options()).unwrap_or_default()
    }
}

/// All kinds of stages that have a name; a new one is one file and one row here.
pub fn stage_registry() -> &'static [StageEntry] {
    &[
        StageEntry {
            name: "imitate",
            about: "Cross-entropy on demonstrations, with roll-in where asked, or on chat files.",
            source: "behavioural cloning; roll-in: DAgger, arXiv 1011.0686",
            open: |given| Ok(Box::new(Imitate { config: options(given)? })),
        },
        StageEntry {
            name: "reinforce",
            about: "Collects groups of episodes, estimates credit over them, and updates the policy.",
            source: "policy gradients, Williams 1992; PPO, arXiv 1707.06347",
            open: |given| Ok(Box::new(Reinforce { config: options(given)? })),
        },
        StageEntry {
            name: "prefer",
            about: "Learns from pairs of answers, in files or the best and the worst of groups that it plays.",
            source: "DPO, arXiv 2305.18290; pairs by reward: iterative DPO, arXiv 2312.11456",
            open: |given| Ok(Box::new(Prefer { config: options(given)? })),
        },
        StageEntry {
            name: "evaluate",
            about: "Plays splits with the present weights or the best checkpoint; trains nothing.",
            source: "mean success with Wilson's interval, 1927",
            open: |given| Ok(Box::new(Evaluate { config: options(given)? })),
        },
    ]
}

/// Makes a stage, or tells all that is wrong with its kind and options.
pub(crate) fn open_stage(config: &StageConfig) -> Opened {
    match stage_registry().iter().find(|entry| entry.name == config.kind) {
        Some(entry) => (entry.open)(&config.options),
        None => {
            let known: Vec<_> =
                stage_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(vec![format!("find stage kind `{}`: known are {}", config.kind, known.join(", "))])
        }
    }
}

/// Options as a recipe has them.
pub(super) fn written(options: &impl Serialize) -> toml::Table {
    // By way of text, in which numbers are as short as they were written.
    let text = toml::to_string(options).expect("options can be written as TOML");
    toml::from_str(&text).expect("what was written can be read")
}

/// The options of a kind: names that it does not have are told all at once.
fn options<T: DeserializeOwned>(given: &toml::Table) -> Result<T, Vec<String>> {
    let known = fields_of::<T>();
    let (mut of_kind, mut problems) = (given.clone(), Vec::new());
    of_kind.retain(|name, _| {
        let is_known = known.contains(&name);
        if !is_known {
            problems.push(format!(
                "`{name}` has no effect here: options are `{}`, and of every stage `kind`, `name`, `learner`, \
                 `data`, `re_evaluate`",
                known.join("`, `")
            ));
        }
        is_known
    });
    match toml::Value::Table(of_kind).try_into() {
        Ok(options) if problems.is_empty() => Ok(options),
        Ok(_) => Err(problems),
        Err(error) => {
            let told: &toml::de::Error = &error;
            problems.push(told.message().to_owned());
            Err(problems)
        }
    }
}

/// The names of a struct's fields, as they are read.
fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // It reads nothing, and fails on purpose once it has been told the names.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// Is asked for a struct, notes the names of its fields, and gives none.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only the names of fields are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_opens_with_its_defaults_and_tells_its_options() {
        for entry in stage_registry() {
            let defaults = entry.defaults();
            assert!(!defaults.is_empty(), "{}", entry.name);
            let stage = (entry.open)(&defaults).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(stage.options(), defaults, "{}", entry.name);
            assert!(entry.about.ends_with('.') && !entry.source.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn options_that_a_kind_does_not_have_are_told_all_at_once() {
        let config: StageConfig =
            toml::from_str("kind = 'imitate'\ngroup_size = 2\nshapers = []\ntasks = 'many'")
                .unwrap();
        let told = open_stage(&config).err().unwrap();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].contains("`group_size` has no effect here") && told[0].contains("`roll_in`")
        );
        assert!(told[2].contains("many"), "{told:?}");
        let unknown: StageConfig = toml::from_str("kind = 'immitate'").unwrap();
        assert!(open_stage(&unknown).err().unwrap()[0].contains("known are `imitate`"));
    }
}
