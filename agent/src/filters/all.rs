//! Everything is trained.

use super::GroupFilter;
use crate::credit::GroupView;

/// Keeps every trajectory. A group of equal returns counts in what a loss is divided by, though with most
/// estimators it has no gradient.
#[derive(Debug, Clone, Copy, Default)]
pub struct All;

impl GroupFilter for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn keep(&self, group: &GroupView<'_>) -> Vec<bool> {
        vec![true; group.num_trajectories()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit::test_vectors::returns_view;

    #[test]
    fn all_are_kept() {
        assert_eq!(All.keep(&returns_view([1.0, 1.0, 0.0])), [true; 3]);
        assert!(All.keep(&GroupView::default()).is_empty());
    }
}
