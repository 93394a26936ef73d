//! Models in GGUF files, their weights widened to single precision.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use serde_json::{Value, json};
use spar_text::gguf::{Gguf, GgufError, GgufTensor, GgufValue};

use super::ggml_type::GgmlType;
use super::weights_file::{HEAD, Loaded};
use super::{KeepAs, NumberType, config_file};
use crate::layout::shapes;
use crate::{CheckpointError, ModelConfig, ParameterKind};

/// Numbers that are widened at once, in whole rows.
const CHUNK: usize = 1 << 18;

/// Names of tensors outside layers, ours and GGUF's.
const OUTSIDE: [(&str, &str); 3] = [
    ("model.embed_tokens.weight", EMBEDDING),
    ("model.norm.weight", "output_norm.weight"),
    (HEAD, OUTPUT),
];
const EMBEDDING: &str = "token_embd.weight";
const OUTPUT: &str = "output.weight";
/// Names of tensors in layers.
const INSIDE: [(&str, &str); 11] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];
/// What rotary frequencies are divided by, `[head_dim / 2]`.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// The shape of the model in a file; what the decoder would not compute is refused.
pub(super) fn config(gguf: &Gguf) -> Result<ModelConfig, CheckpointError> {
    let architecture = gguf.text("general.architecture").unwrap_or_default();
    let class = match architecture {
        "llama" => "LlamaForCausalLM",
        "qwen2" => "Qwen2ForCausalLM",
        "qwen3" => "Qwen3ForCausalLM",
        other => {
            return Err(unsupported(gguf, "general.architecture", other, "llama, qwen2 or qwen3"));
        }
    };
    let key = |name: &str| format!("{architecture}.{name}");
    let count = |name: &str| -> Result<Option<u64>, CheckpointError> {
        let key = key(name);
        match (gguf.get(&key), gguf.count(&key)) {
            (Some(GgufValue::List(_)), _) => {
                Err(unsupported(gguf, &key, "a number for each layer", "one number for all"))
            }
            (Some(_), None) => Err(unsupported(gguf, &key, "something else", "a whole number")),
            (_, count) => Ok(count),
        }
    };
    let needed = |name: &str| {
        count(name)?.ok_or_else(|| unsupported(gguf, &key(name), "absent", "a whole number"))
    };
    for name in ["expert_count", "attention.sliding_window"] {
        if let Some(found) = count(name)?.filter(|found| *found > 0) {
            return Err(unsupported(gguf, &key(name), &found.to_string(), "none"));
        }
    }
    let (heads, hidden_size) = (needed("attention.head_count")?, needed("embedding_length")?);
    let head_dim = match count("attention.key_length")? {
        Some(head_dim) => Some(head_dim),
        None => hidden_size.checked_div(heads),
    };
    for name in ["attention.value_length", "rope.dimension_count"] {
        if let Some(found) = count(name)?.filter(|found| Some(*found) != head_dim) {
            let supported = format!("the width of a head, {}", head_dim.unwrap_or(0));
            return Err(unsupported(gguf, &key(name), &found.to_string(), &supported));
        }
    }
    let key_name = key("attention.layer_norm_rms_epsilon");
    let Some(epsilon) = gguf.float(&key_name) else {
        return Err(unsupported(gguf, &key_name, "absent", "a number"));
    };
    let theta = gguf.float(&key("rope.freq_base")).unwrap_or(10_000.0);
    let embedding = gguf.tensor(EMBEDDING);
    let Some(vocabulary) = embedding.and_then(|tensor| tensor.shape.first().copied()) else {
        return Err(missing(gguf, EMBEDDING));
    };
    let mut file = json!({
        "architectures": [class],
        "model_type": architecture,
        "vocab_size": vocabulary,
        "hidden_size": hidden_size,
        "intermediate_size": needed("feed_forward_length")?,
        "num_hidden_layers": needed("block_count")?,
        "num_attention_heads": heads,
        "num_key_value_heads": count("attention.head_count_kv")?.unwrap_or(heads),
        "head_dim": head_dim,
        "max_position_embeddings": needed("context_length")?,
        "rope_theta": theta,
        "rms_norm_eps": epsilon,
        "tie_word_embeddings": gguf.tensor(OUTPUT).is_none(),
        "hidden_act": "silu",
        "rope_scaling": rope_scaling(gguf, architecture, head_dim.unwrap_or(0), theta)?,
    });
    if architecture != "llama" {
        file["use_sliding_window"] = json!(false);
    }
    config_file::from_json(&file, &gguf.path)
}

/// How rotary frequencies are changed, as a `config.json` says it.
fn rope_scaling(
    gguf: &Gguf,
    architecture: &str,
    head_dim: u64,
    theta: f64,
) -> Result<Value, CheckpointError> {
    let key = |name: &str| format!("{architecture}.rope.scaling.{name}");
    let kind = gguf.text(&key("type")).filter(|kind| *kind != "none");
    let factors = gguf.tensor(ROPE_FACTORS);
    match (kind, factors) {
        (None, None) => Ok(Value::Null),
        (Some("linear"), None) => {
            Ok(json!({ "rope_type": "linear", "factor": gguf.float(&key("factor")) }))
        }
        (None, Some(tensor)) => {
            let original = gguf.count(&key("original_context_length")).unwrap_or(LLAMA3_CONTEXT);
            if tensor.shape.iter().product::<usize>() as u64 != head_dim / 2 {
                let found = format!("{:?} numbers", tensor.shape);
                let supported = format!("one for each of {} frequencies", head_dim / 2);
                return Err(unsupported(gguf, ROPE_FACTORS, &found, &supported));
            }
            let mut factors = Vec::new();
            let mut file = open(gguf)?;
            read(gguf, &mut file, tensor, |_, values| {
                factors.extend_from_slice(values);
                Ok(())
            })?;
            let factor = factors.iter().copied().fold(1.0, f32::max);
            let expected = llama3_factors(head_dim, theta, f64::from(factor), original as f64);
            let is_same = factors
                .iter()
                .zip(expected)
                .all(|(found, expected)| (f64::from(*found) - expected).abs() <= 1e-4 * expected);
            if !is_same {
                let supported = "what Llama 3.1 divides its frequencies by (`low_freq_factor` 1, `high_freq_factor` 4)";
                return Err(unsupported(gguf, ROPE_FACTORS, "something else", supported));
            }
            Ok(json!({
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": LLAMA3_LOW,
                "high_freq_factor": LLAMA3_HIGH,
                "original_max_position_embeddings": original,
            }))
        }
        (Some(kind), _) => Err(unsupported(gguf, &key("type"), kind, "none or linear")),
    }
}

/// Positions that Llama 3 was trained on before its context was made longer.
const LLAMA3_CONTEXT: u64 = 8192;
/// Frequencies of fewer turns in these positions are divided by the factor, those of more than [`LLAMA3_HIGH`] by 1.
const LLAMA3_LOW: f64 = 1.0;
const LLAMA3_HIGH: f64 = 4.0;

/// What Llama 3.1 divides its rotary frequencies by, `[head_dim / 2]`. Source: `_compute_llama3_parameters` in transformers.
fn llama3_factors(
    head_dim: u64,
    theta: f64,
    factor: f64,
    original: f64,
) -> impl Iterator<Item = f64> {
    (0..head_dim / 2).map(move |pair| {
        let frequency = theta.powf(-((2 * pair) as f64) / head_dim as f64);
        let turns = original * frequency / std::f64::consts::TAU;
        let smooth = ((turns - LLAMA3_LOW) / (LLAMA3_HIGH - LLAMA3_LOW)).clamp(0.0, 1.0);
        1.0 / ((1.0 - smooth) / factor + smooth)
    })
}

/// Reads the weights of a model in the form they are to be kept in.
///
/// All places are held against the file before memory is taken for what `config` promises; then the numbers are read and widened
/// some rows at a time.
pub(super) fn load(
    gguf: &Gguf,
    config: &ModelConfig,
    keep: KeepAs,
) -> Result<Loaded, CheckpointError> {
    let shapes = shapes(config);
    // 1. What is where.
    let expected: HashMap<&str, &[usize]> =
        shapes.iter().map(|(name, shape, _)| (&**name, &**shape)).collect();
    let mut places: HashMap<String, &GgufTensor> = HashMap::new();
    let mut taken = Vec::new();
    for tensor in &gguf.tensors {
        let stored = Stored::of(gguf, tensor)?;
        taken.push((stored.start, stored.end, &*tensor.name));
        // The configuration tells of these.
        if tensor.name == ROPE_FACTORS {
            continue;
        }
        let own = own_name(&tensor.name);
        let Some((name, expected)) =
            own.and_then(|name| expected.get(&*name).map(|shape| (name, *shape)))
        else {
            let detail = format!("no {:?} model has a tensor `{}`", config.family, tensor.name);
            return Err(gguf.invalid(detail).into());
        };
        if tensor.shape != expected {
            let (name, found) = (&tensor.name, &tensor.shape);
            let detail = format!(
                "the shape of tensor `{name}` is {found:?}, by the metadata it is {expected:?}"
            );
            return Err(gguf.invalid(detail).into());
        }
        places.insert(name, tensor);
    }
    taken.sort_unstable();
    if let Some([first, second]) = taken.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        let detail = format!("tensors `{}` and `{}` lie in the same bytes", first.2, second.2);
        return Err(gguf.invalid(detail).into());
    }
    if let Some((name, ..)) = shapes.iter().find(|(name, ..)| !places.contains_key(name)) {
        return Err(missing(gguf, &file_name(name)));
    }

    // 2. The numbers, in the order of the buffer.
    let stored: Vec<(NumberType, ParameterKind)> = shapes
        .iter()
        .map(|(name, _, kind)| Ok((Stored::of(gguf, places[name])?.kind.number_type(), *kind)))
        .collect::<Result<_, CheckpointError>>()?;
    let half = keep.half_of(stored);
    let is_permuted = gguf.text("general.architecture") == Some("llama");
    let mut loaded = Loaded::zeros(shapes, half);
    let mut file = open(gguf)?;
    for spec in loaded.specs().iter() {
        let tensor = places[&spec.name];
        let is_rotated = is_permuted
            && ["q_proj.weight", "k_proj.weight"].iter().any(|end| spec.name.ends_with(end));
        let columns = tensor.shape.last().copied().unwrap_or(1);
        read(gguf, &mut file, tensor, |first, values| {
            let mut write = |first: usize, values: &[f32]| {
                loaded.write(spec, first, values).map_err(|at| CheckpointError::TooLarge {
                    path: gguf.path.clone(),
                    name: spec.name.clone(),
                    element: first + at,
                    value: values[at],
                    number_type: half.map_or(NumberType::F32, NumberType::from).name(),
                })
            };
            if !is_rotated {
                return write(first, values);
            }
            for (place, row) in values.chunks_exact(columns).enumerate() {
                let row_number = unrotated(first / columns + place, config.head_dim);
                write(row_number * columns, row)?;
            }
            Ok(())
        })?;
    }
    Ok(loaded)
}

/// Where a row of queries or keys belongs. Llama's converter writes the two halves of a head, which rotate together, in turn:
/// its row `2 j + half` is our row `half * width / 2 + j`.
fn unrotated(row: usize, width: usize) -> usize {
    let (head, inside) = (row / width, row % width);
    head * width + inside % 2 * (width / 2) + inside / 2
}

/// Our name of a tensor.
fn own_name(name: &str) -> Option<String> {
    if let Some((own, _)) = OUTSIDE.iter().find(|(_, other)| *other == name) {
        return Some((*own).to_owned());
    }
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let layer: usize = layer.parse().ok()?;
    let (part, kind) = rest.rsplit_once('.')?;
    let (own, _) = INSIDE.iter().find(|(_, other)| *other == part)?;
    Some(format!("model.layers.{layer}.{own}.{kind}"))
}

/// GGUF's name of a tensor that we call `own`.
fn file_name(own: &str) -> String {
    if let Some((_, other)) = OUTSIDE.iter().find(|(known, _)| *known == own) {
        return (*other).to_owned();
    }
    let inside = || {
        let (layer, rest) = own.strip_prefix("model.layers.")?.split_once('.')?;
        let (part, kind) = rest.rsplit_once('.')?;
        let (_, other) = INSIDE.iter().find(|(known, _)| *known == part)?;
        Some(format!("blk.{layer}.{other}.{kind}"))
    };
    inside().unwrap_or_else(|| own.to_owned())
}

fn missing(gguf: &Gguf, name: &str) -> CheckpointError {
    gguf.invalid(format!("there is no tensor `{name}`, for which its metadata call")).into()
}

fn unsupported(gguf: &Gguf, field: &str, found: &str, supported: &str) -> CheckpointError {
    CheckpointError::Unsupported {
        path: gguf.path.clone(),
        field: field.to_owned(),
        found: if found.is_empty() { "absent" } else { found }.to_owned(),
        supported: supported.to_owned(),
    }
}

/// How a tensor's numbers are stored, and where.
struct Stored {
    kind: GgmlType,
    start: u64,
    /// No more than the bytes of the file.
    end: u64,
}

impl Stored {
    fn of(gguf: &Gguf, tensor: &GgufTensor) -> Result<Self, CheckpointError> {
        let name = &tensor.name;
        let Some(kind) = GgmlType::of(tensor.kind) else {
            let known = GgmlType::ALL.map(GgmlType::name).join(", ");
            let detail = format!(
                "the numbers of tensor `{name}` are stored as ggml's type {}, read are {known}; convert the model to one \
                 of these (`llama-quantize`)",
                tensor.kind
            );
            return Err(gguf.invalid(detail).into());
        };
        let (columns, block) = (tensor.shape.last().copied().unwrap_or(1), kind.block_len());
        if columns % block != 0 {
            let detail = format!(
                "rows of tensor `{name}` are {columns} wide, {} has blocks of {block}",
                kind.name()
            );
            return Err(gguf.invalid(detail).into());
        }
        // Their product was found to be a number when the header was read.
        let elements: usize = tensor.shape.iter().product();
        let bytes = (elements / block).checked_mul(kind.block_bytes()).map(|bytes| bytes as u64);
        let start = gguf.data_start.checked_add(tensor.offset);
        let end = start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes));
        match (start, end) {
            (Some(start), Some(end)) if end <= gguf.len => Ok(Self { kind, start, end }),
            _ => Err(GgufError::CutOff {
                path: gguf.path.clone(),
                part: format!("tensor `{name}`"),
                len: gguf.len,
            }
            .into()),
        }
    }
}

fn open(gguf: &Gguf) -> Result<File, CheckpointError> {
    File::open(&gguf.path).map_err(|source| CheckpointError::Io { path: gguf.path.clone(), source })
}

/// Hands a tensor's numbers to `take` some rows at a time, with the index of the first one. All are finite.
fn read(
    gguf: &Gguf,
    file: &mut File,
    tensor: &GgufTensor,
    mut take: impl FnMut(usize, &[f32]) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    let Stored { kind, start, .. } = Stored::of(gguf, tensor)?;
    let io = |source| CheckpointError::Io { path: gguf.path.clone(), source };
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    let total: usize = tensor.shape.iter().product();
    let columns = tensor.shape.last().copied().unwrap_or(1).max(1);
    let chunk = ((CHUNK / columns).max(1) * columns).min(total);
    let mut values = vec![0.0; chunk];
    let mut bytes = vec![0; chunk / kind.block_len() * kind.block_bytes()];
    let mut first = 0;
    while first < total {
        let count = chunk.min(total - first);
        let bytes = &mut bytes[..count / kind.block_len() * kind.block_bytes()];
        file.read_exact(bytes).map_err(io)?;
        let values = &mut values[..count];
        kind.widen(bytes, values);
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (element, value) = (first + at, values[at]);
            let detail = format!(
                "element {element} of tensor `{}` is {value}; copy or download it again",
                tensor.name
            );
            return Err(gguf.invalid(detail).into());
        }
        take(first, values)?;
        first += count;
    }
    Ok(())
}

impl From<GgufError> for CheckpointError {
    fn from(error: GgufError) -> Self {
        match error {
            GgufError::Io { path, source } => Self::Io { path, source },
            error => Self::Gguf(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn every_type_is_widened_as_the_package_gguf_does() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf");
        let gguf = Gguf::open(&folder.join("blocks.gguf")).unwrap();
        let bytes = std::fs::read(folder.join("blocks.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let mut file = open(&gguf).unwrap();
        for kind in GgmlType::ALL {
            let tensor = gguf.tensor(kind.name()).unwrap();
            assert_eq!(GgmlType::of(tensor.kind), Some(kind));
            let mut found = Vec::new();
            read(&gguf, &mut file, tensor, |first, values| {
                assert_eq!(first, found.len() / 4);
                found.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                Ok(())
            })
            .unwrap();
            let wanted = expected.tensor(kind.name()).unwrap();
            assert_eq!(wanted.shape(), tensor.shape);
            let different = found.chunks(4).zip(wanted.data().chunks(4)).position(|(a, b)| a != b);
            assert_eq!((different, found.len()), (None, wanted.data().len()), "{}", kind.name());
        }
    }

    #[test]
    fn rows_that_rotate_together_lie_half_a_head_apart() {
        let places: Vec<usize> = (0..8).map(|row| unrotated(row, 4)).collect();
        assert_eq!(places, [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn names_of_tensors_go_both_ways() {
        for name in
            ["token_embd.weight", "output.weight", "blk.12.attn_k_norm.weight", "blk.0.attn_q.bias"]
        {
            assert_eq!(file_name(&own_name(name).unwrap()), name);
        }
        assert_eq!(own_name("blk.x.attn_q.weight"), None);
        assert_eq!(own_name("blk.0.ffn_gate_exps.weight"), None);
    }
}
