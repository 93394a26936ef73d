//! The environment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use spar_core::{Action, Observation, Seed, Step, ToolResult, ToolSpec, Verdict};
use spar_sql::{QueryError, QueryLimits};
use spar_tasks::{ReferenceAnswer, Task};

use super::command::{Command, tools};
use super::judging::verdict;
use super::problem::Problem;
use crate::calls::{MOST_CALLS, too_many};
use crate::{Environment, EnvironmentError, idle_tag};

pub(super) const NAME: &str = "sql";

/// Rows and bytes of a result that are shown.
pub(super) const MOST_ROWS: usize = 20;
pub(super) const MOST_BYTES: usize = 4_000;

/// A question about a database, answered by a query.
///
/// Parameters: those of a [`SqlTask`](spar_tasks::SqlTask), or of a generated question: `seed`, `level` (`easy`, `medium`, `hard` or
/// `mixed`; default `easy`), `domains` (`seen` or `unseen`; default `seen`) and `shows_schema` (default false).
///
/// In words: `schema` shows the tables and `schema TABLE` one of them whole, `query SQL` tries a query, and the query in the one
/// ```` ```sql ```` block of an answer, or behind `submit`, ends the task. By calls: `sql_schema`, `sql_query`, `sql_submit`. Queries only read,
/// within limits; what is wrong with one is told in SQLite's words. A query that finds what the right one finds, by the rule of the
/// task, gives the reward part `success`, 1; the verdict keeps under `sql` what else the grader `reasoning_sql` weighs.
#[derive(Debug, Clone)]
pub struct Sql {
    problem: Arc<Problem>,
    talk: Option<Talk>,
    uses_tools: bool,
}

#[derive(Debug, Clone, Default)]
struct Talk {
    /// Hashes of what was asked for, which is what the policy knows.
    asked: BTreeSet<[u8; 32]>,
    has_schema: bool,
    is_over: bool,
    submitted: Option<Arc<str>>,
    /// What it was judged to be; graders ask for it one by one.
    verdict: Option<Verdict>,
}

impl Sql {
    /// Makes the question of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or its database cannot be opened.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        Ok(Self { problem: Arc::new(Problem::open(task)?), talk: None, uses_tools: false })
    }

    /// What the policy can know: the question, and what it has asked for.
    fn state_key(&self, talk: &Talk) -> String {
        let mut hasher = blake3::Hasher::new();
        talk.asked.iter().for_each(|hash| {
            hasher.update(hash);
        });
        let over = if talk.is_over { " over" } else { "" };
        format!("{} {}{over}", self.problem.question, &hasher.finalize().to_hex()[..16])
    }

    /// Carries out a command; an error is why it could not be, for the policy.
    async fn carry_out(&self, talk: &mut Talk, command: Command) -> Result<String, String> {
        if talk.is_over {
            return Err("A query was submitted already.".to_owned());
        }
        let asked = blake3::hash(command.to_words().as_bytes());
        let told = match command {
            Command::Schema(table) => {
                talk.has_schema |= table.is_none();
                let problem = Arc::clone(&self.problem);
                // Who needs all memory may have to be waited for.
                off_thread(move || problem.schema(table.as_deref())).await
            }
            Command::Query(sql) => query(&self.problem, sql).await,
            Command::Submit(sql) => {
                talk.is_over = true;
                talk.submitted = Some(sql.into());
                Ok("The query was submitted.".to_owned())
            }
        };
        talk.asked.insert(*asked.as_bytes());
        told
    }
}

/// What a query may take of which the first rows are shown.
pub(super) fn shown_limits() -> QueryLimits {
    QueryLimits { rows: 1_000, result_bytes: 1 << 20, ..QueryLimits::default() }
}

async fn query(problem: &Arc<Problem>, sql: String) -> Result<String, String> {
    let limits = shown_limits();
    let found = match problem.databases[0].query_at_once(&sql, &limits) {
        Some(found) => found,
        None => {
            let problem = Arc::clone(problem);
            off_thread(move || problem.databases[0].query(&sql, &limits)).await
        }
    };
    match found {
        Ok(table) => Ok(table.to_text(MOST_ROWS, MOST_BYTES)),
        Err(error) => Err(told(&error)),
    }
}

/// An error of a query as a sentence for the policy.
pub(super) fn told(error: &QueryError) -> String {
    let words: String = format!("Error: {error}").chars().take(500).collect();
    format!("{}.", words.trim_end_matches('.'))
}

/// Does work that takes a while where it holds up nobody; at once where no runtime has a place for that.
pub(super) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return work();
    };
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[async_trait]
impl Environment for Sql {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        self.problem.tags.iter().cloned().chain([idle_tag(0.0)]).collect()
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match &self.talk {
            Some(talk) if self.uses_tools && !talk.is_over => tools(),
            _ => Arc::default(),
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let talk = Talk { has_schema: self.problem.shows_schema, ..Talk::default() };
        let first = Observation {
            text: self.problem.words()?,
            instruction: Some(self.problem.question.as_str().into()),
            state_key: self.state_key(&talk),
            ..Observation::default()
        };
        self.talk = Some(talk);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let mut talk = match &self.talk {
            None => return Err(misused("before reset")),
            Some(talk) if talk.is_over => return Err(misused("after the end")),
            Some(talk) => talk.clone(),
        };
        let (mut text, mut results) = (String::new(), Vec::new());
        let mut valid = true;
        match action.tool_calls() {
            [] => match Command::in_words(action.said()) {
                Ok(command) => {
                    text = match self.carry_out(&mut talk, command).await {
                        Ok(told) | Err(told) => told,
                    };
                }
                Err(told) => (text, valid) = (told, false),
            },
            calls => {
                for (place, call) in calls.iter().enumerate() {
                    let told = match Command::of_call(call) {
                        _ if place >= MOST_CALLS => {
                            valid = false;
                            Err(too_many(MOST_CALLS))
                        }
                        Ok(command) => self.carry_out(&mut talk, command).await,
                        Err(told) => {
                            valid = false;
                            Err(told)
                        }
                    };
                    results.push(match told {
                        Ok(told) => ToolResult::new(call, told),
                        Err(told) => ToolResult::error(call, told),
                    });
                }
            }
        }
        let state_key = self.state_key(&talk);
        let terminated = talk.is_over;
        self.talk = Some(talk);
        Ok(Step {
            observation: Observation { text, results, state_key, ..Observation::default() },
            rewards: Vec::new(),
            terminated,
            success: false,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let Some(talk) = &mut self.talk else {
            return Err(EnvironmentError::Misused { call: "verify", when: "before reset" });
        };
        if let Some(known) = &talk.verdict {
            return Ok(Some(known.clone()));
        }
        let found = verdict(&self.problem, talk.submitted.as_ref()).await?;
        talk.verdict = talk.is_over.then(|| found.clone());
        Ok(Some(found))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        Some(ReferenceAnswer::Text(self.problem.gold.clone()))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    /// Looks at the tables, and submits the right query.
    fn oracle_action(&self) -> Option<Action> {
        let talk = self.talk.as_ref().filter(|talk| !talk.is_over)?;
        let command = match talk.has_schema {
            true => Command::Submit(self.problem.gold.clone()),
            false => Command::Schema(None),
        };
        Some(match self.uses_tools {
            true => Action::calls(vec![command.to_call()]),
            false => command.to_words().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};
    use spar_core::ToolCall;

    use super::*;

    fn sql(parameters: Value) -> Result<Sql, EnvironmentError> {
        let mut env = Sql::open(&Task {
            id: "sql/test/0".to_owned(),
            environment: NAME.to_owned(),
            parameters,
            instruction: String::new(),
            max_turns: 6,
            tags: Vec::new(),
            graders: Vec::new(),
        })?;
        block_on(env.reset(Seed::from_u64(0)))?;
        Ok(env)
    }

    fn say(env: &mut Sql, text: &str) -> Step {
        block_on(env.step(&text.into())).unwrap()
    }

    fn judged(env: &mut Sql) -> Verdict {
        block_on(env.verify()).unwrap().unwrap()
    }

    #[test]
    fn a_question_is_answered_by_the_query_in_a_block() {
        let mut env = sql(json!({ "seed": 1 })).unwrap();
        assert!(!judged(&mut env).success, "nothing was submitted");
        let tables = say(&mut env, "schema").observation.text;
        assert_eq!(tables.lines().count(), 2, "{tables}");
        let gold = env.problem.gold.clone();
        let shown = say(&mut env, &format!("query {gold}"));
        assert!(shown.valid && shown.observation.text.contains("row"), "{shown:?}");
        let mut fork = block_on(env.fork()).unwrap().unwrap();
        let step = say(&mut env, &format!("I see.\n```sql\n{gold}\n```"));
        assert!(step.terminated && !step.success && step.rewards.is_empty());
        let verdict = judged(&mut env);
        assert!(verdict.success && verdict.reward() == 1.0);
        assert_eq!(verdict.artifacts["sql"]["scores"]["ngram"], 1.0);
        assert!(block_on(env.step(&"schema".into())).is_err(), "it is over");
        // The fork is where its origin was.
        let other = block_on(fork.step(&"submit SELECT 1".into())).unwrap();
        assert!(other.terminated && !block_on(fork.verify()).unwrap().unwrap().success);
    }

    /// The episode that docs/sql.md shows.
    #[test]
    fn the_documented_episode_is_played_so() {
        let mut env = sql(json!({ "seed": 13_000_000, "level": "hard" })).unwrap();
        let mut told = format!("{}\n", env.problem.words().unwrap());
        let gold = env.problem.gold.clone();
        let table = env.problem.databases[0].schema().unwrap().tables[1].name.clone();
        let tries = format!("query SELECT * FROM {table} LIMIT 3");
        for action in
            ["schema", &tries, "query SELECT age FROM nobody", &format!("```sql\n{gold}\n```")]
        {
            let step = say(&mut env, action);
            told.push_str(&format!(
                "\n> {}\n{}\n",
                action.replace('\n', "\n> "),
                step.observation.text
            ));
        }
        let verdict = judged(&mut env);
        told.push_str(&format!("\n{}: {}\n", verdict.details, verdict.artifacts["sql"]["scores"]));
        let page = include_str!("../../../docs/sql.md");
        assert!(page.contains(&told), "docs/sql.md is to show:\n{told}");
    }

    #[test]
    fn calls_are_answered_one_by_one_until_a_query_is_submitted() {
        let mut env = sql(json!({ "seed": 2, "level": "hard" })).unwrap();
        assert!(env.tools().is_empty());
        env.use_tools();
        assert_eq!(env.tools().len(), 3);
        let call = |command: Command| command.to_call();
        let gold = env.problem.gold.clone();
        let calls = vec![
            call(Command::Schema(None)),
            call(Command::Query("SELEC".to_owned())),
            call(Command::Submit(gold)),
            call(Command::Submit("SELECT 1".to_owned())),
        ];
        let step = block_on(env.step(&Action::calls(calls))).unwrap();
        let errors: Vec<bool> =
            step.observation.results.iter().map(|result| result.is_error).collect();
        assert_eq!(errors, [false, true, false, true]);
        assert_eq!(step.observation.results[1].text, "Error: near \"SELEC\": syntax error.");
        assert!(step.terminated && step.valid && judged(&mut env).success);
        let mut env = sql(json!({ "seed": 2 })).unwrap();
        env.use_tools();
        let many = vec![call(Command::Schema(None)); 40];
        let step = block_on(env.step(&Action::calls(many))).unwrap();
        assert!(!step.valid && step.observation.results.len() == 40);
        assert!(step.observation.results[16].is_error && !step.observation.results[15].is_error);
    }

    /// One step of it may take a third of a second, and twenty are to be made.
    const HEAVY: &str = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c LIMIT 20) SELECT \
                         sum(instr(printf('%.200000c','a')||i, printf('%.60000c','a')||'b')) FROM c";

    #[test]
    fn a_query_that_takes_long_in_one_step_holds_up_nobody() {
        for action in [format!("query {HEAVY}"), format!("submit {HEAVY}")] {
            let mut env = sql(json!({ "seed": 1 })).unwrap();
            let limit = std::time::Duration::from_millis(100);
            // On one thread the clock is only looked at where the query is not run there.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = runtime.unwrap();
            let start = Instant::now();
            let asked = runtime.block_on(async {
                let asked = async {
                    env.step(&action.as_str().into()).await.unwrap();
                    env.verify().await.unwrap()
                };
                tokio::time::timeout(limit, asked).await
            });
            assert!(asked.is_err(), "{action}");
            assert!(start.elapsed() < 20 * limit, "{action}: {:?}", start.elapsed());
            runtime.shutdown_background();
        }
    }

    #[test]
    fn what_does_not_answer_the_question_earns_nothing() {
        for seed in 0..30 {
            let parameters = json!({ "seed": seed, "level": "mixed" });
            let gold = sql(parameters.clone()).unwrap().problem.gold.clone();
            let found = sql(parameters.clone()).unwrap().problem.databases[0]
                .query(&gold, &QueryLimits::default())
                .unwrap();
            let first = found.rows[0].iter().map(|cell| match cell {
                spar_sql::Cell::Integer(number) => number.to_string(),
                spar_sql::Cell::Text(text) => format!("'{}'", text.replace('\'', "''")),
                other => format!("{other:?}"),
            });
            let constant = format!("SELECT {}", first.collect::<Vec<_>>().join(", "));
            let table =
                sql(parameters.clone()).unwrap().problem.databases[0].schema().unwrap().tables[1]
                    .name
                    .clone();
            for answer in [
                "```sql\n```".to_owned(),
                "```sql\n-- nothing\n```".to_owned(),
                format!("submit {constant}"),
                format!("submit SELECT * FROM {table}"),
                format!("submit {gold}; SELECT 1;; DROP"),
                "submit \0".to_owned(),
                format!("submit SELECT '{}'", "x".repeat(200_000)),
            ] {
                let mut env = sql(parameters.clone()).unwrap();
                say(&mut env, &answer);
                let verdict = judged(&mut env);
                let is_first_of_two = answer.starts_with(&format!("submit {gold};"));
                assert_eq!(verdict.success, is_first_of_two, "{answer:.200} for {gold}");
            }
        }
    }

    #[test]
    fn hostile_actions_are_observations() {
        let mut env = sql(json!({ "seed": 5 })).unwrap();
        let tables = env.problem.databases[0].schema().unwrap();
        let drop = &*format!("query DROP TABLE {}", tables.tables[1].name);
        let endless = "query WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        for (text, told) in [
            (drop, "Error: not authorized"),
            ("query SELECT load_extension('x')", "not authorized to use function"),
            ("query ATTACH 'x' AS y", "Error: not authorized"),
            (endless, "interrupted"),
            ("query", "Nothing happens"),
            ("", "Nothing happens"),
            ("schema no such table", "There is no table `no such table`"),
            ("schema \"; DROP", "There is no table"),
        ] {
            let step = say(&mut env, text);
            assert!(step.observation.text.contains(told), "{text}: {}", step.observation.text);
            assert!(!step.terminated && step.rewards.is_empty());
        }
        let long = say(&mut env, &format!("query {}", "x".repeat(10 << 20)));
        assert!(
            long.observation.text.contains("at most 100000") && long.observation.text.len() < 600
        );
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let arguments = json!({ "sql": deep }).as_object().cloned().unwrap();
        env.use_tools();
        let call = ToolCall::new("sql_query", arguments);
        let step = block_on(env.step(&Action::calls(vec![call]))).unwrap();
        assert!(!step.valid && step.observation.results[0].is_error);
    }

    #[test]
    fn equal_knowledge_has_equal_keys() {
        let mut one = sql(json!({ "seed": 7 })).unwrap();
        let mut other = one.clone();
        say(&mut one, "schema");
        let a = say(&mut one, "query SELECT 1").observation.state_key;
        let b = say(&mut other, "query SELECT 1").observation.state_key;
        assert_ne!(a, b);
        assert_eq!(say(&mut other, "schema").observation.state_key, a);
    }

    #[test]
    fn parameters_that_are_wrong_are_told() {
        for (parameters, told) in [
            (json!({ "seed": -1 }), "invalid value"),
            (json!({ "seed": 1, "level": "none" }), "unknown variant"),
            (json!({ "question": "?", "gold": "SELECT 1", "databases": [] }), "names no file"),
            (
                json!({ "question": "?", "gold": "SELECT 1", "databases": ["/no/such.sqlite"] }),
                "find database",
            ),
            (json!({ "question": "?" }), "missing field `gold`"),
        ] {
            let error = sql(parameters).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
