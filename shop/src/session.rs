//! One visit of the shop.

use std::sync::Arc;

use crate::action::ShopAction;
use crate::catalogue::Catalogue;
use crate::goal::Goal;
use crate::page::{Page, PageText, json_object};
use crate::product::Product;
use crate::reward::{PurchaseReward, purchase_reward};

/// Products of one page of results.
const PER_PAGE: usize = 10;
/// Characters of an argument that are read; what is clicked is never longer.
const MOST_CHARS: usize = 4_096;

const BACK: &str = "Back to Search";
const PREVIOUS: &str = "< Prev";
const NEXT: &str = "Next >";
const BUY: &str = "Buy Now";

/// A page below that of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubPage {
    /// What is said of it.
    Description,
    /// The same in points.
    Features,
    /// What buyers said.
    Reviews,
    /// What it is; only where the shop shows that.
    Attributes,
}

impl SubPage {
    pub(crate) const ALL: [Self; 4] =
        [Self::Description, Self::Features, Self::Reviews, Self::Attributes];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::Features => "Features",
            Self::Reviews => "Reviews",
            Self::Attributes => "Attributes",
        }
    }
}

/// Where a visitor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the search bar.
    Search,
    /// At a page of results.
    Results,
    /// At a product.
    Item,
    /// At a page below it.
    Sub(SubPage),
    /// Behind the purchase: nothing can be done any more.
    Done,
}

/// How a shop shows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Showing {
    /// The form of its texts.
    pub text: PageText,
    /// Whether products have a page of their attributes. WebShop's default: no.
    pub attributes: bool,
}

/// One visit: where the visitor is, what was found and chosen. A clone is a fork, and shares whatever is big.
#[derive(Debug, Clone)]
pub struct Session {
    catalogue: Arc<Catalogue>,
    goal: Arc<Goal>,
    showing: Showing,
    place: Place,
    words: Arc<str>,
    found: Arc<[u32]>,
    page: u32,
    item: Option<Item>,
    /// Options that were chosen, in the order in which their names were: places of name and value.
    options: Vec<(u16, u16)>,
    /// Products that were looked at since the search bar was.
    visited: Vec<u32>,
    bought: Option<PurchaseReward>,
}

#[derive(Debug, Clone)]
struct Item {
    number: u32,
    product: Arc<Product>,
}

impl Session {
    /// A visit that begins at the search bar.
    pub fn new(catalogue: Arc<Catalogue>, goal: Arc<Goal>, showing: Showing) -> Self {
        Self {
            catalogue,
            goal,
            showing,
            place: Place::Search,
            words: "".into(),
            found: Arc::default(),
            page: 1,
            item: None,
            options: Vec::new(),
            visited: Vec::new(),
            bought: None,
        }
    }

    /// Where the visitor is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// What is to be bought.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// What the purchase was worth, behind it.
    pub fn bought(&self) -> Option<&PurchaseReward> {
        self.bought.as_ref()
    }

    /// The product whose pages are shown.
    pub fn product(&self) -> Option<&Product> {
        self.item.as_ref().map(|item| &*item.product)
    }

    pub(crate) fn product_number(&self) -> Option<usize> {
        self.item.as_ref().map(|item| item.number as usize)
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) fn shows_attributes(&self) -> bool {
        self.showing.attributes
    }

    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    pub(crate) fn page(&self) -> usize {
        self.page as usize
    }

    /// All that the search has found, the best first.
    pub fn found(&self) -> &[u32] {
        &self.found
    }

    /// The products of this page of results.
    pub fn listed(&self) -> &[u32] {
        let first = (self.page as usize - 1).saturating_mul(PER_PAGE).min(self.found.len());
        &self.found[first..self.found.len().min(first + PER_PAGE)]
    }

    /// Names and values of the options that were chosen.
    pub fn options(&self) -> Vec<(&str, &str)> {
        let Some(product) = self.product() else { return Vec::new() };
        let chosen = |&(name, value): &(u16, u16)| {
            let (name, values) = &product.options[name as usize];
            (name.as_str(), values[value as usize].as_str())
        };
        self.options.iter().map(chosen).collect()
    }

    /// Carries out an action; false where it has no meaning here, and then nothing changes: what is clicked has to stand on the page.
    ///
    /// A search can be made from everywhere. Words are read in lower case, of very long ones the first 4,096 characters.
    pub fn act(&mut self, action: ShopAction<'_>) -> bool {
        if self.place == Place::Done {
            return false;
        }
        match action {
            ShopAction::Search(words) => {
                let words = lower(words);
                self.found = self.catalogue.search(&words);
                self.words = words.into();
                self.page = 1;
                self.show_results();
                true
            }
            ShopAction::Click(what) => self.click(&lower(what)),
        }
    }

    /// Puts all products, up to fifty, in the place of what was found: recordings have no search of their own.
    pub(crate) fn find_all(&mut self) {
        let all = self.catalogue.len().min(crate::catalogue::MOST_FOUND) as u32;
        self.found = (0..all).collect();
    }

    fn show_results(&mut self) {
        self.place = Place::Results;
        self.item = None;
        self.options.clear();
    }

    fn click(&mut self, what: &str) -> bool {
        let is = |button: &str| button.to_lowercase() == what;
        if self.place == Place::Search {
            return false;
        }
        if is(BACK) {
            let (catalogue, goal) = (Arc::clone(&self.catalogue), Arc::clone(&self.goal));
            *self = Self::new(catalogue, goal, self.showing);
            return true;
        }
        match self.place {
            Place::Results if is(NEXT) => self.page = self.page.saturating_add(1),
            Place::Results if is(PREVIOUS) && self.page > 1 => self.page -= 1,
            Place::Results => {
                let is_meant =
                    |number: &&u32| self.catalogue.asin(**number as usize).to_lowercase() == what;
                let Some(&number) = self.listed().iter().find(is_meant) else { return false };
                self.item = Some(Item { number, product: self.catalogue.product(number as usize) });
                if !self.visited.contains(&number) {
                    self.visited.push(number);
                }
                self.place = Place::Item;
            }
            Place::Item => return self.click_on_item(what),
            Place::Sub(_) if is(PREVIOUS) => self.place = Place::Item,
            _ => return false,
        }
        true
    }

    fn click_on_item(&mut self, what: &str) -> bool {
        let Some(item) = &self.item else { return false };
        let options = &item.product.options;
        // Of equal values of several options the last one is meant.
        let option = options.iter().enumerate().rev().find_map(|(name, (_, values))| {
            let value = values.iter().rposition(|value| value == what)?;
            Some((u16::try_from(name).ok()?, u16::try_from(value).ok()?))
        });
        let sub_page = SubPage::ALL.into_iter().find(|page| page.title().to_lowercase() == what);
        let is = |button: &str| button.to_lowercase() == what;
        if is(BUY) {
            let chosen: Vec<(String, String)> = self
                .options()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            self.bought = Some(purchase_reward(&item.product, &self.goal, &chosen));
            self.place = Place::Done;
        } else if is(PREVIOUS) {
            self.show_results();
        } else if let Some(page) = sub_page
            && (page != SubPage::Attributes || self.showing.attributes || option.is_some())
        {
            self.place = Place::Sub(page);
        } else if let Some((name, value)) = option {
            match self.options.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.options.push((name, value)),
            }
        } else {
            return false;
        }
        true
    }

    /// Hands over what can be clicked here, in lower case, as it stands on the page; what stands there twice comes twice.
    pub fn each_clickable(&self, mut take: impl FnMut(&str)) {
        match self.place {
            Place::Search | Place::Done => return,
            Place::Results => {
                if self.page > 1 {
                    take("< prev");
                }
                take("next >");
                for number in self.listed() {
                    take(&self.catalogue.asin(*number as usize).to_lowercase());
                }
            }
            Place::Item => {
                take("< prev");
                ["description", "features", "reviews", "buy now"].into_iter().for_each(&mut take);
                if self.showing.attributes {
                    take("attributes");
                }
                let options = self.product().map_or(&[][..], |product| &product.options);
                options.iter().flat_map(|(_, values)| values).for_each(|value| take(value));
            }
            Place::Sub(_) => take("< prev"),
        }
        take("back to search");
    }

    /// What the page says, in the shop's mode.
    pub fn text(&self) -> String {
        let address = match (self.showing.text, self.place) {
            (PageText::TextRich, Place::Item) => {
                let words = self.words.replace(' ', "+");
                format!("{words}/{}/{}", self.page, json_object(&self.options(), false))
            }
            _ => String::new(),
        };
        let mut page = Page::new(self.showing.text, &address);
        if self.place == Place::Done {
            self.write_done(&mut page);
            return page.finish();
        }
        if self.place == Place::Search {
            page.text("WebShop");
            page.text("Instruction: ");
            page.text(&self.goal.instruction);
            page.button("Search");
            return page.finish();
        }
        page.text("Instruction:");
        page.text(&self.goal.instruction);
        page.button(BACK);
        if self.place == Place::Results {
            self.write_results(&mut page);
        } else {
            page.button(PREVIOUS);
            if let Some(product) = self.product() {
                self.write_product(&mut page, product);
            }
        }
        page.finish()
    }

    fn write_results(&self, page: &mut Page<'_>) {
        page.text(&format!("Page {} (Total results: {})", self.page, self.found.len()));
        if self.page > 1 {
            page.button(PREVIOUS);
        }
        page.button(NEXT);
        let mut title = String::with_capacity(96);
        for number in self.listed() {
            let place = *number as usize;
            page.link(&self.catalogue.asin(place), self.visited.contains(number));
            title.clear();
            self.catalogue.write_title(place, &mut title);
            page.text(&title);
            page.text(&self.catalogue.price_tag(place));
        }
    }

    fn write_product(&self, page: &mut Page<'_>, product: &Product) {
        match self.place {
            Place::Sub(SubPage::Description) => page.text(&product.description),
            Place::Sub(SubPage::Features) => {
                product.bullet_points.iter().for_each(|point| page.text(&format!(" {point}")));
            }
            Place::Sub(SubPage::Reviews) => {
                for review in &product.reviews {
                    page.text(&format!("\"{}\"", review.title));
                    page.text(&review.score.to_string());
                    page.text(&review.body);
                }
            }
            Place::Sub(SubPage::Attributes) => {
                product.attributes.iter().for_each(|it| page.text(&format!(" {it}")));
                page.text(&product.category);
                page.text(&product.query);
                page.text(&product.product_category);
            }
            _ => {
                for (name, values) in &product.options {
                    page.text(name);
                    values.iter().for_each(|value| page.option(value));
                }
                page.text(&product.title);
                page.text(&format!("Price: {}", product.price_tag));
                page.text(&format!("Rating: {}", product.rating));
                for sub in SubPage::ALL {
                    if sub != SubPage::Attributes || self.showing.attributes {
                        page.button(sub.title());
                    }
                }
                page.button(BUY);
            }
        }
    }

    /// The page behind the purchase, with the empty places that WebShop's text environment leaves there.
    fn write_done(&self, page: &mut Page<'_>) {
        let Some((product, reward)) = self.product().zip(self.bought) else { return };
        let options = json_object(&self.options(), true);
        let total = spar_python::repr_float(reward.total);
        for text in [
            "Thank you for shopping with us!",
            "Your code: ",
            "None",
            " (Paste it in your MTurk interface.)",
            "Purchased",
            "asin",
            &product.asin,
            "options",
            &options,
            "attrs",
            "None",
            "category",
            "None",
            "query",
            "None",
            "product category",
            "None",
            "Target",
            "asin",
            "options",
            "attrs",
            "price upper",
            "instuction text",
            "category",
            "product category",
            "query",
            "Goal ",
            "None",
            "Reward",
            "Your score (min 0.0, max 1.0)",
            &total,
            "Reward Details ",
            "None",
        ] {
            page.text(text);
        }
    }

    /// The situation's name, as the visitor can know it: where it is, what was searched for, found and chosen.
    pub fn key(&self) -> String {
        let mut key = match self.place {
            Place::Search => return "search".to_owned(),
            Place::Results => format!("results {} of {}", self.page, self.words),
            Place::Item => format!("item of page {} of {}", self.page, self.words),
            Place::Sub(page) => format!("{} of page {} of {}", page.title(), self.page, self.words),
            Place::Done => "done".to_owned(),
        };
        if let Some(product) = self.product() {
            key.push(' ');
            key.push_str(&product.asin);
        }
        let mut options = self.options();
        options.sort_unstable();
        for (name, value) in options {
            key.push_str(&format!(" {name}={value}"));
        }
        if self.showing.text == PageText::TextRich {
            // Products that were looked at are marked there.
            let mut visited = self.visited.clone();
            visited.sort_unstable();
            key.push_str(&format!(" {visited:?}"));
        }
        key
    }
}

fn lower(text: &str) -> String {
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(place, _)| place);
    text[..end].to_lowercase()
}
