//! Pictures of runs.

use spar_trainer::{CurvePoint, CurveRun, CurveSeries, LearningCurve, MetricRecord};

/// Success over the iterations of a run: training episodes, and the dev split with its interval.
///
/// `None` before there is anything to draw.
pub fn run_curve(name: &str, metrics: &[MetricRecord]) -> Option<LearningCurve> {
    let of = |kind: &'static str| metrics.iter().filter(move |record| record.kind == kind);
    let dev: Vec<CurvePoint> = of("evaluation")
        .filter_map(|record| {
            Some(CurvePoint {
                x: record.iteration as f64,
                y: record.number("success_rate")?,
                interval: Some((record.number("low")?, record.number("high")?)),
            })
        })
        .collect();
    let is_played = |record: &&MetricRecord| ["reinforce", "prefer"].contains(&&*record.kind);
    let train: Vec<(f64, f64)> = metrics
        .iter()
        .filter(is_played)
        .filter_map(|record| Some((record.iteration as f64, record.number("success_rate")?)))
        .collect();
    if dev.is_empty() && train.is_empty() {
        return None;
    }
    let mut series = Vec::new();
    if !train.is_empty() {
        series.push(CurveSeries::from_pairs("training episodes, sampled", &train));
    }
    if !dev.is_empty() {
        series.push(CurveSeries { name: "held out".to_owned(), points: dev });
    }
    Some(LearningCurve {
        title: format!("{name}: success by iteration"),
        subtitle: "band: 95 % interval".to_owned(),
        x_label: "iteration".to_owned(),
        y_label: "success".to_owned(),
        is_percent: true,
        y_range: Some((0.0, 1.0)),
        series,
        ..LearningCurve::default()
    })
}

/// Success on the dev split by episodes of reinforcement learning played until then.
pub fn dev_points(metrics: &[MetricRecord]) -> CurveRun {
    let mut episodes = 0.0;
    let mut points = Vec::new();
    for record in metrics {
        match record.kind.as_str() {
            "reinforce" | "prefer" => episodes += record.number("episodes").unwrap_or(0.0),
            "evaluation" => {
                points.extend(record.number("success_rate").map(|success| (episodes, success)));
            }
            _ => {}
        }
    }
    points
}

/// Several methods over several seeds each: means, and bands from the lowest to the highest seed.
pub fn comparison_curve(methods: &[(String, Vec<CurveRun>)]) -> LearningCurve {
    LearningCurve {
        title: "success on held-out tasks".to_owned(),
        x_label: "episodes of reinforcement learning".to_owned(),
        y_label: "success".to_owned(),
        is_percent: true,
        y_range: Some((0.0, 1.0)),
        ..LearningCurve::comparison(methods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Vec<MetricRecord> {
        let success = |iteration, kind: &str, rate: f64| {
            MetricRecord::new(iteration, kind).with([
                ("success_rate", rate),
                ("low", rate - 0.1),
                ("high", rate + 0.1),
                ("episodes", 8.0),
            ])
        };
        vec![
            success(0, "evaluation", 0.2),
            success(1, "reinforce", 0.3),
            success(2, "reinforce", 0.4),
            success(2, "evaluation", 0.5),
        ]
    }

    #[test]
    fn a_point_counts_the_episodes_before_it() {
        assert_eq!(dev_points(&metrics()), [(0.0, 0.2), (16.0, 0.5)]);
    }

    #[test]
    fn a_run_is_drawn_as_soon_as_it_has_a_point() {
        assert!(run_curve("run", &[MetricRecord::new(1, "warm_start")]).is_none());
        let curve = run_curve("run", &metrics()).unwrap();
        assert_eq!(curve.series.len(), 2);
        assert!(curve.to_svg().contains("held out"));
        let comparison = comparison_curve(&[("a".to_owned(), vec![dev_points(&metrics())])]);
        assert_eq!(comparison.series[0].points.len(), 2);
    }
}
