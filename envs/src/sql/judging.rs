//! The verdict on a query that was submitted.

use std::sync::Arc;

use serde_json::json;
use spar_core::{RewardPart, Verdict};
use spar_sql::{Judgement, PartialScores, QueryError, QueryLimits, judge, partial_scores};

use super::environment::{NAME, off_thread};
use super::problem::Problem;
use crate::EnvironmentError;

/// Judges the query that was submitted; none was where it is absent.
///
/// Right is what matches by the rule of the task, but for queries that read nothing of the database where the right one does.
pub(super) async fn verdict(
    problem: &Arc<Problem>,
    submitted: Option<&Arc<str>>,
) -> Result<Verdict, EnvironmentError> {
    let Some(sql) = submitted else {
        return Ok(Verdict { details: "no query was submitted".to_owned(), ..Verdict::default() });
    };
    // How long it takes is for the policy to say.
    let found = {
        let (problem, sql) = (Arc::clone(problem), Arc::clone(sql));
        off_thread(move || judged(&problem, &sql)).await
    };
    let (judgement, scores) = match found {
        Ok(found) => found,
        Err(error) => {
            let detail = format!("its right query does not run: {error}");
            return match error {
                // That may be for the machine to blame.
                QueryError::Time { .. }
                | QueryError::Steps { .. }
                | QueryError::TooLarge { .. } => {
                    let task = problem.task.clone();
                    Err(EnvironmentError::Parameters { task, environment: NAME, detail })
                }
                // As BIRD's script counts it; Spider's breaks off.
                _ => Ok(Verdict { details: detail, ..Verdict::default() }),
            };
        }
    };
    let success = scores.execution >= 1.0;
    let details = match &judgement.error {
        _ if success => "the query finds what the right one finds".to_owned(),
        Some(error) => format!("the query does not run: {error}"),
        None if judgement.is_match => "the query reads nothing of the database".to_owned(),
        None => format!("the query finds something else than `{}`", problem.gold),
    };
    let part = RewardPart { name: "success".to_owned(), value: 1.0 };
    let artifact = json!({
        "query": shortened(sql),
        "scores": scores,
        "soft_f1": judgement.soft_f1,
        "matches_by_rule": judgement.is_match,
    });
    Ok(Verdict {
        parts: if success { vec![part] } else { Vec::new() },
        success,
        details,
        artifacts: [(NAME.to_owned(), artifact)].into(),
        ..Verdict::default()
    })
}

fn judged(problem: &Problem, sql: &str) -> Result<(Judgement, PartialScores), QueryError> {
    let limits = QueryLimits::for_judging();
    let judgement = judge(problem.rule, &problem.databases, sql, &problem.gold, &limits)?;
    let mut scores = partial_scores(&problem.databases[0], sql, &problem.gold, &judgement);
    scores.format = if sql.trim().is_empty() { 0.0 } else { 1.0 };
    Ok((judgement, scores))
}

/// A query as it is kept with the verdict.
fn shortened(sql: &str) -> String {
    sql.chars().take(2_000).collect()
}
