//! The test cases of LiveCodeBench.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::graders::{CallCase, StreamCase, UnitTests};

/// The most bytes of the private test cases of one problem, unpacked.
const MAX_UNPACKED: usize = 1 << 30;

/// A test case as it is written.
#[derive(Debug, Deserialize)]
struct WrittenCase {
    input: String,
    output: String,
    #[serde(rename = "testtype")]
    kind: String,
}

/// The tests of a problem: those that are public, then the private ones, which are JSON, or JSON that Python has pickled,
/// packed by zlib and written in base 64. `function` is told by the problem's metadata.
pub(super) fn tests(
    public: &str,
    private: &str,
    function: Option<&str>,
) -> Result<UnitTests, String> {
    let mut cases = cases(public, "public_test_cases")?;
    if !private.trim().is_empty() {
        let text = match private.trim_start().starts_with('[') {
            true => private.to_owned(),
            false => unpack(private)?,
        };
        cases.extend(self::cases(&text, "private_test_cases")?);
    }
    let is_call = |case: &WrittenCase| case.kind == "functional";
    if let Some(odd) = cases.iter().find(|case| !["functional", "stdin"].contains(&&*case.kind)) {
        return Err(format!(
            "a test case is of type `{}`, known are stdin and functional",
            odd.kind
        ));
    }
    match (cases.iter().any(is_call), cases.iter().all(is_call), function) {
        (false, ..) => {
            let case = |case: WrittenCase| StreamCase { input: case.input, output: case.output };
            Ok(UnitTests::Streams { cases: cases.into_iter().map(case).collect() })
        }
        (true, true, Some(function)) => {
            let cases: Result<Vec<CallCase>, String> = cases.iter().map(call).collect();
            Ok(UnitTests::Calls {
                function: function.to_owned(),
                prelude: super::schema::IMPORTS.to_owned(),
                cases: cases?,
            })
        }
        (true, true, None) => Err("its `metadata` names no `func_name` to call".to_owned()),
        (true, false, _) => Err("its test cases are of both types".to_owned()),
    }
}

fn cases(text: &str, field: &str) -> Result<Vec<WrittenCase>, String> {
    serde_json::from_str(text).map_err(|error| format!("`{field}`: {error}"))
}

/// Arguments are a line of JSON each.
fn call(case: &WrittenCase) -> Result<CallCase, String> {
    let told = |error: serde_json::Error| format!("a test case is no JSON: {error}");
    let lines = case.input.lines().filter(|line| !line.trim().is_empty());
    let arguments: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
    let result: Value = serde_json::from_str(&case.output).map_err(told)?;
    Ok(CallCase { arguments: arguments.map_err(told)?, results: vec![result] })
}

fn unpack(packed: &str) -> Result<String, String> {
    let bytes = STANDARD
        .decode(packed.trim())
        .map_err(|error| format!("`private_test_cases` is no base 64: {error}"))?;
    let unpacked = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes, MAX_UNPACKED)
        .map_err(|error| format!("`private_test_cases` cannot be unpacked: {error}"))?;
    pickled_text(&unpacked)
        .map(str::to_owned)
        .ok_or_else(|| "`private_test_cases` is a pickle of something else than a text".to_owned())
}

/// The text that Python's `pickle.dumps(text)` has written, by protocol 2 or later; absent for anything else. Nothing is
/// carried out: a pickle that is to be loaded can run any program.
pub(super) fn pickled_text(bytes: &[u8]) -> Option<&str> {
    let rest = bytes.strip_prefix(&[0x80])?;
    let (version, mut rest) = rest.split_first()?;
    if !(2..=5).contains(version) {
        return None;
    }
    // A frame, with its length.
    if let Some(framed) = rest.strip_prefix(&[0x95]) {
        let (length, framed) = framed.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*length) != framed.len() as u64 {
            return None;
        }
        rest = framed;
    }
    let (kind, rest) = rest.split_first()?;
    let (length, rest) = match kind {
        // SHORT_BINUNICODE, BINUNICODE and BINUNICODE8.
        0x8c => rest.split_first().map(|(length, rest)| (u64::from(*length), rest))?,
        b'X' => rest
            .split_first_chunk::<4>()
            .map(|(length, rest)| (u64::from(u32::from_le_bytes(*length)), rest))?,
        0x8d => rest
            .split_first_chunk::<8>()
            .map(|(length, rest)| (u64::from_le_bytes(*length), rest))?,
        _ => return None,
    };
    let (text, end) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    // MEMOIZE or BINPUT 0, and STOP.
    let is_end = matches!(end, [b'.'] | [0x94, b'.'] | [b'q', 0, b'.']);
    std::str::from_utf8(text).ok().filter(|_| is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython's `pickle.dumps('ab', protocol)` gives.
    const PICKLES: [&[u8]; 3] = [
        b"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02ab\x94.",
        b"\x80\x02X\x02\x00\x00\x00abq\x00.",
        b"\x80\x05\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02ab\x94.",
    ];

    #[test]
    fn pickled_texts_are_read_and_programs_are_not_run() {
        for pickle in PICKLES {
            assert_eq!(pickled_text(pickle), Some("ab"));
            for cut in 0..pickle.len() {
                assert_eq!(pickled_text(&pickle[..cut]), None);
            }
        }
        // `os.system('true')`, a list, and a text behind which something comes.
        for other in [
            &b"\x80\x02cos\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03."[..],
            b"\x80\x04]\x94.",
            b"\x80\x02X\x02\x00\x00\x00abq\x00cos\nsystem\n.",
            b"\x80\x02X\xff\xff\xff\xffab.",
            b"",
        ] {
            assert_eq!(pickled_text(other), None);
        }
    }

    #[test]
    fn packed_cases_are_read() {
        let json = r#"[{"input": "1\n[2]", "output": "3", "testtype": "functional"}]"#;
        let mut pickle = vec![0x80, 2, b'X'];
        pickle.extend(u32::try_from(json.len()).unwrap().to_le_bytes());
        pickle.extend(json.bytes());
        pickle.extend(b"q\x00.");
        let packed = STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(&pickle, 6));
        let read = tests("[]", &packed, Some("f")).unwrap();
        let UnitTests::Calls { function, cases, .. } = &read else { panic!("{read:?}") };
        assert_eq!((&**function, cases.len()), ("f", 1));
        assert_eq!(cases[0].arguments, [serde_json::json!(1), serde_json::json!([2])]);
        assert!(tests("[]", &packed, None).unwrap_err().contains("func_name"));
        assert!(tests("[]", "x", None).unwrap_err().contains("base 64"));
        assert!(tests("[]", "eA==", None).unwrap_err().contains("unpacked"));
        let stdin = r#"[{"input": "1", "output": "2", "testtype": "stdin"}]"#;
        assert_eq!(tests(stdin, "[]", None).unwrap().len(), 1);
        assert!(tests(stdin, json, Some("f")).unwrap_err().contains("both types"));
    }
}
