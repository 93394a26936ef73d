//! XRPO: another rollout goes where it tells most about a task.

/// What one more rollout is expected to take off the half-width of the interval around a task's mean return: `t_{n-1} s (1 / sqrt(n) - 1 / sqrt(n + 1))`, `t` being
/// Student's quantile of 97.5%, with `exploration sqrt(ln(N + 1) / n)` beside it, `N` being the rollouts of all tasks (XRPO, arXiv 2510.06672; reconstructed from its abstract and a
/// summary). Fewer than two returns know no deviation: infinitely much.
pub fn uncertainty_reduction(returns: &[f64], all: usize, exploration: f64) -> f64 {
    let finite: Vec<f64> = returns.iter().copied().filter(|it| it.is_finite()).collect();
    let n = finite.len() as f64;
    if finite.len() < 2 {
        return f64::INFINITY;
    }
    let mean = finite.iter().sum::<f64>() / n;
    let variance = finite.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let shrinks = 1.0 / n.sqrt() - 1.0 / (n + 1.0).sqrt();
    let bonus = exploration * ((all as f64 + 1.0).ln() / n).sqrt();
    student_quantile(finite.len() - 1) * variance.sqrt() * shrinks + bonus
}

/// The quantile of 97.5% of Student's distribution with so many degrees of freedom, at least 1: from a table, and beyond it by Cornish and Fisher's expansion, which is
/// right there to four digits.
fn student_quantile(degrees: usize) -> f64 {
    const TABLE: [f64; 10] =
        [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281];
    if let Some(known) = TABLE.get(degrees.max(1) - 1) {
        return *known;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    let first = (z.powi(3) + z) / (4.0 * n);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    let third =
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3));
    z + first + second + third
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollouts_go_where_returns_differ() {
        let of = |returns: &[f64]| uncertainty_reduction(returns, 16, 0.0);
        assert!(of(&[0.0, 1.0, 0.0, 1.0]) > of(&[0.0, 0.0, 0.0, 1.0]));
        assert_eq!(of(&[1.0; 4]), 0.0);
        // The more there are, the less one more tells.
        assert!(of(&[0.0, 1.0, 0.0, 1.0]) > of(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
        assert_eq!(of(&[1.0]), f64::INFINITY);
        assert!(uncertainty_reduction(&[1.0; 4], 16, 0.5) > 0.0);
        for (degrees, expected) in
            [(1, 12.7062), (10, 2.2281), (11, 2.2010), (30, 2.0423), (120, 1.9799)]
        {
            assert!((student_quantile(degrees) - expected).abs() < 2e-4, "{degrees}");
        }
    }
}
