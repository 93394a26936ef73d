//! Progress of a run in the terminal.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use spar::agent::{Evaluation, PlayedEpisode};
use spar::trainer::MetricRecord;
use spar::training::Observer;

/// Between lines of progress where there is no terminal.
const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// Progress bars with a line per evaluation; where there is no terminal, a line now and then.
pub(crate) struct Progress {
    bars: MultiProgress,
    iterations: ProgressBar,
    episodes: ProgressBar,
    is_terminal: bool,
    /// When a line was last written, where there is no terminal.
    told: Mutex<Instant>,
}

impl Progress {
    /// Bars on standard error.
    pub(crate) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bars = MultiProgress::with_draw_target(target);
        let bar = |template: &str| {
            let style = ProgressStyle::with_template(template)
                .expect("the template is fixed")
                .progress_chars("━╸─");
            bars.add(ProgressBar::new(1).with_style(style))
        };
        Self {
            iterations: bar("{prefix:>12} {bar:32} {pos}/{len} {elapsed_precise} eta {eta} {msg}"),
            episodes: bar("{prefix:>12} {bar:32} {pos}/{len} episodes {msg}"),
            bars,
            is_terminal,
            told: Mutex::new(Instant::now()),
        }
    }

    /// Takes the bars away.
    pub(crate) fn finish(&self) {
        self.iterations.finish_and_clear();
        self.episodes.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.is_terminal {
            // A line that cannot be shown is no reason to stop a run.
            let _ = self.bars.println(text);
        } else {
            eprintln!("{text}");
        }
    }
}

impl Observer for Progress {
    fn stage(&self, name: &str, about: &str, done: u64, total: u64) {
        *self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
        self.iterations.set_prefix(name.replace('_', " "));
        self.iterations.set_length(total);
        self.iterations.set_position(done);
        self.iterations.reset_eta();
        let at = if done > 0 { format!(", behind {done} of {total}") } else { String::new() };
        self.line(&format!("{}: {about}{at}", name.replace('_', " ")));
    }

    fn playing(&self, what: &str, episodes: usize) {
        self.episodes.set_prefix(what.to_owned());
        self.episodes.set_length(episodes as u64);
        self.episodes.set_position(0);
    }

    fn episode(&self, _: &PlayedEpisode<'_>) {
        self.episodes.inc(1);
    }

    fn iteration(&self, stage: &str, record: &MetricRecord) {
        let number = |name: &str| record.number(name).unwrap_or(f64::NAN);
        let is_idle = record.number("updates") == Some(0.0);
        let text = match &*record.kind {
            "reinforce" if is_idle => format!(
                "success {:.0} %{} · turns {:.1} · no update: no episode was better than others of \
                 its group",
                100.0 * number("success_rate"),
                refilled(number("refills")),
                number("turns"),
            ),
            "reinforce" => format!(
                "success {:.0} %{} · turns {:.1} · loss {:+.4} · drift {}",
                100.0 * number("success_rate"),
                refilled(number("refills")),
                number("turns"),
                number("loss"),
                // Absent where no token was drawn by the weights that were updated.
                record
                    .number("drift_current_max")
                    .map_or("-".to_owned(), |max| format!("{max:.1e}")),
            ),
            "prefer" if is_idle => "no update: there was nothing to compare".to_owned(),
            "prefer" => format!(
                "loss {:.4} · preferred {:.0} % · margin {:+.3}",
                number("loss"),
                100.0 * number("preference_accuracy"),
                number("reward_margin"),
            ),
            _ => format!("loss {:.4}", number("loss")),
        };
        self.iterations.inc(1);
        self.iterations.set_message(text.clone());
        if !self.is_terminal {
            let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if told.elapsed() > QUIET_INTERVAL {
                *told = Instant::now();
                eprintln!("{} {}: {text}", stage.replace('_', " "), record.iteration);
            }
        }
    }

    fn evaluation(&self, iteration: u64, evaluation: &Evaluation) {
        let score = &evaluation.overall;
        let missing = match evaluation.missing {
            0 => String::new(),
            missing => format!(" · {missing} missing"),
        };
        let Some(success_rate) = score.success_rate else { return };
        self.line(&format!(
            "  iteration {iteration:>4} · {:<14} success {:5.1} % ({:.1} to {:.1}){}{missing} · \
             {:.1} turns",
            evaluation.split,
            100.0 * success_rate,
            100.0 * score.interval.low,
            100.0 * score.interval.high,
            refilled(evaluation.counts.refills as f64),
            score.mean_turns,
        ));
    }

    fn note(&self, text: &str) {
        self.line(text);
    }
}

/// What is said beside a score of the tries that were played anew; nothing where there were none.
fn refilled(count: f64) -> String {
    if count > 0.0 { format!(" · {count} refills") } else { String::new() }
}
