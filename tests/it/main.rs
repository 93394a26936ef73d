//! Tests of the workspace as a whole: its crates, its command line, its runs.

mod architecture;
mod cli;
mod documentation;
mod endpoint;
#[cfg(feature = "docker")]
mod engine;
mod finetune;
mod household;
mod learning;
mod play;
mod sandbox;
mod serve;
mod support;
mod terminal;
mod training;
mod trajectories;
