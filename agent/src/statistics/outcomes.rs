//! Several runs on the same tasks: how sure their success is, and the difference of two methods.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use super::{Interval, Tally, percentile_interval, wilson_interval};

/// Successes and attempts of one run, by task.
pub type TaskTallies = BTreeMap<String, Tally>;

/// What runs of one method, which differ in their seed, reached on each task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcomes {
    tasks: Vec<String>,
    /// `[run][task]`; no attempts where a run did not play a task.
    runs: Vec<Vec<Tally>>,
}

/// The difference of two methods on the tasks that both played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Success of the first less that of the second, -1 to 1.
    pub value: f64,
    /// Where that lies with 95 % confidence.
    pub interval: Interval,
    /// Tasks that both played.
    pub tasks: usize,
    /// Whether each run of one is set against the run with the same seed of the other.
    pub is_matched: bool,
}

impl Outcomes {
    /// The table of these runs over all tasks that any of them played.
    pub fn new(runs: &[TaskTallies]) -> Self {
        let tasks: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
        let of_run = |run: &TaskTallies| {
            tasks.iter().map(|task| run.get(*task).copied().unwrap_or_default()).collect()
        };
        let runs = runs.iter().map(of_run).collect();
        Self { tasks: tasks.into_iter().cloned().collect(), runs }
    }

    /// How many runs there are.
    pub fn num_runs(&self) -> usize {
        self.runs.len()
    }

    /// How many tasks any run played.
    pub fn num_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// All attempts together.
    pub fn total(&self) -> Tally {
        sum(self.runs.iter().flatten())
    }

    /// All attempts of each run.
    pub fn by_run(&self) -> Vec<Tally> {
        self.runs.iter().map(sum).collect()
    }

    /// All attempts at each task.
    pub fn by_task(&self) -> Vec<Tally> {
        let of_task = |task: usize| sum(self.runs.iter().map(|run| &run[task]));
        (0..self.tasks.len()).map(of_task).collect()
    }

    /// Successes per attempt, 0 to 1; `None` without attempts.
    pub fn rate(&self) -> Option<f64> {
        rate(self.total())
    }

    /// Where the success of the method lies with 95 % confidence: over other seeds and other tasks.
    ///
    /// A two-level bootstrap: in each of `draws` draws, runs are drawn with replacement and, apart
    /// from them, tasks, the same for all runs, since all play the same ones (Owen, "The pigeonhole
    /// bootstrap", Annals of Applied Statistics 1(2), 2007, who shows that it does not
    /// understate the variance). The ends are the 2.5 and 97.5 percentiles of the rate, moved out
    /// to Wilson's interval of all attempts where that is wider: a bootstrap of equal results is
    /// a point. With one run it is the bootstrap over tasks and tells nothing about other seeds. With
    /// few runs it is still too narrow, since these are all the runs it can draw.
    pub fn interval(&self, draws: usize, seed: Seed) -> Interval {
        let wilson = wilson_interval(self.total());
        let mut rng = seed.rng();
        let rates = (0..draws).filter_map(|_| {
            let runs = draw(self.runs.len(), &mut rng);
            let tasks = draw(self.tasks.len(), &mut rng);
            self.weighted(&runs, &tasks)
        });
        match percentile_interval(rates.collect()) {
            None => wilson,
            Some(found) => found.hull(wilson),
        }
    }

    /// The tables of two methods over the tasks that both played.
    pub fn on_shared_tasks(&self, other: &Self) -> (Self, Self) {
        let played = |outcomes: &Self| -> BTreeSet<String> {
            let by_task = outcomes.by_task();
            let tasks = outcomes.tasks.iter().zip(by_task);
            tasks.filter(|(_, tally)| tally.attempts > 0).map(|(task, _)| task.clone()).collect()
        };
        let shared: BTreeSet<String> = played(self).intersection(&played(other)).cloned().collect();
        let cut = |outcomes: &Self| {
            let kept: Vec<usize> = (0..outcomes.tasks.len())
                .filter(|task| shared.contains(&outcomes.tasks[*task]))
                .collect();
            let runs = &outcomes.runs;
            Self {
                tasks: kept.iter().map(|task| outcomes.tasks[*task].clone()).collect(),
                runs: runs.iter().map(|run| kept.iter().map(|task| run[*task]).collect()).collect(),
            }
        };
        (cut(self), cut(other))
    }

    /// The success of this method less that of `other`, on the tasks that both played; `None` where
    /// there are none.
    ///
    /// A paired bootstrap: both sides get the same tasks in every draw and, where `is_matched` (run
    /// `i` of one has the seed of run `i` of the other, and they are as many), the same runs.
    /// Percentiles as in [`Outcomes::interval`]. Where no pair differs, it is a point.
    pub fn difference(
        &self,
        other: &Self,
        is_matched: bool,
        draws: usize,
        seed: Seed,
    ) -> Option<Difference> {
        let is_matched = is_matched && self.runs.len() == other.runs.len();
        let (one, two) = self.on_shared_tasks(other);
        let value = one.rate()? - two.rate()?;
        let mut rng = seed.rng();
        let differences = (0..draws).filter_map(|_| {
            let tasks = draw(one.tasks.len(), &mut rng);
            let of_one = draw(one.runs.len(), &mut rng);
            let of_two = if is_matched { of_one.clone() } else { draw(two.runs.len(), &mut rng) };
            Some(one.weighted(&of_one, &tasks)? - two.weighted(&of_two, &tasks)?)
        });
        let interval = percentile_interval(differences.collect())?;
        Some(Difference { value, interval, tasks: one.tasks.len(), is_matched })
    }

    /// The rate where runs and tasks count so many times.
    fn weighted(&self, runs: &[u32], tasks: &[u32]) -> Option<f64> {
        let (mut successes, mut attempts) = (0_u64, 0_u64);
        for (run, of_run) in self.runs.iter().zip(runs).filter(|(_, weight)| **weight > 0) {
            let (mut of_tasks, mut all) = (0, 0);
            for (tally, weight) in run.iter().zip(tasks) {
                of_tasks += tally.successes as u64 * u64::from(*weight);
                all += tally.attempts as u64 * u64::from(*weight);
            }
            successes += u64::from(*of_run) * of_tasks;
            attempts += u64::from(*of_run) * all;
        }
        (attempts > 0).then(|| successes as f64 / attempts as f64)
    }
}

/// Successes per attempt; `None` without attempts.
pub fn rate(tally: Tally) -> Option<f64> {
    (tally.attempts > 0).then(|| tally.successes as f64 / tally.attempts as f64)
}

/// How often each of `count` things is drawn in `count` draws with replacement.
fn draw(count: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut times = vec![0; count];
    (0..count).for_each(|_| times[rng.random_range(0..count)] += 1);
    times
}

fn sum<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    let mut sum = Tally::default();
    for tally in tallies {
        sum.successes += tally.successes;
        sum.attempts += tally.attempts;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 2000;

    /// Runs on tasks `0..n`, an entry being whether it was solved.
    fn outcomes(runs: &[Vec<bool>]) -> Outcomes {
        let of_run = |run: &Vec<bool>| -> TaskTallies {
            let tally = |solved: &bool| Tally { successes: usize::from(*solved), attempts: 1 };
            run.iter()
                .enumerate()
                .map(|(task, solved)| (format!("{task:03}"), tally(solved)))
                .collect()
        };
        Outcomes::new(&runs.iter().map(of_run).collect::<Vec<_>>())
    }

    fn width(interval: Interval) -> f64 {
        interval.high - interval.low
    }

    fn seed() -> Seed {
        Seed::from_u64(5)
    }

    #[test]
    fn runs_that_differ_widen_the_interval_and_runs_alike_do_not_narrow_it() {
        // Half of the tasks solved in all, by every run alike or by half of the runs.
        let alike = outcomes(&vec![(0..100).map(|task| task % 2 == 0).collect(); 8]);
        let apart: Vec<Vec<bool>> = (0..8).map(|run| vec![run % 2 == 0; 100]).collect();
        let apart = outcomes(&apart);
        assert_eq!((alike.rate(), apart.rate()), (Some(0.5), Some(0.5)));
        let pooled = wilson_interval(alike.total());
        let (alike, apart) = (alike.interval(DRAWS, seed()), apart.interval(DRAWS, seed()));
        // Eight runs that do the same on each task know no more than one of them.
        let one = wilson_interval(Tally { successes: 50, attempts: 100 });
        assert!((width(alike) / width(one) - 1.0).abs() < 0.15, "{alike:?} {one:?}");
        assert!(width(alike) > 2.5 * width(pooled));
        // Runs of all or nothing are eight draws of a coin.
        assert!(width(apart) > 3.0 * width(alike), "{apart:?}");
        assert!(apart.low <= 0.25 && apart.high >= 0.75, "{apart:?}");
    }

    #[test]
    fn equal_results_are_not_certain() {
        let all = outcomes(&vec![vec![true; 20]; 3]);
        let interval = all.interval(DRAWS, seed());
        assert_eq!(interval.high, 1.0);
        assert_eq!(interval.low, wilson_interval(Tally { successes: 60, attempts: 60 }).low);
        let none = Outcomes::default();
        assert_eq!(none.interval(DRAWS, seed()), Interval { low: 0.0, high: 1.0 });
        assert_eq!(none.rate(), None);
    }

    #[test]
    fn pairs_are_surer_than_both_sides_alone() {
        // Tasks and seeds matter much, and one method solves five tasks of a hundred more.
        let solves = |better: bool| -> Vec<Vec<bool>> {
            let solved = |run: usize, task: usize| {
                task * 7 % 100 < 30 + 10 * run || (better && task * 7 % 100 >= 95)
            };
            (0..4).map(|run| (0..100).map(|task| solved(run, task)).collect()).collect()
        };
        let (one, two) = (outcomes(&solves(true)), outcomes(&solves(false)));
        let paired = one.difference(&two, true, DRAWS, seed()).unwrap();
        assert!((paired.value - 0.05).abs() < 1e-12);
        assert_eq!((paired.tasks, paired.is_matched), (100, true));
        assert!(paired.interval.low > 0.0 && paired.interval.high < 0.12, "{paired:?}");
        let apart = one.difference(&two, false, DRAWS, seed()).unwrap();
        assert_eq!(apart.value, paired.value);
        assert!(width(apart.interval) > 2.0 * width(paired.interval));
        // The other way round it is the same, less.
        let back = two.difference(&one, true, DRAWS, seed()).unwrap();
        assert!((back.interval.low + paired.interval.high).abs() < 1e-9);
        // Equal calls give equal numbers.
        assert_eq!(one.difference(&two, true, DRAWS, seed()), Some(paired));
        assert_eq!(one.interval(DRAWS, seed()), one.interval(DRAWS, seed()));
    }

    #[test]
    fn only_tasks_that_both_played_are_paired() {
        let play = |tasks: std::ops::Range<usize>, solved: bool| -> TaskTallies {
            let tally = Tally { successes: usize::from(solved), attempts: 1 };
            tasks.map(|task| (format!("{task}"), tally)).collect()
        };
        let one = Outcomes::new(&[play(0..4, true), play(2..6, false)]);
        assert_eq!((one.num_runs(), one.num_tasks()), (2, 6));
        assert_eq!(one.total(), Tally { successes: 4, attempts: 8 });
        let two = Outcomes::new(&[play(5..9, true)]);
        let difference = one.difference(&two, true, 100, seed()).unwrap();
        assert_eq!((difference.tasks, difference.is_matched), (1, false));
        assert_eq!(difference.value, -1.0);
        assert_eq!(one.difference(&Outcomes::new(&[play(7..9, true)]), true, 100, seed()), None);
    }
}
