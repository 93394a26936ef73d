//! The order in which CPython walks a set.

/// A set as CPython 3.11 and 3.12 lay it out: a table that is probed from the hash, walked from its beginning.
#[derive(Debug, Clone)]
pub(crate) struct PythonSet<T> {
    table: Vec<Option<(u64, T)>>,
    used: usize,
}

/// Entries that are looked at in a row before the next place is computed.
const LINEAR_PROBES: usize = 9;

impl<T: Clone + PartialEq> PythonSet<T> {
    /// An empty set.
    pub(crate) fn new() -> Self {
        Self { table: vec![None; 8], used: 0 }
    }

    /// Adds what has this hash; nothing where it is in the set.
    pub(crate) fn insert(&mut self, hash: u64, value: T) {
        let Some(place) = self.free_place(hash, Some(&value)) else { return };
        self.table[place] = Some((hash, value));
        self.used += 1;
        // Nothing is ever taken out here, so that the table is as full as the set is large.
        if self.used * 5 < (self.table.len() - 1) * 3 {
            return;
        }
        let least = if self.used > 50_000 { self.used * 2 } else { self.used * 4 };
        let mut size = 8;
        while size <= least {
            size *= 2;
        }
        let old = std::mem::replace(&mut self.table, vec![None; size]);
        for (hash, value) in old.into_iter().flatten() {
            let place = self.free_place(hash, None).expect("a fresh table has free places");
            self.table[place] = Some((hash, value));
        }
    }

    /// Where a value of this hash comes to stand; absent where it is there already.
    fn free_place(&self, hash: u64, value: Option<&T>) -> Option<usize> {
        let mask = self.table.len() - 1;
        let (mut place, mut perturb) = (hash as usize & mask, hash);
        loop {
            let more = if place + LINEAR_PROBES <= mask { LINEAR_PROBES } else { 0 };
            for place in place..=place + more {
                match &self.table[place] {
                    None => return Some(place),
                    Some((other, entry)) if *other == hash && value == Some(entry) => return None,
                    Some(_) => {}
                }
            }
            perturb >>= 5;
            place = (place.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb as usize)) & mask;
        }
    }

    /// Whether a value is in the set.
    pub(crate) fn contains(&self, hash: u64, value: &T) -> bool {
        self.free_place(hash, Some(value)).is_none()
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// The values in CPython's order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.table.iter().flatten().map(|(_, value)| value)
    }
}

/// `hash((a, b, ...))` of what has these hashes.
pub(crate) fn tuple_hash(hashes: &[u64]) -> u64 {
    const PRIME_1: u64 = 11_400_714_785_074_694_791;
    const PRIME_2: u64 = 14_029_467_366_897_019_727;
    const PRIME_5: u64 = 2_870_177_450_012_600_261;
    let mixed = hashes.iter().fold(PRIME_5, |sum, hash| {
        sum.wrapping_add(hash.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
    });
    match mixed.wrapping_add(hashes.len() as u64 ^ (PRIME_5 ^ 3_527_539)) {
        u64::MAX => 1_546_275_796,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_walked_as_by_cpython() {
        // hash((1, 2)), hash((3, 0)) and hash((0, 0)) of CPython 3.11.
        assert_eq!(tuple_hash(&[1, 2]) as i64, -3_550_055_125_485_641_917);
        let pairs = [(3, 0), (1, 2), (0, 0), (7, 5), (2, 9), (1, 2), (4, 4)];
        let mut set = PythonSet::new();
        for (a, b) in pairs {
            set.insert(tuple_hash(&[a, b]), (a, b));
        }
        let order: Vec<_> = set.iter().copied().collect();
        assert_eq!(order, [(4, 4), (1, 2), (0, 0), (3, 0), (2, 9), (7, 5)]);
        assert!(set.len() == 6 && set.contains(tuple_hash(&[7, 5]), &(7, 5)));
    }
}
