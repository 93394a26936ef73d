//! The shop as pages of HTML.

use crate::catalogue::Catalogue;
use crate::session::{Place, Session, SubPage};

/// Where the forms and links of a page lead: `ADDRESS/search?words=...` and `ADDRESS/click?what=...`.
pub(crate) struct HtmlPage<'a> {
    address: &'a str,
    out: String,
}

impl Session {
    /// The page as HTML: what [`Session::text`] says, with forms and links that lead to `address` followed by `/search?words=WORDS` and
    /// `/click?what=WHAT`, whose parameters are those of the [actions](crate::ShopAction).
    pub fn html(&self, address: &str) -> String {
        let mut page = HtmlPage { address, out: String::with_capacity(4_096) };
        page.out.push_str(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>WebShop</title>\
             <style>body{font:14px sans-serif;margin:8px}form{display:inline}li{margin:4px}button[aria-pressed=true]{font-weight:bold}\
             </style></head><body><h1>WebShop</h1>",
        );
        match self.place() {
            Place::Done => page.paragraph("Thank you for shopping with us!"),
            Place::Search => {
                page.paragraph(&format!("Instruction: {}", self.goal().instruction));
                page.out.push_str(&format!(
                    "<form action=\"{address}/search\"><input name=\"words\" aria-label=\"Search\"><button>Search</button></form>"
                ));
            }
            place => {
                page.paragraph(&format!("Instruction: {}", self.goal().instruction));
                page.button("Back to Search", None);
                match place {
                    Place::Results => self.write_html_results(&mut page),
                    _ => self.write_html_product(&mut page, place),
                }
            }
        }
        page.out.push_str("</body></html>");
        page.out
    }

    fn write_html_results(&self, page: &mut HtmlPage<'_>) {
        page.paragraph(&format!("Page {} (Total results: {})", self.page(), self.found().len()));
        if self.page() > 1 {
            page.button("< Prev", None);
        }
        page.button("Next >", None);
        page.out.push_str("<ul>");
        let catalogue: &Catalogue = self.catalogue();
        for &number in self.listed() {
            let place = number as usize;
            let (asin, mut title) = (catalogue.asin(place), String::new());
            catalogue.write_title(place, &mut title);
            page.out.push_str("<li>");
            page.link(&asin);
            page.out.push_str(&format!(
                " {} {}</li>",
                escape(&title),
                escape(&catalogue.price_tag(place))
            ));
        }
        page.out.push_str("</ul>");
    }

    fn write_html_product(&self, page: &mut HtmlPage<'_>, place: Place) {
        page.button("< Prev", None);
        let Some(product) = self.product() else { return };
        match place {
            Place::Sub(SubPage::Description) => page.paragraph(&product.description),
            Place::Sub(SubPage::Features) => {
                product.bullet_points.iter().for_each(|it| page.paragraph(it))
            }
            Place::Sub(SubPage::Reviews) => {
                for review in &product.reviews {
                    page.paragraph(&format!(
                        "\"{}\" {} {}",
                        review.title, review.score, review.body
                    ));
                }
            }
            Place::Sub(SubPage::Attributes) => {
                product.attributes.iter().for_each(|it| page.paragraph(it));
                [&product.category, &product.query, &product.product_category]
                    .into_iter()
                    .for_each(|it| page.paragraph(it));
            }
            _ => {
                page.out.push_str(&format!("<h2>{}</h2>", escape(&product.title)));
                page.paragraph(&format!("Price: {}", product.price_tag));
                page.paragraph(&format!("Rating: {}", product.rating));
                let chosen = self.options();
                for (name, values) in &product.options {
                    page.out.push_str(&format!("<fieldset><legend>{}</legend>", escape(name)));
                    for value in values {
                        let is_chosen = chosen.contains(&(name.as_str(), value.as_str()));
                        page.button(value, Some(is_chosen));
                    }
                    page.out.push_str("</fieldset>");
                }
                for sub in SubPage::ALL {
                    if sub != SubPage::Attributes || self.shows_attributes() {
                        page.button(sub.title(), None);
                    }
                }
                page.button("Buy Now", None);
            }
        }
    }
}

impl HtmlPage<'_> {
    fn paragraph(&mut self, text: &str) {
        self.out.push_str(&format!("<p>{}</p>", escape(text)));
    }

    /// Something that is clicked, or chosen where `is_chosen` is there.
    fn button(&mut self, what: &str, is_chosen: Option<bool>) {
        let pressed = is_chosen.map_or_else(String::new, |it| format!(" aria-pressed=\"{it}\""));
        let (address, what) = (self.address, escape(what));
        self.out.push_str(&format!(
            "<form action=\"{address}/click\"><button name=\"what\" value=\"{what}\"{pressed}>{what}</button></form>"
        ));
    }

    fn link(&mut self, asin: &str) {
        let (address, asin) = (self.address, escape(asin));
        self.out.push_str(&format!("<a href=\"{address}/click?what={asin}\">{asin}</a>"));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::Seed;

    use crate::{Catalogue, Part, Place, Session, ShopAction, Showing, oracle};

    /// Whatever can be clicked stands on the page by the name that the action has, and what is said is there.
    #[test]
    fn pages_have_what_their_texts_have() {
        let catalogue = Catalogue::generated(0, 2_000).unwrap();
        let mut pages = 0;
        for seed in 0..20 {
            let goal = catalogue.draw_goal(Seed::from_u64(seed), Part::Any).unwrap();
            let showing = Showing { attributes: seed % 2 == 0, ..Showing::default() };
            let mut session = Session::new(Arc::clone(&catalogue), Arc::new(goal), showing);
            loop {
                let html = session.html("/visit/7");
                let is_left = |text: &str| !html.contains(&super::escape(text));
                session.each_clickable(|what| {
                    let as_button = format!("value=\"{}\"", super::escape(what)).to_lowercase();
                    let as_link = format!("/visit/7/click?what={what}").to_lowercase();
                    let html = html.to_lowercase();
                    assert!(html.contains(&as_button) || html.contains(&as_link), "{what}: {html}");
                });
                if session.place() != Place::Done {
                    assert!(!is_left(&session.goal().instruction));
                }
                if let Some(product) = session.product().filter(|_| session.place() == Place::Item)
                {
                    assert!(!is_left(&product.title) && !is_left(&product.price_tag));
                    for sub in ["Description", "Features", "Reviews"] {
                        let mut below = session.clone();
                        assert!(below.act(ShopAction::Click(sub)));
                        let html = below.html("/visit/8");
                        assert!(html.contains("/visit/8/click") && html.contains("&lt; Prev"));
                        assert!(
                            sub != "Description"
                                || html.contains(&super::escape(&product.description))
                        );
                    }
                }
                pages += 1;
                let Some(action) = oracle(&session) else { break };
                assert!(session.act(ShopAction::read(&action).unwrap()));
            }
            assert_eq!(session.place(), Place::Done);
        }
        assert!(pages > 60);
    }
}
