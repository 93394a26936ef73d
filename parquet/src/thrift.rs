//! Thrift's compact protocol, without knowing what is in it.

use std::collections::BTreeMap;

use super::{MAX_DEPTH, Wrong};

/// Values of what is read in one go: a description, or the heads of a column's pages.
const MAX_VALUES: usize = 8 << 20;

/// A value of it; maps are read and forgotten, since no file's description needs one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Thrift<'a> {
    Bool(bool),
    Int(i64),
    Bytes(&'a [u8]),
    List(Vec<Thrift<'a>>),
    Struct(BTreeMap<i64, Thrift<'a>>),
    /// A float, or a map.
    Other,
}

/// Bytes that are read from their beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) left: &'a [u8],
    /// Values that may still be read: each takes many times the byte that it can be written in.
    values: usize,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(left: &'a [u8]) -> Self {
        Self { left, values: MAX_VALUES }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, left) =
            self.left.split_at_checked(count).ok_or_else(|| "it ends early".to_owned())?;
        self.left = left;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Wrong> {
        Ok(self.take(1)?[0])
    }

    /// A number of at most 64 bits, seven of them in each byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, Wrong> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number in it is too long".to_owned())
    }

    fn zigzag(&mut self) -> Result<i64, Wrong> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn length(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.varint()?).map_err(|_| "a length in it is too large".to_owned())
    }

    /// A structure: its fields by their numbers.
    pub(super) fn structure(&mut self, depth: usize) -> Result<Thrift<'a>, Wrong> {
        if depth > MAX_DEPTH {
            return Err("its description is nested too deeply".to_owned());
        }
        let (mut fields, mut number) = (BTreeMap::new(), 0i64);
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Ok(Thrift::Struct(fields));
            }
            number = match head >> 4 {
                0 => self.zigzag()?,
                delta => number.checked_add(i64::from(delta)).ok_or("a field has no number")?,
            };
            let value = match kind {
                1 | 2 => {
                    self.count_value()?;
                    Thrift::Bool(kind == 1)
                }
                kind => self.value(kind, depth)?,
            };
            fields.insert(number, value);
        }
    }

    fn count_value(&mut self) -> Result<(), Wrong> {
        self.values = self.values.checked_sub(1).ok_or("its description is too long")?;
        Ok(())
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Thrift<'a>, Wrong> {
        // Lists within lists are as deep as structures.
        if depth > MAX_DEPTH {
            return Err("its description is nested too deeply".to_owned());
        }
        self.count_value()?;
        Ok(match kind {
            // Within lists, where it has a byte of its own.
            1 | 2 => Thrift::Bool(self.byte()? == 1),
            3 => Thrift::Int(i64::from(self.byte()?.cast_signed())),
            4..=6 => Thrift::Int(self.zigzag()?),
            7 => {
                self.take(8)?;
                Thrift::Other
            }
            8 => {
                let length = self.length()?;
                Thrift::Bytes(self.take(length)?)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.length()?,
                    count => usize::from(count),
                };
                // Each takes a byte at least, so that no more room is made than there are bytes.
                if count > self.left.len() {
                    return Err("it ends early".to_owned());
                }
                let read = |_| self.value(head & 0x0f, depth + 1);
                Thrift::List((0..count).map(read).collect::<Result<_, _>>()?)
            }
            11 => {
                let count = self.length()?;
                if count > self.left.len() {
                    return Err("it ends early".to_owned());
                }
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.value(kinds >> 4, depth + 1)?;
                    self.value(kinds & 0x0f, depth + 1)?;
                }
                Thrift::Other
            }
            12 => self.structure(depth + 1)?,
            other => {
                return Err(format!("its description has a value of the unknown kind {other}"));
            }
        })
    }
}

impl<'a> Thrift<'a> {
    /// A field of a structure.
    pub(super) fn field(&self, number: i64) -> Option<&Self> {
        match self {
            Self::Struct(fields) => fields.get(&number),
            _ => None,
        }
    }

    pub(super) fn int(&self, number: i64) -> Option<i64> {
        match self.field(number)? {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// A number that has to be there and to count something.
    pub(super) fn count(&self, number: i64, what: &str) -> Result<usize, Wrong> {
        self.int(number)
            .and_then(|int| usize::try_from(int).ok())
            .ok_or_else(|| format!("{what} is missing or no number"))
    }

    pub(super) fn text(&self, number: i64) -> Option<&'a str> {
        match self.field(number)? {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn list(&self, number: i64) -> &[Self] {
        match self.field(number) {
            Some(Self::List(list)) => list,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_no_more_values_than_are_counted() {
        // Fields that are true, each the next by its number; and the same numbers within lists.
        let fields = |count: usize| [vec![0x11; count], vec![0]].concat();
        let mut few = Bytes { left: &fields(100), values: 100 };
        assert!(matches!(few.structure(0), Ok(Thrift::Struct(fields)) if fields.len() == 100));
        let mut many = Bytes { left: &fields(101), values: 100 };
        assert_eq!(many.structure(0).unwrap_err(), "its description is too long");
        let list = [&[0x19, 0xf1, 101][..], &[1; 101], &[0]].concat();
        let mut many = Bytes { left: &list, values: 101 };
        assert_eq!(many.structure(0).unwrap_err(), "its description is too long");
    }
}
