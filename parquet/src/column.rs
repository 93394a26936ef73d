//! The values of a column of a row group.

use serde_json::Value;

use super::schema::{Leaf, Physical};
use super::thrift::{Bytes, Thrift};
use super::{MAX_PAGE_BYTES, Wrong, moments, snappy};

/// Values with the levels that say where they belong.
#[derive(Debug, Default)]
pub(super) struct Column {
    /// Empty where all are 0.
    pub(super) repetitions: Vec<u32>,
    /// Empty where all are the greatest.
    pub(super) definitions: Vec<u32>,
    /// The values that are there.
    pub(super) values: Vec<Value>,
    /// Levels, values that are not there included.
    pub(super) len: usize,
}

/// What the pages of a column are read with.
pub(super) struct ColumnReader<'a> {
    pub(super) leaf: &'a Leaf,
    /// How they are packed, by the format's number.
    pub(super) codec: i64,
    pub(super) num_values: usize,
    /// Bytes that values of the row group may still take.
    pub(super) room: &'a mut usize,
    /// Bytes that its pages may still have when they are unpacked: a page needs no values to be large.
    pub(super) unpacked: &'a mut usize,
}

impl ColumnReader<'_> {
    /// Reads all pages.
    pub(super) fn read(mut self, pages: &[u8]) -> Result<Column, Wrong> {
        let physical = self.leaf.physical.clone().map_err(|what| format!("it has {what}"))?;
        let (mut column, mut dictionary) = (Column::default(), None);
        let mut bytes = Bytes::new(pages);
        while column.len < self.num_values {
            let header = bytes.structure(0)?;
            let packed = bytes.take(header.count(3, "the size of a page")?)?;
            let size = header.count(2, "the size of a page")?;
            if size > MAX_PAGE_BYTES {
                return Err(format!("a page has {size} bytes, at most {MAX_PAGE_BYTES} are read"));
            }
            match header.int(1) {
                Some(0) => {
                    let page = self.unpacked(packed, size)?;
                    let about = header.field(5).ok_or("a page does not tell what is in it")?;
                    self.first_version(&page, about, physical, dictionary.as_deref(), &mut column)?;
                }
                Some(2) => {
                    let page = self.unpacked(packed, size)?;
                    let about = header.field(7).ok_or("a page does not tell what is in it")?;
                    let count = about.count(1, "the number of values")?;
                    dictionary = Some(self.plain(&mut Bytes::new(&page), physical, count)?);
                }
                Some(3) => {
                    let about = header.field(8).ok_or("a page does not tell what is in it")?;
                    self.second_version(
                        packed,
                        size,
                        about,
                        physical,
                        dictionary.as_deref(),
                        &mut column,
                    )?;
                }
                // What is known of the values, for those who look for some.
                Some(1) => {}
                _ => return Err("it has a page of an unknown kind".to_owned()),
            }
        }
        Ok(column)
    }

    fn unpacked(&mut self, packed: &[u8], size: usize) -> Result<Vec<u8>, Wrong> {
        let left = self.unpacked.checked_sub(size);
        *self.unpacked = left.ok_or("the pages of a row group are too large")?;
        let page = match self.codec {
            0 => packed.to_vec(),
            1 => snappy::unpack(packed)?,
            6 => {
                let unpacked = zstd::bulk::decompress(packed, size);
                unpacked.map_err(|error| format!("a page that zstd has packed: {error}"))?
            }
            other => {
                let known = ["none", "snappy", "gzip", "LZO", "brotli", "LZ4", "zstd", "raw LZ4"];
                let name = usize::try_from(other).ok().and_then(|at| known.get(at));
                return Err(format!(
                    "it is packed by {}, and only snappy, zstd and no packing are read",
                    name.map_or_else(|| format!("method {other}"), |name| (*name).to_owned())
                ));
            }
        };
        match page.len() == size {
            true => Ok(page),
            false => Err("a page tells a wrong size".to_owned()),
        }
    }

    /// A page whose levels are packed with the values.
    fn first_version(
        &mut self,
        page: &[u8],
        about: &Thrift<'_>,
        physical: Physical,
        dictionary: Option<&[Value]>,
        column: &mut Column,
    ) -> Result<(), Wrong> {
        let count = self.page_count(about, column)?;
        let mut bytes = Bytes::new(page);
        for (field, max, is_definition) in
            [(4, self.leaf.max_repetition, false), (3, self.leaf.max_definition, true)]
        {
            if max == 0 {
                continue;
            }
            if about.int(field) != Some(3) {
                return Err("its levels are packed in a way that was given up".to_owned());
            }
            let length = little(bytes.take(4)?);
            let levels = hybrid(&mut Bytes::new(bytes.take(length)?), width_of(max), count)?;
            check_levels(&levels, max)?;
            let of = if is_definition { &mut column.definitions } else { &mut column.repetitions };
            of.extend(levels);
        }
        self.values(&mut bytes, about.int(2), physical, dictionary, count, column)
    }

    /// A page whose levels stand before the values.
    fn second_version(
        &mut self,
        packed: &[u8],
        size: usize,
        about: &Thrift<'_>,
        physical: Physical,
        dictionary: Option<&[Value]>,
        column: &mut Column,
    ) -> Result<(), Wrong> {
        let count = self.page_count(about, column)?;
        let mut bytes = Bytes::new(packed);
        let (of_definitions, of_repetitions) =
            (about.count(5, "the size of levels")?, about.count(6, "the size of levels")?);
        let repetitions = bytes.take(of_repetitions)?;
        let definitions = bytes.take(of_definitions)?;
        for (levels, max, is_definition) in [
            (repetitions, self.leaf.max_repetition, false),
            (definitions, self.leaf.max_definition, true),
        ] {
            if max > 0 {
                let levels = hybrid(&mut Bytes::new(levels), width_of(max), count)?;
                check_levels(&levels, max)?;
                let of =
                    if is_definition { &mut column.definitions } else { &mut column.repetitions };
                of.extend(levels);
            }
        }
        let rest = size
            .checked_sub(of_definitions)
            .and_then(|size| size.checked_sub(of_repetitions))
            .ok_or("a page tells a wrong size")?;
        let is_packed = about.field(7) != Some(&Thrift::Bool(false));
        let page = match is_packed && rest > 0 {
            true => self.unpacked(bytes.left, rest)?,
            false => bytes.left.to_vec(),
        };
        self.values(&mut Bytes::new(&page), about.int(4), physical, dictionary, count, column)
    }

    fn page_count(&mut self, about: &Thrift<'_>, column: &Column) -> Result<usize, Wrong> {
        let count = about.count(1, "the number of values")?;
        if count > self.num_values - column.len {
            return Err("its pages have more values than it tells".to_owned());
        }
        // A run of any length takes a few bytes of the file, and each of its values a place in a row, by its name.
        self.make_room(count.saturating_mul(LEVEL_BYTES + self.leaf.path.len()))?;
        Ok(count)
    }

    /// The values of a page that has so many levels.
    fn values(
        &mut self,
        bytes: &mut Bytes<'_>,
        encoding: Option<i64>,
        physical: Physical,
        dictionary: Option<&[Value]>,
        count: usize,
        column: &mut Column,
    ) -> Result<(), Wrong> {
        let max = self.leaf.max_definition;
        let present = match max {
            0 => count,
            _ => column.definitions[column.len..].iter().filter(|level| **level == max).count(),
        };
        column.len += count;
        match encoding {
            Some(0) => column.values.extend(self.plain(bytes, physical, present)?),
            Some(2 | 8) => {
                let dictionary = dictionary.ok_or("its dictionary is missing")?;
                if present == 0 {
                    return Ok(());
                }
                let width = u32::from(bytes.byte()?);
                if width > 32 {
                    return Err("its indices are too wide".to_owned());
                }
                for index in hybrid(bytes, width, present)? {
                    let found = dictionary.get(index as usize);
                    let found = found.ok_or("an index leads out of its dictionary")?;
                    self.make_room(size_of(found))?;
                    column.values.push(found.clone());
                }
            }
            Some(3) if physical == Physical::Boolean => {
                let length = little(bytes.take(4)?);
                let bits = hybrid(&mut Bytes::new(bytes.take(length)?), 1, present)?;
                self.make_room(present)?;
                column.values.extend(bits.into_iter().map(|bit| Value::Bool(bit == 1)));
            }
            other => {
                return Err(format!(
                    "its values are written by encoding {}, and only the plain and the dictionary's are read",
                    other.map_or_else(|| "none".to_owned(), |other| other.to_string())
                ));
            }
        }
        Ok(())
    }

    fn plain(
        &mut self,
        bytes: &mut Bytes<'_>,
        physical: Physical,
        count: usize,
    ) -> Result<Vec<Value>, Wrong> {
        // Each takes a bit at least.
        if count > bytes.left.len().saturating_mul(8) {
            return Err("a page ends early".to_owned());
        }
        if physical == Physical::Boolean {
            self.make_room(count)?;
            let bits = bytes.take(count.div_ceil(8))?;
            return Ok((0..count)
                .map(|at| Value::Bool(bits[at / 8] >> (at % 8) & 1 == 1))
                .collect());
        }
        let mut values = Vec::new();
        for _ in 0..count {
            let value = match physical {
                Physical::Unsigned32 => u32::from_le_bytes(fixed(bytes)?).into(),
                Physical::Unsigned64 => u64::from_le_bytes(fixed(bytes)?).into(),
                Physical::Days => moments::day(i32::from_le_bytes(fixed(bytes)?).into())?.into(),
                Physical::Moment { per_second, is_utc } => {
                    moments::moment(i64::from_le_bytes(fixed(bytes)?), per_second, is_utc)?.into()
                }
                Physical::Int32 => i32::from_le_bytes(fixed(bytes)?).into(),
                Physical::Int64 => i64::from_le_bytes(fixed(bytes)?).into(),
                // What JSON has no number for is none.
                Physical::Float => f64::from(f32::from_le_bytes(fixed(bytes)?)).into(),
                Physical::Double => f64::from_le_bytes(fixed(bytes)?).into(),
                Physical::Bytes => {
                    let length = little(bytes.take(4)?);
                    text(bytes.take(length)?)
                }
                Physical::Fixed(length) => text(bytes.take(length)?),
                Physical::Boolean => unreachable!("these were read above"),
            };
            self.make_room(size_of(&value))?;
            values.push(value);
        }
        Ok(values)
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Wrong> {
        let left = self.room.checked_sub(bytes);
        *self.room = left.ok_or("the values of a row group are too large")?;
        Ok(())
    }
}

/// Bytes that the levels of a value take with its place in a row, about.
const LEVEL_BYTES: usize = 64;

/// Bytes that a value takes, about.
fn size_of(value: &Value) -> usize {
    const EACH: usize = 32;
    EACH + value.as_str().map_or(0, str::len)
}

/// Bytes as a text; those that are none as hexadecimal digits.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
            let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
            digits.collect::<String>().into()
        }
    }
}

fn fixed<const N: usize>(bytes: &mut Bytes<'_>) -> Result<[u8; N], Wrong> {
    Ok(bytes.take(N)?.try_into().expect("so many were taken"))
}

/// A number of at most four bytes, the lowest first.
fn little(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

/// The bits that a level takes which is at most `max`.
fn width_of(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

fn check_levels(levels: &[u32], max: u32) -> Result<(), Wrong> {
    match levels.iter().all(|level| *level <= max) {
        true => Ok(()),
        false => Err("a level in it is too large".to_owned()),
    }
}

/// Numbers of so many bits, in runs of equal ones and runs that are packed.
fn hybrid(bytes: &mut Bytes<'_>, width: u32, count: usize) -> Result<Vec<u32>, Wrong> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let head = bytes.varint()?;
        let left = count - numbers.len();
        let run = usize::try_from(head >> 1).map_err(|_| "a run in it is too long")?;
        if head & 1 == 0 {
            if run == 0 {
                return Err("a run in it is empty".to_owned());
            }
            let value = little(bytes.take(width.div_ceil(8) as usize)?);
            let value = u32::try_from(value).map_err(|_| "a number in it is too large")?;
            numbers.extend(std::iter::repeat_n(value, run.min(left)));
            continue;
        }
        let packed = run.checked_mul(width as usize).ok_or("a run in it is too long")?;
        // The last run may be cut behind its last number.
        let packed = bytes.take(packed.min(bytes.left.len()))?;
        let in_run = run.saturating_mul(8).min(left);
        if run == 0 || (in_run as u64) * u64::from(width) > 8 * packed.len() as u64 {
            return Err("it ends early".to_owned());
        }
        for at in 0..in_run {
            let mut number = 0u32;
            for bit in 0..width as usize {
                let place = at * width as usize + bit;
                number |= u32::from(packed[place / 8] >> (place % 8) & 1) << bit;
            }
            numbers.push(number);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_unpacked_as_the_specification_has_them() {
        // Its example: the numbers 0 to 7 with three bits each.
        let packed = [0b0000_0011, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(hybrid(&mut Bytes::new(&packed), 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(hybrid(&mut Bytes::new(&[8, 5]), 3, 4).unwrap(), [5; 4]);
        assert_eq!(hybrid(&mut Bytes::new(&[8]), 0, 3).unwrap(), [0; 3]);
        for wrong in [&[][..], &[0, 1], &[1], &[3, 1], &[8]] {
            assert!(hybrid(&mut Bytes::new(wrong), 3, 8).is_err(), "{wrong:?}");
        }
        assert_eq!([0, 1, 2, 3, 4].map(width_of), [0, 1, 2, 2, 3]);
    }
}
