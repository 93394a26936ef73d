//! numpy's generators of random numbers.

use num_bigint::BigUint;

use crate::{Exception, Outcome, Random};

/// `numpy.random.Generator(numpy.random.PCG64(seed))`, which is `numpy.random.default_rng(seed)` and the generator of a
/// Gymnasium environment after `reset(seed=seed)`: PCG64 (O'Neill, 2014; XSL-RR output), seeded by `SeedSequence`, and
/// drawn from as in numpy 2.
///
/// ```
/// use spar_python::numpy_random::Generator;
///
/// let mut rng = Generator::from_u64(42);
/// assert_eq!(rng.integers(0, 10).unwrap(), 0);
/// assert_eq!(rng.integers(0, 10).unwrap(), 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    state: u128,
    increment: u128,
    /// The upper half of a word whose lower half was handed out.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

impl Generator {
    /// Seeded by a whole number of 64 bits.
    pub fn from_u64(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        Self::from_words(if words[1] == 0 { &words[..1] } else { &words })
    }

    /// Seeded by a whole number of any size.
    pub fn from_int(seed: &BigUint) -> Self {
        let words = seed.to_u32_digits();
        Self::from_words(if words.is_empty() { &[0] } else { &words })
    }

    fn from_words(entropy: &[u32]) -> Self {
        let words = SeedSequence::new(entropy).words::<8>();
        let word = |at: usize| u128::from(words[at]) | u128::from(words[at + 1]) << 32;
        // The upper half of either number is drawn first.
        let (seed, stream) = (word(0) << 64 | word(2), word(4) << 64 | word(6));
        let mut generator = Self { state: 0, increment: stream << 1 | 1, half: None };
        generator.advance();
        generator.state = generator.state.wrapping_add(seed);
        generator.advance();
        generator
    }

    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.advance();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: the lower half of a new word, or the upper half that the last call left.
    pub fn next_u32(&mut self) -> u32 {
        self.half.take().unwrap_or_else(|| {
            let word = self.next_u64();
            self.half = Some((word >> 32) as u32);
            word as u32
        })
    }

    /// `random()`: from 0 to below 1, in 53 bits.
    pub fn random(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `integers(low, high)` of the usual type `int64`: from `low` to below `high`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of an empty range, by which nothing is drawn.
    pub fn integers(&mut self, low: i64, high: i64) -> Outcome<i64> {
        if low >= high {
            return Err(Exception::value_error("low >= high"));
        }
        let span = high.wrapping_sub(low).wrapping_sub(1) as u64;
        Ok(low.wrapping_add(self.up_to(span) as i64))
    }

    /// From 0 to `most`, both included: by Lemire's method (2019), in 32 bits where they suffice.
    pub fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        if most == u64::MAX {
            return self.next_u64();
        }
        match u32::try_from(most) {
            Ok(u32::MAX) => u64::from(self.next_u32()),
            Ok(most) => {
                let count = most + 1;
                let mut product = u64::from(self.next_u32()) * u64::from(count);
                if (product as u32) < count {
                    let threshold = (u32::MAX - most) % count;
                    while (product as u32) < threshold {
                        product = u64::from(self.next_u32()) * u64::from(count);
                    }
                }
                product >> 32
            }
            Err(_) => {
                let count = most + 1;
                let mut product = u128::from(self.next_u64()) * u128::from(count);
                if (product as u64) < count {
                    let threshold = (u64::MAX - most) % count;
                    while (product as u64) < threshold {
                        product = u128::from(self.next_u64()) * u128::from(count);
                    }
                }
                (product >> 64) as u64
            }
        }
    }

    /// `choice(items)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of nothing.
    pub fn choice<'i, T>(&mut self, items: &'i [T]) -> Outcome<&'i T> {
        if items.is_empty() {
            return Err(nothing_to_choose());
        }
        Ok(&items[self.up_to(items.len() as u64 - 1) as usize])
    }

    /// `choice(len(weights), p=weights)`: an index.
    ///
    /// # Errors
    ///
    /// The `ValueError` of weights that are no probabilities.
    pub fn weighted_choice(&mut self, weights: &[f64]) -> Outcome<usize> {
        let sums = sums_of(weights)?;
        let drawn = self.random();
        Ok(sums.partition_point(|&sum| sum <= drawn))
    }

    /// `choice(items, count, replace=False)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of nothing, or of more than there are.
    pub fn sample<T: Clone>(&mut self, items: &[T], count: usize) -> Outcome<Vec<T>> {
        let length = items.len();
        if length == 0 && count > 0 {
            return Err(nothing_to_choose());
        }
        if count > length {
            return Err(too_many());
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        if length > 10_000 && count > length / 50 {
            // The end of a pool is shuffled.
            let mut pool: Vec<usize> = (0..length).collect();
            for last in ((length - count).max(1)..length).rev() {
                let other = self.up_to(last as u64) as usize;
                pool.swap(last, other);
            }
            return Ok(pool[length - count..].iter().map(|at| items[*at].clone()).collect());
        }
        // A set of what was drawn, by Floyd's method, is shuffled.
        let mut seen = std::collections::HashSet::with_capacity(count);
        let mut drawn = Vec::with_capacity(count);
        for last in length - count..length {
            let at = self.up_to(last as u64) as usize;
            let new = if seen.insert(at) { at } else { last };
            seen.insert(new);
            drawn.push(new);
        }
        for last in (1..count).rev() {
            let other = self.up_to(last as u64) as usize;
            drawn.swap(last, other);
        }
        Ok(drawn.into_iter().map(|at| items[at].clone()).collect())
    }

    /// `shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // Unlike all else, this draws bits until they are no more than that.
            let mask = u64::MAX >> (last as u64).leading_zeros();
            let other = loop {
                let drawn = match u32::try_from(last) {
                    Ok(_) => u64::from(self.next_u32()),
                    Err(_) => self.next_u64(),
                };
                if drawn & mask <= last as u64 {
                    break drawn & mask;
                }
            };
            items.swap(last, other as usize);
        }
    }

    /// `permutation(count)`.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }
}

/// `numpy.random.RandomState(seed)`, the generator behind `numpy.random.seed` and the functions of that module: MT19937.
///
/// ```
/// use spar_python::numpy_random::RandomState;
///
/// let mut rng = RandomState::from_u32(42);
/// assert_eq!([(); 4].map(|()| rng.randint(0, 10).unwrap()), [6, 3, 7, 4]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RandomState {
    words: Random,
    /// The other one of a pair of normal numbers.
    normal: Option<f64>,
}

impl RandomState {
    /// Seeded by a whole number from 0 to 2^32 - 1, which are all that numpy takes.
    pub fn from_u32(seed: u32) -> Self {
        Self { words: Random::from_word(seed), normal: None }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.words.next_u32()
    }

    /// Draws so many times 32 bits for nobody.
    pub fn skip(&mut self, words: u32) {
        self.words.skip(words);
    }

    /// `random_sample()` and `rand()`: from 0 to below 1, in 53 bits.
    pub fn random(&mut self) -> f64 {
        self.words.random()
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `randint(low, high)` of the usual type `int64`: from `low` to below `high`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of an empty range.
    pub fn randint(&mut self, low: i64, high: i64) -> Outcome<i64> {
        if low >= high {
            return Err(Exception::value_error("low >= high"));
        }
        let span = high.wrapping_sub(low).wrapping_sub(1) as u64;
        Ok(low.wrapping_add(self.up_to(span) as i64))
    }

    /// From 0 to `most`, both included: bits are drawn until they are no more than that.
    pub fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let mask = u64::MAX >> most.leading_zeros();
        loop {
            let drawn = match u32::try_from(most) {
                Ok(_) => u64::from(self.next_u32()),
                Err(_) => u64::from(self.next_u32()) << 32 | u64::from(self.next_u32()),
            };
            if drawn & mask <= most {
                return drawn & mask;
            }
        }
    }

    /// `choice(items)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of nothing.
    pub fn choice<'i, T>(&mut self, items: &'i [T]) -> Outcome<&'i T> {
        if items.is_empty() {
            return Err(nothing_to_choose());
        }
        Ok(&items[self.up_to(items.len() as u64 - 1) as usize])
    }

    /// `choice(len(weights), p=weights)`: an index.
    ///
    /// # Errors
    ///
    /// The `ValueError` of weights that are no probabilities.
    pub fn weighted_choice(&mut self, weights: &[f64]) -> Outcome<usize> {
        let sums = sums_of(weights)?;
        let drawn = self.random();
        Ok(sums.partition_point(|&sum| sum <= drawn))
    }

    /// `choice(items, count, replace=False)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of nothing, or of more than there are.
    pub fn sample<T: Clone>(&mut self, items: &[T], count: usize) -> Outcome<Vec<T>> {
        if items.is_empty() && count > 0 {
            return Err(nothing_to_choose());
        }
        if count > items.len() {
            return Err(too_many());
        }
        let order = self.permutation(items.len());
        Ok(order[..count].iter().map(|at| items[*at].clone()).collect())
    }

    /// `shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.up_to(last as u64) as usize;
            items.swap(last, other);
        }
    }

    /// `permutation(count)`.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }

    /// `standard_normal()`, by the polar method (Marsaglia and Bray, 1964), which draws two at a time.
    pub fn standard_normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        loop {
            let (x, y) = (2.0 * self.random() - 1.0, 2.0 * self.random() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.normal = Some(factor * x);
                return factor * y;
            }
        }
    }

    /// `normal(mean, deviation)`.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        mean + deviation * self.standard_normal()
    }
}

/// `numpy.random.SeedSequence(entropy)` without children: a pool of four words that entropy is stirred into (O'Neill's
/// `seed_seq`, 2015).
struct SeedSequence {
    pool: [u32; 4],
}

impl SeedSequence {
    fn new(entropy: &[u32]) -> Self {
        let mut factor = 0x43b0_d7e5_u32;
        let mut hash = |value: u32| {
            let value = value ^ factor;
            factor = factor.wrapping_mul(0x931e_8875);
            let value = value.wrapping_mul(factor);
            value ^ value >> 16
        };
        let mix = |x: u32, y: u32| {
            let mixed = x.wrapping_mul(0xca01_f9dd).wrapping_sub(y.wrapping_mul(0x4973_f715));
            mixed ^ mixed >> 16
        };
        let mut pool = [0; 4];
        for (at, word) in pool.iter_mut().enumerate() {
            *word = hash(entropy.get(at).copied().unwrap_or(0));
        }
        for from in 0..4 {
            for to in 0..4 {
                if from != to {
                    pool[to] = mix(pool[to], hash(pool[from]));
                }
            }
        }
        for word in entropy.iter().skip(4) {
            for to in &mut pool {
                *to = mix(*to, hash(*word));
            }
        }
        Self { pool }
    }

    /// `generate_state(N)`.
    fn words<const N: usize>(&self) -> [u32; N] {
        let mut factor = 0x8b51_f9dd_u32;
        std::array::from_fn(|at| {
            let word = self.pool[at % 4] ^ factor;
            factor = factor.wrapping_mul(0x58f3_8ded);
            let word = word.wrapping_mul(factor);
            word ^ word >> 16
        })
    }
}

/// The sums of probabilities from the first one on, scaled so that the last one is 1.
fn sums_of(weights: &[f64]) -> Outcome<Vec<f64>> {
    if weights.is_empty() {
        return Err(nothing_to_choose());
    }
    if weights.iter().any(|weight| weight.is_nan()) {
        return Err(Exception::value_error("Probabilities contain NaN"));
    }
    if weights.iter().any(|weight| *weight < 0.0) {
        return Err(Exception::value_error("Probabilities are not non-negative"));
    }
    let mut sum = 0.0;
    let mut sums: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    // numpy's tolerance is the square root of the machine epsilon.
    if (sum - 1.0).abs() > f64::EPSILON.sqrt() {
        return Err(Exception::value_error("Probabilities do not sum to 1"));
    }
    sums.iter_mut().for_each(|part| *part /= sum);
    Ok(sums)
}

fn nothing_to_choose() -> Exception {
    Exception::value_error("a cannot be empty unless no samples are taken")
}

fn too_many() -> Exception {
    Exception::value_error("Cannot take a larger sample than population when replace is False")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Written by `scripts/record_numpy_fixtures.py`.
    const DRAWS: &str = include_str!("../tests/fixtures/numpy_random.json");

    fn recorded(of: &str) -> Vec<Value> {
        let mut recorded: Value = serde_json::from_str(DRAWS).unwrap();
        serde_json::from_value(recorded[of].take()).unwrap()
    }

    #[test]
    fn skipping_is_drawing_for_nobody() {
        for words in [0, 1, 623, 624, 625, 6174] {
            let mut rng = RandomState::from_u32(7);
            rng.next_u32();
            let mut other = rng.clone();
            rng.skip(words);
            (0..words).for_each(|_| _ = other.next_u32());
            assert_eq!([(); 3].map(|()| rng.next_u32()), [(); 3].map(|()| other.next_u32()));
        }
    }

    #[test]
    fn draws_of_a_generator_are_those_of_numpy() {
        let cases = recorded("generator");
        assert!(cases.len() > 8);
        for case in cases {
            let seed: BigUint = case["seed"].as_str().unwrap().parse().unwrap();
            let mut rng = Generator::from_int(&seed);
            if let Ok(small) = u64::try_from(&seed) {
                assert_eq!(rng, Generator::from_u64(small));
            }
            for draw in case["draws"].as_array().unwrap() {
                let (call, given) = (draw[0].as_str().unwrap(), &draw[1]);
                let number = |at: usize| given[at].as_i64().unwrap();
                let size = |at: usize| given[at].as_u64().unwrap() as usize;
                let found = match call {
                    "integers" => json!(rng.integers(number(0), number(1)).unwrap()),
                    "random" => json!(rng.random()),
                    "uniform" => {
                        json!(rng.uniform(given[0].as_f64().unwrap(), given[1].as_f64().unwrap()))
                    }
                    "choice" => {
                        let items: Vec<usize> = (0..size(0)).collect();
                        json!(rng.choice(&items).unwrap())
                    }
                    "weighted" => {
                        let weights: Vec<f64> = serde_json::from_value(given[0].clone()).unwrap();
                        json!(rng.weighted_choice(&weights).unwrap())
                    }
                    "sample" => {
                        let items: Vec<usize> = (0..size(0)).collect();
                        json!(rng.sample(&items, size(1)).unwrap())
                    }
                    "shuffle" => {
                        let mut items: Vec<usize> = (0..size(0)).collect();
                        rng.shuffle(&mut items);
                        json!(items)
                    }
                    "permutation" => json!(rng.permutation(size(0))),
                    other => panic!("{other}"),
                };
                assert_eq!(found, draw[2], "seed {seed}, {call} {given}");
            }
        }
    }

    #[test]
    fn draws_of_a_state_are_those_of_numpy() {
        let cases = recorded("random_state");
        assert!(cases.len() > 4);
        for case in cases {
            let seed = u32::try_from(case["seed"].as_u64().unwrap()).unwrap();
            let mut rng = RandomState::from_u32(seed);
            for draw in case["draws"].as_array().unwrap() {
                let (call, given) = (draw[0].as_str().unwrap(), &draw[1]);
                let number = |at: usize| given[at].as_i64().unwrap();
                let size = |at: usize| given[at].as_u64().unwrap() as usize;
                let found = match call {
                    "integers" => json!(rng.randint(number(0), number(1)).unwrap()),
                    "random" => json!(rng.random()),
                    "uniform" => {
                        json!(rng.uniform(given[0].as_f64().unwrap(), given[1].as_f64().unwrap()))
                    }
                    "choice" => {
                        let items: Vec<usize> = (0..size(0)).collect();
                        json!(rng.choice(&items).unwrap())
                    }
                    "weighted" => {
                        let weights: Vec<f64> = serde_json::from_value(given[0].clone()).unwrap();
                        json!(rng.weighted_choice(&weights).unwrap())
                    }
                    "sample" => {
                        let items: Vec<usize> = (0..size(0)).collect();
                        json!(rng.sample(&items, size(1)).unwrap())
                    }
                    "shuffle" => {
                        let mut items: Vec<usize> = (0..size(0)).collect();
                        rng.shuffle(&mut items);
                        json!(items)
                    }
                    "permutation" => json!(rng.permutation(size(0))),
                    "normal" => {
                        json!(rng.normal(given[0].as_f64().unwrap(), given[1].as_f64().unwrap()))
                    }
                    other => panic!("{other}"),
                };
                assert_eq!(found, draw[2], "seed {seed}, {call} {given}");
            }
        }
    }

    #[test]
    fn nothing_is_drawn_from_an_empty_range() {
        let mut rng = Generator::from_u64(1);
        let before = rng.clone();
        assert_eq!(rng.integers(3, 3).unwrap_err().text, "low >= high");
        assert_eq!(rng.integers(3, 4).unwrap(), 3, "one number is no draw");
        assert!(rng.choice::<u8>(&[]).is_err() && rng.sample(&[1, 2], 3).is_err());
        assert!(rng.weighted_choice(&[0.5, 0.4]).is_err());
        assert!(rng.weighted_choice(&[f64::NAN, 1.0]).is_err());
        assert_eq!(rng, before);
        assert!(rng.integers(i64::MIN, i64::MAX).is_ok());
    }
}
