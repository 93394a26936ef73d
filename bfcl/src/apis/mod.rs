//! The eight classes of the multi-turn half, one file each.
//!
//! Methods go through their work in the order of the program, on values of Python, so that arguments of wrong types
//! raise what they raise there, and leave behind what they leave there.

pub(crate) mod file_system;
mod flights;
pub(crate) mod math;
pub(crate) mod message;
pub(crate) mod method;
mod mutation;
pub(crate) mod ticket;
pub(crate) mod trading;
pub(crate) mod travel;
pub(crate) mod twitter;
pub(crate) mod vehicle;
