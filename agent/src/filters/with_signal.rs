//! Groups of equal returns are left out.

use super::GroupFilter;
use crate::credit::GroupView;

/// Keeps a group whole where two of its returns differ, and leaves it out otherwise.
///
/// This is the filter of DAPO's dynamic sampling (arXiv 2503.14476, section 3.2, `0 < solved < G`), told by returns.
/// Deviation: no groups are sampled in place of those that are left out, so that an iteration may have fewer
/// samples. What a loss is divided by shrinks with it: each sample that is left weighs more than under `all`, by
/// as much as the others weighed. A group of one is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct WithSignal;

impl GroupFilter for WithSignal {
    fn name(&self) -> &'static str {
        "with_signal"
    }

    fn keep(&self, group: &GroupView<'_>) -> Vec<bool> {
        let returns = group.returns();
        let differ = returns.windows(2).any(|pair| pair[0] != pair[1]);
        vec![differ; returns.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit::test_vectors::returns_view;

    #[test]
    fn groups_are_kept_whole_where_returns_differ() {
        assert_eq!(WithSignal.keep(&returns_view([1.0, 1.0, 0.0])), [true; 3]);
        assert_eq!(WithSignal.keep(&returns_view([0.5, 0.5])), [false; 2]);
        assert_eq!(WithSignal.keep(&returns_view([1.0])), [false]);
        assert!(WithSignal.keep(&GroupView::default()).is_empty());
    }
}
