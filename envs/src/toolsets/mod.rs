//! What agents of published scaffolds work with at a machine: their tools, the texts that these answer with, and how they
//! submit.
//!
//! ```text
//!  scaffold ──names──▶ Toolset ──opening(Briefing)──▶ first message
//!                         │ begin
//!                         ▼
//!      action ──▶ ToolSession ──Workplace──▶ machine of the episode
//!                         └──▶ Acted: a result for each call, and maybe a submission
//! ```
//!
//! The environments `terminal` and `swe` take one in the place of their own shell
//! ([`Environment::use_toolset`](crate::Environment::use_toolset)). Texts that are those of the originals lie in files beside
//! the toolset, with their licence in `NOTICE`.

mod aci;
mod choice;
mod files;
mod mini;
pub mod openhands;
mod pty_shell;
mod r2e;
#[cfg(test)]
mod recorded;
mod registry;
mod templates;
mod terminus;
mod toolset;
mod workplace;

pub use choice::ToolsetChoice;
pub use mini::texts as mini_texts;
pub use r2e::Checkout as R2eCheckout;
pub use registry::{OpenToolset, ToolsetRow, toolset_registry};
pub use toolset::{Acted, Briefing, Submission, ToolSession, Toolset};
pub use workplace::{Halt, Workplace};
pub(crate) use workplace::{Hands, Worked};
