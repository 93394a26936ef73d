//! Steps of decoders on a device, which draws tokens itself where nothing but their scores decides.

use rand::RngExt;

use super::metrics::add;
use super::sequence::{NextToken, Sequence};
use super::{Engine, Ready, look_ahead};
use crate::Tokenizer;
use crate::cuda::{DeviceError, Drawing, Found, Wanted};

impl Engine {
    /// Reads, and draws for those who have read all.
    pub(super) fn step_on_device(&mut self, lens: &[usize]) -> Result<(), DeviceError> {
        // 1. What is wanted of each sequence that reads something.
        let reading = self.active.iter_mut().zip(lens).filter(|(_, len)| **len > 0);
        let wanted: Vec<Wanted> = reading
            .map(|(sequence, len)| {
                let has_read_all = *len == sequence.unread.len();
                if has_read_all { wanted(sequence, &self.tokenizer) } else { Wanted::Nothing }
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }

        // 2. Reading.
        let weights = self.weights.clone();
        let placement = weights.placement.as_ref().expect("the decoder is on a device");
        let found = placement.step(&weights, &mut self.segments(lens), &wanted)?;

        // 3. Draws.
        let mut buffers = std::mem::take(&mut self.buffers);
        for Ready { index, place, .. } in self.settle(lens) {
            match &found[place] {
                Found::Nothing => unreachable!("those who have read all want something"),
                Found::Scores(all) => self.draw_one(index, &[], Some(all), &mut buffers)?,
                Found::Drawn(drawn) => {
                    let sequence = &mut self.active[index];
                    let report = sequence.report;
                    let token = NextToken {
                        id: drawn.token,
                        logprob: drawn.logprob,
                        raw_logprob: report.raw.then_some(drawn.raw_logprob),
                        entropy: report.entropy.then_some(drawn.entropy),
                        top: Vec::new(),
                        allowed: &[],
                        is_forced: false,
                    };
                    sequence.push(token, self.version, &self.tokenizer);
                    add(&self.counters.generated_tokens, 1);
                    look_ahead(sequence, &self.tokenizer, self.version, &self.counters);
                }
            }
        }
        self.buffers = buffers;
        Ok(())
    }
}

/// What the next token of a sequence follows from: a draw takes one number from the generator, whoever
/// makes it.
fn wanted(sequence: &mut Sequence, tokenizer: &Tokenizer) -> Wanted {
    let options = &sequence.sampling;
    let is_plain = sequence.allowed.is_empty()
        && !options.shifts_scores()
        && !options.truncates()
        && options.bad_words.is_empty()
        && sequence.report.top == 0
        && sequence.barred(tokenizer).is_empty();
    if !is_plain {
        return Wanted::Scores;
    }
    let temperature = options.temperature;
    let uniform = if temperature == 0.0 { 0.0 } else { sequence.rng.random() };
    Wanted::Draw(Drawing { temperature, uniform, raw: sequence.report.raw })
}
