//! What has happened in an episode of searches.

use std::collections::BTreeSet;

use spar_core::{RewardPart, Verdict};
use spar_search::squad::{exact_match, f1};
use spar_search::world::Hop;
use spar_search::{Document, Hit};

/// What has happened in an episode.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// What was searched for, in small letters, words apart by one space.
    queries: BTreeSet<String>,
    /// Ids of the documents that were shown.
    seen: BTreeSet<String>,
    /// Their titles.
    titles: BTreeSet<String>,
    num_searches: u64,
    num_repeated: u64,
    answer: Option<GivenAnswer>,
}

/// What was answered.
#[derive(Debug, Clone)]
struct GivenAnswer {
    text: String,
    /// Whether more than one was given at a time: then none counts.
    is_one_of_several: bool,
}

impl Progress {
    /// Takes note of a search and what it showed.
    pub(super) fn searched(&mut self, query: &str, hits: &[Hit]) {
        self.num_searches += 1;
        let is_new = self.queries.insert(normal_query(query));
        self.num_repeated += u64::from(!is_new);
        for hit in hits {
            self.seen.insert(hit.document.id.clone());
            self.titles.insert(hit.document.title.clone());
        }
    }

    /// Takes note of the answer, which ends the episode.
    pub(super) fn answered(&mut self, text: &str, is_one_of_several: bool) {
        self.answer = Some(GivenAnswer { text: text.to_owned(), is_one_of_several });
    }

    /// Whether the answer was given.
    pub(super) fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    /// The first fact whose document was not shown yet, and was not searched for in vain.
    pub(super) fn next_hop<'a>(&self, chain: &'a [Hop]) -> Option<&'a Hop> {
        chain.iter().find(|hop| {
            !self.titles.contains(&hop.title) && !self.queries.contains(&normal_query(&hop.query))
        })
    }

    /// The situation as the policy knows it: what was asked, and what it has read.
    pub(super) fn state_key(&self, question: &str) -> String {
        let seen: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        let over = if self.is_over() { "answered" } else { "open" };
        format!("{question}\n{over}\n{}", seen.join(" "))
    }

    /// What the episode is worth: `success`, 1, for one answer that is right by SQuAD's exact match; how near it came is
    /// told beside that and earns nothing.
    pub(super) fn verdict(&self, answers: &[String], chain: &[Hop]) -> Verdict {
        let given = self.answer.as_ref();
        let text = given.map_or("", |given| given.text.as_str());
        let right = || answers.iter().map(String::as_str);
        // Of two answers that are nothing but articles, each is the other.
        let is_right = !text.trim().is_empty() && exact_match(text, right());
        let success = is_right && given.is_some_and(|given| !given.is_one_of_several);
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        let found = chain.iter().filter(|hop| self.titles.contains(&hop.title)).count();
        let mut artifacts = vec![
            ("exact_match", f64::from(u8::from(is_right)).into()),
            ("f1", f1(text, right()).into()),
            ("searches", self.num_searches.into()),
            ("repeated_searches", self.num_repeated.into()),
        ];
        if !chain.is_empty() {
            artifacts.push(("supporting_found", (found as f64 / chain.len() as f64).into()));
        }
        let several = match given {
            Some(GivenAnswer { is_one_of_several: true, .. }) => {
                "; several answers were given, and so none"
            }
            Some(_) => "",
            None => "; no answer was given",
        };
        Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}{several}", answers.join(" or ")),
            artifacts: artifacts
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Verdict::default()
        }
    }
}

fn normal_query(query: &str) -> String {
    query.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The documents of hits.
pub(super) fn documents(hits: &[Hit]) -> impl Iterator<Item = &Document> {
    hits.iter().map(|hit| &*hit.document)
}
