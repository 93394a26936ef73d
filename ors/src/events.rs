//! Server-sent events.

/// An event with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its data, several lines of which are joined.
    pub data: String,
}

/// Reads events from bytes as they come. What is kept is what was given and not yet read: whoever gives bytes bounds them.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The start of a line.
    line: Vec<u8>,
    name: String,
    data: Vec<String>,
}

impl EventReader {
    /// Takes in bytes; the events that end in them. Comments, which are heartbeats, and events without a name are passed
    /// over.
    ///
    /// # Errors
    ///
    /// What keeps a line from being one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.line);
                let line = str::from_utf8(&line).map_err(|_| "a line of events is no UTF-8")?;
                events.extend(self.take_line(line.trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            return (!name.is_empty()).then(|| Event { name, data: data.join("\n") });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // One space belongs to the form; those behind it to the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            // A comment, or a field that nothing here depends on.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_their_bytes_are_cut() {
        let stream = ": ping\r\n\r\nevent: task_id\r\ndata: 7\r\n\r\nevent: chunk\ndata:  é\ndata: b\n\n\
                      data: nameless\n\nretry: 5\nevent: end\ndata\n\nevent: cut";
        let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
        let expected = [event("task_id", "7"), event("chunk", " é\nb"), event("end", "")];
        for size in [1, 2, 3, 7, 1000] {
            let mut reader = EventReader::default();
            let parts = stream.as_bytes().chunks(size);
            let events: Vec<_> = parts.flat_map(|part| reader.push(part).unwrap()).collect();
            assert_eq!(events, expected, "{size}");
        }
        assert!(EventReader::default().push(b"data: \xff\n").is_err());
    }
}
