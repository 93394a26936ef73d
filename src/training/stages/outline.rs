//! The stages of a recipe for those who read.

use serde::Serialize;
use spar_trainer::TrainerConfig;

use super::{Place, Plan};
use crate::recipe::{Recipe, RecipeError};

/// A stage of a recipe in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageOutline {
    /// Tells it apart from the others.
    pub name: String,
    /// Its kind's name.
    pub kind: String,
    /// Who is trained, or plays.
    pub learner: String,
    /// Iterations of training; 0 where it trains nothing.
    pub iterations: u64,
    /// What it does and how much of it.
    pub budget: String,
    /// Turns that its episodes may have, where it says so.
    pub max_turns: Option<u32>,
    /// Earlier stages whose dev splits are played again behind it.
    pub re_evaluate: Vec<String>,
}

/// The stages of a recipe, in their order.
///
/// # Errors
///
/// [`RecipeError::Problems`] when they cannot be used.
pub fn outline(recipe: &Recipe) -> Result<Vec<StageOutline>, RecipeError> {
    let plan = Plan::of(recipe).map_err(|problems| RecipeError::Problems { problems })?;
    let outline = plan.stages().iter().map(|planned| StageOutline {
        name: planned.place.name.clone(),
        kind: planned.kind.clone(),
        learner: learner(&planned.place),
        iterations: planned.stage.iterations(),
        budget: planned.stage.budget(&planned.place.data),
        max_turns: planned.stage.max_turns(),
        re_evaluate: planned.re_evaluate.clone(),
    });
    Ok(outline.collect())
}

/// Who is trained, or plays, in words.
fn learner(place: &Place) -> String {
    if place.learners.is_empty() {
        return place.learner.clone();
    }
    let by = place.learners.iter().map(|(name, learner)| format!("{learner} in {name}"));
    by.collect::<Vec<_>>().join(", ")
}

/// How the last stage of a recipe that trains updates.
///
/// # Errors
///
/// As [`outline`].
pub fn last_trainer(recipe: &Recipe) -> Result<TrainerConfig, RecipeError> {
    let plan = Plan::of(recipe).map_err(|problems| RecipeError::Problems { problems })?;
    Ok(plan.last_trainer().clone())
}
