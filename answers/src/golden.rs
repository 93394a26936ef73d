//! Pairs with math-verify's verdicts, as `scripts/compare_math_verify.py --seed 11 --pairs 160 --write` keeps them.

use crate::{AnswerForm, FinalAnswer, final_answer, math_equal};

#[derive(serde::Deserialize)]
struct Pair {
    class: String,
    reference: String,
    answer: String,
    math_verify: bool,
    /// Why the two differ, where they do.
    differs: Option<String>,
}

#[test]
fn verdicts_are_those_of_math_verify_but_for_what_is_judged() {
    let lines = include_str!("../tests/fixtures/math_verify.jsonl");
    let mut wrong = Vec::new();
    let (mut pairs, mut differ) = (0, 0);
    for line in lines.lines() {
        let pair: Pair = serde_json::from_str(line).unwrap();
        let answer = match pair.class.as_str() {
            "response" => match final_answer(&pair.answer, AnswerForm::Any) {
                FinalAnswer::Found(answer) => answer,
                none => panic!("{}: {none:?}", pair.answer),
            },
            _ => pair.answer.clone(),
        };
        let found = math_equal(&pair.reference, &answer);
        pairs += 1;
        differ += usize::from(pair.differs.is_some());
        if found.is_equal() != (pair.math_verify ^ pair.differs.is_some()) {
            wrong.push(format!("{}: {} | {}: {found:?}", pair.class, pair.reference, pair.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((pairs, differ), (160, 2));
}
