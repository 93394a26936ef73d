//! What can be typed behind `spar collect`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use spar::agent::Guide;
use spar::tasks::Tier;

use super::{EnvironmentArguments, SecretArguments, WrapperArguments};

/// Arguments of `spar collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// A suite (see `spar list suites`), or the path of one.
    #[arg(long)]
    pub(crate) suite: String,
    /// The split that is played; left out, the one that recipes train on.
    #[arg(long)]
    pub(crate) split: Option<String>,
    /// The folder of the dataset; where it holds a part of the same one, that is gone on with.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Tasks, the same for all tiers: a sample that equal seeds repeat.
    #[arg(long, default_value_t = 64)]
    pub(crate) tasks: usize,
    /// Episodes of each task in every tier.
    #[arg(long, default_value_t = 4)]
    pub(crate) episodes: usize,
    /// A tier to collect: random, medium, medium-replay, expert; may be given several times. Left out, all of them.
    #[arg(long, value_name = "NAME", value_parser = tier)]
    pub(crate) tier: Vec<Tier>,
    /// Who is the expert: one of the environment's own players.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) guide: GuideName,
    /// The share of the expert's moves that are drawn at random in the tier `medium`, above 0 and below 1; in `medium-replay` every
    /// episode has a share of its own, from this one up to all.
    #[arg(long, default_value_t = 0.4)]
    pub(crate) noise: f64,
    /// A checkpoint or a run whose policy plays the tier `medium`, in place of an expert that errs; then `medium-replay` takes `--replay`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) medium: Option<PathBuf>,
    /// A run, or a folder of trajectories, whose episodes are the tier `medium-replay`: what a learner did on its way.
    #[arg(long, value_name = "RUN")]
    pub(crate) replay: Option<PathBuf>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Turns an episode may have; left out, as the task says.
    #[arg(long)]
    pub(crate) max_turns: Option<u32>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wrapping: WrapperArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    #[command(flatten)]
    pub(crate) secrets: SecretArguments,
    /// Go on behind tasks of whose episodes none could be played, sixteen at a time, and count these as missing; left out, the command stops there, and tries them again when it is given anew.
    #[arg(long)]
    pub(crate) skip_failed: bool,
    /// Print what was collected as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One of an environment's own players.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum GuideName {
    /// Who sees the whole state.
    #[default]
    Oracle,
    /// Who knows only what the episode has shown.
    Expert,
}

impl GuideName {
    /// The player.
    pub(crate) fn guide(self) -> Guide {
        match self {
            Self::Oracle => Guide::Oracle,
            Self::Expert => Guide::Expert,
        }
    }
}

impl CollectArguments {
    /// The tiers that are wanted, in the order in which they are collected.
    pub(crate) fn tiers(&self) -> Vec<Tier> {
        // A policy has no way on which it became what it is, unless somebody kept it.
        let can = |tier: &Tier| {
            *tier != Tier::MediumReplay || self.medium.is_none() || self.replay.is_some()
        };
        let wanted = |tier: &Tier| match self.tier.is_empty() {
            true => can(tier),
            false => self.tier.contains(tier),
        };
        Tier::ALL.into_iter().filter(wanted).collect()
    }

    /// Why what was typed cannot be had.
    pub(crate) fn problem(&self) -> Option<String> {
        let Self { tasks, episodes, noise, .. } = *self;
        if tasks == 0 || episodes == 0 {
            return Some("collect 0 episodes: --tasks and --episodes are at least 1".to_owned());
        }
        if !(noise > 0.0 && noise < 1.0) {
            return Some(format!(
                "draw a share of {noise} of the moves at random (--noise): it must be above 0 and below 1"
            ));
        }
        let needs_replay = self.medium.is_some() && self.replay.is_none();
        (needs_replay && self.tier.contains(&Tier::MediumReplay)).then(|| {
            "collect `medium-replay` beside a policy of one's own: name the run that it learned in by --replay"
                .to_owned()
        })
    }

    /// What has to stay the same where a dataset is gone on with.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from([
            ("guide".to_owned(), self.guide.guide().name().to_owned()),
            ("noise".to_owned(), self.noise.to_string()),
        ]);
        let paths = [("medium", &self.medium), ("replay", &self.replay)];
        for (name, path) in paths {
            settings.extend(path.iter().map(|path| (name.to_owned(), path.display().to_string())));
        }
        settings.extend(self.max_turns.map(|turns| ("max_turns".to_owned(), turns.to_string())));
        settings
    }
}

/// A tier by its name.
fn tier(name: &str) -> Result<Tier, String> {
    Tier::named(name).ok_or_else(|| {
        let known: Vec<&str> = Tier::ALL.into_iter().map(Tier::name).collect();
        format!("known are {}", known.join(", "))
    })
}
