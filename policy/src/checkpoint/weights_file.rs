//! `model.safetensors`, and several such files with an index.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::{Dtype, View};
use serde_json::json;

use super::tensor_file::TensorFile;
use super::{KeepAs, NumberType, SaveOptions, read_json, write_json};
use crate::layout::shapes;
use crate::{
    CheckpointError, HalfParameters, HalfType, ModelConfig, ParameterKind, ParameterSpec,
    Parameters,
};

const FILE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
pub(super) const HEAD: &str = "lm_head.weight";
const EMBEDDING: &str = "model.embed_tokens.weight";
/// Ends of the names of tensors that old files hold and that follow from `config.json`.
const DERIVED: &str = ".rotary_emb.inv_freq";

/// A parameter on its way into a file.
struct Stored<'a> {
    shape: &'a [usize],
    values: &'a [f32],
    number_type: NumberType,
}

impl View for &Stored<'_> {
    fn dtype(&self) -> Dtype {
        self.number_type.dtype()
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = self.number_type.encode(self.values);
        Cow::Owned(bytes.expect("whoever stores it has checked that it fits"))
    }

    fn data_len(&self) -> usize {
        self.values.len() * self.number_type.size()
    }
}

/// Writes all parameters, into one file or several with an index; one tensor at a time is held in
/// memory besides the parameters.
pub(super) fn save(
    folder: &Path,
    parameters: &Parameters,
    options: &SaveOptions,
) -> Result<(), CheckpointError> {
    for spec in parameters.specs.iter() {
        check(parameters.view(spec), &folder.join(FILE), &spec.name, options.number_type)?;
    }
    let size = options.number_type.size();
    let mut shards: Vec<Vec<&ParameterSpec>> = vec![Vec::new()];
    let mut filled = 0;
    for spec in parameters.specs.iter() {
        let bytes = (spec.len() * size) as u64;
        if filled > 0 && filled + bytes > options.max_shard_bytes {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += bytes;
        shards.last_mut().expect("there is one from the start").push(spec);
    }

    let (single, index) = (folder.join(FILE), folder.join(INDEX));
    if shards.len() == 1 {
        write_shard(&single, parameters, &shards[0], options)?;
        remove(&index)?;
        return remove_shards(folder, &BTreeSet::new());
    }
    let mut map = BTreeMap::new();
    let mut names = BTreeSet::new();
    for (number, specs) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", number + 1, shards.len());
        write_shard(&folder.join(&name), parameters, specs, options)?;
        map.extend(specs.iter().map(|spec| (&*spec.name, name.clone())));
        names.insert(name);
    }
    let total = parameters.data.len() * size;
    write_json(&index, &json!({ "metadata": { "total_size": total }, "weight_map": map }))?;
    // A single file would be read in place of these.
    remove(&single)?;
    remove_shards(folder, &names)
}

/// Writes all parameters into one file of any name.
pub(super) fn save_alone(
    path: &Path,
    parameters: &Parameters,
    options: &SaveOptions,
) -> Result<(), CheckpointError> {
    for spec in parameters.specs.iter() {
        check(parameters.view(spec), path, &spec.name, options.number_type)?;
    }
    write_shard(path, parameters, &parameters.specs.iter().collect::<Vec<_>>(), options)
}

fn write_shard(
    path: &Path,
    parameters: &Parameters,
    specs: &[&ParameterSpec],
    options: &SaveOptions,
) -> Result<(), CheckpointError> {
    let stored: Vec<(&str, Stored<'_>)> = specs
        .iter()
        .map(|spec| {
            let (shape, values) = (&*spec.shape, parameters.view(spec));
            (&*spec.name, Stored { shape, values, number_type: options.number_type })
        })
        .collect();
    let io = |source| CheckpointError::Io { path: path.to_owned(), source };
    // Readers in Python ask whose tensors these are.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let views = stored.iter().map(|(name, stored)| (*name, stored));
    let written = safetensors::serialize_to_file(views, Some(metadata), &partial)
        .map_err(|source| match source {
            safetensors::SafeTensorError::IoError(source) => io(source),
            source => CheckpointError::Damaged { path: path.to_owned(), source },
        })
        .and_then(|()| {
            std::fs::File::open(&partial)
                .and_then(|file| file.sync_all())
                .and_then(|()| std::fs::rename(&partial, path))
                .map_err(io)
        });
    if written.is_err() {
        // Best effort: the error that is reported is the one that matters.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// Removes a file that may be absent.
fn remove(path: &Path) -> Result<(), CheckpointError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(CheckpointError::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Removes the files of a former checkpoint in several files, other than `kept`.
fn remove_shards(folder: &Path, kept: &BTreeSet<String>) -> Result<(), CheckpointError> {
    let io = |source| CheckpointError::Io { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        let is_shard = name.starts_with("model-") && name.ends_with(".safetensors");
        if is_shard && name.contains("-of-") && !kept.contains(&name) {
            remove(&folder.join(&name))?;
        }
    }
    Ok(())
}

/// Weights in the form they are kept in.
pub(super) enum Loaded {
    Single(Parameters),
    Half(HalfParameters),
}

impl Loaded {
    pub(super) fn zeros(
        shapes: Vec<(String, Vec<usize>, ParameterKind)>,
        half: Option<HalfType>,
    ) -> Self {
        match half {
            None => Self::Single(Parameters::zeros(shapes)),
            Some(half) => Self::Half(HalfParameters::zeros(Parameters::layout(shapes).specs, half)),
        }
    }

    pub(super) fn specs(&self) -> Arc<[ParameterSpec]> {
        match self {
            Self::Single(parameters) => parameters.specs.clone(),
            Self::Half(halves) => halves.specs().clone(),
        }
    }

    /// Sets numbers of a parameter from element `first` on; `Err` has the index of one that is too
    /// large for what it is kept as.
    pub(super) fn write(
        &mut self,
        spec: &ParameterSpec,
        first: usize,
        values: &[f32],
    ) -> Result<(), usize> {
        match self {
            Self::Single(parameters) => {
                parameters.view_mut(spec)[first..first + values.len()].copy_from_slice(values);
            }
            Self::Half(halves) => {
                let half = halves.half_type();
                let is_rounded = spec.kind != ParameterKind::Vector;
                let too_large = values.iter().position(|value| half.overflows(*value));
                if let Some(at) = too_large.filter(|_| is_rounded) {
                    return Err(at);
                }
                halves.write(spec, first, values);
            }
        }
        Ok(())
    }

    /// Whether a parameter has these numbers from element `first` on.
    fn holds(&self, spec: &ParameterSpec, first: usize, values: &[f32]) -> bool {
        match self {
            Self::Single(parameters) => {
                parameters.view(spec)[first..first + values.len()] == *values
            }
            Self::Half(halves) => halves.holds(spec, first, values),
        }
    }
}

/// Reads the weights of a model in the form they are to be kept in.
///
/// All headers are checked before memory is taken for what `config` promises; then the numbers
/// are read piece by piece into their places.
pub(super) fn load(
    folder: &Path,
    config: &ModelConfig,
    keep: KeepAs,
) -> Result<Loaded, CheckpointError> {
    let shapes = shapes(config);
    let mut expected: HashMap<&str, &[usize]> =
        shapes.iter().map(|(name, shape, _)| (&**name, &**shape)).collect();
    // Some tools store the output matrix although it is the embedding.
    let embedding_shape = [config.vocab_size, config.hidden_size];
    expected.entry(HEAD).or_insert(&embedding_shape);

    // 1. What is where, by the headers.
    let mut files = open(folder)?;
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        let mut names = file.names();
        names.sort();
        for name in names {
            if name.ends_with(DERIVED) {
                continue;
            }
            let path = file.path.clone();
            let shape = expected.get(&*name).filter(|_| !places.contains_key(&name));
            let Some(shape) = shape else {
                return Err(CheckpointError::ExtraTensor { path, name });
            };
            let found = &file.info(&name)?.shape;
            if found != shape {
                let (found, expected) = (found.clone(), shape.to_vec());
                return Err(CheckpointError::Shape { path, name, found, expected });
            }
            file.number_type(&name)?;
            places.insert(name, index);
        }
    }
    let missing = shapes.iter().find(|(name, ..)| !places.contains_key(name));
    if let Some((name, ..)) = missing {
        let (folder, name) = (folder.to_owned(), name.clone());
        return Err(CheckpointError::MissingTensor { folder, name });
    }

    // 2. The numbers, in the order of the buffer.
    let stored = shapes
        .iter()
        .map(|(name, _, kind)| Ok((files[places[name]].number_type(name)?, *kind)))
        .collect::<Result<Vec<_>, CheckpointError>>()?;
    let half = keep.half_of(stored);
    let mut loaded = Loaded::zeros(shapes, half);
    for spec in loaded.specs().iter() {
        let file = &mut files[places[&spec.name]];
        let path = file.path.clone();
        file.read(&spec.name, |first, values| {
            loaded.write(spec, first, values).map_err(|at| CheckpointError::TooLarge {
                path: path.clone(),
                name: spec.name.clone(),
                element: first + at,
                value: values[at],
                number_type: half.map_or(NumberType::F32, NumberType::from).name(),
            })
        })?;
    }

    // 3. An output matrix that should be the embedding has to be.
    let head = places.get(HEAD).filter(|_| config.tie_word_embeddings);
    let specs = loaded.specs();
    let embedding = specs.iter().find(|spec| spec.name == EMBEDDING);
    if let (Some(head), Some(embedding)) = (head, embedding) {
        files[*head].read(HEAD, |first, values| {
            if loaded.holds(embedding, first, values) {
                return Ok(());
            }
            Err(CheckpointError::UntiedHead { path: folder.to_owned() })
        })?;
    }
    Ok(loaded)
}

/// Opens the files that hold the weights.
fn open(folder: &Path) -> Result<Vec<TensorFile>, CheckpointError> {
    let single = folder.join(FILE);
    if single.exists() {
        return Ok(vec![TensorFile::open(single)?]);
    }
    let path = folder.join(INDEX);
    if !path.exists() {
        return Err(CheckpointError::NoWeights { folder: folder.to_owned() });
    }
    let index = read_json(&path)?;
    let wrong = |detail: String| CheckpointError::Index { path: path.clone(), detail };
    let map = index["weight_map"].as_object();
    let map = map.ok_or_else(|| wrong("it has no table `weight_map`".to_owned()))?;
    let mut tensors: BTreeMap<PathBuf, Vec<&str>> = BTreeMap::new();
    for (tensor, file) in map {
        let name = file.as_str().filter(|name| Path::new(name).file_name() == Some(name.as_ref()));
        let name = name.ok_or_else(|| wrong(format!("tensor `{tensor}` is in {file}")))?;
        tensors.entry(folder.join(name)).or_default().push(tensor);
    }
    let mut files = Vec::new();
    for (path, tensors) in tensors {
        let file = TensorFile::open(path)?;
        if let Some(tensor) = tensors.iter().find(|tensor| !file.has(tensor)) {
            return Err(wrong(format!("tensor `{tensor}` is not in `{}`", file.path.display())));
        }
        files.push(file);
    }
    Ok(files)
}

/// Whether all values can be stored.
fn check(
    values: &[f32],
    path: &Path,
    name: &str,
    number_type: NumberType,
) -> Result<(), CheckpointError> {
    let (path, name) = (path.to_owned(), name.to_owned());
    if let Some(element) = values.iter().position(|value| !value.is_finite()) {
        return Err(CheckpointError::NotFinite { path, name, element, value: values[element] });
    }
    // In pieces, for a copy of a large tensor would be large.
    let chunk = 1 << 16;
    for (index, piece) in values.chunks(chunk).enumerate() {
        if number_type != NumberType::F32
            && let Err(at) = number_type.encode(piece)
        {
            let (element, value) = (index * chunk + at, piece[at]);
            let number_type = number_type.name();
            return Err(CheckpointError::TooLarge { path, name, element, value, number_type });
        }
    }
    Ok(())
}
