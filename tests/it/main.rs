//! Tests of the workspace as a whole: its crates, its command line, its runs.

mod architecture;
mod cli;
mod documentation;
mod endpoint;
mod household;
mod learning;
mod play;
mod sandbox;
mod serve;
mod support;
mod training;
mod trajectories;
