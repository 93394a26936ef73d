//! Primes between two numbers.

use crate::prelude::*;

options! {
    /// Options of `count_primes`.
    CountPrimesOptions {
        /// Least number, at least 1. Default 1.
        min_n: i64 = 1,
        /// Largest number, up to ten million. Default 10000.
        max_n: i64 = 10_000,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (1, 10_000_000));
    }
}

/// Two numbers, between which primes are counted.
pub(crate) struct CountPrimes;

impl Generator for CountPrimes {
    type Options = CountPrimesOptions;

    fn item(options: &CountPrimesOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let start = rng.int(options.min_n, options.max_n)?;
        let end = rng.int(start, options.max_n)?;
        let question = format!(
            "Count how many prime numbers there are between {start} and {end} (inclusive) ?"
        );
        Ok(Item::new(question, primes(start as usize, end as usize)))
    }
}

/// How many primes lie between two numbers: a sieve of what is between them, by the primes up to the root.
fn primes(start: usize, end: usize) -> usize {
    let mut is_composite = vec![false; end - start + 1];
    if start == 1 {
        is_composite[0] = true;
    }
    let root = end.isqrt();
    let mut small = vec![true; root + 1];
    for divisor in 2..=root {
        if !small[divisor] {
            continue;
        }
        (divisor * divisor..=root).step_by(divisor).for_each(|multiple| small[multiple] = false);
        let first = (divisor * divisor).max(start.div_ceil(divisor) * divisor);
        (first..=end).step_by(divisor).for_each(|multiple| is_composite[multiple - start] = true);
    }
    is_composite.iter().filter(|composite| !**composite).count()
}
