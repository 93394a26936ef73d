//! Where a model's folder keeps its templates and the names of its tokens.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::DEFAULT;
use crate::ChatTemplateError;

/// The names under which templates know tokens.
const TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// The templates in `folder` by name.
pub(super) fn sources(folder: &Path) -> Result<Option<Vec<(String, String)>>, ChatTemplateError> {
    if let Some(source) = read(&folder.join("chat_template.jinja"))? {
        let mut sources = vec![(DEFAULT.to_owned(), source)];
        sources.extend(additional(&folder.join("additional_chat_templates"))?);
        return Ok(Some(sources));
    }
    for name in ["tokenizer_config.json", "chat_template.json"] {
        let path = folder.join(name);
        let Some(file) = read_json(&path)? else { continue };
        let unusable = |detail: String| ChatTemplateError::File { path: path.clone(), detail };
        match &file["chat_template"] {
            Value::Null => {}
            Value::String(source) => {
                return Ok(Some(vec![(DEFAULT.to_owned(), source.clone())]));
            }
            Value::Array(named) => {
                let named = named.iter().map(|entry| {
                    match (entry["name"].as_str(), entry["template"].as_str()) {
                        (Some(name), Some(source)) => Ok((name.to_owned(), source.to_owned())),
                        _ => Err(unusable(format!("{entry} is no template with a name"))),
                    }
                });
                return named.collect::<Result<_, _>>().map(Some);
            }
            Value::Object(named) => {
                let named = named.iter().map(|(name, source)| match source.as_str() {
                    Some(source) => Ok((name.clone(), source.to_owned())),
                    None => Err(unusable(format!("template `{name}` is no string"))),
                });
                return named.collect::<Result<_, _>>().map(Some);
            }
            other => return Err(unusable(format!("`chat_template` is {other}"))),
        }
    }
    Ok(None)
}

/// What templates know as `bos_token` and the like.
pub(super) fn tokens(folder: &Path) -> Result<Map<String, Value>, ChatTemplateError> {
    let mut tokens = Map::new();
    for name in ["special_tokens_map.json", "tokenizer_config.json"] {
        let Some(file) = read_json(&folder.join(name))? else { continue };
        for token in TOKENS {
            let value = &file[token];
            // A token with its options is an object.
            if let Some(text) = value.as_str().or_else(|| value["content"].as_str()) {
                tokens.insert(token.to_owned(), text.into());
            }
        }
    }
    Ok(tokens)
}

/// Templates that stand in files of their own.
fn additional(folder: &Path) -> Result<Vec<(String, String)>, ChatTemplateError> {
    let failed = |source| ChatTemplateError::Io { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut sources = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jinja")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            && let Some(source) = read(&path)?
        {
            sources.push((name.to_owned(), source));
        }
    }
    sources.sort();
    Ok(sources)
}

/// The text of a file; `None` where there is no such file.
fn read(path: &Path) -> Result<Option<String>, ChatTemplateError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ChatTemplateError::Io { path: path.to_owned(), source }),
    }
}

fn read_json(path: &Path) -> Result<Option<Value>, ChatTemplateError> {
    let Some(text) = read(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| ChatTemplateError::File {
        path: path.to_owned(),
        detail: error.to_string(),
    })
}
