//! A vocabulary found in texts.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bytes::{character, to_characters};
use super::pieces::{Kind, last_kind, pieces};

/// A piece is a template word when it occurs in so many of the games.
const TEMPLATE_SHARE: f64 = 0.9;
/// Games below which no word is called a template word.
const LEAST_GAMES: usize = 10;
/// Pieces a phrase may have.
const LONGEST_PHRASE: usize = 32;
/// Of the tokens that are left for words, the share that parts of words get at least.
const PARTS_SHARE: f64 = 0.125;
/// Different words, most frequent first, from which parts of words are learned.
const WORDS_FOR_PARTS: usize = 5_000;

/// What a tokenizer's vocabulary holds besides marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vocabulary {
    /// Tokens in the order of their ids, a character per byte.
    pub(super) tokens: Vec<String>,
    /// Pairs of tokens that are joined, in order of precedence.
    pub(super) merges: Vec<(String, String)>,
    /// The phrases among the tokens as text, longest first.
    pub(super) phrases: Vec<String>,
}

/// Finds a vocabulary of at most `size` tokens: bytes, phrases, frequent words, parts of words.
///
/// Every text starts with a space. Equal inputs give equal vocabularies: all ties are broken by
/// the order of strings.
pub(super) fn vocabulary(games: &[Vec<String>], size: usize, max_phrases: usize) -> Vocabulary {
    let mut tokens: Vec<String> = (0..=255).map(|byte| character(byte).to_string()).collect();
    let room = size.saturating_sub(tokens.len());

    let counts = count_pieces(games);
    let mut phrases = find_phrases(games, &counts, max_phrases.min(room));
    phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    tokens.extend(phrases.iter().map(|phrase| to_characters(phrase)));

    let mut words: Vec<(&str, usize)> = counts.iter().map(|(w, count)| (*w, count.all)).collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let room = size.saturating_sub(tokens.len());
    let for_words = room - (room as f64 * PARTS_SHARE) as usize;
    let frequent = words.iter().filter(|(word, count)| word.len() > 1 && *count > 1);
    tokens.extend(frequent.take(for_words).map(|(word, _)| to_characters(word)));

    words.truncate(WORDS_FOR_PARTS);
    let merges = find_merges(&words, &mut tokens, size);
    Vocabulary { tokens, merges, phrases }
}

/// How often a piece occurs.
#[derive(Debug, Default)]
struct PieceCount {
    all: usize,
    games: usize,
    /// One more than the game that was counted last.
    last_game: usize,
}

fn count_pieces(games: &[Vec<String>]) -> HashMap<&str, PieceCount> {
    let mut counts: HashMap<&str, PieceCount> = HashMap::new();
    for (game, texts) in games.iter().enumerate() {
        for piece in texts.iter().flat_map(|text| pieces(text)) {
            let count = counts.entry(piece).or_default();
            count.all += 1;
            if count.last_game != game + 1 {
                count.last_game = game + 1;
                count.games += 1;
            }
        }
    }
    counts
}

/// Sequences of template words that save most tokens, one after the other.
fn find_phrases(
    games: &[Vec<String>],
    counts: &HashMap<&str, PieceCount>,
    max_phrases: usize,
) -> Vec<String> {
    if games.len() < LEAST_GAMES {
        return Vec::new();
    }
    let least_games = (games.len() as f64 * TEMPLATE_SHARE).ceil() as usize;
    let is_template = |piece: &str| {
        counts.get(piece).is_some_and(|count| count.games >= least_games)
            && !piece.chars().any(char::is_numeric)
    };

    // Stretches of template words with their counts; a token stands for each piece.
    let mut runs: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    let mut run = Vec::new();
    for text in games.iter().flatten() {
        for piece in pieces(text).chain([""]) {
            if is_template(piece) {
                run.push(piece);
            } else if run.len() > 1 {
                *runs.entry(std::mem::take(&mut run)).or_default() += 1;
            } else {
                run.clear();
            }
        }
    }

    let mut runs: Vec<(Vec<&str>, usize)> = runs.into_iter().collect();
    let mut phrases = Vec::new();
    while phrases.len() < max_phrases {
        let mut occurrences: HashMap<&[&str], usize> = HashMap::new();
        for (run, count) in &runs {
            for start in 0..run.len() {
                for end in start + 2..=run.len().min(start + LONGEST_PHRASE) {
                    *occurrences.entry(&run[start..end]).or_default() += count;
                }
            }
        }
        let best = occurrences
            .into_iter()
            .filter(|(words, count)| {
                *count * 2 >= games.len()
                    && words.last().is_some_and(|word| last_kind(word) != Kind::Space)
            })
            .max_by_key(|(words, count)| (count * (words.len() - 1), words.len(), *words));
        let Some((best, _)) = best else { break };
        let best = best.to_vec();
        phrases.push(best.concat());
        // What remains of the stretches is what stands before and behind the phrase.
        let mut rest: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for (run, count) in runs {
            let mut start = 0;
            let mut at = 0;
            while at <= run.len() {
                let is_end = at == run.len();
                let is_phrase = run[at..].starts_with(&best);
                if is_end || is_phrase {
                    if at - start > 1 {
                        *rest.entry(run[start..at].to_vec()).or_default() += count;
                    }
                    start = at + best.len();
                    at = start;
                    if is_end {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
        }
        runs = rest.into_iter().collect();
    }
    phrases
}

/// Byte-pair merges over the different words, each counted once so that parts that many words
/// share come first; new tokens are appended until there are `size`.
///
/// Counted anew for every merge: unlike the trainer of the `tokenizers` crate, whose queue depends
/// on hash order, the result is a function of the words alone.
fn find_merges(
    words: &[(&str, usize)],
    tokens: &mut Vec<String>,
    size: usize,
) -> Vec<(String, String)> {
    let mut known: HashSet<String> = tokens.iter().cloned().collect();
    let mut split: Vec<Vec<String>> = words
        .iter()
        .filter(|(word, _)| word.len() > 1)
        .map(|(word, _)| word.bytes().map(|byte| character(byte).to_string()).collect())
        .collect();
    let mut merges = Vec::new();
    while tokens.len() < size {
        let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
        for pair in split.iter().flat_map(|parts| parts.windows(2)) {
            *counts.entry((&pair[0], &pair[1])).or_default() += 1;
        }
        let best = counts
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let Some(((left, right), _)) = best else { break };
        let (left, right) = (left.to_owned(), right.to_owned());
        let joined = format!("{left}{right}");
        for parts in &mut split {
            let mut at = 0;
            while at + 1 < parts.len() {
                if parts[at] == left && parts[at + 1] == right {
                    parts[at].clone_from(&joined);
                    parts.remove(at + 1);
                }
                at += 1;
            }
        }
        merges.push((left, right));
        if known.insert(joined.clone()) {
            tokens.push(joined);
        }
    }
    merges
}
