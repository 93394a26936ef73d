//! Suites whose tasks get wrappers around their environments.

use serde_json::Value;
use spar_core::registry::RowError;
use spar_tasks::{Share, Suite, SuiteError, SuiteManifest, Task, WrapperConfig};

use super::wrapper_registry;
use crate::registry::stratum_of;

/// A suite whose tasks get wrappers, outside of those that they name themselves.
///
/// Where a wrapper plays several tasks in one episode, the others are the next ones of the split that have the same stratum, of which the suite or the environment tells, from its beginning
/// again behind its end; where there are fewer they come again. What stands within that wrapper is around them too.
///
/// Ids stay as they are, the content hash does not: what was played with wrappers is told from what was played without. A task
/// has as many turns as the wrappers need, where it had fewer.
///
/// ```
/// use spar_envs::wrappers::WrappedSuite;
/// use spar_tasks::{SuiteOptions, WrapperConfig, open_suite};
///
/// let suite = open_suite("maths", &SuiteOptions::default())?;
/// let wrapper: WrapperConfig = "unary_feedback,attempts=3".parse()?;
/// let suite = WrappedSuite::wrap(suite, vec![wrapper])?;
/// assert_eq!(suite.task("test", 0)?.max_turns, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WrappedSuite {
    inner: Box<dyn Suite>,
    wrappers: Vec<WrapperConfig>,
    manifest: SuiteManifest,
    /// The turns that the first wrappers need, by how many of them there are, from none.
    turns: Vec<u32>,
    /// Of each wrapper, how many tasks follow in an episode.
    follows: Vec<usize>,
}

/// How far ahead tasks are looked for that are similar.
const SEARCHED: usize = 256;

impl WrappedSuite {
    /// Puts wrappers around a suite, the innermost first; the suite itself where there are none.
    ///
    /// # Errors
    ///
    /// [`RowError`] tells names that there are not, options that a wrapper has not, and values that are out of range.
    pub fn wrap(
        inner: Box<dyn Suite>,
        wrappers: Vec<WrapperConfig>,
    ) -> Result<Box<dyn Suite>, RowError> {
        let first = |count: usize| Self::check(&wrappers[..count]);
        let turns = (0..=wrappers.len()).map(first).collect::<Result<Vec<u32>, _>>()?;
        if wrappers.is_empty() {
            return Ok(inner);
        }
        let mut manifest = inner.manifest().clone();
        let mut hasher = blake3::Hasher::new();
        hasher.update(manifest.content_hash.as_bytes());
        hasher.update(&serde_json::to_vec(&wrappers).expect("names and options are JSON"));
        manifest.content_hash = hasher.finalize().to_hex().to_string();
        let follows = wrappers.iter().map(|config| {
            let (row, given) = wrapper_registry().choose(&config.kind, &config.options)?;
            (row.open.follows)(&given)
        });
        let follows = follows.collect::<Result<_, _>>()?;
        Ok(Box::new(Self { inner, wrappers, manifest, turns, follows }))
    }

    /// Looks at wrappers, and tells how many turns they need.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn check(wrappers: &[WrapperConfig]) -> Result<u32, RowError> {
        let mut turns = wrappers.iter().map(|config| {
            let (row, given) = wrapper_registry().choose(&config.kind, &config.options)?;
            (row.open.turns)(&given)
        });
        turns.try_fold(1, |most, turns| Ok(most.max(turns?)))
    }

    /// So many tasks behind the one at a place that are similar to it, with the wrappers that stand before that of this number.
    fn following(
        &self,
        split: &str,
        index: usize,
        count: usize,
        wrapper: usize,
    ) -> Result<Vec<Task>, SuiteError> {
        let len = self.inner.len(split)?;
        let stratum = |at: usize| match self.inner.stratum(split, at) {
            Some(stratum) => Some(stratum),
            None => self.inner.make_task(split, at).ok().as_ref().and_then(stratum_of),
        };
        let own = stratum(index);
        let behind = (1..=len.min(SEARCHED)).map(|step| (index + step) % len);
        // Where none of those that are looked at is like it, it comes again itself.
        let mut places: Vec<usize> = behind.filter(|at| stratum(*at) == own).take(count).collect();
        if places.is_empty() {
            places.push(index);
        }
        let make = |at: &usize| {
            let task = self.inner.make_task(split, *at)?;
            self.wrapped_at(task, split, *at, wrapper)
        };
        places.iter().cycle().take(count).map(make).collect()
    }

    /// The task at a place with so many of its wrappers, the innermost ones.
    fn wrapped_at(
        &self,
        task: Task,
        split: &str,
        index: usize,
        count: usize,
    ) -> Result<Task, SuiteError> {
        if count == 0 {
            return Ok(task);
        }
        let mut wrappers = self.wrappers[..count].to_vec();
        let mut turns = task.max_turns;
        for (number, wrapper) in wrappers.iter_mut().enumerate() {
            let follows = self.follows[number];
            if follows > 0 {
                let following = self.following(split, index, follows, number)?;
                // The first task has its own turns as those that follow have theirs, whatever all of them have together.
                let given = wrapper.options.get("turns").and_then(Value::as_u64);
                let own = given.and_then(|turns| u32::try_from(turns).ok());
                let own = own.unwrap_or_else(|| turns.max(self.turns[number]));
                turns = following.iter().fold(own, |sum, it| sum.saturating_add(it.max_turns));
                wrapper.options.insert("turns".to_owned(), own.into());
                let following = serde_json::to_value(following).expect("tasks are JSON");
                wrapper.options.insert("following".to_owned(), following);
            }
        }
        let wrapped = self.wrapped(task, &wrappers);
        Ok(Task { max_turns: wrapped.max_turns.max(turns), ..wrapped })
    }

    fn wrapped(&self, mut task: Task, wrappers: &[WrapperConfig]) -> Task {
        // Tasks without parameters may say so by null.
        if task.parameters.is_null() {
            task.parameters = Value::Object(serde_json::Map::new());
        }
        if let Some(parameters) = task.parameters.as_object_mut() {
            WrapperConfig::add(wrappers, parameters);
        }
        task.max_turns = task.max_turns.max(self.turns[wrappers.len()]);
        task
    }
}

impl Suite for WrappedSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        self.inner.about()
    }

    fn is_for_evaluation(&self) -> bool {
        self.inner.is_for_evaluation()
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        self.wrapped_at(self.inner.make_task(split, index)?, split, index, self.wrappers.len())
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        self.inner.stratum(split, index)
    }

    fn shares(&self, split: &str) -> Vec<Share> {
        self.inner.shares(split)
    }

    fn firsts(&self, split: &str) -> Vec<usize> {
        self.inner.firsts(split)
    }

    fn share_of(&self, id: &str) -> Option<&str> {
        self.inner.share_of(id)
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let task = self.inner.task_by_id(id)?;
        if self.follows.iter().all(|count| *count == 0) {
            return Ok(self.wrapped(task, &self.wrappers));
        }
        // What follows is known by the place, which ids end with.
        let place = id
            .rsplit_once('/')
            .and_then(|(rest, index)| Some((rest.rsplit_once('/')?.1, index.parse().ok()?)));
        let is_there = |(split, index): &(&str, usize)| {
            self.inner.task(split, *index).is_ok_and(|it| it.id == id)
        };
        match place.filter(is_there) {
            Some((split, index)) => self.wrapped_at(task, split, index, self.wrappers.len()),
            None => Err(SuiteError::UnknownTask {
                suite: self.manifest.name.clone(),
                id: id.to_owned(),
            }),
        }
    }

    fn len(&self, split: &str) -> Result<usize, SuiteError> {
        self.inner.len(split)
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;
    use crate::{Resources, open_environment};

    fn wrapper(text: &str) -> WrapperConfig {
        text.parse().unwrap()
    }

    fn maths() -> Box<dyn Suite> {
        open_suite("maths", &SuiteOptions::default()).unwrap()
    }

    #[tokio::test]
    async fn tasks_of_a_wrapped_suite_are_played_with_its_wrappers_and_found_by_their_ids() {
        let plain = maths();
        let hash = plain.manifest().content_hash.clone();
        let suite =
            WrappedSuite::wrap(plain, vec![wrapper("unary_feedback,attempts=2,feedback='Wrong.'")])
                .unwrap();
        assert_ne!(suite.manifest().content_hash, hash);
        let task = suite.task("test", 3).unwrap();
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        let mut env = open_environment(&task, &Resources::default()).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        env.prepare().await.unwrap();
        let step = env.step(&"\\boxed{no such answer}".into()).await.unwrap();
        assert!(step.observation.text.contains("Wrong.") && !step.terminated);
        let right = env.oracle_action().unwrap();
        assert!(env.step(&right).await.unwrap().terminated);
        let verdict = env.verify().await.unwrap().unwrap();
        assert!(verdict.success);
        assert_eq!(verdict.reward(), 0.5);
    }

    #[test]
    fn what_is_wrong_with_wrappers_is_told_when_a_suite_is_wrapped() {
        let told = |text: &str| match WrappedSuite::wrap(maths(), vec![wrapper(text)]) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(told("unary").contains("`unary_feedback`"));
        assert!(told("unary_feedback,attemps=3").contains("`attemps`"));
        let range = told("unary_feedback,attempts=1");
        assert!(range.contains("from 2 to 64"), "{range}");
    }

    #[test]
    fn wrappers_of_a_suite_stand_outside_of_those_of_its_tasks() {
        let inner = WrappedSuite::wrap(maths(), vec![wrapper("unary_feedback,attempts=3")]);
        let outer = WrappedSuite::wrap(inner.unwrap(), vec![wrapper("unary_feedback,attempts=4")]);
        let task = outer.unwrap().task("test", 0).unwrap();
        let (wrappers, _) = WrapperConfig::take(&task).unwrap().unwrap();
        let attempts: Vec<_> = wrappers.iter().map(|it| it.options["attempts"].clone()).collect();
        assert_eq!((attempts, task.max_turns), (vec![3.into(), 4.into()], 4));
    }

    #[test]
    fn a_suite_without_wrappers_is_left_as_it_is() {
        let hash = maths().manifest().content_hash.clone();
        assert_eq!(WrappedSuite::wrap(maths(), Vec::new()).unwrap().manifest().content_hash, hash);
    }
}
