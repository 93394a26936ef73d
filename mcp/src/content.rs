//! What servers answer, as text and media.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use serde::Deserialize;
use serde_json::Value;
use spar_core::Media;

/// What a server answered, as text and media.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpOutput {
    /// Its texts, one behind the other.
    pub text: String,
    /// Its pictures and sounds.
    pub media: Vec<Media>,
    /// Whether the server says that it is why something could not be done.
    pub is_error: bool,
}

/// Reads the result of a call of a tool as it stands in a message.
///
/// # Errors
///
/// What keeps it from being one.
pub fn read_result(result: Value, media_bytes: usize) -> Result<McpOutput, String> {
    let result = CallToolResult::deserialize(result).map_err(|error| error.to_string())?;
    Ok(of_call(result, media_bytes))
}

/// The result of a call. What is structured is told where there is no text, which servers are to give as well.
pub(crate) fn of_call(result: CallToolResult, media_bytes: usize) -> McpOutput {
    let mut writer = Writer::new(media_bytes);
    let has_text = result.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    result.content.into_iter().for_each(|block| writer.block(block));
    if let Some(structured) = result.structured_content.filter(|_| !has_text) {
        writer.text(&structured.to_string());
    }
    McpOutput { is_error: result.is_error == Some(true), ..writer.output }
}

/// What a resource holds.
pub(crate) fn of_resource(result: ReadResourceResult, media_bytes: usize) -> McpOutput {
    let mut writer = Writer::new(media_bytes);
    let is_single = result.contents.len() == 1;
    for contents in result.contents {
        match contents {
            ResourceContents::TextResourceContents { text, .. } if is_single => writer.text(&text),
            contents => writer.resource(contents),
        }
    }
    writer.output
}

/// The messages of a prompt.
pub(crate) fn of_prompt(result: GetPromptResult, media_bytes: usize) -> McpOutput {
    let mut writer = Writer::new(media_bytes);
    for message in result.messages {
        if message.role == Role::Assistant {
            writer.text("[assistant]");
        }
        writer.block(message.content);
    }
    writer.output
}

/// Puts parts of an answer together.
struct Writer {
    output: McpOutput,
    media_bytes: usize,
}

impl Writer {
    fn new(media_bytes: usize) -> Self {
        Self { output: McpOutput::default(), media_bytes }
    }

    fn text(&mut self, text: &str) {
        if !self.output.text.is_empty() && !self.output.text.ends_with('\n') {
            self.output.text.push('\n');
        }
        self.output.text.push_str(text);
    }

    fn block(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(part) => self.text(&part.text),
            ContentBlock::Image(part) => self.media(&part.mime_type, &part.data),
            ContentBlock::Audio(part) => self.media(&part.mime_type, &part.data),
            ContentBlock::Resource(part) => self.resource(part.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.map(|it| format!(": {it}")).unwrap_or_default();
                self.text(&format!("[{}]({}){about}", link.name, link.uri));
            }
            // What later versions of the protocol may have.
            _ => self.text("[a part of an unknown kind]"),
        }
    }

    fn resource(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.text(&format!("[{uri}]"));
                self.text(&text);
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.text(&format!("[{uri}]"));
                let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                match kind.starts_with("image/") || kind.starts_with("audio/") {
                    true => self.media(kind, &blob),
                    false => self.text(&format!("[{} bytes of {kind}]", blob.len() / 4 * 3)),
                }
            }
            _ => self.text("[a resource of an unknown kind]"),
        }
    }

    /// A medium in base64, decoded where there is room for it.
    fn media(&mut self, kind: &str, data: &str) {
        let is_kind =
            kind.len() <= 100 && kind.contains('/') && !kind.chars().any(char::is_control);
        let kind = if is_kind { kind } else { "application/octet-stream" };
        // Three bytes of every four characters: refused before they are decoded.
        if data.len() / 4 * 3 > self.media_bytes.saturating_add(3) {
            return self.text(&format!("[{kind} left out: too large]"));
        }
        let Ok(bytes) = STANDARD.decode(data) else {
            return self.text(&format!("[{kind} left out: it is no base64]"));
        };
        let Some(left) = self.media_bytes.checked_sub(bytes.len()) else {
            return self.text(&format!("[{kind} left out: too large]"));
        };
        self.media_bytes = left;
        self.output.media.push(Media::new(kind, bytes));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_become_text_and_media() {
        let result = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAEC", "mimeType": "image/png" },
            { "type": "audio", "data": "AAEC", "mimeType": "audio/wav" },
            { "type": "image", "data": "?", "mimeType": "image/png" },
            { "type": "image", "data": "AAECAAECAAEC", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "two" } },
            { "type": "resource", "resource": { "uri": "a://c", "blob": "AAEC", "mimeType": "x/y" } },
            { "type": "resource_link", "uri": "a://d", "name": "d", "description": "three" },
        ], "structuredContent": { "a": 1 } });
        let output = read_result(result, 8).unwrap();
        assert_eq!(
            output.text,
            "one\n[image/png left out: it is no base64]\n[image/png left out: too large]\n[a://b]\ntwo\n[a://c]\n\
             [3 bytes of x/y]\n[d](a://d): three"
        );
        let kinds: Vec<_> = output.media.iter().map(|it| it.media_type.as_str()).collect();
        assert_eq!(kinds, ["image/png", "audio/wav"]);
        assert_eq!(&**output.media[0].bytes().unwrap(), [0, 1, 2]);
        assert!(!output.is_error);
    }

    #[test]
    fn what_is_structured_stands_in_for_text() {
        let structured =
            json!({ "content": [], "structuredContent": { "sum": 3 }, "isError": true });
        let output = read_result(structured, 8).unwrap();
        assert_eq!((output.text.as_str(), output.is_error), (r#"{"sum":3}"#, true));
        assert!(read_result(json!({ "content": 1 }), 8).is_err());
    }
}
