//! The tokens of one call, and which keys each of them sees.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{CachePage, Segment};
use crate::cuda::DeviceError;
use crate::{Adapter, Weights};
use spar_ops::attention::{BLOCK_PAGES, KEY_BLOCK, KeyBlock};
use spar_ops::elementwise::add_scaled;
use spar_ops::page::{NO_TOKEN, PAGE};

/// Stands for the token of a place that holds none, or one of an earlier call.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// The tokens of one call in a flat list, and which keys each of them sees.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) tokens: Vec<u32>,
    pub(crate) positions: Vec<usize>,
    /// The tokens before each, nearest first, `[t, smear_tokens]`.
    pub(crate) before: Vec<u32>,
    pub(crate) smear_tokens: usize,
    /// Every page that is read or written, once. Those that are written have no other owner until
    /// the call is over.
    pub(crate) pages: Vec<Arc<CachePage>>,
    /// Empty where the decoder is on a device.
    pub(crate) blocks: Vec<KeyBlock>,
    /// Where each token's key and value go.
    page_of_token: Vec<u32>,
    /// Pages whose first places are copied from a page of the parent, in the order of copying.
    pub(crate) copies: Vec<PageCopy>,
    /// The tokens of this call in each page.
    pub(crate) rows_of_page: Vec<[u32; PAGE]>,
    pub(crate) chains: Vec<Chain>,
    /// The adapters that rows are read with on the CPU, and these rows in ascending runs; few.
    adapters: Vec<(Arc<Adapter>, Vec<Range<usize>>)>,
}

#[derive(Debug)]
pub(crate) struct PageCopy {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Row of the first token that is written behind what is copied.
    before_row: usize,
}

/// The pages of a segment from the first position of its sequence on.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) pages: Vec<u32>,
    pub(crate) rows: Range<usize>,
}

impl Batch {
    /// Adds the segments' tokens to their caches and finds pages for them.
    ///
    /// # Errors
    ///
    /// When a device has no room for their pages.
    pub(crate) fn new(
        weights: &Weights,
        segments: &mut [Segment<'_>],
    ) -> Result<Self, DeviceError> {
        let total = segments.iter().map(|segment| segment.tokens.len()).sum();
        let mut batch = Self {
            tokens: Vec::with_capacity(total),
            positions: Vec::with_capacity(total),
            before: Vec::with_capacity(total * weights.config.smear_tokens),
            smear_tokens: weights.config.smear_tokens,
            pages: Vec::new(),
            blocks: Vec::new(),
            page_of_token: Vec::with_capacity(total),
            copies: Vec::new(),
            rows_of_page: Vec::new(),
            chains: Vec::with_capacity(segments.len()),
            adapters: Vec::new(),
        };
        let mut shared = HashMap::new();
        for index in 0..segments.len() {
            let (earlier, rest) = segments.split_at_mut(index);
            let segment = &mut rest[0];
            let mut chain = match segment.parent {
                None => batch.open(segment, &mut shared)?,
                Some(parent) => {
                    assert!(segment.cache.tokens.is_empty(), "the cache of a child is empty");
                    segment.cache.tokens.clone_from(&earlier[parent].cache.tokens);
                    batch.fork(weights, parent, segment)?
                }
            };
            let first = batch.tokens.len();
            batch.append(weights, segment, &mut chain)?;
            batch.chains.push(chain);
            if let Some(adapter) = segment.adapter.as_ref().or(weights.adapter.as_ref()) {
                batch.read_with(adapter, first..batch.tokens.len());
            }
        }
        Ok(batch)
    }

    /// Notes that the rows are read with an adapter.
    fn read_with(&mut self, adapter: &Arc<Adapter>, rows: Range<usize>) {
        let known = self.adapters.iter_mut().find(|(known, _)| Arc::ptr_eq(known, adapter));
        let Some((_, runs)) = known else {
            return self.adapters.push((adapter.clone(), vec![rows]));
        };
        match runs.last_mut().filter(|last| last.end == rows.start) {
            Some(last) => last.end = rows.end,
            None => runs.push(rows),
        }
    }

    /// Adds what adapters change of the product of `inputs[t, ..]` with the matrices in `range` to `out[t, outputs]`.
    pub(super) fn adapt(
        &self,
        range: &Range<usize>,
        inputs: &[f32],
        out: &mut [f32],
        outputs: usize,
    ) {
        for (adapter, runs) in &self.adapters {
            adapter.add(runs, range, inputs, out, outputs);
        }
    }

    /// Adds what the gradient of such a product gives its inputs by way of adapters to `dinputs[t, ..]`.
    pub(super) fn adapt_backward(
        &self,
        range: &Range<usize>,
        doutputs: &[f32],
        dinputs: &mut [f32],
        outputs: usize,
    ) {
        for (adapter, runs) in &self.adapters {
            adapter.add_backward(runs, range, doutputs, dinputs, outputs);
        }
    }

    /// The tokens before that of `row`, nearest first; [`NO_TOKEN`] before the first one.
    pub(crate) fn before(&self, row: usize) -> &[u32] {
        &self.before[row * self.smear_tokens..][..self.smear_tokens]
    }

    /// The key and the value, `[key_width]` each, that `of_row` gives for every token go to the
    /// pages of a layer.
    pub(crate) fn write<'b>(
        &mut self,
        layer: usize,
        of_row: impl Fn(usize) -> (&'b [f32], &'b [f32]),
    ) {
        let mut copies = self.copies.iter().peekable();
        for (row, page) in self.page_of_token.iter().enumerate() {
            while let Some(copy) = copies.next_if(|copy| copy.before_row == row) {
                let from = self.pages[copy.from as usize].clone();
                own(&mut self.pages, copy.to).copy_layer(layer, &from);
            }
            let (keys, values) = of_row(row);
            let column = self.positions[row] % PAGE;
            own(&mut self.pages, *page).write(layer, column, keys, values);
        }
    }

    /// Hands the pages to the caches.
    pub(crate) fn close(&self, segments: &mut [Segment<'_>]) {
        for (segment, chain) in segments.iter_mut().zip(&self.chains) {
            let pages = chain.pages.iter().map(|page| self.pages[*page as usize].clone());
            segment.cache.pages = pages.collect();
        }
    }

    /// Whether every page was begun in this call, as backward needs it.
    pub(crate) fn is_whole(&self) -> bool {
        let holds = |(page, rows): (&Arc<CachePage>, &[u32; PAGE])| {
            page.tokens.iter().zip(rows).all(|(token, row)| *token == NO_TOKEN || *row != NO_ROW)
        };
        self.pages.iter().zip(&self.rows_of_page).all(holds)
    }

    /// Adds the gradients of every page's places, `[key_head, page, PAGE, head_dim]`, to those of
    /// the tokens, `[t, key_head, head_dim]`; a place that was copied adds to the token that it was
    /// copied from.
    pub(crate) fn collect(&self, of_pages: &[f32], head_dim: usize, of_tokens: &mut [f32]) {
        let places = self.rows_of_page.as_flattened();
        if places.is_empty() {
            return;
        }
        let key_heads = of_pages.len() / (places.len() * head_dim);
        for (key_head, of_pages) in of_pages.chunks_exact(places.len() * head_dim).enumerate() {
            for (row, gradient) in places.iter().zip(of_pages.chunks_exact(head_dim)) {
                if *row != NO_ROW {
                    let start = (*row as usize * key_heads + key_head) * head_dim;
                    add_scaled(&mut of_tokens[start..start + head_dim], 1.0, gradient);
                }
            }
        }
    }

    /// The pages of a sequence as an earlier call left them.
    fn open(
        &mut self,
        segment: &mut Segment<'_>,
        shared: &mut HashMap<*const CachePage, u32>,
    ) -> Result<Chain, DeviceError> {
        let mut past = std::mem::take(&mut segment.cache.pages);
        let is_partial = !segment.cache.tokens.len().is_multiple_of(PAGE);
        let last = if is_partial && !segment.tokens.is_empty() { past.pop() } else { None };
        let mut pages: Vec<u32> = past
            .into_iter()
            .map(|page| {
                *shared.entry(Arc::as_ptr(&page)).or_insert_with(|| {
                    self.pages.push(page);
                    self.rows_of_page.push([NO_ROW; PAGE]);
                    self.pages.len() as u32 - 1
                })
            })
            .collect();
        if let Some(mut page) = last {
            // Copied only where someone else reads it.
            let filled = segment.cache.tokens.len() % PAGE;
            if Arc::get_mut(&mut page).is_none() {
                page = Arc::new(page.copied()?);
            }
            let own = Arc::get_mut(&mut page).expect("the page is shared or has been copied");
            own.tokens[filled..].fill(NO_TOKEN);
            pages.push(self.add_page(page));
        }
        Ok(Chain { pages, rows: 0..0 })
    }

    /// The pages of the parent; the last one is copied where it has room for the segment's tokens.
    fn fork(
        &mut self,
        weights: &Weights,
        parent: usize,
        segment: &Segment<'_>,
    ) -> Result<Chain, DeviceError> {
        let mut chain = self.chains[parent].clone();
        let filled = segment.cache.tokens.len() % PAGE;
        if filled > 0 && !segment.tokens.is_empty() {
            let from = *chain.pages.last().expect("a page has room");
            let mut page = weights.new_page()?;
            page.tokens[..filled].copy_from_slice(&self.pages[from as usize].tokens[..filled]);
            let to = self.add_page(Arc::new(page));
            let rows = self.rows_of_page[from as usize];
            self.rows_of_page[to as usize][..filled].copy_from_slice(&rows[..filled]);
            self.copies.push(PageCopy { from, to, before_row: self.tokens.len() });
            *chain.pages.last_mut().expect("a page has room") = to;
        }
        Ok(chain)
    }

    fn append(
        &mut self,
        weights: &Weights,
        segment: &mut Segment<'_>,
        chain: &mut Chain,
    ) -> Result<(), DeviceError> {
        let first_row = self.tokens.len();
        for token in segment.tokens {
            let row = self.tokens.len();
            let position = segment.cache.tokens.len();
            if position.is_multiple_of(PAGE) {
                let page = self.add_page(Arc::new(weights.new_page()?));
                chain.pages.push(page);
            }
            let page = *chain.pages.last().expect("there is a page with room");
            own(&mut self.pages, page).tokens[position % PAGE] = *token;
            self.rows_of_page[page as usize][position % PAGE] = row as u32;
            let before = segment.cache.tokens.iter().rev().copied();
            let before = before.chain(std::iter::repeat(NO_TOKEN));
            self.before.extend(before.take(weights.config.smear_tokens));
            self.tokens.push(*token);
            self.positions.push(position);
            self.page_of_token.push(page);
            segment.cache.tokens.push(*token);
        }
        chain.rows = first_row..self.tokens.len();
        Ok(())
    }

    /// The last token of the page before, and those of the pages.
    fn tokens_of(&self, before: Option<u32>, pages: &[u32]) -> Vec<u32> {
        let tokens = |page: u32| &self.pages[page as usize].tokens;
        let mut all = vec![before.map_or(NO_TOKEN, |page| tokens(page)[PAGE - 1])];
        pages.iter().for_each(|page| all.extend_from_slice(tokens(*page)));
        all
    }

    fn add_page(&mut self, page: Arc<CachePage>) -> u32 {
        self.pages.push(page);
        self.rows_of_page.push([NO_ROW; PAGE]);
        self.pages.len() as u32 - 1
    }
}

/// Groups the tokens by the blocks of keys that they see.
///
/// Blocks are ordered by position, so that every token meets its keys in ascending order, and else
/// by the order of segments.
pub(crate) fn find_blocks(weights: &Weights, batch: &Batch) -> Vec<KeyBlock> {
    let window = weights.config.sliding_window.unwrap_or(usize::MAX);
    let mut found: HashMap<&[u32], usize> = HashMap::new();
    let mut blocks: Vec<KeyBlock> = Vec::new();
    for chain in batch.chains.iter().filter(|chain| !chain.rows.is_empty()) {
        let first = batch.positions[chain.rows.start];
        let end = first + chain.rows.len();
        let visible = (first + 1).saturating_sub(window) / KEY_BLOCK;
        for index in visible..end.div_ceil(KEY_BLOCK) {
            let start = index * KEY_BLOCK;
            let first_page = index * BLOCK_PAGES;
            let pages = &chain.pages[first_page..chain.pages.len().min(first_page + BLOCK_PAGES)];
            let block = *found.entry(pages).or_insert_with(|| {
                let tokens = if weights.config.token_match_bias {
                    let before = first_page.checked_sub(1).map(|before| chain.pages[before]);
                    batch.tokens_of(before, pages)
                } else {
                    Vec::new()
                };
                let pages = pages.to_vec();
                blocks.push(KeyBlock { start, pages, rows: Vec::new(), tokens });
                blocks.len() - 1
            });
            // Position i sees key j where i - j < window.
            let from = first.max(start);
            let to = end.min((start + KEY_BLOCK - 1).saturating_add(window));
            let row = |position: usize| chain.rows.start + position - first;
            blocks[block].rows.push(row(from)..row(to));
        }
    }
    blocks.sort_by_key(|block| block.start);
    blocks
}

/// A page that this call writes.
fn own(pages: &mut [Arc<CachePage>], page: u32) -> &mut CachePage {
    Arc::get_mut(&mut pages[page as usize]).expect("a page that is written has no other owner")
}
