//! Sequences merged where they begin with the same tokens.

#[cfg(doc)]
use super::forward;
use super::{HiddenStates, Segment, SequenceCache, Tape, forward_states};
use crate::Weights;
use crate::cuda::DeviceError;

/// Sequences merged where they begin with the same tokens, so that every shared prefix is read
/// once.
///
/// ```text
/// sequences   a b c d      nodes   a b ─┬─ c ─┬─ d
///             a b c e                   │     └─ e
///             a b f                     └─ f
/// ```
///
/// The tree depends on the sequences alone, not on their order.
#[derive(Debug)]
pub struct TokenTree<'a> {
    /// Parents stand before their children.
    nodes: Vec<Node<'a>>,
    /// Per sequence, the row of each of its tokens.
    rows: Vec<Vec<usize>>,
    len: usize,
}

#[derive(Debug)]
struct Node<'a> {
    parent: Option<usize>,
    tokens: &'a [u32],
}

impl<'a> TokenTree<'a> {
    /// Merges `sequences`.
    pub fn new(sequences: &[&'a [u32]]) -> Self {
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|sequence| sequences[*sequence]);
        let mut tree = Self {
            nodes: Vec::new(),
            rows: sequences.iter().map(|tokens| Vec::with_capacity(tokens.len())).collect(),
            len: 0,
        };
        // Adjacent sequences of the order that agree up to the end of a node.
        let mut pending = vec![(&order[..], None)];
        while let Some((members, parent)) = pending.pop() {
            let ([first, ..], Some(last)) = (members, members.last()) else { continue };
            let depth = tree.rows[*first].len();
            // What the first and the last in order share, all between them share.
            let tokens = &sequences[*first][depth..];
            let tokens = &tokens[..shared_prefix(tokens, &sequences[*last][depth..])];
            let parent = if tokens.is_empty() { parent } else { tree.add(parent, tokens, members) };
            let depth = depth + tokens.len();
            let ended = members.iter().take_while(|member| sequences[**member].len() == depth);
            let rest = &members[ended.count()..];
            let groups: Vec<_> =
                rest.chunk_by(|a, b| sequences[*a][depth] == sequences[*b][depth]).collect();
            pending.extend(groups.into_iter().rev().map(|group| (group, parent)));
        }
        tree
    }

    /// Tokens in the tree, those of shared prefixes counted once.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no sequence has a token.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row of each token of a sequence, given by its index, in what [`TokenTree::read`]
    /// returns.
    pub fn rows(&self, sequence: usize) -> &[usize] {
        &self.rows[sequence]
    }

    /// Reads every token once and returns the final hidden states, `[len, hidden]`, as [`forward`]
    /// does for each sequence alone, to the bit.
    ///
    /// # Panics
    ///
    /// As [`forward`].
    pub fn read(&self, weights: &Weights, tape: Option<&mut Tape>) -> Vec<f32> {
        let states =
            self.try_read(weights, tape).and_then(|states| Ok(states.read()?.into_owned()));
        states.expect("the device works")
    }

    /// As [`TokenTree::read`]; the states stay where they are computed.
    ///
    /// # Errors
    ///
    /// When the decoder is on a device, which fails.
    ///
    /// # Panics
    ///
    /// As [`forward`].
    pub fn try_read(
        &self,
        weights: &Weights,
        tape: Option<&mut Tape>,
    ) -> Result<HiddenStates, DeviceError> {
        let mut caches = vec![SequenceCache::new(weights); self.nodes.len()];
        let mut segments: Vec<_> = caches
            .iter_mut()
            .zip(&self.nodes)
            .map(|(cache, node)| {
                let (tokens, parent) = (node.tokens, node.parent);
                Segment { cache, tokens, parent, adapter: None }
            })
            .collect();
        forward_states(weights, &mut segments, tape)
    }

    fn add(
        &mut self,
        parent: Option<usize>,
        tokens: &'a [u32],
        members: &[usize],
    ) -> Option<usize> {
        for member in members {
            self.rows[*member].extend(self.len..self.len + tokens.len());
        }
        self.nodes.push(Node { parent, tokens });
        self.len += tokens.len();
        Some(self.nodes.len() - 1)
    }
}

/// Tokens that both begin with.
pub fn shared_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shared_prefixes_become_nodes_of_their_own() {
        let sequences: [&[u32]; 6] = [&[1, 2, 3, 4], &[7], &[1, 2, 6], &[1, 2, 3, 5], &[1, 2], &[]];
        let tree = TokenTree::new(&sequences);
        let nodes: Vec<_> = tree.nodes.iter().map(|node| (node.parent, node.tokens)).collect();
        let expected: [(Option<usize>, &[u32]); 6] = [
            (None, &[1, 2]),
            (Some(0), &[3]),
            (Some(1), &[4]),
            (Some(1), &[5]),
            (Some(0), &[6]),
            (None, &[7]),
        ];
        assert_eq!(nodes, expected);
        assert_eq!((tree.len(), tree.rows(2)), (7, &[0, 1, 5][..]));
        assert!(TokenTree::new(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn every_sequence_is_found_in_the_tree(
            sequences in prop::collection::vec(prop::collection::vec(0..3_u32, 0..9), 0..12)
        ) {
            let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
            let tree = TokenTree::new(&sequences);
            let tokens: Vec<u32> =
                tree.nodes.iter().flat_map(|node| node.tokens).copied().collect();
            for (index, sequence) in sequences.iter().enumerate() {
                let found: Vec<u32> = tree.rows(index).iter().map(|row| tokens[*row]).collect();
                prop_assert_eq!(&found, sequence);
            }
            // A token is computed once for every prefix that ends with it.
            let prefixes: std::collections::HashSet<&[u32]> =
                sequences.iter().flat_map(|s| (1..=s.len()).map(|end| &s[..end])).collect();
            prop_assert_eq!(tree.len(), prefixes.len());
            for (index, node) in tree.nodes.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| parent < index));
            }
        }
    }
}
