//! The domain airline: flights, passengers and reservations.

mod booking;
pub(crate) mod data;
mod search;
pub(crate) mod tools;
