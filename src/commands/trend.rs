//! Where a run is going: what its evaluations come to if it went on, and whether they follow what it is rewarded for.

use serde::Serialize;
use spar::agent::statistics::ScalingFit;
use spar::trainer::MetricRecord;

/// Evaluations behind the first reinforcement that a correlation needs at the least.
const FEWEST: usize = 3;

/// What the evaluations of a run tell of its course.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Trend {
    /// Evaluations behind the first iteration of reinforcement or preference learning.
    evaluations: usize,
    /// The curve through their success, by iterations since then; absent where there are too few, or they do not rise.
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<ScalingFit>,
    /// How far they are from it, as the root of the mean square.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
    /// Pearson's correlation of their success with the mean shaped return of training since the evaluation before.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<f64>,
}

impl Trend {
    /// The trend of a run's metrics; absent where they tell neither a curve nor a correlation.
    pub(super) fn of(metrics: &[MetricRecord]) -> Option<Self> {
        let is_training =
            |record: &&MetricRecord| record.kind == "reinforce" || record.kind == "prefer";
        let before =
            metrics.iter().filter(is_training).map(|it| it.iteration).min()?.saturating_sub(1);
        let split = |record: &MetricRecord| record.values.get("split").cloned();
        let held_out: Vec<&MetricRecord> =
            metrics.iter().filter(|record| record.kind == "evaluation").collect();
        let chosen = split(held_out.first()?);
        let evaluated: Vec<(u64, f64)> = held_out
            .into_iter()
            .filter(|record| split(record) == chosen)
            .filter_map(|record| Some((record.iteration, record.number("success_rate")?)))
            .collect();
        let start = evaluated.iter().rev().find(|it| it.0 <= before).map(|it| it.1);
        let later: Vec<(u64, f64)> = evaluated.into_iter().filter(|it| it.0 > before).collect();
        let points: Vec<(f64, f64)> =
            later.iter().map(|(iteration, rate)| ((iteration - before) as f64, *rate)).collect();
        let fit = start.and_then(|start| ScalingFit::of(&points, start, 1.0));

        let mut since = before;
        let mut pairs = Vec::new();
        for (iteration, rate) in &later {
            let earned: Vec<f64> = metrics
                .iter()
                .filter(is_training)
                .filter(|it| (since + 1..=*iteration).contains(&it.iteration))
                .filter_map(|it| it.number("shaped_return"))
                .collect();
            since = *iteration;
            if !earned.is_empty() {
                pairs.push((earned.iter().sum::<f64>() / earned.len() as f64, *rate));
            }
        }
        let error = fit.map(|fit| fit.error(&points));
        let trend = Self { evaluations: later.len(), fit, error, correlation: correlation(&pairs) };
        (trend.fit.is_some() || trend.correlation.is_some()).then_some(trend)
    }

    /// Lines for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\nover {} evaluations\n", self.evaluations);
        if let (Some(fit), Some(error)) = (&self.fit, self.error) {
            text += &format!(
                "  the curve through them ends at {:.0} %, with half of the way behind {:.0} iterations; they are {:.1} % off it\n",
                100.0 * fit.ceiling,
                fit.middle,
                100.0 * error,
            );
        }
        if let Some(correlation) = self.correlation {
            text += &format!(
                "  their correlation with what training was rewarded for is {correlation:+.2}\n"
            );
        }
        text
    }
}

/// Pearson's correlation; absent of too few pairs, and where one side does not change.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|it| it.0), mean(|it| it.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
    };
    let (of_x, of_y) = (sum(&|x, _| x * x), sum(&|_, y| y * y));
    let common = sum(&|x, y| x * y);
    let is_told = pairs.len() >= FEWEST && of_x > 0.0 && of_y > 0.0;
    Some(common / (of_x * of_y).sqrt()).filter(|it| is_told && it.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(earned: impl Fn(u64) -> f64, success: impl Fn(u64) -> f64) -> Vec<MetricRecord> {
        let held_out = |iteration: u64| {
            MetricRecord::new(iteration, "evaluation")
                .with([("success_rate", success(iteration))])
                .with([("split", "dev")])
        };
        let mut metrics = vec![
            MetricRecord::new(10, "imitate").with([("shaped_return", 9.0)]),
            held_out(10),
            MetricRecord::new(10, "evaluation")
                .with([("success_rate", 0.9)])
                .with([("split", "test")]),
        ];
        for iteration in 11..=60 {
            let record = MetricRecord::new(iteration, "reinforce");
            metrics.push(record.with([("shaped_return", earned(iteration))]));
            if iteration % 10 == 0 {
                metrics.push(held_out(iteration));
            }
        }
        metrics
    }

    #[test]
    fn a_run_is_told_where_it_is_going() {
        let curve = ScalingFit { start: 0.2, ceiling: 0.7, exponent: 1.5, middle: 20.0 };
        let success = |iteration: u64| match iteration {
            10 => 0.2,
            later => curve.at((later - 10) as f64),
        };
        let trend = Trend::of(&run(|iteration| iteration as f64, success)).unwrap();
        let fit = trend.fit.unwrap();
        assert!((fit.ceiling - 0.7).abs() < 0.01 && (fit.middle - 20.0).abs() < 0.5, "{fit:?}");
        assert_eq!(trend.evaluations, 5);
        assert!(trend.correlation.unwrap() > 0.9);
        assert!(trend.text().contains("ends at 70 %"), "{}", trend.text());
    }

    #[test]
    fn rewards_that_rise_while_success_falls_are_told() {
        let falling = |iteration: u64| 0.8 - iteration as f64 / 100.0;
        let trend = Trend::of(&run(|iteration| iteration as f64, falling)).unwrap();
        assert_eq!(trend.fit, None);
        assert!((trend.correlation.unwrap() + 1.0).abs() < 1e-9);
        // Neither side may stand still.
        assert_eq!(Trend::of(&run(|_| 1.0, falling)), None);
        assert_eq!(Trend::of(&[]), None);
    }
}
