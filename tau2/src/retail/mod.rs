//! The domain retail: a shop, its products, customers and orders.

pub(crate) mod data;
mod orders;
pub(crate) mod tools;
