use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use super::SimilarityError;

/// Steps that one matcher may take, each a pair of equal elements that is looked at: 2²⁷, less than a second. Two texts of 11,000
/// characters that are all the same need fewer, two diffs of source code of 30,000 characters as well.
pub const MAX_STEPS: u64 = 1 << 27;

/// How two stretches of the sequences go together: `a[i..]` and `b[j..]` are equal for `size` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub(super) i: usize,
    pub(super) j: usize,
    pub(super) size: usize,
}

/// A sequence with where its elements stand, which all that it is compared with can share: the second one of Python's
/// `difflib.SequenceMatcher`.
#[derive(Debug)]
pub struct IndexedSequence<T> {
    elements: Vec<T>,
    /// Of every element: where its places are in the list below; none for those that are too frequent.
    stretches: HashMap<T, Range<usize>>,
    /// Places of equal elements beside each other, ascending.
    places: Vec<usize>,
}

impl<T: Clone + Eq + Hash> IndexedSequence<T> {
    /// Notes where elements stand; with `autojunk` those that make up more than a hundredth of a sequence of 200 or more do
    /// not begin matches.
    pub fn new(elements: Vec<T>, autojunk: bool) -> Self {
        let mut lists: HashMap<&T, Vec<usize>> = HashMap::new();
        for (place, element) in elements.iter().enumerate() {
            lists.entry(element).or_default().push(place);
        }
        let most = match autojunk && elements.len() >= 200 {
            true => elements.len() / 100 + 1,
            false => usize::MAX,
        };
        let (mut stretches, mut places) = (HashMap::new(), Vec::new());
        for (element, list) in lists.into_iter().filter(|(_, list)| list.len() <= most) {
            let start = places.len();
            places.extend(list);
            stretches.insert(element.clone(), start..places.len());
        }
        Self { elements, stretches, places }
    }
}

/// Python's `difflib.SequenceMatcher` without junk of the caller's (Ratcliff and Obershelp's method): the longest
/// match, the earliest in `a` and then in `b` of equal ones, and again on both sides of it.
pub struct SequenceMatcher<'s, T> {
    a: &'s [T],
    b: &'s [T],
    /// Where in `b` each element of `a` stands, ascending; empty for those that are too frequent.
    places: Vec<&'s [usize]>,
    /// For every place in `b`: the row in which a match was seen to end there, and how long it was.
    ends: [Vec<(u64, usize)>; 2],
    row: u64,
    steps: u64,
}

impl<'s, T: Eq + Hash> SequenceMatcher<'s, T> {
    /// Prepares to compare.
    pub fn new(a: &'s [T], b: &'s IndexedSequence<T>) -> Self {
        let places_of = |element: &T| match b.stretches.get(element) {
            Some(stretch) => &b.places[stretch.clone()],
            None => &[],
        };
        let places = a.iter().map(places_of).collect();
        let ends = [vec![(0, 0); b.elements.len()], vec![(0, 0); b.elements.len()]];
        Self { a, b: &b.elements, places, ends, row: 1, steps: 0 }
    }

    /// Twice the elements that match over all elements, from 0 to 1; 1 for two empty sequences.
    ///
    /// # Errors
    ///
    /// [`SimilarityError::TooManySteps`] after [`MAX_STEPS`].
    pub fn ratio(&mut self) -> Result<f64, SimilarityError> {
        let length = self.a.len() + self.b.len();
        if length == 0 {
            return Ok(1.0);
        }
        let matches: usize = self.matching_blocks()?.iter().map(|found| found.size).sum();
        Ok(2.0 * matches as f64 / length as f64)
    }

    /// All matches from left to right, those that touch joined, and an empty one at the end.
    pub(super) fn matching_blocks(&mut self) -> Result<Vec<Match>, SimilarityError> {
        let mut waiting = vec![(0, self.a.len(), 0, self.b.len())];
        let mut blocks = Vec::new();
        while let Some((a_low, a_high, b_low, b_high)) = waiting.pop() {
            let found = self.longest_match(a_low, a_high, b_low, b_high)?;
            let Match { i, j, size } = found;
            if size > 0 {
                blocks.push(found);
                if a_low < i && b_low < j {
                    waiting.push((a_low, i, b_low, j));
                }
                if i + size < a_high && j + size < b_high {
                    waiting.push((i + size, a_high, j + size, b_high));
                }
            }
        }
        blocks.sort_unstable();
        let mut joined: Vec<Match> = Vec::with_capacity(blocks.len() + 1);
        for block in blocks {
            match joined.last_mut() {
                Some(last) if last.i + last.size == block.i && last.j + last.size == block.j => {
                    last.size += block.size;
                }
                _ => joined.push(block),
            }
        }
        joined.push(Match { i: self.a.len(), j: self.b.len(), size: 0 });
        Ok(joined)
    }

    fn longest_match(
        &mut self,
        a_low: usize,
        a_high: usize,
        b_low: usize,
        b_high: usize,
    ) -> Result<Match, SimilarityError> {
        let mut best = Match { i: a_low, j: b_low, size: 0 };
        // Rows of an earlier call are never those before the first one of this.
        self.row += 2;
        for i in a_low..a_high {
            self.row += 1;
            self.steps += 1;
            let list = self.places[i];
            let list = &list[list.partition_point(|place| *place < b_low)..];
            let list = &list[..list.partition_point(|place| *place < b_high)];
            self.steps += list.len() as u64;
            if self.steps > MAX_STEPS {
                return Err(SimilarityError::TooManySteps);
            }
            let [before, now] = match self.row % 2 {
                0 => self.ends.each_mut(),
                _ => {
                    let [now, before] = self.ends.each_mut();
                    [before, now]
                }
            };
            for &j in list {
                let size = match j.checked_sub(1).map(|before_j| before[before_j]) {
                    Some((row, size)) if row + 1 == self.row => size + 1,
                    _ => 1,
                };
                now[j] = (self.row, size);
                if size > best.size {
                    best = Match { i: i + 1 - size, j: j + 1 - size, size };
                }
            }
        }
        // Frequent elements do not begin matches, but they extend them.
        while best.i > a_low && best.j > b_low && self.a[best.i - 1] == self.b[best.j - 1] {
            best = Match { i: best.i - 1, j: best.j - 1, size: best.size + 1 };
        }
        while best.i + best.size < a_high
            && best.j + best.size < b_high
            && self.a[best.i + best.size] == self.b[best.j + best.size]
        {
            best.size += 1;
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_comes_first() {
        let (a, b): (Vec<char>, Vec<char>) = ("abxcd".chars().collect(), "abcd".chars().collect());
        let b = IndexedSequence::new(b, true);
        let mut matcher = SequenceMatcher::new(&a, &b);
        let blocks: Vec<_> = matcher.matching_blocks().unwrap();
        let plain: Vec<_> = blocks.iter().map(|found| (found.i, found.j, found.size)).collect();
        assert_eq!(plain, [(0, 0, 2), (3, 2, 2), (5, 4, 0)]);
        assert_eq!(matcher.ratio().unwrap(), 8.0 / 9.0);
        let nothing = IndexedSequence::new(Vec::<char>::new(), true);
        assert_eq!(SequenceMatcher::new(&[], &nothing).ratio(), Ok(1.0));
    }
}
