//! The domains of tau2-bench: their data, tools and rewards.
