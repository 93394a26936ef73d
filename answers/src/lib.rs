//! Whether two answers say the same: formulas, choices, words.
//!
//! ```text
//!  text ──final_answer──▶ FinalAnswer ┐
//!                                     ├─ math_equal ──▶ Equivalence
//!               reference ────────────┘
//!  text ──choice──▶ Choice
//! ```
//!
//! Answers are read from LaTeX or as they are typed into trees, and compared by value: fractions without rounding, rational functions by
//! random points of a prime field, all else numerically with bounds of the error. Whatever cannot be told is not equal, with
//! the reason as a type; length, depth, sizes and work are bounded, so that no answer takes long.
//!
//! ```
//! use spar_answers::{AnswerForm, FinalAnswer, final_answer, math_equal};
//!
//! let FinalAnswer::Found(answer) = final_answer(r"Therefore \boxed{2\sqrt{2}}.", AnswerForm::Any) else { panic!() };
//! assert!(math_equal(r"\sqrt{8}", &answer).is_equal());
//! ```

mod choice;
mod effort;
mod equivalence;
mod exact;
mod expression;
mod final_answer;
#[cfg(test)]
mod golden;
mod identity;
mod latex;
mod numeric;
mod real_set;
mod scalar;
mod unclear;
mod words;

pub use choice::{Choice, choice};
pub use equivalence::{Equivalence, math_equal};
pub use final_answer::{AnswerForm, FinalAnswer, final_answer, last_answer};
pub use unclear::Unclear;
