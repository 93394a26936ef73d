//! Reinforcement learning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_agent::TurnMask;
use spar_agent::credit::{CreditConfig, SharedTurns, open_estimator};
use spar_agent::filters::{FilterConfig, open_filter};
use spar_agent::strategies::{StrategyConfig, open_strategy};
use spar_core::Signal;
use spar_core::registry::NamedOptions;
use spar_tasks::samplers::{SamplerConfig, open_sampler};
use spar_tasks::{ShaperConfig, open_shaper};
use spar_trainer::{Denominator, Objective, ObjectiveConfig, TrainerConfig};

use super::offline::values_alone_problems;
use super::reference_model::reference_problems;
use super::{
    HardestConfig, HorizonConfig, PredictConfig, Recipe, ReferenceHold, ReferenceResetConfig,
    RehearseConfig, ReplayConfig, SoupMember,
};

/// Reinforcement learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReinforceConfig {
    /// Iterations of collecting and updating; 0 leaves the stage out. Default 200.
    pub iterations: u64,
    /// Tasks per iteration. Default 16.
    pub tasks: usize,
    /// Episodes per task. Default 8.
    pub group_size: usize,
    /// Turns an episode may have in training. Default 20.
    pub max_turns: u32,
    /// How long episodes and answers may be as training goes on. Default absent: as long as `max_turns` and `sampling.max_tokens` say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<HorizonConfig>,
    /// Whether turns whose answer was cut off (at `sampling.max_tokens`) carry no weight, so that
    /// nothing is learned from what was not finished. Default false.
    pub mask_cut_off_turns: bool,
    /// Whether turns that episodes of a group have in common, or took over from one outside it, carry no weight, so that only what
    /// they did differently is learned from. Default false.
    pub mask_shared_turns: bool,
    /// Which tasks are played, and which of their groups are trained. Default `uniform`.
    pub sampler: SamplerConfig,
    /// How the episodes of a group come about. Default `independent`.
    pub strategy: StrategyConfig,
    /// What changes the rewards before credit sees them, in this order. Default empty: nothing.
    pub shapers: Vec<ShaperConfig>,
    /// How advantages are assigned to steps. Default `grpo`.
    pub credit: CreditConfig,
    /// A small learned function of turns, fitted in every iteration, that tells credit what it asks for. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictor: Option<PredictConfig>,
    /// Which trajectories of a group are trained; what is left out counts in nothing, also not in what a loss is
    /// divided by. Default absent: all.
    pub filter: Option<FilterConfig>,
    /// What was played before and is trained again. Default absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayConfig>,
    /// How tasks that nobody solves are demonstrated between iterations. Default absent: they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imitate_hardest: Option<HardestConfig>,
    /// How the policy is kept from giving up what it could do when the stage began. Default absent: it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearse: Option<RehearseConfig>,
    /// Iterations behind which the learners of an environment's seats exchange their seats, where each seat has its own. Default absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_every: Option<u64>,
    /// Whether learners are updated one after the other, in an order that is drawn anew in every iteration, each with its advantages times what those before it have changed: `A' = A
    /// prod_j pi_new(a_j) / pi_old(a_j)` over the tokens that the others sampled in the same episode, kept between 1/2 and 2. Default false: as if at one time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sequential_updates: bool,
    /// What is minimised.
    pub objective: ObjectiveConfig,
    /// How the reference model is held, where the objective asks for one. Default absent:
    /// `adapter_off` where an adapter is trained from the start of the run on, else `memory`.
    pub reference: Option<ReferenceHold>,
    /// The models whose weights, averaged, are the reference model: a soup as of SALSA (arXiv 2411.01798), or a single other model, such as a teacher. Default empty: the policy as it was when the stage
    /// began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference_soup: Vec<SoupMember>,
    /// When the reference model becomes the present policy. Default absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_reset: Option<ReferenceResetConfig>,
    /// How rows become updates.
    pub trainer: TrainerConfig,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self {
            iterations: 200,
            tasks: 16,
            group_size: 8,
            max_turns: 20,
            horizon: None,
            mask_cut_off_turns: false,
            mask_shared_turns: false,
            sampler: SamplerConfig::default(),
            strategy: StrategyConfig::default(),
            shapers: Vec::new(),
            credit: CreditConfig::default(),
            predictor: None,
            filter: None,
            replay: None,
            imitate_hardest: None,
            rehearse: None,
            exchange_every: None,
            sequential_updates: false,
            objective: ObjectiveConfig::default(),
            reference: None,
            reference_soup: Vec::new(),
            reference_reset: None,
            trainer: TrainerConfig::default(),
        }
    }
}

impl NamedOptions for ReinforceConfig {}

impl ReinforceConfig {
    /// Whether it needs a reference model: for the objective, or for what the predictor sees.
    pub fn has_reference(&self) -> bool {
        let objective = self.objective.build();
        objective.is_ok_and(|objective| objective.needs().reference)
            || self.predictor.as_ref().is_some_and(PredictConfig::needs_model)
    }

    /// What is wrong where an estimator needs a signal that nothing gives here; `None` where one does.
    ///
    /// What has a [stage](spar_trainer::signal_stages) is given wherever there is the model that it is measured with.
    pub fn missing_signal(&self, signal: Signal, recipe: &Recipe) -> Option<&'static str> {
        match signal {
            signal if self.predictor.iter().any(|it| it.gives().contains(&signal)) => None,
            Signal::Progress => Some(
                "`progress`, and no predictor gives it: set predictor = { kind = \"progress\" }",
            ),
            Signal::ActionValues => Some(
                "`action_values`, and no predictor gives them: set predictor = { kind = \"turn_critic\" }",
            ),
            Signal::StateValues => Some(
                "`state_values`, and no predictor gives them: set predictor = { kind = \"turn_critic\" }",
            ),
            Signal::Reference if !self.has_reference() => {
                Some("a reference model, and the objective asks for none")
            }
            Signal::Values if recipe.value_heads().is_empty() => {
                Some("values, and no learner gives them: set [value_head] and objective.value_loss")
            }
            Signal::Values if self.objective.value_loss.is_none() && !recipe.trains_values() => {
                Some("values, which are 0 for good without objective.value_loss")
            }
            Signal::Teacher => Some("a teacher's log-probabilities, and there is no teacher"),
            Signal::Reference
            | Signal::Values
            | Signal::Old
            | Signal::Entropies
            | Signal::SumSquares => None,
        }
    }

    /// Whether its credit reads the values of a value head.
    pub(crate) fn needs_values(&self) -> bool {
        let is_predicted = self.predictor.iter().any(|it| it.gives().contains(&Signal::Values));
        let credit = open_estimator(&self.credit);
        !is_predicted && credit.is_ok_and(|credit| credit.needs().contains(&Signal::Values))
    }

    /// How the reference model is held, where there is one; `is_first` where nothing is trained before.
    pub fn reference_hold(&self, has_adapter: bool, is_first: bool) -> Option<ReferenceHold> {
        let hold = || ReferenceHold::or_default(self.reference, has_adapter, is_first);
        self.has_reference().then(hold)
    }

    /// Which turns carry weight.
    pub fn turn_mask(&self) -> TurnMask {
        if self.mask_cut_off_turns { TurnMask::CutOff } else { TurnMask::None }
    }

    /// How turns are trained that forks have in common.
    pub fn shared_turns(&self, objective: &dyn Objective) -> SharedTurns {
        let has_means = objective.takes_mean_advantages();
        match has_means && !self.objective.aggregation.is_relative_to_sample() {
            true => SharedTurns::Owned,
            false => SharedTurns::Divided,
        }
    }

    /// All that is wrong with these settings in a recipe.
    pub(crate) fn problems(&self, recipe: &Recipe) -> Vec<String> {
        let mut problems = recipe.trainer_problems(&self.trainer);
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        let told = |error: anyhow::Error| vec![format!("{error:#}")];
        let mut problems_of_mask = Vec::new();
        within("objective", self.objective.problems());
        within("objective", values_alone_problems(&self.objective));
        if self.objective.build().is_ok_and(|objective| objective.needs().pairs) {
            let name = &self.objective.name;
            let problem =
                format!("`{name}` learns from pairs of answers, which stage `prefer` has");
            within("objective", vec![problem]);
        }
        for shaper in &self.shapers {
            if let Err(error) = open_shaper(shaper) {
                within("shapers", told(error.into()));
            }
        }
        if let Err(error) = open_sampler(&self.sampler, 0) {
            within("sampler", told(error.into()));
        }
        let strategy = open_strategy(&self.strategy);
        if strategy.as_ref().is_ok_and(|strategy| strategy.partial().is_some()) {
            let name = &self.strategy.kind;
            if self.sampler.kind != "uniform" {
                let problem = format!(
                    "`{name}` trains groups of earlier draws, of which only the sampler `uniform` need not be told"
                );
                within("strategy", vec![problem]);
            }
            if self.replay.is_some() {
                let problem =
                    format!("`{name}` fills iterations itself, and `replay` is another way");
                within("strategy", vec![problem]);
            }
        }
        let is_demonstrated = strategy.as_ref().is_ok_and(|it| it.adds_demonstrations());
        if strategy.is_ok() && self.objective.name == "rl_plus" && !is_demonstrated {
            let problem = "`rl_plus` learns from demonstrations among the episodes of a group, and there are none: set \
                           strategy = { kind = \"demonstrated\" }";
            within("objective", vec![problem.to_owned()]);
        }
        let (is_remax, is_greedy) =
            (self.credit.kind == "remax", self.strategy.kind == "greedy_baseline");
        if is_remax != is_greedy {
            let problem = match is_remax {
                true => {
                    "`remax` compares with a greedy episode, and there is none: set strategy = { kind = \"greedy_baseline\" }"
                }
                false => {
                    "`greedy_baseline` plays an episode for credit `remax` alone, and others would take it for one that was sampled"
                }
            };
            within(if is_remax { "credit" } else { "strategy" }, vec![problem.to_owned()]);
        }
        if let Err(error) = strategy.and_then(|strategy| strategy.check(self.group_size)) {
            within("strategy", told(error.into()));
        }
        let credit = open_estimator(&self.credit);
        if let Some(predictor) = &self.predictor {
            let credit = credit.as_ref().ok();
            within("predictor", predictor.problems(credit.map(AsRef::as_ref), self.iterations));
        }
        match credit {
            Err(error) => within("credit", told(error.into())),
            Ok(credit) => {
                let needs = credit.needs().iter();
                let missing = needs.filter_map(|need| self.missing_signal(*need, recipe));
                let tell = |missing| format!("credit `{}` needs {missing}", credit.name());
                within("credit", missing.map(tell).collect());
                if self.objective.value_loss.is_some() && !credit.gives_returns() {
                    let name = credit.name();
                    let problem =
                        format!("value_loss learns returns, and credit `{name}` gives none");
                    within("objective", vec![problem]);
                }
            }
        }
        let shares = open_strategy(&self.strategy).is_ok_and(|strategy| strategy.shares_turns());
        if self.mask_shared_turns && !shares {
            problems_of_mask.push(
                "mask_shared_turns has no effect: the strategy has no turns in common".to_owned(),
            );
        }
        if let Some(Err(error)) = self.filter.as_ref().map(open_filter) {
            within("filter", told(error.into()));
        }
        within("replay", self.replay.as_ref().map(ReplayConfig::problems).unwrap_or_default());
        if let Some(ReplayConfig::Selective { .. }) = &self.replay
            && self
                .objective
                .build()
                .is_ok_and(|objective| objective.needs().reference || objective.needs().groups)
        {
            let problem = "`selective` has trajectories by themselves: the objective compares answers or asks for a reference model";
            within("replay", vec![problem.to_owned()]);
        }
        within(
            "rehearse",
            self.rehearse.as_ref().map(|it| it.problems(self.iterations)).unwrap_or_default(),
        );
        if self.rehearse.is_some()
            && self.objective.build().is_ok_and(|objective| objective.needs().groups)
        {
            let problem = "the objective compares answers to one question, and what is rehearsed is none of them";
            within("rehearse", vec![problem.to_owned()]);
        }
        if self.rehearse.is_some() {
            within("rehearse", rehearsed_beside_problems(&self.objective));
        }
        within(
            "imitate_hardest",
            self.imitate_hardest.as_ref().map(HardestConfig::problems).unwrap_or_default(),
        );
        if self.exchange_every == Some(0) {
            within("exchange_every", vec!["is 0, must be at least 1 or absent".to_owned()]);
        }
        within("horizon", self.horizon.as_ref().map(HorizonConfig::problems).unwrap_or_default());
        problems.extend(problems_of_mask);
        let positive = [
            ("tasks", self.tasks),
            ("group_size", self.group_size),
            ("max_turns", self.max_turns as usize),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        problems.extend(ReferenceHold::problem(self.reference, self.has_reference(), recipe));
        problems.extend(reference_problems(
            &self.reference_soup,
            self.reference_reset.as_ref(),
            self.has_reference(),
            recipe,
        ));
        problems
    }
}

/// What takes all samples of an update together, so that those that are rehearsed would have a part in it.
fn rehearsed_beside_problems(objective: &ObjectiveConfig) -> Vec<String> {
    let is_adaptive = objective.kl.as_ref().is_some_and(|kl| kl.adaptive.is_some());
    let correction = objective.correction.as_ref();
    let is_kept = correction.is_some_and(|it| it.denominator == Denominator::Kept);
    let beside = [
        ("resampling", objective.resampling.is_some()),
        ("kl.adaptive", is_adaptive),
        ("correction.denominator = \"kept\"", is_kept),
    ];
    let problem = |(name, _): (&str, bool)| {
        format!("what is rehearsed would count in the objective's `{name}`: leave out one of them")
    };
    beside.into_iter().filter(|(_, is_set)| *is_set).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_masked_as_shared_only_where_a_strategy_shares_some() {
        let is_refused = |kind: &str| {
            let text = format!(
                "[reinforce]\nmask_shared_turns = true\n[reinforce.strategy]\nkind = \"{kind}\""
            );
            let recipe = Recipe::parse("r", &text, &[]).unwrap();
            let problems = recipe.reinforce.problems(&recipe);
            problems.iter().any(|it| it.contains("mask_shared_turns has no effect"))
        };
        for (kind, refused) in
            [("independent", true), ("partial", true), ("pruned", true), ("branching", false)]
        {
            assert_eq!(is_refused(kind), refused, "{kind}");
        }
    }

    #[test]
    fn rl_plus_needs_demonstrations() {
        let is_refused = |kind: &str| {
            let text = format!(
                "[reinforce.objective]\nname = 'rl_plus'\n[reinforce.strategy]\nkind = '{kind}'"
            );
            let recipe = Recipe::parse("r", &text, &[]).unwrap();
            let problems = recipe.reinforce.problems(&recipe);
            problems.iter().any(|it| it.contains("`rl_plus` learns from demonstrations"))
        };
        assert!(is_refused("independent") && !is_refused("demonstrated"));
    }

    #[test]
    fn remax_and_the_greedy_episode_need_each_other() {
        let told = |credit: &str, strategy: &str| -> Vec<String> {
            let text = format!(
                "[reinforce.credit]\nkind = '{credit}'\n[reinforce.strategy]\nkind = '{strategy}'"
            );
            let recipe = Recipe::parse("r", &text, &[]).unwrap();
            recipe.reinforce.problems(&recipe)
        };
        assert_eq!(told("remax", "greedy_baseline"), [""; 0]);
        assert!(told("remax", "independent")[0].starts_with("credit: `remax` compares"));
        assert!(told("grpo", "greedy_baseline")[0].starts_with("strategy: `greedy_baseline`"));
    }

    #[test]
    fn signals_are_missed_only_where_nothing_gives_them() {
        let missed = |text: &str| -> Vec<Signal> {
            let recipe = Recipe::parse("r", text, &[]).unwrap();
            let config = &recipe.reinforce;
            let is_missed = |signal: &Signal| config.missing_signal(*signal, &recipe).is_some();
            Signal::ALL.into_iter().filter(is_missed).collect()
        };
        let predicted = [Signal::Progress, Signal::ActionValues, Signal::StateValues];
        let and_predicted = |others: &[Signal]| [others, &predicted].concat();
        let others = [Signal::Reference, Signal::Teacher, Signal::Values];
        assert_eq!(missed(""), and_predicted(&others));
        let kl = "[reinforce.objective]\noptions = { kl_weight = 0.1 }";
        assert_eq!(missed(kl), and_predicted(&others[1..]));
        let head = "[value_head]\n[reinforce.objective]\nvalue_loss = {}";
        assert_eq!(missed(head), and_predicted(&others[..2]));
        // All others have a stage that fills them.
        let has_stage = |signal: &Signal| *signal != Signal::Teacher && !predicted.contains(signal);
        for signal in Signal::ALL.into_iter().filter(has_stage) {
            assert!(spar_trainer::signal_stages().iter().any(|stage| stage.signal == signal));
        }
    }
}
