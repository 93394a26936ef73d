//! A shop in text: search, look, choose and buy what an instruction asks for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step};
use spar_shop::{
    Catalogue, Goal, GoalSource, PageText, Part, Place, Session, ShopAction, Showing, oracle,
    reader,
};
use spar_tasks::Task;

use crate::{Environment, EnvironmentError};

const NAME: &str = "shop";

/// A visit of a shop with WebShop's pages, actions and rewards.
///
/// Parameters of generated tasks: `seed` (of the goal), `catalogue` (seed of the products, default 0), `products` (how many, 10 to 1,000,000, default
/// 100,000), `part` (which products are goals: `any`, `train`, `dev` or `test`; default `any`). Of WebShop's own files: `folder`, `goal`
/// (place of the goal in WebShop's order) and `goals` (`human` or `synthetic`; default people's where there are some). Of both:
/// `text` (`text` or `text_rich`, default `text`) and `attributes` (whether products have a page of their attributes, default false).
///
/// Actions are `search[words]` and `click[what]`; whatever else is said, and clicks on what is not on the page, leave the page as it is. `Buy
/// Now` ends the task and earns the reward part `purchase`, 0 to 1, by WebShop's rule; the task is solved where that is 1.
/// The listed actions are the clicks, and at the search bar a search for the words of the instruction; other searches can be
/// made from every page.
#[derive(Debug, Clone)]
pub struct Shop {
    shared: Arc<Shared>,
    session: Option<Session>,
}

#[derive(Debug)]
struct Shared {
    catalogue: Arc<Catalogue>,
    goal: Arc<Goal>,
    showing: Showing,
    instruction: Arc<str>,
    /// The search that is listed.
    search: Option<Arc<str>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: Option<u64>,
    #[serde(default)]
    catalogue: u64,
    #[serde(default = "all_products")]
    products: usize,
    #[serde(default)]
    part: Part,
    folder: Option<PathBuf>,
    goal: Option<usize>,
    goals: Option<GoalSource>,
    #[serde(default)]
    text: PageText,
    #[serde(default)]
    attributes: bool,
}

fn all_products() -> usize {
    100_000
}

impl Shop {
    /// Opens the shop of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or its files cannot be read.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let (catalogue, goal, showing) = beginning(&task.parameters).map_err(|detail| {
            EnvironmentError::Parameters { task: task.id.clone(), environment: NAME, detail }
        })?;
        let asked = goal.instruction.split(", and price lower than ").next().unwrap_or_default();
        let asked = asked.replace(['[', ']', '\n', '\r'], " ");
        let search = (!asked.trim().is_empty()).then(|| format!("search[{asked}]").into());
        let instruction = goal.instruction.as_str().into();
        let shared = Shared { catalogue, goal, showing, instruction, search };
        Ok(Self { shared: Arc::new(shared), session: None })
    }

    fn observe(&self, session: &Session) -> Observation {
        let mut listed: Vec<Arc<str>> = Vec::with_capacity(32);
        let mut action = String::with_capacity(64);
        session.each_clickable(|what| {
            // What does not survive its brackets cannot be clicked by anybody.
            if !what.contains('\n') {
                action.clear();
                action.push_str("click[");
                action.push_str(what);
                action.push(']');
                if ShopAction::read(&action) == Some(ShopAction::Click(what)) {
                    listed.push(action.as_str().into());
                }
            }
        });
        if session.place() == Place::Search {
            listed.extend(self.shared.search.clone());
        }
        listed.sort_unstable();
        listed.dedup();
        Observation {
            text: session.text(),
            admissible: Some(listed.into()),
            state_key: session.key(),
            ..Observation::default()
        }
    }
}

/// The goods, the goal and the form of pages that parameters of a task tell of, or what is wrong with them.
pub(crate) fn beginning(
    parameters: &serde_json::Value,
) -> Result<(Arc<Catalogue>, Arc<Goal>, Showing), String> {
    let given = Parameters::deserialize(parameters).map_err(|error| error.to_string())?;
    let (catalogue, goal) = match (&given.folder, given.seed, given.goal) {
        (None, Some(seed), None) => {
            if given.goals.is_some() {
                return Err("`goals` is for a `folder`".to_owned());
            }
            let catalogue = Catalogue::generated(given.catalogue, given.products)
                .map_err(|error| error.to_string())?;
            let seed = Seed::from_u64(seed).derive(NAME, "goal");
            let goal = catalogue.draw_goal(seed, given.part).map(Arc::new);
            let goal = goal.ok_or_else(|| "the catalogue has no drawn goals".to_owned())?;
            (catalogue, goal)
        }
        (Some(folder), None, Some(goal)) => {
            let catalogue = Catalogue::load(folder, given.goals)
                .map_err(|error| crate::validate::chain(&error))?;
            let goals = catalogue.goals().unwrap_or_default();
            let all = goals.len();
            let goal = goals.get(goal).map(Arc::clone);
            let goal =
                goal.ok_or_else(|| format!("`goal` is not below {all}, the number of goals"))?;
            (catalogue, goal)
        }
        _ => {
            let detail = "either `seed`, or `folder` and `goal`, are needed, and not both";
            return Err(detail.to_owned());
        }
    };
    Ok((catalogue, goal, Showing { text: given.text, attributes: given.attributes }))
}

#[async_trait]
impl Environment for Shop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let goal = &self.shared.goal;
        let demands = goal.attributes.len() + goal.options.len();
        vec![format!("demands-{}", demands.min(9))]
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let shared = &self.shared;
        let (catalogue, goal) = (Arc::clone(&shared.catalogue), Arc::clone(&shared.goal));
        let session = Session::new(catalogue, goal, shared.showing);
        let mut first = self.observe(&session);
        first.instruction = Some(Arc::clone(&shared.instruction));
        self.session = Some(session);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let session = self.session.as_mut().ok_or(misused("before reset"))?;
        if session.bought().is_some() {
            return Err(misused("after the end"));
        }
        let valid =
            ShopAction::read(action.said().trim()).is_some_and(|action| session.act(action));
        let bought = session.bought().copied();
        let earned = bought.map_or(0.0, |reward| reward.total);
        let rewards = match earned > 0.0 {
            true => vec![RewardPart { name: "purchase".to_owned(), value: earned }],
            false => Vec::new(),
        };
        let session = self.session.as_ref().ok_or(misused("before reset"))?;
        Ok(Step {
            observation: self.observe(session),
            rewards,
            terminated: bought.is_some(),
            success: bought.is_some_and(|reward| reward.is_success()),
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        oracle(self.session.as_ref()?).map(Action::from)
    }

    /// The reader: it searches for the instruction's words and opens what looks most like them.
    fn expert_action(&mut self) -> Option<Action> {
        reader(self.session.as_ref()?).map(Action::from)
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn shop(parameters: Value) -> Shop {
        let mut shop = Shop::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(shop.reset(Seed::from_u64(0))).unwrap();
        shop
    }

    fn say(shop: &mut Shop, text: &str) -> Step {
        block_on(shop.step(&text.into())).unwrap()
    }

    #[test]
    fn the_oracle_buys_what_is_wanted_and_the_reader_something_like_it() {
        let (mut solved, mut earned) = (0, 0.0);
        for seed in 0..100 {
            let parameters = json!({ "seed": seed, "products": 5_000, "part": "test" });
            let mut shop = shop(parameters);
            let mut by_reader = shop.clone();
            for turn in 0.. {
                let action = shop.oracle_action().unwrap();
                let step = block_on(shop.step(&action)).unwrap();
                assert!(step.valid && turn < 12, "{action}");
                if step.terminated {
                    assert!(step.success && step.reward() == 1.0, "{action}");
                    break;
                }
            }
            for _ in 0..12 {
                let action = by_reader.expert_action().unwrap();
                let step = block_on(by_reader.step(&action)).unwrap();
                earned += step.reward();
                solved += usize::from(step.success);
                if step.terminated {
                    break;
                }
            }
        }
        assert!(earned > 30.0 && solved < 90, "{earned} and {solved} of 100");
    }

    #[test]
    fn cheats_earn_nothing() {
        let mut shop = shop(json!({ "seed": 3, "products": 1_000 }));
        let before = block_on(shop.reset(Seed::from_u64(0))).unwrap();
        let giant = format!("click[{}]", "buy now".repeat(2_000_000));
        let deep = "search[".repeat(200_000);
        for said in [
            "click[buy now]",
            "click[search]",
            "click[Search]",
            "search[]",
            "buy",
            "click[b000000000]",
            &giant,
            &deep,
            "\u{0}[]",
            "",
        ] {
            let step = say(&mut shop, said);
            let same = (&step.observation.text, &step.observation.state_key);
            assert_eq!(same, (&before.text, &before.state_key));
            assert!(!step.valid && step.rewards.is_empty() && !step.terminated);
        }
        // A product that is not on the page cannot be opened, even where its number is right.
        let asin = shop.shared.catalogue.product(shop.shared.goal.product).asin.clone();
        say(&mut shop, "search[zzzzz]");
        assert!(!say(&mut shop, &format!("click[{asin}]")).valid);
        let listing = say(&mut shop, &format!("search[{}]", "wort shirt ".repeat(1_000_000)));
        assert!(listing.valid && listing.observation.state_key.len() < 5_000);
        // What was bought was bought: nothing comes behind it.
        let first = listing.observation.admissible.unwrap();
        let product = first.iter().find(|it| it.starts_with("click[b0")).unwrap().to_string();
        assert!(say(&mut shop, &product).valid);
        assert!(say(&mut shop, "click[Buy Now]").terminated);
        assert!(block_on(shop.step(&"click[Buy Now]".into())).is_err());
    }

    #[test]
    fn forks_go_their_own_way() {
        let mut shop =
            shop(json!({ "seed": 5, "products": 1_000, "text": "text_rich", "attributes": true }));
        for _ in 0..2 {
            let action = shop.oracle_action().unwrap();
            block_on(shop.step(&action)).unwrap();
        }
        let mut fork = block_on(shop.fork()).unwrap().unwrap();
        let there = say(&mut shop, "click[Attributes]").observation;
        let here = block_on(fork.step(&"click[back to search]".into())).unwrap().observation;
        assert_ne!(there.state_key, here.state_key);
        assert!(there.text.contains("› ") && here.text.starts_with("WebShop\nInstruction: \n"));
    }

    #[test]
    fn parameters_are_strict() {
        for wrong in [
            json!({}),
            json!({ "seed": 1, "goal": 1 }),
            json!({ "seed": 1, "products": 9 }),
            json!({ "seed": 1, "products": 2_000_000 }),
            json!({ "seed": 1, "part": "valid" }),
            json!({ "seed": 1, "goals": "human" }),
            json!({ "seed": 1, "text": "html" }),
            json!({ "folder": "/nowhere", "goal": 0 }),
            json!({ "seed": 1, "size": 3 }),
        ] {
            assert!(Shop::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }

    /// The episode that docs/shop.md shows.
    #[test]
    fn the_documented_episode_is_played_so() {
        let mut shop = shop(json!({ "seed": 2_000_000, "products": 100_000, "part": "test" }));
        let first = block_on(shop.reset(Seed::from_u64(0))).unwrap();
        let mut told = format!("{}\n", first.text);
        let mut reward = 0.0;
        while let Some(action) = shop.expert_action() {
            let step = block_on(shop.step(&action)).unwrap();
            told.push_str(&format!("\n> {action}\n{}\n", step.observation.text));
            reward += step.reward();
        }
        told.push_str(&format!("\nreward {reward}\n"));
        let page = include_str!("../../docs/shop.md");
        assert!(page.contains(&told), "docs/shop.md is to show:\n{told}");
    }
}
