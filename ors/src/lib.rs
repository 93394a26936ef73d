//! A client for servers of the Open Reward Standard: environments behind HTTP that give tasks, prompts, tools and rewards.
//!
//! ```text
//!  OrsAddress ─▶ OrsServer ─ environments, splits, num_tasks
//!                    └─ begin(environment, OrsTaskChoice) ─▶ OrsSession ─ prompt, tools, call ─▶ OrsAnswer
//!                                                                └─ pings, as long as it lives
//! ```
//!
//! It shares nothing with `spar-mcp` but HTTP: there a server offers tools, here it is the whole task and judges it. What a
//! server answers is taken for hostile: it is bounded in size and time, and whatever the standard does not have is an
//! [`OrsError`]. That a tool could not do what it was called for is none ([`OrsAnswer::Told`]).
//!
//! ```
//! use serde_json::json;
//! use spar_ors::{FakeServer, OrsAnswer, OrsLimits, OrsServer, OrsTaskChoice};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let running = FakeServer::start(None).await?;
//! let server = OrsServer::new(&running.address(), OrsLimits::default())?;
//! assert_eq!(server.num_tasks("sums", "train").await?, 8);
//! let task = OrsTaskChoice::Index { split: "train".to_owned(), index: 2 };
//! let session = server.begin("sums", &task).await?;
//! assert_eq!(session.prompt().text, "What is 2 + 1?");
//! let arguments = json!({ "answer": "3" }).as_object().unwrap().clone();
//! let answer = session.call("answer", &arguments, std::time::Duration::from_secs(5)).await?;
//! let OrsAnswer::Done(output) = answer else { panic!() };
//! assert_eq!((output.reward, output.finished), (Some(1.0), true));
//! session.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod answers;
mod error;
mod events;
mod fake_server;
mod limits;
mod server;
mod session;

pub use answers::{OrsAnswer, OrsContent, OrsOutput, OrsSplit, read_answer};
pub use error::{OrsError, OrsFault};
pub use events::{Event, EventReader};
pub use fake_server::{FakeFault, FakeServer};
pub use limits::OrsLimits;
pub use server::{OrsAddress, OrsServer, OrsTaskChoice};
pub use session::OrsSession;
