//! A forum: boards, threads, votes, comments.

use super::pages::{Numbers, escape, page, parameter};
use crate::Response;

const SITE: &str = "Talk";
const LINKS: &[(&str, &str)] = &[("/", "Boards")];
const BOARDS: [&str; 4] = ["gardens", "kitchens", "bicycles", "music"];
const AUTHORS: [&str; 8] = ["anja", "boris", "chloe", "dimitri", "elif", "farid", "greta", "hugo"];
const SUBJECTS: [&str; 10] = [
    "Broken pump",
    "Best season",
    "First attempt",
    "Old tools",
    "Strange noise",
    "Cheap parts",
    "Weekend plans",
    "Lost manual",
    "Small repair",
    "Long winter",
];
const QUESTIONS: [&str; 6] = [
    "any advice?",
    "is it worth it?",
    "what now?",
    "who knows more?",
    "look at this",
    "please help",
];
/// Texts are cut at this many characters.
const LONGEST: usize = 2000;
/// Threads and comments that there may be.
const MOST: usize = 500;

#[derive(Debug, Clone)]
pub(crate) struct Forum {
    pub(crate) threads: Vec<Thread>,
}

#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) board: &'static str,
    pub(crate) title: String,
    pub(crate) author: String,
    pub(crate) votes: u32,
    is_voted: bool,
    body: String,
    comments: Vec<(String, String)>,
}

impl Forum {
    pub(crate) fn new(numbers: Numbers) -> Self {
        let mut titles = Vec::new();
        for subject in SUBJECTS {
            for question in QUESTIONS {
                titles.push(format!("{subject}: {question}"));
            }
        }
        let titles = numbers.shuffled("titles", &titles);
        let threads = titles.into_iter().take(24).enumerate().map(|(place, title)| {
            let at = place as u64;
            let comments = (0..numbers.below("comments", at, 4) as u64)
                .map(|number| {
                    let author = numbers.choose("commenter", at * 8 + number, &AUTHORS);
                    let text = numbers.choose("comment", at * 8 + number, &QUESTIONS);
                    ((*author).to_owned(), format!("I wondered as well: {text}"))
                })
                .collect();
            Thread {
                board: BOARDS[place % BOARDS.len()],
                title,
                author: (*numbers.choose("author", at, &AUTHORS)).to_owned(),
                votes: numbers.below("votes", at, 90) as u32 + 3,
                is_voted: false,
                body: format!("It is {} years old.", numbers.below("age", at, 30) + 1),
                comments,
            }
        });
        Self { threads: threads.collect() }
    }

    pub(crate) fn get(&self, parts: &[&str]) -> Option<Response> {
        match parts {
            [] => {
                let items: String = BOARDS
                    .iter()
                    .map(|board| format!("<li><a href=\"/b/{board}\">{board}</a></li>"))
                    .collect();
                Some(page(SITE, "Boards", LINKS, &format!("<ul>{items}</ul>")))
            }
            ["b", board] => {
                let board = BOARDS.iter().find(|known| *known == board)?;
                let rows: String = self
                    .threads
                    .iter()
                    .enumerate()
                    .filter(|(_, thread)| thread.board == *board)
                    .map(|(id, thread)| {
                        format!(
                            "<tr><td><a href=\"/t/{id}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                            escape(&thread.title),
                            escape(&thread.author),
                            thread.votes,
                            thread.comments.len()
                        )
                    })
                    .collect();
                let body = format!(
                    "<p><a href=\"/b/{board}/new\">New thread</a></p><table><tr><th>Thread</th><th>Author</th><th>Votes</th>\
                     <th>Comments</th></tr>{rows}</table>"
                );
                Some(page(SITE, board, LINKS, &body))
            }
            ["b", board, "new"] => {
                let board = BOARDS.iter().find(|known| *known == board)?;
                let body = format!(
                    "<form method=\"post\" action=\"/b/{board}/new\"><p><label>Title <input name=\"title\"></label></p>\
                     <p><label>Text <textarea name=\"body\"></textarea></label></p><button>Post</button></form>"
                );
                Some(page(SITE, &format!("New thread in {board}"), LINKS, &body))
            }
            ["t", id] => {
                let thread = self.threads.get(id.parse::<usize>().ok()?)?;
                let vote = match thread.is_voted {
                    true => "<p>You voted for it.</p>".to_owned(),
                    false => format!(
                        "<form method=\"post\" action=\"/t/{id}/vote\"><button>Upvote</button></form>"
                    ),
                };
                let comments: String = thread
                    .comments
                    .iter()
                    .map(|(author, text)| {
                        format!("<li><b>{}</b> {}</li>", escape(author), escape(text))
                    })
                    .collect();
                let body = format!(
                    "<p>By <span id=\"author\">{}</span> in <a href=\"/b/{board}\">{board}</a>, <span id=\"votes\">{} votes</span></p>\
                     <p>{}</p>{vote}<ul id=\"comments\">{comments}</ul><form method=\"post\" action=\"/t/{id}/comment\">\
                     <p><label>Comment <textarea name=\"text\"></textarea></label></p><button>Send</button></form>",
                    escape(&thread.author),
                    thread.votes,
                    escape(&thread.body),
                    board = thread.board,
                );
                Some(page(SITE, &thread.title, LINKS, &body))
            }
            _ => None,
        }
    }

    pub(crate) fn post(&mut self, parts: &[&str], form: &str) -> Option<Response> {
        let text = |name: &str| -> String {
            parameter(form, name).unwrap_or_default().trim().chars().take(LONGEST).collect()
        };
        match parts {
            ["b", board, "new"] => {
                let board = BOARDS.iter().find(|known| *known == board)?;
                let (title, body) = (text("title"), text("body"));
                if !title.is_empty() && self.threads.len() < MOST {
                    let author = "you".to_owned();
                    self.threads.push(Thread {
                        board,
                        title,
                        author,
                        votes: 1,
                        is_voted: true,
                        body,
                        comments: Vec::new(),
                    });
                }
                Some(Response::redirect(format!("/b/{board}")))
            }
            ["t", id, "vote"] => {
                let thread = self.threads.get_mut(id.parse::<usize>().ok()?)?;
                thread.votes += u32::from(!std::mem::replace(&mut thread.is_voted, true));
                Some(Response::redirect(format!("/t/{id}")))
            }
            ["t", id, "comment"] => {
                let thread = self.threads.get_mut(id.parse::<usize>().ok()?)?;
                let said = text("text");
                if !said.is_empty() && thread.comments.len() < MOST {
                    thread.comments.push(("you".to_owned(), said));
                }
                Some(Response::redirect(format!("/t/{id}")))
            }
            _ => None,
        }
    }
}
