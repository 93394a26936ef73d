//! A draw rule with the models that it asks.

use std::sync::Arc;

use spar_core::registry::RowError;
use spar_text::Tokenizer;

use super::{DrawRule, DrawRuleConfig, ModelSource, open_draw_rule};
use crate::cuda::DeviceError;
use crate::decoder::{HiddenStates, SequenceCache, TokenTree};
use crate::head::{try_batch_logits, try_logits};
use crate::{CheckpointError, Weights};

/// A draw rule with the models beside the main one, whose weights do not change.
#[derive(Debug, Clone)]
pub struct LoadedDrawRule {
    rule: Arc<dyn DrawRule>,
    models: Vec<Arc<Weights>>,
}

/// A draw rule cannot be used with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawRuleError {
    /// There is no such rule, or its options are wrong.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The rule asks for the weights below an adapter, and there is none.
    #[error(
        "use draw rule `{rule}`: `{option}` is `base`, the weights below the policy's adapter, and the policy has none; name a \
         checkpoint"
    )]
    NoBase {
        /// The rule.
        rule: &'static str,
        /// The option that names the model.
        option: &'static str,
    },
    /// A model cannot be loaded.
    #[error("use draw rule `{rule}`: load `{option}` from `{checkpoint}`")]
    Checkpoint {
        /// The rule.
        rule: &'static str,
        /// The option that names the model.
        option: &'static str,
        /// What it names.
        checkpoint: String,
        /// Why not.
        #[source]
        source: Box<CheckpointError>,
    },
    /// A model reads other tokens than the policy.
    #[error(
        "use draw rule `{rule}`: `{option}`, `{checkpoint}`, does not share the policy's vocabulary: {detail}"
    )]
    OtherTokens {
        /// The rule.
        rule: &'static str,
        /// The option that names the model.
        option: &'static str,
        /// What it names.
        checkpoint: String,
        /// Where they differ.
        detail: String,
    },
    /// As many models are needed as the rule asks for.
    #[error("use draw rule `{rule}` with {found} models beside the policy: it asks {wanted}")]
    Models {
        /// The rule.
        rule: &'static str,
        /// Models that were given.
        found: usize,
        /// Models that it asks.
        wanted: usize,
    },
}

impl LoadedDrawRule {
    /// A rule with the models that it asks, in the order of [`DrawRule::models`], whose vocabularies are the main model's.
    ///
    /// # Errors
    ///
    /// [`DrawRuleError::Models`] when their number is another.
    pub fn new(rule: Arc<dyn DrawRule>, models: Vec<Arc<Weights>>) -> Result<Self, DrawRuleError> {
        let (found, wanted) = (models.len(), rule.models().len());
        if found != wanted {
            return Err(DrawRuleError::Models { rule: rule.name(), found, wanted });
        }
        // All of them are read beside a main model, as generation reads it.
        let models = models.into_iter().map(Weights::for_generation).collect();
        Ok(Self { rule, models })
    }

    /// Opens a rule for a policy with a vocabulary of `vocabulary` tokens, those of `tokenizer` first; none where the config is
    /// [plain](DrawRuleConfig::is_plain).
    ///
    /// `base` are the weights below the policy's adapter, where it has one; `open` loads the checkpoint of a name.
    ///
    /// # Errors
    ///
    /// [`DrawRuleError`] when the rule or its options are wrong, a model cannot be loaded, or its tokens are not the
    /// policy's.
    pub fn load(
        config: &DrawRuleConfig,
        tokenizer: &Tokenizer,
        vocabulary: usize,
        base: Option<&Arc<Weights>>,
        mut open: impl FnMut(&str) -> Result<(Weights, Tokenizer), CheckpointError>,
    ) -> Result<Option<Self>, DrawRuleError> {
        let rule = open_draw_rule(config)?;
        if config.is_plain() {
            return Ok(None);
        }
        let mut models = Vec::new();
        for asked in rule.models() {
            let (name, option) = (rule.name(), asked.option);
            models.push(match asked.source {
                ModelSource::Base => {
                    base.ok_or(DrawRuleError::NoBase { rule: name, option })?.clone()
                }
                ModelSource::Checkpoint(checkpoint) => {
                    let opened = open(&checkpoint);
                    let (weights, own) = opened.map_err(|source| DrawRuleError::Checkpoint {
                        rule: name,
                        option,
                        checkpoint: checkpoint.clone(),
                        source: Box::new(source),
                    })?;
                    let found = weights.config().vocab_size;
                    if let Some(detail) = differs((tokenizer, vocabulary), (&own, found)) {
                        let rule = name;
                        return Err(DrawRuleError::OtherTokens {
                            rule,
                            option,
                            checkpoint,
                            detail,
                        });
                    }
                    Arc::new(weights)
                }
            });
        }
        Self::new(rule, models).map(Some)
    }

    /// The rule.
    pub fn rule(&self) -> &dyn DrawRule {
        &*self.rule
    }

    /// The models beside the main one.
    pub fn models(&self) -> &[Arc<Weights>] {
        &self.models
    }

    /// Tokens that all of its models can read; as many as `limit` at the most.
    pub fn context(&self, limit: usize) -> usize {
        let limits = self.models.iter().map(|model| model.config().max_position_embeddings);
        limits.fold(limit, usize::min)
    }

    /// What its models have read of nothing.
    pub(crate) fn empty_caches(&self) -> Vec<SequenceCache> {
        self.models.iter().map(|model| SequenceCache::new(model)).collect()
    }

    /// The final states that its models have of the tokens of a tree, model by model.
    ///
    /// # Errors
    ///
    /// When a decoder is on a device, which fails.
    pub fn read(&self, tree: &TokenTree<'_>) -> Result<Vec<HiddenStates>, DeviceError> {
        self.models.iter().map(|model| tree.try_read(model, None)).collect()
    }

    /// Logits of some tokens, or of all where `ids` is empty, behind one state of each model.
    pub(crate) fn logits_of(
        &self,
        states: &[&[f32]],
        ids: &[u32],
        out: &mut Vec<Vec<f32>>,
    ) -> Result<(), DeviceError> {
        out.resize_with(self.models.len(), Vec::new);
        for ((model, state), out) in self.models.iter().zip(states).zip(out) {
            try_logits(model, state, ids, out)?;
        }
        Ok(())
    }

    /// Logits of the whole vocabulary behind several states of each model, row by row.
    pub(crate) fn batch_logits(
        &self,
        states: &[Vec<f32>],
        out: &mut Vec<Vec<f32>>,
    ) -> Result<(), DeviceError> {
        out.resize_with(self.models.len(), Vec::new);
        for ((model, states), out) in self.models.iter().zip(states).zip(out) {
            try_batch_logits(model, states, out)?;
        }
        Ok(())
    }
}

/// Where two vocabularies differ, each a tokenizer with the tokens that its model tells apart.
fn differs(policy: (&Tokenizer, usize), other: (&Tokenizer, usize)) -> Option<String> {
    let ((ours, tokens), (theirs, found)) = (policy, other);
    if tokens != found {
        return Some(format!("it has {found} tokens, the policy {tokens}"));
    }
    let (own, of_it) = (ours.vocab_size(), theirs.vocab_size());
    if own != of_it {
        return Some(format!("its tokenizer has {of_it} tokens, the policy's {own}"));
    }
    let is_other = |id: &u32| {
        ours.token_bytes(*id) != theirs.token_bytes(*id)
            || ours.is_control(*id) != theirs.is_control(*id)
    };
    (0..own as u32).find(is_other).map(|id| {
        let text = |of: &Tokenizer| String::from_utf8_lossy(of.token_bytes(id)).into_owned();
        format!("token {id} is {:?} there and {:?} here", text(theirs), text(ours))
    })
}
