//! Pictures and the like within messages, told apart by what they contain.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The BLAKE3 hash of a medium's bytes; written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediaHash([u8; 32]);

impl MediaHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for MediaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for MediaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MediaHash({self})")
    }
}

impl FromStr for MediaHash {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let hash = blake3::Hash::from_hex(text);
        let hash = hash.map_err(|_| MediaError::NoHash { text: text.to_owned() })?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl Serialize for MediaHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MediaHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A picture or the like. Records name it by its hash; its bytes are kept once, beside them.
///
/// Two media are equal where their hashes and types are, whether or not their bytes are at hand.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// The hash of its bytes.
    pub hash: MediaHash,
    /// What it is, as a media type such as `image/png`.
    pub media_type: String,
    /// Absent where it was read from a record.
    #[serde(skip)]
    bytes: Option<Arc<[u8]>>,
}

impl Media {
    /// A medium of these bytes.
    pub fn new(media_type: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let (hash, media_type) = (MediaHash::of(&bytes), media_type.into());
        Self { hash, media_type, bytes: Some(bytes) }
    }

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// [`MediaError::Missing`] where it was read from a record and its bytes were not [loaded](Self::load).
    pub fn bytes(&self) -> Result<&Arc<[u8]>, MediaError> {
        self.bytes.as_ref().ok_or(MediaError::Missing { hash: self.hash })
    }

    /// Gives it its bytes.
    ///
    /// # Errors
    ///
    /// [`MediaError::Other`] when they are not those that its hash names.
    pub fn load(&mut self, bytes: impl Into<Arc<[u8]>>) -> Result<(), MediaError> {
        let bytes = bytes.into();
        let found = MediaHash::of(&bytes);
        if found != self.hash {
            return Err(MediaError::Other { hash: self.hash, found });
        }
        self.bytes = Some(bytes);
        Ok(())
    }
}

impl PartialEq for Media {
    fn eq(&self, other: &Self) -> bool {
        (self.hash, &self.media_type) == (other.hash, &other.media_type)
    }
}

impl Eq for Media {}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Media({}, {})", self.media_type, self.hash)
    }
}

/// A medium cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A text is no hash.
    #[error("read media hash `{text}`: it has to be 64 hexadecimal digits")]
    NoHash {
        /// The text.
        text: String,
    },
    /// Its bytes are not there.
    #[error("find the bytes of media `{hash}`: they are neither loaded nor kept beside the record")]
    Missing {
        /// Its hash.
        hash: MediaHash,
    },
    /// Its bytes are those of another one.
    #[error("use the bytes of media `{hash}`: their hash is `{found}`")]
    Other {
        /// The hash it is known by.
        hash: MediaHash,
        /// The hash of what was found.
        found: MediaHash,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_hash_and_takes_no_other_bytes() {
        let media = Media::new("image/png", *b"pixels");
        let json = serde_json::to_string(&media).unwrap();
        assert!(!json.contains("pixels"), "{json}");
        let mut read: Media = serde_json::from_str(&json).unwrap();
        assert_eq!(read, media);
        let missing = read.bytes().unwrap_err();
        assert_eq!(missing, MediaError::Missing { hash: MediaHash::of(b"pixels") });
        assert!(matches!(read.load(*b"others"), Err(MediaError::Other { .. })));
        assert!(read.bytes().is_err());
        read.load(*b"pixels").unwrap();
        assert_eq!(&**read.bytes().unwrap(), b"pixels");
        for hash in ["", "0", "not hexadecimal", &"g".repeat(64)] {
            let error = hash.parse::<MediaHash>().unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }
}
