//! Seeds that are derived by named paths.

use std::fmt;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The root of a tree of random choices.
///
/// Every random choice of a run derives from the run's seed by a path of names, so that adding a
/// choice somewhere does not change another one elsewhere, and no choice depends on the order in
/// which threads come to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Seed([u8; 32]);

impl Seed {
    /// The seed a user names by a number.
    pub fn from_u64(number: u64) -> Self {
        Self(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    /// The child seed under `name` and `key`; equal paths give equal seeds.
    #[must_use]
    pub fn derive(&self, name: &str, key: impl fmt::Display) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(key.to_string().as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// A generator started at this seed.
    pub fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.0)
    }

    /// The first 64 bits, for interfaces that take a number.
    pub fn as_u64(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(first)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({self})")
    }
}

impl From<Seed> for String {
    fn from(seed: Seed) -> Self {
        seed.to_string()
    }
}

impl TryFrom<String> for Seed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let refuse = || format!("seed `{text}` is not 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| refuse())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn paths_name_choices() {
        let seed = Seed::from_u64(1);
        assert_eq!(seed.derive("a", 1).rng().next_u64(), seed.derive("a", 1).rng().next_u64());
        assert_ne!(seed.derive("a", 1), seed.derive("a", 2));
        assert_ne!(seed.derive("ab", "c"), seed.derive("a", "bc"));
    }

    #[test]
    fn a_seed_round_trips_through_text() {
        let seed = Seed::from_u64(3);
        let json = serde_json::to_string(&seed).unwrap();
        assert_eq!(serde_json::from_str::<Seed>(&json).unwrap(), seed);
        assert!(serde_json::from_str::<Seed>("\"xyz\"").is_err());
    }
}
