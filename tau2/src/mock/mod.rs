//! The domain mock: users, their tasks, and an inbox.

pub(crate) mod data;
pub(crate) mod tools;
pub(crate) mod user_tools;
