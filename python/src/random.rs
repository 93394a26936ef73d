//! CPython's generator of random numbers.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_traits::Signed;
use sha2::{Digest, Sha512};

use crate::{Exception, Outcome};

const N: usize = 624;
const M: usize = 397;

/// `random.Random`: the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded and drawn from as in CPython
/// 3.12. A clone shares the words that are made in advance, and draws on its own from then on.
#[derive(Clone, PartialEq, Eq)]
pub struct Random {
    state: Arc<[u32; N]>,
    /// How many words of the state were handed out.
    used: usize,
}

/// The state that `init_by_array` mixes a key into: that of seed 19650218, the same for all keys.
const BEFORE_KEY: [u32; N] = {
    let mut state = [0_u32; N];
    state[0] = 19_650_218;
    let mut i = 1;
    while i < N {
        let last = state[i - 1];
        state[i] = 1_812_433_253_u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        i += 1;
    }
    state
};

impl std::fmt::Debug for Random {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Random").field("used", &self.used).finish_non_exhaustive()
    }
}

impl Random {
    /// `random.Random(seed)` of a whole number of any size; its sign does not count.
    pub fn from_int(seed: &BigInt) -> Self {
        let (_, words) = seed.to_u32_digits();
        Self::from_words(if words.is_empty() { &[0] } else { &words })
    }

    /// `random.Random(seed)` of a whole number.
    pub fn from_u64(seed: u64) -> Self {
        Self::from_int(&BigInt::from(seed))
    }

    /// `random.Random(seed)` of a text, by version 2 of seeding: the text and its SHA-512 as one number.
    pub fn from_text(seed: &str) -> Self {
        let mut bytes = seed.as_bytes().to_vec();
        bytes.extend(Sha512::digest(seed.as_bytes()));
        Self::from_words(&BigUint::from_bytes_be(&bytes).to_u32_digits())
    }

    /// `init_genrand` of the reference implementation, by which numpy seeds its `RandomState`.
    pub(crate) fn from_word(seed: u32) -> Self {
        let mut state = [0_u32; N];
        let mut word = seed;
        for (at, place) in state.iter_mut().enumerate() {
            *place = word;
            word = 1_812_433_253_u32.wrapping_mul(word ^ (word >> 30)).wrapping_add(at as u32 + 1);
        }
        refill(&mut state);
        Self { state: Arc::new(state), used: 0 }
    }

    /// `init_by_array` of the reference implementation.
    fn from_words(key: &[u32]) -> Self {
        let mut state = BEFORE_KEY;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let last = state[i - 1];
            state[i] = (state[i] ^ (last ^ (last >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            // A remainder would take longer than all the rest of a step.
            j += 1;
            if j == key.len() {
                j = 0;
            }
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            let last = state[i - 1];
            state[i] = (state[i] ^ (last ^ (last >> 30)).wrapping_mul(1_566_083_941))
                .wrapping_sub(i as u32);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        refill(&mut state);
        Self { state: Arc::new(state), used: 0 }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used >= N {
            refill(Arc::make_mut(&mut self.state));
            self.used = 0;
        }
        let mut word = self.state[self.used];
        self.used += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Draws so many words for nobody.
    pub(crate) fn skip(&mut self, words: u32) {
        self.used += words as usize;
        while self.used > N {
            refill(Arc::make_mut(&mut self.state));
            self.used -= N;
        }
    }

    /// `random()`: from 0 to below 1, in 53 bits.
    pub fn random(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `getrandbits(bits)` for up to 64 bits; the low word is drawn first.
    ///
    /// # Panics
    ///
    /// When more are asked for.
    pub fn bits(&mut self, bits: u32) -> u64 {
        assert!(bits <= 64, "at most 64 bits are drawn at a time");
        match bits {
            0 => 0,
            1..=32 => u64::from(self.next_u32() >> (32 - bits)),
            _ => {
                let low = u64::from(self.next_u32());
                low | u64::from(self.next_u32() >> (64 - bits)) << 32
            }
        }
    }

    /// `getrandbits(bits)` for any number of bits.
    pub fn big_bits(&mut self, mut bits: u64) -> BigUint {
        let mut words = Vec::new();
        while bits > 0 {
            let take = bits.min(32) as u32;
            words.push(self.next_u32() >> (32 - take));
            bits -= u64::from(take);
        }
        BigUint::new(words)
    }

    /// `_randbelow(bound)`: from 0 to below the bound, by rejection.
    ///
    /// # Panics
    ///
    /// When the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// `randrange(start, stop)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of an empty range.
    pub fn range(&mut self, start: i64, stop: i64) -> Outcome<i64> {
        if stop <= start {
            return Err(Exception::value_error(format_args!(
                "empty range in randrange({start}, {stop})"
            )));
        }
        Ok(start.wrapping_add(self.below(stop.wrapping_sub(start) as u64) as i64))
    }

    /// `randint(first, last)`, both included.
    ///
    /// # Errors
    ///
    /// The `ValueError` of an empty range.
    pub fn int(&mut self, first: i64, last: i64) -> Outcome<i64> {
        self.range(first, last.saturating_add(1))
    }

    /// `randrange(start, stop)` of whole numbers of any size.
    ///
    /// # Errors
    ///
    /// The `ValueError` of an empty range.
    pub fn big_range(&mut self, start: &BigInt, stop: &BigInt) -> Outcome<BigInt> {
        let width = stop - start;
        if !width.is_positive() {
            return Err(Exception::value_error(format_args!(
                "empty range in randrange({start}, {stop})"
            )));
        }
        let bits = width.bits();
        loop {
            let drawn = BigInt::from(self.big_bits(bits));
            if drawn < width {
                return Ok(start + drawn);
            }
        }
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `choice(items)`.
    ///
    /// # Errors
    ///
    /// The `IndexError` of nothing.
    pub fn choice<'i, T>(&mut self, items: &'i [T]) -> Outcome<&'i T> {
        if items.is_empty() {
            return Err(Exception::new(
                crate::ExceptionKind::Index,
                "Cannot choose from an empty sequence",
            ));
        }
        Ok(&items[self.below(items.len() as u64) as usize])
    }

    /// `choices(items, k=count)`, each as likely as any.
    ///
    /// # Errors
    ///
    /// The `IndexError` of nothing.
    pub fn choices<'i, T>(&mut self, items: &'i [T], count: usize) -> Outcome<Vec<&'i T>> {
        let length = items.len() as f64;
        (0..count)
            .map(|_| {
                let at = (self.random() * length).floor() as usize;
                items.get(at).ok_or_else(|| {
                    Exception::new(crate::ExceptionKind::Index, "list index out of range")
                })
            })
            .collect()
    }

    /// `choices(items, weights, k=count)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of weights that are not as many, not finite, or add up to nothing.
    pub fn weighted_choices<'i, T>(
        &mut self,
        items: &'i [T],
        weights: &[f64],
        count: usize,
    ) -> Outcome<Vec<&'i T>> {
        if weights.len() != items.len() {
            return Err(Exception::value_error(
                "The number of weights does not match the population",
            ));
        }
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        if sum <= 0.0 || items.is_empty() {
            return Err(Exception::value_error("Total of weights must be greater than zero"));
        }
        if !sum.is_finite() {
            return Err(Exception::value_error("Total of weights must be finite"));
        }
        let last = items.len() - 1;
        Ok((0..count)
            .map(|_| {
                let drawn = self.random() * sum;
                &items[sums.partition_point(|&sum| sum <= drawn).min(last)]
            })
            .collect())
    }

    /// `shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// `sample(items, count)`, in the order drawn.
    ///
    /// # Errors
    ///
    /// The `ValueError` of more than there are.
    pub fn sample<T: Clone>(&mut self, items: &[T], count: usize) -> Outcome<Vec<T>> {
        let length = items.len();
        if count > length {
            return Err(Exception::value_error("Sample larger than population or is negative"));
        }
        // CPython draws from a shrinking pool where that is smaller than a set of what was drawn.
        let mut set_size = 21;
        if count > 5 {
            let exponent = ((count * 3) as f64).ln() / 4_f64.ln();
            set_size += 4_usize.pow(exponent.ceil() as u32);
        }
        if length <= set_size {
            let mut pool = items.to_vec();
            return Ok((0..count)
                .map(|drawn| {
                    let at = self.below((length - drawn) as u64) as usize;
                    let item = pool[at].clone();
                    pool[at] = pool[length - drawn - 1].clone();
                    item
                })
                .collect());
        }
        let mut drawn = std::collections::HashSet::new();
        Ok((0..count)
            .map(|_| {
                loop {
                    let at = self.below(length as u64) as usize;
                    if drawn.insert(at) {
                        return items[at].clone();
                    }
                }
            })
            .collect())
    }

    /// `gauss(mean, deviation)` of a generator that holds no second draw back: each call draws two numbers and uses one
    /// of the pair. With `kept` the other one of the pair is kept there for the next call, as CPython does.
    pub fn gauss(&mut self, mean: f64, deviation: f64, kept: &mut Option<f64>) -> f64 {
        let z = kept.take().unwrap_or_else(|| {
            let angle = self.random() * std::f64::consts::TAU;
            let radius = (-2.0 * (1.0 - self.random()).ln()).sqrt();
            *kept = Some(angle.sin() * radius);
            angle.cos() * radius
        });
        mean + z * deviation
    }

    /// `expovariate(rate)`.
    pub fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random()).ln() / rate
    }

    /// `randbytes(count)`.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 3);
        for _ in 0..count / 4 {
            bytes.extend(self.next_u32().to_le_bytes());
        }
        let rest = count % 4;
        if rest > 0 {
            // The bits that are too many are the low ones of the last word.
            let word = self.bits(8 * rest as u32);
            bytes.extend_from_slice(&word.to_le_bytes()[..rest]);
        }
        bytes
    }

    /// `normalvariate(mean, deviation)`: by the ratio of two draws (Kinderman and Monahan, 1977).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        // 4 * exp(-0.5) / sqrt(2).
        let magic = 4.0 * (-0.5_f64).exp() / 2.0_f64.sqrt();
        loop {
            let first = self.random();
            let second = 1.0 - self.random();
            let z = magic * (first - 0.5) / second;
            if z * z / 4.0 <= -second.ln() {
                return mean + z * deviation;
            }
        }
    }

    /// `lognormvariate(mean, deviation)`.
    pub fn log_normal(&mut self, mean: f64, deviation: f64) -> f64 {
        self.normal(mean, deviation).exp()
    }

    /// `gammavariate(shape, scale)`: by Cheng (1977) above a shape of 1, by Kennedy and Gentle's algorithm GS below.
    ///
    /// # Errors
    ///
    /// The `ValueError` of a shape or scale that is not above 0.
    pub fn gamma(&mut self, shape: f64, scale: f64) -> Outcome<f64> {
        if !(shape > 0.0 && scale > 0.0) {
            return Err(Exception::value_error("gammavariate: alpha and beta must be > 0.0"));
        }
        if shape > 1.0 {
            let spread = (2.0 * shape - 1.0).sqrt();
            let offset = shape - 4.0_f64.ln();
            let sum = shape + spread;
            let bound = 1.0 + 4.5_f64.ln();
            loop {
                let first = self.random();
                if !(1e-7 < first && first < 0.999_999_9) {
                    continue;
                }
                let second = 1.0 - self.random();
                let v = (first / (1.0 - first)).ln() / spread;
                let x = shape * v.exp();
                let z = first * first * second;
                let r = offset + sum * v - x;
                if r + bound - 4.5 * z >= 0.0 || r >= z.ln() {
                    return Ok(x * scale);
                }
            }
        }
        if shape == 1.0 {
            return Ok(-(1.0 - self.random()).ln() * scale);
        }
        let b = (std::f64::consts::E + shape) / std::f64::consts::E;
        loop {
            let p = b * self.random();
            let x = if p <= 1.0 { p.powf(1.0 / shape) } else { -((b - p) / shape).ln() };
            let second = self.random();
            let limit = if p > 1.0 { x.powf(shape - 1.0) } else { (-x).exp() };
            if second <= limit {
                return Ok(x * scale);
            }
        }
    }

    /// `betavariate(alpha, beta)`.
    ///
    /// # Errors
    ///
    /// The `ValueError` of a parameter that is not above 0.
    pub fn beta(&mut self, alpha: f64, beta: f64) -> Outcome<f64> {
        let first = self.gamma(alpha, 1.0)?;
        if first == 0.0 {
            return Ok(0.0);
        }
        Ok(first / (first + self.gamma(beta, 1.0)?))
    }

    /// `paretovariate(shape)`.
    pub fn pareto(&mut self, shape: f64) -> f64 {
        (1.0 - self.random()).powf(-1.0 / shape)
    }

    /// `weibullvariate(scale, shape)`.
    pub fn weibull(&mut self, scale: f64, shape: f64) -> f64 {
        scale * (-(1.0 - self.random()).ln()).powf(1.0 / shape)
    }

    /// `triangular(low, high)`, with the mode in the middle.
    pub fn triangular(&mut self, low: f64, high: f64) -> f64 {
        let (mut drawn, mut middle, mut low, mut high) = (self.random(), 0.5, low, high);
        if drawn > middle {
            drawn = 1.0 - drawn;
            middle = 1.0 - middle;
            std::mem::swap(&mut low, &mut high);
        }
        low + (high - low) * (drawn * middle).sqrt()
    }
}

/// The seed of a value, as `random.Random(value)` takes it: whole numbers and texts.
///
/// # Errors
///
/// The `TypeError` of what seeds nothing. Floats and `None`, which CPython seeds with, are refused: by hash or by the
/// clock.
pub fn seeded(value: &crate::Value) -> Outcome<Random> {
    match value {
        crate::Value::Str(text) => Ok(Random::from_text(text)),
        _ => match value.as_int() {
            Some(seed) => Ok(Random::from_int(&seed.abs())),
            None if matches!(value, crate::Value::None | crate::Value::Float(_)) => {
                Err(Exception::refused("a generator is seeded by whole numbers and texts here"))
            }
            None => Err(Exception::type_error(
                "The only supported seed types are: None,\nint, float, str, bytes, and bytearray.",
            )),
        },
    }
}

/// Makes the next words out of those that were handed out.
fn refill(state: &mut [u32; N]) {
    let twisted = |high: u32, low: u32| {
        let bits = (high & 0x8000_0000) | (low & 0x7fff_ffff);
        (bits >> 1) ^ if bits & 1 == 0 { 0 } else { 0x9908_b0df }
    };
    for i in 0..N - M {
        state[i] = state[i + M] ^ twisted(state[i], state[i + 1]);
    }
    for i in N - M..N - 1 {
        state[i] = state[i + M - N] ^ twisted(state[i], state[i + 1]);
    }
    state[N - 1] = state[M - 1] ^ twisted(state[N - 1], state[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `scripts/record_python_fixtures.py`.
    const DRAWS: &str = include_str!("../tests/fixtures/random.json");

    #[test]
    fn draws_are_those_of_cpython() {
        let recorded: serde_json::Value = serde_json::from_str(DRAWS).unwrap();
        let recorded = recorded.as_array().unwrap();
        assert!(recorded.len() > 5);
        for case in recorded {
            let seed = &case["seed"];
            let mut random = match seed["int"].as_str() {
                Some(digits) => Random::from_int(&digits.parse().unwrap()),
                None => Random::from_text(seed["str"].as_str().unwrap()),
            };
            let words: Vec<u32> = (0..4).map(|_| random.next_u32()).collect();
            assert_eq!(serde_json::json!(words), case["words"], "{seed}");
            assert_eq!(serde_json::json!(random.random()), case["random"]);
            assert_eq!(serde_json::json!(random.bits(40)), case["bits40"]);
            let big = random.big_bits(100).to_string();
            assert_eq!(serde_json::json!(big), case["bits100"]);
            assert_eq!(serde_json::json!(random.int(10000, 99999).unwrap()), case["int"]);
            let long = random.int(100_000_000_000, 999_999_999_999).unwrap();
            assert_eq!(serde_json::json!(long), case["long"]);
            assert_eq!(serde_json::json!(random.uniform(-10.0, 40.0)), case["uniform"]);
            let items: Vec<u32> = (0..30).collect();
            assert_eq!(serde_json::json!(random.choice(&items).unwrap()), case["choice"]);
            assert_eq!(serde_json::json!(random.choices(&items, 5).unwrap()), case["choices"]);
            let weights: Vec<f64> = (0..30).map(f64::from).collect();
            let weighted = random.weighted_choices(&items, &weights, 5).unwrap();
            assert_eq!(serde_json::json!(weighted), case["weighted"]);
            let mut shuffled = items.clone();
            random.shuffle(&mut shuffled);
            assert_eq!(serde_json::json!(shuffled), case["shuffled"]);
            assert_eq!(serde_json::json!(random.sample(&items, 10).unwrap()), case["sample"]);
            let many: Vec<u32> = (0..1000).collect();
            assert_eq!(serde_json::json!(random.sample(&many, 7).unwrap()), case["sparse"]);
            let mut kept = None;
            let gauss = [0, 1].map(|_| random.gauss(1.0, 2.0, &mut kept));
            assert_eq!(serde_json::json!(gauss), case["gauss"]);
            assert_eq!(serde_json::json!(random.exponential(0.5)), case["exponential"]);
            assert_eq!(serde_json::json!(random.triangular(0.0, 1.0)), case["triangular"]);
            let stop: BigInt = BigInt::from(10).pow(30);
            let big = random.big_range(&BigInt::from(-5), &stop).unwrap().to_string();
            assert_eq!(serde_json::json!(big), case["big_range"]);
            assert_eq!(serde_json::json!(random.bytes(7)), case["bytes"]);
            assert_eq!(serde_json::json!(random.normal(1.0, 2.0)), case["normal"]);
            assert_eq!(serde_json::json!(random.log_normal(0.0, 0.5)), case["log_normal"]);
            let gamma = [0.5, 1.0, 2.5].map(|shape| random.gamma(shape, 2.0).unwrap());
            assert_eq!(serde_json::json!(gamma), case["gamma"]);
            assert_eq!(serde_json::json!(random.beta(2.0, 0.7).unwrap()), case["beta"]);
            assert_eq!(serde_json::json!(random.pareto(3.0)), case["pareto"]);
            assert_eq!(serde_json::json!(random.weibull(1.5, 2.0)), case["weibull"]);
        }
    }

    #[test]
    fn an_empty_range_raises() {
        let error = Random::from_u64(0).int(5, 3).unwrap_err();
        assert_eq!(error.text, "empty range in randrange(5, 4)");
    }
}
