//! The household engine against the reference, and on ALFWorld's own games, in one binary.

mod alfworld_games;
mod reference_traces;
