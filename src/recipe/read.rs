//! Reading recipes: of files, with what was typed over them, and of runs.

use std::borrow::Cow;

use spar_tasks::ShaperConfig;

use super::extends::extended;
use super::{Recipe, RecipeError};

impl Recipe {
    /// Reads a recipe from TOML; settings left out have their defaults, or, where it says `extends = "NAME"`, what the
    /// recipe of that name or path has. Of that, tables are changed setting by setting and other values whole; a table
    /// with another `kind` or `name` takes the place of all that stood there, and the name of the recipe and what it is about
    /// are never taken over.
    ///
    /// `overrides` are settings such as `reinforce.iterations=50`, which win over the text.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Malformed`] names unknown and mistyped settings; [`RecipeError`] of a recipe that it extends where
    /// that is not to be had.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, RecipeError> {
        let malformed =
            |source| RecipeError::Malformed { name: name.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = toml::from_str(text).map_err(malformed)?;
        let whole = extended(name, &table)?;
        let is_as_written = whole.is_none() && overrides.is_empty();
        table = whole.unwrap_or(table);
        for setting in overrides {
            let Some((path, value)) = setting.split_once('=') else {
                let problem = format!("`{setting}` is no setting, write `name.of.it=value`");
                return Err(RecipeError::Problems { problems: vec![problem] });
            };
            insert(&mut table, path.trim(), setting_value(value)).map_err(|problem| {
                RecipeError::Problems { problems: vec![format!("`{setting}`: {problem}")] }
            })?;
        }
        if let Some(factor) = length_discount(&table) {
            let problem = format!(
                "`reinforce.length_discount` is a reward shaper now, and off unless it is named: \
                 write shapers = [{{ name = \"length_discount\", options = {{ factor = {factor} }} \
                 }}] under [reinforce]"
            );
            return Err(RecipeError::Problems { problems: vec![problem] });
        }
        let described: Vec<&str> = ["warm_start", "reinforce"]
            .into_iter()
            .filter(|name| table.contains_key(*name))
            .collect();
        if table.contains_key("stages") && !described.is_empty() {
            let problem = format!(
                "[{}] has no effect beside [[stages]], which list all that the run does: write it as one of them",
                described.join("] and [")
            );
            return Err(RecipeError::Problems { problems: vec![problem] });
        }
        // By way of text, so that errors show the line.
        let text = if is_as_written {
            text.to_owned()
        } else {
            toml::to_string(&table).expect("a table of values can be written")
        };
        toml::from_str(&text).map_err(malformed)
    }

    /// Reads the resolved recipe of a run, which an older version may have written.
    ///
    /// Its `reinforce.length_discount` is the reward shaper of that name here, and its `list_untried` of true or
    /// false one of the moments.
    ///
    /// # Errors
    ///
    /// As [`Recipe::parse`].
    pub fn of_run(name: &str, text: &str) -> Result<Self, RecipeError> {
        let malformed =
            |source| RecipeError::Malformed { name: name.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = toml::from_str(text).map_err(malformed)?;
        let written =
            |table: &toml::Table| toml::to_string(table).expect("a table of values can be written");
        let context = table.get_mut("episode").and_then(|episode| episode.get_mut("context"));
        let untried = context.and_then(|context| context.get_mut("list_untried"));
        let is_older = match untried.map(|when| (when.as_bool(), when)) {
            Some((Some(is_listed), when)) => {
                *when = if is_listed { "repeated" } else { "never" }.into();
                true
            }
            _ => false,
        };
        let Some(factor) = length_discount(&table).cloned() else {
            // As it stands where it can, so that errors show the line.
            let text = if is_older { Cow::Owned(written(&table)) } else { Cow::Borrowed(text) };
            return Self::parse(name, &text, &[]);
        };
        let reinforce = table.get_mut("reinforce").and_then(toml::Value::as_table_mut);
        let reinforce = reinforce.expect("the setting was found in this table");
        reinforce.remove("length_discount");
        // 1 meant that nothing is discounted.
        if factor.as_float() != Some(1.0) && factor.as_integer() != Some(1) {
            let mut shaper = ShaperConfig::new("length_discount");
            shaper.options.insert("factor".to_owned(), factor);
            let shapers = toml::Value::try_from([shaper]).expect("a table can be a value");
            reinforce.insert("shapers".to_owned(), shapers);
        }
        Self::parse(name, &written(&table), &[])
    }
}

/// The value of a setting that was typed: what is no TOML value is a string without its quotes.
pub fn setting_value(text: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// A setting that older versions had.
fn length_discount(table: &toml::Table) -> Option<&toml::Value> {
    table.get("reinforce")?.get("length_discount")
}

/// Sets `path` in nested tables.
fn insert(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
            Ok(())
        }
        Some((first, mut rest)) => {
            let inner =
                table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            match inner {
                toml::Value::Table(inner) => insert(inner, rest, value),
                toml::Value::Array(entries) => {
                    insert(entry_of(first, entries, &mut rest)?, rest, value)
                }
                _ => Err(format!("`{first}` is a value, not a table")),
            }
        }
    }
}

/// The entry of a list that the next part of `rest` means, by its name, its kind or its place from 0.
fn entry_of<'a>(
    list: &str,
    entries: &'a mut [toml::Value],
    rest: &mut &str,
) -> Result<&'a mut toml::Table, String> {
    let (wanted, behind) = rest.split_once('.').unwrap_or((rest, ""));
    let is_called =
        |entry: &toml::Value, key| entry.get(key).and_then(toml::Value::as_str) == Some(wanted);
    let called = |key| entries.iter().position(|entry| is_called(entry, key));
    let place = wanted.parse().ok().or_else(|| called("name")).or_else(|| called("kind"));
    let count = entries.len();
    *rest = behind;
    let found =
        place.and_then(|place: usize| entries.get_mut(place)).and_then(toml::Value::as_table_mut);
    match found {
        Some(_) if behind.is_empty() => Err(format!("`{list}.{wanted}` is a table, not a setting")),
        Some(found) => Ok(found),
        None => Err(format!("`{list}` has {count} entries, and none is `{wanted}`")),
    }
}

#[cfg(test)]
mod tests {
    use spar_agent::ListUntried;

    use super::*;

    #[test]
    fn overrides_win_and_typos_are_refused() {
        let overrides = ["reinforce.iterations=3".to_owned(), "data.suite=frozen-lake".to_owned()];
        let recipe = Recipe::parse("r", "[reinforce]\niterations = 9", &overrides).unwrap();
        assert_eq!((recipe.reinforce.iterations, recipe.data.suite.as_str()), (3, "frozen-lake"));
        let error = Recipe::parse("r", "", &["reinforce.iteration=3".to_owned()]).unwrap_err();
        assert!(matches!(error, RecipeError::Malformed { .. }));
        let error = Recipe::parse("r", "seed = 1\n[rienforce]\ntasks = 2", &[]).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("rienforce") && source.contains("reinforce"), "{source}");
    }

    #[test]
    fn the_length_discount_of_older_versions_is_refused_in_recipes_and_read_in_runs() {
        let old = "seed = 3\n[reinforce]\nlength_discount = 0.9\ntasks = 4";
        let overrides = ["reinforce.length_discount=0.9".to_owned()];
        for (text, overrides) in [(old, &[][..]), ("", &overrides)] {
            let told = Recipe::parse("r", text, overrides).unwrap_err().to_string();
            let (_, written) = told.split_once("write ").unwrap();
            let (written, _) = written.split_once(" under [reinforce]").unwrap();
            let new = Recipe::parse("r", &format!("[reinforce]\n{written}"), &[]).unwrap();
            new.validate().unwrap();
            assert_eq!(new.reinforce.shapers[0].options["factor"].as_float(), Some(0.9));
        }
        let run = Recipe::of_run("r", old).unwrap();
        assert_eq!((run.seed, run.reinforce.tasks), (3, 4));
        let [shaper] = &run.reinforce.shapers[..] else { panic!("one shaper") };
        assert_eq!(shaper.options["factor"].as_float(), Some(0.9));
        let off = Recipe::of_run("r", "[reinforce]\nlength_discount = 1.0").unwrap();
        assert!(off.reinforce.shapers.is_empty());
        assert_eq!(Recipe::of_run("r", &run.to_toml()).unwrap(), run);
    }

    #[test]
    fn a_list_of_what_was_not_tried_that_was_on_or_off_is_read_in_runs() {
        let read = |when: bool| {
            let run = format!("[episode.context]\nlist_untried = {when}");
            assert!(Recipe::parse("r", &run, &[]).is_err());
            Recipe::of_run("r", &run).unwrap().episode.context.list_untried
        };
        assert_eq!([read(true), read(false)], [ListUntried::Repeated, ListUntried::Never]);
    }
}
