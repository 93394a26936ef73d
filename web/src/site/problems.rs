//! Tasks on the sites, from seeds, with their players by rules.

use spar_core::Seed;
use spar_python::repr_str;

use super::judge::words_of;
use super::map::kilometres;
use super::pages::{Numbers, encode};
use super::shop::{FIRST_ORDER, STATUSES, money};
use super::sites::{FORUM, MAP, SHOP, State};
use super::webarena::{Contents, Evaluation, HtmlCheck, ReferenceAnswers, WebArenaTask};
use crate::View;

/// The families of tasks.
pub const FAMILIES: [&str; 12] = [
    "forum-author",
    "forum-comment",
    "forum-count",
    "forum-thread",
    "forum-vote",
    "map-distance",
    "map-phone",
    "map-route",
    "shop-filter",
    "shop-price",
    "shop-status",
    "shop-total",
];

/// A task with what its player by rules does.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The task in WebArena's form.
    pub task: WebArenaTask,
    /// Its family.
    pub family: &'static str,
    /// The moves of the player.
    moves: Vec<Move>,
    /// The answer that it ends with.
    answer: String,
    /// Names that would be answers as well.
    others: Vec<String>,
}

/// What the player does at an address.
#[derive(Debug, Clone, PartialEq)]
struct Move {
    /// The address.
    at: String,
    /// What it writes there: the name of a field, and the text or the option.
    entries: Vec<(&'static str, String)>,
    /// The button that it presses then; absent, looking is enough.
    button: Option<&'static str>,
}

fn looking(at: String) -> Vec<Move> {
    vec![Move { at, entries: Vec::new(), button: None }]
}

fn says(text: String) -> Evaluation {
    Evaluation {
        eval_types: vec!["string_match".to_owned()],
        reference_answers: Some(ReferenceAnswers {
            must_include: Some(vec![text]),
            ..ReferenceAnswers::default()
        }),
        ..Evaluation::default()
    }
}

fn shows(url: String, locator: &str, text: String, is_whole: bool) -> Evaluation {
    let required_contents = match is_whole {
        true => Contents { exact_match: Some(text), must_include: None },
        false => Contents { exact_match: None, must_include: Some(vec![text]) },
    };
    let check = HtmlCheck { url, locator: locator.to_owned(), required_contents };
    Evaluation {
        eval_types: vec!["program_html".to_owned()],
        program_html: Some(vec![check]),
        ..Evaluation::default()
    }
}

impl Problem {
    /// The task of a seed; its family follows from the seed as well.
    pub fn new(seed: u64) -> Self {
        let family = Self::family_of(seed);
        let state = State::new(Self::world(seed));
        let numbers = Numbers(Seed::from_u64(seed).derive("problem", 0));
        let (forum, shop, map) = (&state.forum, &state.shop, &state.map);
        let id = numbers.below("thread", 0, forum.threads.len());
        let (thread, thread_url) = (&forum.threads[id], format!("{FORUM}/t/{id}"));
        let at = numbers.below("order", 0, shop.orders.len());
        let (order, order_url) = (&shop.orders[at], format!("{SHOP}/orders/{}", at + FIRST_ORDER));
        let number = at + FIRST_ORDER;
        let (from, step) = (
            numbers.below("from", 0, map.places.len()),
            numbers.below("to", 0, map.places.len() - 1),
        );
        let to = (from + step + 1) % map.places.len();
        let (start, end) = (map.places[from].name, map.places[to].name);
        let route = format!("{MAP}/route?from={}&to={}", encode(start), encode(end));
        let pressing = |at: String, entries: Vec<(&'static str, String)>, button: &'static str| {
            vec![Move { at, entries, button: Some(button) }]
        };
        let done = "Done.".to_owned();
        let (intent, eval, moves, answer) = match family {
            "forum-author" => (
                format!(
                    "Who wrote the thread \"{}\" in the board {}? Answer with the name.",
                    thread.title, thread.board
                ),
                says(thread.author.clone()),
                looking(thread_url),
                thread.author.clone(),
            ),
            "forum-comment" => {
                let text = format!("Number {} helped me.", numbers.below("text", 0, 900) + 100);
                (
                    format!(
                        "Send the comment \"{text}\" in the thread \"{}\" of the board {}.",
                        thread.title, thread.board
                    ),
                    shows(
                        thread_url.clone(),
                        "document.querySelector('#comments').textContent",
                        text.clone(),
                        false,
                    ),
                    pressing(thread_url, vec![("text", text)], "Send"),
                    done,
                )
            }
            "forum-count" => {
                let count = forum
                    .threads
                    .iter()
                    .filter(|it| it.board == thread.board && it.author == thread.author)
                    .count();
                (
                    format!(
                        "How many threads of {} are in the board {}? Answer with the number.",
                        thread.author, thread.board
                    ),
                    says(count.to_string()),
                    looking(format!("{FORUM}/b/{}", thread.board)),
                    count.to_string(),
                )
            }
            "forum-thread" => {
                let title = format!("Looking for part {}", numbers.below("part", 0, 900) + 100);
                let board = format!("{FORUM}/b/{}", thread.board);
                (
                    format!(
                        "Post a new thread with the title \"{title}\" and the text \"Thanks.\" in the board {}.",
                        thread.board
                    ),
                    shows(
                        board.clone(),
                        "document.querySelector('table').textContent",
                        title.clone(),
                        false,
                    ),
                    pressing(
                        format!("{board}/new"),
                        vec![("title", title), ("body", "Thanks.".to_owned())],
                        "Post",
                    ),
                    done,
                )
            }
            "forum-vote" => (
                format!("Upvote the thread \"{}\" in the board {}.", thread.title, thread.board),
                shows(
                    thread_url.clone(),
                    "document.querySelector('#votes').textContent",
                    format!("{} votes", thread.votes + 1),
                    true,
                ),
                pressing(thread_url, Vec::new(), "Upvote"),
                done,
            ),
            "map-distance" => {
                let length = kilometres(map.way(from, to).0);
                (
                    format!(
                        "How far is it on the shortest way from {start} to {end}? Answer with the distance in km."
                    ),
                    says(length.trim_end_matches(" km").to_owned()),
                    looking(route),
                    length,
                )
            }
            "map-phone" => {
                let phone = map.places[from].phone.clone();
                (
                    format!("What is the phone number of {start}?"),
                    says(phone.clone()),
                    looking(format!("{MAP}/place/{from}")),
                    phone,
                )
            }
            "map-route" => (
                format!("Show me the way from {start} to {end}."),
                Evaluation {
                    eval_types: vec!["url_match".to_owned()],
                    reference_url: Some(route.clone()),
                    ..Evaluation::default()
                },
                looking(route),
                done,
            ),
            "shop-filter" => {
                let url = format!("{SHOP}/orders?status={}", order.status);
                (
                    format!("Show me all orders that are {}.", order.status),
                    Evaluation {
                        eval_types: vec!["url_match".to_owned()],
                        reference_url: Some(url.clone()),
                        ..Evaluation::default()
                    },
                    looking(url),
                    done,
                )
            }
            "shop-price" => {
                let id = numbers.below("product", 0, shop.products.len());
                let product = &shop.products[id];
                let price = money(product.cents + 100 * (numbers.below("more", 0, 40) as u32 + 1));
                let url = format!("{SHOP}/products/{id}");
                (
                    format!("Set the price of {} to {price}.", product.name),
                    shows(
                        url.clone(),
                        "document.querySelector('#price').textContent",
                        price.clone(),
                        true,
                    ),
                    pressing(url, vec![("price", price)], "Save"),
                    done,
                )
            }
            "shop-status" => {
                let others: Vec<&str> =
                    STATUSES.into_iter().filter(|status| *status != order.status).collect();
                let wanted = numbers.choose("status", 0, &others).to_string();
                (
                    format!("Set the status of order {number} to {wanted}."),
                    shows(
                        order_url.clone(),
                        "document.querySelector('#status').textContent",
                        wanted.clone(),
                        true,
                    ),
                    pressing(order_url, vec![("status", wanted)], "Save"),
                    done,
                )
            }
            _ => (
                format!(
                    "What is the total of order {number}, of {}?",
                    shop.customers[order.customer]
                ),
                says(money(order.cents)),
                looking(order_url),
                money(order.cents),
            ),
        };
        let (site, start_url) = match family.split('-').next() {
            Some("forum") => ("forum", FORUM),
            Some("shop") => ("shop", SHOP),
            _ => ("map", MAP),
        };
        let task = WebArenaTask {
            task_id: seed,
            sites: vec![site.to_owned()],
            intent,
            start_url: format!("{start_url}/"),
            eval,
            require_login: false,
        };
        let mut others: Vec<String> = Vec::new();
        if family == "forum-author" {
            others = forum.threads.iter().map(|thread| thread.author.to_lowercase()).collect();
            others.sort();
            others.dedup();
        }
        Self { task, family, moves, answer, others }
    }

    /// The family of a seed's task.
    pub fn family_of(seed: u64) -> &'static str {
        FAMILIES[(seed % FAMILIES.len() as u64) as usize]
    }

    /// Whether an answer says one thing: no number but the right one and those of the question, and no other name that would be
    /// an answer as well. WebArena's judges find the right answer among all that there are; who lists these has not answered.
    pub fn is_plain(&self, answer: &str) -> bool {
        if self.task.eval.reference_answers.is_none() {
            return true;
        }
        let known = words_of(&format!("{} {}", self.task.intent, self.answer));
        words_of(answer).iter().all(|word| {
            let is_number = word.starts_with(|character: char| character.is_ascii_digit());
            !(is_number || self.others.contains(word)) || known.contains(word)
        })
    }

    /// The seed of the sites that a task is on.
    pub fn world(seed: u64) -> Seed {
        Seed::from_u64(seed).derive("sites", 0)
    }
}

/// What the player of a problem does next, by the address and the elements of the page alone: it goes where it has to, writes,
/// presses, and answers when the page has come back.
pub fn next_site_action(
    problem: &Problem,
    url: &str,
    view: &View,
    has_pressed: bool,
) -> Option<String> {
    let answer = || Some(format!("send_msg_to_user({})", repr_str(&problem.answer)));
    let next = problem.moves.first()?;
    if has_pressed {
        return answer();
    }
    if url.trim_end_matches('/') != next.at.trim_end_matches('/') {
        return Some(format!("goto({})", repr_str(&next.at)));
    }
    let elements = view.elements();
    let named = |name: &str| {
        elements.iter().find(|element| element.attributes.get("name").is_some_and(|it| it == name))
    };
    for (name, text) in &next.entries {
        let field = named(name)?;
        if field.value.as_deref() != Some(text) {
            let action = if field.tag == "select" { "select_option" } else { "fill" };
            return Some(format!("{action}({}, {})", repr_str(&field.bid), repr_str(text)));
        }
    }
    let Some(button) = next.button else { return answer() };
    let place = (0..elements.len())
        .find(|place| elements[*place].tag == "button" && view.text_of(*place) == button)?;
    Some(format!("click({})", repr_str(&elements[place].bid)))
}

#[cfg(test)]
mod tests {
    use super::super::judge::{must_include, url_match};
    use super::super::pages::encode;
    use super::super::sites::Sites;
    use super::*;
    use crate::{Request, Response, Server};

    fn ask(sites: &Sites, method: &str, url: &str, body: &str) -> Response {
        let request = Request {
            method: method.to_owned(),
            url: url.to_owned(),
            body: body.to_owned(),
            cookies: String::new(),
            headers: Vec::new(),
        };
        sites.answer(&request).unwrap()
    }

    /// What stands between two texts of a page.
    fn part(page: &str, before: &str, behind: &str) -> String {
        page.split_once(before).unwrap().1.split_once(behind).unwrap().0.to_owned()
    }

    #[test]
    fn two_hundred_tasks_are_solved_by_what_their_players_do_and_not_before() {
        for seed in 0..240 {
            let problem = Problem::new(seed);
            problem.task.check().unwrap();
            assert_eq!(problem, Problem::new(seed));
            let sites = Sites::new(Problem::world(seed));
            let eval = &problem.task.eval;
            let holds = |sites: &Sites| {
                let check = &eval.program_html.as_ref().unwrap()[0];
                let page = ask(sites, "GET", &check.url, "");
                let page = String::from_utf8_lossy(&page.body).into_owned();
                let id = check
                    .locator
                    .split('#')
                    .nth(1)
                    .map(|rest| rest.split('\'').next().unwrap().to_owned());
                let text = id.map_or(page.clone(), |id| {
                    part(
                        &page,
                        &format!("id=\"{id}\">"),
                        if id == "comments" { "</ul>" } else { "</span>" },
                    )
                });
                match &check.required_contents {
                    Contents { exact_match: Some(whole), .. } => text == *whole,
                    Contents { must_include: Some(texts), .. } => {
                        must_include(&texts[0], &text, false)
                    }
                    Contents { .. } => false,
                }
            };
            let next = &problem.moves[0];
            let page = ask(&sites, "GET", &next.at, "");
            assert_eq!(page.status, 200, "{}", next.at);
            match eval.eval_types[0].as_str() {
                "program_html" => {
                    assert!(!holds(&sites), "{seed}: {}", problem.task.intent);
                    let form: Vec<String> = next
                        .entries
                        .iter()
                        .map(|(name, text)| format!("{name}={}", encode(text)))
                        .collect();
                    let page = String::from_utf8_lossy(&page.body).into_owned();
                    let forms: Vec<&str> =
                        page.split("<form method=\"post\" action=\"").skip(1).collect();
                    let form_of = forms
                        .iter()
                        .find(|form| {
                            form.contains(&format!("<button>{}</button>", next.button.unwrap()))
                        })
                        .unwrap();
                    let origin: String = next.at.split('/').take(3).collect::<Vec<_>>().join("/");
                    let action = format!("{origin}{}", form_of.split('"').next().unwrap());
                    assert_eq!(ask(&sites, "POST", &action, &form.join("&")).status, 303);
                    assert!(holds(&sites), "{seed}: {}", problem.task.intent);
                }
                "string_match" => {
                    let wanted =
                        eval.reference_answers.as_ref().unwrap().must_include.as_ref().unwrap();
                    assert!(must_include(&wanted[0], &problem.answer, true), "{seed}");
                    assert!(!must_include(&wanted[0], "I do not know.", true));
                }
                _ => assert!(url_match(eval.reference_url.as_ref().unwrap(), &next.at)),
            }
        }
    }

    #[test]
    fn who_lists_all_answers_has_not_answered() {
        for seed in 0..120 {
            let problem = Problem::new(seed);
            let said = format!("The answer to \"{}\" is {}.", problem.task.intent, problem.answer);
            assert!(problem.is_plain(&problem.answer) && problem.is_plain(&said), "{said}");
            let listed = match problem.family {
                "forum-author" => problem.others.join(", "),
                "forum-count" => "1 2 3 4 5 6 7 8 9".to_owned(),
                "map-distance" | "map-phone" | "shop-total" => {
                    format!("{} 12345.67", problem.answer)
                }
                _ => continue,
            };
            assert!(!problem.is_plain(&listed), "{listed}");
        }
    }

    #[test]
    fn sites_answer_whatever_is_asked_and_nobody_else() {
        let sites = Sites::new(Seed::from_u64(1));
        for path in [
            "t/99999999999999999999",
            "b/nowhere",
            "t/-1",
            "x/y/z",
            "%2e%2e/etc",
            "orders/0",
            "route?from=x&to=y",
        ] {
            for origin in [FORUM, SHOP, MAP] {
                for method in ["GET", "POST", "DELETE"] {
                    let response =
                        ask(&sites, method, &format!("{origin}/{path}"), &"a=".repeat(1000));
                    assert!([200, 303, 404, 405].contains(&response.status));
                }
            }
        }
        let request = Request {
            method: "GET".to_owned(),
            url: "http://other.test/".to_owned(),
            body: String::new(),
            cookies: String::new(),
            headers: Vec::new(),
        };
        assert_eq!(sites.answer(&request), None);
        let hostile = "text=%3Cscript%3Ealert(1)%3C/script%3E";
        ask(&sites, "POST", "http://forum.test/t/0/comment", hostile);
        let page = ask(&sites, "GET", "http://forum.test/t/0", "");
        assert!(!String::from_utf8_lossy(&page.body).contains("<script>alert"));
        assert!(
            !sites.is_allowed("javascript:alert(1)") && sites.is_allowed("http://map.test/places")
        );
    }
}
