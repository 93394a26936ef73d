//! How Search-R1 puts questions, and reads and answers what its policy writes.

use crate::Document;
use crate::document::listing;
use crate::squad::strip;

/// What stands before the question.
///
/// Source: Search-R1, arXiv 2503.09516, its template `base`.
pub const PROMPT: &str = "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get \
new information. After reasoning, if you find you lack some knowledge, you can call a search engine by <search> query </search> and it \
will return the top searched results between <information> and </information>. You can search as many times as your want. If you find no \
further external knowledge needed, you can directly provide the answer inside <answer> and </answer>, without detailed illustrations. For \
example, <answer> Beijing </answer>.";

/// What a response is answered with that neither searches nor answers.
///
/// Source: Search-R1, its program `search_r1/llm_agent/generation.py`.
pub const INVALID_ACTION: &str = "\nMy previous action is invalid. If I want to search, I should put the query between <search> and \
</search>. If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try again.\n";

/// What a response does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagAction<'a> {
    /// It searches for this.
    Search(&'a str),
    /// It answers with this.
    Answer(&'a str),
    /// It does neither.
    Invalid,
}

/// A question as it is put: without white space around it, and with a question mark.
pub fn question(text: &str) -> String {
    let text = strip(text);
    let mark = if text.ends_with('?') { "" } else { "?" };
    format!("{text}{mark}")
}

/// What a response does, and how many whole `<answer>...</answer>` it has.
///
/// As Search-R1's program does, the response is cut behind its first `</search>`, or else behind its first `</answer>`; of what is left, the
/// first tag counts that is opened and closed, without white space around what is in it. Reasoning is not looked at: tags
/// in it are tags.
///
/// ```
/// use spar_search::search_r1::{TagAction, read};
///
/// let (action, _) = read("<think>Who wrote it?</think> <search> the author </search> and");
/// assert_eq!(action, TagAction::Search("the author"));
/// ```
pub fn read(response: &str) -> (TagAction<'_>, usize) {
    let cut = ["</search>", "</answer>"]
        .into_iter()
        .find_map(|close| response.find(close).map(|start| &response[..start + close.len()]));
    (first_tag(cut.unwrap_or(response)), count_answers(response))
}

const TAGS: [(&str, &str); 2] = [("<search>", "</search>"), ("<answer>", "</answer>")];

/// The first tag that is opened and closed.
fn first_tag(text: &str) -> TagAction<'_> {
    // Where each is opened first and closed behind that; a later opening would not be closed earlier.
    let whole = TAGS.map(|(open, close)| {
        let start = text.find(open)?;
        let inside = start + open.len();
        let len = text[inside..].find(close)?;
        Some((start, strip(&text[inside..inside + len])))
    });
    match whole {
        [Some((search, query)), Some((answer, _))] if search < answer => TagAction::Search(query),
        [_, Some((_, answer))] => TagAction::Answer(answer),
        [Some((_, query)), None] => TagAction::Search(query),
        [None, None] => TagAction::Invalid,
    }
}

fn count_answers(response: &str) -> usize {
    let (open, close) = TAGS[1];
    let (mut rest, mut count) = (response, 0);
    while let Some((_, inside)) = rest.split_once(open) {
        let Some((_, behind)) = inside.split_once(close) else { break };
        (rest, count) = (behind, count + 1);
    }
    count
}

/// What a search is answered with: the documents between `<information>` and `</information>`, of each at most `max_chars`
/// characters of text.
///
/// Source: Search-R1, its program `search_r1/llm_agent/generation.py`.
pub fn information<'a>(
    documents: impl IntoIterator<Item = &'a Document>,
    max_chars: usize,
) -> String {
    let listed = listing(documents, max_chars);
    format!("\n\n<information>{}</information>\n\n", strip(&listed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::TagAction::{Answer, Invalid, Search};
    use super::*;

    #[test]
    fn the_first_whole_tag_counts_of_what_the_cut_leaves() {
        for (response, expected) in [
            ("<think>so</think>\n<search> a\nb </search>", Search("a\nb")),
            ("<answer>x</answer>", Answer("x")),
            ("<answer>x</answer> <search>y</search>", Answer("x")),
            ("<search>y</search> <answer>x</answer>", Search("y")),
            ("<search>never closed <answer>x</answer>", Answer("x")),
            ("<answer>x <search>y</search> </answer>", Search("y")),
            ("<search><answer>x</answer></search>", Search("<answer>x</answer>")),
            ("<search></search>", Search("")),
            ("</search><search>late</search>", Invalid),
            ("<Search>a</Search> <answer >b</answer>", Invalid),
            ("", Invalid),
            ("I do not know", Invalid),
        ] {
            assert_eq!(read(response).0, expected, "{response}");
        }
        let (action, answers) = read("<answer>a</answer> or <answer>b</answer>");
        assert_eq!((action, answers), (Answer("a"), 2));
        assert_eq!(read("<answer>a <answer>b</answer></answer>").1, 1);
    }

    #[test]
    fn hostile_responses_are_read_in_linear_time() {
        let began = std::time::Instant::now();
        for part in ["<search>", "<answer>", "</answer>", "<", "<answer></search>"] {
            read(&part.repeat(1 << 17));
        }
        assert!(began.elapsed().as_secs_f64() < 1.5);
    }

    #[test]
    fn results_and_questions_are_put_as_search_r1_does() {
        let documents = [
            Document::from_contents("0", "\"A B\"\nIt is.\nSo."),
            Document::from_contents("1", "C\nd "),
        ];
        assert_eq!(
            information(&documents, 1000),
            "\n\n<information>Doc 1(Title: \"A B\") It is.\nSo.\nDoc 2(Title: C) d</information>\n\n"
        );
        assert_eq!(information([], 1000), "\n\n<information></information>\n\n");
        assert_eq!((question(" who "), question("Who?")), ("who?".to_owned(), "Who?".to_owned()));
        assert!(PROMPT.ends_with("<answer> Beijing </answer>.") && !PROMPT.contains("  "));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        /// The program's own expression, without its back reference.
        #[test]
        fn tags_are_read_as_the_expression_finds_them(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("<search>"), Just("</search>"), Just("<answer>"), Just("</answer>"), Just(" a "), Just("\n"), Just("<"),
                ],
                0..10,
            )
        ) {
            let response = parts.concat();
            let cut = match (response.split_once("</search>"), response.split_once("</answer>")) {
                (Some((before, _)), _) => format!("{before}</search>"),
                (None, Some((before, _))) => format!("{before}</answer>"),
                (None, None) => response.clone(),
            };
            let whole = Regex::new(r"(?s)<search>(.*?)</search>|<answer>(.*?)</answer>").unwrap();
            let expected = match whole.captures(&cut) {
                None => Invalid,
                Some(found) => match found.get(1) {
                    Some(query) => Search(query.as_str().trim()),
                    None => Answer(found.get(2).unwrap().as_str().trim()),
                },
            };
            prop_assert_eq!(read(&response).0, expected);
        }
    }
}
