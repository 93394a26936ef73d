//! The tokens of a call as the kernels read them.

use std::collections::BTreeMap;

use super::DeviceError;
use super::device::{Buffer, Device};
use super::operations::TILE;
use crate::Weights;
use crate::decoder::batch::{Batch, NO_ROW, find_blocks};
use spar_ops::page::{NO_TOKEN, PAGE};

/// What forward reads of a batch.
#[derive(Debug)]
pub(super) struct DeviceBatch {
    pub(super) rows: usize,
    pub(super) tokens: Buffer,
    /// `[row, smear_tokens]`.
    pub(super) before: Buffer,
    pub(super) positions: Buffer,
    /// Where keys and values go: pairs of a place and a row.
    pub(super) entries: Buffer,
    /// Where the pages of each sequence lie.
    pub(super) tables: Buffer,
    pub(super) tiles: Buffer,
    /// Keys of the longest sequence.
    pub(super) longest: usize,
}

/// What backward reads of a batch.
#[derive(Debug)]
pub(super) struct BackwardBatch {
    pub(super) slots: Buffer,
    pub(super) pages: Buffer,
    pub(super) ranges: Buffer,
    /// The places of each row in the gradients of pages.
    pub(super) places: Lists,
    /// What the embedding of each token went into.
    pub(super) embedded: Lists,
}

/// Lists of numbers, one per target.
#[derive(Debug)]
pub(super) struct Lists {
    targets: Buffer,
    starts: Buffer,
    entries: Buffer,
}

impl Lists {
    /// Each entry has `width` numbers.
    pub(super) fn new(
        device: &Device,
        lists: &BTreeMap<u32, Vec<u32>>,
        width: usize,
    ) -> Result<Self, DeviceError> {
        let targets: Vec<u32> = lists.keys().copied().collect();
        let (mut starts, mut entries) = (vec![0], Vec::new());
        for list in lists.values() {
            entries.extend_from_slice(list);
            starts.push((entries.len() / width) as u32);
        }
        Ok(Self {
            targets: device.upload_u32(&targets)?,
            starts: device.upload_u32(&starts)?,
            entries: device.upload_u32(&entries)?,
        })
    }

    pub(super) fn parts(&self) -> (&Buffer, &Buffer, &Buffer) {
        (&self.targets, &self.starts, &self.entries)
    }
}

/// Where a page of the batch lies.
fn slot(batch: &Batch, page: u32) -> u32 {
    let device = batch.pages[page as usize].device.as_ref();
    device.expect("the pages of a decoder on a device are there").slot()
}

/// What is in a [`DeviceBatch`], on the host.
#[derive(Debug, Default)]
pub(super) struct BatchWords {
    pub(super) positions: Vec<u32>,
    pub(super) entries: Vec<u32>,
    pub(super) tables: Vec<u32>,
    pub(super) tiles: Vec<u32>,
    pub(super) longest: usize,
}

impl BatchWords {
    pub(super) fn new(weights: &Weights, batch: &Batch) -> Self {
        let config = &weights.config;
        let group = config.num_attention_heads / config.num_key_value_heads;
        let (mut tables, mut tiles, mut longest) = (Vec::new(), Vec::new(), 0);
        for chain in batch.chains.iter().filter(|chain| !chain.rows.is_empty()) {
            let table = tables.len();
            tables.extend(chain.pages.iter().map(|page| slot(batch, *page)));
            let first = batch.positions[chain.rows.start];
            longest = longest.max(first + chain.rows.len());
            for start in chain.rows.clone().step_by(TILE / group) {
                let rows = (TILE / group).min(chain.rows.end - start);
                let position = first + start - chain.rows.start;
                tiles.extend([start, rows, position, table].map(|number| number as u32));
            }
        }
        let mut entries = Vec::new();
        for (page, rows) in batch.rows_of_page.iter().enumerate() {
            let written = rows.iter().enumerate().filter(|(_, row)| **row != NO_ROW);
            let mut first = None;
            for (place, row) in written {
                let slot = *first.get_or_insert_with(|| slot(batch, page as u32));
                entries.extend([slot * PAGE as u32 + place as u32, *row]);
            }
        }
        let positions = batch.positions.iter().map(|p| *p as u32).collect();
        Self { positions, entries, tables, tiles, longest }
    }
}

impl DeviceBatch {
    pub(super) fn new(
        device: &Device,
        weights: &Weights,
        batch: &Batch,
    ) -> Result<Self, DeviceError> {
        let words = BatchWords::new(weights, batch);
        Ok(Self {
            rows: batch.tokens.len(),
            tokens: device.upload_u32(&batch.tokens)?,
            before: device.upload_u32(&batch.before)?,
            positions: device.upload_u32(&words.positions)?,
            entries: device.upload_u32(&words.entries)?,
            tables: device.upload_u32(&words.tables)?,
            tiles: device.upload_u32(&words.tiles)?,
            longest: words.longest,
        })
    }
}

impl BackwardBatch {
    pub(super) fn new(
        device: &Device,
        weights: &Weights,
        batch: &Batch,
    ) -> Result<Self, DeviceError> {
        let window = weights.config.sliding_window.unwrap_or(usize::MAX);
        // 1. Per page its position, the token before it, and the rows that see a key of it.
        let mut found: Vec<(usize, u32, Vec<[u32; 3]>)> =
            batch.pages.iter().map(|_| (0, NO_TOKEN, Vec::new())).collect();
        for chain in &batch.chains {
            for (index, page) in chain.pages.iter().enumerate() {
                let before = index.checked_sub(1).map(|before| chain.pages[before]);
                let token = |page: u32| batch.pages[page as usize].tokens[PAGE - 1];
                let of_page = &mut found[*page as usize];
                (of_page.0, of_page.1) = (index * PAGE, before.map_or(NO_TOKEN, token));
            }
        }
        for block in &find_blocks(weights, batch) {
            for (index, page) in block.pages.iter().enumerate() {
                let start = block.start + index * PAGE;
                for rows in block.rows.iter().filter(|rows| !rows.is_empty()) {
                    let first = batch.positions[rows.start];
                    let from = first.max(start);
                    let to = (first + rows.len()).min((start + PAGE - 1).saturating_add(window));
                    if from < to {
                        let row = rows.start + from - first;
                        let range = [row, to - from, from].map(|number| number as u32);
                        found[*page as usize].2.push(range);
                    }
                }
            }
        }
        let (mut pages, mut ranges) = (Vec::new(), Vec::new());
        for (position, before, of_page) in found {
            let first = ranges.len() / 3;
            ranges.extend(of_page.into_iter().flatten());
            pages.extend([position as u32, before, first as u32, (ranges.len() / 3) as u32]);
        }
        let slots: Vec<u32> = (0..batch.pages.len()).map(|page| slot(batch, page as u32)).collect();

        // 2. Which places hold the key of a row.
        let mut places: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (place, row) in batch.rows_of_page.as_flattened().iter().enumerate() {
            if *row != NO_ROW {
                places.entry(*row).or_default().push(place as u32);
            }
        }

        // 3. Which states an embedding went into.
        let mut embedded: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, token) in batch.tokens.iter().enumerate() {
            embedded.entry(*token).or_default().extend([row as u32, 0]);
            for (distance, previous) in batch.before(row).iter().enumerate() {
                if *previous != NO_TOKEN {
                    let entry = [row as u32, distance as u32 + 1];
                    embedded.entry(*previous).or_default().extend(entry);
                }
            }
        }
        Ok(Self {
            slots: device.upload_u32(&slots)?,
            pages: device.upload_u32(&pages)?,
            ranges: device.upload_u32(&ranges)?,
            places: Lists::new(device, &places, 1)?,
            embedded: Lists::new(device, &embedded, 2)?,
        })
    }
}
