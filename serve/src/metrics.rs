//! Numbers for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spar_policy::GeneratorMetrics;

/// Upper bounds of the histograms' buckets, in seconds.
const BOUNDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// A histogram of times.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum_micros: AtomicU64,
}

impl Histogram {
    /// Counts a time.
    pub(crate) fn observe(&self, time: Duration) {
        let secs = time.as_secs_f64();
        for (bucket, _) in self.buckets.iter().zip(BOUNDS).filter(|(_, bound)| secs <= *bound) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    fn write(&self, name: &str, about: &str, out: &mut String) -> std::fmt::Result {
        writeln!(out, "# HELP {name} {about}\n# TYPE {name} histogram")?;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS) {
            let count = bucket.load(Ordering::Relaxed);
            writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}")?;
        }
        let count = self.count.load(Ordering::Relaxed);
        let sum = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
        )
    }
}

/// What the server counts besides what generation counts.
#[derive(Debug, Default)]
pub(crate) struct ServerMetrics {
    /// Answers by path and status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// From a request to its first token.
    pub(crate) first_token: Histogram,
    /// From a request to its last token.
    pub(crate) whole_answer: Histogram,
}

impl ServerMetrics {
    /// Counts an answer.
    pub(crate) fn count(&self, path: &'static str, status: u16) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((path, status)).or_default() += 1;
    }

    /// All of it in Prometheus' text format.
    pub(crate) fn render(&self, generator: &GeneratorMetrics, version: u32) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(generator, version, &mut out);
        out
    }

    fn write(
        &self,
        generator: &GeneratorMetrics,
        version: u32,
        out: &mut String,
    ) -> std::fmt::Result {
        let g = generator;
        let bytes = |tokens: u64| tokens * g.bytes_per_token;
        for (name, kind, about, value) in [
            ("spar_requests_waiting", "gauge", "Requests that wait.", g.waiting),
            ("spar_requests_running", "gauge", "Requests under way.", g.running),
            ("spar_requests_total", "counter", "Requests taken up.", g.requests),
            ("spar_requests_cancelled_total", "counter", "Requests given up.", g.cancelled),
            (
                "spar_requests_interrupted_total",
                "counter",
                "Times an answer was interrupted for want of memory.",
                g.interrupted,
            ),
            ("spar_prompt_tokens_total", "counter", "Tokens of prompts.", g.prompt_tokens),
            (
                "spar_prompt_tokens_cached_total",
                "counter",
                "Tokens of prompts that were remembered.",
                g.cached_tokens,
            ),
            ("spar_generated_tokens_total", "counter", "Tokens of answers.", g.generated_tokens),
            (
                "spar_forced_tokens_total",
                "counter",
                "Tokens of answers that needed no draw.",
                g.forced_tokens,
            ),
            ("spar_steps_total", "counter", "Steps of engines.", g.steps),
            ("spar_step_tokens_total", "counter", "Tokens read by steps.", g.step_tokens),
            (
                "spar_step_sequences_total",
                "counter",
                "Sequences read by steps; by steps, the mean batch.",
                g.step_sequences,
            ),
            (
                "spar_kv_memory_used_bytes",
                "gauge",
                "Keys and values of answers under way.",
                bytes(g.memory_used_tokens),
            ),
            (
                "spar_kv_memory_prefix_bytes",
                "gauge",
                "Keys and values of prefixes.",
                bytes(g.memory_prefix_tokens),
            ),
            ("spar_weights_version", "gauge", "Version of the weights.", version.into()),
            ("spar_weights_published_total", "counter", "Weights published.", g.publications),
        ] {
            writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}")?;
        }
        if let Some(limit) = g.memory_limit_tokens {
            let name = "spar_kv_memory_limit_bytes";
            writeln!(out, "# HELP {name} Room for keys and values.\n# TYPE {name} gauge")?;
            writeln!(out, "{name} {}", bytes(limit))?;
        }
        let name = "spar_answers_finished_total";
        writeln!(out, "# HELP {name} Answers by why they ended.\n# TYPE {name} counter")?;
        writeln!(out, "{name}{{reason=\"stop\"}} {}", g.finished_stop)?;
        writeln!(out, "{name}{{reason=\"length\"}} {}", g.finished_length)?;
        let name = "spar_http_answers_total";
        writeln!(out, "# HELP {name} Answers by path and status.\n# TYPE {name} counter")?;
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for ((path, status), count) in answers.iter() {
            writeln!(out, "{name}{{path=\"{path}\",status=\"{status}\"}} {count}")?;
        }
        drop(answers);
        let about = "Seconds from a request to its first token.";
        self.first_token.write("spar_time_to_first_token_seconds", about, out)?;
        let about = "Seconds from a request to its last token.";
        self.whole_answer.write("spar_answer_seconds", about, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_prometheus() {
        let metrics = ServerMetrics::default();
        metrics.count("/v1/models", 200);
        metrics.first_token.observe(Duration::from_millis(30));
        let text = metrics.render(&GeneratorMetrics::default(), 3);
        assert!(text.contains("\nspar_weights_version 3\n"));
        assert!(text.contains("spar_http_answers_total{path=\"/v1/models\",status=\"200\"} 1\n"));
        assert!(text.contains("spar_time_to_first_token_seconds_bucket{le=\"0.025\"} 0\n"));
        assert!(text.contains("spar_time_to_first_token_seconds_bucket{le=\"0.05\"} 1\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("spar_") && value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
