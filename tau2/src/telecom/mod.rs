//! The domain telecom: customers, their lines and bills, and the phone of one of them.

mod billing;
pub(crate) mod data;
mod device;
pub(crate) mod device_data;
pub(crate) mod sync;
pub(crate) mod tools;
pub(crate) mod user_tools;

pub(crate) use billing::BillIds;
pub(crate) use device::Vpn;
