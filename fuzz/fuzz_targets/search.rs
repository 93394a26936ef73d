//! What policies, servers and files of questions say to searches: tags, answers, rows.

#![no_main]

use spar_search::questions::QuestionFormat;
use spar_search::search_r1::{TagAction, read};
use spar_search::{Document, SearchIndex, squad, wire};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = wire::read_answer(bytes, 1, 3);
    if let Ok(row) = serde_json::from_slice(bytes) {
        let _ = Document::from_json(&row);
        for format in QuestionFormat::ALL {
            let _ = format.read(&row);
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (action, answers) = read(text);
    if let TagAction::Search(said) | TagAction::Answer(said) = action {
        assert!(text.contains(said));
    }
    assert!(answers <= text.len());
    assert!(squad::exact_match(text, [text]));
    let score = squad::f1(text, ["the right answer"]);
    assert!((0.0..=1.0).contains(&score));
    let document = Document::from_contents("0", text);
    let index = SearchIndex::in_memory(vec![document]).expect("any text can be indexed");
    assert!(index.search(text, 3).is_ok_and(|hits| hits.len() <= 1) || text.len() > 4096);
});
