//! Small learned functions that are not the policy: what turns contributed, what they are worth.
//!
//! ```text
//!  Segments, rewards ──fit──▶ Predictor ──predict──▶ Predictions (a column per Signal)
//!                               ▲ │
//!      open (PredictorConfig, ──┘ └── state, load: bytes of a safetensors file
//!            OpenFor)
//! ```
//!
//! Features go in, numbers come out. Gradients are candle's, and no type of candle crosses the crate's boundary. Products
//! of matrices may be shared out over threads there, sums of theirs are not: equal fits give equal bits on one machine,
//! on any number of threads.
//!
//! ```
//! use spar_core::{Seed, Signal};
//! use spar_predictors::{OpenFor, PredictorConfig, Segments, open_predictor};
//!
//! // Two sequences of segments with two features each; the second feature makes the outcome.
//! let mut segments = Segments::new(2)?;
//! segments.push(&[1.0, 0.0, 0.0, 1.0])?;
//! segments.push(&[1.0, 0.0, 1.0, 0.0])?;
//! let config = serde_json::from_str(r#"{ "kind": "progress", "epochs": 100, "learning_rate": 0.01 }"#)?;
//! let mut progress = open_predictor(&config, &OpenFor { width: 2, seed: Seed::from_u64(1) })?;
//! progress.fit(&segments, &[0.0, 1.0, 0.0, 0.0], Seed::from_u64(2))?;
//! let predictions = progress.predict(&segments)?;
//! let contributions = predictions.column(Signal::Progress).unwrap();
//! assert!(contributions[1] > contributions[0] + 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checks;
mod device;
mod error;
mod network;
mod predictor;
mod progress;
mod registry;
mod replay;
mod segments;
mod state;
mod state_zero;
#[cfg(test)]
mod testing;
mod turn_critic;

pub use device::PredictorDevice;
pub use error::{PredictorError, StateError};
pub use predictor::{Fit, Predictions, Predictor};
pub use progress::{Progress, ProgressConfig};
pub use registry::{
    OpenFor, OpenPredictor, PredictorConfig, PredictorKind, PredictorRow, SegmentLayout,
    open_predictor, predictor_registry,
};
pub use segments::{Segments, SegmentsError};
pub use state_zero::{StateZero, StateZeroConfig};
pub use turn_critic::{CriticTargets, TurnCritic, TurnCriticConfig};
