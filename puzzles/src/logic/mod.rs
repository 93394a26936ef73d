//! Puzzles of logic.

pub(crate) mod aiw;
pub(crate) mod circuit_logic;
pub(crate) mod propositional_logic;
pub(crate) mod self_reference;
pub(crate) mod syllogism;
