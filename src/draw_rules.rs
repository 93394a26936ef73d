//! Draw rules with the models that they ask, from a recipe or a command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
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
    let RuledPolicy { tokenizer, vocabulary, base } = policy;
    let open = |name: &str| checkpoint::open_model(&folders[name], keep);
    Ok(LoadedDrawRule::load(config, tokenizer, vocabulary, base, open)?.map(Arc::new))
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
