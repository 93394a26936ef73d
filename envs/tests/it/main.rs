//! The household engine against the reference and on ALFWorld's own games, and programs that environments are played in, in one binary.

mod alfworld_games;
mod process_examples;
mod reference_traces;
