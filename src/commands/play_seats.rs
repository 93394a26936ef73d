//! `spar play` where several act.

use std::collections::BTreeMap;
use std::io::{BufReader, stdin, stdout};
use std::process::ExitCode;

use anyhow::ensure;
use spar::agent::policies::HumanPolicy;
use spar::agent::spend::{Budget, SpendConfig};
use spar::agent::strategies::Independent;
use spar::agent::{CollectConfig, CollectRequest, EpisodeConfig, SharedPlayer, collect_groups};
use spar::core::registry::known_names;
use spar::core::{SeatSpec, Seed, Trajectory};
use spar::sandboxes::OpenSandboxes;
use spar::seats::{SeatPlayerConfig, SeatsConfig};
use spar::tasks::Task;

use super::{cancel_on_ctrl_c, print, stopped};
use crate::cli::PlayArguments;

/// A person takes one seat of a task, and others the rest.
pub(super) async fn play_seats(
    arguments: &PlayArguments,
    about: &str,
    task: Task,
    seats: &[SeatSpec],
    sandboxes: &OpenSandboxes,
) -> anyhow::Result<ExitCode> {
    let names = || seats.iter().map(|seat| &*seat.name);
    let own = arguments.seat.as_deref().unwrap_or(&seats[0].name);
    let known = known_names(own, names());
    ensure!(names().any(|name| name == own), "take seat `{own}`: there are {known}");
    let mut players = BTreeMap::new();
    for seat in seats {
        let player = match &*seat.player {
            _ if seat.name == own => SeatSpec::SELF,
            SeatSpec::SELF => "expert",
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
    print(&format!("{}: {about}\nYou take seat `{own}`. Type `?` for commands.\n\n", task.id))?;
    let cancellation = cancel_on_ctrl_c();
    let human = HumanPolicy::new(BufReader::new(stdin()), stdout());
    let request = CollectRequest {
        tasks: &[task],
        player: SharedPlayer::of(human),
        seating,
        strategy: &Independent,
        open: sandboxes.ungraded_opener(),
        seed: Seed::from_u64(arguments.seed).derive("play", 0),
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

fn result(trajectory: &Trajectory) -> String {
    let last = trajectory.turns.last().map(|turn| &turn.step.observation);
    let last = last.unwrap_or(&trajectory.first_observation);
    let reward = trajectory.total_reward();
    format!("{}\n\nafter {} turns with reward {reward:.2}\n", last.text, trajectory.turns.len())
}
