//! JSON that is not complete yet.

/// What the beginning of a call tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    /// More text is needed.
    Open,
    /// It is `{"name": "...", "arguments": {`, the brace of the arguments at this byte.
    Call { name: String, arguments: usize },
    /// It is something else.
    Other,
}

/// Reads the beginning of a call, whose arguments stand under one of `keys`.
pub(super) fn head(text: &str, keys: &[&str]) -> Head {
    let mut reader = Reader { text, at: 0 };
    let parsed = (|| {
        reader.punctuation(b'{')?;
        if reader.string()? != "name" {
            return Err(Head::Other);
        }
        reader.punctuation(b':')?;
        let name = reader.string()?;
        reader.punctuation(b',')?;
        if !keys.contains(&&*reader.string()?) {
            return Err(Head::Other);
        }
        reader.punctuation(b':')?;
        reader.punctuation(b'{')?;
        Ok(Head::Call { name, arguments: reader.at - 1 })
    })();
    parsed.unwrap_or_else(|head| head)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn punctuation(&mut self, wanted: u8) -> Result<(), Head> {
        self.space();
        match self.text.as_bytes().get(self.at) {
            None => Err(Head::Open),
            Some(byte) if *byte == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Head::Other),
        }
    }

    fn string(&mut self) -> Result<String, Head> {
        self.punctuation(b'"')?;
        let start = self.at - 1;
        let mut is_escaped = false;
        for (offset, byte) in self.text.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    self.at += offset + 1;
                    let text = &self.text[start..self.at];
                    return serde_json::from_str(text).map_err(|_| Head::Other);
                }
                _ => {}
            }
        }
        Err(Head::Open)
    }
}

/// Finds the end of an object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ObjectEnd {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl ObjectEnd {
    /// Reads on; how many bytes of `text` belong to the object, if it ends in it.
    pub(super) fn push(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
