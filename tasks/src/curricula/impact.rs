//! LIMR: which tasks have taught what all did.

/// How a task's rewards went along with those of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImpactScore {
    /// The place of the task in what was given.
    pub task: usize,
    /// `1 - sum_k (r_k - mean_k)^2 / sum_k (1 - mean_k)^2`, at most 1.
    pub score: f64,
}

/// The learning impact of every task (LIMR, arXiv 2502.11886, equation 2): `histories[i][k]` is the mean reward of task `i` in its epoch `k`, 0 to 1, and `mean_k` that over all tasks. Best
/// first, equal ones in their order.
///
/// Epochs in which a task was not played (no number, or behind the end of its history) are left out of both sums; a task without any, or where the whole curve stands at 1, has
/// no score and is left out.
pub fn learning_impact(histories: &[Vec<f64>]) -> Vec<ImpactScore> {
    let epochs = histories.iter().map(Vec::len).max().unwrap_or(0);
    let mean = |epoch: usize| {
        let known = histories.iter().filter_map(|it| it.get(epoch).filter(|it| it.is_finite()));
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
        sum / count
    };
    let means: Vec<f64> = (0..epochs).map(mean).collect();
    let score = |history: &Vec<f64>| {
        let known = history.iter().zip(&means).filter(|(reward, _)| reward.is_finite());
        let sums = known.fold((0.0, 0.0), |(off, room), (reward, mean)| {
            (off + (reward - mean).powi(2), room + (1.0 - mean).powi(2))
        });
        1.0 - sums.0 / sums.1
    };
    let scores = histories.iter().map(score).enumerate();
    let mut scores: Vec<ImpactScore> = scores
        .filter(|(_, score)| score.is_finite())
        .map(|(task, score)| ImpactScore { task, score })
        .collect();
    scores.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.task.cmp(&b.task)));
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_go_along_with_the_curve_come_first() {
        let histories = vec![
            vec![0.0, 0.5, 1.0],
            vec![1.0, 1.0, 1.0],
            vec![0.0, 0.0, 0.0],
            vec![],
            vec![f64::NAN, 0.5, f64::NAN],
        ];
        let scores = learning_impact(&histories);
        let order: Vec<usize> = scores.iter().map(|it| it.task).collect();
        assert_eq!((order[0], scores.len()), (4, 4), "{scores:?}");
        assert_eq!(order[1], 0);
        // By hand: means 1/3, 1/2, 2/3.
        let room: f64 = [2.0 / 3.0, 0.5, 1.0 / 3.0].iter().map(|it: &f64| it * it).sum();
        let off = 2.0 / 9.0;
        assert!((scores[1].score - (1.0 - off / room)).abs() < 1e-12);
        assert!(scores.iter().all(|it| it.score <= 1.0));
        assert!(learning_impact(&[vec![1.0], vec![1.0]]).is_empty());
        assert!(learning_impact(&[]).is_empty());
    }
}
