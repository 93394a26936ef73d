//! Two answers, apart at the first null byte: formulas, final answers and choices.

#![no_main]

use spar_answers::{AnswerForm, choice, final_answer, math_equal};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (reference, answer) = text.split_once('\0').unwrap_or((text, text));
    let _ = math_equal(reference, answer);
    let _ = choice(answer, 5);
    for form in [AnswerForm::Any, AnswerForm::Boxed, AnswerForm::Hashes, AnswerForm::Stated] {
        let _ = final_answer(answer, form);
    }
});
