//! Episodes in every environment, and in sandboxes, in one binary.

mod environments;
mod forks;
mod seats;
mod terminal;
