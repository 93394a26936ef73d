//! `spar conformance`.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use spar::envs::{bfcl, games, grids, household, tau2, web};

use super::{print, print_json};
use crate::cli::ConformanceArguments;

/// An environment of whose reference recordings can be replayed; a new one is a row of [`RECORDED`].
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Replays what is below the second folder with the data of the first, where it needs some.
    replay: fn(Option<&Path>, &Path) -> anyhow::Result<Report>,
}

/// The folder of data, for those that are compared with some.
fn needed(data: Option<&Path>) -> anyhow::Result<&Path> {
    data.context("compare: give the folder of its data with `--data`")
}

pub(crate) const RECORDED: &[Recorded] = &[
    Recorded {
        name: "household",
        about: "Household chores in text",
        replay: |data, traces| {
            let report = household::replay_traces(needed(data)?, traces)?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.records,
                mismatches: report.mismatches,
                described: report.described.iter().map(ToString::to_string).collect(),
            })
        },
    },
    Recorded {
        name: "bfcl",
        about: "Calls, states and verdicts of the Berkeley Function-Calling Leaderboard",
        replay: |data, traces| {
            let report = bfcl::replay_traces(needed(data)?, traces)?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.records,
                mismatches: report.mismatches,
                described: report.described,
            })
        },
    },
    Recorded {
        name: "reasoning-gym",
        about: "Questions, answers and scores of reasoning-gym's puzzles",
        replay: |_, traces| {
            let report = spar::envs::replay_puzzles(traces)?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.records,
                mismatches: report.mismatches,
                described: report.described,
            })
        },
    },
    Recorded {
        name: "tau2",
        about: "Calls, database hashes and rewards of tau2-bench",
        replay: |data, traces| {
            let compared = tau2::compare_folder(needed(data)?, traces)?;
            Ok(Report {
                files: compared.files,
                traces: compared.traces,
                records: compared.calls,
                mismatches: compared.mismatches,
                described: compared.told.iter().map(ToString::to_string).collect(),
            })
        },
    },
    Recorded {
        name: "minigrid",
        about: "Levels of MiniGrid and BabyAI: grids, missions, views, rewards and ends",
        replay: |_, traces| Ok(grids::replay_minigrid(traces)?.into()),
    },
    Recorded {
        name: "crafter",
        about: "Worlds of Crafter: ground, creatures, player and achievements by step",
        replay: |_, traces| Ok(grids::replay_crafter(traces)?.into()),
    },
    Recorded {
        name: "sokoban",
        about: "Rooms of gym-sokoban and of TextArena's Sokoban",
        replay: |_, traces| Ok(grids::replay_sokoban(traces)?.into()),
    },
    Recorded {
        name: "games",
        about: "Messages, rewards and reasons of TextArena's games",
        replay: |_, traces| {
            let report = games::replay_traces(traces)?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.steps,
                mismatches: report.mismatches,
                described: report.described,
            })
        },
    },
    Recorded {
        name: "shop",
        about: "Visits of WebShop: its goals, prices, pages, clicks and rewards",
        replay: |_, traces| {
            let report = spar::envs::replay_visits(traces)?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.records,
                mismatches: report.mismatches,
                described: report.described,
            })
        },
    },
    Recorded {
        name: "miniwob",
        about: "What BrowserGym shows of MiniWoB++'s tasks, with goals, rewards and ends, in a real browser",
        replay: |_, traces| {
            // Of its own: this is called on the thread of another one.
            let report = std::thread::scope(|scope| {
                let replay = || -> anyhow::Result<_> {
                    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
                    let runtime = runtime.context("start a runtime")?;
                    Ok(runtime.block_on(web::replay_traces(traces))?)
                };
                let replayed = scope.spawn(replay).join();
                replayed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
            Ok(Report {
                files: report.files,
                traces: report.traces,
                records: report.records,
                mismatches: report.mismatches,
                described: report.described,
            })
        },
    },
];

/// What a replay comes to.
#[derive(Debug)]
pub(crate) struct Report {
    files: usize,
    traces: usize,
    /// Steps, calls, states or verdicts in them.
    records: usize,
    mismatches: usize,
    /// The first few mismatches.
    described: Vec<String>,
}

impl From<grids::MiniGridReport> for Report {
    fn from(report: grids::MiniGridReport) -> Self {
        let grids::MiniGridReport { files, traces, records, mismatches, described } = report;
        Self { files, traces, records, mismatches, described }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, traces, records, mismatches, described } = self;
        write!(
            formatter,
            "{traces} traces with {records} records in {files} files: {mismatches} mismatches"
        )?;
        described.iter().try_for_each(|line| write!(formatter, "\n{line}"))
    }
}

/// Compares an environment with recordings of its reference.
pub(crate) fn conformance(arguments: &ConformanceArguments) -> anyhow::Result<ExitCode> {
    let report = (arguments.environment.replay)(arguments.data.as_deref(), &arguments.traces)?;
    if report.records == 0 {
        let shown = arguments.traces.display();
        anyhow::bail!("could not compare: there is nothing recorded in `{shown}`");
    }
    if arguments.json {
        print_json(&json!({
            "files": report.files,
            "traces": report.traces,
            "records": report.records,
            "mismatches": report.mismatches,
            "described": report.described,
        }))?;
    } else {
        print(&format!("{report}\n"))?;
    }
    Ok(if report.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
