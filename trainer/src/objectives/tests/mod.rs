//! All objectives together: golden numbers, derivatives, and what they make of bad input.

mod bad_input;
mod finite_differences;
mod golden;
mod rows;
mod tabular_world;

use spar_core::Sample;

use crate::Measured;
use crate::objectives::{BatchWeight, LossAggregation, Objective, Supervised};
use crate::testing::{Case, assert_close, matrix, number, sample_loss};

/// Compares `supervised` with a case of imitation.
fn imitates_like_the_golden_numbers(case: &Case, mask: &[Vec<f64>], logprobs: &[Vec<f64>]) {
    let single = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let samples: Vec<Sample> = mask
        .iter()
        .map(|row| {
            let mut sample = Sample::default();
            row.iter().for_each(|weight| sample.push_observed(0, *weight as f32));
            sample
        })
        .collect();
    let batch = BatchWeight::of(&Supervised, &samples);
    let gradient = matrix(&case.outputs["grad_log_prob"]);
    let mut loss = 0.0;
    for (index, sample) in samples.iter().enumerate() {
        let logprobs = single(&logprobs[index]);
        let measured = Measured { logprobs: &logprobs, ..Measured::default() };
        let scale = LossAggregation::TokenMean.scale(Supervised.weight(sample), batch);
        let found = sample_loss(&Supervised, sample, measured, scale);
        loss += found.loss;
        for (found, wanted) in found.slopes.logprobs.iter().zip(&gradient[index]) {
            assert_close((*found).into(), *wanted, 1e-6);
        }
    }
    assert_close(loss, number(&case.outputs["loss"]), 1e-6);
}
