//! What can be checked before anything is started.

use std::sync::Arc;

use spar_core::{GrammarSource, Sampling};
use spar_policy::cuda::DeviceChoice;
use spar_policy::{GrammarCache, GrammarError, ModelConfig, Tokenizer, TokenizerConfig};
use spar_tasks::graders::Graders;
use spar_trainer::{OptimizerPlace, TrainerConfig, WeightPrecision};

use super::{Recipe, RecipeError};
use crate::draw_rules::asks_base;
use crate::judging::JudgeConfig;
use crate::training::stages::Plan;

impl Recipe {
    /// Checks every setting that can be checked before anything is started.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Problems`] lists all that is wrong.
    pub fn validate(&self) -> Result<(), RecipeError> {
        let mut problems = Vec::new();
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        let model = ModelConfig { vocab_size: 1, ..self.model.clone() };
        within("model", model.problems());
        if self.model.vocab_size != 0 {
            let problem = "`vocab_size` has no effect: it is that of the tokenizer".to_owned();
            within("model", vec![problem]);
        }
        if self.devices == Some(0) {
            within("devices", vec!["0 is none".to_owned()]);
        }
        if self.devices.is_some_and(|devices| devices > 1) && self.device == DeviceChoice::Cpu {
            within(
                "devices",
                vec!["several are GPUs, and the recipe's device is the CPU".to_owned()],
            );
        }
        let lines = |error: &dyn std::error::Error| vec![error.to_string()];
        if let Err(error) = self.episode.validate() {
            within("episode", lines(&error));
        }
        if let Some(grammar) = &self.episode.grammar
            && let Err(error) = check_grammar(grammar)
        {
            within("episode", vec![format!("grammar: could not {error}")]);
        }
        if self.episode.max_turns.is_some() {
            let problem = "`max_turns` has no effect: set reinforce.max_turns and \
                           evaluation.max_turns";
            within("episode", vec![problem.to_owned()]);
        }
        if self.episode.sampling.temperature <= 0.0 {
            let problem = "`sampling.temperature` must be positive in training".to_owned();
            within("episode", vec![problem]);
        }
        problems.extend(self.data.problems());
        problems.extend(self.seats.problems());
        let seats = self.evaluation.seats.iter();
        let told = seats.filter_map(|(seat, player)| Some((seat, player.problem()?)));
        problems.extend(told.map(|(seat, problem)| format!("evaluation.seats.{seat}: {problem}")));
        problems.extend(self.judge.iter().flat_map(JudgeConfig::problems));
        problems
            .extend(self.spend.problems().into_iter().map(|problem| format!("spend.{problem}")));
        let has_judge = self.judge.as_ref().is_some_and(|judge| judge.endpoint.is_some());
        if self.spend.max_cost.is_some() && !has_judge && self.spend.hour_price.is_none() {
            let problem = "spend.max_cost has no effect: name `spend.hour_price`, or a judge behind an endpoint";
            problems.push(problem.to_owned());
        }
        if self.spend.max_requests.is_some() && !has_judge {
            let problem = "spend.max_requests has no effect: no endpoint is asked";
            problems.push(problem.to_owned());
        }
        if let Err(error) = Graders::open(&Graders::merged(&[], &self.graders)) {
            problems.push(format!("graders: {error}"));
        }
        let positive = [
            ("sandbox.concurrency", self.sandbox.concurrency),
            ("evaluation.every", self.evaluation.every as usize),
            ("evaluation.dev_tasks", self.evaluation.dev_tasks),
            ("evaluation.dev_attempts", self.evaluation.dev_attempts),
            ("keep.checkpoint_every", self.keep.checkpoint_every as usize),
            ("keep.checkpoints", self.keep.checkpoints),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        let max_missing = self.evaluation.max_missing;
        if !(0.0..1.0).contains(&max_missing) {
            problems.push(format!("evaluation.max_missing is {max_missing}, must be in [0, 1)"));
        }
        let mut sampling = Sampling::default();
        self.evaluation.apply_to(&mut sampling);
        let of_evaluation = sampling.problems();
        problems.extend(of_evaluation.into_iter().map(|problem| format!("evaluation.{problem}")));
        problems.extend(self.adapter_problems());
        problems.extend(self.value_head_problems());
        problems.extend(self.draw_rule_problems());
        if self.stages.is_empty() {
            let of_imitation = self.warm_start.problems(self);
            problems.extend(of_imitation.into_iter().map(|it| format!("warm_start.{it}")));
            let of_reinforcement = self.reinforce.problems(self);
            problems.extend(of_reinforcement.into_iter().map(|it| format!("reinforce.{it}")));
            if self.learners.len() > 1 {
                problems.push(
                    "learners: there are several, so list [[stages]], each with its `learner`"
                        .to_owned(),
                );
            }
            if self.warm_start.iterations + self.reinforce.iterations == 0 {
                problems.push("both stages have 0 iterations, nothing would be trained".to_owned());
            }
        } else if let Err(found) = Plan::of(self) {
            problems.extend(found);
        }
        if problems.is_empty() { Ok(()) } else { Err(RecipeError::Problems { problems }) }
    }

    /// What is wrong with how tokens are drawn.
    fn draw_rule_problems(&self) -> Vec<String> {
        let Some(rule) = &self.draw_rule else { return Vec::new() };
        let mut problems = rule.problems();
        if !self.learners.is_empty() {
            problems.push("named learners are drawn without one, leave it out".to_owned());
        }
        if self.device == DeviceChoice::Cuda && !rule.is_plain() {
            let problem = "what it draws is trained on the CPU, and the recipe's device is `cuda`";
            problems.push(problem.to_owned());
        }
        let has_base = self.lora.is_some();
        let asks_base = asks_base(rule).unwrap_or_default();
        if asks_base && !has_base {
            let problem = "`base` is the model below an adapter, and there is no [lora]";
            problems.push(problem.to_owned());
        }
        problems.into_iter().map(|problem| format!("draw_rule: {problem}")).collect()
    }

    /// What is wrong with how a stage updates, in this recipe.
    pub(super) fn trainer_problems(&self, trainer: &TrainerConfig) -> Vec<String> {
        let mut problems = trainer.problems();
        let devices = self.devices.unwrap_or(1);
        if devices > 1 && !trainer.is_for_device() {
            problems.push("several devices need `adamw` on them, and no `average`".to_owned());
        }
        if trainer.shards < devices {
            problems.push(format!("`shards` is {}, fewer than `devices`", trainer.shards));
        }
        let is_on_device = trainer.optimizer_on == Some(OptimizerPlace::Device);
        if is_on_device && self.device == DeviceChoice::Cpu {
            let problem = "`optimizer_on` is `device`, and the recipe's device is the CPU";
            problems.push(problem.to_owned());
        }
        let mut problems: Vec<String> =
            problems.into_iter().map(|problem| format!("trainer: {problem}")).collect();
        if !self.adapters().is_empty() && trainer.weights != WeightPrecision::F32 {
            problems.push("trainer.weights: an adapter is trained in f32".to_owned());
        }
        problems
    }
}

/// Compiles a grammar for a tokenizer of bytes alone, in place of the model's, which may not be there yet.
fn check_grammar(grammar: &GrammarSource) -> Result<(), GrammarError> {
    let texts: [[&str; 0]; 0] = [];
    let tokenizer = Tokenizer::train(texts, &TokenizerConfig::default())
        .expect("the default vocabulary has room for all bytes");
    let vocabulary = tokenizer.vocab_size();
    GrammarCache::new(Arc::new(tokenizer), vocabulary).get(grammar).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::ReferenceHold;

    #[test]
    fn credit_that_needs_what_nothing_gives_is_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        let gae = told("[reinforce]\ncredit = { kind = 'gae', lambda = 0.95 }");
        assert!(gae.contains("credit `gae` needs values, and no learner gives them"), "{gae}");
        assert_eq!(told("[reinforce]\ncredit = { kind = 'reinforce_pp', discount = 0.99 }"), "");
        assert_eq!(told("[reinforce]\nfilter = { kind = 'max_variance', keep = 2 }"), "");
        let filter = told("[reinforce]\nfilter = { kind = 'max_variance', keep = 0 }");
        assert!(filter.contains("reinforce.filter: use group filter `max_variance`: keep is 0"));
        assert!(told("[reinforce]\nfilter = { kind = 'some' }").contains("known are `all`"));
    }

    #[test]
    fn what_is_no_grammar_is_refused() {
        let told = |expression: &str| {
            let held = format!(
                "[episode]\nconstrain_to_admissible = false\n\
                 grammar = {{ kind = 'regex', expression = '{expression}' }}"
            );
            Recipe::parse("r", &held, &[]).unwrap().validate().map_err(|error| error.to_string())
        };
        assert_eq!(told("(go|stay)[a-z]{1,9}"), Ok(()));
        let error = told("(go").unwrap_err();
        assert!(
            error.contains("episode: grammar: could not ") && error.contains("regular expression"),
            "{error}"
        );
    }

    #[test]
    fn an_objective_that_compares_answers_is_refused_where_there_are_no_pairs() {
        let recipe = Recipe::parse("r", "[reinforce.objective]\nname = 'dpo'", &[]).unwrap();
        let told = recipe.validate().unwrap_err().to_string();
        assert!(told.contains("`dpo` learns from pairs of answers"), "{told}");
    }

    #[test]
    fn adapters_and_references_without_effect_are_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(told("[lora]\nrank = 4").contains("start_from"));
        assert!(told("needs_model = true").contains("`--start-from`"));
        assert_eq!(told("needs_model = true\nstart_from = 'm'"), "");
        assert!(told("start_from = 'm'\n[lora]\nrank = 0").contains("rank"));
        let bf16 = "start_from = 'm'\n[lora]\n[reinforce.trainer]\nweights = 'bf16'";
        assert!(told(bf16).contains("reinforce.trainer.weights: an adapter"));
        assert!(told("[reinforce]\nreference = 'memory'").contains("no effect"));
        let kl = "[reinforce.objective.options]\nkl_weight = 0.1";
        assert!(told(&format!("[reinforce]\nreference = 'adapter_off'\n{kl}")).contains("[lora]"));
        assert_eq!(told(&format!("[reinforce]\nreference = 'disk'\n{kl}")), "");
        let hold = |text: &str| {
            let recipe = Recipe::parse("r", text, &[]).unwrap();
            let is_first = recipe.warm_start.iterations == 0;
            recipe.reinforce.reference_hold(!recipe.adapters().is_empty(), is_first)
        };
        assert_eq!(hold(""), None);
        assert_eq!(hold(kl), Some(ReferenceHold::Memory));
        let adapter = format!("start_from = 'm'\n[lora]\n[warm_start]\niterations = 0\n{kl}");
        assert_eq!(hold(&adapter), Some(ReferenceHold::AdapterOff));
    }

    #[test]
    fn places_of_training_that_cannot_be_are_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => Vec::new(),
            Err(RecipeError::Problems { problems }) => problems,
            Err(other) => panic!("{other}"),
        };
        assert!(told("device = 'cuda'\ndevices = 2").is_empty());
        assert_eq!(told("device = 'cpu'\ndevices = 2").len(), 1);
        assert_eq!(told("devices = 0").len(), 1);
        // Fewer shards than devices, in both stages.
        assert_eq!(told("devices = 5").len(), 2);
        let on_device = "reinforce.trainer.optimizer_on = 'device'";
        assert!(told(on_device).is_empty());
        assert_eq!(told(&format!("device = 'cpu'\n{on_device}")).len(), 1);
        assert_eq!(told("devices = 2\nreinforce.trainer.optimizer_on = 'host'").len(), 1);
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut recipe = Recipe::default();
        recipe.reinforce.tasks = 0;
        recipe.reinforce.credit.kind = "gae".to_owned();
        recipe.model.head_dim = 3;
        recipe.evaluation.max_missing = 1.0;
        let text = recipe.validate().unwrap_err().to_string();
        for part in ["reinforce.tasks", "gae", "head_dim", "evaluation.max_missing is 1"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
