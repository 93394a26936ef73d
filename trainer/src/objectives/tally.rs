//! Metrics that are gathered sample by sample.

use std::collections::BTreeMap;

/// Metrics that are gathered sample by sample and merged in sample order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally(BTreeMap<&'static str, Quantity>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Mean { sum: f64, count: f64 },
    Max(f64),
}

impl Tally {
    /// Adds a value to the mean called `name`.
    pub fn add_mean(&mut self, name: &'static str, value: f64) {
        self.merge_one(name, Quantity::Mean { sum: value, count: 1.0 });
    }

    /// Raises the maximum called `name` to `value`.
    pub fn add_max(&mut self, name: &'static str, value: f64) {
        self.merge_one(name, Quantity::Max(value));
    }

    /// Adds another tally's values.
    pub fn merge(&mut self, other: &Self) {
        for (name, quantity) in &other.0 {
            self.merge_one(name, *quantity);
        }
    }

    /// The mean called `name`; `None` where nothing was added to it.
    pub fn mean(&self, name: &str) -> Option<f64> {
        match self.0.get(name)? {
            Quantity::Mean { sum, count } => Some(sum / count),
            Quantity::Max(_) => None,
        }
    }

    /// The values by name.
    pub fn values(&self) -> BTreeMap<String, f64> {
        let value = |quantity: &Quantity| match *quantity {
            Quantity::Mean { sum, count } => sum / count,
            Quantity::Max(value) => value,
        };
        self.0.iter().map(|(name, quantity)| ((*name).to_owned(), value(quantity))).collect()
    }

    fn merge_one(&mut self, name: &'static str, quantity: Quantity) {
        match (self.0.get_mut(name), quantity) {
            (Some(Quantity::Mean { sum, count }), Quantity::Mean { sum: more, count: number }) => {
                *sum += more;
                *count += number;
            }
            (Some(Quantity::Max(old)), Quantity::Max(new)) => *old = old.max(new),
            // The first of its name, or a name that changed its kind: the later one counts.
            _ => {
                self.0.insert(name, quantity);
            }
        }
    }
}
