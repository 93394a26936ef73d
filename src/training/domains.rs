//! The suites that a run plays, each with the sandboxes that its episodes take theirs from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;
use spar_agent::spend::Budget;
use spar_agent::{EpisodeConfig, Seating};
use spar_tasks::graders::GradingModel;
use spar_tasks::{Suite, SuiteManifest};

use super::learners;
use super::stages::{Plan, PlannedStage};
use crate::recipe::{DataConfig, OpenedData, Recipe};
use crate::sandboxes::{OpenSandboxes, check_scaffold};
use crate::seats::{SeatsConfig, TaskSeats};

/// Tasks of a split whose environments are looked at, roughly.
const LOOKED_AT: usize = 64;

/// The suites that a plan plays, opened and found to have the splits that are asked of them.
pub(super) struct Suites {
    opened: Vec<OpenedSuite>,
    /// Whether a grader asks the reference model.
    asks_reference: bool,
}

struct OpenedSuite {
    data: DataConfig,
    opened: OpenedData,
    /// A split that is played, and the most turns that its episodes may have.
    split: String,
    max_turns: Option<u32>,
}

impl Suites {
    /// Opens them, or tells all that is wrong with the data of any stage.
    pub(super) fn open(recipe: &Recipe, plan: &Plan) -> Result<Self, Vec<anyhow::Error>> {
        let mut opened: Vec<OpenedSuite> = Vec::new();
        let mut problems = Vec::new();
        let mut lost: Vec<&DataConfig> = Vec::new();
        let (mut asks_judge, mut asks_reference) = (false, false);
        let mut seats: Vec<TaskSeats> = Vec::new();
        for planned in plan.stages() {
            let data = &planned.place.data;
            let of_stage = planned.stage.data_problems().into_iter().map(anyhow::Error::msg);
            problems.extend(of_stage.map(|error| within(planned, error)));
            let splits = planned.stage.splits(data);
            let Some(split) = splits.first() else { continue };
            if planned.stage.trainer().is_some() {
                let leaks = data.trained_and_measured().into_iter().map(anyhow::Error::msg);
                problems.extend(leaks.map(|error| within(planned, error)));
            }
            if lost.iter().any(|other| other.is_same_suite(data)) {
                continue;
            }
            let turns = planned.stage.max_turns().max(recipe.evaluation.max_turns);
            let found = opened.iter_mut().find(|opened| opened.data.is_same_suite(data));
            let OpenedData { suite, for_evaluation, .. } = if let Some(found) = found {
                found.max_turns = found.max_turns.max(turns);
                &found.opened
            } else {
                let found = match data.open() {
                    Ok(found) => found,
                    Err(errors) => {
                        lost.push(data);
                        problems.extend(errors.into_iter().map(|it| within(planned, it.into())));
                        continue;
                    }
                };
                let (split, max_turns) = (split.clone(), turns);
                opened.push(OpenedSuite { data: data.clone(), opened: found, split, max_turns });
                &opened.last().expect("it was pushed").opened
            };
            let refused = for_evaluation.iter().filter(|_| planned.stage.trainer().is_some());
            problems.extend(refused.map(|name| {
                within(
                    planned,
                    anyhow::anyhow!(
                        "train on suite `{name}`: its suite.toml says `evaluation_only`; a stage of kind `evaluate` \
                         can play it"
                    ),
                )
            }));
            let strange: Vec<_> =
                splits.iter().filter_map(|split| suite.len(split).err()).collect();
            if strange.is_empty() {
                match recipe.judging().problems(suite.as_ref(), &splits) {
                    Ok(found) => {
                        problems.extend(
                            found.into_iter().map(|it| within(planned, anyhow::anyhow!(it))),
                        );
                    }
                    Err(error) => problems.push(within(planned, error.into())),
                }
                let asks =
                    |model| recipe.judging().asks(model, suite.as_ref(), &splits).unwrap_or(true);
                asks_judge |= recipe.judge.is_some() && asks(GradingModel::Judge);
                asks_reference |= recipe.start_from.is_some() && asks(GradingModel::Reference);
            }
            let of_suite = planned.stage.suite_problems(suite.manifest());
            problems.extend(of_suite.into_iter().map(|it| within(planned, anyhow::Error::msg(it))));
            if strange.is_empty() {
                match TaskSeats::of(suite.as_ref(), &splits) {
                    Ok(found) => {
                        let told = seat_problems(recipe, &found, planned.stage.branches());
                        let told = told.into_iter().map(anyhow::Error::msg);
                        problems.extend(told.map(|error| within(planned, error)));
                        seats.extend(found);
                    }
                    Err(error) => problems.push(within(planned, error)),
                }
            }
            problems.extend(strange.into_iter().map(|error| within(planned, error.into())));
            let named = &planned.place.learners;
            let played = splits.iter().flat_map(|split| environments(suite.as_ref(), split));
            let stray: BTreeSet<String> =
                played.filter(|name| !named.is_empty() && !learners::plays(named, name)).collect();
            problems.extend(stray.into_iter().map(|name| {
                let problem = format!("`learners` names none for environment `{name}`");
                within(planned, anyhow::Error::msg(problem))
            }));
        }
        // Names that no suite of any stage has; where one could not be looked at nobody knows.
        if problems.is_empty() {
            let all = recipe.seats.in_evaluation(&recipe.evaluation.seats);
            let named = SeatsConfig { train: recipe.seats.train.clone(), ..all };
            problems.extend(named.unknown_in(&seats).into_iter().map(anyhow::Error::msg));
        }
        if recipe.judge.is_some() && !asks_judge && problems.is_empty() {
            problems
                .push(anyhow::anyhow!("use [judge]: it has no effect, since no grader asks one"));
        }
        if problems.is_empty() { Ok(Self { opened, asks_reference }) } else { Err(problems) }
    }

    /// Content hashes by name; where several suites have one name, with their number among these (`quiz#2`).
    pub(super) fn hashes(&self) -> BTreeMap<String, String> {
        hashes_of(
            self.opened.iter().flat_map(|OpenedSuite { data, opened, .. }| {
                data.each_suite().zip(&opened.manifests)
            }),
        )
    }

    /// Opens their sandboxes, and who judges within a budget.
    pub(super) async fn with_sandboxes(
        self,
        recipe: &Recipe,
        budget: &Budget,
    ) -> anyhow::Result<Domains> {
        let judging = recipe.judging().open(self.asks_reference, budget).await?;
        let others = &recipe.evaluation.seats;
        let (seating, evaluated) = recipe.seats.open_both(others, budget).await?;
        let mut domains = Domains(Vec::new());
        for OpenedSuite { data, opened: OpenedData { suite, .. }, split, max_turns } in self.opened
        {
            // Sandboxes have to outlive the longest episodes.
            let episode = EpisodeConfig { max_turns, ..recipe.episode.clone() };
            let opened = async {
                check_scaffold(suite.as_ref(), &split, &episode).await?;
                OpenSandboxes::open(&recipe.sandbox, suite.as_ref(), &split, &episode).await
            };
            match opened.await {
                Ok(sandboxes) => {
                    let sandboxes = sandboxes.judged_by(&judging);
                    let (seating, evaluated) = (seating.clone(), evaluated.clone());
                    domains.0.push(Domain { data, suite, sandboxes, seating, evaluated });
                }
                Err(error) => {
                    domains.close().await;
                    return Err(error);
                }
            }
        }
        Ok(domains)
    }
}

/// All that is wrong with who takes these seats in a stage's training and evaluations.
fn seat_problems(recipe: &Recipe, tasks: &[TaskSeats], branches: bool) -> Vec<String> {
    let training = recipe.seats.clone().within(tasks);
    let evaluated = recipe.seats.in_evaluation(&recipe.evaluation.seats).within(tasks);
    let mut problems = training.problems_in(tasks);
    for problem in evaluated.problems_in(tasks) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    let way_out =
        "name who it is measured by, such as evaluation.seats.NAME = { player = \"expert\" }";
    let idle = evaluated.idle_scores(tasks);
    problems.extend(idle.into_iter().map(|problem| format!("seats: {problem}; {way_out}")));
    let shared = tasks.iter().filter(|task| branches && task.seats.len() > 1);
    problems.extend(shared.map(|task| {
        format!(
            "strategy: branches within episodes and demonstrations are not played where several act, as in `{}`; take `independent`",
            task.environment
        )
    }));
    problems
}

/// The content hashes of suites, each under its name and folder in the recipe.
fn hashes_of<'a>(
    suites: impl Iterator<Item = ((&'a str, Option<&'a PathBuf>), &'a SuiteManifest)>,
) -> BTreeMap<String, String> {
    let mut by_name: BTreeMap<&str, Vec<(_, &str)>> = BTreeMap::new();
    for (place, manifest) in suites {
        // Told apart by where they are: what they hold is what may have changed.
        let namesakes = by_name.entry(&manifest.name).or_default();
        if !namesakes.iter().any(|(other, _)| *other == place) {
            namesakes.push((place, &manifest.content_hash));
        }
    }
    let mut hashes = BTreeMap::new();
    for (name, namesakes) in by_name {
        let is_alone = namesakes.len() == 1;
        for (number, (_, hash)) in (1..).zip(namesakes) {
            let key = if is_alone { name.to_owned() } else { format!("{name}#{number}") };
            hashes.insert(key, hash.to_owned());
        }
    }
    hashes
}

/// The environments of some of a split's tasks, spread over all of it; none where the split cannot be read.
fn environments(suite: &dyn Suite, split: &str) -> Vec<String> {
    let len = suite.len(split).unwrap_or(0);
    let places = (0..len).step_by((len / LOOKED_AT).max(1));
    places.filter_map(|place| Some(suite.task(split, place).ok()?.environment)).collect()
}

/// What the files of all stages hold, told apart from what others hold, by what notes call them.
pub(super) fn file_notes(plan: &Plan) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut notes = BTreeMap::new();
    for path in plan.stages().iter().flat_map(|planned| planned.stage.files()) {
        let bytes = fs::read(&path).with_context(|| format!("read `{}`", path.display()))?;
        // FNV-1a: no protection, but no accident goes unseen.
        let step =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
        notes.insert(format!("file {}", path.display()), format!("{hash:016x}").into());
    }
    Ok(notes)
}

fn within(planned: &PlannedStage, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("stage `{}`", planned.place.name))
}

/// A suite with the sandboxes of its episodes.
pub(crate) struct Domain {
    data: DataConfig,
    pub(crate) suite: Box<dyn Suite>,
    pub(crate) sandboxes: OpenSandboxes,
    /// Who takes the seats where several act.
    pub(crate) seating: Seating,
    /// Who takes the seats in evaluations.
    pub(crate) evaluated: Seating,
}

/// The suites that a run plays.
pub(super) struct Domains(Vec<Domain>);

impl Domains {
    /// That of `data`; absent where no stage plays it.
    pub(super) fn find(&self, data: &DataConfig) -> Option<&Domain> {
        self.0.iter().find(|domain| domain.data.is_same_suite(data))
    }

    /// That of `data`, which a stage plays.
    pub(super) fn of(&self, data: &DataConfig) -> &Domain {
        self.find(data).expect("the suites of all stages that play were opened")
    }

    /// Closes all sandboxes and waits for it; how many could not be removed.
    pub(super) async fn close(self) -> u64 {
        let mut left = 0;
        for domain in self.0 {
            left += domain.sandboxes.close().await;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_hash_is_lost_where_suites_have_one_name() {
        let manifest = |name: &str, hash: &str| SuiteManifest {
            name: name.to_owned(),
            version: String::new(),
            content_hash: hash.to_owned(),
            splits: Vec::new(),
        };
        let folder = PathBuf::from("games");
        let hashes = |b: &str| {
            let suites = [
                (("sums", None), manifest("sums", "s")),
                (("a/quiz.jsonl", None), manifest("quiz", "a")),
                (("b/quiz.jsonl", None), manifest("quiz", b)),
                (("alfworld", None), manifest("alfworld", "g")),
                (("alfworld", Some(&folder)), manifest("alfworld", "h")),
                // In two parts, or of two stages.
                (("sums", None), manifest("sums", "s")),
            ];
            let told = hashes_of(suites.iter().map(|(place, manifest)| (*place, manifest)));
            let told: Vec<_> = told.iter().map(|(name, hash)| format!("{name} {hash}")).collect();
            told.join(", ")
        };
        assert_eq!(hashes("b"), "alfworld#1 g, alfworld#2 h, quiz#1 a, quiz#2 b, sums s");
        // What a file comes to hold changes nobody's name.
        assert_eq!(hashes("a"), "alfworld#1 g, alfworld#2 h, quiz#1 a, quiz#2 a, sums s");
    }
}
