//! Draw rules with the models that they ask, from a recipe or a command line.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_policy::checkpoint::{self, KeepAs};
use spar_policy::draw_rules::{
    DrawRuleConfig, LoadedDrawRule, ModelSource, RuleModel, open_draw_rule,
};
use spar_policy::hub;
use spar_policy::{Tokenizer, Weights};
use spar_trainer::{Checkpoints, RunFolder};

/// The policy that a rule is opened for.
#[derive(Debug, Clone, Copy)]
pub struct RuledPolicy<'a> {
    /// Its tokenizer.
    pub tokenizer: &'a Tokenizer,
    /// Tokens that its model tells apart.
    pub vocabulary: usize,
    /// The weights below its adapter, where it has one.
    pub base: Option<&'a Arc<Weights>>,
}

/// Opens a rule and the models that it asks, on the CPU in the form that `keep` says; none where the config is plain.
///
/// A checkpoint is a folder with a model or an adapter, a run (its best checkpoint, or else its last), or a name on the hub.
///
/// # Errors
///
/// When the rule or its options are wrong, a model cannot be found or loaded, or its tokens are not the policy's.
pub async fn load_draw_rule(
    config: &DrawRuleConfig,
    policy: RuledPolicy<'_>,
    keep: KeepAs,
) -> anyhow::Result<Option<Arc<LoadedDrawRule>>> {
    let rule = open_draw_rule(config)?;
    // Names on the hub may have to be downloaded.
    let mut folders: BTreeMap<String, PathBuf> = BTreeMap::new();
    for RuleModel { option, source } in rule.models() {
        if let ModelSource::Checkpoint(name) = source {
            let folder = model_folder(Path::new(&name)).await;
            let folder = folder.with_context(|| {
                format!("use draw rule `{}`: find `{option}`, `{name}`", rule.name())
            })?;
            folders.insert(name, folder);
        }
    }
    load_from(config, policy, keep, |name| &folders[name])
}

/// Opens a rule as [`load_draw_rule`] does, with the models in folders that were found before.
pub(crate) fn load_found_rule(
    config: &DrawRuleConfig,
    policy: RuledPolicy<'_>,
    keep: KeepAs,
    models: &FoundModels,
) -> anyhow::Result<Option<Arc<LoadedDrawRule>>> {
    load_from(config, policy, keep, |name| &models[name].folder)
}

fn load_from<'f>(
    config: &DrawRuleConfig,
    policy: RuledPolicy<'_>,
    keep: KeepAs,
    folder: impl Fn(&str) -> &'f Path,
) -> anyhow::Result<Option<Arc<LoadedDrawRule>>> {
    let RuledPolicy { tokenizer, vocabulary, base } = policy;
    let open = |name: &str| checkpoint::open_model(folder(name), keep);
    Ok(LoadedDrawRule::load(config, tokenizer, vocabulary, base, open)?.map(Arc::new))
}

/// A model that the rule of a run asks, as it was found when the run was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundModel {
    /// Its folder: where it is named as a run, that of the checkpoint that was the best one then.
    pub(crate) folder: PathBuf,
    /// BLAKE3 of its files of weights, in the order of their names, in hexadecimal digits.
    pub(crate) hash: String,
}

/// Such models, by the names that the recipe gives them.
pub(crate) type FoundModels = BTreeMap<String, FoundModel>;

/// Finds the models that a rule asks beside the policy's own; those that were `found` before have to be what they were,
/// and another checkpoint of the same run is not.
///
/// # Errors
///
/// When the rule or its options are wrong, or a model cannot be found or is no longer what it was.
pub(crate) async fn find_rule_models(
    config: &DrawRuleConfig,
    found: &FoundModels,
) -> anyhow::Result<FoundModels> {
    let rule = open_draw_rule(config)?;
    let mut models = FoundModels::new();
    for RuleModel { option, source } in rule.models() {
        if let ModelSource::Checkpoint(name) = source {
            let model = find_model(&name, found.get(&name)).await;
            let model = model.with_context(|| {
                format!("use draw rule `{}`: find `{option}`, `{name}`", rule.name())
            })?;
            models.insert(name, model);
        }
    }
    Ok(models)
}

async fn find_model(name: &str, found: Option<&FoundModel>) -> anyhow::Result<FoundModel> {
    let folder = match found.filter(|found| found.folder.is_dir()) {
        Some(found) => found.folder.clone(),
        // It may have moved with what it is named by.
        None => model_folder(Path::new(name)).await?,
    };
    let hash = weights_hash(&folder)?;
    if let Some(found) = found {
        ensure!(
            hash == found.hash,
            "the weights in `{}` are no longer those of `{}` that the run was started with: bring them back, or start \
             a new run",
            folder.display(),
            found.folder.display()
        );
    }
    Ok(FoundModel { folder, hash })
}

/// What the weights of a model or adapter are.
fn weights_hash(folder: &Path) -> anyhow::Result<String> {
    let read = || format!("read the weights in `{}`", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(read)? {
        let path = entry.with_context(read)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_weights = name.starts_with("model") || name.starts_with("adapter_model");
        if is_weights && name.ends_with(".safetensors") {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "find weights in `{}`: there are none", folder.display());
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update_reader(File::open(file).with_context(read)?).with_context(read)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Whether a rule asks for the weights below the policy's adapter.
///
/// # Errors
///
/// When the rule or its options are wrong.
pub fn asks_base(config: &DrawRuleConfig) -> anyhow::Result<bool> {
    let models = open_draw_rule(config)?.models();
    Ok(models.iter().any(|model| model.source == ModelSource::Base))
}

/// The folder of a model: itself, that of a run's best checkpoint, or that of a name on the hub.
async fn model_folder(path: &Path) -> anyhow::Result<PathBuf> {
    if let Ok(run) = RunFolder::open(path) {
        let checkpoints = Checkpoints::view(&run.checkpoints_path());
        let found = match checkpoints.best()? {
            Some(best) => Some(best),
            None => checkpoints.latest()?,
        };
        ensure!(found.is_some(), "find a checkpoint in run `{}`: it has none yet", path.display());
        return Ok(found.map(|found| found.path).unwrap_or_default());
    }
    Ok(hub::resolve(path, &mut |_| {}).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_model_that_was_found_stays_what_it_was() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("iteration-000010");
        let weights = folder.join("model.safetensors");
        fs::create_dir(&folder).unwrap();
        fs::write(&weights, b"weights").unwrap();
        let found = FoundModel { hash: weights_hash(&folder).unwrap(), folder: folder.clone() };
        // What it was named by is not looked up again.
        let again = find_model("a/run/that/went/on", Some(&found)).await.unwrap();
        assert_eq!(again, found);
        fs::write(&weights, b"others").unwrap();
        let refused = find_model("a/run/that/went/on", Some(&found)).await.unwrap_err();
        assert!(refused.to_string().contains("no longer those of"), "{refused}");
        fs::remove_file(&weights).unwrap();
        let refused = find_model("a/run/that/went/on", Some(&found)).await.unwrap_err();
        assert!(refused.to_string().contains("there are none"), "{refused}");
    }
}
