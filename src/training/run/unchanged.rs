//! What has to be as it was when a run is taken up again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};
use spar_tasks::MixedSuite;
use spar_trainer::Manifest;

use crate::draw_rules::FoundModels;
use crate::recipe::{DataConfig, Recipe};
use crate::training::domains::{Suites, file_notes};
use crate::training::stages::Plan;

/// The note with the settings that have to stay.
const SETTINGS: &str = "settings";

/// The note with the models that its draw rule asks.
const RULE_MODELS: &str = "draw_rule models";

/// Settings that a run cannot go on without, beside [what is trained on](data_settings): with others it would be another
/// run. What stages do is held by the checkpoint, and other settings may be changed in `config.toml`.
const FIXED: [&str; 6] = ["seed", "start_from", "model", "tokenizer", "lora", "learners"];

/// What a run is started from beside its suites, for its manifest.
pub(super) fn notes(
    recipe: &Recipe,
    plan: &Plan,
    rule_models: &FoundModels,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut notes = file_notes(plan)?;
    if !rule_models.is_empty() {
        notes.insert(RULE_MODELS.to_owned(), serde_json::to_value(rule_models)?);
    }
    notes.insert(SETTINGS.to_owned(), Value::Object(fixed_settings(recipe)));
    Ok(notes)
}

/// The models that the run's draw rule asked when it was started; older runs did not note them.
pub(super) fn rule_models(manifest: &Manifest) -> anyhow::Result<FoundModels> {
    let Some(noted) = manifest.notes.get(RULE_MODELS) else { return Ok(FoundModels::new()) };
    let models = serde_json::from_value(noted.clone());
    models.with_context(|| format!("read the note `{RULE_MODELS}` of the run"))
}

/// Refuses to go on with other settings, tasks or files than the run was started with, all that differs at once.
pub(super) fn refuse_changes(
    recipe: &Recipe,
    plan: &Plan,
    suites: &Suites,
    manifest: &Manifest,
) -> anyhow::Result<()> {
    let settings = changed_settings(recipe, manifest);
    ensure!(
        settings.is_empty(),
        "resume with other settings than the run was started with ({}): bring them back in config.toml, or start a new run",
        settings.join(", ")
    );
    for (name, hash) in &suites.hashes() {
        if let Some(started) = manifest.suites.get(name).filter(|started| *started != hash) {
            bail!(
                "resume on suite `{name}`: its tasks are no longer those the run was started on \
                 (hash {hash}, was {started})"
            );
        }
    }
    for (file, hash) in &file_notes(plan)? {
        if manifest.notes.get(file).is_some_and(|started| started != hash) {
            bail!("resume with {file}: it is no longer what the run was started on, bring it back");
        }
    }
    Ok(())
}

/// What the recipe says of the settings that have to stay.
fn fixed_settings(recipe: &Recipe) -> Map<String, Value> {
    let is_fixed = |name: &str| {
        FIXED.iter().any(|fixed| {
            name.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut settings = recipe.settings();
    settings.retain(|name, _| is_fixed(name));
    // As a whole: what is left out has a default, and was noted as left out.
    let draw_rule = recipe.draw_rule.as_ref().map(toml::Value::try_from);
    let draw_rule = draw_rule.map(|rule| rule.expect("a draw rule can be written as TOML"));
    let draw_rule = draw_rule.map_or_else(|| "absent".to_owned(), |rule| rule.to_string());
    settings.insert("draw_rule".to_owned(), draw_rule);
    let stages = recipe.stage_configs();
    if stages.iter().any(|stage| stage.data.is_none()) {
        settings.extend(data_settings("data", &recipe.data));
    }
    for stage in &stages {
        let name = format!("stages.{}.data", stage.name.as_ref().unwrap_or(&stage.kind));
        settings.extend(stage.data.iter().flat_map(|data| data_settings(&name, data)));
    }
    settings.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}

/// What decides which tasks are met: suites, their weights and splits. Not where suites lie, which may move while
/// their content hashes stay, nor the splits that are only reported.
fn data_settings(name: &str, data: &DataConfig) -> Vec<(String, String)> {
    let stays = |suite: &str| match Path::new(suite).file_name() {
        Some(last) => last.to_string_lossy().into_owned(),
        None => suite.to_owned(),
    };
    let mixed = data.suites.iter().map(|mixed| {
        let mixed = MixedSuite { suite: stays(&mixed.suite), folder: None, ..mixed.clone() };
        toml::Value::try_from(mixed).expect("a suite can be written as TOML")
    });
    let texts = |names: &[String]| toml::Value::from(names.to_vec()).to_string();
    let wrappers = toml::Value::try_from(&data.wrappers).expect("wrappers can be written as TOML");
    let told = [
        ("suite", stays(&data.suite)),
        ("suites", toml::Value::Array(mixed.collect()).to_string()),
        ("wrappers", wrappers.to_string()),
        ("train", data.train.clone()),
        ("demonstrations", texts(&data.demonstrations)),
        ("dev", data.dev.clone()),
    ];
    told.map(|(setting, value)| (format!("{name}.{setting}"), value)).into()
}

/// The settings that are no longer those of the start, with what they were; older runs did not note them, and newer
/// versions have settings that older ones did not.
fn changed_settings(recipe: &Recipe, manifest: &Manifest) -> Vec<String> {
    let Some(Value::Object(started)) = manifest.notes.get(SETTINGS) else { return Vec::new() };
    let now = fixed_settings(recipe);
    let text = |value: Option<&Value>| {
        value.map_or_else(|| "absent".to_owned(), |it| it.as_str().unwrap_or_default().to_owned())
    };
    let changed = started.iter().filter(|(name, value)| now.get(*name) != Some(*value));
    changed
        .map(|(name, was)| format!("`{name}` is {}, was {}", text(now.get(name)), text(Some(was))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_seed_or_model_is_named_and_other_settings_are_free() {
        let recipe = Recipe::parse("household", &Recipe::text("household").unwrap(), &[]).unwrap();
        let settings = Value::Object(fixed_settings(&recipe));
        let notes = BTreeMap::from([(SETTINGS.to_owned(), settings)]);
        let manifest = Manifest { notes, ..Manifest::default() };
        assert_eq!(changed_settings(&recipe, &manifest), Vec::<String>::new());
        let mut edited = recipe.clone();
        edited.keep.checkpoints += 1;
        assert_eq!(changed_settings(&edited, &manifest), Vec::<String>::new());
        edited.seed = 99;
        edited.model.num_hidden_layers += 1;
        let changed = changed_settings(&edited, &manifest).join(", ");
        assert!(
            changed.contains("`seed` is 99, was ") && changed.contains("`model.num_"),
            "{changed}"
        );
        // A draw rule that comes, goes or has another option.
        let ruled = |rule: &str| {
            let config = Some(toml::from_str(rule).unwrap());
            Recipe { draw_rule: config, ..recipe.clone() }
        };
        let noted = |recipe: &Recipe| {
            let settings = Value::Object(fixed_settings(recipe));
            Manifest {
                notes: BTreeMap::from([(SETTINGS.to_owned(), settings)]),
                ..Manifest::default()
            }
        };
        let (one, two) = (ruled("kind = 'top_p'"), ruled("kind = 'top_p'\np = 0.5"));
        for (now, started) in [(&one, &recipe), (&recipe, &one), (&two, &one), (&one, &two)] {
            let changed = changed_settings(now, &noted(started)).join(", ");
            assert!(
                changed.starts_with("`draw_rule` is ") && changed.contains(", was "),
                "{changed}"
            );
        }
        assert!(changed_settings(&two, &noted(&two)).is_empty());
        // An older version noted nothing.
        assert!(changed_settings(&edited, &Manifest::default()).is_empty());
    }

    #[test]
    fn another_mixture_is_named_and_its_folders_are_free() {
        let recipe = |text: &str| Recipe::parse("r", text, &[]).unwrap();
        let text = "[data]\nsuites = [{ suite = '/a/quiz.jsonl', weight = 2, epochs = 3 }, \
                    { suite = 'alfworld', folder = '/a', splits = { dev = 'seen' } }]\n\
                    [[stages]]\nkind = 'imitate'\n\
                    [[stages]]\nkind = 'reinforce'\ndata = { suite = 'sums', test = ['test'] }";
        let settings = Value::Object(fixed_settings(&recipe(text)));
        let notes = BTreeMap::from([(SETTINGS.to_owned(), settings)]);
        let manifest = Manifest { notes, ..Manifest::default() };
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            changed_settings(&recipe(&text.replace(from, to)), &manifest).join(", ")
        };
        assert_eq!(changed("/a", "/b"), "");
        assert_eq!(changed("test = ['test']", "test = ['dev']"), "");
        for (from, to, told) in [
            ("weight = 2", "weight = 3", "weight = 2"),
            ("epochs = 3", "epochs = 4", "epochs = 3"),
            (", epochs = 3", "", "epochs = 3"),
            ("{ dev = 'seen' }", "{ dev = 'unseen' }", "dev = \"seen\""),
            ("folder = '/a', ", "without = ['unseen'], ", "`data.suites` is "),
            ("quiz", "exam", "quiz.jsonl"),
            ("[data]\n", "[data]\ntrain = 'more'\n", "`data.train` is more, was train"),
            ("'sums'", "'ledger'", "`stages.reinforce.data.suite` is ledger, was sums"),
        ] {
            let changed = changed(from, to);
            assert!(changed.contains(told), "{to}: {changed}");
        }
        // A version that did not note it.
        let is_older = |settings: Map<String, Value>| {
            settings.into_iter().filter(|(name, _)| !name.contains("data.")).collect()
        };
        let older = Value::Object(is_older(fixed_settings(&recipe(text))));
        let notes = BTreeMap::from([(SETTINGS.to_owned(), older)]);
        let edited = recipe(&text.replace("weight = 2", "weight = 3"));
        let manifest = Manifest { notes, ..Manifest::default() };
        assert!(changed_settings(&edited, &manifest).is_empty());
    }
}
