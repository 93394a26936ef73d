//! Names as git quotes them: C's escapes, and octal numbers for bytes.

/// The name in quotation marks at the start of `text`, and how many bytes it takes with them; absent where it is not
/// written as git writes them.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut name = Vec::new();
    let mut at = 1;
    if text.first() != Some(&b'"') {
        return None;
    }
    loop {
        match *text.get(at)? {
            b'"' => return Some((name, at + 1)),
            b'\\' => {
                let escape = *text.get(at + 1)?;
                at += 2;
                name.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 0x0b,
                    b'\\' | b'"' => escape,
                    b'0'..=b'3' => {
                        let digits = text.get(at..at + 2)?;
                        if !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
                            return None;
                        }
                        at += 2;
                        ((escape - b'0') << 6) | ((digits[0] - b'0') << 3) | (digits[1] - b'0')
                    }
                    _ => return None,
                });
            }
            byte => {
                name.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes() {
        assert_eq!(unquote(br#""a\tb\303\274\"" rest"#), Some((b"a\tb\xc3\xbc\"".to_vec(), 16)));
        for wrong in [r#""open"#, r#""\x41""#, r#""\400""#, r#""\19""#, "plain", r#""\"#] {
            assert_eq!(unquote(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
