//! Which of several shares a position belongs to.

use rand::RngExt;
use spar_core::Seed;

use crate::Share;

/// Binary digits behind the point of a weight's part.
const DIGITS: u32 = 32;
/// Positions beyond this are those of a run that never ends.
const MAX_POSITION: u64 = 1 << 62;

/// Which of several shares a position belongs to, and how many positions before it do.
///
/// Both follow from the weights, the seed and the position alone, without a walk over what lies before. The first share has
/// `floor(n p + u)` of the first `n` positions, `p` being its part of all weights and `u` in `[0, 1)` drawn from the seed: a
/// Beatty sequence, so that any `m` positions in a row have of it `m p`, rounded up or down. What is left is divided
/// among the others in the same way, so that with `k` shares any stretch has of each what its weight says, give or take
/// `k - 1`.
///
/// A share that is used up leaves its positions to the others. Where all are bounded and used up, all of them go on.
#[derive(Debug)]
pub(crate) struct Interleaving {
    phases: Vec<Phase>,
}

/// The positions from one on, until a further share is used up.
#[derive(Debug)]
struct Phase {
    /// The first position.
    first: u64,
    /// Positions before it of every share.
    before: Vec<u64>,
    /// The shares that take part.
    members: Vec<usize>,
    /// Of each of these but the last: its part of what those before it have left, and the offset, in units of
    /// `2^-DIGITS`.
    parts: Vec<(u64, u64)>,
}

impl Interleaving {
    /// That of these shares, of which there is at least one; `caps` are the most positions that each may have.
    pub(crate) fn new(shares: &[Share], caps: &[Option<u64>], seed: Seed) -> Self {
        let mut members: Vec<usize> = (0..shares.len()).collect();
        let (mut first, mut before) = (0, vec![0; shares.len()]);
        let mut phases = Vec::new();
        loop {
            let phase = Phase::new(shares, members.clone(), first, before, seed);
            let end = |member: usize| Some(phase.end(member, caps[member]?));
            let next = members.iter().filter_map(|member| end(*member)).min();
            let Some(next) = next.filter(|next| *next < MAX_POSITION) else {
                phases.push(phase);
                return Self { phases };
            };
            before = phase.counts(next);
            members.retain(|member| caps[*member].is_none_or(|cap| before[*member] < cap));
            first = next;
            phases.push(phase);
            if members.is_empty() {
                let all = (0..shares.len()).collect();
                phases.push(Phase::new(shares, all, first, before, seed));
                return Self { phases };
            }
        }
    }

    /// How many of the positions before `position` belong to each share.
    pub(crate) fn counts(&self, position: u64) -> Vec<u64> {
        self.phase(position).counts(position)
    }

    /// The share that a position belongs to.
    pub(crate) fn share(&self, position: u64) -> usize {
        let phase = self.phase(position);
        let (here, next) = (phase.counts(position), phase.counts(position + 1));
        let is_here = |member: usize| here[member] < next[member];
        (0..here.len()).find(|member| is_here(*member)).expect("a position belongs to one share")
    }

    fn phase(&self, position: u64) -> &Phase {
        let found = self.phases.iter().rev().find(|phase| phase.first <= position);
        found.expect("the first phase begins at 0")
    }
}

impl Phase {
    fn new(
        shares: &[Share],
        members: Vec<usize>,
        first: u64,
        before: Vec<u64>,
        seed: Seed,
    ) -> Self {
        let mut parts = Vec::new();
        for (number, member) in members.iter().enumerate().take(members.len() - 1) {
            let left: f64 = members[number..].iter().map(|member| shares[*member].weight).sum();
            let part = (shares[*member].weight / left * (1_u64 << DIGITS) as f64).round() as u64;
            let mut rng = seed.derive("share", *member).derive("phase", first).rng();
            parts.push((part, rng.random_range(0..1 << DIGITS)));
        }
        Self { first, before, members, parts }
    }

    /// How many of the positions before `position`, which is in this phase or where it ends, belong to each share.
    fn counts(&self, position: u64) -> Vec<u64> {
        let mut counts = self.before.clone();
        let mut left = position - self.first;
        for ((part, offset), member) in self.parts.iter().zip(&self.members) {
            let taken = (u128::from(left) * u128::from(*part) + u128::from(*offset)) >> DIGITS;
            let taken = u64::try_from(taken).expect("a part of `left`");
            counts[*member] += taken;
            left -= taken;
        }
        let last = self.members.last().expect("a phase has members");
        counts[*last] += left;
        counts
    }

    /// The first position behind which a member has `cap` positions.
    fn end(&self, member: usize, cap: u64) -> u64 {
        let (mut low, mut high) = (self.first, MAX_POSITION);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.counts(middle)[member] >= cap {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[f64]) -> Vec<Share> {
        let share =
            |weight: &f64| Share { name: String::new(), len: 10, weight: *weight, epochs: None };
        weights.iter().map(share).collect()
    }

    fn of(weights: &[f64], caps: &[Option<u64>], seed: u64) -> Interleaving {
        Interleaving::new(&shares(weights), caps, Seed::from_u64(seed))
    }

    #[test]
    fn any_stretch_has_of_every_share_what_its_weight_says() {
        let weights = [3.0, 1.0, 0.5, 1.5];
        for seed in 0..4 {
            let mixed = of(&weights, &[None; 4], seed);
            let drawn: Vec<usize> = (0..900).map(|position| mixed.share(position)).collect();
            for length in [1, 7, 12, 100, 600] {
                for stretch in drawn.windows(length) {
                    for (share, weight) in weights.iter().enumerate() {
                        let found = stretch.iter().filter(|drawn| **drawn == share).count() as f64;
                        let wanted = length as f64 * weight / 6.0;
                        assert!((found - wanted).abs() <= 3.0, "{share}: {found}, {wanted}");
                    }
                }
            }
            // What is counted is what was drawn.
            for position in [0, 1, 5, 899] {
                let counted = mixed.counts(position as u64);
                for (share, count) in counted.iter().enumerate() {
                    let found = drawn[..position].iter().filter(|drawn| **drawn == share).count();
                    assert_eq!(*count, found as u64);
                }
            }
        }
        let first = |seed| (0..20).map(|at| of(&weights, &[None; 4], seed).share(at)).collect();
        let (one, other): (Vec<_>, Vec<_>) = (first(0), first(1));
        assert!(one != other && one == first(0));
        // Far out, where nothing before was ever computed.
        let far = of(&weights, &[None; 4], 0).counts(1 << 60);
        assert_eq!(far.iter().sum::<u64>(), 1 << 60);
    }

    #[test]
    fn what_is_used_up_leaves_its_positions_to_the_others() {
        let mixed = of(&[1.0, 2.0, 1.0], &[Some(5), None, Some(9)], 3);
        let drawn: Vec<usize> = (0..400).map(|position| mixed.share(position)).collect();
        let count = |share: usize| drawn.iter().filter(|drawn| **drawn == share).count();
        assert_eq!([count(0), count(1), count(2)], [5, 386, 9]);
        let ends = |share: usize| drawn.iter().rposition(|drawn| *drawn == share).unwrap();
        assert!((15..25).contains(&ends(0)) && ends(2) < 40, "{} {}", ends(0), ends(2));
        // Of what is bounded in all, nothing is left out, and it goes on.
        let bounded = of(&[1.0, 9.0], &[Some(3), Some(2)], 0);
        assert_eq!(bounded.counts(5), [3, 2]);
        assert_eq!(bounded.counts(1005).iter().sum::<u64>(), 1005);
        assert!(bounded.counts(1005)[0] >= 100);
    }
}
