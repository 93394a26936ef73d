//! The predictor of a stage: a small learned function of turns beside the policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_agent::credit::AdvantageEstimator;
use spar_core::Signal;
use spar_core::registry::Options;
use spar_predictors::{PredictorConfig, predictor_registry};
use spar_trainer::{TurnFeaturesConfig, open_turn_features};

/// A predictor that is fitted to the groups of every iteration and then tells credit what it sees in their turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictConfig {
    /// The predictor's name.
    pub kind: String,
    /// What it sees of turns. Default `hashed_tokens`.
    #[serde(default)]
    pub features: TurnFeaturesConfig,
    /// Iterations at the beginning of the stage in which it is fitted and the policy is not trained. Default 0.
    #[serde(default)]
    pub warm_up: u64,
    /// Its own options; those left out have the defaults that its config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl PredictConfig {
    /// Which predictor it is, with which options.
    pub fn predictor(&self) -> PredictorConfig {
        PredictorConfig { kind: self.kind.clone(), options: self.options.clone() }
    }

    /// The signals that it gives; none where nothing has its name.
    pub fn gives(&self) -> &'static [Signal] {
        predictor_registry().find(&self.kind).map_or(&[], |row| row.gives)
    }

    /// Whether what it sees is read off a frozen model.
    pub fn needs_model(&self) -> bool {
        open_turn_features(&self.features).is_ok_and(|features| features.needs_model())
    }

    /// All that is wrong with it, beside this estimator in a stage of so many iterations.
    pub(super) fn problems(
        &self,
        credit: Option<&dyn AdvantageEstimator>,
        iterations: u64,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        if let Err(error) = predictor_registry().choose(&self.kind, &self.options) {
            problems.push(error.to_string());
        }
        if let Err(error) = open_turn_features(&self.features) {
            problems.push(format!("features: {error}"));
        }
        if iterations > 0 && self.warm_up >= iterations {
            problems.push(format!(
                "warm_up is {}, and the stage has {iterations} iterations: the policy would never be trained",
                self.warm_up
            ));
        }
        let gives = self.gives();
        let is_unread = |credit: &&dyn AdvantageEstimator| {
            !gives.is_empty() && !credit.needs().iter().any(|signal| gives.contains(signal))
        };
        if let Some(credit) = credit.filter(is_unread) {
            let given: Vec<String> = gives.iter().map(|signal| format!("`{signal}`")).collect();
            problems.push(format!(
                "`{}` has no effect: credit `{}` does not read {}",
                self.kind,
                credit.name(),
                given.join(" or ")
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Recipe, RecipeError};

    fn problems(text: &str) -> Vec<String> {
        let text = format!("[reinforce]\n{text}");
        match Recipe::parse("r", &text, &[]).unwrap().validate() {
            Ok(()) => Vec::new(),
            Err(RecipeError::Problems { problems }) => problems,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_predictor_with_its_estimator_is_a_recipe() {
        for (credit, predictor) in [
            ("spa", "{ kind = 'progress', epochs = 2, warm_up = 3 }"),
            ("archer", "{ kind = 'turn_critic', features = { kind = 'hidden_states' } }"),
            (
                "archer",
                "{ kind = 'turn_critic', features = { kind = 'hashed_tokens', width = 8 } }",
            ),
        ] {
            let text = format!("credit = {{ kind = '{credit}' }}\npredictor = {predictor}");
            assert_eq!(problems(&text), [""; 0]);
            let recipe = Recipe::parse("r", &format!("[reinforce]\n{text}"), &[]).unwrap();
            assert_eq!(Recipe::parse("r", &recipe.to_toml(), &[]).unwrap(), recipe);
            let needs_model = predictor.contains("hidden_states");
            assert_eq!(recipe.reinforce.has_reference(), needs_model);
        }
    }

    #[test]
    fn what_would_have_no_effect_or_lacks_something_is_refused() {
        let told = |text: &str, part: &str| {
            let problems = problems(text);
            assert!(problems.iter().any(|problem| problem.contains(part)), "{part}: {problems:?}");
        };
        let critic = "predictor = { kind = 'turn_critic' }";
        told(
            "credit = { kind = 'spa' }",
            "credit `spa` needs `progress`, and no predictor gives it",
        );
        told(
            &format!("credit = {{ kind = 'spa' }}\n{critic}"),
            "credit `spa` needs `progress`, and no predictor gives it",
        );
        told(
            critic,
            "predictor: `turn_critic` has no effect: credit `grpo` does not read `action_values` or \
             `state_values`",
        );
        let with = |options: &str| {
            format!("credit = {{ kind = 'spa' }}\npredictor = {{ kind = 'progress', {options} }}")
        };
        told(&with("steps = 3"), "no option `steps`");
        told(&with("epochs = 0"), "epochs is 0");
        told(&with("features = { kind = 'states' }"), "features: find turn features `states`");
        told(&with("features = { kind = 'hidden_states', width = 3 }"), "no option `width`");
        told(&with("warm_up = 200"), "warm_up is 200, and the stage has 200 iterations");
        told("predictor = { kind = 'critic' }", "predictor: find predictor `critic`");
    }
}
