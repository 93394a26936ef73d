//! Learning from preferences.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use spar_core::registry::NamedOptions;
use spar_tasks::samplers::{SamplerConfig, open_sampler};
use spar_tasks::{ShaperConfig, open_shaper};
use spar_trainer::{ObjectiveConfig, TrainerConfig, objective_registry};

use super::{Recipe, ReferenceHold};

/// The objective that a stage has where it names none.
const DPO: &str = "dpo";

/// Learning from preferences: of two answers to one prompt, which was chosen.
///
/// The pairs are in files, or they are made of groups of episodes that the present policy plays: the best against the
/// worst of each group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreferConfig {
    /// Iterations, each on pairs of its own. Default 40.
    pub iterations: u64,
    /// Pairs in files, in place of episodes; nothing is played then, and what is said below of tasks and groups has no
    /// effect. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsConfig>,
    /// Tasks per iteration, each a group. Default 16.
    pub tasks: usize,
    /// Episodes per task; 2 at least. Default 8.
    pub group_size: usize,
    /// Turns an episode may have in training. Default 20.
    pub max_turns: u32,
    /// How much more than the worst the best of a group has to have earned, shapers included; groups without such a
    /// difference make no pair. Default 0: any difference will do.
    pub margin: f64,
    /// Which tasks are played. Default `uniform`.
    pub sampler: SamplerConfig,
    /// What changes the rewards before episodes are compared, in this order. Default empty: nothing.
    pub shapers: Vec<ShaperConfig>,
    /// What is minimised: one that compares answers. Default `dpo`.
    #[serde(deserialize_with = "objective")]
    pub objective: ObjectiveConfig,
    /// How the reference model is held. Default absent: `adapter_off` where an adapter is trained from the start of the
    /// run on, else `memory`.
    pub reference: Option<ReferenceHold>,
    /// How samples become updates; an iteration is divided into `minibatches` of whole pairs.
    pub trainer: TrainerConfig,
}

impl Default for PreferConfig {
    fn default() -> Self {
        Self {
            iterations: 40,
            pairs: None,
            tasks: 16,
            group_size: 8,
            max_turns: 20,
            margin: 0.0,
            sampler: SamplerConfig::default(),
            shapers: Vec::new(),
            objective: ObjectiveConfig { name: DPO.to_owned(), ..ObjectiveConfig::default() },
            reference: None,
            trainer: TrainerConfig::default(),
        }
    }
}

/// Pairs of answers in files, a JSON object per line.
///
/// An object has `chosen` and `rejected`, and `prompt` where these are answers alone: texts, or lists of messages as
/// OpenAI's interface has them; and `tools` where they may be called. A `prompt` stands before both lists, unless both
/// begin with it, behind the system's messages at most. Conversations without one begin with the messages that both have
/// in common, which are it. Of the rest only the assistant's messages are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PairsConfig {
    /// The files, whose lines follow on each other; at least one.
    pub files: Vec<PathBuf>,
    /// Files of pairs that are not trained on: the objective's loss and metrics on them are told every
    /// `evaluation.every` iterations, and behind the last. Default empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<PathBuf>,
    /// Pairs per iteration, drawn without repeats until all were met. Default absent: all.
    pub per_iteration: Option<usize>,
}

impl NamedOptions for PreferConfig {}

impl PreferConfig {
    /// Whether its objective needs a reference model.
    pub fn has_reference(&self) -> bool {
        self.objective.build().is_ok_and(|objective| objective.needs().reference)
    }

    /// How the reference model is held, where there is one; `is_first` where nothing is trained before.
    pub fn reference_hold(&self, has_adapter: bool, is_first: bool) -> Option<ReferenceHold> {
        let hold = || ReferenceHold::or_default(self.reference, has_adapter, is_first);
        self.has_reference().then(hold)
    }

    /// All that is wrong with these settings in a recipe.
    pub(crate) fn problems(&self, recipe: &Recipe) -> Vec<String> {
        let mut problems = recipe.trainer_problems(&self.trainer);
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        within("objective", self.objective_problems());
        let told = |error: anyhow::Error| vec![format!("{error:#}")];
        for shaper in &self.shapers {
            if let Err(error) = open_shaper(shaper) {
                within("shapers", told(error.into()));
            }
        }
        if let Err(error) = open_sampler(&self.sampler, 0) {
            within("sampler", told(error.into()));
        }
        if let Some(pairs) = &self.pairs {
            within("pairs", pairs.problems());
            within("pairs", self.without_effect());
        }
        for (name, value) in [("tasks", self.tasks), ("max_turns", self.max_turns as usize)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if self.group_size < 2 {
            let size = self.group_size;
            problems
                .push(format!("group_size is {size}, must be at least 2: the best is compared"));
        }
        if !(self.margin.is_finite() && self.margin >= 0.0) {
            problems.push(format!("margin is {}, must not be negative", self.margin));
        }
        if self.objective.build().is_ok() {
            problems.extend(ReferenceHold::problem(self.reference, self.has_reference(), recipe));
        }
        problems
    }

    fn objective_problems(&self) -> Vec<String> {
        let mut problems = self.objective.problems();
        if self.objective.build().is_ok_and(|objective| !objective.needs().pairs) {
            let compares = |name: &&str| {
                let named = ObjectiveConfig { name: (*name).to_owned(), ..Default::default() };
                named.build().is_ok_and(|objective| objective.needs().pairs)
            };
            let names = objective_registry().iter().map(|entry| entry.name).filter(compares);
            let known: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let name = &self.objective.name;
            problems.push(format!("`{name}` compares no answers: use {}", known.join(" or ")));
        }
        if self.objective.value_loss.is_some() && self.objective.build().is_ok() {
            problems.push("pairs have no returns: leave `value_loss` out".to_owned());
        }
        problems
    }

    /// Settings of episodes, where none are played.
    fn without_effect(&self) -> Vec<String> {
        let default = Self::default();
        let set = [
            ("tasks", self.tasks != default.tasks),
            ("group_size", self.group_size != default.group_size),
            ("max_turns", self.max_turns != default.max_turns),
            ("margin", self.margin != default.margin),
            ("sampler", self.sampler != default.sampler),
            ("shapers", self.shapers != default.shapers),
        ];
        let tell = |name| format!("`{name}` has no effect beside files: nothing is played");
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| tell(name)).collect()
    }
}

impl PairsConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.files.is_empty() {
            problems.push("`files` is empty, name at least one".to_owned());
        }
        if self.per_iteration == Some(0) {
            problems.push("per_iteration is 0, must be at least 1 or absent".to_owned());
        }
        let trained = self.held_out.iter().filter(|path| self.files.contains(path));
        problems
            .extend(trained.map(|path| format!("`{}` is trained on and held out", path.display())));
        problems
    }
}

/// An objective whose name may be left out.
fn objective<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectiveConfig, D::Error> {
    let mut table = toml::Table::deserialize(deserializer)?;
    table.entry("name").or_insert_with(|| DPO.into());
    table.try_into().map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let told = |text: &str| {
            let text = format!("[[stages]]\nkind = 'prefer'\n{text}");
            match Recipe::parse("r", &text, &[]).unwrap().validate() {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(told(""), "");
        assert_eq!(told("pairs = { files = ['a'] }"), "");
        let all = told(
            "pairs = { files = [], held_out = [], per_iteration = 0 }\ntasks = 0\nmargin = -1\n\
             group_size = 1\nreference = 'adapter_off'",
        );
        for part in [
            "pairs: `files` is empty",
            "per_iteration is 0",
            "`tasks` has no effect beside files",
            "tasks is 0",
            "margin is -1",
            "group_size is 1",
            "reference is `adapter_off`",
        ] {
            assert!(all.contains(part), "{part} is not in\n{all}");
        }
        let options = told("objective = { options = { beta = 0 } }\nreference = 'adapter_off'");
        assert!(options.contains("`beta` 0 must be positive"), "{options}");
        let clip = told("objective = { name = 'clip' }\nreference = 'memory'");
        assert!(clip.contains("`clip` compares no answers: use `cpl` or `dpo`"), "{clip}");
        assert!(clip.contains("reference has no effect"), "{clip}");
        let valued = told("objective = { name = 'clip', value_loss = {} }");
        assert!(
            valued.contains("objective: pairs have no returns: leave `value_loss` out"),
            "{valued}"
        );
        let twice = told("pairs = { files = ['a'], held_out = ['a'] }");
        assert!(twice.contains("`a` is trained on and held out"), "{twice}");
    }
}
