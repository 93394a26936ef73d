//! Products and goals from seeds.

mod draft;
mod goals;
mod lexicon;
mod words;

pub(crate) use draft::GeneratedProducts;
pub(crate) use goals::draw_goal;
