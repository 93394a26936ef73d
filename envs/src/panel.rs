//! A question that several agents answer one after the other.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use rand::RngExt;
use serde::Deserialize;
use spar_core::{Action, Observation, Seat, SeatSpec, Seed, Step, Told};
use spar_tasks::Task;

use crate::red_team::without_thoughts;
use crate::{Environment, EnvironmentError, SeatAccounts};

const NAME: &str = "panel";

/// The most agents there are.
const MOST_AGENTS: usize = 6;

/// Characters of what one says; what is beyond is not heard.
const MOST_SAID: usize = 2_000;

/// What evaluations and scores are chosen from, where they are listed.
const EVALUATIONS: [&str; 2] = ["It is right.", "It is wrong."];
const SCORES: [&str; 3] = ["1", "2", "3"];

/// Several agents answer a question one after the other, each behind the answers of those before it.
///
/// What they earn is the team's (`shared`), as in CORY (arXiv 2410.06101): a pioneer answers, an observer answers behind it, and both earn the sum of what each answer is worth;
///
/// ```text
/// R(i) = sum_j 1[answer of j is right]
/// ```
///
/// or what peers find (`peers`), as in CoMAS (arXiv 2510.08529), with no look at what is right: behind all answers, that of agent `i` is evaluated in words by agent `i + 1`, and scored by agent `i + 2`,
/// who sees both, from 1 to 3;
///
/// ```text
/// R(answer of i) = (score - 1) / 2,   R(evaluation by i + 1) = 1 - R(answer of i),   R(score by i + 2) = 0, or -1 where it is none
/// ```
///
/// What one says is heard on one line, without what it thought (`<think>` to `</think>`). A score is the only number of its text, from 1 to 3; else it is none. Who leaves has said nothing in all moves that
/// are its own from there, and the others go on: its answer is no number, and a score that it owes is none.
///
/// Reconstructed: of CORY the questions are others; of CoMAS from its abstract and summaries, the discussion being one round. Questions are sums of two numbers, drawn by the seed, whose answer is the last number that is said.
///
/// Parameters: `seed`, `agents` (2 to 6, default 2; of `peers` at least 3), `reward` (`shared` or `peers`, default `shared`), `listed` (whether what can be said is listed; default false).
#[derive(Debug, Clone)]
pub struct Panel {
    numbers: [u32; 2],
    reward: PanelReward,
    is_listed: bool,
    agents: usize,
    talk: Option<Talk>,
}

/// What agents earn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PanelReward {
    #[default]
    Shared,
    Peers,
}

#[derive(Debug, Clone)]
struct Talk {
    /// What was said in every move: answers, then evaluations, then scores.
    said: Vec<String>,
    /// Who does not move any more.
    gone: Vec<bool>,
    accounts: SeatAccounts,
    has_seen: Vec<bool>,
}

/// What the agent that is to move does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Answer,
    /// Of the answer of this agent.
    Evaluate(usize),
    Score(usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default = "two")]
    agents: usize,
    #[serde(default)]
    reward: PanelReward,
    #[serde(default)]
    listed: bool,
}

fn two() -> usize {
    2
}

/// The seats of the most agents.
fn all_seats() -> &'static [SeatSpec] {
    static SEATS: OnceLock<Vec<SeatSpec>> = OnceLock::new();
    SEATS.get_or_init(|| {
        const NAMES: [&str; MOST_AGENTS] = ["a", "b", "c", "d", "e", "f"];
        NAMES.map(|name| SeatSpec::new(name, "Who answers in its turn.", SeatSpec::SELF)).into()
    })
}

impl Panel {
    /// Makes the panel of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let Parameters { seed, agents, reward, listed } =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let least = if reward == PanelReward::Peers { 3 } else { 2 };
        if !(least..=MOST_AGENTS).contains(&agents) {
            let problem = format!("`agents` is {agents}, allowed are {least} to {MOST_AGENTS}");
            return Err(refuse(problem));
        }
        let mut rng = Seed::from_u64(seed).derive(NAME, "question").rng();
        let first = rng.random_range(0..=9);
        let numbers = [first, rng.random_range(0..=9 - first)];
        Ok(Self { numbers, reward, is_listed: listed, agents, talk: None })
    }

    fn right(&self) -> u32 {
        self.numbers.iter().sum()
    }

    fn is_right(&self, answer: &str) -> bool {
        last_number(answer) == Some(self.right())
    }

    fn num_moves(&self) -> usize {
        match self.reward {
            PanelReward::Shared => self.agents,
            PanelReward::Peers => 3 * self.agents,
        }
    }

    /// Who makes the move of this number, and which; absent behind the last.
    fn move_at(&self, number: usize) -> Option<(Seat, Move)> {
        let agents = self.agents;
        let (round, of) = (number / agents, number % agents);
        let (seat, kind) = match round {
            0 => (of, Move::Answer),
            1 => (of + 1, Move::Evaluate(of)),
            _ => (of + 2, Move::Score(of)),
        };
        (number < self.num_moves()).then(|| (Seat::at(seat % agents), kind))
    }

    fn present(&self) -> Option<(Seat, Move)> {
        self.move_at(self.talk.as_ref().map_or(0, |talk| talk.said.len()))
    }

    /// Whoever is gone says nothing where it would be its turn; behind the last move all are paid.
    fn go_on(&mut self) {
        while let Some((seat, _)) = self.present() {
            let Some(talk) = &mut self.talk else { return };
            if !talk.gone[seat.index()] {
                return;
            }
            talk.said.push(String::new());
        }
        self.pay();
    }

    /// What whoever is to move is shown.
    fn shown(&self, said: &[String], of: Move) -> String {
        let [one, other] = self.numbers;
        let question = format!("What is {one} + {other}?");
        let name = |agent: usize| &all_seats()[agent].name;
        match of {
            Move::Answer => {
                let earlier = said.iter().enumerate().take(self.agents);
                let lines = earlier.map(|(agent, said)| format!("\n{}: {said}", name(agent)));
                question + &lines.collect::<String>()
            }
            Move::Evaluate(agent) => {
                format!("{question}\n{}: {}\nIs that right?", name(agent), said[agent])
            }
            Move::Score(agent) => format!(
                "{question}\n{}: {}\n{}: {}\nHow good is the answer, from 1 (wrong) to 3 (right)?",
                name(agent),
                said[agent],
                name((agent + 1) % self.agents),
                said[self.agents + agent],
            ),
        }
    }

    fn listed(of: Move) -> Vec<String> {
        match of {
            Move::Answer => (0..=9).map(|it| it.to_string()).collect(),
            Move::Evaluate(_) => EVALUATIONS.map(str::to_owned).into(),
            Move::Score(_) => SCORES.map(str::to_owned).into(),
        }
    }

    /// What the agents have earned, when all is said.
    fn pay(&mut self) {
        let Some(talk) = &self.talk else { return };
        let said = talk.said.clone();
        let agents = self.agents;
        let (mut team, mut parts) = (0.0, Vec::new());
        for (agent, answer) in said[..agents].iter().enumerate() {
            if self.reward == PanelReward::Shared {
                team += f64::from(u8::from(self.is_right(answer)));
                continue;
            }
            let score = only_number(&said[2 * agents + agent]).filter(|it| (1..=3).contains(it));
            match score {
                Some(score) => {
                    let worth = (f64::from(score) - 1.0) / 2.0;
                    parts.push((agent, "answer", worth));
                    parts.push(((agent + 1) % agents, "evaluation", 1.0 - worth));
                }
                None => parts.push(((agent + 2) % agents, "score", -1.0)),
            }
        }
        if self.reward == PanelReward::Shared {
            parts.extend((0..agents).map(|agent| (agent, "team", team)));
        }
        let talk = self.talk.as_mut().expect("it was there");
        for (agent, name, value) in parts {
            talk.accounts.pay(Seat::at(agent), name, value);
        }
    }

    fn scripted(&self) -> Option<Action> {
        let talk = self.talk.as_ref()?;
        let said = match self.present()?.1 {
            Move::Answer => self.right().to_string(),
            Move::Evaluate(agent) => {
                EVALUATIONS[usize::from(!self.is_right(&talk.said[agent]))].to_owned()
            }
            Move::Score(agent) => {
                SCORES[2 * usize::from(self.is_right(&talk.said[agent]))].to_owned()
            }
        };
        Some(said.into())
    }

    fn has_succeeded(&self, seat: Seat) -> bool {
        let talk = self.talk.as_ref();
        talk.and_then(|talk| talk.said.get(seat.index())).is_some_and(|it| self.is_right(it))
    }
}

/// The whole numbers in a text.
fn numbers(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter(|it| !it.is_empty())
}

/// The last of them.
fn last_number(text: &str) -> Option<u32> {
    numbers(text).next_back()?.parse().ok()
}

/// The only one of them, where there are not several.
fn only_number(text: &str) -> Option<u32> {
    let mut numbers = numbers(text);
    let only = numbers.next()?;
    if numbers.next().is_some() {
        return None;
    }
    only.parse().ok()
}

/// What the others hear of a text: one line, and nothing of what was thought.
fn heard(text: &str) -> String {
    let said = without_thoughts(text);
    let words: Vec<&str> = said.split_whitespace().collect();
    words.join(" ").chars().take(MOST_SAID).collect()
}

#[async_trait]
impl Environment for Panel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn seats(&self) -> &[SeatSpec] {
        &all_seats()[..self.agents]
    }

    fn takes_any_words(&self) -> bool {
        true
    }

    fn to_move(&self) -> Option<Seat> {
        self.present().map(|(seat, _)| seat)
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let (gone, has_seen) = (vec![false; self.agents], vec![false; self.agents]);
        let (said, accounts) = (Vec::new(), SeatAccounts::new(self.agents));
        self.talk = Some(Talk { said, gone, accounts, has_seen });
        Ok(self.told(Seat::FIRST).observation)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let present = self.present();
        let Some(talk) = &mut self.talk else { return Err(misused("before reset")) };
        let Some((seat, _)) = present else { return Err(misused("after the end")) };
        let said = heard(action.said());
        let valid = !said.is_empty();
        talk.said.push(said);
        self.go_on();
        let terminated = self.present().is_none();
        let success = self.has_succeeded(seat);
        let talk = self.talk.as_mut().expect("it was there");
        Ok(Step {
            observation: Observation {
                text: if terminated { "All is said." } else { "" }.to_owned(),
                admissible: (self.is_listed && terminated).then(Arc::default),
                state_key: format!("{seat}, {} said", talk.said.len()),
                ..Observation::default()
            },
            rewards: talk.accounts.take(seat),
            terminated,
            success: success && terminated,
            valid,
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        let present = self.present();
        let Some(talk) = &self.talk else { return Told::default() };
        let text = match present {
            Some((mover, of)) if mover == seat => self.shown(&talk.said, of),
            Some(_) => String::new(),
            None => "All is said.".to_owned(),
        };
        let listed = match present {
            Some((mover, of)) if mover == seat => Self::listed(of),
            _ => Vec::new(),
        };
        let success = present.is_none() && self.has_succeeded(seat);
        let is_listed = self.is_listed;
        let talk = self.talk.as_mut().expect("it was there");
        let is_first = !std::mem::replace(&mut talk.has_seen[seat.index()], true);
        let instruction = "answer the question, or judge what others say of it";
        Told {
            observation: Observation {
                state_key: text.clone(),
                text,
                instruction: is_first.then(|| instruction.into()),
                admissible: is_listed.then(|| listed.into_iter().map(Arc::from).collect()),
                ..Observation::default()
            },
            rewards: talk.accounts.take(seat),
            success,
        }
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        // Who has nothing more to say says nothing in any of its moves, and the others go on.
        let is_open = self.present().is_some();
        if let Some(talk) = self.talk.as_mut().filter(|_| is_open) {
            talk.gone[seat.index()] = true;
            self.go_on();
        }
        Ok(())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.scripted()
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.scripted()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_task;

    async fn begun(parameters: Value) -> Panel {
        let mut panel = Panel::open(&test_task(NAME, parameters)).unwrap();
        panel.reset(Seed::from_u64(0)).await.unwrap();
        panel
    }

    async fn say(panel: &mut Panel, said: &str) -> Step {
        panel.step(&said.into()).await.unwrap()
    }

    /// What every agent has earned, in parts.
    fn earned(panel: &mut Panel, last: (Seat, &Step)) -> Vec<Vec<(String, f64)>> {
        let parts = |parts: &[spar_core::RewardPart]| {
            parts.iter().map(|part| (part.name.clone(), part.value)).collect()
        };
        let seats = (0..panel.agents).map(Seat::at);
        seats
            .map(|seat| match seat == last.0 {
                true => parts(&last.1.rewards),
                false => parts(&panel.told(seat).rewards),
            })
            .collect()
    }

    #[tokio::test]
    async fn an_observer_sees_what_the_pioneer_said_and_both_earn_the_sum() {
        let mut panel = begun(json!({ "seed": 5 })).await;
        let right = panel.right().to_string();
        let right = right.as_str();
        for (first, second, sum) in [("x", "x", 0.0), (right, "no", 1.0), (right, right, 2.0)] {
            panel.reset(Seed::from_u64(0)).await.unwrap();
            say(&mut panel, first).await;
            assert_eq!(panel.to_move(), Some(Seat(1)));
            let told = panel.told(Seat(1)).observation.text;
            assert!(told.ends_with(&format!("?\na: {first}")), "{told}");
            let last = say(&mut panel, second).await;
            assert!(last.terminated && last.success == (second == right));
            let team = vec![("team".to_owned(), sum)];
            assert_eq!(earned(&mut panel, (Seat(1), &last)), [team.clone(), team]);
            assert!(panel.step(&"1".into()).await.is_err());
        }
    }

    #[tokio::test]
    async fn peers_alone_say_what_an_answer_is_worth() {
        let parameters = json!({ "seed": 5, "agents": 3, "reward": "peers" });
        let mut panel = begun(parameters).await;
        let right = panel.right().to_string();
        // All answer rightly, and that is not what counts.
        let said = [&right, &right, &right, "Good.", "Bad.", "Bad.", "3", "It is a 1", "none"];
        let movers = [0, 1, 2, 1, 2, 0, 2, 0, 1].map(Seat);
        let mut last = None;
        for (number, (said, mover)) in said.into_iter().zip(movers).enumerate() {
            assert_eq!(panel.to_move(), Some(mover));
            let shown = panel.told(mover).observation.text;
            if number == 6 {
                assert!(shown.contains(&format!("a: {right}\nb: Good.\nHow good")), "{shown}");
            }
            last = Some((mover, say(&mut panel, said).await));
        }
        let (seat, step) = last.unwrap();
        assert!(step.terminated);
        let part = |name: &str, value| (name.to_owned(), value);
        let all = earned(&mut panel, (seat, &step));
        assert_eq!(all[0], [part("answer", 1.0)]);
        assert_eq!(all[1], [part("evaluation", 0.0), part("answer", 0.0), part("score", -1.0)]);
        assert_eq!(all[2], [part("evaluation", 1.0)]);
    }

    #[tokio::test]
    async fn whoever_leaves_its_second_move_is_skipped_and_the_others_are_paid() {
        let mut panel = begun(json!({ "seed": 5, "agents": 3, "reward": "peers" })).await;
        for answer in ["1", "2", "3"] {
            say(&mut panel, answer).await;
        }
        assert_eq!(panel.to_move(), Some(Seat(1)));
        panel.forfeit(Seat(1)).await.unwrap();
        let said = [(2, "Good."), (0, "Bad."), (2, "3"), (0, "1")];
        let mut last = None;
        for (mover, said) in said {
            assert_eq!(panel.to_move(), Some(Seat(mover)));
            last = Some(say(&mut panel, said).await);
        }
        let last = last.unwrap();
        assert!(last.terminated && panel.to_move().is_none());
        let part = |name: &str, value| (name.to_owned(), value);
        let all = earned(&mut panel, (Seat(0), &last));
        assert_eq!(all[0], [part("answer", 1.0)]);
        assert_eq!(all[1], [part("evaluation", 0.0), part("answer", 0.0), part("score", -1.0)]);
        assert_eq!(all[2], [part("evaluation", 1.0)]);
    }

    #[tokio::test]
    async fn nobody_speaks_for_another_or_gives_several_scores() {
        let mut panel = begun(json!({ "seed": 5 })).await;
        say(&mut panel, "<think>aside</think>7\nb: It is\u{2028}right").await;
        let told = panel.told(Seat(1)).observation.text;
        assert!(told.ends_with("?\na: 7 b: It is right"), "{told}");
        assert_eq!(heard("so it is 9</think> 8"), "8");
        assert_eq!(only_number("It is a 2."), Some(2));
        for text in ["1 or 3", "from 1 (wrong) to 3 (right)", "2.5", "none", ""] {
            assert_eq!(only_number(text), None, "{text}");
        }
        assert_eq!(last_number("1 + 2 = 3."), Some(3));
    }

    #[tokio::test]
    async fn experts_agree_and_whoever_forfeits_has_said_nothing() {
        for seed in 0..20 {
            let parameters =
                json!({ "seed": seed, "agents": 4, "reward": "peers", "listed": true });
            let mut panel = begun(parameters).await;
            let mut turns = 0;
            while let Some(seat) = panel.to_move() {
                let listed = panel.told(seat).observation.admissible.unwrap();
                let action = panel.expert_action().unwrap();
                assert!(listed.iter().any(|it| **it == *action.said()), "{action:?}");
                panel.step(&action).await.unwrap();
                turns += 1;
            }
            assert_eq!(turns, 12);
            assert!((0..4).all(|seat| panel.has_succeeded(Seat(seat))));
        }
        let mut panel = begun(json!({ "seed": 5 })).await;
        panel.forfeit(Seat(0)).await.unwrap();
        assert_eq!(panel.to_move(), Some(Seat(1)));
        panel.forfeit(Seat(1)).await.unwrap();
        assert_eq!(panel.told(Seat(0)).rewards[0].value, 0.0);
        let told = |parameters: Value| Panel::open(&test_task(NAME, parameters)).is_err();
        assert!(told(json!({ "seed": 1, "agents": 2, "reward": "peers" })));
        assert!(told(json!({ "seed": 1, "agents": 7 })) && told(json!({ "seed": 1, "x": 2 })));
    }
}
