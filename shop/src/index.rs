//! Which products words find: BM25 over an inverted index in memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// BM25's `k1` and `b`, as pyserini has them, which WebShop searches with.
const K1: f64 = 0.9;
const B: f64 = 0.4;
/// Steps into which the weight of a word in a document is rounded; whole numbers add up the same in every order.
const STEPS: f64 = 65_535.0;
/// Characters and words of a query that count.
const MOST_CHARS: usize = 4_096;
const MOST_WORDS: usize = 64;

/// Words that find nothing, as in Lucene's analyser of English.
const STOPS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// The words of a text that count, one by one: runs of letters and digits in lower case, without the ending of a plural.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut buffer = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        if run.is_empty() {
            continue;
        }
        buffer.clear();
        buffer.extend(run.chars().flat_map(char::to_lowercase));
        if STOPS.binary_search(&buffer.as_str()).is_err() {
            take(stem(&buffer));
        }
    }
}

/// A word without the ending of a plural.
fn stem(word: &str) -> &str {
    let is_plural =
        word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us");
    if is_plural { &word[..word.len() - 1] } else { word }
}

/// Numbers of words, in the order in which they were met.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    numbers: HashMap<Box<str>, u32>,
}

impl Vocabulary {
    /// The numbers of the words of a text, which get one where they have none.
    pub(crate) fn add(&mut self, text: &str, into: &mut Vec<u32>) {
        each_word(text, |word| {
            let next = self.numbers.len() as u32;
            let number = match self.numbers.get(word) {
                Some(number) => *number,
                None => *self.numbers.entry(word.into()).or_insert(next),
            };
            into.push(number);
        });
    }
}

/// Documents with their words, from which an index is made.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    /// Word, document and how often, document after document.
    entries: Vec<(u32, u32, u32)>,
    lengths: Vec<u32>,
}

impl IndexBuilder {
    /// Room for `documents` of about so many words.
    pub(crate) fn with_capacity(documents: usize, words: usize) -> Self {
        Self {
            entries: Vec::with_capacity(documents * words),
            lengths: Vec::with_capacity(documents),
        }
    }

    /// Adds the next document; its words are sorted in place.
    pub(crate) fn add(&mut self, words: &mut [u32]) {
        let document = self.lengths.len() as u32;
        self.lengths.push(words.len() as u32);
        words.sort_unstable();
        for same in words.chunk_by(|a, b| a == b) {
            self.entries.push((same[0], document, same.len() as u32));
        }
    }

    pub(crate) fn build(self, vocabulary: Vocabulary) -> SearchIndex {
        let num_words = vocabulary.numbers.len();
        let num_documents = self.lengths.len();
        let mut starts = vec![0_u32; num_words + 1];
        for (word, ..) in &self.entries {
            starts[*word as usize + 1] += 1;
        }
        let counts: Vec<u32> = starts[1..].to_vec();
        for word in 0..num_words {
            starts[word + 1] += starts[word];
        }
        let mean = self.lengths.iter().map(|&length| f64::from(length)).sum::<f64>()
            / num_documents.max(1) as f64;
        let idf = |count: u32| {
            let count = f64::from(count);
            (1.0 + (num_documents as f64 - count + 0.5) / (count + 0.5)).ln()
        };
        // What a word weighs at most, over all words: the scale of the rounding.
        let most = counts.iter().map(|&count| idf(count)).fold(1e-9, f64::max);
        let idfs: Vec<f64> = counts.iter().map(|&count| idf(count) / most).collect();
        let norms: Vec<f64> = self
            .lengths
            .iter()
            .map(|&length| K1 * (1.0 - B + B * f64::from(length) / mean))
            .collect();
        let mut documents = vec![0_u32; self.entries.len()];
        let mut weights = vec![0_u16; self.entries.len()];
        let mut bounds = vec![0_u16; num_words];
        let mut next = starts.clone();
        for (word, document, count) in self.entries {
            let (word, count) = (word as usize, f64::from(count));
            // Without the factor `k1 + 1`, which scales all alike, as Lucene has it.
            let weight = idfs[word] * count / (count + norms[document as usize]);
            let weight = (weight * STEPS).round().max(1.0) as u16;
            let place = next[word] as usize;
            next[word] += 1;
            documents[place] = document;
            weights[place] = weight;
            bounds[word] = bounds[word].max(weight);
        }
        SearchIndex { numbers: vocabulary.numbers, starts, documents, weights, bounds }
    }
}

/// Documents by their words.
///
/// A document's score is `Σ idf(w) · tf / (tf + k1 · (1 - b + b · |d| / mean))` over the words of the query, doubles counted as often
/// as they stand there, with `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`, `k1` = 0.9 and `b` = 0.4, each part rounded to whole steps.
/// Equal scores go by the order of the documents. Documents that cannot be among the best are skipped (MaxScore, Turtle
/// and Flood, 1995), which changes nothing in what is found.
#[derive(Debug)]
pub(crate) struct SearchIndex {
    numbers: HashMap<Box<str>, u32>,
    starts: Vec<u32>,
    documents: Vec<u32>,
    weights: Vec<u16>,
    bounds: Vec<u16>,
}

/// A word of the query with what is left of its documents.
struct Cursor<'i> {
    documents: &'i [u32],
    weights: &'i [u16],
    times: u32,
    bound: u32,
}

impl Cursor<'_> {
    fn document(&self) -> u32 {
        self.documents.first().copied().unwrap_or(u32::MAX)
    }

    fn weight(&self) -> u32 {
        self.times * u32::from(self.weights[0])
    }

    fn skip(&mut self, count: usize) {
        self.documents = &self.documents[count..];
        self.weights = &self.weights[count..];
    }

    /// Goes on to the first document that is not before `document`.
    fn seek(&mut self, document: u32) {
        if self.document() >= document {
            return;
        }
        let mut step = 1;
        while step < self.documents.len() && self.documents[step] < document {
            step *= 2;
        }
        let (from, to) = (step / 2, self.documents.len().min(step + 1));
        let found = from + self.documents[from..to].partition_point(|it| *it < document);
        self.skip(found);
    }
}

impl SearchIndex {
    fn cursors(&self, query: &str) -> Vec<Cursor<'_>> {
        let end = query.char_indices().nth(MOST_CHARS).map_or(query.len(), |(place, _)| place);
        let mut words: Vec<(u32, u32)> = Vec::new();
        each_word(&query[..end], |word| {
            let Some(&number) = self.numbers.get(word) else { return };
            match words.iter().position(|(known, _)| *known == number) {
                Some(place) => words[place].1 += 1,
                None if words.len() < MOST_WORDS => words.push((number, 1)),
                None => {}
            }
        });
        let cursor = |(number, times): (u32, u32)| {
            let number = number as usize;
            let range = self.starts[number] as usize..self.starts[number + 1] as usize;
            Cursor {
                documents: &self.documents[range.clone()],
                weights: &self.weights[range],
                times,
                bound: times * u32::from(self.bounds[number]),
            }
        };
        words.into_iter().map(cursor).collect()
    }

    /// The best `most` documents for a query, the best first.
    pub(crate) fn search(&self, query: &str, most: usize) -> Vec<u32> {
        let mut cursors = self.cursors(query);
        cursors.sort_by_key(|cursor| cursor.bound);
        // What words up to each can add at most.
        let mut sums = Vec::with_capacity(cursors.len());
        cursors.iter().fold(0, |sum, cursor| {
            sums.push(sum + cursor.bound);
            sum + cursor.bound
        });
        let mut best: BinaryHeap<Reverse<(u32, Reverse<u32>)>> =
            BinaryHeap::with_capacity(most + 1);
        let mut threshold = 0;
        // Documents with none but the words before this one are not among the best.
        let mut needed = 0;
        while needed < cursors.len() {
            let (few, many) = cursors.split_at_mut(needed);
            let document = many.iter().map(Cursor::document).min().unwrap_or(u32::MAX);
            if document == u32::MAX {
                break;
            }
            let mut score = 0;
            for cursor in many {
                if cursor.document() == document {
                    score += cursor.weight();
                    cursor.skip(1);
                }
            }
            for place in (0..few.len()).rev() {
                if score + sums[place] <= threshold {
                    break;
                }
                few[place].seek(document);
                if few[place].document() == document {
                    score += few[place].weight();
                }
            }
            // Documents come in their order, so that of equal ones the first stays.
            if score > threshold {
                best.push(Reverse((score, Reverse(document))));
                if best.len() > most {
                    best.pop();
                }
                if best.len() == most {
                    threshold = best.peek().map_or(0, |Reverse((score, _))| *score);
                    while needed < sums.len() && sums[needed] <= threshold {
                        needed += 1;
                    }
                }
            }
        }
        let mut found: Vec<_> = best.into_iter().map(|Reverse(entry)| entry).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, Reverse(document))| document).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(documents: &[String]) -> SearchIndex {
        let (mut vocabulary, mut builder) = (Vocabulary::default(), IndexBuilder::default());
        for document in documents {
            let mut words = Vec::new();
            vocabulary.add(document, &mut words);
            builder.add(&mut words);
        }
        builder.build(vocabulary)
    }

    /// The same without skipping anything.
    fn plain(index: &SearchIndex, query: &str, num_documents: usize, most: usize) -> Vec<u32> {
        let mut scores = vec![0_u32; num_documents];
        for cursor in index.cursors(query) {
            for (document, weight) in cursor.documents.iter().zip(cursor.weights) {
                scores[*document as usize] += cursor.times * u32::from(*weight);
            }
        }
        let mut found: Vec<u32> =
            (0..num_documents as u32).filter(|document| scores[*document as usize] > 0).collect();
        found.sort_by_key(|document| (Reverse(scores[*document as usize]), *document));
        found.truncate(most);
        found
    }

    proptest! {
        #[test]
        fn skipping_changes_nothing(
            documents in proptest::collection::vec("[a-f ]{0,24}", 1..60),
            query in "[a-g ]{0,16}",
            most in 1..12_usize,
        ) {
            let index = index(&documents);
            prop_assert_eq!(index.search(&query, most), plain(&index, &query, documents.len(), most));
        }
    }

    #[test]
    fn rare_words_weigh_more_and_plurals_are_their_singular() {
        let documents = ["red shoes", "red shirt", "red lamp with the glass", "blue glass shoe"];
        let index = index(&documents.map(str::to_owned));
        assert_eq!(index.search("Red SHOE", 4), [0, 3, 1, 2]);
        assert_eq!(index.search("lamps", 4), [2]);
        assert!(index.search("the with", 4).is_empty(), "they are no words");
        assert!(index.search("", 4).is_empty() && index.search("nothing", 4).is_empty());
        let giant = "red ".repeat(3_000_000);
        assert_eq!(index.search(&giant, 2).len(), 2);
    }

    #[test]
    fn stops_are_sorted() {
        assert!(STOPS.is_sorted());
    }
}
