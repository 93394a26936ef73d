//! spar
