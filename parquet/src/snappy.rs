use super::thrift::Bytes;
use super::{MAX_PAGE_BYTES, Wrong};

/// Unpacks what snappy has packed, in its format without frames.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Bytes::new(packed);
    let length = bytes.varint()?;
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_PAGE_BYTES);
    let length = length.ok_or("a page is too large")?;
    // Three bytes stand for sixty-four at the most: one that claims more lies.
    if length > packed.len().saturating_mul(64) {
        return Err("a page that snappy has packed tells a wrong length".to_owned());
    }
    let mut out: Vec<u8> = Vec::with_capacity(length);
    while !bytes.left.is_empty() {
        let tag = bytes.byte()?;
        let little =
            |part: &[u8]| part.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (offset, count) = match tag & 3 {
            0 => {
                let short = usize::from(tag >> 2);
                let count = if short < 60 { short } else { little(bytes.take(short - 59)?) };
                out.extend_from_slice(bytes.take(count + 1)?);
                if out.len() > length {
                    return Err("a page that snappy has packed tells a wrong length".to_owned());
                }
                continue;
            }
            1 => (
                usize::from(tag >> 5) << 8 | usize::from(bytes.byte()?),
                usize::from(tag >> 2 & 7) + 4,
            ),
            2 => (little(bytes.take(2)?), usize::from(tag >> 2) + 1),
            _ => (little(bytes.take(4)?), usize::from(tag >> 2) + 1),
        };
        let from = out.len().checked_sub(offset).filter(|_| offset > 0);
        let from = from.ok_or("a page that snappy has packed refers to what is not there")?;
        if out.len() + count > length {
            return Err("a page that snappy has packed tells a wrong length".to_owned());
        }
        // It may repeat what it appends.
        for at in from..from + count {
            out.push(out[at]);
        }
    }
    match out.len() == length {
        true => Ok(out),
        false => Err("a page that snappy has packed tells a wrong length".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_unpacked_and_lies_are_told() {
        // "abab" as two letters and a copy of both; the same with a longer copy than there are bytes yet.
        assert_eq!(unpack(&[4, 4, b'a', b'b', 0b0000_0110, 2, 0]).unwrap(), b"abab");
        assert_eq!(unpack(&[7, 4, b'a', b'b', 0b0000_0101, 2]).unwrap(), b"abababa");
        assert!(unpack(&[8, 4, b'a', b'b', 0b0000_0101, 2]).unwrap_err().contains("length"));
        assert_eq!(unpack(&[6, 4, b'a', b'b', 0b0000_0001, 2]).unwrap(), b"ababab");
        assert_eq!(unpack(&[0]).unwrap(), b"");
        for wrong in [
            &[][..],
            &[4, 4, b'a'],
            &[4, 0b0000_0110, 2, 0],
            &[4, 4, b'a', b'b', 0b0000_0110, 0, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 0],
            &[3, 0xfc, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(unpack(wrong).is_err(), "{wrong:?}");
        }
    }
}
