//! Recipes that say what they change of another one.

use toml::{Table, Value};

use super::{Recipe, RecipeError};

/// The setting that names the other recipe.
pub(super) const EXTENDS: &str = "extends";

/// Recipes that may stand behind each other.
const MAX_DEPTH: usize = 8;

/// What tells which of several things a table describes: with another one, nothing is left of its options.
const CHOICES: [&str; 2] = ["kind", "name"];

/// Settings of the other recipe that are its own.
const OWN: [&str; 2] = ["name", "about"];

/// The table of a recipe with those that it extends beneath it; absent where it extends none.
pub(super) fn extended(name: &str, table: &Table) -> Result<Option<Table>, RecipeError> {
    let mut above = table.clone();
    let mut seen = vec![name.to_owned()];
    let Some(mut next) = take_base(name, &mut above)? else { return Ok(None) };
    let mut layers = vec![above];
    loop {
        if seen.contains(&next) || seen.len() > MAX_DEPTH {
            seen.push(next);
            let problem = format!("`{EXTENDS}` leads nowhere: {}", seen.join(" extends "));
            return Err(RecipeError::Problems { problems: vec![problem] });
        }
        let text = Recipe::text(&next)?;
        let malformed =
            |source| RecipeError::Malformed { name: next.clone(), source: Box::new(source) };
        let mut base: Table = toml::from_str(&text).map_err(malformed)?;
        OWN.iter().for_each(|own| drop(base.remove(*own)));
        let behind = take_base(&next, &mut base)?;
        layers.push(base);
        seen.push(next);
        match behind {
            Some(behind) => next = behind,
            None => break,
        }
    }
    let whole = layers.into_iter().rev().reduce(|mut base, above| {
        lay_over(&mut base, above);
        base
    });
    Ok(whole)
}

/// Takes out the name of the recipe that one extends.
fn take_base(name: &str, table: &mut Table) -> Result<Option<String>, RecipeError> {
    match table.remove(EXTENDS) {
        None => Ok(None),
        Some(Value::String(base)) => Ok(Some(base)),
        Some(other) => {
            let kind = other.type_str();
            let problem = format!(
                "`{EXTENDS}` of recipe `{name}` is of type {kind}, not the name of a recipe"
            );
            Err(RecipeError::Problems { problems: vec![problem] })
        }
    }
}

/// Lays settings over others: tables setting by setting, unless they choose something else; all other values whole.
fn lay_over(base: &mut Table, above: Table) {
    for (name, value) in above {
        match (base.get_mut(&name), value) {
            (Some(Value::Table(beneath)), Value::Table(over)) if !chooses_other(beneath, &over) => {
                lay_over(beneath, over);
            }
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

fn chooses_other(beneath: &Table, over: &Table) -> bool {
    CHOICES
        .iter()
        .any(|choice| over.get(*choice).is_some_and(|it| beneath.get(*choice) != Some(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Recipe, RecipeError> {
        Recipe::parse("own", text, &[])
    }

    #[test]
    fn a_recipe_changes_what_it_names_of_another_one() {
        let base = Recipe::parse("b", &Recipe::text("household-few").unwrap(), &[]).unwrap();
        let own = read(
            "name = 'own'\nextends = 'household-few'\n[reinforce]\ntasks = 5\n\
             [reinforce.objective]\noptions = { clip_low = 0.1 }",
        )
        .unwrap();
        assert_eq!((own.name.as_str(), own.about.as_str(), own.reinforce.tasks), ("own", "", 5));
        assert_eq!(own.reinforce.objective.name, "clip");
        // Options are laid over each other as well.
        assert_eq!(own.reinforce.objective.options["clip_high"].as_float(), Some(0.28));
        assert_eq!(own.reinforce.objective.options["clip_low"].as_float(), Some(0.1));
        assert_eq!(own.reinforce.credit, base.reinforce.credit);
        assert_eq!(own.warm_start, base.warm_start);
    }

    #[test]
    fn what_is_chosen_anew_keeps_none_of_the_options() {
        let own = read(
            "extends = 'household-few'\n[reinforce]\nshapers = []\ncredit = { kind = 'grpo' }",
        )
        .unwrap();
        assert_eq!(own.reinforce.credit.kind, "grpo");
        assert!(own.reinforce.credit.options.is_empty() && own.reinforce.shapers.is_empty());
        own.validate().unwrap();
    }

    #[test]
    fn a_file_extends_a_file_and_settings_that_are_typed_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.toml"), "extends = 'quick'\nseed = 4\n[reinforce]\ntasks = 7")
            .unwrap();
        let text = format!("extends = '{}'\n[reinforce]\ngroup_size = 3", path("a.toml"));
        let set = ["reinforce.tasks=9".to_owned()];
        let own = Recipe::parse("own", &text, &set).unwrap();
        assert_eq!((own.seed, own.reinforce.tasks, own.reinforce.group_size), (4, 9, 3));
        // The resolved recipe stands for itself.
        assert_eq!(Recipe::parse("own", &own.to_toml(), &[]).unwrap(), own);

        std::fs::write(path("b.toml"), format!("extends = '{}'", path("b.toml"))).unwrap();
        let told = read(&format!("extends = '{}'", path("b.toml"))).unwrap_err().to_string();
        assert!(told.contains("leads nowhere"), "{told}");
        assert!(read("extends = 'houshold'").unwrap_err().to_string().contains("`houshold`"));
        assert!(read("extends = 3").unwrap_err().to_string().contains("of type integer"));
    }
}
