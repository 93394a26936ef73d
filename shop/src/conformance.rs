//! Visits of WebShop itself, played again.
//!
//! `scripts/record_shop.py` records them: its server, pages and rewards over made-up products, with a search that finds all of these in
//! their order, and with our rule for nouns in the place of its tagger.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::error::ShopError;
use crate::files::LoadedProducts;
use crate::goal::Goal;
use crate::{Catalogue, PageText, Session, ShopAction, Showing};

/// How many differences are described; the others are only counted.
const DESCRIBED: usize = 12;
/// Of what differs so many characters are shown, from shortly before it.
const SHOWN: usize = 200;

/// The outcome of [`replay_visits`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VisitsReport {
    /// Files that were read.
    pub files: usize,
    /// Visits in them.
    pub traces: usize,
    /// Goals, prices and pages that were compared.
    pub records: usize,
    /// Those that differ; what comes behind a different page in its visit is not compared.
    pub mismatches: usize,
    /// The first differences.
    pub described: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    items: Value,
    attributes: Value,
    instructions: Value,
    suites: Vec<RecordedSuite>,
}

/// The visits over one kind of goals.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedSuite {
    human: bool,
    prices: serde_json::Map<String, Value>,
    goals: Vec<RecordedGoal>,
    visits: Vec<RecordedVisit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedGoal {
    asin: String,
    instruction_text: String,
    attributes: Vec<String>,
    price_upper: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedVisit {
    goal: usize,
    mode: PageText,
    attributes: bool,
    steps: Vec<RecordedStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedStep {
    action: Option<String>,
    text: String,
    reward: f64,
    done: bool,
    clickables: Option<Vec<String>>,
}

/// Plays the visits of a recording again, or those of all recordings of a folder, whose names end in `.json`, and compares goals, prices,
/// pages, clicks and rewards.
///
/// # Errors
///
/// What cannot be read, or is no recording.
pub fn replay_visits(path: &Path) -> Result<VisitsReport, ShopError> {
    let io = |source| ShopError::Io { path: path.to_owned(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(io)? {
            files.push(entry.map_err(io)?.path());
        }
        files.retain(|file| file.extension().is_some_and(|it| it == "json"));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut report = VisitsReport::default();
    for file in files {
        let text = fs::read_to_string(&file)
            .map_err(|source| ShopError::Io { path: file.clone(), source })?;
        replay_recording(&text, &file, &mut report)?;
    }
    Ok(report)
}

fn replay_recording(text: &str, path: &Path, report: &mut VisitsReport) -> Result<(), ShopError> {
    let recording: Recording = serde_json::from_str(text)
        .map_err(|source| ShopError::Form { path: path.to_owned(), source })?;
    report.files += 1;
    for suite in &recording.suites {
        let instructions = suite.human.then_some(&recording.instructions);
        let loaded = LoadedProducts::from_values(
            &recording.items,
            &recording.attributes,
            instructions,
            path,
        )?;
        suite.replay(loaded, path, report)?;
    }
    Ok(())
}

impl VisitsReport {
    /// Counts what was compared, and tells where it differs.
    fn compare(&mut self, difference: Option<String>) -> bool {
        self.records += 1;
        let is_equal = difference.is_none();
        if let Some(difference) = difference {
            self.mismatches += 1;
            if self.described.len() < DESCRIBED {
                self.described.push(difference);
            }
        }
        is_equal
    }
}

impl RecordedSuite {
    fn replay(
        &self,
        (mut loaded, index): (LoadedProducts, crate::index::SearchIndex),
        path: &Path,
        report: &mut VisitsReport,
    ) -> Result<(), ShopError> {
        let refuse = |detail| ShopError::Meaning { path: path.to_owned(), detail };
        for product in &mut loaded.products {
            let price = self.prices.get(&product.asin).and_then(Value::as_f64);
            let price = price.ok_or_else(|| {
                refuse(format!("there is no price of product `{}`", product.asin))
            })?;
            // Between two bounds the price is drawn.
            let is_drawn = product.price_tag.contains(" to ");
            let differs = !is_drawn && product.price != price;
            report.compare(differs.then(|| {
                format!("product {}: it costs {}, not {price}", product.asin, product.price)
            }));
            Arc::make_mut(product).price = price;
        }
        let (ours, theirs) = (loaded.goals.len(), self.goals.len());
        report.compare((ours != theirs).then(|| format!("there are {ours} goals, not {theirs}")));
        let mut are_equal = Vec::new();
        for (number, (ours, theirs)) in loaded.goals.iter().zip(&self.goals).enumerate() {
            let difference = theirs.difference(ours, &loaded);
            let told = difference.map(|told| format!("goal {number}: {told}"));
            are_equal.push(report.compare(told));
        }
        let products = loaded.products.clone();
        let goals = loaded.goals.clone();
        let catalogue = Arc::new(Catalogue::from_loaded(LoadedProducts { products, goals }, index));
        for (number, visit) in self.visits.iter().enumerate() {
            report.traces += 1;
            let theirs = self.goals.get(visit.goal).ok_or_else(|| {
                refuse(format!("visit {number} is about goal {}, of {theirs}", visit.goal))
            })?;
            // One that differs is told already, and there is nothing to be visited for.
            if !are_equal.get(visit.goal).is_some_and(|it| *it) {
                continue;
            }
            let mut goal = Goal::clone(&loaded.goals[visit.goal]);
            goal.price_upper = theirs.price_upper;
            goal.instruction.clone_from(&theirs.instruction_text);
            let showing = Showing { text: visit.mode, attributes: visit.attributes };
            let session = Session::new(Arc::clone(&catalogue), Arc::new(goal), showing);
            let whose = if self.human { "people's" } else { "made" };
            visit.replay(session, &format!("visit {number} of {whose} goals"), report);
        }
        Ok(())
    }
}

impl RecordedGoal {
    fn difference(&self, goal: &Goal, loaded: &LoadedProducts) -> Option<String> {
        let asin = &loaded.products[goal.product].asin;
        if *asin != self.asin {
            return Some(format!("it is about product {asin}, not {}", self.asin));
        }
        let (ours, theirs) =
            (without_limit(&goal.instruction), without_limit(&self.instruction_text));
        if ours != theirs {
            return Some(format!("it says {ours:?}, not {theirs:?}"));
        }
        let (ours, theirs) = (&goal.attributes, &self.attributes);
        (ours != theirs).then(|| format!("it has the attributes {ours:?}, not {theirs:?}"))
    }
}

impl RecordedVisit {
    /// Plays the visit again, to its end or to the first page that differs.
    fn replay(&self, mut session: Session, name: &str, report: &mut VisitsReport) {
        for (number, step) in self.steps.iter().enumerate() {
            if let Some(action) = &step.action {
                let read = ShopAction::read(action);
                let done = read.is_some_and(|action| session.act(action));
                if done && matches!(read, Some(ShopAction::Search(_))) {
                    session.find_all();
                }
            }
            let difference = step.difference(&session).map(|told| {
                let action = step.action.as_deref().unwrap_or("the beginning");
                format!("{name}, step {number} ({action}): {told}")
            });
            if !report.compare(difference) {
                return;
            }
        }
    }
}

impl RecordedStep {
    fn difference(&self, session: &Session) -> Option<String> {
        let text = session.text();
        if text != self.text {
            return Some(first_difference(&text, &self.text));
        }
        let bought = session.bought();
        let reward = bought.as_ref().map_or(0.0, |reward| reward.total);
        if reward.to_bits() != self.reward.to_bits() {
            return Some(format!("the reward is {reward}, not {}", self.reward));
        }
        if bought.is_some() != self.done {
            return Some(format!("it ends: {}, not {}", bought.is_some(), self.done));
        }
        let mut ours = Vec::new();
        session.each_clickable(|what| ours.push(what.to_owned()));
        let mut theirs = self.clickables.clone()?;
        theirs.retain(|what| what != "search");
        for list in [&mut ours, &mut theirs] {
            list.sort();
            list.dedup();
        }
        (ours != theirs).then(|| format!("what can be clicked is {ours:?}, not {theirs:?}"))
    }
}

/// What can be said of a goal apart from the limit of its price, which WebShop draws anew in every process.
fn without_limit(instruction: &str) -> &str {
    instruction.split(", and price lower than").next().expect("a split has a first part")
}

/// Two texts from shortly before where they part.
fn first_difference(ours: &str, theirs: &str) -> String {
    let equal = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
    let shown =
        |text: &str| text.chars().skip(equal.saturating_sub(20)).take(SHOWN).collect::<String>();
    format!("the page has {:?}, not {:?}", shown(ours), shown(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::GoalSource;

    /// Recorded by `scripts/record_shop.py`.
    const RECORDING: &str = include_str!("../tests/webshop.json");

    fn replay(text: &str) -> VisitsReport {
        let mut report = VisitsReport::default();
        replay_recording(text, Path::new("webshop.json"), &mut report).unwrap();
        report
    }

    #[test]
    fn visits_are_as_webshop_has_recorded_them() {
        let report = replay(RECORDING);
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
        assert_eq!((report.files, report.traces), (1, 16));
        assert!(report.records > 200, "{report:?}");
        for mode in ["\"text\"", "\"text_rich\""] {
            assert!(RECORDING.contains(&format!("\"mode\":{mode}")), "{mode}");
        }
    }

    #[test]
    fn what_differs_is_told_where_it_is() {
        let whole: Value = serde_json::from_str(RECORDING).unwrap();
        let told = |change: &dyn Fn(&mut Value)| {
            let mut changed = whole.clone();
            change(&mut changed["suites"][0]);
            let report = replay(&changed.to_string());
            assert_eq!(report.mismatches, 1, "{:#?}", report.described);
            report.described[0].clone()
        };
        let page = told(&|suite| suite["visits"][0]["steps"][0]["text"] = "Nothing".into());
        assert!(page.starts_with("visit 0 of people's goals, step 0 (the beginning): "), "{page}");
        assert!(page.contains("\"Nothing\""), "{page}");
        let reward = told(&|suite| suite["visits"][0]["steps"][1]["reward"] = 0.25.into());
        assert!(reward.contains("step 1") && reward.contains("not 0.25"), "{reward}");
        let clicks = told(&|suite| {
            suite["visits"][1]["steps"][1]["clickables"] = serde_json::json!(["nothing"]);
        });
        assert!(clicks.contains("visit 1") && clicks.contains("[\"nothing\"]"), "{clicks}");
        let goal = told(&|suite| suite["goals"][0]["asin"] = "B0".into());
        assert!(goal.starts_with("goal 0: it is about product B0"), "{goal}");
        let count = told(&|suite| {
            let mut goal = suite["goals"][0].clone();
            goal["asin"] = "B1".into();
            suite["goals"].as_array_mut().unwrap().push(goal);
        });
        assert!(count.contains("goals, not"), "{count}");
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let refused = |text: &str| {
            let error = replay_recording(text, Path::new("a.json"), &mut VisitsReport::default());
            error.unwrap_err().to_string()
        };
        assert!(refused("{}").contains("`a.json`"));
        let mut whole: Value = serde_json::from_str(RECORDING).unwrap();
        whole["suites"][0]["visits"][0]["goal"] = 9999.into();
        assert!(refused(&whole.to_string()).contains("visit 0 is about goal 9999"));
        let error = replay_visits(Path::new("/nonexistent/visits.json")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/visits.json"), "{error}");
    }

    #[test]
    fn files_of_another_form_are_told_by_name() {
        let folder = std::env::temp_dir().join(format!("spar-shop-forms-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let told = |goals| {
            let error = LoadedProducts::load(&folder, goals).map(|_| ()).unwrap_err();
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!("{error}: {}", cause.unwrap_or_default())
        };
        assert!(told(None).contains("items_shuffle.json"));
        write("items_ins_v2.json", "{}");
        for (items, expected) in [
            ("{", "is not of WebShop's form"),
            (r#"[{"asin": "a"}]"#, "missing field `name`"),
            (
                r#"[{"asin": "a", "name": "n", "pricing": "$x", "category": "c", "query": "q", "product_category": "p"}]"#,
                "product `a`: `$x` is no price",
            ),
            (
                r#"[{"asin": "a", "name": "n", "pricing": "12", "category": "c", "query": "q", "product_category": "p"}]"#,
                "no `$`",
            ),
            (
                r#"[{"asin": "a", "name": "n", "customization_options": {"Color": [1]}, "category": "c", "query": "q", "product_category": "p"}]"#,
                "option `Color`",
            ),
        ] {
            write("items_shuffle.json", items);
            assert!(told(None).contains(expected), "{}", told(None));
        }
        assert!(told(Some(GoalSource::Human)).contains("items_human_ins.json"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
