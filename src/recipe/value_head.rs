//! Value heads of a recipe's learners.

use std::collections::{BTreeMap, BTreeSet};

use spar_policy::state_heads::StateHeadConfig;

use super::{POLICY, Recipe};
use crate::training::stages::open_stage;

impl Recipe {
    /// The value heads that are trained, by learner; none where no learner has one.
    pub fn value_heads(&self) -> BTreeMap<String, StateHeadConfig> {
        let named = self.learners.iter().filter_map(|(name, learner)| {
            learner.value_head.as_ref().map(|head| (name.clone(), head.clone()))
        });
        let single = self.value_head.iter().map(|head| (POLICY.to_owned(), head.clone()));
        single.chain(named).collect()
    }

    /// Whether a stage trains a value head.
    pub(crate) fn trains_values(&self) -> bool {
        let stages = self.stage_configs();
        let mut stages = stages.iter().filter_map(|config| open_stage(config).ok());
        stages.any(|stage| stage.trains_value_head())
    }

    /// All that is wrong with the value heads: settings that cannot be, one that no stage trains, a stage that trains
    /// one that its learner does not have, and one whose credit reads values before any stage has trained them.
    pub(super) fn value_head_problems(&self) -> Vec<String> {
        let heads = self.value_heads();
        let label = |learner: &str| match learner {
            POLICY => "value_head".to_owned(),
            learner => format!("learners.{learner}.value_head"),
        };
        let mut problems = Vec::new();
        for (learner, head) in &heads {
            let within = |problem| format!("{}: {problem}", label(learner));
            problems.extend(head.problems().into_iter().map(within));
        }
        if self.value_head.is_some() && !self.learners.is_empty() {
            let problem = "value_head: has no effect beside [learners], each of which has its own";
            problems.push(problem.to_owned());
            return problems;
        }
        let has_trained = !heads.is_empty() && self.trains_values();
        let mut trained = BTreeSet::new();
        for config in self.stage_configs() {
            // What cannot be opened, or names no learner, is told of elsewhere.
            let Ok(stage) = open_stage(&config) else { continue };
            let Ok(learner) = self.learner_of(config.learner.as_deref()) else { continue };
            let name = config.name.as_ref().unwrap_or(&config.kind);
            if !stage.trains_value_head() {
                // Where no stage trains any, that is told of the stage itself.
                if stage.needs_values() && has_trained && !trained.contains(&learner) {
                    problems.push(format!(
                        "{name}: credit reads values, which are 0: no stage before it trains the value head of learner `{learner}`"
                    ));
                }
                continue;
            }
            let goes_on = heads.get(&learner).is_some_and(|head| head.trunk_gradient);
            if stage.trains_values_alone() && goes_on {
                problems.push(format!(
                    "{name}: `values_alone` leaves the policy alone, and the gradient of the value head goes on into it: \
                     set trunk_gradient = false in [{}]",
                    label(&learner)
                ));
            }
            if !heads.contains_key(&learner) {
                let table = label(&learner);
                problems.push(format!(
                    "{name}: objective.value_loss is the loss of a value head, and learner `{learner}` has none: \
                     set [{table}]"
                ));
            }
            trained.insert(learner);
        }
        for learner in heads.keys().filter(|learner| !trained.contains(*learner)) {
            problems.push(format!(
                "{}: has no effect: no stage of the learner has an objective.value_loss",
                label(learner)
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::RecipeError;

    fn problems(text: &str) -> Vec<String> {
        match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => Vec::new(),
            Err(RecipeError::Problems { problems }) => problems,
            Err(other) => panic!("{other}"),
        }
    }

    const PPO: &str = "[reinforce]\ncredit = { kind = 'gae', lambda = 0.95 }\n\
                       objective = { value_loss = { weight = 0.1, clip = 0.2 } }\n";

    #[test]
    fn a_head_with_its_loss_and_its_user_is_a_recipe() {
        for head in ["[value_head]", "[value_head]\nkind = 'hidden_layer'\nwidth = 8"] {
            assert_eq!(problems(&format!("{PPO}{head}")), [""; 0]);
        }
        let recipe = Recipe::parse("r", &format!("{PPO}[value_head]\nwidth = 8"), &[]).unwrap();
        assert_eq!(Recipe::parse("r", &recipe.to_toml(), &[]).unwrap(), recipe, "it round-trips");
        let learners = "start_from = 'm'\n[learners.a.value_head]\n[learners.a.lora]\n\
                        [[stages]]\nkind = 'reinforce'\ncredit = { kind = 'gae' }\n\
                        objective = { value_loss = {} }";
        assert_eq!(problems(learners), [""; 0]);
    }

    #[test]
    fn values_are_read_behind_the_stage_that_trains_them() {
        let stage = |name: &str, objective: &str| {
            format!(
                "[[stages]]\nkind = 'reinforce'\nname = '{name}'\ncredit = {{ kind = 'gae' }}\n\
                 objective = {{ {objective} }}\n"
            )
        };
        let fits = stage("fits", "value_loss = {}");
        let reads = stage("reads", "name = 'clip'");
        assert_eq!(problems(&format!("{fits}{reads}[value_head]")), [""; 0]);
        let swapped = problems(&format!("{reads}{fits}[value_head]"));
        let [problem] = &swapped[..] else { panic!("one problem: {swapped:?}") };
        assert!(problem.starts_with("reads: credit reads values, which are 0"), "{problem}");
        // The head of one learner is none of another.
        let other = "start_from = 'm'\n[learners.a.value_head]\n[learners.b.lora]\n";
        let of = |stage: &str, learner: &str| format!("{stage}learner = '{learner}'\n");
        let told = problems(&format!("{other}{}{}", of(&fits, "a"), of(&reads, "b")));
        assert!(told.iter().any(|it| it.contains("value head of learner `b`")), "{told:?}");
    }

    #[test]
    fn what_would_have_no_effect_or_lacks_something_is_refused() {
        let told = |text: &str, part: &str| {
            let problems = problems(text);
            assert!(problems.iter().any(|problem| problem.contains(part)), "{part}: {problems:?}");
        };
        told("[value_head]", "value_head: has no effect: no stage");
        told(
            PPO,
            "reinforce: objective.value_loss is the loss of a value head, and learner `policy`",
        );
        told(PPO, "credit `gae` needs values, and no learner gives them: set [value_head]");
        told("[value_head]\nkind = 'cubic'", "value_head: find head `cubic`: known are `linear`");
        told(&format!("{PPO}[value_head]\nlearning_rate_scale = 0"), "must be positive");
        told(
            "[reinforce]\ncredit = { kind = 'gae' }\n[value_head]",
            "credit `gae` needs values, which are 0 for good without objective.value_loss",
        );
        told(
            "[reinforce]\nobjective = { value_loss = {} }\n[value_head]",
            "objective: value_loss learns returns, and credit `grpo` gives none",
        );
        let beside = "start_from = 'm'\n[value_head]\n[learners.a.lora]\nrank = 4";
        told(beside, "value_head: has no effect beside [learners]");
        let other = "start_from = 'm'\n[learners.a.value_head]\n[learners.b.lora]\n\
                     [[stages]]\nkind = 'reinforce'\nlearner = 'b'\ncredit = { kind = 'gae' }\n\
                     objective = { value_loss = {} }";
        told(other, "learner `b` has none: set [learners.b.value_head]");
        told(other, "learners.a.value_head: has no effect");
    }
}
