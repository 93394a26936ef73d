//! Bytes of a file in shared pieces.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes per piece.
const PIECE: u64 = 64 << 10;

/// The least room that a piece is given.
const MIN_ROOM: u64 = 64;

/// What a piece takes beside its room: its place among the others in a tree that is half full, the
/// counters of its sharing, and the allocator's share in both of its allocations.
const PIECE_COST: u64 = 128;

/// What a file takes that has any piece at all: a node of the tree has room for eleven.
const FIRST_PIECE_COST: u64 = 192;

/// The contents of a file: pieces that copies share until one of them writes; what was never
/// written takes no space.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileData {
    /// By number; a piece shorter than [`PIECE`] goes on with zeros.
    pieces: BTreeMap<u64, Arc<Vec<u8>>>,
    len: u64,
    cost: u64,
}

impl FileData {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether both hold the same, holes being zeros. What they share is not read.
    pub(crate) fn has_same_bytes(&self, other: &Self) -> bool {
        let numbers = self.pieces.keys().chain(other.pieces.keys());
        self.len == other.len
            && numbers.into_iter().all(|number| {
                match (self.pieces.get(number), other.pieces.get(number)) {
                    (Some(one), Some(other)) if Arc::ptr_eq(one, other) => true,
                    (one, other) => {
                        let [one, other] = [one, other].map(|piece| piece.map_or(&[][..], |p| p));
                        let common = one.len().min(other.len());
                        let rest = one[common..].iter().chain(&other[common..]);
                        one[..common] == other[..common] && rest.copied().all(|byte| byte == 0)
                    }
                }
            })
    }

    /// Bytes of the host's memory that it takes, at the most: for each piece its room, and what
    /// finding it takes.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
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

    /// Writes as much as costs at most `room` more: how many bytes were written.
    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8], room: u64) -> usize {
        let (mut done, most) = (0, self.cost.saturating_add(room));
        while done < bytes.len() {
            let at = offset + done as u64;
            let within = (at % PIECE) as usize;
            let n = (PIECE as usize - within).min(bytes.len() - done);
            let end = within + n;
            let before = self.pieces.get(&(at / PIECE)).map(|piece| piece.len());
            let after = before.unwrap_or(0).max(end);
            let mut cost = self.cost - before.map_or(0, piece_cost) + piece_cost(after);
            if self.pieces.is_empty() {
                cost += FIRST_PIECE_COST;
            }
            if cost > most {
                break;
            }
            let piece = Arc::make_mut(self.pieces.entry(at / PIECE).or_default());
            if piece.len() < end {
                // Not the allocator's guess, which may be twice what is charged.
                piece.reserve_exact(room_of(end) as usize - piece.len());
                piece.resize(end, 0);
            }
            piece[within..end].copy_from_slice(&bytes[done..done + n]);
            self.cost = cost;
            done += n;
        }
        if done > 0 {
            self.len = self.len.max(offset + done as u64);
        }
        done
    }

    /// Cuts it off or lets it go on with zeros.
    pub(crate) fn set_len(&mut self, len: u64) {
        // From the end, so that the time it takes was paid for by what wrote the pieces.
        while let Some(last) = self.pieces.last_entry()
            && *last.key() >= len.div_ceil(PIECE)
        {
            self.cost -= piece_cost(last.remove().len());
            if self.pieces.is_empty() {
                self.cost -= FIRST_PIECE_COST;
            }
        }
        let within = (len % PIECE) as usize;
        if let Some(piece) = self.pieces.get_mut(&(len / PIECE))
            && piece.len() > within
        {
            self.cost -= piece_cost(piece.len()) - piece_cost(within);
            if let Some(own) = Arc::get_mut(piece) {
                own.truncate(within);
                own.shrink_to(room_of(within) as usize);
            } else {
                *piece = Arc::new(piece[..within].to_vec());
            }
        }
        self.len = len;
    }
}

/// The room that `len` bytes of a piece are given: at most a quarter more, in few sizes, so that
/// a piece that grows byte by byte moves seldom.
fn room_of(len: usize) -> u64 {
    let len = len as u64;
    let step = (len.next_power_of_two() / 8).max(MIN_ROOM);
    len.max(1).next_multiple_of(step).min(PIECE)
}

fn piece_cost(len: usize) -> u64 {
    PIECE_COST + room_of(len)
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
            for (offset, len, byte, cut) in steps {
                if cut {
                    data.set_len(offset);
                    plain.resize(offset as usize, 0);
                } else {
                    prop_assert_eq!(data.write_at(offset, &vec![byte; len], u64::MAX), len);
                    if len > 0 {
                        plain.resize(plain.len().max(offset as usize + len), 0);
                        plain[offset as usize..offset as usize + len].fill(byte);
                    }
                }
                let counted: u64 = data.pieces.values().map(|piece| piece_cost(piece.len())).sum();
                let first = if data.pieces.is_empty() { 0 } else { FIRST_PIECE_COST };
                prop_assert_eq!(data.cost(), counted + first);
                for piece in data.pieces.values() {
                    prop_assert!(piece.capacity() as u64 <= room_of(piece.len()));
                }
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
    fn a_hole_takes_no_space_and_a_byte_more_than_itself() {
        let mut data = FileData::default();
        let first = FIRST_PIECE_COST + piece_cost(1);
        assert_eq!(data.write_at(1 << 40, b"x", first), 1);
        assert_eq!((data.len(), data.cost()), ((1 << 40) + 1, first));
        assert_eq!(data.write_at(0, b"x", piece_cost(1) - 1), 0);
        assert_eq!(data.write_at(0, b"x", piece_cost(1)), 1);
        data.set_len(0);
        assert_eq!((data.len(), data.cost()), (0, 0));
    }

    #[test]
    fn room_is_at_most_a_quarter_more() {
        for len in 1..=PIECE {
            let room = room_of(len as usize);
            let most = len + (len / 4).max(MIN_ROOM);
            assert!(len <= room && room <= most.min(PIECE), "{len}: {room}");
        }
    }
}
