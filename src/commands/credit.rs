//! `spar credit`: what an estimator says of trajectories that are stored.

use std::process::ExitCode;

use anyhow::{Context, anyhow, ensure};
use serde::Serialize;
use spar::agent::credit::{AdvantageEstimator, BatchView, CreditConfig, open_estimator};
use spar::core::registry::Options;
use spar::core::{Credit, Group, ParsedAction, PerTurnOrToken, Signals, Trajectory, Turn};
use spar::recipe::{Recipe, ReinforceConfig, setting_value};
use spar::tasks::{RewardShapers, ShaperConfig};

use super::readable::Readable;
use super::replay::store_of;
use super::train::{named_run, newest_run};
use super::{print, print_json};
use crate::cli::CreditArguments;

/// Characters of an action that are shown.
const SHOWN: usize = 60;

/// What an estimator says of one iteration.
#[derive(Debug, Serialize)]
struct Report {
    iteration: u64,
    estimator: CreditConfig,
    /// Whether the rewards are those that the run's recipe shapes them to.
    shaped: bool,
    groups: usize,
    trajectories: usize,
    steps: usize,
    /// Of the advantages of all steps.
    mean: f64,
    /// The same, as populations have it.
    std: f64,
    /// Groups in which an advantage is not 0.
    with_signal: usize,
    unreadable: usize,
    shown: Vec<GroupReport>,
}

#[derive(Debug, Serialize)]
struct GroupReport {
    group: usize,
    task: String,
    trajectories: Vec<TrajectoryReport>,
}

#[derive(Debug, Serialize)]
struct TrajectoryReport {
    episode: u64,
    seat: usize,
    success: bool,
    /// Of all steps, shaped.
    reward: f64,
    steps: Vec<StepReport>,
}

#[derive(Debug, Serialize)]
struct StepReport {
    action: String,
    reward: f64,
    /// The mean over its sampled tokens, where these have advantages of their own.
    advantage: f64,
    /// What it weighs in the loss; absent: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    /// By sampled token, where the estimator tells tokens apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<f64>>,
}

/// Assigns advantages to stored trajectories and tells them step by step; never writes.
pub(crate) fn credit(arguments: &CreditArguments) -> anyhow::Result<ExitCode> {
    let path = match &arguments.path {
        Some(path) => named_run(path, &arguments.runs),
        None => newest_run(&arguments.runs)?,
    };
    let (folder, recipe) = store_of(&path)?;
    let of_recipe = recipe.as_ref().and_then(in_recipe);
    let config = configured(arguments, of_recipe.as_ref().map(|(credit, _)| credit))?;
    let estimator = open_estimator(&config)?;
    refuse_signals(&*estimator)?;
    let shapers = of_recipe.map(|(_, shapers)| shapers).filter(|_| !arguments.recorded_rewards);
    let is_shaped = shapers.as_ref().is_some_and(|shapers| !shapers.is_empty());
    let shapers = RewardShapers::open(&shapers.unwrap_or_default())?;

    let (iteration, mut groups, unreadable) = read(&folder, arguments.iteration)?;
    // Runs of one seat are compared with each other, as in training.
    groups.iter_mut().for_each(|(_, group)| group.trajectories.sort_by_key(|it| it.seat));
    let (numbers, groups): (Vec<usize>, Vec<Group>) = groups.into_iter().unzip();
    let batch = BatchView::shaped(&groups, &shapers);
    let credit = estimator.estimate(&batch, &Signals::default())?;
    credit.check(&batch.num_tokens())?;

    let rewards: Vec<Vec<f64>> = batch
        .trajectories()
        .map(|trajectory| trajectory.steps.iter().map(|step| step.reward).collect())
        .collect();
    let told = tell(&groups, &numbers, &rewards, &credit);
    let all: Vec<f64> = told
        .iter()
        .flat_map(|group| &group.trajectories)
        .flat_map(|trajectory| trajectory.steps.iter().map(|step| step.advantage))
        .collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let variance = all.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / all.len().max(1) as f64;
    let has_signal = |group: &&GroupReport| {
        let mut trajectories = group.trajectories.iter();
        trajectories.any(|it| it.steps.iter().any(|step| step.advantage != 0.0))
    };
    let report = Report {
        iteration,
        estimator: config,
        shaped: is_shaped,
        groups: groups.len(),
        trajectories: rewards.len(),
        steps: all.len(),
        mean,
        std: variance.sqrt(),
        with_signal: told.iter().filter(has_signal).count(),
        unreadable,
        shown: match arguments.group {
            None => told.into_iter().take(arguments.limit).collect(),
            Some(wanted) => {
                let found: Vec<GroupReport> =
                    told.into_iter().filter(|group| group.group == wanted).collect();
                ensure!(
                    !found.is_empty(),
                    "find group {wanted}: there are {}, from 0",
                    groups.len()
                );
                found
            }
        },
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The credit and the shapers of a recipe's first stage of reinforcement learning.
fn in_recipe(recipe: &Recipe) -> Option<(CreditConfig, Vec<ShaperConfig>)> {
    let stage = recipe.stage_configs().into_iter().find(|stage| stage.kind == "reinforce")?;
    let config: ReinforceConfig = stage.options.try_into().ok()?;
    Some((config.credit, config.shapers))
}

/// The estimator that was asked for, else the recipe's, else the default, with options set over it.
fn configured(
    arguments: &CreditArguments,
    of_recipe: Option<&CreditConfig>,
) -> anyhow::Result<CreditConfig> {
    let mut config = match (&arguments.estimator, of_recipe) {
        (Some(kind), Some(own)) if own.kind == *kind => own.clone(),
        (Some(kind), _) => CreditConfig::new(kind),
        (None, Some(own)) => own.clone(),
        (None, None) => CreditConfig::default(),
    };
    config.options.extend(options(&arguments.set)?);
    Ok(config)
}

/// Options as they are typed, `NAME=VALUE` with values as TOML has them; what is no value there is text.
fn options(set: &[String]) -> anyhow::Result<Options> {
    let read = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            anyhow!("understand `{text}`: write NAME=VALUE, such as discount=0.9")
        })?;
        let value = serde_json::to_value(setting_value(value)).context("read a value")?;
        Ok((name.trim().to_owned(), value))
    };
    set.iter().map(read).collect()
}

/// Refuses an estimator that reads what only training measures.
fn refuse_signals(estimator: &dyn AdvantageEstimator) -> anyhow::Result<()> {
    let needs: Vec<String> = estimator.needs().iter().map(|signal| format!("`{signal}`")).collect();
    ensure!(
        needs.is_empty(),
        "estimate with `{}`: it needs {}, which training measures with the weights of the moment and nobody stores",
        estimator.name(),
        needs.join(", ")
    );
    Ok(())
}

type NumberedGroup = (usize, Group);

/// The groups of an iteration, of the last one where none is named; trajectories that could not be read are counted.
fn read(
    folder: &std::path::Path,
    wanted: Option<u64>,
) -> anyhow::Result<(u64, Vec<NumberedGroup>, usize)> {
    let mut groups: Vec<NumberedGroup> = Vec::new();
    let (mut iteration, mut known) = (wanted, Vec::new());
    let mut readable = Readable::open(folder)?;
    for stored in readable.by_ref() {
        let stored = stored?;
        if known.last() != Some(&stored.iteration) {
            known.push(stored.iteration);
        }
        if wanted.is_none() && iteration != Some(stored.iteration) {
            // A later one takes its place.
            iteration = Some(stored.iteration);
            groups.clear();
        }
        if iteration != Some(stored.iteration) {
            continue;
        }
        push(&mut groups, stored.group, stored.trajectory);
    }
    known.sort_unstable();
    known.dedup();
    let iteration = iteration.ok_or_else(|| anyhow!("find trajectories: there are none"))?;
    let first_and_last = || match (known.first(), known.last()) {
        (Some(first), Some(last)) => format!("there are {first} to {last}"),
        _ => "there are none".to_owned(),
    };
    ensure!(!groups.is_empty(), "find trajectories of iteration {iteration}: {}", first_and_last());
    Ok((iteration, groups, readable.num_unreadable()))
}

fn push(groups: &mut Vec<NumberedGroup>, number: usize, trajectory: Trajectory) {
    match groups.iter_mut().find(|(other, _)| *other == number) {
        Some((_, group)) => group.trajectories.push(trajectory),
        None => {
            let task = trajectory.task.clone();
            groups.push((number, Group { task, trajectories: vec![trajectory] }));
        }
    }
}

fn tell(
    groups: &[Group],
    numbers: &[usize],
    rewards: &[Vec<f64>],
    credit: &Credit,
) -> Vec<GroupReport> {
    let mut place = 0;
    let mut of_trajectory = |trajectory: &Trajectory| {
        let rewards = &rewards[place];
        let mut token = 0;
        let steps: Vec<StepReport> = trajectory
            .turns
            .iter()
            .zip(rewards)
            .enumerate()
            .map(|(turn, (step, reward))| {
                let tokens = token..token + step.sampled.ids.len();
                token = tokens.end;
                let of = |numbers: &PerTurnOrToken| match numbers {
                    PerTurnOrToken::Turns(turns) => (turns[place][turn], None),
                    PerTurnOrToken::Tokens(all) => {
                        let own = all[place][tokens.clone()].to_vec();
                        (own.iter().sum::<f64>() / own.len().max(1) as f64, Some(own))
                    }
                };
                let (advantage, tokens) = of(&credit.advantages);
                StepReport {
                    action: action(step),
                    reward: *reward,
                    advantage,
                    weight: credit.weights.as_ref().map(|weights| of(weights).0),
                    tokens,
                }
            })
            .collect();
        place += 1;
        TrajectoryReport {
            episode: trajectory.episode,
            seat: trajectory.seat.index(),
            success: trajectory.success,
            reward: rewards.iter().sum(),
            steps,
        }
    };
    let of_group = |(group, number): (&Group, &usize)| GroupReport {
        group: *number,
        task: group.task.clone(),
        trajectories: group.trajectories.iter().map(&mut of_trajectory).collect(),
    };
    groups.iter().zip(numbers).map(of_group).collect()
}

/// What was done, in a line.
fn action(turn: &Turn) -> String {
    let text = match &turn.parsed {
        ParsedAction::Action { action, .. } => action.key().into_owned(),
        ParsedAction::Invalid { .. } => turn.text.clone(),
    };
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(SHOWN).collect();
    if short.len() < line.len() { short + "…" } else { line }
}

fn text(report: &Report) -> String {
    let options: Vec<String> =
        report.estimator.options.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let options = match &options[..] {
        [] => String::new(),
        options => format!(" ({})", options.join(", ")),
    };
    let rewards = if report.shaped { "shaped as in training" } else { "as recorded" };
    let mut text = format!(
        "iteration {} · {}{options} · rewards {rewards}\n\
         {} groups, {} with a signal · {} trajectories · {} steps · advantages {:+.3} on the mean, {:.3} their deviation\n",
        report.iteration,
        report.estimator.kind,
        report.groups,
        report.with_signal,
        report.trajectories,
        report.steps,
        report.mean,
        report.std,
    );
    for group in &report.shown {
        text += &format!("\n━━ group {} · {}\n", group.group, group.task);
        for trajectory in &group.trajectories {
            let seat = match trajectory.seat {
                0 => String::new(),
                seat => format!(" · seat {seat}"),
            };
            let end = if trajectory.success { "solved" } else { "not solved" };
            text += &format!(
                "  episode {}{seat} · {end} · reward {:.2}\n",
                trajectory.episode, trajectory.reward
            );
            for (number, step) in (1..).zip(&trajectory.steps) {
                let weight = step.weight.filter(|weight| *weight != 1.0);
                let weight = weight.map_or(String::new(), |weight| format!("  weight {weight:.3}"));
                let reward = match step.reward {
                    0.0 => String::new(),
                    reward => format!("  [reward {reward:+.2}]"),
                };
                text += &format!(
                    "  {number:4}  {:+8.3}{weight}  {}{reward}\n",
                    step.advantage, step.action
                );
            }
        }
    }
    let left = report.groups - report.shown.len();
    if left > 0 {
        text += &format!("\n{left} more groups; --limit shows more, --group one of them\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_values_of_toml_or_text() {
        let set = ["discount=0.9", "normalization=mean_norm", "on = true"].map(str::to_owned);
        let read = options(&set).unwrap();
        assert_eq!(read["discount"], 0.9);
        assert_eq!(read["normalization"], "mean_norm");
        assert_eq!(read["on"], true);
        assert!(options(&["discount".to_owned()]).is_err());
    }
}
