//! What a run does, stage by stage.

use std::collections::{BTreeMap, BTreeSet};

use spar_core::SeatSpec;
use spar_envs::{environment_registry, seats_of};
use spar_policy::cuda::DeviceChoice;
use spar_trainer::TrainerConfig;

use super::{Stage, open_stage};
use crate::recipe::{DataConfig, POLICY, Recipe};

/// Names in the metrics that no stage can have.
const RESERVED: [&str; 5] = ["evaluation", "re_evaluation", "finished", "tokenizer", "parts"];

/// What a run does, stage by stage.
pub(crate) struct Plan {
    stages: Vec<PlannedStage>,
}

/// A stage in its place.
pub(crate) struct PlannedStage {
    /// Its kind's name.
    pub(crate) kind: String,
    pub(crate) place: Place,
    /// Earlier stages whose dev splits are played again behind it.
    pub(crate) re_evaluate: Vec<String>,
    pub(crate) stage: Box<dyn Stage>,
    /// Iterations of the run before it.
    pub(crate) first_iteration: u64,
}

/// Where a stage stands in its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Tells it apart from the others.
    pub name: String,
    /// Who is trained, or plays.
    pub learner: String,
    /// Learners by environment, where it trains several; `learner` is the first of them by name.
    pub learners: BTreeMap<String, String>,
    /// What it plays.
    pub data: DataConfig,
    /// Tasks of the same suite that earlier stages take, so that no task is met twice before all are.
    pub first_task: u64,
    /// Whether its learner is not trained before.
    pub is_first: bool,
}

impl Place {
    /// Whether this learner is trained, or plays.
    fn has_learner(&self, learner: &str) -> bool {
        self.learner == learner || self.learners.values().any(|other| other == learner)
    }
}

impl PlannedStage {
    /// Whether it needs the suite of its data.
    pub(crate) fn plays(&self) -> bool {
        !self.stage.splits(&self.place.data).is_empty()
    }

    fn trains(&self) -> bool {
        self.stage.trainer().is_some()
    }
}

impl Plan {
    /// The stages of a recipe, or all that is wrong with them.
    pub(crate) fn of(recipe: &Recipe) -> Result<Self, Vec<String>> {
        let mut plan = Self { stages: Vec::new() };
        let mut problems = Vec::new();
        let mut first_iteration = 0;
        let mut names: Vec<String> = Vec::new();
        for config in recipe.stage_configs() {
            let name = config.name.clone().unwrap_or_else(|| config.kind.clone());
            let mut within = |found: Vec<String>| {
                let label = |problem| format!("stages.{name}: {problem}");
                problems.extend(found.into_iter().map(label));
            };
            within(name_problems(&name, &names, config.name.is_some()));
            let is_earlier = |wanted: &&String| !names.contains(wanted);
            let strangers = config.re_evaluate.iter().filter(is_earlier);
            within(
                strangers
                    .map(|name| format!("re_evaluate names `{name}`, which is no stage before it"))
                    .collect(),
            );
            names.push(name.clone());
            let stage = match open_stage(&config) {
                Ok(stage) => stage,
                Err(found) => {
                    within(found);
                    continue;
                }
            };
            within(stage.problems(recipe));
            if stage.trainer().is_some() && stage.iterations() == 0 {
                within(vec!["iterations is 0: leave the stage out".to_owned()]);
            }
            let data = match config.data {
                Some(data) => {
                    within(data.problems());
                    // With splits that are sure to be named.
                    if stage.splits(&DataConfig::default()).is_empty() {
                        let problem =
                            "data has no effect beside files: nothing is played, leave it out";
                        within(vec![problem.to_owned()]);
                    }
                    data
                }
                None => recipe.data.clone(),
            };
            let is_same = |earlier: &&PlannedStage| earlier.place.data.is_same_suite(&data);
            let earlier = plan.stages.iter().filter(is_same);
            let first_task = earlier.map(|earlier| earlier.stage.num_tasks()).sum();
            let learners = config.learners;
            if learners.is_empty() {
                let idle = stage.needs_learners().into_iter();
                within(
                    idle.map(|name| format!("{name} has no effect without several `learners`"))
                        .collect(),
                );
            } else {
                within(learners_problems(recipe, config.learner.as_ref(), &learners));
                within(stage.learners_problems());
            }
            let lead = learners.values().min().or(config.learner.as_ref());
            let learner = recipe.learner_of(lead.map(String::as_str)).unwrap_or_else(|problem| {
                within(vec![problem]);
                String::new()
            });
            let mut before = plan.stages.iter().filter(|earlier| earlier.trains());
            let is_first = !before.any(|earlier| earlier.place.has_learner(&learner));
            let chooses = |earlier: &PlannedStage| {
                earlier.trains() && earlier.plays() && earlier.place.learner == learner
            };
            if stage.needs_best() && !plan.stages.iter().any(chooses) {
                let problem =
                    "checkpoint is `best`, and no stage before it plays a dev split to choose one";
                within(vec![problem.to_owned()]);
            }
            let place = Place { name, learner, learners, data, first_task, is_first };
            let iterations = stage.iterations();
            let (kind, re_evaluate) = (config.kind, config.re_evaluate);
            plan.stages.push(PlannedStage { kind, place, re_evaluate, stage, first_iteration });
            first_iteration += iterations;
        }
        for planned in &plan.stages {
            for name in &planned.re_evaluate {
                if plan.named(name).is_some_and(|earlier| !earlier.plays()) {
                    problems.push(format!(
                        "stages.{}: re_evaluate names `{name}`, which plays nothing",
                        planned.place.name
                    ));
                }
            }
        }
        if !recipe.stages.is_empty() && problems.is_empty() && plan.next_trained(0).is_none() {
            problems.push("stages: none of them trains, use `spar eval`".to_owned());
        }
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// The stages in their order.
    pub(crate) fn stages(&self) -> &[PlannedStage] {
        &self.stages
    }

    /// The stage of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&PlannedStage> {
        self.stages.iter().find(|planned| planned.place.name == name)
    }

    /// Where a stage stands, behind what those before it took of the same suite beyond the plan.
    pub(crate) fn place(&self, index: usize, surplus: &BTreeMap<String, u64>) -> Place {
        let place = &self.stages[index].place;
        let earlier = self.stages[..index].iter().map(|earlier| &earlier.place);
        let is_same = |earlier: &&Place| earlier.data.is_same_suite(&place.data);
        let taken = earlier.filter(is_same).filter_map(|earlier| surplus.get(&earlier.name));
        Place { first_task: place.first_task + taken.sum::<u64>(), ..place.clone() }
    }

    /// Iterations of all stages.
    pub(crate) fn num_iterations(&self) -> u64 {
        self.stages.iter().map(|planned| planned.stage.iterations()).sum()
    }

    /// The stage that a run is at behind so many iterations, and how many of them are that stage's: the first of which
    /// something may be left to do.
    pub(crate) fn position(&self, iteration: u64) -> (usize, u64) {
        let trains = |planned: &&PlannedStage| planned.trains();
        let is_over = |planned: &PlannedStage| {
            planned.first_iteration + planned.stage.iterations() <= iteration
        };
        // What stands before training that is over is over too.
        let last_over =
            self.stages.iter().rposition(|planned| trains(&planned) && is_over(planned));
        let index = last_over.map_or(0, |last| last + 1);
        let done = match self.stages.get(index) {
            Some(planned) if planned.trains() => iteration - planned.first_iteration,
            // Evaluations stand before the training that is under way.
            Some(_) => {
                match self.next_trained(index).filter(|next| next.first_iteration < iteration) {
                    Some(next) => {
                        let index = self.index_of(next);
                        return (index, iteration - next.first_iteration);
                    }
                    None => 0,
                }
            }
            None => 0,
        };
        (index, done)
    }

    /// The first stage from `index` on that trains.
    pub(crate) fn next_trained(&self, index: usize) -> Option<&PlannedStage> {
        self.stages.iter().skip(index).find(|planned| planned.trains())
    }

    /// How the trainer works while the run is at a stage: as the one wants that trains next, or that trained last.
    pub(crate) fn trainer_at(&self, index: usize) -> &TrainerConfig {
        let last = || self.stages.iter().rev().find(|planned| planned.trains());
        let planned = self.next_trained(index).or_else(last);
        let trainer = planned.and_then(|planned| planned.stage.trainer());
        trainer.expect("a recipe without a stage that trains is refused")
    }

    /// How the last stage that trains updates, for an estimate of what the run takes.
    pub(crate) fn last_trainer(&self) -> &TrainerConfig {
        self.trainer_at(self.stages.len())
    }

    /// The learner that trains while the run is at a stage: that of the stage that trains next, or that trained last.
    pub(crate) fn learner_at(&self, index: usize) -> &str {
        let last = || self.stages.iter().rev().find(|planned| planned.trains());
        let planned = self.next_trained(index).or_else(last);
        planned.map_or(POLICY, |planned| &planned.place.learner)
    }

    /// The learners that train while the run is at a stage, by environment; empty where that is
    /// [one](Self::learner_at).
    pub(crate) fn learners_at(&self, index: usize) -> BTreeMap<String, String> {
        let last = || self.stages.iter().rev().find(|planned| planned.trains());
        let planned = self.next_trained(index).or_else(last);
        planned.map(|planned| planned.place.learners.clone()).unwrap_or_default()
    }

    /// The stages on whose dev splits checkpoints are chosen while the run is at a stage, one per learner: the last one
    /// that trained it there, or is to train it first.
    pub(crate) fn chosen_by(&self, index: usize) -> Vec<&PlannedStage> {
        let is_scored = |planned: &&PlannedStage| planned.trains() && planned.plays();
        let mut chosen: Vec<&PlannedStage> = Vec::new();
        let before = self.stages.iter().take(index + 1).rev();
        for planned in before.chain(&self.stages).filter(is_scored) {
            if !chosen.iter().any(|other| other.place.learner == planned.place.learner) {
                chosen.push(planned);
            }
        }
        chosen
    }

    fn index_of(&self, wanted: &PlannedStage) -> usize {
        let found = self.stages.iter().position(|planned| std::ptr::eq(planned, wanted));
        found.expect("it is a stage of this plan")
    }
}

/// What is wrong with the learners that a stage names by environment.
fn learners_problems(
    recipe: &Recipe,
    learner: Option<&String>,
    learners: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    if learner.is_some() {
        problems.push("learner has no effect beside learners".to_owned());
    }
    let known: Vec<&str> = environment_registry().iter().map(|entry| entry.name).collect();
    for key in learners.keys() {
        let (environment, seat) = match key.split_once('/') {
            Some((environment, seat)) => (environment, Some(seat)),
            None => (key.as_str(), None),
        };
        if !known.contains(&environment) {
            let known = known.join("`, `");
            let problem =
                format!("learners names environment `{environment}`: known are `{known}`");
            problems.push(problem);
        } else if let (Some(seat), Some(seats)) = (seat, seats_of(environment))
            && !may_have_seat(&seats, seat)
        {
            let seats: Vec<String> = seats.iter().map(|seat| format!("`{}`", seat.name)).collect();
            let seats = seats.join(", ");
            problems
                .push(format!("learners names seat `{seat}` of `{environment}`: it has {seats}"));
        }
    }
    let distinct: BTreeSet<&String> = learners.values().collect();
    // The first of them is looked for where one is.
    let others = distinct.iter().skip(1);
    problems.extend(others.filter_map(|learner| recipe.learner_of(Some(learner)).err()));
    if distinct.len() == 1 {
        problems.push("learners names one for all environments: say `learner`".to_owned());
    }
    if recipe.device == DeviceChoice::Cuda {
        let problem = "learners of one stage play on the CPU, and the recipe's device is a GPU";
        problems.push(problem.to_owned());
    }
    problems
}

/// Whether an environment whose own suite has these seats may have one of this name: where there are several, tasks may have more.
fn may_have_seat(seats: &[SeatSpec], name: &str) -> bool {
    seats.len() > 1 || seats.iter().any(|seat| seat.name == name)
}

fn name_problems(name: &str, before: &[String], is_given: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        problems.push("a name is letters, digits, `_` and `-`".to_owned());
    }
    if RESERVED.contains(&name) {
        problems.push(format!("`{name}` is taken by the metrics, choose another name"));
    }
    if before.iter().any(|earlier| earlier == name) {
        problems.push(match is_given {
            true => "two stages have this name".to_owned(),
            false => format!("several stages are of kind `{name}`: give them a `name` each"),
        });
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let recipe = Recipe::parse("r", text, &[]).unwrap();
        recipe.validate().unwrap();
        Plan::of(&recipe).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn problems(text: &str) -> Vec<String> {
        match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => Vec::new(),
            Err(crate::recipe::RecipeError::Problems { problems }) => problems,
            Err(other) => panic!("{other}"),
        }
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.stages().iter().map(|planned| planned.place.name.as_str()).collect()
    }

    #[test]
    fn two_stages_are_a_list_too() {
        let two = plan("[warm_start]\niterations = 3\ntasks = 5\n[reinforce]\niterations = 4");
        assert_eq!(names(&two), ["warm_start", "test_before", "reinforce", "test_after"]);
        assert_eq!((two.num_iterations(), two.stages()[2].place.first_task), (7, 15));
        assert_eq!(names(&plan("[reinforce]\niterations = 0")), ["warm_start", "test_before"]);
        let rewards = plan("[warm_start]\niterations = 0");
        assert_eq!(names(&rewards), ["test_before", "reinforce", "test_after"]);
        assert!(rewards.stages()[1].place.is_first && !two.stages()[2].place.is_first);
    }

    #[test]
    fn a_run_stands_where_something_is_left_to_do() {
        let two = plan("[warm_start]\niterations = 3\n[reinforce]\niterations = 4");
        let places: Vec<_> = (0..=7).map(|iteration| two.position(iteration)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (2, 2), (2, 3), (3, 0)]);
        let rewards = plan("[warm_start]\niterations = 0\n[reinforce]\niterations = 2");
        let places: Vec<_> = (0..=2).map(|iteration| rewards.position(iteration)).collect();
        assert_eq!(places, [(0, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn everything_that_is_wrong_with_stages_is_told_at_once() {
        let told = problems(
            "[[stages]]\nkind = 'immitate'\n\
             [[stages]]\nkind = 'reinforce'\nbatch_tokens = 3\ncredit = { kind = 'gae' }\n\
             [[stages]]\nkind = 'reinforce'\ntasks = 0\nre_evaluate = ['later']\ncredit = { kind = 'gae' }\n\
             [[stages]]\nkind = 'evaluate'\nname = 'evaluation'\nattempts = 0\n\
             [evaluation]\nevery = 0",
        )
        .join("\n");
        for part in [
            "stages.immitate: find stage kind `immitate`: known are",
            "stages.reinforce: stage kind `reinforce`: there is no option `batch_tokens`",
            "several stages are of kind `reinforce`",
            "tasks is 0",
            "credit `gae` needs values, and no learner gives them",
            "re_evaluate names `later`",
            "`evaluation` is taken",
            "attempts is 0",
            "evaluation.every is 0",
        ] {
            assert!(told.contains(part), "{part} is not in\n{told}");
        }
        let best =
            "[[stages]]\nkind = 'evaluate'\ncheckpoint = 'best'\n[[stages]]\nkind = 'imitate'";
        assert!(problems(best)[0].contains("checkpoint is `best`, and no stage before it"));
        assert!(problems("[[stages]]\nkind = 'evaluate'")[0].contains("none of them trains"));
        let both = Recipe::parse("r", "[warm_start]\ntasks = 2\n[[stages]]\nkind = 'imitate'", &[]);
        assert!(both.unwrap_err().to_string().contains("[warm_start] has no effect beside"));
    }

    #[test]
    fn data_of_a_stage_that_plays_nothing_is_refused() {
        let files = problems(
            "[[stages]]\nkind = 'prefer'\npairs = { files = ['a'] }\ndata = { suite = 'sums' }\n\
             [[stages]]\nkind = 'imitate'\nchats = { files = ['a'] }\ndata = { suite = 'sums' }\n\
             [[stages]]\nkind = 'evaluate'\ndata = { suite = 'sums', test = ['test'] }",
        );
        assert_eq!(files.len(), 2, "{files:?}");
        assert!(files[0].contains("stages.prefer: data has no effect beside files"), "{files:?}");
    }

    #[test]
    fn learners_are_named_where_there_are_several() {
        let two = "start_from = 'm'\n[learners.a]\n[learners.b]\nlora = { rank = 2 }\n";
        let stages = "[[stages]]\nkind = 'reinforce'\nlearner = 'a'\n\
                      [[stages]]\nkind = 'reinforce'\nname = 'other'\nlearner = 'b'\n\
                      [[stages]]\nkind = 'evaluate'\nlearner = 'a'";
        let named = plan(&format!("{two}{stages}"));
        assert!(named.stages()[0].place.is_first && named.stages()[1].place.is_first);
        let learners: Vec<&str> = (0..3).map(|index| named.learner_at(index)).collect();
        assert_eq!(learners, ["a", "b", "b"]);
        let chosen: Vec<&str> =
            named.chosen_by(2).iter().map(|planned| planned.place.name.as_str()).collect();
        assert_eq!(chosen, ["other", "reinforce"]);
        let told = |text: &str| problems(text).join("\n");
        assert!(told(two).contains("there are several, so list [[stages]]"));
        let open = stages.replace("learner = 'b'", "");
        assert!(
            told(&format!("{two}{open}")).contains("learner is missing, and there are several")
        );
        assert!(told(stages).contains("the recipe has no [learners.a]"));
        let stray = stages.replace("'b'", "'c'");
        assert!(told(&format!("{two}{stray}")).contains("learner is `c`: known are `a`, `b`"));
        let both = format!("[lora]\n[learners.a]\n{stages}");
        let told = told(&both);
        assert!(
            told.contains("lora: has no effect") && told.contains("learners.a.lora: there is no")
        );
    }

    #[test]
    fn what_a_stage_took_beyond_the_plan_is_not_met_again() {
        let plan = plan(
            "[[stages]]\nname = 'a'\nkind = 'reinforce'\niterations = 2\ntasks = 3\n\
             [[stages]]\nname = 'b'\nkind = 'reinforce'\niterations = 1\ntasks = 4\n\
             data = { suite = 'frozen-lake' }\n\
             [[stages]]\nname = 'c'\nkind = 'reinforce'\niterations = 1\ntasks = 5\n",
        );
        let (none, surplus) =
            (BTreeMap::new(), BTreeMap::from([("a".to_owned(), 7), ("b".to_owned(), 100)]));
        let first = |surplus| [0, 1, 2].map(|index| plan.place(index, surplus).first_task);
        assert_eq!(first(&none), [0, 0, 6]);
        assert_eq!(first(&surplus), [0, 0, 13]);
    }

    #[test]
    fn stages_of_one_suite_share_out_its_tasks() {
        let plan = plan(
            "[data]\nsuite = 'frozen-lake'\ntest = ['test']\n\
             [[stages]]\nkind = 'imitate'\niterations = 2\ntasks = 3\n\
             [[stages]]\nkind = 'reinforce'\niterations = 5\ntasks = 4\ndata = { suite = 'household' }\n\
             [[stages]]\nkind = 'evaluate'\n\
             [[stages]]\nkind = 'reinforce'\nname = 'again'\niterations = 1\nre_evaluate = ['reinforce']",
        );
        let first: Vec<u64> =
            plan.stages().iter().map(|planned| planned.place.first_task).collect();
        assert_eq!(first, [0, 0, 6, 6]);
        assert_eq!(plan.position(7), (2, 0));
        assert_eq!(plan.chosen_by(2)[0].place.name, "reinforce");
        assert_eq!(plan.chosen_by(3)[0].place.name, "again");
    }

    #[test]
    fn stages_are_set_by_name_or_place_and_written_with_every_option() {
        let text = "[[stages]]\nkind = 'imitate'\n[[stages]]\nkind = 'reinforce'\nname = 'lake'";
        let set = ["stages.lake.iterations=7".to_owned(), "stages.0.tasks=3".to_owned()];
        let recipe = Recipe::parse("r", text, &set).unwrap();
        let written = recipe.to_toml();
        assert!(!written.contains("warm_start") && written.contains("group_size = 8"), "{written}");
        let again = Recipe::parse("r", &written, &[]).unwrap();
        assert_eq!(again.to_toml(), written);
        let plan = Plan::of(&again).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(plan.stages()[1].stage.iterations(), 7);
        let stray = Recipe::parse("r", text, &["stages.pond.tasks=3".to_owned()]).unwrap_err();
        assert!(stray.to_string().contains("none is `pond`"), "{stray}");
    }
}
