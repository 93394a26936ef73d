//! What is spent, counted and limited.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spar_core::{PolicyError, Spend, Trajectory};
use tokio::sync::Notify;

use super::episode_tally::{EpisodeTally, local_spend_of};
use super::ledger::{BROKEN_OFF, Kept};
use super::{Ledger, LimitReached, Prices, SpendConfig, SpendError, SpendReport};
use crate::Cancellation;

/// How often the time that went by is kept.
const TICK: Duration = Duration::from_secs(1);
/// How long what was told to stop is waited for, before whoever asked is told why.
const GRACE: Duration = Duration::from_secs(2);

/// What something may take at the most.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bound {
    /// Requests.
    pub requests: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Their cost; 0 where there is no price.
    pub cost: f64,
}

impl Bound {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Bound {
    fn add_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost += other.cost;
    }
}

impl SubAssign for Bound {
    fn sub_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.input_tokens = self.input_tokens.saturating_sub(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_sub(other.output_tokens);
        self.cost = (self.cost - other.cost).max(0.0);
    }
}

/// What a run or an evaluation spends, and how much it may; clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: SpendConfig,
    /// Set when a limit is reached.
    stop: Cancellation,
    started: Instant,
    state: Mutex<State>,
    /// Told whenever a request is over, or a limit is reached.
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    accounts: BTreeMap<String, Spend>,
    /// What requests under way may take.
    reserved: Bound,
    /// What requests may have taken whose tokens are unknown.
    possible: Bound,
    /// Seconds before this process.
    wall_before: f64,
    next_number: u64,
    reached: Option<LimitReached>,
    ledger: Option<Ledger>,
    /// Why the ledger is not written any more.
    failure: Option<SpendError>,
}

impl Budget {
    /// A budget of which nothing is spent yet.
    ///
    /// # Errors
    ///
    /// [`SpendError::Problems`] when a limit is out of range.
    pub fn new(config: SpendConfig) -> Result<Self, SpendError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(SpendError::Problems { problems });
        }
        let state = Mutex::new(State::default());
        let (started, settled, stop) = (Instant::now(), Notify::new(), Cancellation::new());
        Ok(Self(Arc::new(Shared { config, stop, started, state, settled })))
    }

    /// One that goes on in the ledger at `path`: what that has is spent already. Limits are those of `config`, then those
    /// that were given when it went on before, then those of `given`, which it is told from then on.
    ///
    /// # Errors
    ///
    /// [`SpendError`] when a limit is out of range, or the ledger cannot be used.
    pub fn kept_in(
        config: SpendConfig,
        given: &SpendConfig,
        path: impl Into<PathBuf>,
    ) -> Result<Self, SpendError> {
        let mut ledger = Ledger::open(path)?;
        let earlier = ledger.kept().limits.clone().unwrap_or_default();
        let later = earlier.or(given.clone());
        let budget = Self::new(config.or(later.clone()))?;
        if *given != SpendConfig::default() {
            ledger.limits(&later)?;
        }
        budget.take_over(ledger)?;
        Ok(budget)
    }

    /// Keeps it in the ledger at `path` from here on: what that has is spent already, and what was spent before is added
    /// to it.
    ///
    /// # Errors
    ///
    /// [`SpendError`] when the ledger cannot be used.
    pub fn keep_in(&self, path: impl Into<PathBuf>) -> Result<(), SpendError> {
        self.take_over(Ledger::open(path)?)
    }

    fn take_over(&self, mut ledger: Ledger) -> Result<(), SpendError> {
        let mut state = self.state();
        for (account, spend) in &state.accounts {
            ledger.spent(account, *spend)?;
        }
        let Kept { accounts, possible, wall_secs, .. } = ledger.kept().clone();
        (state.accounts, state.wall_before) = (accounts, wall_secs);
        state.possible += possible;
        state.ledger = Some(ledger);
        Ok(())
    }

    /// What it may spend.
    pub fn config(&self) -> &SpendConfig {
        &self.0.config
    }

    /// Counts what an endpoint is asked, under this name, at these prices.
    ///
    /// # Errors
    ///
    /// [`SpendError::Problems`] when the prices are in another currency, or the cost is limited and there are none.
    pub fn meter(&self, account: &str, prices: Option<Prices>) -> Result<Meter, SpendError> {
        let config = self.config();
        let mut problems = Vec::new();
        match &prices {
            Some(prices) if prices.currency != config.currency => problems.push(format!(
                "the prices of `{account}` are in {}, and what is spent is told in {}",
                prices.currency, config.currency
            )),
            None if config.max_cost.is_some() => {
                problems.push(format!("max_cost needs the prices of `{account}`"));
            }
            _ => {}
        }
        if !problems.is_empty() {
            return Err(SpendError::Problems { problems });
        }
        Ok(Meter { budget: self.clone(), account: account.into(), prices })
    }

    /// Counts the tokens of the turns of an episode that policies in this process played; what endpoints were asked for
    /// it is counted when they are.
    pub fn count_local(&self, trajectory: &Trajectory) {
        let Some(spend) = local_spend_of(trajectory) else { return };
        let mut state = self.state();
        state.note(|ledger| ledger.spent("policy", spend));
        *state.accounts.entry("policy".to_owned()).or_default() += spend;
        self.look(&mut state, Bound::default());
    }

    /// Keeps an eye on the time while it lives, and sets `cancellation` when a limit is reached.
    pub fn watch(&self, cancellation: &Cancellation) -> Watch {
        let (budget, cancellation) = (self.clone(), cancellation.clone());
        Watch(tokio::spawn(async move {
            loop {
                let stop = budget.0.stop.cancelled();
                if tokio::time::timeout(TICK, stop).await.is_ok() {
                    return cancellation.cancel();
                }
                let mut state = budget.state();
                let wall_secs = budget.wall_secs(&state);
                state.note(|ledger| ledger.tick(wall_secs));
                budget.look(&mut state, Bound::default());
            }
        }))
    }

    /// The limit that was reached, if one was.
    pub fn reached(&self) -> Option<LimitReached> {
        self.state().reached.clone()
    }

    /// What was spent so far.
    pub fn report(&self) -> SpendReport {
        let state = self.state();
        let wall_secs = self.wall_secs(&state);
        let stopped_at = state.reached.clone();
        SpendReport::new(self.config(), state.accounts.clone(), wall_secs, stopped_at)
    }

    /// What was spent since `before` was told.
    pub fn since(&self, before: &SpendReport) -> SpendReport {
        let now = self.report();
        let accounts = now.accounts.into_iter().map(|(account, spend)| {
            let before = before.accounts.get(&account).copied().unwrap_or_default();
            (account, spend - before)
        });
        let accounts = accounts.filter(|(_, spend)| !spend.is_empty()).collect();
        SpendReport::new(self.config(), accounts, now.wall_secs - before.wall_secs, now.stopped_at)
    }

    /// Has all that was spent on the disk.
    ///
    /// # Errors
    ///
    /// [`SpendError::Ledger`] when something could not be kept.
    pub fn sync(&self) -> Result<(), SpendError> {
        let mut state = self.state();
        let wall_secs = self.wall_secs(&state);
        state.note(|ledger| ledger.time(wall_secs));
        state.note(|ledger| ledger.sync());
        // Lines are missing from then on, however often it is asked.
        match &state.failure {
            Some(failure) => Err(failure.again()),
            None => Ok(()),
        }
    }

    fn wall_secs(&self, state: &State) -> f64 {
        state.wall_before + self.0.started.elapsed().as_secs_f64()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was spent of each limit, what may have been and may be, and what it is.
    fn limits(&self, state: &State, bound: Bound) -> Vec<(&'static str, f64, f64, f64, f64)> {
        let mut total = Spend::default();
        state.accounts.values().for_each(|spend| total += *spend);
        let (config, possible, reserved) = (self.config(), state.possible, state.reserved);
        let both = |bound: Bound| (bound.input_tokens + bound.output_tokens) as f64;
        let wall_secs = self.wall_secs(state);
        let machine = config.hour_price.map_or(0.0, |price| price * wall_secs / 3600.0);
        let tokens = |limit: Option<u64>| limit.map(|limit| limit as f64);
        [
            (
                "max_cost",
                config.max_cost,
                total.cost + machine,
                possible.cost,
                reserved.cost,
                bound.cost,
            ),
            (
                "max_input_tokens",
                tokens(config.max_input_tokens),
                total.input_tokens as f64,
                possible.input_tokens as f64,
                reserved.input_tokens as f64,
                bound.input_tokens as f64,
            ),
            (
                "max_output_tokens",
                tokens(config.max_output_tokens),
                total.output_tokens as f64,
                possible.output_tokens as f64,
                reserved.output_tokens as f64,
                bound.output_tokens as f64,
            ),
            (
                "max_total_tokens",
                tokens(config.max_total_tokens),
                total.total_tokens() as f64,
                both(possible),
                both(reserved),
                both(bound),
            ),
            (
                "max_requests",
                tokens(config.max_requests),
                // Requests are known to have been sent, whatever they took.
                total.requests as f64,
                0.0,
                reserved.requests as f64,
                bound.requests as f64,
            ),
            ("max_wall_secs", tokens(config.max_wall_secs), wall_secs, 0.0, 0.0, 0.0),
        ]
        .into_iter()
        .filter_map(|(name, limit, spent, possible, reserved, bound)| {
            Some((name, limit?, spent, possible + bound, reserved))
        })
        .collect()
    }

    /// Whether there is room for `bound` beside what is under way; where there is none even without that, the limit is
    /// reached.
    fn look(&self, state: &mut State, bound: Bound) -> bool {
        let mut has_room = true;
        for (limit, value, spent, possible, reserved) in self.limits(state, bound) {
            if spent + possible > value && state.reached.is_none() {
                let limit = limit.to_owned();
                state.reached = Some(LimitReached { limit, value, spent, possible });
                self.0.stop.cancel();
                self.0.settled.notify_waiters();
            }
            has_room &= spent + possible + reserved <= value;
        }
        has_room && state.reached.is_none()
    }
}

impl State {
    fn note(&mut self, write: impl FnOnce(&mut Ledger) -> Result<(), SpendError>) {
        if let (Some(ledger), None) = (&mut self.ledger, &self.failure) {
            self.failure = write(ledger).err();
        }
    }
}

/// Keeps an eye on a budget's time while it lives.
#[derive(Debug)]
pub struct Watch(tokio::task::JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Counts what one endpoint is asked; clones share the budget.
#[derive(Debug, Clone)]
pub struct Meter {
    budget: Budget,
    account: Arc<str>,
    prices: Option<Prices>,
}

impl Meter {
    /// Waits until there is room for a request of so many tokens at the most.
    ///
    /// # Errors
    ///
    /// [`PolicyError::OutOfBudget`] when a limit is reached. Whatever heeds the budget's cancellation is told to stop
    /// before that, and does not see the error.
    pub async fn reserve(
        &self,
        input_tokens: u64,
        output_tokens: u64,
    ) -> Result<Reservation, PolicyError> {
        let cost = self.prices.as_ref().map_or(0.0, |prices| {
            let (input, output) = (input_tokens as f64, output_tokens as f64);
            (input * prices.most_for_input() + output * prices.output) / 1e6
        });
        let bound = Bound { requests: 1, input_tokens, output_tokens, cost };
        let budget = &self.budget;
        loop {
            let settled = budget.0.settled.notified();
            {
                let mut state = budget.state();
                if budget.look(&mut state, bound) {
                    state.next_number += 1;
                    let number = state.next_number;
                    state.note(|ledger| ledger.begin(number, &self.account, bound));
                    if state.failure.is_none() {
                        state.reserved += bound;
                        return Ok(Reservation {
                            meter: self.clone(),
                            number,
                            bound,
                            is_open: true,
                        });
                    }
                }
                if let Some(failure) = &state.failure {
                    // What is not kept is not spent.
                    let detail = failure.to_string();
                    budget.0.stop.cancel();
                    return Err(PolicyError::OutOfBudget {
                        name: self.account.to_string(),
                        limit: detail,
                    });
                }
            }
            if let Some(reached) = budget.reached() {
                tokio::time::sleep(GRACE).await;
                let (name, limit) = (self.account.to_string(), reached.to_string());
                return Err(PolicyError::OutOfBudget { name, limit });
            }
            settled.await;
        }
    }
}

/// Room for one request. Where it is let go of without being settled, nobody knows what the request took.
#[derive(Debug)]
pub struct Reservation {
    meter: Meter,
    number: u64,
    bound: Bound,
    is_open: bool,
}

impl Reservation {
    /// The request was answered and took this; its cost follows from the meter's prices.
    pub fn settle(mut self, told: Told) {
        let spend = Spend {
            requests: 1,
            input_tokens: told.input_tokens,
            cached_tokens: told.cached_tokens,
            output_tokens: told.output_tokens,
            reasoning_tokens: told.reasoning_tokens,
            ..Spend::default()
        };
        let spend = match &self.meter.prices {
            Some(prices) => prices.priced(spend),
            None => Spend { unpriced: 1, ..spend },
        };
        self.end(spend, Bound::default());
    }

    /// The request never arrived or was refused, which costs nothing.
    pub fn fail(mut self) {
        self.end(Spend { requests: 1, failed: 1, ..Spend::default() }, Bound::default());
    }

    fn end(&mut self, spend: Spend, possible: Bound) {
        self.is_open = false;
        let budget = &self.meter.budget;
        let mut state = budget.state();
        state.reserved -= self.bound;
        state.possible += possible;
        state.note(|ledger| ledger.end(self.number, spend, possible));
        *state.accounts.entry(self.meter.account.to_string()).or_default() += spend;
        EpisodeTally::count(spend);
        // What went beyond its bound may have gone beyond a limit.
        budget.look(&mut state, Bound::default());
        drop(state);
        budget.0.settled.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_open {
            self.end(BROKEN_OFF, self.bound);
        }
    }
}

/// What an endpoint told of a request that it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Of these, the ones that it had cached.
    pub cached_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Of these, the ones that were thought and not said.
    pub reasoning_tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: &str) -> Budget {
        Budget::new(toml::from_str(text).unwrap()).unwrap()
    }

    fn prices() -> Prices {
        // One for a token of an answer, and a tenth of it for one of a prompt.
        Prices { input: 1e5, cached_input: None, output: 1e6, currency: "USD".to_owned() }
    }

    const ANSWER: Told =
        Told { input_tokens: 10, cached_tokens: 0, output_tokens: 1, reasoning_tokens: 0 };

    #[tokio::test(start_paused = true)]
    async fn many_requests_at_a_time_do_not_go_beyond_a_limit_together() {
        let budget = budget("max_cost = 20.0");
        let meter = budget.meter("policy", Some(prices())).unwrap();
        let most = Arc::new(Mutex::new((0.0f64, 0u64)));
        let asks = (0..64).map(|_| {
            let (meter, budget, most) = (meter.clone(), budget.clone(), most.clone());
            tokio::spawn(async move {
                // At the most 10 input and 3 output tokens: 4.
                let reservation = meter.reserve(10, 3).await?;
                {
                    let state = budget.state();
                    let mut most = most.lock().unwrap();
                    let spent: f64 = state.accounts.values().map(|spend| spend.cost).sum();
                    most.0 = most.0.max(spent + state.reserved.cost);
                    most.1 = most.1.max(state.reserved.requests);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                reservation.settle(ANSWER);
                Ok::<(), PolicyError>(())
            })
        });
        let asks: Vec<_> = asks.collect();
        let (mut answered, mut refused) = (0, 0);
        for ask in asks {
            match ask.await.unwrap() {
                Ok(()) => answered += 1,
                Err(PolicyError::OutOfBudget { limit, .. }) => {
                    assert!(limit.contains("max_cost 20"), "{limit}");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        let report = budget.report();
        // Each takes 2: after nine of them there is no room for a tenth that might take 4.
        assert_eq!((answered, refused, report.cost), (9, 55, Some(18.0)));
        let most = most.lock().unwrap();
        assert!(most.0 <= 20.0 && most.1 == 5, "{most:?}");
        assert!(budget.0.stop.is_cancelled());
        assert_eq!(report.stopped_at.unwrap().limit, "max_cost");
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_stops() {
        for (text, answered) in [
            ("max_requests = 3", 3),
            ("max_input_tokens = 35", 3),
            ("max_output_tokens = 5", 3),
            ("max_total_tokens = 40", 3),
            ("max_cost = 7.9", 2),
        ] {
            let budget = budget(text);
            let meter = budget.meter("policy", Some(prices())).unwrap();
            let mut count = 0;
            while let Ok(reservation) = meter.reserve(10, 3).await {
                reservation.settle(ANSWER);
                count += 1;
            }
            assert_eq!(count, answered, "{text}");
            let reached = budget.reached().unwrap();
            assert!(text.starts_with(&reached.limit), "{reached}");
        }
    }

    #[tokio::test]
    async fn what_was_broken_off_counts_against_the_limit_and_is_told_as_unknown() {
        let budget = budget("max_output_tokens = 10");
        let meter = budget.meter("judge", None).unwrap();
        drop(meter.reserve(4, 6).await.unwrap());
        meter.reserve(4, 4).await.unwrap().fail();
        meter.reserve(4, 4).await.unwrap().settle(ANSWER);
        let report = budget.report();
        let judge = report.accounts["judge"];
        assert_eq!((judge.requests, judge.failed, judge.unknown, judge.unpriced), (3, 1, 1, 2));
        assert_eq!((judge.output_tokens, report.cost), (1, None));
        // 6 may have been spent beside the 1 that was.
        assert!(meter.budget.limits(&budget.state(), Bound::default())[0].3 == 6.0);
    }

    #[test]
    fn tokens_of_a_policy_in_this_process_count_beside_what_a_judge_took() {
        use crate::samples::test_trajectories::{sampled, trajectory, turn};

        let budget = budget("max_output_tokens = 5\nmax_requests = 1");
        let mut own = turn(0, &[1, 2, 3], sampled(&[4, 5], &[]));
        own.counts.prompt = Some(3);
        let mut asked = own.clone();
        asked.counts.endpoint = true;
        let mut episode = trajectory(vec![own.clone(), own, asked]);
        let judged = Spend { requests: 1, input_tokens: 7, output_tokens: 1, ..Spend::default() };
        for spend in [Some(judged), None] {
            episode.spend = spend;
            budget.count_local(&episode);
        }
        let report = budget.report();
        let policy = report.accounts["policy"];
        assert_eq!((policy.requests, policy.unpriced, policy.local_turns), (0, 0, 4));
        assert_eq!((policy.input_tokens, policy.output_tokens), (12, 8));
        assert_eq!((report.cost, policy.known_cost()), (None, None));
        assert_eq!(budget.reached().unwrap().limit, "max_output_tokens");
        episode.spend = Some(judged);
        let told = crate::spend::spend_of(&episode).unwrap();
        assert_eq!((told.requests, told.local_turns, told.output_tokens), (1, 2, 5));
    }

    #[tokio::test]
    async fn what_an_endpoint_takes_beyond_its_bound_is_told() {
        let budget = budget("max_output_tokens = 10");
        let meter = budget.meter("policy", None).unwrap();
        let told = Told { output_tokens: 25, ..ANSWER };
        meter.reserve(4, 6).await.unwrap().settle(told);
        let reached = budget.reached().unwrap();
        assert_eq!((reached.spent, reached.value), (25.0, 10.0));
        assert!(reached.to_string().contains("max_output_tokens 10: 25 were spent"), "{reached}");
    }

    #[tokio::test]
    async fn spending_goes_on_from_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spend.jsonl");
        let open = |limit: u64| {
            let config = SpendConfig { max_requests: Some(limit), ..SpendConfig::default() };
            Budget::kept_in(SpendConfig::default(), &config, &path).unwrap()
        };
        let first = open(3);
        let meter = first.meter("policy", Some(prices())).unwrap();
        meter.reserve(1, 1).await.unwrap().settle(ANSWER);
        // Killed while it is under way: nobody drops it.
        std::mem::forget(meter.reserve(1, 1).await.unwrap());
        drop((meter, first));
        let second = open(3);
        assert_eq!(second.report().accounts["policy"].unknown, 1);
        let meter = second.meter("policy", Some(prices())).unwrap();
        meter.reserve(1, 1).await.unwrap().settle(ANSWER);
        assert_eq!(second.reached(), None, "the last one has room");
        let refused = meter.reserve(1, 1).await.unwrap_err();
        assert!(refused.to_string().contains("max_requests 3"), "{refused}");
        second.sync().unwrap();
        let third = open(4);
        assert_eq!((third.report().total.requests, third.reached()), (3, None));
        assert!(third.report().wall_secs >= second.state().wall_before);
    }

    #[test]
    fn what_cannot_be_limited_is_refused() {
        let told = |budget: &Budget, prices| budget.meter("judge", prices).unwrap_err().to_string();
        assert!(
            told(&budget("max_cost = 1.0"), None).contains("max_cost needs the prices of `judge`")
        );
        let euros = Prices { currency: "EUR".to_owned(), ..prices() };
        assert!(told(&budget(""), Some(euros)).contains("EUR"));
        let wrong = SpendConfig { max_cost: Some(0.0), ..SpendConfig::default() };
        assert!(Budget::new(wrong).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_is_up_stops() {
        let budget = budget("max_wall_secs = 1");
        // The budget's clock is the machine's.
        std::thread::sleep(Duration::from_millis(1050));
        let cancellation = Cancellation::new();
        let _watch = budget.watch(&cancellation);
        tokio::time::timeout(Duration::from_secs(5), cancellation.cancelled()).await.unwrap();
        assert_eq!(budget.reached().unwrap().limit, "max_wall_secs");
    }
}
