//! A vocabulary found in texts.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bytes::{character, to_characters};
use super::pieces::{Kind, Spaces, last_kind, pieces};
use super::{LONGEST_TOKEN, TokenizerConfig};

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
/// Where spaces are joined, every text starts with one. Equal inputs give equal vocabularies: all ties are broken by
/// the order of strings.
pub(super) fn vocabulary(
    games: &[Vec<String>],
    size: usize,
    config: &TokenizerConfig,
) -> Vocabulary {
    let (max_phrases, spaces) = (config.max_phrases, config.spaces);
    let mut tokens: Vec<String> = (0..=255).map(|byte| character(byte).to_string()).collect();
    let room = size.saturating_sub(tokens.len());

    let counts = count_pieces(games, spaces);
    let mut phrases = find_phrases(games, &counts, max_phrases.min(room), spaces);
    phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    tokens.extend(phrases.iter().map(|phrase| to_characters(phrase)));

    let is_short = |(word, _): &(&&str, &PieceCount)| word.len() <= LONGEST_TOKEN;
    let short = counts.iter().filter(is_short);
    let mut words: Vec<(&str, usize)> = short.map(|(w, count)| (*w, count.all)).collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let room = size.saturating_sub(tokens.len());
    let for_words = room - (room as f64 * PARTS_SHARE) as usize;
    let frequent = words.iter().filter(|(word, count)| word.len() > 1 && *count > 1);
    tokens.extend(frequent.take(for_words).map(|(word, _)| to_characters(word)));

    words.truncate(WORDS_FOR_PARTS);
    let merges = find_merges(&words, &mut tokens, size);
    Vocabulary { tokens, merges, phrases }
}

/// How often a piece occurs, and where.
#[derive(Debug, Default)]
struct PieceCount {
    all: usize,
    games: usize,
    /// One more than the game that was counted last.
    last_game: usize,
    /// A number has come right behind it, as behind the name of a thing.
    is_numbered: bool,
}

fn count_pieces(games: &[Vec<String>], spaces: Spaces) -> HashMap<&str, PieceCount> {
    let mut counts: HashMap<&str, PieceCount> = HashMap::new();
    for (game, texts) in games.iter().enumerate() {
        for text in texts {
            let mut pieces = pieces(text, spaces).peekable();
            while let Some(piece) = pieces.next() {
                let count = counts.entry(piece).or_default();
                count.all += 1;
                count.is_numbered |= pieces.peek().is_some_and(|next| is_number(next));
                if count.last_game != game + 1 {
                    count.last_game = game + 1;
                    count.games += 1;
                }
            }
        }
    }
    counts
}

fn is_number(piece: &str) -> bool {
    last_kind(piece) == Kind::Digit
}

/// Sequences of template words that save most tokens, one after the other; a phrase that was found
/// counts as one word in those that come after it.
fn find_phrases(
    games: &[Vec<String>],
    counts: &HashMap<&str, PieceCount>,
    max_phrases: usize,
    spaces: Spaces,
) -> Vec<String> {
    if games.len() < LEAST_GAMES {
        return Vec::new();
    }
    let least_games = (games.len() as f64 * TEMPLATE_SHARE).ceil() as usize;
    let mut names: Vec<String> = counts
        .iter()
        .filter(|(piece, count)| {
            // Punctuation may stand before a number without being a name.
            let is_name = count.is_numbered && last_kind(piece) == Kind::Letter;
            count.games >= least_games && !is_name && !is_number(piece)
        })
        .map(|(piece, _)| (*piece).to_owned())
        .collect();
    names.sort();
    let mut runs = template_runs(games, &names, spaces);
    let mut phrases = Vec::new();
    while phrases.len() < max_phrases {
        let mut occurrences: HashMap<&[usize], usize> = HashMap::new();
        for (run, count) in &runs {
            for start in 0..run.len() {
                for end in start + 2..=run.len().min(start + LONGEST_PHRASE) {
                    *occurrences.entry(&run[start..end]).or_default() += count;
                }
            }
        }
        let text = |words: &[usize]| words.iter().map(|word| &*names[*word]).collect::<String>();
        let best = occurrences
            .into_iter()
            .filter(|(words, count)| {
                let last = words.last().map_or(Kind::Space, |word| last_kind(&names[*word]));
                let length: usize = words.iter().map(|word| names[*word].len()).sum();
                *count * 2 >= games.len() && last != Kind::Space && length <= LONGEST_TOKEN
            })
            .max_by(|(a, a_count), (b, b_count)| {
                let rank = |words: &[usize], count| (count * (words.len() - 1), words.len());
                let order = rank(a, *a_count).cmp(&rank(b, *b_count));
                order.then_with(|| text(a).cmp(&text(b))).then_with(|| a.cmp(b))
            });
        let Some((best, _)) = best else { break };
        let (best, text) = (best.to_vec(), text(best));
        let phrase = names.len();
        names.push(text.clone());
        // The same words may have been put together in another order.
        if !phrases.contains(&text) {
            phrases.push(text);
        }
        runs.iter_mut().for_each(|(run, _)| replace(run, &best, phrase));
    }
    phrases
}

/// Stretches of words out of `names`, which is sorted, by their places in it, with their counts.
fn template_runs(
    games: &[Vec<String>],
    names: &[String],
    spaces: Spaces,
) -> Vec<(Vec<usize>, usize)> {
    let mut runs: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let mut run = Vec::new();
    for text in games.iter().flatten() {
        for piece in pieces(text, spaces).chain([""]) {
            if let Ok(name) = names.binary_search_by(|name| name.as_str().cmp(piece)) {
                run.push(name);
            } else if run.len() > 1 {
                *runs.entry(std::mem::take(&mut run)).or_default() += 1;
            } else {
                run.clear();
            }
        }
    }
    runs.into_iter().collect()
}

/// Puts `phrase` in the place of `words` wherever they stand in `run`.
fn replace(run: &mut Vec<usize>, words: &[usize], phrase: usize) {
    let mut at = 0;
    while at < run.len() {
        if run[at..].starts_with(words) {
            run.splice(at..at + words.len(), [phrase]);
        }
        at += 1;
    }
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
