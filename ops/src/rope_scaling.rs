//! How rotary frequencies are changed for contexts longer than those of the first training.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// How rotary frequencies are changed, with the names of a Hugging Face `rope_scaling`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    #[serde(rename = "default")]
    None,
    /// Every frequency is divided by the factor (position interpolation; Chen et al. 2023).
    Linear {
        /// Divisor; positive.
        factor: f32,
    },
    /// The rule of Llama 3.1: with `r = original_max_position_embeddings / wavelength`, frequencies
    /// of `r > high_freq_factor` stay, those of `r < low_freq_factor` are divided by the factor,
    /// and between the two `s = (r - low) / (high - low)` mixes: `(1 - s) f / factor + s f`.
    Llama3 {
        /// Divisor of the lowest frequencies; positive.
        factor: f32,
        /// Turns within the original context below which a frequency is divided.
        low_freq_factor: f32,
        /// Turns within the original context above which a frequency stays; more than the low one.
        high_freq_factor: f32,
        /// Tokens of the context before it was made longer.
        original_max_position_embeddings: usize,
    },
}

impl RopeScaling {
    /// The changed frequency, in radians per position.
    pub fn apply(&self, frequency: f64) -> f64 {
        match *self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / f64::from(factor),
            Self::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            } => {
                let (low, high) = (f64::from(low_freq_factor), f64::from(high_freq_factor));
                let turns = original_max_position_embeddings as f64 * frequency / TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / f64::from(factor))
            }
        }
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let (Self::Linear { factor } | Self::Llama3 { factor, .. }) = self else {
            return problems;
        };
        if !(factor.is_finite() && *factor > 0.0) {
            problems.push(format!("`rope_scaling`: factor {factor} must be positive"));
        }
        if let Self::Llama3 { low_freq_factor: low, high_freq_factor: high, .. } = self
            && !(low.is_finite() && high.is_finite() && low < high)
        {
            problems.push(format!(
                "`rope_scaling`: low_freq_factor {low} must be less than high_freq_factor {high}"
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA3: RopeScaling = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };

    /// `_compute_llama3_parameters` of transformers, line by line.
    fn transformers_llama3(frequency: f64) -> f64 {
        let (factor, low, high, old) = (8.0, 1.0, 4.0, 8192.0);
        let wavelength = TAU / frequency;
        let scaled = if wavelength > old / low { frequency / factor } else { frequency };
        let smooth = (old / wavelength - low) / (high - low);
        if wavelength >= old / high && wavelength <= old / low {
            (1.0 - smooth) * scaled / factor + smooth * scaled
        } else {
            scaled
        }
    }

    #[test]
    fn frequencies_follow_the_formulas_of_transformers() {
        for i in 0..64 {
            let frequency = 500_000.0_f64.powf(-2.0 * f64::from(i) / 128.0);
            assert_eq!(RopeScaling::None.apply(frequency), frequency);
            let linear = RopeScaling::Linear { factor: 4.0 };
            assert_eq!(linear.apply(frequency), frequency / 4.0);
            let wanted = transformers_llama3(frequency);
            assert!((LLAMA3.apply(frequency) / wanted - 1.0).abs() < 1e-12, "{i}");
        }
    }

    #[test]
    fn scaling_is_read_as_hugging_face_writes_it() {
        let text = r#"{ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192 }"#;
        assert_eq!(serde_json::from_str::<RopeScaling>(text).unwrap(), LLAMA3);
        let text = r#"{ "rope_type": "default" }"#;
        assert_eq!(serde_json::from_str::<RopeScaling>(text).unwrap(), RopeScaling::None);
        assert!(serde_json::from_str::<RopeScaling>(r#"{ "rope_type": "yarn" }"#).is_err());
        assert!(LLAMA3.problems().is_empty());
        assert_eq!(RopeScaling::Linear { factor: 0.0 }.problems().len(), 1);
    }
}
