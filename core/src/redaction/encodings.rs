//! The forms in which a secret may stand in text.

use std::collections::BTreeSet;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_ADDRESSES: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bytes of a line of a secret of several, from which on it is looked for by itself.
const MIN_LINE_BYTES: usize = 16;

/// All forms of a secret that are looked for, each once: as it is, its lines where there are several, escaped as in JSON
/// (once and twice) and in addresses, in base64 wherever it stands in what was encoded, and in hexadecimal.
pub(super) fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut plain = BTreeSet::from([secret.to_owned()]);
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_BYTES);
    plain.extend(lines.map(str::to_owned));
    let mut forms = BTreeSet::new();
    for secret in plain {
        let once = in_json(&secret);
        forms.insert(in_json(&once).into_bytes());
        forms.insert(once.into_bytes());
        for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
            forms.insert(in_address(&secret, digits, "%20"));
            forms.insert(in_address(&secret, digits, "+"));
            forms.insert(secret.bytes().flat_map(|byte| hex(byte, digits)).collect());
        }
        for alphabet in [STANDARD, FOR_ADDRESSES] {
            forms.extend((0..3).map(|before| in_base64(secret.as_bytes(), alphabet, before)));
        }
        forms.insert(secret.into_bytes());
    }
    forms.into_iter().collect()
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("text is JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn in_address(text: &str, digits: &[u8; 16], space: &str) -> Vec<u8> {
    let mut written = Vec::new();
    for byte in text.bytes() {
        match byte {
            b' ' => written.extend_from_slice(space.as_bytes()),
            b'-' | b'.' | b'_' | b'~' => written.push(byte),
            _ if byte.is_ascii_alphanumeric() => written.push(byte),
            _ => {
                written.push(b'%');
                written.extend(hex(byte, digits));
            }
        }
    }
    written
}

/// The characters that these bytes alone decide where `before` bytes (modulo 3) stand before them.
fn in_base64(bytes: &[u8], alphabet: &[u8; 64], before: usize) -> Vec<u8> {
    let mut all = vec![0; before];
    all.extend_from_slice(bytes);
    let bit = |bit: usize| all[bit / 8] >> (7 - bit % 8) & 1;
    // The first characters hold bits of what stands before, the last may hold bits of what comes behind.
    let characters = (8 * before).div_ceil(6)..8 * all.len() / 6;
    characters
        .map(|place| {
            let value = (6 * place..6 * place + 6).fold(0, |value, at| value << 1 | bit(at));
            alphabet[usize::from(value)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(secret: &str, form: &str) -> bool {
        forms(secret).iter().any(|found| found == form.as_bytes())
    }

    #[test]
    fn usual_encodings_are_among_the_forms() {
        let secret = "a \"b\"\\c/+é";
        for form in [
            secret,
            r#"a \"b\"\\c/+é"#,
            r#"a \\\"b\\\"\\\\c/+é"#,
            "a%20%22b%22%5Cc%2F%2B%C3%A9",
            "a+%22b%22%5cc%2f%2b%c3%a9",
            "6120226222 5c632f2bc3a9".replace(' ', "").as_str(),
        ] {
            assert!(has(secret, form), "{form}");
        }
    }

    #[test]
    fn base64_is_known_wherever_the_secret_stands() {
        // `printf 'hunter2hunter2' | base64`, behind none, one and two bytes: `aHVudGVyMmh1bnRlcjI=`,
        // `IGh1bnRlcjJodW50ZXIy`, `ICBodW50ZXIyaHVudGVyMg==`.
        for form in ["aHVudGVyMmh1bnRlcj", "h1bnRlcjJodW50ZXIy", "odW50ZXIyaHVudGVyM"] {
            assert!(has("hunter2hunter2", form), "{form}");
        }
        let dashed = forms("\u{3e}\u{3f}\u{3e}\u{3f}\u{3e}\u{3f}\u{3e}\u{3f}\u{3e}");
        assert!(dashed.iter().any(|form| form == b"Pj8-Pz4_Pj8-"), "{dashed:?}");
    }

    #[test]
    fn lines_of_a_key_are_looked_for_by_themselves() {
        let key = "BEGIN\nMIIBVgIBADANBgkqhkiG9w0B\nAQEFAASCAUAwggE8AgEAAkEA\nEND";
        assert!(has(key, "MIIBVgIBADANBgkqhkiG9w0B") && has(key, "AQEFAASCAUAwggE8AgEAAkEA"));
        assert!(!has(key, "BEGIN"));
    }
}
