//! Steps of generation: what sequences go on by.
//!
//! Where every sequence reads one token, a step is the same work each time, on other numbers. It is done in
//! buffers that stay where they are, by a graph that was recorded once for so many rows: one launch in
//! place of hundreds. Rows are filled up to one of few numbers, with rows of which nobody asks anything.

use std::collections::HashMap;

use super::DeviceError;
use super::batch::{BatchWords, DeviceBatch};
use super::device::{Buffer, Device, Kind};
use super::forward::{LayerTape, Scratch, Work, forward};
use super::head::TILE;
use super::learner::{Live, LiveWeights};
use super::operations::{CHUNK, Candidates, Drawing, Drawn, ROOM, Truncation};
use super::pages::DevicePage;
use super::placement::Placement;
use super::recording::Recording;
use crate::Weights;
use crate::decoder::Segment;
use crate::decoder::batch::Batch;
use spar_ops::page::{NO_TOKEN, PAGE};

/// The most rows for which steps are recorded.
const MOST_ROWS: usize = 256;
/// Rows whose logits are in memory at a time in other steps.
const SCORE_ROWS: usize = 64;
/// Words that a step may bring from the beginning on; it grows with the sequences.
const LEAST_WORDS: usize = 1 << 14;
/// Graphs that are kept.
const MOST_GRAPHS: usize = 128;

/// What is wanted of a sequence once its tokens have been read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    Nothing,
    /// The logits of the whole vocabulary.
    Logits,
    /// The logits of these tokens, and with `raw` the log-sum of all.
    LogitsOf {
        ids: Vec<u32>,
        raw: bool,
    },
    /// A token.
    Draw(Drawing),
    /// The tokens that may be drawn; where they are many, the logits of all.
    Candidates(Truncation),
}

/// What was wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    Nothing,
    Logits(Vec<f32>),
    LogitsOf {
        /// In the order of the tokens.
        logits: Vec<f32>,
        /// Logarithm of the sum of the exponentials of all logits; 0 where nobody asked for it.
        raw_log_sum: f32,
    },
    Drawn(Drawn),
    Candidates(Candidates),
}

/// What steps are done with.
#[derive(Debug, Default)]
pub(super) struct Steps {
    buffers: Option<StepBuffers>,
    graphs: HashMap<(Addresses, Shape), Graph>,
    /// Where what the graphs read lies, besides the buffers: of the last steps and of those before, since
    /// weights that are trained lie in two places in turn.
    addresses: [Addresses; 2],
}

/// What a graph is recorded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    rows: usize,
    /// Of 512 keys, in the longest sequence.
    chunks: usize,
}

/// Where what a graph reads lies, besides the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Addresses {
    weights: u64,
    pages: u64,
    page_tokens: u64,
    /// Of an adapter: its factors, rank and scale.
    adapter: Option<(u64, usize, u32)>,
}

/// How the work of a shape is done.
#[derive(Debug)]
enum Graph {
    /// One kernel after the other: it has been done once, so that all kernels are there.
    Tried,
    Recorded(Recording),
    /// One kernel after the other, as it cannot be recorded.
    Plain,
}

/// Buffers for up to so many rows.
#[derive(Debug)]
struct StepBuffers {
    rows: usize,
    /// Numbers that each step brings; see [`Sections`].
    words: Buffer,
    states: Buffer,
    tape: LayerTape,
    scratch: Scratch,
    hidden: Buffer,
    inverse: Buffer,
    results: Results,
    /// Where rows of which nobody asks anything write their keys.
    spare: DevicePage,
}

/// What comes of a step, row by row.
#[derive(Debug)]
struct Results {
    logits: Buffer,
    drawn: Buffer,
    lists: Buffer,
}

/// Where the parts of the numbers that a step brings begin, for so many rows.
#[derive(Debug, Clone, Copy)]
struct Sections {
    rows: usize,
    smeared: usize,
}

impl Sections {
    /// Words before the tables, which come last.
    fn tables(self) -> usize {
        (1 + self.smeared + 1 + 2 + 4 + Drawing::WORDS) * self.rows
    }

    /// The parts of the buffer for [`BatchWords`] and the tokens, and the drawings.
    fn batch(self, words: &Buffer, longest: usize) -> (DeviceBatch, Buffer) {
        let mut start = 0;
        let mut part = |width: usize| {
            let len = width * self.rows;
            start += len;
            words.slice(start - len..start)
        };
        let batch = DeviceBatch {
            rows: self.rows,
            tokens: part(1),
            before: part(self.smeared),
            positions: part(1),
            entries: part(2),
            tiles: part(4),
            tables: words.slice(self.tables()..words.len()),
            longest,
        };
        (batch, part(Drawing::WORDS))
    }
}

/// Rows that a step is filled up to: powers of two, from 8 on multiples of 8, from 64 on of 32.
fn filled_up(rows: usize) -> usize {
    match rows {
        0..=8 => rows.next_power_of_two(),
        9..=64 => rows.next_multiple_of(8),
        _ => rows.next_multiple_of(32),
    }
}

impl Placement {
    /// Reads the segments' tokens and finds what is wanted behind the last one of each, in their order.
    ///
    /// # Errors
    ///
    /// When the device fails; the caches are not to be used any more.
    ///
    /// # Panics
    ///
    /// As [`crate::decoder::forward`].
    pub(crate) fn step(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
        wanted: &[Wanted],
    ) -> Result<Vec<Found>, DeviceError> {
        let _turn = self.take_turn();
        let batch = Batch::new(weights, segments)?;
        let is_even = batch.chains.iter().all(|chain| chain.rows.len() == 1);
        let found = if is_even && batch.copies.is_empty() && batch.tokens.len() <= MOST_ROWS {
            self.steps().step(weights, self, &batch, wanted)?
        } else {
            let (hidden, _) = forward(weights, self, &batch, false, false)?;
            let last = batch.chains.iter().map(|chain| chain.rows.clone().next_back());
            let last = last.map(|row| row.expect("every segment has tokens") as u32);
            find(weights, self, &hidden, last.zip(wanted))?
        };
        batch.close(segments);
        Ok(found)
    }
}

/// What is wanted behind rows of the hidden states, a few at a time.
fn find<'a>(
    weights: &Weights,
    placement: &Placement,
    hidden: &Buffer,
    wanted: impl Iterator<Item = (u32, &'a Wanted)>,
) -> Result<Vec<Found>, DeviceError> {
    let (device, config) = (placement.device(), &weights.config);
    let data = placement.weights(weights)?;
    let mut found = Vec::new();
    let mut asked = Vec::new();
    for (index, (row, wanted)) in wanted.enumerate() {
        found.push(Found::Nothing);
        if *wanted != Wanted::Nothing {
            asked.push((index, row, wanted));
        }
    }
    for asked in asked.chunks(SCORE_ROWS) {
        let rows: Vec<u32> = asked.iter().map(|(_, row, _)| *row).collect();
        let inputs = device.allocate(hidden.kind(), rows.len() * config.hidden_size)?;
        device.gather_rows(hidden, &device.upload_u32(&rows)?, config.hidden_size, &inputs)?;
        let wanted: Vec<Wanted> = asked.iter().map(|(.., wanted)| (*wanted).clone()).collect();
        let results = Results::new(device, rows.len(), config.vocab_size)?;
        let drawings = drawings(&wanted, rows.len(), config.vocab_size);
        results.draw(weights, (device, &data), &inputs, &device.upload_u32(&drawings)?)?;
        for ((index, ..), of_row) in asked.iter().zip(results.collect(device, &wanted)?) {
            found[*index] = of_row;
        }
    }
    Ok(found)
}

/// The drawings of so many rows as a device reads them.
fn drawings(wanted: &[Wanted], rows: usize, vocabulary: usize) -> Vec<u32> {
    let of_row = |row: usize| match wanted.get(row) {
        Some(Wanted::Draw(drawing)) => drawing.words(),
        Some(Wanted::Candidates(truncation)) => truncation.words(vocabulary),
        Some(Wanted::LogitsOf { raw: true, .. }) => Truncation::RAW_LOG_SUM.words(vocabulary),
        _ => Drawing::BEST.words(),
    };
    (0..rows).flat_map(of_row).collect()
}

impl Results {
    fn new(device: &Device, rows: usize, vocabulary: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            logits: device.allocate(Kind::F32, rows * vocabulary)?,
            drawn: device.allocate(Kind::U32, rows * Drawn::WORDS)?,
            lists: device.allocate(Kind::U32, rows * 2 * ROOM)?,
        })
    }

    /// The first of `all` rows.
    fn first(&self, rows: usize, all: usize) -> Self {
        Self {
            logits: self.logits.first_rows(rows, all),
            drawn: self.drawn.first_rows(rows, all),
            lists: self.lists.first_rows(rows, all),
        }
    }

    /// Logits behind all of the states, and a draw from each.
    fn draw(
        &self,
        weights: &Weights,
        (device, data): (&Device, &Buffer),
        hidden: &Buffer,
        drawings: &Buffer,
    ) -> Result<(), DeviceError> {
        let vocabulary = weights.config.vocab_size;
        let matrix = data.slice(weights.layout.head.clone());
        let rows = self.logits.len() / vocabulary;
        device.linear(hidden, &matrix, &self.logits, (rows, vocabulary), false)?;
        device.draw(&self.logits, (vocabulary, TILE), drawings, (&self.drawn, &self.lists))
    }

    /// Brings what was wanted of the first rows to the host.
    fn collect(&self, device: &Device, wanted: &[Wanted]) -> Result<Vec<Found>, DeviceError> {
        let rows = self.drawn.len() / Drawn::WORDS;
        let vocabulary = self.logits.len() / rows;
        let lists = wanted.iter().any(|wanted| matches!(wanted, Wanted::Candidates(_)));
        let is_draw = |wanted: &Wanted| {
            matches!(wanted, Wanted::Draw(_) | Wanted::LogitsOf { raw: true, .. })
        };
        let draws = lists || wanted.iter().any(is_draw);
        let gathered = self.gather(device, wanted, vocabulary)?;
        let mut gathered = gathered.into_iter();
        let read = |is_wanted: bool, buffer: &Buffer| {
            if is_wanted {
                buffer.first_rows(wanted.len(), rows).read_u32()
            } else {
                Ok(Vec::new())
            }
        };
        let (drawn, lists) = (read(draws, &self.drawn)?, read(lists, &self.lists)?);
        let mut of_row = |(row, wanted): (usize, &Wanted)| {
            let drawn = || drawn.as_chunks().0[row];
            let logits = || self.logits.slice(row * vocabulary..(row + 1) * vocabulary).read();
            Ok(match wanted {
                Wanted::Nothing => Found::Nothing,
                Wanted::Logits => Found::Logits(logits()?),
                Wanted::LogitsOf { ids, raw } => Found::LogitsOf {
                    logits: gathered.by_ref().take(ids.len()).collect(),
                    raw_log_sum: if *raw { f32::from_bits(drawn()[3]) } else { 0.0 },
                },
                Wanted::Draw(_) => Found::Drawn(Drawn::of_words(drawn())),
                Wanted::Candidates(truncation) => {
                    let list = &lists[row * 2 * ROOM..(row + 1) * 2 * ROOM];
                    match truncation.found(drawn(), list) {
                        Some(candidates) => Found::Candidates(candidates),
                        None => Found::Logits(logits()?),
                    }
                }
            })
        };
        wanted.iter().enumerate().map(&mut of_row).collect()
    }

    /// The logits of the tokens that are wanted by their numbers, row after row: they travel together.
    fn gather(
        &self,
        device: &Device,
        wanted: &[Wanted],
        vocabulary: usize,
    ) -> Result<Vec<f32>, DeviceError> {
        let places_of = |(row, wanted): (usize, &Wanted)| match wanted {
            Wanted::LogitsOf { ids, .. } => {
                let place = |id: &u32| {
                    assert!((*id as usize) < vocabulary, "a token of the vocabulary");
                    u32::try_from(row * vocabulary + *id as usize).expect("logits fit into memory")
                };
                ids.iter().map(place).collect()
            }
            _ => Vec::new(),
        };
        let places: Vec<u32> = wanted.iter().enumerate().flat_map(places_of).collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let found = device.allocate(Kind::F32, places.len())?;
        device.gather(&self.logits, &device.upload_u32(&places)?, &found)?;
        found.read()
    }
}

impl Steps {
    /// As [`Placement::step`] for sequences that read one token each.
    fn step(
        &mut self,
        weights: &Weights,
        placement: &Placement,
        batch: &Batch,
        wanted: &[Wanted],
    ) -> Result<Vec<Found>, DeviceError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let device = placement.device();
        // 1. Buffers that suffice.
        let read = BatchWords::new(weights, batch);
        let rows = filled_up(batch.tokens.len());
        let sections = Sections { rows, smeared: weights.config.smear_tokens };
        let words = sections.tables() + read.tables.len() + 1;
        if !self.buffers.as_ref().is_some_and(|b| b.rows >= rows && b.words.len() >= words) {
            self.graphs.clear();
            let least = self.buffers.take().map_or((0, 0), |old| (old.rows, old.words.len()));
            let words = words.next_power_of_two().max(LEAST_WORDS).max(least.1);
            let rows = rows.max(least.0);
            self.buffers = Some(StepBuffers::new(weights, placement, rows, words)?);
        }
        let data = placement.weights(weights)?;
        let addresses = Addresses::new(weights, placement, &data);
        self.keep_graphs(addresses);
        let buffers = self.buffers.as_ref().expect("there are buffers");

        // 2. The numbers of this step.
        let words = buffers.words(sections, batch, &read, (wanted, weights.config.vocab_size));
        buffers.words.slice(0..words.len()).write_u32(&words)?;

        // 3. The work.
        let shape = Shape { rows, chunks: read.longest.div_ceil(CHUNK).next_power_of_two() };
        let key = (addresses, shape);
        let mut work = || buffers.read(weights, placement, &data, sections, shape);
        let now = match self.graphs.remove(&key) {
            Some(Graph::Tried) => Graph::record(device, &mut work),
            Some(known) => known,
            // All kernels are loaded before they are recorded.
            None if device.has_graphs => {
                work()?;
                self.graphs.insert(key, Graph::Tried);
                return buffers.collect(device, rows, wanted);
            }
            None => Graph::Plain,
        };
        match &now {
            // SAFETY: the buffers are alive, and so are weights, pages and adapter, whose addresses are
            // those of the recording.
            #[expect(unsafe_code, reason = "graphs go by addresses")]
            Graph::Recorded(recording) => unsafe { recording.replay()? },
            _ => work()?,
        }
        self.graphs.insert(key, now);
        buffers.collect(device, rows, wanted)
    }

    /// Drops the graphs of addresses that have not been used of late, and all where they are many.
    fn keep_graphs(&mut self, addresses: Addresses) {
        if self.graphs.len() > MOST_GRAPHS {
            self.graphs.clear();
        }
        let [last, before] = self.addresses;
        if last != addresses {
            self.addresses = [addresses, last];
            if before != addresses {
                self.graphs.retain(|(of_graph, _), _| self.addresses.contains(of_graph));
            }
        }
    }
}

impl Graph {
    /// Records the work; one that cannot be recorded is told of in the log.
    fn record(device: &Device, work: &mut dyn FnMut() -> Result<(), DeviceError>) -> Self {
        match Recording::new(&device.driver, work) {
            Ok(recording) => Self::Recorded(recording),
            Err(error) => {
                tracing::warn!(%error, "a step of generation has no graph and is launched in parts");
                Self::Plain
            }
        }
    }
}

impl Addresses {
    fn new(weights: &Weights, placement: &Placement, data: &Buffer) -> Self {
        let (pages, page_tokens) = placement.pool().buffers();
        let adapter = match &weights.live {
            Some(LiveWeights(Live::Adapter(adapter))) => {
                Some((adapter.factors.address(), adapter.rank, adapter.scale.to_bits()))
            }
            _ => None,
        };
        let (pages, page_tokens) = (pages.address(), page_tokens.address());
        Self { weights: data.address(), pages, page_tokens, adapter }
    }
}

impl StepBuffers {
    fn new(
        weights: &Weights,
        placement: &Placement,
        rows: usize,
        words: usize,
    ) -> Result<Self, DeviceError> {
        let (device, config) = (placement.device(), &weights.config);
        let words = device.allocate(Kind::U32, words)?;
        let (batch, _) = Sections { rows, smeared: config.smear_tokens }.batch(&words, 0);
        let data = placement.weights(weights)?;
        let work = Work::new(weights, placement, &data, &batch);
        Ok(Self {
            rows,
            states: work.floats(rows * config.hidden_size)?,
            tape: work.layer_tape()?,
            scratch: work.scratch()?,
            hidden: work.numbers(rows * config.hidden_size)?,
            inverse: work.floats(rows)?,
            results: Results::new(device, rows, config.vocab_size)?,
            spare: placement.new_page()?,
            words,
        })
    }

    /// The numbers of a step in the order of [`Sections`].
    fn words(
        &self,
        sections: Sections,
        batch: &Batch,
        read: &BatchWords,
        (wanted, vocabulary): (&[Wanted], usize),
    ) -> Vec<u32> {
        let Sections { rows, smeared } = sections;
        // Rows behind those of the batch are the first tokens of a sequence of their own, whose page
        // stands last in the tables.
        let spare = self.spare.slot();
        let table = read.tables.len() as u32;
        let others = batch.tokens.len()..rows;
        let mut words = Vec::with_capacity(sections.tables() + read.tables.len() + 1);
        let mut section = |of_batch: &[u32], of_other: &dyn Fn(u32) -> Vec<u32>| {
            words.extend_from_slice(of_batch);
            others.clone().for_each(|row| words.extend(of_other(row as u32)));
        };
        section(&batch.tokens, &|_| vec![0]);
        section(&batch.before, &|_| vec![NO_TOKEN; smeared]);
        section(&read.positions, &|_| vec![0]);
        section(&read.entries, &|row| vec![spare * PAGE as u32, row]);
        section(&read.tiles, &|row| vec![row, 1, 0, table]);
        words.extend(drawings(wanted, rows, vocabulary));
        words.extend_from_slice(&read.tables);
        words.push(spare);
        words
    }

    /// Reads the rows' tokens and draws from what comes behind them.
    fn read(
        &self,
        weights: &Weights,
        placement: &Placement,
        data: &Buffer,
        sections: Sections,
        shape: Shape,
    ) -> Result<(), DeviceError> {
        let first = |buffer: &Buffer| buffer.first_rows(shape.rows, self.rows);
        let (batch, drawings) = sections.batch(&self.words, shape.chunks * CHUNK);
        let work = Work::new(weights, placement, data, &batch);
        let (states, hidden) = (first(&self.states), first(&self.hidden));
        let tape = self.tape.first(shape.rows, self.rows);
        let scratch = self.scratch.first(shape.rows, self.rows);
        work.embed(&states)?;
        for index in 0..weights.config.num_hidden_layers {
            work.layer(index, &states, &tape, &scratch, true)?;
        }
        work.final_norm(&states, &hidden, &first(&self.inverse))?;
        let results = self.results.first(shape.rows, self.rows);
        results.draw(weights, (placement.device(), data), &hidden, &drawings)
    }

    fn collect(
        &self,
        device: &Device,
        rows: usize,
        wanted: &[Wanted],
    ) -> Result<Vec<Found>, DeviceError> {
        self.results.first(rows, self.rows).collect(device, wanted)
    }
}
