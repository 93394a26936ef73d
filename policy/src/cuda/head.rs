//! Log-probabilities and entropies of draws on a device; [`crate::head`] has the same for the CPU.

use std::collections::BTreeMap;

use super::DeviceError;
use super::batch::Lists;
use super::device::{Buffer, Device, Kind};
use super::operations::HeadTile;
use super::placement::Placement;
use crate::Weights;
use crate::head::{Draw, DrawLoss, DrawStatistics};

/// Rows whose logits are in memory at a time.
const ROWS: usize = 2048;
/// Tokens of the vocabulary whose logits are in memory at a time; fixed, because it takes part in the
/// rounding.
pub(super) const TILE: usize = 8192;

/// Rows that are judged together.
struct Chunk {
    /// The state of each row.
    states: Vec<u32>,
    /// Where what each row allows begins.
    allowed_starts: Vec<u32>,
    allowed: Vec<u32>,
    /// Where the draws of each row begin.
    draw_starts: Vec<u32>,
    tokens: Vec<u32>,
    /// The draw in each place of `tokens`.
    draws: Vec<usize>,
}

/// A chunk on the device.
struct DeviceChunk {
    /// `[row, hidden]`.
    inputs: Buffer,
    logits: Buffer,
    allowed_starts: Buffer,
    allowed: Buffer,
    draw_starts: Buffer,
    tokens: Buffer,
}

/// Draws of the same state out of the same tokens make a row.
fn chunks(draws: &[Draw<'_>]) -> Vec<Chunk> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    let key = |index: &usize| (draws[*index].row, draws[*index].allowed);
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let rows: Vec<&[usize]> = order.chunk_by(|a, b| key(a) == key(b)).collect();
    let chunk = |rows: &[&[usize]]| {
        let mut chunk = Chunk {
            states: Vec::new(),
            allowed_starts: vec![0],
            allowed: Vec::new(),
            draw_starts: vec![0],
            tokens: Vec::new(),
            draws: Vec::new(),
        };
        for of_row in rows {
            let draw = &draws[of_row[0]];
            chunk.states.push(draw.row as u32);
            chunk.allowed.extend_from_slice(draw.allowed);
            chunk.allowed_starts.push(chunk.allowed.len() as u32);
            chunk.tokens.extend(of_row.iter().map(|index| draws[*index].token));
            chunk.draws.extend_from_slice(of_row);
            chunk.draw_starts.push(chunk.tokens.len() as u32);
        }
        chunk
    };
    rows.chunks(ROWS).map(chunk).collect()
}

/// Tiles of the vocabulary: first token and width.
fn tiles(vocabulary: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..vocabulary).step_by(TILE).map(move |first| (first, TILE.min(vocabulary - first)))
}

/// The head's part of a buffer in the layout of the parameters.
fn part(weights: &Weights, of: &Buffer, (first, width): (usize, usize)) -> Buffer {
    let (start, d) = (weights.layout.head.start, weights.config.hidden_size);
    of.slice(start + first * d..start + (first + width) * d)
}

impl DeviceChunk {
    fn new(
        device: &Device,
        weights: &Weights,
        hidden: &Buffer,
        chunk: &Chunk,
    ) -> Result<Self, DeviceError> {
        let (rows, d) = (chunk.states.len(), weights.config.hidden_size);
        let inputs = device.allocate(hidden.kind(), rows * d)?;
        device.gather_rows(hidden, &device.upload_u32(&chunk.states)?, d, &inputs)?;
        Ok(Self {
            inputs,
            logits: device.allocate(Kind::F32, rows * TILE.min(weights.config.vocab_size))?,
            allowed_starts: device.upload_u32(&chunk.allowed_starts)?,
            allowed: device.upload_u32(&chunk.allowed)?,
            draw_starts: device.upload_u32(&chunk.draw_starts)?,
            tokens: device.upload_u32(&chunk.tokens)?,
        })
    }

    /// The logits of a tile, and what is asked about it; `logits` is where they are.
    fn tile<'a>(
        &'a self,
        device: &Device,
        matrix: &Buffer,
        logits: &'a Buffer,
        (first, width): (usize, usize),
        inverse_temperature: f32,
    ) -> Result<HeadTile<'a>, DeviceError> {
        let rows = logits.len() / width;
        device.linear(&self.inputs, matrix, logits, (rows, width), false)?;
        Ok(HeadTile {
            logits,
            first,
            width,
            inverse_temperature,
            allowed: (&self.allowed_starts, &self.allowed),
            draws: (&self.draw_starts, &self.tokens),
        })
    }
}

/// Log-probability and entropy of every draw behind the states `hidden[t, hidden]` on the device.
pub(super) fn judge(
    weights: &Weights,
    placement: &Placement,
    hidden: &Buffer,
    draws: &[Draw<'_>],
    temperature: f32,
) -> Result<Vec<DrawStatistics>, DeviceError> {
    let device = placement.device();
    let data = placement.weights(weights)?;
    let vocabulary = weights.config.vocab_size;
    let mut judged = vec![DrawStatistics::default(); draws.len()];
    for chunk in chunks(draws) {
        let rows = chunk.states.len();
        let on_device = DeviceChunk::new(device, weights, hidden, &chunk)?;
        let running = device.allocate(Kind::F32, 4 * rows)?;
        let drawn = device.allocate(Kind::F32, chunk.tokens.len())?;
        for (first, width) in tiles(vocabulary) {
            let matrix = part(weights, &data, (first, width));
            let logits = on_device.logits.slice(0..rows * width);
            let inverse = 1.0 / temperature;
            let tile = on_device.tile(device, &matrix, &logits, (first, width), inverse)?;
            device.head_absorb(&tile, &running, &drawn, first + width == vocabulary)?;
        }
        let (running, drawn) = (running.read()?, drawn.read()?);
        let of_rows = chunk.draw_starts.windows(2).zip(running.as_chunks::<4>().0);
        for (range, [_, sum, weighted, log_sum]) in of_rows {
            for place in range[0] as usize..range[1] as usize {
                judged[chunk.draws[place]] = DrawStatistics {
                    logprob: drawn[place] - log_sum,
                    entropy: log_sum - weighted / sum,
                    log_sum: *log_sum,
                };
            }
        }
    }
    Ok(judged)
}

/// Adds to `dhidden[t, hidden]` (f32) and to the head's part of `gradient`, both on the device, the
/// gradient of a loss; without a gradient the head is frozen.
pub(super) fn judge_backward(
    weights: &Weights,
    placement: &Placement,
    hidden: &Buffer,
    loss: &DrawLoss<'_>,
    dhidden: &Buffer,
    gradient: Option<&Buffer>,
) -> Result<(), DeviceError> {
    let DrawLoss { draws, temperature, told, derivatives, .. } = *loss;
    let device = placement.device();
    let data = placement.weights(weights)?;
    let (d, vocabulary) = (weights.config.hidden_size, weights.config.vocab_size);
    for chunk in chunks(draws) {
        let rows = chunk.states.len();
        let on_device = DeviceChunk::new(device, weights, hidden, &chunk)?;
        // All that the kernel needs of a row's softmax follows from what was told of its draws.
        let of_rows = chunk.draw_starts[..rows].iter();
        let running: Vec<f32> = of_rows
            .map(|place| &told[chunk.draws[*place as usize]])
            .flat_map(|told| [told.log_sum, 1.0, told.log_sum - told.entropy, told.log_sum])
            .collect();
        let running = device.upload_f32(&running)?;
        let by = chunk.draws.iter().map(|draw| &derivatives[*draw]);
        let by: Vec<f32> = by.flat_map(|by| [by.logprob, by.entropy]).collect();
        let by = device.upload_f32(&by)?;
        let dlogits = device.allocate(hidden.kind(), on_device.logits.len())?;
        let dinputs = device.zeros(Kind::F32, rows * d)?;
        for (first, width) in tiles(vocabulary) {
            let matrix = part(weights, &data, (first, width));
            let logits = on_device.logits.slice(0..rows * width);
            let inverse = 1.0 / temperature;
            let tile = on_device.tile(device, &matrix, &logits, (first, width), inverse)?;
            let dlogits = dlogits.slice(0..rows * width);
            device.head_gradient(&tile, &running, &by, &dlogits)?;
            device.linear_backward(&dlogits, &matrix, &dinputs, (rows, width), true)?;
            if let Some(gradient) = gradient {
                let dmatrix = part(weights, gradient, (first, width));
                device.linear_gradient(&dlogits, &on_device.inputs, &dmatrix, (rows, width))?;
            }
        }
        let mut of_states: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, state) in chunk.states.iter().enumerate() {
            of_states.entry(*state).or_default().push(row as u32);
        }
        let of_states = Lists::new(device, &of_states, 1)?;
        device.collect_rows(&dinputs, d, of_states.parts(), dhidden)?;
    }
    Ok(())
}

/// Logits of the whole vocabulary behind the states, `[row, vocabulary]`.
pub(super) fn logits(
    weights: &Weights,
    placement: &Placement,
    hidden: &Buffer,
) -> Result<Buffer, DeviceError> {
    let device = placement.device();
    let data = placement.weights(weights)?;
    let (d, vocabulary) = (weights.config.hidden_size, weights.config.vocab_size);
    let rows = hidden.len() / d;
    let logits = device.allocate(Kind::F32, rows * vocabulary)?;
    let matrix = data.slice(weights.layout.head.clone());
    device.linear(hidden, &matrix, &logits, (rows, vocabulary), false)?;
    Ok(logits)
}
