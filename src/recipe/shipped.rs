//! The recipes that ship.

use std::path::Path;

use spar_core::registry::{AnyTable, Axis, DescribedRow, known_names};

use super::{Recipe, RecipeError};

/// The recipes that ship, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("household", include_str!("../../recipes/household.toml")),
    ("household-few", include_str!("../../recipes/household-few.toml")),
    ("household-rewards", include_str!("../../recipes/household-rewards.toml")),
    ("alfworld", include_str!("../../recipes/alfworld.toml")),
    ("frozen-lake", include_str!("../../recipes/frozen-lake.toml")),
    ("frozen-lake-ppo", include_str!("../../recipes/frozen-lake-ppo.toml")),
    ("frozen-lake-progress", include_str!("../../recipes/frozen-lake-progress.toml")),
    ("grid-small", include_str!("../../recipes/grid-small.toml")),
    ("ledger", include_str!("../../recipes/ledger.toml")),
    ("apps", include_str!("../../recipes/apps.toml")),
    ("sql", include_str!("../../recipes/sql.toml")),
    ("tools-small", include_str!("../../recipes/tools-small.toml")),
    ("repair-micro", include_str!("../../recipes/repair-micro.toml")),
    ("tau2", include_str!("../../recipes/tau2.toml")),
    ("tic-tac-toe", include_str!("../../recipes/tic-tac-toe.toml")),
    ("games-small", include_str!("../../recipes/games-small.toml")),
    ("miniwob-small", include_str!("../../recipes/miniwob-small.toml")),
    ("selfplay", include_str!("../../recipes/selfplay.toml")),
    ("mars", include_str!("../../recipes/mars.toml")),
    ("self-redteam", include_str!("../../recipes/self-redteam.toml")),
    ("cory", include_str!("../../recipes/cory.toml")),
    ("comas", include_str!("../../recipes/comas.toml")),
    ("marft", include_str!("../../recipes/marft.toml")),
    ("nlhf", include_str!("../../recipes/nlhf.toml")),
    ("preferences", include_str!("../../recipes/preferences.toml")),
    ("offline", include_str!("../../recipes/offline.toml")),
    ("terminal", include_str!("../../recipes/terminal.toml")),
    ("retool", include_str!("../../recipes/retool.toml")),
    ("smol-tools", include_str!("../../recipes/smol-tools.toml")),
    ("smol-tools-all", include_str!("../../recipes/smol-tools-all.toml")),
    ("swe-local", include_str!("../../recipes/swe-local.toml")),
    ("adapter", include_str!("../../recipes/adapter.toml")),
    ("quick", include_str!("../../recipes/quick.toml")),
    // Published methods, each a choice on every axis, on household chores with few demonstrations.
    ("grpo", include_str!("../../recipes/methods/grpo.toml")),
    ("dr-grpo", include_str!("../../recipes/methods/dr-grpo.toml")),
    ("dapo", include_str!("../../recipes/methods/dapo.toml")),
    ("lite-ppo", include_str!("../../recipes/methods/lite-ppo.toml")),
    ("scale-rl", include_str!("../../recipes/methods/scale-rl.toml")),
    ("rloo", include_str!("../../recipes/methods/rloo.toml")),
    ("reinforce-pp", include_str!("../../recipes/methods/reinforce-pp.toml")),
    ("remax", include_str!("../../recipes/methods/remax.toml")),
    ("opo", include_str!("../../recipes/methods/opo.toml")),
    ("gpg", include_str!("../../recipes/methods/gpg.toml")),
    ("ppo", include_str!("../../recipes/methods/ppo.toml")),
    ("gdpo", include_str!("../../recipes/methods/gdpo.toml")),
    ("mc-grpo", include_str!("../../recipes/methods/mc-grpo.toml")),
    ("gigpo", include_str!("../../recipes/methods/gigpo.toml")),
    ("gigpo-similar", include_str!("../../recipes/methods/gigpo-similar.toml")),
    ("hgpo", include_str!("../../recipes/methods/hgpo.toml")),
    ("salt", include_str!("../../recipes/methods/salt.toml")),
    ("graph-gpo", include_str!("../../recipes/methods/graph-gpo.toml")),
    ("rtmc", include_str!("../../recipes/methods/rtmc.toml")),
    ("graft", include_str!("../../recipes/methods/graft.toml")),
    ("arpo", include_str!("../../recipes/methods/arpo.toml")),
    ("treeps", include_str!("../../recipes/methods/treeps.toml")),
    ("r3l", include_str!("../../recipes/methods/r3l.toml")),
    ("spa", include_str!("../../recipes/methods/spa.toml")),
    ("archer", include_str!("../../recipes/methods/archer.toml")),
    ("copo", include_str!("../../recipes/methods/copo.toml")),
    ("ace", include_str!("../../recipes/methods/ace.toml")),
    ("w-reinforce", include_str!("../../recipes/methods/w-reinforce.toml")),
    ("nsr", include_str!("../../recipes/methods/nsr.toml")),
    ("otb", include_str!("../../recipes/methods/otb.toml")),
    ("gspo", include_str!("../../recipes/methods/gspo.toml")),
    ("cispo", include_str!("../../recipes/methods/cispo.toml")),
    ("gmpo", include_str!("../../recipes/methods/gmpo.toml")),
    ("sapo-gate", include_str!("../../recipes/methods/sapo-gate.toml")),
    ("dppo", include_str!("../../recipes/methods/dppo.toml")),
    ("minpro", include_str!("../../recipes/methods/minpro.toml")),
    ("fiberpo", include_str!("../../recipes/methods/fiberpo.toml")),
    ("clip-cov", include_str!("../../recipes/methods/clip-cov.toml")),
    ("kl-cov", include_str!("../../recipes/methods/kl-cov.toml")),
    ("epo", include_str!("../../recipes/methods/epo.toml")),
    ("entropy-tokens", include_str!("../../recipes/methods/entropy-tokens.toml")),
    ("vcpo", include_str!("../../recipes/methods/vcpo.toml")),
    ("tis", include_str!("../../recipes/methods/tis.toml")),
    ("disco", include_str!("../../recipes/methods/disco.toml")),
    ("drpo", include_str!("../../recipes/methods/drpo.toml")),
    ("nft", include_str!("../../recipes/methods/nft.toml")),
    ("pacs", include_str!("../../recipes/methods/pacs.toml")),
    ("kimi", include_str!("../../recipes/methods/kimi.toml")),
    ("topr", include_str!("../../recipes/methods/topr.toml")),
    ("pods", include_str!("../../recipes/methods/pods.toml")),
    ("pf-ppo", include_str!("../../recipes/methods/pf-ppo.toml")),
    ("vade", include_str!("../../recipes/methods/vade.toml")),
    ("dots", include_str!("../../recipes/methods/dots.toml")),
    ("sec", include_str!("../../recipes/methods/sec.toml")),
    ("dump", include_str!("../../recipes/methods/dump.toml")),
    ("gdro", include_str!("../../recipes/methods/gdro.toml")),
    ("dars", include_str!("../../recipes/methods/dars.toml")),
    ("balanced", include_str!("../../recipes/methods/balanced.toml")),
    ("drive", include_str!("../../recipes/methods/drive.toml")),
    ("low-likelihood", include_str!("../../recipes/methods/low-likelihood.toml")),
    ("xrpo", include_str!("../../recipes/methods/xrpo.toml")),
    ("agentgym-rl", include_str!("../../recipes/methods/agentgym-rl.toml")),
    ("scaling-inter", include_str!("../../recipes/methods/scaling-inter.toml")),
    ("campo", include_str!("../../recipes/methods/campo.toml")),
    ("agentic", include_str!("../../recipes/methods/agentic.toml")),
    ("ttrl", include_str!("../../recipes/methods/ttrl.toml")),
    ("fapo", include_str!("../../recipes/methods/fapo.toml")),
    ("prof", include_str!("../../recipes/methods/prof.toml")),
    ("recap", include_str!("../../recipes/methods/recap.toml")),
    ("hypervolume", include_str!("../../recipes/methods/hypervolume.toml")),
    ("ghpo", include_str!("../../recipes/methods/ghpo.toml")),
    ("agent-rlvr", include_str!("../../recipes/methods/agent-rlvr.toml")),
    ("critique-grpo", include_str!("../../recipes/methods/critique-grpo.toml")),
    ("scope", include_str!("../../recipes/methods/scope.toml")),
    ("cure", include_str!("../../recipes/methods/cure.toml")),
    ("latr", include_str!("../../recipes/methods/latr.toml")),
    ("refuel", include_str!("../../recipes/methods/refuel.toml")),
    ("dr-po", include_str!("../../recipes/methods/dr-po.toml")),
    ("f-dpg", include_str!("../../recipes/methods/f-dpg.toml")),
    ("ssr", include_str!("../../recipes/methods/ssr.toml")),
    ("rethink", include_str!("../../recipes/methods/rethink.toml")),
    ("adhint", include_str!("../../recipes/methods/adhint.toml")),
    ("prorl", include_str!("../../recipes/methods/prorl.toml")),
    ("ppo-max", include_str!("../../recipes/methods/ppo-max.toml")),
    ("salsa", include_str!("../../recipes/methods/salsa.toml")),
    ("kdrl", include_str!("../../recipes/methods/kdrl.toml")),
    ("sage", include_str!("../../recipes/methods/sage.toml")),
    ("april", include_str!("../../recipes/methods/april.toml")),
    ("arrol", include_str!("../../recipes/methods/arrol.toml")),
    ("ruscarl", include_str!("../../recipes/methods/ruscarl.toml")),
    ("v0-5", include_str!("../../recipes/methods/v0-5.toml")),
    ("relift", include_str!("../../recipes/methods/relift.toml")),
    ("ps-grpo", include_str!("../../recipes/methods/ps-grpo.toml")),
    ("polychromic", include_str!("../../recipes/methods/polychromic.toml")),
    ("expert-iteration", include_str!("../../recipes/methods/expert-iteration.toml")),
    ("ui-s1", include_str!("../../recipes/methods/ui-s1.toml")),
    ("ufo", include_str!("../../recipes/methods/ufo.toml")),
    ("bc", include_str!("../../recipes/methods/bc.toml")),
    ("percent-bc", include_str!("../../recipes/methods/percent-bc.toml")),
    ("a-lol", include_str!("../../recipes/methods/a-lol.toml")),
    ("digirl", include_str!("../../recipes/methods/digirl.toml")),
    ("direct-advantage", include_str!("../../recipes/methods/direct-advantage.toml")),
    ("hl-gauss", include_str!("../../recipes/methods/hl-gauss.toml")),
    ("rl-plus", include_str!("../../recipes/methods/rl-plus.toml")),
    ("dph-rl", include_str!("../../recipes/methods/dph-rl.toml")),
    ("imagined", include_str!("../../recipes/methods/imagined.toml")),
];

/// The names of the recipes that ship.
pub fn recipe_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The recipes that ship, as a table.
pub(crate) static SHIPPED_RECIPES: ShippedRecipes = ShippedRecipes;

/// The recipes that ship, as a table.
pub(crate) struct ShippedRecipes;

impl AnyTable for ShippedRecipes {
    fn axis(&self) -> Axis {
        Axis { name: "recipes", what: "recipe", about: "What `spar train` can do." }
    }

    fn describe(&self) -> Vec<DescribedRow> {
        let row = |(name, text): &(&str, &str)| DescribedRow {
            details: Vec::new(),
            name: (*name).to_owned(),
            about: Recipe::parse(name, text, &[]).map(|recipe| recipe.about).unwrap_or_default(),
            source: header(text),
            formula: String::new(),
            options: Vec::new(),
        };
        SHIPPED.iter().map(row).collect()
    }

    fn problems(&self) -> Vec<String> {
        let is_blank = |row: &DescribedRow| !row.about.ends_with('.') || row.source.is_empty();
        let blank = self.describe().into_iter().filter(is_blank);
        blank.map(|row| format!("recipe `{}` does not say what it is", row.name)).collect()
    }
}

/// The comment that a recipe begins with, which names the published method that it stands for.
fn header(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Recipe {
    /// The text of a recipe that ships, or of the file at a path.
    ///
    /// # Errors
    ///
    /// [`RecipeError`] when there is neither.
    pub fn text(name: &str) -> Result<String, RecipeError> {
        if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
            return Ok((*text).to_owned());
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let known = known_names(name, recipe_names());
            return Err(RecipeError::Unknown { name: name.to_owned(), known });
        }
        std::fs::read_to_string(path)
            .map_err(|source| RecipeError::Read { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_recipes_are_valid_and_round_trip() {
        for name in recipe_names() {
            // Those that adapt a model, or go on from one, leave open which.
            let text = Recipe::text(name).unwrap();
            let open = text.contains("[lora]") || text.contains("needs_model = true");
            let model: Vec<String> =
                open.then(|| "start_from=model".to_owned()).into_iter().collect();
            let recipe = Recipe::parse(name, &text, &model).unwrap();
            recipe.validate().unwrap();
            assert_eq!(recipe.name, name);
            let data = &recipe.data;
            let is_test = data.test.contains(&data.dev) || data.test.contains(&data.train);
            assert!(!is_test, "{name}: what is trained on or chooses is no test");
            // Stages are written with all their options.
            let again = Recipe::parse(name, &recipe.to_toml(), &[]).unwrap();
            assert_eq!(again.to_toml(), recipe.to_toml());
        }
    }

    #[test]
    fn rewards_are_shaped_only_where_a_recipe_says_so() {
        assert!(Recipe::default().reinforce.shapers.is_empty());
        for name in recipe_names() {
            let recipe = Recipe::parse(name, &Recipe::text(name).unwrap(), &[]).unwrap();
            let names: Vec<&str> =
                recipe.reinforce.shapers.iter().map(|shaper| shaper.name.as_str()).collect();
            let wanted: &[&str] = match name {
                "household" | "household-few" | "household-rewards" | "alfworld" | "quick" => {
                    &["length_discount"]
                }
                "dapo" => &["overlong"],
                "agentic" => &["overlong", "tool_cost"],
                "campo" => &["repetition"],
                "ttrl" => &["consensus"],
                "fapo" => &["flawed"],
                "ppo-max" => &["normalized"],
                "recap" => &["progress_weighted"],
                "hypervolume" => &["hypervolume", "repetition"],
                "sage" => &["skill_credit"],
                "ps-grpo" => &["agreement"],
                _ => &[],
            };
            assert_eq!(names, wanted, "{name}");
        }
        let bad = "[[reinforce.shapers]]\nname = 'length_discount'\noptions = { factor = 1.5 }\n\
                   [[reinforce.shapers]]\nname = 'potential'";
        let told = Recipe::parse("r", bad, &[]).unwrap().validate().unwrap_err().to_string();
        for part in ["factor is 1.5, must be", "reward shaper `potential`: known are"] {
            assert!(told.contains(part), "{told}");
        }
    }
}
