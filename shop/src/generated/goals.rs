//! Goals drawn from seeds.

use std::sync::OnceLock;

use rand::{Rng, RngExt};
use spar_core::Seed;

use super::draft::GeneratedProducts;
use crate::goal::{Goal, GoalOptions, NO_LIMIT, price_upper};

/// The goal of a seed: a product of a [part](crate::Part) of the catalogue, one to three of its attributes, a value of most of its options, a
/// limit of the price, in one of six ways of saying it.
pub(crate) fn draw_goal(products: &GeneratedProducts, seed: Seed, part: crate::Part) -> Goal {
    let mut rng = seed.rng();
    let number = part.draw(&mut rng, products.len());
    let product = products.product(number);
    let draft = products.draft(number);
    let mut attributes = product.attributes.clone();
    let count = rng.random_range(1..=3.min(attributes.len()));
    for place in 0..count {
        let other = rng.random_range(place..attributes.len());
        attributes.swap(place, other);
    }
    attributes.truncate(count);
    let mut options: Vec<(String, String)> = product
        .options
        .iter()
        .map(|(name, values)| (name.clone(), pick(&mut rng, values).clone()))
        .collect();
    if options.len() > 1 && rng.random_bool(0.3) {
        let left_out = rng.random_range(0..options.len());
        options.remove(left_out);
    }
    let upper = price_upper(product.price, |bound| rng.random_range(0..bound));
    let (head, use_case) = (products.words(draft.head), products.words(draft.use_case));
    let material = products.words(draft.material);
    let query = &product.query;
    let listed = attributes.join(", ");
    let joined = attributes.join(" and ");
    let mut text = match rng.random_range(0..6) {
        0 => format!("i am looking for {listed} {query}, a {head} for {use_case}"),
        1 => format!("please find me a {head} of {material} that is {joined}"),
        2 => format!("i need {query} for {use_case}. they should be {joined}"),
        3 => format!("find me {listed} {query} made of {material}"),
        4 => format!("my old {head} is worn out. get me another one for {use_case}, {listed}"),
        _ => format!("show me a {material} {head} that suits {use_case} and is {joined}"),
    };
    if !options.is_empty() {
        // Either with the names of the options, or by what they are alone.
        let is_named = rng.random_bool(0.5);
        let said: Vec<String> = options
            .iter()
            .map(|(name, value)| if is_named { format!("{name}: {value}") } else { value.clone() })
            .collect();
        text.push_str(if is_named { " with " } else { " in " });
        text.push_str(&said.join(", and "));
    }
    if let Some(upper) = upper {
        text.push_str(&format!(", and price lower than {upper:.2} dollars"));
    }
    Goal {
        product: number,
        query: product.query,
        name: product.title,
        product_category: product.product_category,
        instruction: text,
        attributes,
        price_upper: upper.unwrap_or(NO_LIMIT),
        options: GoalOptions::Named(options),
        way: OnceLock::new(),
    }
}

fn pick<'a, T>(rng: &mut impl Rng, items: &'a [T]) -> &'a T {
    &items[rng.random_range(0..items.len())]
}
