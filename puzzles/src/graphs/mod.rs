//! Puzzles of graphs.

pub(crate) mod course_schedule;
pub(crate) mod family_relationships;
pub(crate) mod largest_island;
pub(crate) mod path_star;
pub(crate) mod quantum_lock;
pub(crate) mod shortest_path;
