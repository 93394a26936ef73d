//! GGUF files: what they say of a model, and where its tensors lie.
//!
//! Source: the format's description in ggml, `docs/gguf.md`, versions 2 and 3, little-endian.
//!
//! A file holds metadata, values by keys such as `llama.block_count`, then the names, shapes and places of tensors, then their
//! numbers. All but the numbers is read here; what the numbers mean is known to whoever computes with them.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a text in the metadata.
const LARGEST_TEXT: u64 = 16 << 20;
/// Entries of the metadata, and tensors.
const MOST_ENTRIES: u64 = 1 << 16;
/// Bytes of all before the tensors.
const LARGEST_HEADER: u64 = 512 << 20;
/// Items of all lists of the metadata together; a vocabulary of 256,000 tokens with its merges has a million.
const MOST_ITEMS: u64 = 1 << 22;
/// How deep lists of lists may be.
const DEEPEST: u32 = 4;
/// Files by which a folder holds a model, a tokenizer or an adapter in the layout of Hugging Face.
const OTHER_FORMS: [&str; 3] = ["config.json", "tokenizer.json", "adapter_config.json"];

/// A GGUF file whose header was read and checked.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// The file.
    pub path: PathBuf,
    metadata: BTreeMap<String, GgufValue>,
    /// Its tensors, in their order.
    pub tensors: Vec<GgufTensor>,
    /// Where the first tensor's bytes may begin.
    pub data_start: u64,
    /// The bytes of the file.
    pub len: u64,
}

/// What the metadata says under a key.
#[derive(Debug, Clone, PartialEq)]
pub enum GgufValue {
    /// A whole number.
    Int(i64),
    /// A whole number beyond those.
    Large(u64),
    /// A number with a fraction.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// Several of one type.
    List(Vec<GgufValue>),
}

/// A tensor, as the header tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Its sizes, the one that varies slowest first.
    pub shape: Vec<usize>,
    /// The number by which ggml names how its numbers are stored.
    pub kind: u32,
    /// Where its bytes begin, counted from the first tensor's.
    pub offset: u64,
}

/// A GGUF file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// It could not be read.
    #[error("read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It ends before all is there that it says.
    #[error("read `{}` as GGUF: it ends within {part}, at byte {len}; copy or download it again", path.display())]
    CutOff {
        /// The file.
        path: PathBuf,
        /// What is not whole.
        part: String,
        /// Its bytes.
        len: u64,
    },
    /// It is one of several files that hold a model together.
    #[error(
        "use `{}`: it is one of {parts} files of a model; join them first (`llama-gguf-split --merge`)",
        path.display()
    )]
    Split {
        /// The file.
        path: PathBuf,
        /// How many there are.
        parts: u64,
    },
    /// It is damaged, or says what is not understood.
    #[error("use `{}` as a GGUF file: {detail}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl Gguf {
    /// The GGUF file that a path means: itself where its name ends in `.gguf`, or the only such file in a folder in which
    /// nothing says that it holds a model of another form. `None` where there is none, or several.
    pub fn find(path: &Path) -> Option<PathBuf> {
        let is_one = |path: &Path| {
            path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf")) && path.is_file()
        };
        if is_one(path) {
            return Some(path.to_owned());
        }
        if OTHER_FORMS.iter().any(|name| path.join(name).exists()) {
            return None;
        }
        let entries = path.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files = entries.filter(|path| is_one(path));
        let first = files.next()?;
        files.next().is_none().then_some(first)
    }

    /// Reads the header of a file. What is taken for it in memory is bounded by the bytes that are there.
    ///
    /// # Errors
    ///
    /// [`GgufError`] when it cannot be read, is cut off, or is none.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let fail = |source| GgufError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let len = file.metadata().map_err(fail)?.len();
        let mut reader = Reader {
            bytes: BufReader::new(file),
            at: 0,
            items: 0,
            end: len.min(LARGEST_HEADER),
            len,
            path,
        };
        reader.header()
    }

    /// What the metadata says under a key.
    pub fn get(&self, key: &str) -> Option<&GgufValue> {
        self.metadata.get(key)
    }

    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            GgufValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of the metadata that is not negative.
    pub fn count(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            GgufValue::Int(number) => u64::try_from(*number).ok(),
            GgufValue::Large(number) => Some(*number),
            _ => None,
        }
    }

    /// A number of the metadata.
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            GgufValue::Float(number) => Some(*number),
            GgufValue::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// A truth value of the metadata.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            GgufValue::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A list of the metadata.
    pub fn list(&self, key: &str) -> Option<&[GgufValue]> {
        match self.get(key)? {
            GgufValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// A list of texts of the metadata.
    ///
    /// # Errors
    ///
    /// [`GgufError::Invalid`] when there is none.
    pub fn texts(&self, key: &str) -> Result<Vec<&str>, GgufError> {
        let wrong = || self.invalid(format!("`{key}` is no list of texts"));
        let text = |item: &GgufValue| matches!(item, GgufValue::Text(_));
        let items = self.list(key).filter(|items| items.iter().all(text)).ok_or_else(wrong)?;
        let texts = items.iter().map(|item| match item {
            GgufValue::Text(text) => text.as_str(),
            _ => "",
        });
        Ok(texts.collect())
    }

    /// A tensor by its name.
    pub fn tensor(&self, name: &str) -> Option<&GgufTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// That something is wrong with the file.
    pub fn invalid(&self, detail: impl Into<String>) -> GgufError {
        GgufError::Invalid { path: self.path.clone(), detail: detail.into() }
    }
}

/// Reads a header, never beyond its end.
struct Reader<'a> {
    bytes: BufReader<File>,
    at: u64,
    /// Where a header has to end.
    end: u64,
    /// Bytes of the file.
    len: u64,
    /// Items of lists so far.
    items: u64,
    path: &'a Path,
}

impl Reader<'_> {
    fn header(&mut self) -> Result<Gguf, GgufError> {
        if self.take::<4>()? != *b"GGUF" {
            return Err(self.invalid("it does not begin with GGUF"));
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            let order = if version.swap_bytes() <= 3 {
                ", in the byte order of other machines"
            } else {
                ""
            };
            let detail =
                format!("it is of version {version}{order}; read are 2 and 3, little-endian");
            return Err(self.invalid(detail + "; convert the model again"));
        }
        let (num_tensors, num_entries) = (self.u64()?, self.u64()?);
        for (count, what) in [(num_tensors, "tensors"), (num_entries, "entries")] {
            if count > MOST_ENTRIES {
                return Err(
                    self.invalid(format!("it has {count} {what}, allowed are {MOST_ENTRIES}"))
                );
            }
        }
        let mut metadata = BTreeMap::new();
        for _ in 0..num_entries {
            let key = self.text()?;
            let kind = self.u32()?;
            let value = self.value(kind, DEEPEST)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(self.invalid(format!("`{key}` is there twice")));
            }
        }
        if let Some(GgufValue::Int(parts @ 2..)) = metadata.get("split.count") {
            return Err(GgufError::Split { path: self.path.to_owned(), parts: *parts as u64 });
        }
        let tensors = (0..num_tensors).map(|_| self.tensor()).collect::<Result<Vec<_>, _>>()?;
        let mut names = HashSet::new();
        if let Some(twice) = tensors.iter().find(|tensor| !names.insert(&tensor.name)) {
            return Err(self.invalid(format!("tensor `{}` is there twice", twice.name)));
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(GgufValue::Int(bytes @ 1..=0x1_0000)) => *bytes as u64,
            Some(_) => {
                return Err(self.invalid("`general.alignment` is no number of bytes up to 65,536"));
            }
        };
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.offset % alignment != 0) {
            let (name, offset) = (&tensor.name, tensor.offset);
            let detail = format!("tensor `{name}` begins at {offset}, no multiple of {alignment}");
            return Err(self.invalid(detail));
        }
        let data_start = self.at.next_multiple_of(alignment);
        Ok(Gguf { path: self.path.to_owned(), metadata, tensors, data_start, len: self.len })
    }

    fn tensor(&mut self) -> Result<GgufTensor, GgufError> {
        let name = self.text()?;
        let num_dims = self.u32()?;
        if num_dims > 4 {
            return Err(self.invalid(format!("tensor `{name}` has {num_dims} dimensions")));
        }
        let mut shape = Vec::new();
        let mut elements: usize = 1;
        for _ in 0..num_dims {
            let size = usize::try_from(self.u64()?).ok();
            let product = size.and_then(|size| elements.checked_mul(size));
            let (Some(size), Some(product)) = (size, product) else {
                return Err(self.invalid(format!("tensor `{name}` is larger than can be")));
            };
            elements = product;
            shape.push(size);
        }
        // The first is the one that varies fastest.
        shape.reverse();
        Ok(GgufTensor { name, shape, kind: self.u32()?, offset: self.u64()? })
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<GgufValue, GgufError> {
        Ok(match kind {
            0 => GgufValue::Int(self.take::<1>()?[0].into()),
            1 => GgufValue::Int(i8::from_le_bytes(self.take()?).into()),
            2 => GgufValue::Int(u16::from_le_bytes(self.take()?).into()),
            3 => GgufValue::Int(i16::from_le_bytes(self.take()?).into()),
            4 => GgufValue::Int(self.u32()?.into()),
            5 => GgufValue::Int(i32::from_le_bytes(self.take()?).into()),
            6 => GgufValue::Float(f32::from_le_bytes(self.take()?).into()),
            7 => GgufValue::Bool(self.take::<1>()?[0] != 0),
            8 => GgufValue::Text(self.text()?),
            9 if depth > 0 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                // Every item takes a byte at the least.
                if count > self.end - self.at {
                    return Err(self.cut_off());
                }
                self.items += count;
                if self.items > MOST_ITEMS {
                    let detail = format!("its lists have more than {MOST_ITEMS} items");
                    return Err(self.invalid(detail));
                }
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(self.value(kind, depth - 1)?);
                }
                GgufValue::List(items)
            }
            10 => {
                let number = self.u64()?;
                i64::try_from(number).map_or(GgufValue::Large(number), GgufValue::Int)
            }
            11 => GgufValue::Int(i64::from_le_bytes(self.take()?)),
            12 => GgufValue::Float(f64::from_le_bytes(self.take()?)),
            9 => return Err(self.invalid(format!("lists are nested deeper than {DEEPEST}"))),
            other => return Err(self.invalid(format!("a value is of the unknown type {other}"))),
        })
    }

    fn text(&mut self) -> Result<String, GgufError> {
        let len = self.u64()?;
        if len > self.end - self.at {
            return Err(self.cut_off());
        }
        if len > LARGEST_TEXT {
            return Err(self.invalid(format!("a text has {len} bytes, allowed are {LARGEST_TEXT}")));
        }
        let mut bytes = vec![0; len as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.invalid("a text is no UTF-8"))
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        if bytes.len() as u64 > self.end - self.at {
            return Err(self.cut_off());
        }
        let read = self.bytes.read_exact(bytes);
        read.map_err(|source| GgufError::Io { path: self.path.to_owned(), source })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn cut_off(&self) -> GgufError {
        if self.len > LARGEST_HEADER {
            return self.invalid(format!("its header is longer than {LARGEST_HEADER} bytes"));
        }
        GgufError::CutOff {
            path: self.path.to_owned(),
            part: "its header".to_owned(),
            len: self.len,
        }
    }

    fn invalid(&self, detail: impl Into<String>) -> GgufError {
        GgufError::Invalid { path: self.path.to_owned(), detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8]) -> Result<Gguf, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Gguf::find(folder.path()), Some(path.clone()));
        Gguf::open(&path).map_err(|error| error.to_string())
    }

    fn small() -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&mut bytes, "a");
        bytes.extend(4_u32.to_le_bytes());
        bytes.extend(7_u32.to_le_bytes());
        text(&mut bytes, "b");
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        text(&mut bytes, "x");
        text(&mut bytes, "yz");
        text(&mut bytes, "w");
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(3_u64.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_is_read() {
        let file = open(&small()).unwrap();
        assert_eq!((file.count("a"), file.texts("b").unwrap()), (Some(7), vec!["x", "yz"]));
        let tensor = GgufTensor { name: "w".to_owned(), shape: vec![2, 3], kind: 0, offset: 0 };
        assert_eq!(file.tensors, [tensor]);
        assert_eq!(file.data_start % 32, 0);
        assert!(file.texts("a").is_err() && file.get("c").is_none());
    }

    #[test]
    fn wherever_a_header_is_cut_off_that_is_told() {
        let whole = small();
        for len in 0..whole.len() {
            let told = open(&whole[..len]).unwrap_err();
            assert!(told.contains("ends within its header"), "{len}: {told}");
        }
    }

    #[test]
    fn hostile_headers_take_no_memory() {
        // The lengths of texts, lists and counts, each as large as can be, and every byte turned over.
        let whole = small();
        for at in 0..whole.len() {
            for byte in [0xff, 0x7f, 0] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                let _ = open(&bytes);
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(byte);
                let _ = open(&bytes);
            }
        }
        let mut other = whole.clone();
        other[0] = b'g';
        assert!(open(&other).unwrap_err().contains("does not begin with GGUF"));
        other = whole;
        other[4] = 9;
        assert!(open(&other).unwrap_err().contains("version 9"));
    }
}
