//! Completions restricted to one of several strings.

use std::sync::Arc;

/// A walk down the tree of all choices, token by token.
///
/// The choices' token sequences are kept sorted, so that those which share what was drawn so far
/// are a range, and the tree needs no nodes.
#[derive(Debug, Clone)]
pub(crate) struct ChoiceWalk {
    sequences: Vec<Arc<[u32]>>,
    first: usize,
    end: usize,
    depth: usize,
}

impl ChoiceWalk {
    /// Starts at the root; no sequence may be a prefix of another, which an end token ensures.
    pub(crate) fn new(mut sequences: Vec<Arc<[u32]>>) -> Self {
        sequences.sort_unstable();
        sequences.dedup();
        let end = sequences.len();
        Self { sequences, first: 0, end, depth: 0 }
    }

    /// Writes the tokens that can come next, ascending; none at the end of a choice.
    pub(crate) fn allowed(&self, out: &mut Vec<u32>) {
        out.clear();
        for sequence in &self.sequences[self.first..self.end] {
            if let Some(token) = sequence.get(self.depth)
                && out.last() != Some(token)
            {
                out.push(*token);
            }
        }
    }

    /// Goes down to `token`, which must be among the allowed.
    pub(crate) fn advance(&mut self, token: u32) {
        let depth = self.depth;
        let range = &self.sequences[self.first..self.end];
        let first = range.partition_point(|sequence| sequence.get(depth) < Some(&token));
        let end = range.partition_point(|sequence| sequence.get(depth) <= Some(&token));
        self.end = self.first + end;
        self.first += first;
        self.depth += 1;
    }

    /// Whether a choice is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.sequences[self.first..self.end].iter().all(|sequence| sequence.len() == self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_one_choice() {
        let sequences: [&[u32]; 4] = [&[5, 1, 9], &[5, 2, 9], &[3, 9], &[5, 1, 9]];
        let mut walk = ChoiceWalk::new(sequences.iter().map(|s| Arc::from(*s)).collect());
        let mut allowed = Vec::new();
        walk.allowed(&mut allowed);
        assert_eq!(allowed, [3, 5]);
        walk.advance(5);
        walk.allowed(&mut allowed);
        assert_eq!(allowed, [1, 2]);
        walk.advance(2);
        walk.allowed(&mut allowed);
        assert_eq!(allowed, [9]);
        assert!(!walk.is_done());
        walk.advance(9);
        assert!(walk.is_done());
    }
}
