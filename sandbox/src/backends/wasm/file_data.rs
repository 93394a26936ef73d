//! Bytes of a file in shared pieces.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes per piece.
const PIECE: u64 = 64 << 10;

/// The contents of a file: pieces that copies share until one of them writes; what was never
/// written takes no space.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileData {
    /// By number; a piece shorter than [`PIECE`] goes on with zeros.
    pieces: BTreeMap<u64, Arc<Vec<u8>>>,
    len: u64,
}

impl FileData {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that it takes.
    pub(crate) fn stored(&self) -> u64 {
        self.pieces.values().map(|piece| piece.len() as u64).sum()
    }

    /// Reads from `offset` on: how many bytes, 0 at the end.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let wanted = (self.len.saturating_sub(offset)).min(into.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let within = (at % PIECE) as usize;
            let n = (PIECE as usize - within).min(wanted - done);
            let target = &mut into[done..done + n];
            let piece = self.pieces.get(&(at / PIECE)).map_or(&[][..], |piece| piece);
            let present = piece.get(within..).unwrap_or_default();
            let present = &present[..present.len().min(n)];
            target[..present.len()].copy_from_slice(present);
            target[present.len()..].fill(0);
            done += n;
        }
        wanted
    }

    /// Writes as much as takes at most `room` more bytes: how many bytes were written, and how many
    /// more the file takes now.
    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8], room: u64) -> (usize, u64) {
        let (mut done, mut grown) = (0, 0);
        while done < bytes.len() {
            let at = offset + done as u64;
            let within = (at % PIECE) as usize;
            let n = (PIECE as usize - within).min(bytes.len() - done);
            let stored = self.pieces.get(&(at / PIECE)).map_or(0, |piece| piece.len());
            let growth = (within + n).saturating_sub(stored) as u64;
            if grown + growth > room {
                break;
            }
            let piece = Arc::make_mut(self.pieces.entry(at / PIECE).or_default());
            if piece.len() < within + n {
                piece.resize(within + n, 0);
            }
            piece[within..within + n].copy_from_slice(&bytes[done..done + n]);
            (done, grown) = (done + n, grown + growth);
        }
        if done > 0 {
            self.len = self.len.max(offset + done as u64);
        }
        (done, grown)
    }

    /// Cuts it off or lets it go on with zeros: how many bytes less it takes.
    pub(crate) fn set_len(&mut self, len: u64) -> u64 {
        let before = self.stored();
        if len < self.len {
            self.pieces.split_off(&len.div_ceil(PIECE));
            let within = (len % PIECE) as usize;
            if let Some(piece) = self.pieces.get_mut(&(len / PIECE))
                && piece.len() > within
            {
                Arc::make_mut(piece).truncate(within);
            }
        }
        self.len = len;
        before - self.stored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_reads_as_a_plain_vector_would(
            steps in proptest::collection::vec((0u64..300_000, 0usize..90_000, any::<u8>(), any::<bool>()), 1..12),
        ) {
            let (mut data, mut plain) = (FileData::default(), Vec::new());
            let mut stored = 0;
            for (offset, len, byte, cut) in steps {
                if cut {
                    stored -= data.set_len(offset);
                    plain.resize(offset as usize, 0);
                } else {
                    let (written, grown) = data.write_at(offset, &vec![byte; len], u64::MAX);
                    prop_assert_eq!(written, len);
                    stored += grown;
                    if len > 0 {
                        plain.resize(plain.len().max(offset as usize + len), 0);
                        plain[offset as usize..offset as usize + len].fill(byte);
                    }
                }
                prop_assert_eq!(data.stored(), stored);
                let mut read = vec![1; plain.len() + 3];
                let n = data.read_at(0, &mut read);
                prop_assert_eq!(&read[..n], &plain[..]);
            }
        }
    }

    #[test]
    fn copies_do_not_see_each_other() {
        let mut one = FileData::default();
        one.write_at(0, b"same", u64::MAX);
        let other = one.clone();
        one.write_at(0, b"else", u64::MAX);
        let mut read = [0; 4];
        other.read_at(0, &mut read);
        assert_eq!(&read, b"same");
    }

    #[test]
    fn a_hole_takes_no_space() {
        let mut data = FileData::default();
        assert_eq!(data.write_at(1 << 40, b"x", 70_000), (1, 1));
        assert_eq!((data.len(), data.stored()), ((1 << 40) + 1, 1));
    }
}
