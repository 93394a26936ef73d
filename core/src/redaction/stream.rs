//! Secrets in text that comes in pieces.

use std::sync::Arc;

use super::Redactor;
use super::redactor::Found;

/// Takes secrets out of bytes that come in pieces: the result is that of all pieces together, wherever they are cut.
///
/// What may be the beginning of a secret is held back until what comes next decides, so that at the most as many bytes
/// are held as the longest secret has, or the longest that a rule looks for (16 KiB).
#[derive(Debug, Clone)]
pub struct StreamRedactor {
    redactor: Arc<Redactor>,
    held: Vec<u8>,
    /// A secret whose mark was given already, as far as it reaches into what is held.
    begun: Option<Found>,
}

impl StreamRedactor {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, held: Vec::new(), begun: None }
    }

    /// Takes what comes next, and gives what is decided.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.give(false)
    }

    /// Gives the rest: nothing comes any more.
    pub fn finish(mut self) -> Vec<u8> {
        self.give(true)
    }

    fn give(&mut self, is_end: bool) -> Vec<u8> {
        let had_begun = self.begun.is_some();
        let findings = self.redactor.find(&self.held, is_end, self.begun.take());
        let until = if is_end { self.held.len() } else { findings.open };
        let (mut given, mut from) = (Vec::with_capacity(until), 0);
        for (index, found) in findings.found.into_iter().enumerate() {
            if found.start >= until && !(index == 0 && had_begun) {
                break;
            }
            given.extend_from_slice(&self.held[from..found.start]);
            if index > 0 || !had_begun {
                given.extend(self.redactor.mark(found.name).bytes());
            }
            from = found.end.min(until);
            if found.end > until {
                // The rest of it is held, since something else may begin within.
                self.begun = Some(Found { start: 0, end: found.end - until, ..found });
            }
        }
        given.extend_from_slice(&self.held[from..until]);
        self.held.drain(..until);
        given
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SecretRule;
    use super::*;

    fn in_pieces(redactor: &Arc<Redactor>, bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, usize) {
        let (mut stream, mut given, mut most) = (redactor.stream(), Vec::new(), 0);
        let mut rest = bytes;
        for cut in cuts {
            let (piece, others) = rest.split_at((*cut).min(rest.len()));
            given.extend(stream.push(piece));
            most = most.max(stream.held.len());
            rest = others;
        }
        given.extend(stream.push(rest));
        given.extend(stream.finish());
        (given, most)
    }

    #[test]
    fn a_secret_that_comes_byte_by_byte_is_found() {
        let rules = [SecretRule::ApiKey, SecretRule::PrivateKey];
        let redactor = Arc::new(Redactor::new([("KEY", "abcabcabcabd")], &rules));
        let key = "sk-0123456789012345678901234567890";
        let text = format!(
            "abcabcabcabcabd, {key}-----BEGIN PRIVATE KEY-----x-----END PRIVATE KEY----- sk-a abcabcabcab"
        );
        let whole = redactor.text(&text).into_owned();
        assert!(whole.starts_with("abc[redacted KEY], [redacted api_key]"), "{whole}");
        let (given, _) = in_pieces(&redactor, text.as_bytes(), &vec![1; text.len()]);
        assert_eq!(String::from_utf8(given).unwrap(), whole);
    }

    #[test]
    fn what_never_ends_is_not_held_for_ever() {
        let redactor = Arc::new(Redactor::new([("KEY", "aaaaaaaa")], &SecretRule::ALL));
        for text in
            ["a".repeat(100_000), format!("-----BEGIN PRIVATE KEY-----{}", "b".repeat(100_000))]
        {
            let cuts = vec![997; text.len() / 997];
            let (given, most) = in_pieces(&redactor, text.as_bytes(), &cuts);
            assert_eq!(given, redactor.bytes(text.as_bytes()).into_owned());
            assert!(most < 20_000, "{most} bytes were held");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_no_secret_is_left(
            // Of few letters, so that secrets overlap themselves and each other.
            secrets in proptest::collection::vec("[ab]{8,12}", 1..4),
            parts in proptest::collection::vec(
                prop_oneof![(0usize..4).prop_map(Ok), "[ab -]{0,9}".prop_map(Err)],
                0..12,
            ),
            cuts in proptest::collection::vec(1usize..9, 0..40),
        ) {
            let named = secrets.iter().map(|secret| ("S", secret.as_str()));
            let redactor = Arc::new(Redactor::new(named, &[SecretRule::ApiKey]));
            let text: String = parts
                .iter()
                .map(|part| match part {
                    Ok(index) => secrets[index % secrets.len()].as_str(),
                    Err(text) => text,
                })
                .collect();
            let whole = redactor.text(&text).into_owned();
            let (given, _) = in_pieces(&redactor, text.as_bytes(), &cuts);
            prop_assert_eq!(&String::from_utf8(given).unwrap(), &whole);
            for secret in &secrets {
                prop_assert!(!whole.contains(secret.as_str()), "{} in {}", secret, whole);
            }
        }
    }
}
