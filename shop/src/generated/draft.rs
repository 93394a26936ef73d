//! A product drawn from its number.

use std::fmt::Write as _;

use super::lexicon::{KindPieces, Lexicon, Part, Piece, PieceId};
use super::words::{Choice, KINDS, Kind};
use crate::index::{IndexBuilder, SearchIndex, Vocabulary};
use crate::product::{Product, Review, price_tag};

/// Attributes of a product, at most.
const MOST_ATTRIBUTES: usize = 6;
/// Options of a product, at most.
const MOST_OPTIONS: usize = 3;

/// A small generator (SplitMix64, Steele et al., 2014): products are drawn anew whenever they are looked at.
#[derive(Debug, Clone)]
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Where a text goes, piece by piece.
pub(super) trait Sink {
    fn piece(&mut self, piece: &Piece, case: Case);
    /// Marks between pieces, without letters and digits.
    fn mark(&mut self, mark: &str);
    /// A word that is no piece.
    fn word(&mut self, word: &str);
}

/// How a piece is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Title,
    Sentence,
}

impl Sink for String {
    fn piece(&mut self, piece: &Piece, case: Case) {
        self.push_str(match case {
            Case::Lower => &piece.lower,
            Case::Title => &piece.title,
            Case::Sentence => &piece.sentence,
        });
    }

    fn mark(&mut self, mark: &str) {
        self.push_str(mark);
    }

    fn word(&mut self, word: &str) {
        self.push_str(word);
    }
}

/// The words of a document, for the index.
struct Words<'v> {
    vocabulary: &'v mut Vocabulary,
    words: Vec<u32>,
}

impl Sink for Words<'_> {
    fn piece(&mut self, piece: &Piece, _: Case) {
        self.words.extend_from_slice(&piece.words);
    }

    fn mark(&mut self, _: &str) {}

    fn word(&mut self, word: &str) {
        self.vocabulary.add(word, &mut self.words);
    }
}

/// What was drawn for a product.
pub(super) struct Draft {
    draws: Draws,
    pub(super) kind: usize,
    pub(super) brand: PieceId,
    pub(super) head: PieceId,
    pub(super) use_case: PieceId,
    pub(super) material: PieceId,
    attributes: [PieceId; MOST_ATTRIBUTES],
    num_attributes: usize,
    /// Which values of each option there are, by their places.
    options: [u64; MOST_OPTIONS],
    description: usize,
    points: [usize; MOST_ATTRIBUTES],
    code: [u8; 6],
}

impl Draft {
    pub(super) fn attributes(&self) -> &[PieceId] {
        &self.attributes[..self.num_attributes]
    }
}

/// Products that are drawn from a seed and their number.
#[derive(Debug)]
pub(crate) struct GeneratedProducts {
    seed: u64,
    count: usize,
    pub(super) lexicon: Lexicon,
}

impl GeneratedProducts {
    /// `count` products of a seed, with the index of their texts.
    pub(crate) fn new(seed: u64, count: usize) -> (Self, SearchIndex) {
        let mut vocabulary = Vocabulary::default();
        let lexicon = Lexicon::new(&mut vocabulary);
        let products = Self { seed, count, lexicon };
        let mut index = IndexBuilder::with_capacity(count, 64);
        let mut sink = Words { vocabulary: &mut vocabulary, words: Vec::new() };
        for number in 0..count {
            sink.words.clear();
            products.write_document(&products.draft(number), &mut sink);
            index.add(&mut sink.words);
        }
        (products, index.build(vocabulary))
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn draft(&self, number: usize) -> Draft {
        let mut draws = Draws(self.seed ^ (number as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
        draws.next();
        let lexicon = &self.lexicon;
        let kind = draws.below(lexicon.kinds.len());
        let pieces = &lexicon.kinds[kind];
        let num_attributes = 4 + draws.below(MOST_ATTRIBUTES - 3);
        let mut attributes = [0; MOST_ATTRIBUTES];
        let mut taken = 0_u64;
        for attribute in &mut attributes[..num_attributes] {
            loop {
                let place = draws.below(pieces.attributes.len());
                if taken & (1 << place) == 0 {
                    taken |= 1 << place;
                    *attribute = pieces.attributes[place];
                    break;
                }
            }
        }
        let mut options = [0; MOST_OPTIONS];
        for (mask, choice) in options.iter_mut().zip(KINDS[kind].options) {
            *mask = values(&mut draws, *choice);
        }
        Draft {
            kind,
            brand: draws.of(&lexicon.brands),
            head: draws.of(&pieces.heads),
            use_case: draws.of(&pieces.uses),
            material: draws.of(&pieces.materials),
            attributes,
            num_attributes,
            options,
            description: draws.below(lexicon.descriptions.len()),
            points: [(); MOST_ATTRIBUTES].map(|()| draws.below(lexicon.points.len())),
            code: self.code(number),
            draws,
        }
    }

    /// Two letters and four digits that no other product of the catalogue has, up to 6,760,000 of them.
    fn code(&self, number: usize) -> [u8; 6] {
        const ALL: u64 = 26 * 26 * 10_000;
        // A factor without a divisor in common: every number has a code of its own.
        let mut rest = (number as u64 * 4_155_997 + self.seed % ALL) % ALL;
        let mut code = [0; 6];
        for place in (2..6).rev() {
            code[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        code[1] = b'A' + (rest % 26) as u8;
        code[0] = b'A' + (rest / 26) as u8;
        code
    }

    /// The number that the pages show: `B` and nine letters or digits, another for every product.
    pub(crate) fn asin(&self, number: usize) -> String {
        const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const ALL: u64 = 36_u64.pow(8);
        let mut rest =
            ((number as u128 * 1_640_531_527_111 + u128::from(self.seed)) % u128::from(ALL)) as u64;
        let mut digits = [b'0'; 10];
        digits[0] = b'B';
        for place in (2..10).rev() {
            digits[place] = DIGITS[(rest % 36) as usize];
            rest /= 36;
        }
        digits.iter().map(|digit| char::from(*digit)).collect()
    }

    /// Writes a product's title.
    pub(crate) fn write_title(&self, number: usize, out: &mut String) {
        self.title(&self.draft(number), out);
    }

    /// Writes a product's price as it is shown.
    pub(crate) fn price_tag(&self, number: usize) -> String {
        let draft = self.draft(number);
        price_tag(&pricing(&mut draft.draws.clone(), &KINDS[draft.kind]))
    }

    fn piece(&self, number: PieceId) -> &Piece {
        &self.lexicon.pieces[number as usize]
    }

    fn title(&self, draft: &Draft, out: &mut impl Sink) {
        let attributes = draft.attributes();
        for (piece, behind) in
            [(draft.brand, " "), (attributes[0], " "), (draft.material, " "), (draft.head, " for ")]
        {
            out.piece(self.piece(piece), Case::Title);
            out.mark(behind);
        }
        out.piece(self.piece(draft.use_case), Case::Title);
        out.mark(", ");
        out.piece(self.piece(attributes[1]), Case::Title);
        out.mark(", ");
        out.word(std::str::from_utf8(&draft.code).expect("codes are ASCII"));
    }

    fn sentence(&self, draft: &Draft, parts: &[Part], first: usize, out: &mut impl Sink) {
        let attributes = draft.attributes();
        for (place, part) in parts.iter().enumerate() {
            let case = if place == 0 { Case::Sentence } else { Case::Lower };
            let (piece, case) = match *part {
                // What is fixed is written as it stands.
                Part::Fixed(piece) => (piece, Case::Lower),
                Part::Brand => (draft.brand, Case::Title),
                Part::Head => (draft.head, case),
                Part::Use => (draft.use_case, case),
                Part::Material => (draft.material, case),
                Part::Attribute(number) => (attributes[(first + number) % attributes.len()], case),
            };
            out.piece(self.piece(piece), case);
        }
    }

    /// The first sentence of what is said begins with the third attribute of those that the title leaves out.
    fn description(&self, draft: &Draft, out: &mut impl Sink) {
        self.sentence(draft, &self.lexicon.descriptions[draft.description], 1, out);
    }

    fn point(&self, draft: &Draft, place: usize, out: &mut impl Sink) {
        self.sentence(draft, &self.lexicon.points[draft.points[place]], place, out);
    }

    /// What a search looks at: title, description, first point and options, as in WebShop.
    fn write_document(&self, draft: &Draft, out: &mut impl Sink) {
        self.title(draft, out);
        out.mark(" ");
        self.description(draft, out);
        out.mark(" ");
        self.point(draft, 0, out);
        for (place, (name, values)) in self.options(draft).enumerate() {
            out.mark(if place == 0 { " " } else { ", " });
            out.piece(self.piece(name), Case::Lower);
            out.mark(": ");
            for (place, value) in values.enumerate() {
                if place > 0 {
                    out.mark(", ");
                }
                out.piece(self.piece(value), Case::Lower);
            }
        }
    }

    /// The options of a product: names and values.
    pub(super) fn options<'a>(
        &'a self,
        draft: &'a Draft,
    ) -> impl Iterator<Item = (PieceId, impl Iterator<Item = PieceId> + 'a)> + 'a {
        let pieces: &KindPieces = &self.lexicon.kinds[draft.kind];
        pieces.options.iter().zip(draft.options).map(|((name, values), mask)| {
            let is_there = move |place: &usize| mask & (1 << place) != 0;
            (*name, (0..values.len()).filter(is_there).map(|place| values[place]))
        })
    }

    /// A product with all that its pages show.
    pub(crate) fn product(&self, number: usize) -> Product {
        let draft = self.draft(number);
        let kind = &KINDS[draft.kind];
        let mut draws = draft.draws.clone();
        let prices = pricing(&mut draws, kind);
        let price = match prices[..] {
            [low, high] => cents(low + (high - low) * draws.share()),
            _ => prices[0],
        };
        let mut title = String::with_capacity(96);
        self.title(&draft, &mut title);
        let mut description = String::with_capacity(160);
        self.description(&draft, &mut description);
        let bullet_points = (0..draft.num_attributes).map(|place| {
            let mut point = String::with_capacity(80);
            self.point(&draft, place, &mut point);
            point
        });
        let lower = |piece: PieceId| String::from(&*self.piece(piece).lower);
        let options = self.options(&draft);
        let stars = 3.0 + 2.0 * draws.share();
        let reviews = (0..draws.below(5)).map(|_| {
            let title = self.piece(draws.of(&self.lexicon.review_titles)).lower.to_string();
            let place = draws.below(self.lexicon.review_bodies.len());
            let mut body = String::with_capacity(80);
            let first = draws.below(draft.num_attributes);
            self.sentence(&draft, &self.lexicon.review_bodies[place], first, &mut body);
            let score = (stars + 3.0 * draws.share() - 1.5).round().clamp(1.0, 5.0) as u8;
            Review { title, score, body }
        });
        let reviews = reviews.collect();
        let mut rating = String::new();
        // Writing into a string cannot fail.
        let _ = write!(rating, "{stars:.1}");
        Product {
            asin: self.asin(number),
            title,
            description,
            bullet_points: bullet_points.collect(),
            price_tag: price_tag(&prices),
            price,
            options: options
                .map(|(name, values)| (lower(name), values.map(lower).collect()))
                .collect(),
            attributes: draft.attributes().iter().map(|piece| lower(*piece)).collect(),
            category: kind.category.to_owned(),
            query: kind.query.to_owned(),
            product_category: kind.path.to_owned(),
            rating,
            reviews,
        }
    }

    /// What a piece says, in lower case.
    pub(super) fn words(&self, piece: PieceId) -> &str {
        &self.piece(piece).lower
    }
}

fn values(draws: &mut Draws, choice: Choice) -> u64 {
    let (least, most) = choice.counts();
    let all = choice.values().len();
    let count = (least as usize + draws.below((most - least + 1) as usize)).min(all);
    let mut mask = 0_u64;
    while (mask.count_ones() as usize) < count {
        mask |= 1 << draws.below(all);
    }
    mask
}

fn cents(price: f64) -> f64 {
    (price * 100.0).round() / 100.0
}

/// One price, or in a quarter of the cases the least and the greatest; cheap ones are more frequent.
fn pricing(draws: &mut Draws, kind: &Kind) -> Vec<f64> {
    let (low, high) = (f64::from(kind.prices.0), f64::from(kind.prices.1));
    let share = draws.share();
    let whole = (low + (high - low) * share * share).floor();
    let price = cents(whole + draws.of(&[0.99, 0.95, 0.49, 0.0]));
    match draws.below(4) {
        0 => vec![price, cents(price * (1.2 + 0.6 * draws.share()))],
        _ => vec![price],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_index_reads_what_the_pages_show() {
        let (products, index) = GeneratedProducts::new(7, 200);
        let mut vocabulary = Vocabulary::default();
        Lexicon::new(&mut vocabulary);
        for number in 0..200 {
            let mut text = String::new();
            products.write_document(&products.draft(number), &mut text);
            let product = products.product(number);
            let options: Vec<_> = product
                .options
                .iter()
                .map(|(name, values)| format!("{name}: {}", values.join(", ")))
                .collect();
            let shown = [
                &product.title,
                &product.description,
                &product.bullet_points[0],
                &options.join(", "),
            ];
            let shown: Vec<&str> = shown.into_iter().map(String::as_str).collect();
            assert_eq!(text, shown.join(" "));
            let mut sink = Words { vocabulary: &mut vocabulary, words: Vec::new() };
            products.write_document(&products.draft(number), &mut sink);
            let words = std::mem::take(&mut sink.words);
            let mut read = Vec::new();
            vocabulary.add(&text, &mut read);
            assert_eq!(words, read, "{text}");
            assert_eq!(index.search(&product.title, 1), [number as u32]);
        }
    }

    #[test]
    fn whoever_chooses_what_a_goal_names_has_it() {
        use crate::goal::GoalOptions;
        use crate::reward::num_options;

        for (name, value) in KINDS
            .iter()
            .flat_map(|kind| kind.options)
            .flat_map(|choice| choice.values().iter().map(|value| (choice.name(), *value)))
        {
            // Colours in other words, such as the red in `checkered`, would count as colours.
            let chosen = [(name.to_owned(), value.to_owned())];
            let named = GoalOptions::Named(chosen.to_vec());
            assert_eq!(num_options(&chosen, &named), 1, "{name}: {value}");
            assert_eq!(num_options(&chosen, &GoalOptions::Values(vec![value.to_owned()])), 1);
        }
    }

    #[test]
    fn products_differ_and_are_the_same_each_time() {
        let (products, _) = GeneratedProducts::new(1, 3_000);
        let mut asins = HashSet::new();
        let mut titles = HashSet::new();
        for number in 0..3_000 {
            let product = products.product(number);
            assert!(asins.insert(product.asin.clone()) && titles.insert(product.title.clone()));
            assert_eq!(product, products.product(number));
            assert_eq!(product.price_tag, products.price_tag(number));
            assert!(product.attributes.len() >= 4 && product.price > 2.0 && product.price < 990.0);
            for (name, values) in &product.options {
                assert!(values.len() >= 2, "{name}: {values:?}");
            }
            for text in product.bullet_points.iter().chain([&product.description, &product.title]) {
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
        let (others, _) = GeneratedProducts::new(2, 10);
        assert_ne!(others.product(3), products.product(3));
    }
}
