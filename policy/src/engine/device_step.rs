//! Steps of decoders on a device, which draws tokens itself where nothing but their logits decides.

use rand::RngExt;

use super::sequence::{NextToken, Sequence};
use super::{Buffers, Engine, Known, Ready, most};
use crate::Tokenizer;
use crate::cuda::{Candidates, DeviceError, Drawing, Found, Truncation, Wanted};
use crate::generation::Distribution;
use crate::sampling::{entropy, truncate_part};

/// No draw rule is applied.
const ALONE: (&[Vec<f32>], (usize, Option<usize>)) = (&[], (0, None));

impl Engine {
    /// Reads, and draws for those who have read all.
    pub(super) fn step_on_device(&mut self, lens: &[usize]) -> Result<(), DeviceError> {
        // 1. What is wanted of each sequence that reads something.
        let vocabulary = self.weights.config().vocab_size;
        let reading = self.active.iter_mut().zip(lens).filter(|(_, len)| **len > 0);
        let wanted: Vec<Wanted> = reading
            .map(|(sequence, len)| {
                let has_read_all = *len == sequence.unread.len();
                if has_read_all {
                    wanted(sequence, &self.tokenizer, vocabulary)
                } else {
                    Wanted::Nothing
                }
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }

        // 2. Reading.
        let weights = self.weights.clone();
        let placement = weights.backend.placement().expect("the decoder is on a device");
        let found = placement.step(&weights, &mut self.segments(lens), &wanted)?;

        // 3. Draws.
        let mut buffers = std::mem::take(&mut self.buffers);
        for Ready { index, place, .. } in self.settle(lens) {
            match &found[place] {
                Found::Nothing => unreachable!("those who have read all want something"),
                Found::Logits(all) => {
                    self.draw_one(index, &[], Known::All(all), ALONE, &mut buffers)?;
                }
                Found::LogitsOf { logits, raw_log_sum } => {
                    let known = Known::Allowed { logits, raw_log_sum: *raw_log_sum };
                    self.draw_one(index, &[], known, ALONE, &mut buffers)?;
                }
                Found::Candidates(candidates) => self.draw_of(index, candidates, &mut buffers),
                Found::Drawn(drawn) => {
                    let report = self.active[index].report;
                    let token = NextToken {
                        id: drawn.token,
                        logprob: drawn.logprob,
                        raw_logprob: report.raw.then_some(drawn.raw_logprob),
                        entropy: report.entropy.then_some(drawn.entropy),
                        top: Vec::new(),
                        allowed: &[],
                        is_forced: false,
                    };
                    self.go_on(index, token);
                }
            }
        }
        self.buffers = buffers;
        Ok(())
    }

    /// Draws one of the candidates.
    fn draw_of(&mut self, index: usize, candidates: &Candidates, b: &mut Buffers) {
        let sequence = &mut self.active[index];
        b.ids.clone_from(&candidates.ids);
        b.logits.clone_from(&candidates.logits);
        truncate_part(&sequence.sampling, &mut b.ids, &mut b.logits, candidates.log_sum);
        b.raw.clone_from(&b.logits);
        let place = sequence.choose(&mut b.logits);
        let report = sequence.report;
        let token = NextToken {
            id: b.ids[place],
            logprob: b.logits[place],
            raw_logprob: report.raw.then(|| b.raw[place] - candidates.raw_log_sum),
            entropy: report.entropy.then(|| entropy(&b.logits)),
            top: most(&b.ids, &b.logits, report.top),
            allowed: &b.ids,
            is_forced: false,
        };
        self.go_on(index, token);
    }
}

/// What the next token of a sequence follows from: a draw takes one number from the generator, whoever
/// makes it.
fn wanted(sequence: &mut Sequence, tokenizer: &Tokenizer, vocabulary: usize) -> Wanted {
    let (options, report) = (&sequence.sampling, sequence.report);
    let is_plain = sequence.allowed.is_empty()
        && !options.shifts_logits()
        && options.bad_words.is_empty()
        && sequence.barred(tokenizer).is_empty();
    let truncation = Truncation {
        temperature: options.temperature,
        top_k: options.top_k.filter(|k| *k < vocabulary),
        top_p: options.top_p,
        min_p: options.min_p,
        raw: report.raw,
    };
    let lists_raw = report.top > 0 && report.top_of == Distribution::Raw;
    if is_plain && options.truncates() && truncation.is_listed() && !lists_raw {
        return Wanted::Candidates(truncation);
    }
    if !sequence.allowed.is_empty() && sequence.allowed.len() * 2 < vocabulary && !lists_raw {
        return Wanted::LogitsOf { ids: sequence.allowed.clone(), raw: report.raw };
    }
    if !is_plain || options.truncates() || report.top > 0 {
        return Wanted::Logits;
    }
    let temperature = options.temperature;
    let uniform = if temperature == 0.0 { 0.0 } else { sequence.rng.random() };
    Wanted::Draw(Drawing { temperature, uniform, raw: report.raw })
}
