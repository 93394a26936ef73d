//! Pictures of runs.

use spar_trainer::{CurvePoint, CurveSeries, LearningCurve, MetricRecord};

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
    let train: Vec<(f64, f64)> = of("reinforce")
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
        series.push(CurveSeries { name: "held out, greedy".to_owned(), points: dev });
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
