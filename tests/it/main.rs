//! Tests of the workspace as a whole: its crates, its command line, its runs.

mod architecture;
mod cli;
mod documentation;
mod draw_rules;
mod endpoint;
#[cfg(feature = "docker")]
#[path = "../../sandbox/src/backends/docker/tests/engine_process.rs"]
mod engine_process;
mod finetune;
mod household;
mod judge;
mod learning;
mod methods;
mod offline;
mod play;
mod prefer;
mod process;
mod recipes;
mod remote;
mod sandbox;
mod seats;
mod serve;
mod spending;
mod stages;
mod support;
mod tasks;
mod terminal;
mod tools;
mod training;
mod trajectories;
mod tree_paths;
mod trees;
