//! What servers answer, read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use spar_core::{Media, ToolSpec};

/// The highest reward of a call, without its sign.
const MOST_REWARD: f64 = 1e6;

/// A split of an environment's tasks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OrsSplit {
    /// Its name.
    pub name: String,
    /// What it is for: `train`, `validation` or `test`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Text and pictures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrsContent {
    /// Its texts, one behind the other.
    pub text: String,
    /// Its pictures.
    pub media: Vec<Media>,
}

/// What came of a call that was carried out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OrsOutput {
    /// What it shows.
    pub content: OrsContent,
    /// What it earned; absent: nothing was said of that.
    pub reward: Option<f64>,
    /// Whether the task is over.
    pub finished: bool,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum OrsAnswer {
    /// It was carried out.
    Done(OrsOutput),
    /// It was not, and why: for whoever called.
    Told(String),
}

#[derive(Deserialize)]
pub(crate) struct Tools {
    pub(crate) tools: Vec<WrittenTool>,
}

#[derive(Deserialize)]
pub(crate) struct WrittenTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    input_schema: Option<Value>,
}

impl WrittenTool {
    /// The tool; an error where it could not be offered.
    pub(crate) fn spec(self) -> Result<ToolSpec, String> {
        let mut schema = self.input_schema.unwrap_or_else(|| json!({}));
        if let Some(fields) = schema.as_object_mut() {
            fields.entry("type").or_insert_with(|| "object".into());
            fields.entry("properties").or_insert_with(|| json!({}));
        }
        let spec = ToolSpec::new(self.name, self.description, schema);
        spec.validate().map_err(|error| error.to_string())?;
        Ok(spec)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAnswer {
    Done { output: WrittenOutput },
    Told { error: String },
}

#[derive(Deserialize)]
struct WrittenOutput {
    blocks: Vec<Block>,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    finished: bool,
}

#[derive(Deserialize)]
pub(crate) struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    data: String,
    #[serde(default, rename = "mimeType")]
    media_type: String,
}

/// Reads the answer to a call.
///
/// # Errors
///
/// What keeps it from being one.
pub fn read_answer(text: &str, media_bytes: usize, items: usize) -> Result<OrsAnswer, String> {
    let written: WrittenAnswer = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let WrittenOutput { blocks, reward, finished } = match written {
        WrittenAnswer::Told { error } => return Ok(OrsAnswer::Told(error)),
        WrittenAnswer::Done { output } => output,
    };
    if let Some(reward) = reward
        && !(reward.is_finite() && reward.abs() <= MOST_REWARD)
    {
        return Err(format!("its reward is {reward}, must lie in -{MOST_REWARD}..={MOST_REWARD}"));
    }
    let content = content_of(blocks, media_bytes, items)?;
    Ok(OrsAnswer::Done(OrsOutput { content, reward, finished }))
}

/// Blocks as text and media. A picture that cannot be shown is told of in its place.
pub(crate) fn content_of(
    blocks: Vec<Block>,
    media_bytes: usize,
    items: usize,
) -> Result<OrsContent, String> {
    if blocks.len() > items {
        return Err(format!("it has {} blocks, at most {items} are taken", blocks.len()));
    }
    let mut content = OrsContent::default();
    let mut left = media_bytes;
    for block in blocks {
        let text = match block.kind.as_str() {
            "text" => block.text,
            "image" => match picture(&block, &mut left) {
                Ok(picture) => {
                    content.media.push(picture);
                    continue;
                }
                Err(told) => told,
            },
            // What later versions of the standard may have.
            _ => "[a part of an unknown kind]".to_owned(),
        };
        if !content.text.is_empty() && !content.text.ends_with('\n') {
            content.text.push('\n');
        }
        content.text.push_str(&text);
    }
    Ok(content)
}

fn picture(block: &Block, left: &mut usize) -> Result<Media, String> {
    let kind = &block.media_type;
    if !(kind.len() <= 100 && kind.starts_with("image/") && !kind.chars().any(char::is_control)) {
        return Err("[a picture of no known type left out]".to_owned());
    }
    // Three bytes of every four characters: refused before they are decoded.
    if block.data.len() / 4 * 3 > left.saturating_add(3) {
        return Err(format!("[{kind} left out: too large]"));
    }
    let bytes = STANDARD.decode(&block.data);
    let bytes = bytes.map_err(|_| format!("[{kind} left out: it is no base64]"))?;
    *left = left.checked_sub(bytes.len()).ok_or_else(|| format!("[{kind} left out: too large]"))?;
    Ok(Media::new(kind.as_str(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OrsAnswer, String> {
        read_answer(text, 8, 4)
    }

    #[test]
    fn answers_are_read_with_rewards_and_pictures() {
        let text = r#"{"ok": true, "output": {"blocks": [{"text": "a", "detail": null, "type": "text"},
            {"data": "AAEC", "mimeType": "image/png", "type": "image"}, {"type": "text", "text": "b"},
            {"type": "hologram"}], "metadata": {"x": [1]}, "reward": 0.5, "finished": true}}"#;
        let Ok(OrsAnswer::Done(output)) = read(text) else { panic!() };
        assert_eq!(output.content.text, "a\nb\n[a part of an unknown kind]");
        assert_eq!(&**output.content.media[0].bytes().unwrap(), [0, 1, 2]);
        assert_eq!((output.reward, output.finished), (Some(0.5), true));
        let told = read(r#"{"ok": false, "error": "'x' is not a valid tool"}"#).unwrap();
        assert_eq!(told, OrsAnswer::Told("'x' is not a valid tool".to_owned()));
        let left_out = r#"{"output": {"blocks": [{"type": "image", "mimeType": "image/png", "data": "?"},
            {"type": "image", "mimeType": "text/html", "data": "AAEC"},
            {"type": "image", "mimeType": "image/png", "data": "AAECAAECAAECAAEC"}]}}"#;
        let Ok(OrsAnswer::Done(output)) = read(left_out) else { panic!() };
        assert!(output.content.media.is_empty() && output.reward.is_none() && !output.finished);
        assert_eq!(output.content.text.matches("left out").count(), 3);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let blocks = |count: usize| {
            let block = vec![r#"{"type":"text","text":""}"#; count].join(",");
            format!(r#"{{"ok":true,"output":{{"blocks":[{block}],"reward":REWARD}}}}"#)
        };
        assert!(read(&blocks(4).replace("REWARD", "1")).is_ok());
        assert!(read(&blocks(4).replace("REWARD", "null")).is_ok());
        for wrong in ["1e999", "NaN", "1e7", "\"1\""] {
            assert!(read(&blocks(1).replace("REWARD", wrong)).is_err(), "{wrong}");
        }
        assert!(read(&blocks(5).replace("REWARD", "1")).is_err());
        for wrong in ["", "{}", "[]", r#"{"ok":true,"output":{"blocks":3}}"#, &"[".repeat(100_000)]
        {
            assert!(read(wrong).is_err());
        }
    }

    #[test]
    fn tools_without_a_schema_take_nothing_and_odd_ones_are_refused() {
        let spec = |json: &str| serde_json::from_str::<WrittenTool>(json).unwrap().spec();
        let plain = spec(r#"{"name": "look", "description": "Looks.", "input_schema": null}"#);
        assert_eq!(plain.unwrap().parameters, json!({ "type": "object", "properties": {} }));
        for wrong in [r#"{"name": "a b"}"#, r#"{"name": "a", "input_schema": [1]}"#] {
            assert!(spec(wrong).is_err(), "{wrong}");
        }
    }
}
