//! Foreign patches: by git's rules, as agents hand them in, and by those of a harness, as rows have them for their tests.

#![no_main]

use spar_swe::{Body, Patch, PatchLimits, git_files, modified_files, test_directives};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = PatchLimits { bytes: 1 << 14, files: 64 };
    match Patch::parse(bytes, &limits) {
        Ok(patch) => {
            assert!(bytes.len() <= limits.bytes && patch.files.len() <= limits.files);
            let found = patch.unsafe_changes(bytes);
            let mut end = 0;
            for change in &patch.files {
                // What leaves the repository, or enters git's folder, is told.
                let paths = change.old_path.iter().chain(&change.new_path);
                let leaves = |part: &[u8]| part == b".." || part.eq_ignore_ascii_case(b".git");
                if paths.flat_map(|path| path.parts()).any(leaves) {
                    assert!(!found.is_empty());
                }
                // Hunks lie in the patch, one behind the other.
                if let Body::Text(hunks) = &change.body {
                    for hunk in hunks {
                        assert!(end <= hunk.span.start && hunk.span.end <= bytes.len());
                        assert!(hunk.span.start < hunk.span.end);
                        end = hunk.span.end;
                    }
                }
                let lines = change.line_counts().unwrap_or_default();
                assert!(lines.0 + lines.1 <= bytes.len() as u64);
            }
            assert!(found.iter().all(|change| !change.to_string().is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let text = String::from_utf8_lossy(bytes);
    for names in [modified_files(&text), git_files(&text)].into_iter().flatten() {
        assert!(names.len() <= text.lines().count() + 1);
    }
    for repo in ["own/tool", "django/django"] {
        assert!(test_directives(repo, &text).len() <= text.len());
    }
});
