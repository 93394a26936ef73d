//! What a run trains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use spar_core::Seed;
use spar_policy::checkpoint::{KeepAs, LoraAdapter, NumberType, SaveOptions};
use spar_policy::cuda::DeviceGroup;
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::state_heads::HeadWeights;
use spar_policy::{
    CheckpointError, LoraConfig, LoraModel, ModelConfig, Parameters, SharedBuffer, Tokenizer,
    Weights, checkpoint,
};
use spar_trainer::{Trained, Trainer};

use crate::draw_rules::{FoundModels, RuledPolicy, find_rule_models, load_found_rule};
use crate::recipe::{POLICY, Recipe};

/// Where checkpoints have the learners that do not train.
const LEARNERS_FOLDER: &str = "learners";

/// What a run trains, with the words and files that go with it.
pub(super) struct Model {
    pub(super) config: ModelConfig,
    pub(super) tokenizer: Tokenizer,
    pub(super) trained: Trained,
    /// The learner that this is.
    pub(super) learner: String,
    /// The learners that do not train now, by name.
    parked: BTreeMap<String, Parked>,
    /// The value heads of learners that do not train now; the trainer has that of the one that does.
    heads: BTreeMap<String, HeadWeights>,
    /// What its tokens are drawn by, where that is not its logits as they are.
    pub(super) draw_rule: Option<Arc<LoadedDrawRule>>,
    /// The devices that train it, where there are several.
    pub(super) group: Option<Arc<DeviceGroup>>,
    /// The folder of the weights below an adapter.
    pub(super) base: Option<PathBuf>,
}

/// A learner that does not train now: an adapter on the weights of the others.
struct Parked {
    lora: LoraConfig,
    parameters: Parameters,
}

impl Model {
    /// All weights are trained, which have the layout of `parameters`.
    pub(super) fn whole(
        config: ModelConfig,
        parameters: &Parameters,
        tokenizer: Tokenizer,
    ) -> Self {
        // The trainer has the numbers.
        let shape = Parameters { specs: parameters.specs.clone(), data: SharedBuffer::default() };
        let trained = Trained::Weights(Arc::new(Weights::new(&config, shape)));
        let (learner, parked) = (POLICY.to_owned(), BTreeMap::new());
        let (heads, group, base) = (BTreeMap::new(), None, None);
        let draw_rule = None;
        Self { config, tokenizer, trained, learner, parked, heads, draw_rule, group, base }
    }

    /// Adapters are trained on the weights in the folder `base`, `learner` first; all of them share these weights. Each
    /// has the factors that `factors` gives it, and those of `learner` are the trainer's.
    pub(super) fn adapted(
        (config, parameters, tokenizer): (ModelConfig, Parameters, Tokenizer),
        base: PathBuf,
        mut adapters: BTreeMap<String, LoraConfig>,
        learner: &str,
        factors: impl Fn(&str, &LoraModel) -> anyhow::Result<Parameters>,
    ) -> anyhow::Result<(Self, Parameters)> {
        let weights = Arc::new(Weights::new(&config, parameters));
        let (learner, lora) = adapters.remove_entry(learner).with_context(|| {
            format!("train learner `{learner}`: the recipe has no such adapter")
        })?;
        let model = Arc::new(LoraModel::new(weights.clone(), &lora));
        let own = factors(&learner, &model)?;
        let mut parked = BTreeMap::new();
        for (name, lora) in adapters {
            let parameters = factors(&name, &LoraModel::new(weights.clone(), &lora))?;
            parked.insert(name, Parked { lora, parameters });
        }
        let trained = Trained::Adapter(model);
        let base = Some(base);
        let (heads, group) = (BTreeMap::new(), None);
        let draw_rule = None;
        let model =
            Self { config, tokenizer, trained, learner, parked, heads, draw_rule, group, base };
        Ok((model, own))
    }

    /// Gives every learner the value head that the recipe says: the weights that `read` finds for it, given a fresh head's,
    /// else fresh ones, by which all values are 0.
    pub(super) fn add_heads(
        &mut self,
        recipe: &Recipe,
        read: impl Fn(&str, &Parameters) -> anyhow::Result<Option<Parameters>>,
    ) -> anyhow::Result<()> {
        for (learner, config) in recipe.value_heads() {
            let seed = Seed::from_u64(recipe.seed).derive("value_head", &learner);
            let mut head = HeadWeights::fresh(&config, self.config.hidden_size, seed)?;
            if let Some(parameters) = read(&learner, head.parameters())? {
                *head.parameters_mut() = parameters;
            }
            self.heads.insert(learner, head);
        }
        Ok(())
    }

    /// The same with the weights in a checkpoint of this model.
    pub(super) fn read_heads(&mut self, recipe: &Recipe, checkpoint: &Path) -> anyhow::Result<()> {
        self.add_heads(recipe, |learner, shape| {
            let folder = learner_folder(checkpoint, learner);
            let found = checkpoint::load_value_head(&folder, shape)
                .with_context(|| format!("load the value head in `{}`", folder.display()))?;
            ensure!(
                found.is_some(),
                "load the value head in `{}`: there is none",
                folder.display()
            );
            Ok(found)
        })
    }

    /// Gives a trainer of the present learner the learner's value head, where it has one.
    pub(super) fn with_head(&mut self, trainer: Trainer) -> anyhow::Result<Trainer> {
        Ok(match self.heads.remove(&self.learner) {
            Some(head) => trainer.with_head(head)?,
            None => trainer,
        })
    }

    /// Takes the value head back from a trainer of the present learner.
    pub(super) fn keep_head(&mut self, trainer: &Trainer) {
        let head = trainer.head().map(|head| (self.learner.clone(), head.clone()));
        self.heads.extend(head);
    }

    /// Another learner trains from now on, whose parameters are returned; the present one, which has come to `own`,
    /// waits for its turn.
    pub(super) fn switch_to(
        &mut self,
        learner: &str,
        own: Parameters,
        lora: &LoraConfig,
    ) -> anyhow::Result<Parameters> {
        let parked = self
            .parked
            .remove(learner)
            .with_context(|| format!("train learner `{learner}`: there is none"))?;
        let next = self.parked_model(&parked)?;
        let present = std::mem::replace(&mut self.learner, learner.to_owned());
        self.trained = Trained::Adapter(Arc::new(next));
        self.parked.insert(present, Parked { lora: lora.clone(), parameters: own });
        Ok(parked.parameters)
    }

    /// The weights of a learner that does not train now; `None` where it does.
    pub(super) fn parked_weights(&self, learner: &str) -> anyhow::Result<Option<Arc<Weights>>> {
        let Some(parked) = self.parked.get(learner) else { return Ok(None) };
        Ok(Some(
            Trained::Adapter(Arc::new(self.parked_model(parked)?)).weights(&parked.parameters)?,
        ))
    }

    /// The weights of a learner in a checkpoint of this model.
    pub(super) fn weights_in(
        &self,
        checkpoint: &Path,
        learner: &str,
    ) -> anyhow::Result<Arc<Weights>> {
        let folder = learner_folder(checkpoint, learner);
        match self.parked.get(learner) {
            None => Ok(self.trained.weights(&self.read(&folder)?)?),
            Some(parked) => {
                let model = self.parked_model(parked)?;
                let factors = read_factors(&folder, &model)?;
                Ok(Trained::Adapter(Arc::new(model)).weights(&factors)?)
            }
        }
    }

    /// What is trained of a learner, its factors beside the weights that all learners share.
    pub(super) fn apart(&self, learner: &str) -> anyhow::Result<Trained> {
        Ok(Trained::Adapter(Arc::new(self.adapter_model(learner)?.apart())))
    }

    /// What is trained of a learner, its factors merged into a copy of the weights.
    pub(super) fn merged(&self, learner: &str) -> anyhow::Result<Trained> {
        Ok(Trained::Adapter(Arc::new(self.adapter_model(learner)?)))
    }

    fn adapter_model(&self, learner: &str) -> anyhow::Result<LoraModel> {
        match (self.parked.get(learner), &self.trained) {
            (Some(parked), _) => self.parked_model(parked),
            (None, Trained::Adapter(model)) if self.learner == learner => {
                Ok(LoraModel::new(model.base().clone(), model.config()))
            }
            _ => bail!("train learner `{learner}`: there is no such adapter"),
        }
    }

    /// What a learner that does not train now has come to.
    pub(super) fn parked_parameters(&self, learner: &str) -> anyhow::Result<Parameters> {
        let parked = self.parked.get(learner);
        let parked = parked.with_context(|| format!("read learner `{learner}`: there is none"))?;
        Ok(parked.parameters.clone())
    }

    fn parked_model(&self, parked: &Parked) -> anyhow::Result<LoraModel> {
        let Trained::Adapter(model) = &self.trained else {
            bail!("only adapters share their weights with others");
        };
        Ok(LoraModel::new(model.base().clone(), &parked.lora))
    }

    /// Puts the decoder where it computes; on several devices it is trained side by side.
    pub(super) fn place(&mut self, recipe: &Recipe) -> anyhow::Result<()> {
        self.trained = self.trained.clone().placed(recipe.device).context("place the decoder")?;
        let devices = recipe.devices.unwrap_or(1);
        if devices > 1 {
            let first = self.trained.decoder().device();
            let first = first.with_context(|| format!("train on {devices} GPUs: there is none"))?;
            let group = DeviceGroup::around(first, devices).context("put the GPUs together")?;
            self.group = Some(Arc::new(group));
        }
        Ok(())
    }

    /// Opens what tokens are drawn by, where the recipe has it, and tells the models that it asks, which were `found` where
    /// the run was started before; the model is where it computes.
    pub(super) async fn open_draw_rule(
        &mut self,
        recipe: &Recipe,
        found: &FoundModels,
    ) -> anyhow::Result<FoundModels> {
        let Some(config) = &recipe.draw_rule else { return Ok(FoundModels::new()) };
        ensure!(
            config.is_plain() || self.trained.decoder().device().is_none(),
            "train by draw rule `{}` on a GPU: set `device` to `cpu`",
            config.kind
        );
        let base = match &self.trained {
            Trained::Adapter(model) => Some(model.base()),
            Trained::Weights(_) | Trained::Rounded(_) => None,
        };
        let vocabulary = self.config.vocab_size;
        let policy = RuledPolicy { tokenizer: &self.tokenizer, vocabulary, base };
        let models = find_rule_models(config, found).await?;
        self.draw_rule = load_found_rule(config, policy, KeepAs::default(), &models)?;
        Ok(models)
    }

    /// The trained parameters in a checkpoint of this model.
    pub(super) fn read(&self, folder: &Path) -> anyhow::Result<Parameters> {
        match &self.trained {
            Trained::Weights(_) | Trained::Rounded(_) => {
                let (_, parameters) = checkpoint::load_weights(folder)
                    .with_context(|| format!("load checkpoint `{}`", folder.display()))?;
                let is_same = parameters.specs == self.shape().specs;
                ensure!(is_same, "`{}` is of another model", folder.display());
                Ok(parameters)
            }
            Trained::Adapter(model) => read_factors(folder, model),
        }
    }

    /// The layout of what is trained, where that is all weights.
    fn shape(&self) -> &Parameters {
        match &self.trained {
            Trained::Weights(base) => base.parameters(),
            Trained::Rounded(model) => model.base().parameters(),
            Trained::Adapter(model) => model.base().parameters(),
        }
    }

    /// Writes the learners that do not train now into a checkpoint.
    pub(super) fn write_parked(&self, checkpoint: &Path) -> Result<(), CheckpointError> {
        let (Some(base), Trained::Adapter(model)) = (&self.base, &self.trained) else {
            return Ok(());
        };
        let frozen = model.base();
        for (name, parked) in &self.parked {
            let adapter =
                LoraModel::new(frozen.clone(), &parked.lora).to_adapter(&parked.parameters);
            let folder = checkpoint.join(LEARNERS_FOLDER).join(name);
            checkpoint::save_adapter(
                &folder,
                &adapter,
                base,
                frozen.parameters(),
                &self.tokenizer,
            )?;
            if let Some(head) = self.heads.get(name) {
                checkpoint::save_value_head(&folder, head.parameters())?;
            }
        }
        Ok(())
    }

    pub(super) fn write(
        &self,
        folder: &Path,
        parameters: &Parameters,
        number_type: NumberType,
    ) -> Result<(), CheckpointError> {
        match (&self.trained, &self.base) {
            (Trained::Adapter(model), Some(base)) => {
                let adapter = model.to_adapter(parameters);
                let frozen = model.base().parameters();
                checkpoint::save_adapter(folder, &adapter, base, frozen, &self.tokenizer)
            }
            _ => {
                let options = SaveOptions { number_type, ..SaveOptions::default() };
                let (config, tokenizer) = (&self.config, &self.tokenizer);
                checkpoint::save_model_with(folder, config, parameters, tokenizer, &options)
            }
        }
    }

    /// Tells the frozen weights apart from others.
    pub(super) fn fingerprint(&self) -> Option<String> {
        let Trained::Adapter(model) = &self.trained else { return None };
        // FNV-1a over whole numbers: no protection, but no accident goes unseen.
        let step = |hash: u64, value: &f32| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0000_0100_0000_01b3)
        };
        let values = &model.base().parameters().data;
        Some(format!("{:016x}", values.into_iter().fold(0xcbf2_9ce4_8422_2325, step)))
    }
}

/// Where a checkpoint has a learner: apart, or, where it was the one that trained, as the checkpoint's own.
pub(super) fn learner_folder(checkpoint: &Path, learner: &str) -> PathBuf {
    let apart = checkpoint.join(LEARNERS_FOLDER).join(learner);
    if apart.exists() { apart } else { checkpoint.to_owned() }
}

/// The factors of an adapter on disk.
pub(super) fn read_factors(folder: &Path, model: &LoraModel) -> anyhow::Result<Parameters> {
    let adapter = LoraAdapter::load(folder, model.base().parameters())
        .with_context(|| format!("load the adapter in `{}`", folder.display()))?;
    let factors = model.factors_of(&adapter);
    factors.with_context(|| format!("the adapter in `{}` is of another shape", folder.display()))
}
