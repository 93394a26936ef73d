//! Episodes in every environment, and in sandboxes, in one binary.

mod environments;
mod forks;
mod in_turn;
mod scaffolds;
mod seats;
mod terminal;
