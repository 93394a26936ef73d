//! The learners of a stage that has several.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use spar_agent::SharedPlayer;
use spar_policy::{LocalPolicy, ServedAdapter, Weights};
use spar_trainer::{Trained, Trainer};

use super::Training;
use crate::training::learners::{Companion, LearnersPolicy, plays};
use crate::training::model::learner_folder;
use crate::training::stages::Place;
use crate::training::state::TRAINER_FILE;

impl Training {
    /// Makes trainers and policies for all learners of the stage that trains next, where it has several; the present one is
    /// one of them. Their states are those of a checkpoint, where there is one.
    pub(super) fn open_companions(&mut self, checkpoint: Option<&Path>) -> anyhow::Result<()> {
        let learners = self.plan.learners_at(self.stage.index).clone();
        if learners.is_empty() {
            return Ok(());
        }
        let config = self.plan.trainer_at(self.stage.index).clone();
        let version = self.trainer.version();
        let present = self.model.learner.clone();
        self.model.trained = self.model.apart(&present)?;
        for learner in learners.values().filter(|learner| **learner != present) {
            if self.companions.contains_key(learner) {
                continue;
            }
            let trained = self.model.apart(learner)?;
            let parameters = self.model.parked_parameters(learner)?;
            let (start, folder) = (parameters.clone(), self.folder.path());
            let mut trainer = Trainer::in_folder(config.clone(), start, &trained, None, folder)?
                .starting_at(version);
            if let Some(checkpoint) = checkpoint {
                let file = learner_folder(checkpoint, learner).join(TRAINER_FILE);
                trainer
                    .load_state(parameters, &file)
                    .with_context(|| format!("go on with learner `{learner}`"))?;
            }
            self.companions.insert(learner.clone(), Companion { trainer, trained });
        }
        self.open_policies(learners)
    }

    /// One engine for all learners of the stage.
    fn open_policies(&mut self, learners: BTreeMap<String, String>) -> anyhow::Result<()> {
        let base = self.model.trained.decoder().clone();
        let served: Vec<ServedAdapter> = self
            .present_weights()?
            .into_iter()
            .map(|(learner, weights, version)| {
                let adapter = weights.adapter().cloned();
                let adapter =
                    adapter.context("play several learners: they are adapters on the CPU")?;
                Ok(ServedAdapter { name: learner.into(), adapter, version })
            })
            .collect::<anyhow::Result<_>>()?;
        let tokenizer = Arc::new(self.model.tokenizer.clone());
        let version = self.trainer.version();
        let policies =
            LocalPolicy::with_adapters("base", tokenizer, base, version, &served, self.threads)
                .context("start the engine of several learners")?;
        // The first one is the model below them.
        let of_learners = served.iter().zip(policies.into_iter().skip(1));
        let by_learner =
            of_learners.map(|(served, policy)| (served.name.to_string(), Arc::new(policy)));
        self.learners = Some(Arc::new(LearnersPolicy::new(by_learner.collect(), learners)));
        Ok(())
    }

    /// The weights of all learners of the stage as they are now.
    fn present_weights(
        &self,
    ) -> anyhow::Result<Vec<(String, Arc<Weights>, spar_core::PolicyVersion)>> {
        let own = (&self.model.learner, &self.trainer, &self.model.trained);
        let others = self.companions.iter();
        let others = others.map(|(name, other)| (name, &other.trainer, &other.trained));
        let weights = |(name, trainer, trained): (&String, &Trainer, &Trained)| {
            Ok((name.clone(), trainer.weights(trained)?, trainer.version()))
        };
        std::iter::once(own).chain(others).map(weights).collect()
    }

    /// The learners of the stage that is over are one again: the present one.
    pub(super) fn close_companions(&mut self) -> anyhow::Result<()> {
        if self.learners.take().is_some() {
            self.companions.clear();
            self.model.trained = self.model.merged(&self.model.learner)?;
        }
        Ok(())
    }

    /// Who plays for a stage, with the present weights: the policy, or all learners of the stage.
    pub(in crate::training) fn player(&self, place: &Place) -> anyhow::Result<SharedPlayer> {
        let Some(learners) = self.learners.as_ref().filter(|_| !place.learners.is_empty()) else {
            self.publish()?;
            return Ok(SharedPlayer::Policy(self.policy.clone()));
        };
        for (learner, weights, version) in self.present_weights()? {
            let policy = learners.of(&learner).context("publish a learner: nobody plays it")?;
            policy.publish(&weights, version);
        }
        Ok(SharedPlayer::Policy(learners.clone()))
    }

    /// Has these learners play from now on, by environment or seat, where a stage has several.
    pub(in crate::training) fn seat_learners(&self, learners: BTreeMap<String, String>) {
        if let Some(policy) = &self.learners {
            policy.seat(learners);
        }
    }

    /// Another learner of the stage is the present one from now on.
    pub(in crate::training) fn turn_to(&mut self, learner: &str) -> anyhow::Result<()> {
        if self.model.learner == learner {
            return Ok(());
        }
        let next = self.companions.remove(learner);
        let next = next.with_context(|| format!("train learner `{learner}`: it has no trainer"))?;
        let own = self.trainer.parameters()?;
        let lora = self.recipe.adapters().remove(&self.model.learner);
        let lora = lora.context("change learners: only adapters can be changed for others")?;
        let present = self.model.learner.clone();
        self.model.switch_to(learner, own, &lora)?;
        let trained = std::mem::replace(&mut self.model.trained, next.trained);
        // What `switch_to` made of it is merged; the trainer has the parameters.
        drop(trained);
        let trained = self.model.apart(&present)?;
        let trainer = std::mem::replace(&mut self.trainer, next.trainer);
        self.companions.insert(present, Companion { trainer, trained });
        Ok(())
    }

    /// Looks whether every environment of these tasks has a learner, where a stage has several.
    pub(in crate::training) fn check_environments<'a>(
        &self,
        place: &Place,
        environments: impl Iterator<Item = &'a str>,
    ) -> anyhow::Result<()> {
        if place.learners.is_empty() {
            return Ok(());
        }
        for environment in environments {
            ensure!(
                plays(&place.learners, environment),
                "play environment `{environment}`: `learners` of stage `{}` names none for it",
                place.name
            );
        }
        Ok(())
    }
}
