//! Learning from episodes that others played.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use spar_agent::credit::{CreditConfig, open_estimator};
use spar_agent::filters::{FilterConfig, open_filter};
use spar_core::Signal;
use spar_core::registry::NamedOptions;
use spar_tasks::{ShaperConfig, open_shaper};
use spar_trainer::{ObjectiveConfig, TrainerConfig};

use super::{Recipe, ReferenceHold, ReinforceConfig};

/// The objective that a stage has where it names none.
const SUPERVISED: &str = "supervised";

/// Objectives that do not ask how likely those who played were to do what they did.
const OBJECTIVES: [&str; 5] = ["a_lol", "awr", "direct_advantage", SUPERVISED, "values_alone"];

/// Learning from episodes that others played, without a step in an environment.
///
/// Without `credit` everything that was done is imitated (behaviour cloning), or with `best` what was done in the best episodes. With
/// credit, the episodes of a task are a group, and the objective is `awr`, `a_lol`, `direct_advantage`, or `supervised`, which then imitates what has a
/// positive advantage; or `values_alone`, which fits a value head. Where a stage uses values and trains no value head, they are those of the reference model, if it has one, with
/// the head that an earlier stage has fitted to it: a critic that stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OfflineConfig {
    /// Iterations, each on tasks of its own until all were met. Default 40.
    pub iterations: u64,
    /// What is learned from.
    pub dataset: DatasetConfig,
    /// Tasks per iteration. Default 16.
    pub tasks: usize,
    /// The most episodes of a task in an iteration, drawn anew whenever it comes. Default absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_size: Option<usize>,
    /// The share of the episodes that are learned from, those with the highest returns; above 0, at most 1. Default 1.
    pub best: f64,
    /// What changes the rewards before credit sees them, in this order; none that follows training. Default empty: nothing.
    pub shapers: Vec<ShaperConfig>,
    /// How advantages are assigned to steps. Default absent: everything is imitated alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<CreditConfig>,
    /// Which episodes of a task are trained. Default absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterConfig>,
    /// What is minimised: `supervised`, `awr`, `a_lol`, `direct_advantage` or `values_alone`. Default `supervised`.
    #[serde(deserialize_with = "objective")]
    pub objective: ObjectiveConfig,
    /// How the reference model is held, where the objective asks for one. Default absent:
    /// `adapter_off` where an adapter is trained from the start of the run on, else `memory`.
    pub reference: Option<ReferenceHold>,
    /// How samples become updates.
    pub trainer: TrainerConfig,
}

/// A dataset, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DatasetConfig {
    /// Its folder, as `spar collect` writes it.
    pub folder: PathBuf,
    /// Which split of it: `random`, `medium`, `medium-replay`, `medium-expert` or `expert`. Default `medium-replay`.
    pub split: String,
}

impl Default for DatasetConfig {
    fn default() -> Self {
        Self { folder: PathBuf::new(), split: "medium-replay".to_owned() }
    }
}

impl Default for OfflineConfig {
    fn default() -> Self {
        Self {
            iterations: 40,
            dataset: DatasetConfig::default(),
            tasks: 16,
            group_size: None,
            best: 1.0,
            shapers: Vec::new(),
            credit: None,
            filter: None,
            objective: ObjectiveConfig { name: SUPERVISED.to_owned(), ..Default::default() },
            reference: None,
            trainer: TrainerConfig::default(),
        }
    }
}

impl NamedOptions for OfflineConfig {}

impl OfflineConfig {
    /// Whether its objective needs a reference model.
    pub fn has_reference(&self) -> bool {
        self.objective.build().is_ok_and(|objective| objective.needs().reference)
    }

    /// How the reference model is held, where there is one; `is_first` where nothing is trained before.
    pub fn reference_hold(&self, has_adapter: bool, is_first: bool) -> Option<ReferenceHold> {
        let hold = || ReferenceHold::or_default(self.reference, has_adapter, is_first);
        self.has_reference().then(hold)
    }

    /// Whether its credit reads the values of a value head.
    pub(crate) fn needs_values(&self) -> bool {
        let credit = self.credit.as_ref().and_then(|credit| open_estimator(credit).ok());
        credit.is_some_and(|credit| credit.needs().contains(&Signal::Values))
    }

    /// Whether everything is imitated alike.
    pub fn imitates_all(&self) -> bool {
        self.credit.is_none()
    }

    /// All that is wrong with these settings in a recipe.
    pub(crate) fn problems(&self, recipe: &Recipe) -> Vec<String> {
        let mut problems = recipe.trainer_problems(&self.trainer);
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        if self.dataset.folder.as_os_str().is_empty() {
            within(
                "dataset",
                vec!["`folder` is missing: name what `spar collect` wrote".to_owned()],
            );
        }
        within("objective", self.objective_problems());
        let told = |error: anyhow::Error| vec![format!("{error:#}")];
        for shaper in &self.shapers {
            match open_shaper(shaper) {
                Err(error) => within("shapers", told(error.into())),
                // What learns has something to keep.
                Ok(shaper) if !shaper.state().is_null() => {
                    let name = shaper.name();
                    let problem = format!(
                        "`{name}` follows what the policy plays by and by, and recorded episodes stay as they are"
                    );
                    within("shapers", vec![problem]);
                }
                Ok(_) => {}
            }
        }
        if let Some(Err(error)) = self.filter.as_ref().map(open_filter) {
            within("filter", told(error.into()));
        }
        match self.credit.as_ref().map(open_estimator) {
            None => within("credit", self.idle_without_credit()),
            Some(Err(error)) => within("credit", told(error.into())),
            Some(Ok(credit)) => {
                let as_online =
                    ReinforceConfig { objective: self.objective.clone(), ..Default::default() };
                let needs = credit.needs().iter();
                let missing = needs.filter_map(|need| as_online.missing_signal(*need, recipe));
                let tell = |missing| format!("`{}` needs {missing}", credit.name());
                within("credit", missing.map(tell).collect());
                if self.objective.value_loss.is_some() && !credit.gives_returns() {
                    let name = credit.name();
                    let problem =
                        format!("value_loss learns returns, and credit `{name}` gives none");
                    within("objective", vec![problem]);
                }
            }
        }
        let counts = [("tasks", Some(self.tasks)), ("group_size", self.group_size)];
        for (name, value) in counts {
            if value == Some(0) {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(self.best > 0.0 && self.best <= 1.0) {
            problems.push(format!("best is {}, must be above 0 and at most 1", self.best));
        }
        if self.objective.build().is_ok() {
            problems.extend(ReferenceHold::problem(self.reference, self.has_reference(), recipe));
        }
        problems
    }

    fn objective_problems(&self) -> Vec<String> {
        let mut problems = self.objective.problems();
        let name = self.objective.name.as_str();
        if self.objective.build().is_ok() && !OBJECTIVES.contains(&name) {
            let known = OBJECTIVES.map(|name| format!("`{name}`")).join(", ");
            problems.push(format!(
                "`{name}` is not for episodes of others: it weighs by how likely those who played were to do what they did, or \
                 unlearns what they would not do again; use {known}"
            ));
        }
        problems.extend(values_alone_problems(&self.objective));
        if self.objective.correction.is_some() {
            problems.push(
                "`correction` has no effect: nobody knows how likely those who played were to do what they did"
                    .to_owned(),
            );
        }
        problems
    }

    /// Settings that mean something by advantages alone.
    fn idle_without_credit(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.objective.name != SUPERVISED {
            let name = &self.objective.name;
            problems.push(format!("objective `{name}` weighs by advantages: name `credit`"));
        }
        if !self.shapers.is_empty() {
            problems.push("`shapers` have no effect: everything is imitated alike".to_owned());
        }
        if self.filter.is_some() {
            problems.push("`filter` has no effect: everything is imitated alike".to_owned());
        }
        problems
    }
}

/// What is wrong where an objective leaves the policy alone: it trains nothing at all, or something moves the policy beside it.
pub(super) fn values_alone_problems(objective: &ObjectiveConfig) -> Vec<String> {
    let mut problems = Vec::new();
    if objective.name != "values_alone" {
        return problems;
    }
    if objective.value_loss.is_none() {
        problems.push("`values_alone` trains nothing: set `value_loss`".to_owned());
    }
    let beside = [
        ("kl", objective.kl.is_some()),
        ("entropy_smoothing", objective.entropy_smoothing.is_some()),
    ];
    for (name, _) in beside.into_iter().filter(|(_, is_set)| *is_set) {
        problems.push(format!("`values_alone` leaves the policy alone: leave out `{name}`"));
    }
    problems
}

/// An objective whose name may be left out.
fn objective<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectiveConfig, D::Error> {
    let mut table = toml::Table::deserialize(deserializer)?;
    table.entry("name").or_insert_with(|| SUPERVISED.into());
    table.try_into().map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let told = |text: &str| {
            let text = format!("[[stages]]\nkind = 'offline'\n{text}");
            match Recipe::parse("r", &text, &[]).unwrap().validate() {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(told("dataset = { folder = 'd' }"), "");
        let awr = "dataset = { folder = 'd', split = 'medium' }\nobjective = { name = 'awr' }\n";
        assert_eq!(told(&format!("{awr}credit = {{ kind = 'grpo' }}")), "");
        assert!(told(awr).contains("objective `awr` weighs by advantages"), "{}", told(awr));
        let all = told(
            "tasks = 0\ngroup_size = 0\nbest = 0\nreference = 'adapter_off'\nshapers = [{ name = 'length_discount' }]\n\
             filter = { kind = 'all' }\nobjective = { name = 'clip', correction = { importance = { upper = 2.0 } } }",
        );
        for part in [
            "`folder` is missing",
            "`clip` is not for episodes of others",
            "`a_lol`, `awr`, `direct_advantage`, `supervised`, `values_alone`",
            "`correction` has no effect",
            "`shapers` have no effect",
            "`filter` has no effect",
            "tasks is 0",
            "group_size is 0",
            "best is 0",
            "reference has no effect",
        ] {
            assert!(all.contains(part), "{part} is not in\n{all}");
        }
        let following = told(
            "dataset = { folder = 'd' }\nobjective = { name = 'awr' }\ncredit = { kind = 'grpo' }\n\
             shapers = [{ name = 'length_discount' }, { name = 'normalized' }]",
        );
        assert!(following.contains("`normalized` follows what the policy plays"), "{following}");
        assert!(!following.contains("`length_discount`"), "{following}");
        let valued = told(
            "dataset = { folder = 'd' }\nobjective = { name = 'awr' }\ncredit = { kind = 'gae' }",
        );
        assert!(valued.contains("`gae` needs values"), "{valued}");
        // A critic can be fitted by one stage and used by the next.
        let fit = "dataset = { folder = 'd' }\ncredit = { kind = 'gae' }\n\
                   objective = { name = 'values_alone', value_loss = {} }\n";
        let used = "[[stages]]\nkind = 'offline'\nname = 'improve'\ndataset = { folder = 'd' }\n\
                    credit = { kind = 'gae', level = 'turn', lambda = 0 }\n\
                    objective = { name = 'direct_advantage' }\n";
        let head = "[value_head]\ntrunk_gradient = false";
        assert_eq!(told(&format!("{fit}{used}{head}")), "");
        let through = told(&format!("{fit}{used}[value_head]"));
        assert!(through.contains("offline: `values_alone` leaves the policy alone"), "{through}");
        let unfitted = told(&format!("dataset = {{ folder = 'd' }}\n{used}[value_head]"));
        assert!(unfitted.contains("`gae` needs values"), "{unfitted}");
        let nothing = told(
            "dataset = { folder = 'd' }\ncredit = { kind = 'grpo' }\nobjective = { name = 'values_alone' }",
        );
        assert!(nothing.contains("`values_alone` trains nothing"), "{nothing}");
        let held = told(&format!(
            "dataset = {{ folder = 'd' }}\ncredit = {{ kind = 'gae' }}\n\
             objective = {{ name = 'values_alone', value_loss = {{}}, kl = {{}}, entropy_smoothing = {{}} }}\n{head}"
        ));
        for part in ["leave out `kl`", "leave out `entropy_smoothing`"] {
            assert!(held.contains(part), "{held}");
        }
    }
}
