//! The programs of the Berkeley Function-Calling Leaderboard, and how its answers are checked.
//!
//! Rebuilt after the release of BFCL v4 (commit 6ea57973 of `ShishirPatil/gorilla`): the eight classes of its multi-turn
//! half with the state they keep, the helper that carries out calls, and the checkers of both halves. What calls return
//! is equal to the character, errors of CPython included. docs/bfcl.md tells how it is played.
//!
//! ```text
//! scenario ──load──▶ Instances ──execute(call)──▶ text         model calls, gold calls
//!                      ▲   │                                        │        │
//!                Process   └─ state, first_difference ──▶ check_multi_turn ◀─┘
//! ```
//!
//! ```
//! use spar_bfcl::{Class, Instances, Process};
//!
//! let mut process = Process::new(None);
//! let scenario = serde_json::json!({});
//! let mut car = Instances::load(&[Class::VehicleControlApi], &scenario, "m_0", &process, false).unwrap();
//! let text = car.execute("fillFuelTank(fuelAmount=10)", &mut process);
//! assert_eq!(text, r#"{"fuelLevel": 10.0}"#);
//! let text = car.execute("fillFuelTank(amount=10)", &mut process);
//! assert_eq!(
//!     text,
//!     "Error during execution: VehicleControlAPI.fillFuelTank() got an unexpected keyword argument 'amount'"
//! );
//! ```

mod apis;
mod call_text;
mod class;
mod conformance;
mod dates;
mod decode;
mod documents;
mod entry;
mod error;
mod instance;
mod instances;
mod long_context;
mod multi_turn;
mod numbers;
mod process;
mod prompts;
mod scenario;
mod single_turn;
mod state;
mod tool_docs;

pub use class::Class;
pub use conformance::{ConformanceReport, replay_traces};
pub use decode::{
    DecodedCall, calls_as_json, decode_raw, decode_text, executable, written_native_call,
};
pub use entry::{EntryMessage, LaterFunctions, MultiTurnEntry, SingleTurnEntry};
pub use error::BfclError;
pub use instances::Instances;
pub use long_context::LongContext;
pub use multi_turn::{AnsweredTurns, MultiTurnVerdict, World};
pub use process::Process;
pub use prompts::{MORE_FUNCTIONS, functions_in_json, results_in_words, system_prompt};
pub use scenario::{MAX_TURNS, generated_entry};
pub use single_turn::{Language, SingleTurnVerdict, check_native, check_single_turn};
pub use tool_docs::{NativeTool, in_language, native_tool};
