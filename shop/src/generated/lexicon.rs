//! The pieces of generated texts, each with its words for the index.

use std::collections::HashMap;

use super::words::{BRANDS, DESCRIPTIONS, KINDS, POINTS, REVIEW_BODIES, REVIEW_TITLES, department};
use crate::index::Vocabulary;

/// A piece of text that is used again and again.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) lower: Box<str>,
    /// With every word's first letter in capitals.
    pub(super) title: Box<str>,
    /// With the first letter in capitals.
    pub(super) sentence: Box<str>,
    /// Its words in the index.
    pub(super) words: Box<[u32]>,
}

/// A place in the list of pieces.
pub(super) type PieceId = u16;

/// A part of a sentence with places for what is a product's own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Fixed(PieceId),
    Head,
    Brand,
    Use,
    Material,
    Attribute(usize),
}

/// A kind of product, its words as pieces.
#[derive(Debug)]
pub(super) struct KindPieces {
    pub(super) heads: Vec<PieceId>,
    pub(super) uses: Vec<PieceId>,
    pub(super) materials: Vec<PieceId>,
    /// What it can be: the department's, then its own.
    pub(super) attributes: Vec<PieceId>,
    /// Options: the name and the values.
    pub(super) options: Vec<(PieceId, Vec<PieceId>)>,
}

/// All pieces, sentences and kinds.
#[derive(Debug)]
pub(super) struct Lexicon {
    pub(super) pieces: Vec<Piece>,
    pub(super) kinds: Vec<KindPieces>,
    pub(super) brands: Vec<PieceId>,
    pub(super) descriptions: Vec<Vec<Part>>,
    pub(super) points: Vec<Vec<Part>>,
    pub(super) review_titles: Vec<PieceId>,
    pub(super) review_bodies: Vec<Vec<Part>>,
}

#[derive(Default)]
struct Builder {
    pieces: Vec<Piece>,
    known: HashMap<Box<str>, PieceId>,
}

impl Builder {
    fn piece(&mut self, vocabulary: &mut Vocabulary, text: &str) -> PieceId {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let mut words = Vec::new();
        vocabulary.add(text, &mut words);
        let number = self.pieces.len() as PieceId;
        self.pieces.push(Piece {
            lower: text.into(),
            title: titled(text).into(),
            sentence: capital(text).into(),
            words: words.into(),
        });
        self.known.insert(text.into(), number);
        number
    }

    fn sentence(&mut self, vocabulary: &mut Vocabulary, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (fixed, place) = match rest.find('{') {
                Some(0) => {
                    let end = rest.find('}').expect("sentences close their brackets");
                    parts.push(match &rest[1..end] {
                        "head" => Part::Head,
                        "brand" => Part::Brand,
                        "use" => Part::Use,
                        "material" => Part::Material,
                        number => Part::Attribute(number.parse().expect("attributes have numbers")),
                    });
                    ("", end + 1)
                }
                Some(open) => (&rest[..open], open),
                None => (rest, rest.len()),
            };
            if !fixed.is_empty() {
                parts.push(Part::Fixed(self.piece(vocabulary, fixed)));
            }
            rest = &rest[place..];
        }
        parts
    }
}

impl Lexicon {
    /// All pieces, their words numbered in `vocabulary`.
    pub(super) fn new(vocabulary: &mut Vocabulary) -> Self {
        let mut builder = Builder::default();
        let mut all = |builder: &mut Builder, texts: &[&str]| -> Vec<PieceId> {
            texts.iter().map(|text| builder.piece(vocabulary, text)).collect()
        };
        let kinds = KINDS
            .iter()
            .map(|kind| {
                let mut attributes = all(&mut builder, department(kind.category));
                attributes.extend(all(&mut builder, kind.attributes));
                KindPieces {
                    heads: all(&mut builder, kind.heads),
                    uses: all(&mut builder, kind.uses),
                    materials: all(&mut builder, kind.materials),
                    attributes,
                    options: kind
                        .options
                        .iter()
                        .map(|choice| {
                            let name = all(&mut builder, &[choice.name()])[0];
                            (name, all(&mut builder, choice.values()))
                        })
                        .collect(),
                }
            })
            .collect();
        let [first, second, third] = BRANDS;
        let brands: Vec<String> = first
            .iter()
            .flat_map(|a| second.iter().map(move |b| format!("{a}{b}")))
            .flat_map(|start| third.iter().map(move |end| format!("{start}{end}")))
            .collect();
        let brands: Vec<&str> = brands.iter().map(String::as_str).collect();
        let brands = all(&mut builder, &brands);
        let review_titles = all(&mut builder, REVIEW_TITLES);
        let mut sentences = |builder: &mut Builder, texts: &[&str]| -> Vec<Vec<Part>> {
            texts.iter().map(|text| builder.sentence(vocabulary, text)).collect()
        };
        let descriptions = sentences(&mut builder, DESCRIPTIONS);
        let points = sentences(&mut builder, POINTS);
        let review_bodies = sentences(&mut builder, REVIEW_BODIES);
        let pieces = builder.pieces;
        Self { pieces, kinds, brands, descriptions, points, review_titles, review_bodies }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn titled(text: &str) -> String {
    text.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}
