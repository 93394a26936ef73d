//! `spar play` where several act.

use std::collections::BTreeMap;
use std::io::{BufReader, stdin, stdout};
use std::process::ExitCode;

use anyhow::ensure;
use spar::agent::policies::HumanPolicy;
use spar::agent::spend::{Budget, SpendConfig};
use spar::agent::strategies::Independent;
use spar::agent::{
    CollectConfig, CollectRequest, EpisodeConfig, ScaffoldChoice, SharedPlayer, collect_groups,
};
use spar::core::registry::known_names;
use spar::core::{Seat, SeatSpec, Seed, Trajectory};
use spar::envs::{Environment, EnvironmentError};
use spar::seats::{SeatPlayerConfig, SeatsConfig};

use super::play::is_played_by_calls;
use super::play_judging::Judged;
use super::player::TOOLS;
use super::{cancel_on_ctrl_c, print, stopped};
use crate::cli::PlayArguments;

/// Moves of a game in which is looked who can make them.
const MAX_TRIED_MOVES: usize = 64;

/// A person takes one seat of a task, and others the rest.
pub(super) async fn play_seats(
    arguments: &PlayArguments,
    about: &str,
    judged: Judged,
    seats: &[SeatSpec],
) -> anyhow::Result<ExitCode> {
    let names = || seats.iter().map(|seat| &*seat.name);
    let own = arguments.seat.as_deref().unwrap_or(&seats[0].name);
    let known = known_names(own, names());
    ensure!(names().any(|name| name == own), "take seat `{own}`: there are {known}");
    let by_calls = is_played_by_calls(&judged.task, seats.len());
    let seed = Seed::from_u64(arguments.seed).derive("play", 0);
    let is_open = |seat: &SeatSpec| {
        let is_named = arguments.against.iter().any(|(name, _)| *name == *seat.name);
        seat.name != own && seat.player == SeatSpec::SELF && !is_named
    };
    let able = match seats.iter().any(is_open) {
        true => {
            let mut env = (judged.open)(&judged.task)?;
            if by_calls {
                env.use_tools();
            }
            let able = who_can_play(&mut *env, seed).await;
            env.close().await?;
            able?
        }
        false => Vec::new(),
    };
    let mut players = BTreeMap::new();
    for (number, seat) in seats.iter().enumerate() {
        let player = match &*seat.player {
            _ if seat.name == own => SeatSpec::SELF,
            SeatSpec::SELF => able.get(number).copied().unwrap_or("expert"),
            name => name,
        };
        players.insert(seat.name.clone().into_owned(), SeatPlayerConfig::typed(player));
    }
    let mut config = SeatsConfig { train: vec![own.to_owned()], players };
    config = config.with(&arguments.against);
    let taken =
        arguments.against.iter().find(|(seat, _)| seat == own || !names().any(|it| it == seat));
    if let Some((seat, _)) = taken {
        anyhow::bail!("have seat `{seat}` taken by another: it is yours, or not there ({known})");
    }
    let problems = config.problems();
    ensure!(problems.is_empty(), "have the seats taken:\n{}", problems.join("\n"));
    let seating = config.open(&Budget::new(SpendConfig::default())?).await?;
    print(&format!(
        "{}: {about}\n{}You take seat `{own}`. Type `?` for commands, `:help` for more.\n\n",
        judged.task.id,
        judged.told()
    ))?;
    let cancellation = cancel_on_ctrl_c();
    let human = HumanPolicy::new(BufReader::new(stdin()), stdout());
    let request = CollectRequest {
        tasks: &[judged.task],
        player: SharedPlayer::of(human),
        seating,
        strategy: &Independent,
        open: judged.open,
        seed,
        cancellation: &cancellation,
        on_episode: &|_| {},
    };
    // A person may think for as long as it takes.
    let day = 86_400;
    let mut episode = EpisodeConfig {
        turn_timeout_secs: day,
        command_time_secs: day,
        ..EpisodeConfig::default()
    };
    episode.context.list_admissible = true;
    if by_calls {
        episode.scaffold = ScaffoldChoice::named(TOOLS).expect("it is in the table");
    }
    let config = CollectConfig { group_size: 1, refills: 0, episode, ..CollectConfig::default() };
    let collection = collect_groups(&request, &config).await;
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    let played = collection.groups.first().and_then(|group| group.trajectories.first());
    match (played, collection.last_failure) {
        (Some(trajectory), _) => print(&result(trajectory))?,
        // The end of the input leaves the game.
        (None, _) if collection.counts.cancelled > 0 => print("left\n")?,
        (None, failure) => anyhow::bail!("play: {}", failure.unwrap_or_default()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Who can take each seat, in their order: the expert, or else the oracle, or else one who draws, as far as a game tells that
/// they play. A seat that does not come to move is the expert's.
async fn who_can_play(
    env: &mut dyn Environment,
    seed: Seed,
) -> Result<Vec<&'static str>, EnvironmentError> {
    env.reset(seed).await?;
    let mut found: Vec<Option<&'static str>> = vec![None; env.seats().len()];
    let mut last: Option<Seat> = None;
    for _ in 0..MAX_TRIED_MOVES {
        let Some(seat) = env.to_move().filter(|seat| seat.index() < found.len()) else { break };
        if last.replace(seat).is_some_and(|last| last != seat) {
            env.told(seat);
        }
        let (name, action) = match env.expert_action() {
            Some(action) => ("expert", Some(action)),
            None => match env.oracle_action() {
                Some(action) => ("oracle", Some(action)),
                None => ("random", None),
            },
        };
        found[seat.index()].get_or_insert(name);
        let Some(action) = action.filter(|_| found.iter().any(Option::is_none)) else { break };
        if env.step(&action).await?.terminated {
            break;
        }
    }
    Ok(found.into_iter().map(|name| name.unwrap_or("expert")).collect())
}

fn result(trajectory: &Trajectory) -> String {
    let last = trajectory.turns.last().map(|turn| &turn.step.observation);
    let last = last.unwrap_or(&trajectory.first_observation);
    let reward = trajectory.total_reward();
    format!("{}\n\nafter {} turns with reward {reward:.2}\n", last.text, trajectory.turns.len())
}
