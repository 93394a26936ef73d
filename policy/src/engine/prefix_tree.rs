//! What was read before, found by its tokens.

use std::collections::{BTreeMap, HashMap};

use crate::decoder::SequenceCache;

/// Memory of a token sequence that can be shortened.
pub(crate) trait PrefixMemory: Clone {
    /// The tokens it is of.
    fn tokens(&self) -> &[u32];

    /// Forgets the tokens from `len` on.
    fn truncate(&mut self, len: usize);
}

impl PrefixMemory for SequenceCache {
    fn tokens(&self) -> &[u32] {
        self.tokens()
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

/// A radix tree over token ids that keeps the memory of sequences, the least recently used of which
/// give way.
///
/// Memory stands at the leaves alone: what begins like a leaf is in it. Every leaf has some.
#[derive(Debug)]
pub(crate) struct PrefixTree<M> {
    nodes: Vec<Node<M>>,
    /// Places in `nodes` that are free.
    free: Vec<usize>,
    /// Leaves by when they were used.
    by_use: BTreeMap<u64, usize>,
    clock: u64,
    tokens: usize,
    limit: usize,
}

#[derive(Debug)]
struct Node<M> {
    parent: usize,
    /// Tokens between the parent and here.
    edge: Vec<u32>,
    /// By the first token of their edges.
    children: HashMap<u32, usize>,
    memory: Option<M>,
    used: u64,
}

const ROOT: usize = 0;

impl<M: PrefixMemory> PrefixTree<M> {
    /// An empty tree that keeps up to `limit` tokens.
    pub(crate) fn new(limit: usize) -> Self {
        let root = Node {
            parent: ROOT,
            edge: Vec::new(),
            children: HashMap::new(),
            memory: None,
            used: 0,
        };
        Self {
            nodes: vec![root],
            free: Vec::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            tokens: 0,
            limit,
        }
    }

    /// Tokens that are kept.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// How many of the first of `tokens` are remembered.
    pub(crate) fn matching(&self, tokens: &[u32]) -> usize {
        self.descend(tokens).1
    }

    /// The memory of as many of the first of `tokens` as are remembered; none if that is no token.
    pub(crate) fn get(&mut self, tokens: &[u32]) -> Option<M> {
        let (mut node, matched) = self.descend(tokens);
        if matched == 0 {
            return None;
        }
        while self.nodes[node].memory.is_none() {
            // The one used last, so that what is often used stays together.
            let children = self.nodes[node].children.values();
            node = *children.max_by_key(|child| self.nodes[**child].used)?;
        }
        self.touch(node);
        let mut memory = self.nodes[node].memory.clone()?;
        memory.truncate(matched);
        Some(memory)
    }

    /// Keeps the memory of a sequence, unless a longer one that begins with it is there.
    pub(crate) fn insert(&mut self, memory: M) {
        let len = memory.tokens().len();
        if len == 0 || len > self.limit {
            return;
        }
        let (node, matched) = self.descend(memory.tokens());
        let inside = matched - self.depth_above(node);
        if matched == len {
            if self.nodes[node].memory.is_some() {
                self.touch(node);
            }
            return;
        }
        let rest = memory.tokens()[matched..].to_vec();
        let above = if node == ROOT || inside == self.nodes[node].edge.len() {
            // What ended here goes on in the new leaf.
            if let Some(shorter) = self.nodes[node].memory.take() {
                self.tokens -= shorter.tokens().len();
                self.by_use.remove(&self.nodes[node].used);
            }
            node
        } else {
            self.split(node, inside)
        };
        let first = rest[0];
        let leaf = self.place(Node {
            parent: above,
            edge: rest,
            children: HashMap::new(),
            memory: Some(memory),
            used: 0,
        });
        self.nodes[above].children.insert(first, leaf);
        self.tokens += len;
        self.clock += 1;
        self.nodes[leaf].used = self.clock;
        self.by_use.insert(self.clock, leaf);
        self.shrink(self.limit);
    }

    /// Forgets the least recently used until at most `limit` tokens are kept.
    pub(crate) fn shrink(&mut self, limit: usize) {
        while self.tokens > limit {
            let Some((_, leaf)) = self.by_use.pop_first() else { return };
            self.remove(leaf);
        }
    }

    /// The last node that `tokens` lead into, and how many of them match.
    fn descend(&self, tokens: &[u32]) -> (usize, usize) {
        let (mut node, mut matched) = (ROOT, 0);
        while let Some(child) =
            tokens.get(matched).and_then(|token| self.nodes[node].children.get(token))
        {
            node = *child;
            let edge = &self.nodes[node].edge;
            let same = edge.iter().zip(&tokens[matched..]).take_while(|(a, b)| a == b).count();
            matched += same;
            if same < edge.len() {
                break;
            }
        }
        (node, matched)
    }

    /// Tokens before the edge of a node.
    fn depth_above(&self, mut node: usize) -> usize {
        let mut depth = 0;
        while node != ROOT {
            node = self.nodes[node].parent;
            depth += self.nodes[node].edge.len();
        }
        depth
    }

    /// Puts a node into the edge of `node`, behind `at` tokens of it.
    fn split(&mut self, node: usize, at: usize) -> usize {
        let tail = self.nodes[node].edge.split_off(at);
        let head = std::mem::replace(&mut self.nodes[node].edge, tail);
        let parent = self.nodes[node].parent;
        let (first, next) = (head[0], self.nodes[node].edge[0]);
        let middle = self.place(Node {
            parent,
            edge: head,
            children: HashMap::from([(next, node)]),
            memory: None,
            used: self.nodes[node].used,
        });
        self.nodes[parent].children.insert(first, middle);
        self.nodes[node].parent = middle;
        middle
    }

    fn place(&mut self, node: Node<M>) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.nodes[place] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    /// Marks a leaf and the nodes above it as used now.
    fn touch(&mut self, leaf: usize) {
        self.clock += 1;
        self.by_use.remove(&self.nodes[leaf].used);
        self.by_use.insert(self.clock, leaf);
        let mut node = leaf;
        while node != ROOT {
            self.nodes[node].used = self.clock;
            node = self.nodes[node].parent;
        }
    }

    /// Takes a leaf out, which `by_use` no longer has, and the nodes that led to nothing else.
    fn remove(&mut self, leaf: usize) {
        let mut node = leaf;
        if let Some(memory) = self.nodes[node].memory.take() {
            self.tokens -= memory.tokens().len();
        }
        while node != ROOT && self.nodes[node].children.is_empty() {
            let Node { parent, edge, .. } = &self.nodes[node];
            let (parent, first) = (*parent, edge[0]);
            self.nodes[parent].children.remove(&first);
            self.nodes[node].edge.clear();
            self.free.push(node);
            node = parent;
        }
        // A node with a single child left is part of that child's edge.
        if node != ROOT
            && let [child] = self.nodes[node].children.values().copied().collect::<Vec<_>>()[..]
        {
            let mut edge = std::mem::take(&mut self.nodes[node].edge);
            let (parent, first) = (self.nodes[node].parent, edge[0]);
            edge.append(&mut self.nodes[child].edge);
            self.nodes[child].edge = edge;
            self.nodes[child].parent = parent;
            self.nodes[parent].children.insert(first, child);
            self.nodes[node].children.clear();
            self.free.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl PrefixMemory for Vec<u32> {
        fn tokens(&self) -> &[u32] {
            self
        }

        fn truncate(&mut self, len: usize) {
            self.truncate(len);
        }
    }

    fn common(a: &[u32], b: &[u32]) -> usize {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    }

    #[test]
    fn the_least_recently_used_gives_way() {
        let mut tree = PrefixTree::new(9);
        tree.insert(vec![1, 2, 3]);
        tree.insert(vec![1, 2, 4]);
        tree.insert(vec![5, 6, 7]);
        assert_eq!(tree.get(&[1, 2, 3, 9]), Some(vec![1, 2, 3]));
        tree.insert(vec![8, 8, 8]);
        assert_eq!(tree.tokens(), 9);
        assert_eq!(tree.matching(&[1, 2, 4]), 2);
        assert_eq!(tree.get(&[1, 2, 3]), Some(vec![1, 2, 3]));
        assert_eq!(tree.get(&[9]), None);
        // What is longer than all there is room for is not kept.
        tree.insert(vec![0; 10]);
        assert_eq!(tree.matching(&[0]), 0);
    }

    proptest! {
        #[test]
        fn lookups_find_the_longest_that_was_kept(
            sequences in prop::collection::vec(prop::collection::vec(0_u32..3, 0..10), 1..40),
            lookups in prop::collection::vec(prop::collection::vec(0_u32..3, 0..12), 1..20),
        ) {
            let mut tree = PrefixTree::new(usize::MAX);
            for sequence in &sequences {
                tree.insert(sequence.clone());
            }
            for lookup in &lookups {
                let longest = sequences.iter().map(|sequence| common(sequence, lookup)).max();
                let longest = longest.unwrap_or_default();
                prop_assert_eq!(tree.matching(lookup), longest);
                let wanted = (longest > 0).then(|| lookup[..longest].to_vec());
                prop_assert_eq!(tree.get(lookup), wanted);
            }
        }

        #[test]
        fn the_bound_holds_and_what_is_found_is_right(
            steps in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(0_u32..3, 1..10)), 1..80,
            ),
            limit in 1_usize..40,
        ) {
            let mut tree = PrefixTree::new(limit);
            for (is_insert, tokens) in &steps {
                if *is_insert {
                    tree.insert(tokens.clone());
                    if tokens.len() <= limit {
                        prop_assert_eq!(tree.matching(tokens), tokens.len());
                    }
                } else if let Some(found) = tree.get(tokens) {
                    prop_assert_eq!(&found[..], &tokens[..found.len()]);
                }
                prop_assert!(tree.tokens() <= limit);
                let len = |leaf: &usize| tree.nodes[*leaf].memory.as_ref().unwrap().len();
                let kept: usize = tree.by_use.values().map(len).sum();
                prop_assert_eq!(kept, tree.tokens());
            }
            tree.shrink(0);
            prop_assert_eq!(tree.tokens(), 0);
            prop_assert_eq!(tree.free.len() + 1, tree.nodes.len());
        }
    }
}
