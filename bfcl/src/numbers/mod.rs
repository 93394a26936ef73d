//! Numbers of chosen precision, as the program's libraries give them.

pub(crate) mod binary_float;
pub(crate) mod decimal_root;
pub(crate) mod logarithm;
