//! What is to be bought.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The options that a purchase is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GoalOptions {
    /// Each with its name.
    Named(Vec<(String, String)>),
    /// Values alone, as people wrote them.
    Values(Vec<String>),
}

impl GoalOptions {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Named(options) => options.len(),
            Self::Values(options) => options.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is to be bought, and how that is put into words.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The place in the catalogue of a product that fulfils it.
    pub product: usize,
    /// The search by which the product was found when the catalogue was made.
    pub query: String,
    /// The product's name.
    pub name: String,
    /// The product's path of categories, joined by `›`.
    pub product_category: String,
    /// What is demanded, in words.
    pub instruction: String,
    /// What the purchase is to be.
    pub attributes: Vec<String>,
    /// What it may cost at most, in dollars; 1,000,000 where nothing is said.
    pub price_upper: f64,
    /// Its options.
    pub options: GoalOptions,
    /// The words by which the product is found, for the player who knows it: once looked for, the search and the page.
    pub(crate) way: OnceLock<Option<(String, usize)>>,
}

/// What WebShop calls no limit of the price.
pub(crate) const NO_LIMIT: f64 = 1_000_000.0;

/// The two numbers between which a limit of the price is drawn, by WebShop's rule: of the multiples of ten up to 990 that are more than the
/// price, the first four are taken; where there are at least two, two of them are drawn and the greater is the limit.
///
/// `draw` gives a number below its argument.
pub(crate) fn price_upper(price: f64, mut draw: impl FnMut(usize) -> usize) -> Option<f64> {
    let above: Vec<f64> =
        (1..100).map(|ten| 10.0 * f64::from(ten)).filter(|limit| *limit > price).take(4).collect();
    if above.len() < 2 {
        return None;
    }
    let first = draw(above.len());
    let second = draw(above.len() - 1);
    let second = if second >= first { second + 1 } else { second };
    Some(above[first.max(second)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_above_the_price_by_at_least_two_steps() {
        assert_eq!(price_upper(14.99, |_| 0), Some(30.0));
        assert_eq!(price_upper(14.99, |bound| bound - 1), Some(50.0));
        assert_eq!(price_upper(20.0, |_| 0), Some(40.0));
        assert_eq!(price_upper(975.0, |_| 0), Some(990.0));
        assert_eq!(price_upper(985.0, |_| 0), None);
        assert_eq!(price_upper(f64::NAN, |_| 0), None);
    }
}
