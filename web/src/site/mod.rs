//! Small sites to work on, and the judges of WebArena (arXiv 2307.13854).
//!
//! Three sites ship: a forum, the administration of a shop, and a map with routes. They are programs that answer the browser
//! out of memory, made from a seed and new in every episode; tasks on them are made from seeds, with players by rules. A folder
//! of pages is a site as well.

mod episode;
mod folder;
mod forum;
mod judge;
mod map;
mod pages;
mod problems;
mod shop;
mod sites;
mod webarena;

pub use episode::{SiteEpisode, SiteOptions, SiteShown};
pub use folder::Folder;
pub use judge::{contains_words, exact_match, fuzzy_match, must_include, url_match};
pub use pages::parameter;
pub use problems::{FAMILIES, Problem, next_site_action};
pub use sites::Sites;
pub use webarena::{
    Contents, Evaluation, HtmlCheck, ReferenceAnswers, WebArenaTask, read_webarena_tasks,
};
