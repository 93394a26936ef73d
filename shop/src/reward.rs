//! What a purchase is worth: WebShop's rule (arXiv 2207.01206, section 3.3, and its `goal.py`).

use std::collections::BTreeSet;

use crate::colors::{base_color, exact_color};
use crate::fuzzy::token_set_ratio;
use crate::goal::{Goal, GoalOptions};
use crate::nouns::nouns;
use crate::product::Product;

/// Ratios above this are a match.
const ALIKE: u32 = 85;

/// What a purchase is worth, in parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PurchaseReward {
    /// `r_type · (attributes + options + price) / (|attributes| + |options| + 1)`, 0 to 1: what the purchase earns.
    pub total: f64,
    /// What of it the kind of product is worth: 1, 0.5, 0.1 or 0.
    pub r_type: f64,
    /// Whether the product was listed under the search of the goal's.
    pub query_match: bool,
    /// Whether the paths of categories have two names in common.
    pub category_match: bool,
    /// Of the nouns of the goal's name, the share that the purchase's name has.
    pub title_score: f64,
    /// Attributes of the goal that the purchase has.
    pub num_attributes: usize,
    /// Options of the goal that were chosen.
    pub num_options: usize,
    /// Whether the price is within the limit.
    pub is_in_budget: bool,
}

impl PurchaseReward {
    /// Whether all that was demanded is there.
    pub fn is_success(&self) -> bool {
        self.total == 1.0
    }
}

/// What buying a product with options, by their names in the order in which they were chosen first, is worth for a goal.
pub fn purchase_reward(
    product: &Product,
    goal: &Goal,
    options: &[(String, String)],
) -> PurchaseReward {
    let kind = kind_of(product, goal);
    let num_attributes =
        goal.attributes.iter().filter(|wanted| has_attribute(product, wanted)).count();
    let num_options = num_options(options, &goal.options);
    let is_in_budget = product.price <= goal.price_upper;
    let earned = num_attributes + num_options + usize::from(is_in_budget);
    let all = goal.attributes.len() + goal.options.len() + 1;
    let total = earned as f64 / all as f64 * kind.0;
    PurchaseReward {
        total,
        r_type: kind.0,
        query_match: kind.1,
        category_match: kind.2,
        title_score: kind.3,
        num_attributes,
        num_options,
        is_in_budget,
    }
}

/// The worth of the kind, and what it follows from: 0.5 where neither search, categories nor more than a fifth of the name's nouns
/// match; 0.1 where less than a tenth of the nouns does, and 0 where none does, whatever else matches.
fn kind_of(product: &Product, goal: &Goal) -> (f64, bool, bool, f64) {
    let query_match = product.query == goal.query;
    let path = |path: &str| -> BTreeSet<String> {
        path.split('›').map(|name| name.trim().to_owned()).collect()
    };
    let (theirs, ours) = (path(&product.product_category), path(&goal.product_category));
    let category_match = theirs.intersection(&ours).count() >= 2;
    let desired = nouns(&goal.name);
    // Doubles count below the line and not above it, as in the original.
    let title_score = match desired.len() {
        0 => 0.2,
        all => {
            let bought: BTreeSet<String> = nouns(&product.title).into_iter().collect();
            let desired: BTreeSet<String> = desired.into_iter().collect();
            bought.intersection(&desired).count() as f64 / all as f64
        }
    };
    let is_match = query_match || category_match || title_score > 0.2;
    let r_type = if title_score == 0.0 {
        0.0
    } else if title_score < 0.1 {
        0.1
    } else if is_match {
        1.0
    } else {
        0.5
    };
    (r_type, query_match, category_match, title_score)
}

/// Whether an attribute is one of the product's, nearly, or stands in its name, points or description.
fn has_attribute(product: &Product, wanted: &str) -> bool {
    product.attributes.iter().any(|attribute| is_alike(attribute, wanted))
        || product.title.to_lowercase().contains(wanted)
        || product.bullet_points.join(" ").to_lowercase().contains(wanted)
        || product.description.to_lowercase().contains(wanted)
}

fn is_alike(left: &str, right: &str) -> bool {
    // Equal texts are the usual case; those without letters and digits are like nothing.
    let is_equal = left == right && left.bytes().any(|byte| byte.is_ascii_alphanumeric());
    is_equal || token_set_ratio(left, right) > ALIKE
}

/// Options of the goal that are among those chosen, nearly; colours count as their base colour.
pub(crate) fn num_options(chosen: &[(String, String)], goal: &GoalOptions) -> usize {
    let chosen: Vec<&str> = chosen.iter().map(|(_, value)| base_color(value)).collect();
    let is_chosen = |wanted: &str| chosen.iter().any(|value| is_alike(value, wanted));
    match goal {
        GoalOptions::Values(values) => {
            values.iter().filter(|value| is_chosen(base_color(value))).count()
        }
        // With names, the original looks for colours in a pair, which has one only where name or value is nothing else, and
        // compares with the pair as Python writes it.
        GoalOptions::Named(pairs) => {
            let is_met = |(name, value): &&(String, String)| match exact_color(name)
                .into_iter()
                .chain(exact_color(value))
                .min_by_key(|c| *c)
            {
                Some(color) => is_chosen(color),
                None => {
                    let (name, value) = (spar_python::repr_str(name), spar_python::repr_str(value));
                    is_chosen(&format!("({name}, {value})"))
                }
            };
            pairs.iter().filter(is_met).count()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    fn product(name: &str) -> Product {
        Product {
            asin: "B000000000".to_owned(),
            title: name.to_owned(),
            description: String::new(),
            bullet_points: Vec::new(),
            price_tag: "$35.0".to_owned(),
            price: 35.0,
            options: Vec::new(),
            attributes: Vec::new(),
            category: String::new(),
            query: "query 1".to_owned(),
            product_category: "a › b › c".to_owned(),
            rating: "N.A.".to_owned(),
            reviews: Vec::new(),
        }
    }

    fn goal(name: &str, attributes: &[&str], options: GoalOptions) -> Goal {
        Goal {
            product: 0,
            query: "query 1".to_owned(),
            name: name.to_owned(),
            product_category: "a › b › c".to_owned(),
            instruction: String::new(),
            attributes: attributes.iter().map(|&attribute| attribute.to_owned()).collect(),
            price_upper: 40.0,
            options,
            way: OnceLock::new(),
        }
    }

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn all_that_was_demanded_earns_one_and_parts_their_share() {
        let options = named(&[("color", "grey"), ("size", "xl")]);
        let wanted = ["tea tree", "essential oils", "natural ingredients"];
        let goal = goal("Velora Shampoo", &wanted, GoalOptions::Named(options.clone()));
        let mut bought = product("Velora Shampoo");
        bought.attributes =
            ["tea tree", "essential oil", "natural ingredients"].map(str::to_owned).to_vec();
        let reward = purchase_reward(&bought, &goal, &options);
        assert!(reward.is_success(), "{reward:?}");
        assert_eq!((reward.num_attributes, reward.num_options), (3, 2));
        // What stands in texts counts as well.
        bought.attributes.clear();
        bought.bullet_points = vec!["This shampoo has Essential Oils".to_owned()];
        bought.description = "Made with natural ingredients".to_owned();
        let reward = purchase_reward(&bought, &goal, &options);
        assert_eq!(reward.total, 5.0 / 6.0);
        // A colour of the same base is the colour.
        let reward = purchase_reward(&bought, &goal, &named(&[("color", "ash grey")]));
        assert_eq!((reward.num_options, reward.total), (0, 3.0 / 6.0), "`ash` comes first");
        let reward = purchase_reward(&bought, &goal, &named(&[("color", "cool grey")]));
        assert_eq!(reward.num_options, 1);
        bought.price = 40.01;
        assert!(!purchase_reward(&bought, &goal, &[]).is_in_budget);
    }

    #[test]
    fn options_without_names_are_compared_by_base_colours() {
        let values = ["cool powder snow", "xl", "pack of 12"].map(str::to_owned).to_vec();
        let chosen = named(&[("a", "pack of 12"), ("b", "powder snow"), ("c", "xl")]);
        assert_eq!(num_options(&chosen, &GoalOptions::Values(values.clone())), 3);
        assert_eq!(num_options(&[], &GoalOptions::Values(values)), 0);
        assert_eq!(num_options(&chosen, &GoalOptions::Values(Vec::new())), 0);
    }

    #[test]
    fn the_kind_of_product_scales_the_reward() {
        let goal = goal("Velora Cotton Shirt", &[], GoalOptions::Values(Vec::new()));
        let worth = |name: &str, query: &str, path: &str| {
            let mut bought = product(name);
            (bought.query, bought.product_category) = (query.to_owned(), path.to_owned());
            purchase_reward(&bought, &goal, &[]).total
        };
        assert_eq!(worth("Tamrik Wool Shirt", "other", "d › e"), 1.0, "a third of the nouns");
        assert_eq!(worth("Tamrik Lamp", "query 1", "a › b › c"), 0.0, "no noun at all");
        let long = "Velora Lamp";
        let mut many = goal.clone();
        many.name = "Velora Cotton Shirt Collar Sleeve Button".to_owned();
        let mut bought = product(long);
        bought.query = "other".to_owned();
        bought.product_category = "a › d › e".to_owned();
        assert_eq!(purchase_reward(&bought, &many, &[]).total, 0.5, "a sixth, and nothing else");
        bought.product_category = "c › b".to_owned();
        assert_eq!(purchase_reward(&bought, &many, &[]).total, 1.0, "the order is of no matter");
        many.name =
            "Velora Cotton Shirt Collar Sleeve Button Pocket Hem Cuff Seam Lining".to_owned();
        assert_eq!(purchase_reward(&bought, &many, &[]).total, 0.1, "less than a tenth");
    }

    /// Shares that WebShop's own tests expect of its tagger, within a hundredth.
    #[test]
    fn shares_of_nouns_are_near_those_that_webshop_expects() {
        let sneakers = "Mens D.O.N. Issue 2 Gca Basketball Sneakers Shoes Casual - Off White";
        let peak = "PEAK High Top Mens Basketball Shoes Lou Williams Streetball Master Breathable Non Slip Outdoor Sneakers";
        let cord = "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar";
        let plug = "BRST AC Power Cord Outlet Socket Cable Plug Lead for Panasonic SC-HT830V DVD/VCR Combo Home Theater System";
        let share = |desired: &str, bought: &str| {
            let goal = goal(desired, &[], GoalOptions::Values(Vec::new()));
            purchase_reward(&product(bought), &goal, &[]).title_score
        };
        let shares = [share(sneakers, peak), share(cord, plug)];
        for (share, expected) in shares.iter().zip([0.333, 0.15]) {
            assert!((share - expected).abs() < 0.25, "{share} where the tagger gives {expected}");
        }
        let knob = "Rusticware 921ORB Kitchen and Bath Cabinet Knob";
        let tweezers = "Minkissy 2pcs Stainless Steel Eyebrow Tweezers Blackhead Acne Remover Portable Makeup Tweezers (Silver)";
        assert_eq!(share(knob, tweezers), 0.0);
    }
}
