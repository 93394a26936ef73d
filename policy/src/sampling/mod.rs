//! From logits to a draw: pure functions on one row of logits.
//!
//! The order is that of Hugging Face's `generate` and, up to the place of `min_p`, of vLLM:
//!
//! | stage | what happens to logit `s` of token `v` |
//! | --- | --- |
//! | logit bias | `s + bias[v]` |
//! | repetition penalty `r` | `s / r` if `s > 0`, else `s * r`, where prompt or answer has `v` |
//! | frequency penalty | `s - frequency * count(v)`, the count being that in the answer |
//! | presence penalty | `s - presence` where the answer has `v` |
//! | masks | constraint, bad words, `min_tokens`: `v` is left out |
//! | temperature `t` | `s / t` |
//! | top-k | left out below the k-th best logit; equal logits stay |
//! | top-p | left out where those that are better have `p` or more of the probability |
//! | min-p | left out below `min_p` times the best probability |
//!
//! vLLM applies `min_p` before top-k and top-p; the two orders differ only where both are set.
//!
//! # Which log-probability is which
//!
//! `logprob` of a token is that of the **distribution it was drawn from**: after all stages above,
//! renormalised over the tokens that were left. It is what an importance ratio has to be formed
//! with. Top-k, top-p, min-p and masks leave tokens out, so the ratio's other half has to be
//! renormalised over the *same* tokens: ask for [`Report::allowed`](crate::Report), which lists
//! them, and the trainer recomputes to the bit. Without that list a ratio that is formed over the
//! whole vocabulary is too small by the factor of the mass that was left out. Bias and penalties
//! shift logits in ways a training row does not carry: such answers are for use, not for training.
//!
//! `raw_logprob` is that of the model itself: temperature 1, the whole vocabulary, no other stage.
//!
//! At temperature 0 the best token is taken, and `logprob` is that at temperature 1.

mod bad_words;
mod choices;
mod draw;
mod options;
mod penalties;
mod process;
mod stop_strings;
mod truncation;

pub use bad_words::BadWords;
pub use options::SamplingOptions;
pub use penalties::{TokenCounts, apply_bias, apply_penalties};
pub use process::{Before, process};
pub use stop_strings::StopStrings;
pub use truncation::truncate;
pub(crate) use truncation::truncate_part;

pub(crate) use choices::ChoiceWalk;
pub(crate) use draw::{entropy, most_probable, pick};
