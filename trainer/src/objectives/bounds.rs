//! Checks of the options that objectives have in common.

/// How far a ratio may fall below 1, and rise above it.
pub(super) fn clip_problems(clip_low: f64, clip_high: f64) -> Vec<String> {
    let mut problems = Vec::new();
    if !(0.0..=1.0).contains(&clip_low) {
        problems.push(format!("`clip_low` {clip_low} is outside 0 to 1"));
    }
    problems.extend(not_negative("clip_high", clip_high));
    problems
}

/// A number that is 0 or more.
pub(super) fn not_negative(name: &str, value: f64) -> Option<String> {
    let is_wrong = !(value.is_finite() && value >= 0.0);
    is_wrong.then(|| format!("`{name}` {value} must not be negative"))
}

/// A number above 0.
pub(super) fn positive(name: &str, value: f64) -> Option<String> {
    let is_wrong = !(value.is_finite() && value > 0.0);
    is_wrong.then(|| format!("`{name}` {value} must be positive"))
}
