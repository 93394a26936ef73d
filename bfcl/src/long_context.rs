//! The texts that long contexts add.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use spar_python::{Dict, NoNames, Value, eval, from_json, to_str};

use crate::BfclError;

/// The texts that the category of long contexts adds to files, lists and answers. They belong to the public release and are
/// not part of this program: they are loaded from `long_context.py` of the release, or from a JSON file with them under
/// `constants`.
#[derive(Debug, Clone)]
pub struct LongContext {
    pub(crate) watch_list: Value,
    pub(crate) transaction_history: Value,
    pub(crate) ma_5: Value,
    pub(crate) ma_20: Value,
    pub(crate) technology: Value,
    pub(crate) automobile: Value,
    order_detail: Dict,
    pub(crate) file_content: String,
    pub(crate) populate_files: Vec<Value>,
    pub(crate) car_status: String,
    pub(crate) weather: Value,
    pub(crate) parking_brake: String,
    pub(crate) intermediary_cities: Value,
    pub(crate) cards: Value,
    pub(crate) bookings: Value,
    pub(crate) files_tail_used: Vec<Value>,
}

impl LongContext {
    /// Reads them from `long_context.py` or a JSON file.
    ///
    /// # Errors
    ///
    /// [`BfclError`] when the file cannot be read, or lacks one of them.
    pub fn load(path: &Path) -> Result<Self, BfclError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| BfclError::Read { path: path.to_owned(), source })?;
        let wrong =
            |detail: String| BfclError::Malformed { what: path.display().to_string(), detail };
        let constants = if path.extension().is_some_and(|extension| extension == "py") {
            assignments(&text).map_err(wrong)?
        } else {
            let json: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            match with_ellipses(from_json(&json["constants"])) {
                Value::Dict(constants) => (*constants).clone(),
                _ => return Err(wrong("`constants` is missing".to_owned())),
            }
        };
        Self::from_constants(&constants).map_err(wrong)
    }

    /// As [`load`](Self::load), kept for whoever asks for the same file next.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn shared(path: &Path) -> Result<Arc<Self>, BfclError> {
        static LAST: Mutex<Option<(PathBuf, Arc<LongContext>)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, texts)) = &*last
            && known == path
        {
            return Ok(Arc::clone(texts));
        }
        let texts = Arc::new(Self::load(path)?);
        *last = Some((path.to_owned(), Arc::clone(&texts)));
        Ok(texts)
    }

    fn from_constants(constants: &Dict) -> Result<Self, String> {
        let value = |name: &str| {
            constants.get_str(name).cloned().ok_or_else(|| format!("`{name}` is missing"))
        };
        let text = |name: &str| {
            value(name)?.as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is no text"))
        };
        let list = |name: &str| {
            value(name)?
                .as_list()
                .map(<[Value]>::to_vec)
                .ok_or_else(|| format!("`{name}` is no list"))
        };
        let dict = |name: &str| {
            value(name)?.as_dict().cloned().ok_or_else(|| format!("`{name}` is no dictionary"))
        };
        Ok(Self {
            watch_list: value("WATCH_LIST_EXTENSION")?,
            transaction_history: value("TRANSACTION_HISTORY_EXTENSION")?,
            ma_5: value("MA_5_EXTENSION")?,
            ma_20: value("MA_20_EXTENSION")?,
            technology: value("TECHNOLOGY_EXTENSION")?,
            automobile: value("AUTOMOBILE_EXTENSION")?,
            order_detail: dict("ORDER_DETAIL_EXTENSION")?,
            file_content: text("FILE_CONTENT_EXTENSION")?,
            populate_files: list("POPULATE_FILE_EXTENSION")?,
            car_status: text("CAR_STATUS_METADATA_EXTENSION")?,
            weather: Value::Dict(Arc::new(dict("LONG_WEATHER_EXTENSION")?)),
            parking_brake: text("PARKING_BRAKE_INSTRUCTION")?,
            intermediary_cities: value("INTERMEDIARY_CITIES")?,
            cards: Value::Dict(Arc::new(dict("CREDIT_CARD_EXTENSION")?)),
            bookings: Value::Dict(Arc::new(dict("BOOKING_RECORD_EXTENSION")?)),
            files_tail_used: list("FILES_TAIL_USED")?,
        })
    }

    /// The details of an order of a stock.
    pub(crate) fn order_details(&self, symbol: &str) -> Value {
        let mut details = Dict::default();
        for (name, text) in self.order_detail.iter() {
            let text = to_str(text).unwrap_or_default().replace("{symbol}", symbol);
            let _ = details.insert(name.clone(), Value::from(text));
        }
        Value::Dict(Arc::new(details))
    }
}

/// The values of the assignments of a module that consists of nothing else.
fn assignments(text: &str) -> Result<Dict, String> {
    let mut constants = Dict::default();
    let is_start = |line: &str| {
        line.split_once('=').is_some_and(|(name, _)| {
            let name = name.trim_end();
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        })
    };
    let lines: Vec<&str> = text.lines().collect();
    let starts: Vec<usize> = (0..lines.len()).filter(|&at| is_start(lines[at])).collect();
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(lines.len());
        let statement = lines[start..end].join("\n");
        let (name, value) = statement.split_once('=').expect("the line has one");
        let value = eval(value, &mut NoNames)
            .map_err(|error| format!("`{}` is not understood: {error}", name.trim()))?;
        constants.insert_str(name.trim(), value);
    }
    Ok(constants)
}

/// `{"@ellipsis": true}` stands for Python's ellipsis.
fn with_ellipses(value: Value) -> Value {
    match value {
        Value::Dict(dict) if dict.len() == 1 && dict.get_str("@ellipsis").is_some() => {
            Value::Ellipsis
        }
        Value::Dict(dict) => Value::dict(dict.iter().map(|(key, value)| {
            (key.as_str().unwrap_or_default().to_owned(), with_ellipses(value.clone()))
        })),
        Value::List(items) => Value::list(items.iter().cloned().map(with_ellipses)),
        other => other,
    }
}
