//! Players by rules: for each of these tasks, what to do next by the goal and the elements of the page alone.
//!
//! They remember nothing: what has been done is seen in the page. They look at elements that are not shown as well, as oracles do.

use spar_python::repr_str;

use crate::{Element, Input, View};

/// What to do next, as an action in words.
type Player = fn(&Scene<'_>) -> Option<String>;

const PLAYERS: &[(&str, Player)] = &[
    ("buy-ticket", buy_ticket),
    ("choose-date", choose_date),
    ("choose-date-easy", choose_date),
    ("choose-date-medium", choose_date),
    ("choose-date-nodelay", choose_date),
    ("choose-list", choose_list),
    ("click-button", click_quoted_button),
    ("click-button-sequence", click_sequence),
    ("click-checkboxes", check_names),
    ("click-checkboxes-large", check_names),
    ("click-checkboxes-transfer", check_names),
    ("click-collapsible", expand_and_submit),
    ("click-collapsible-2", expand_and_click),
    ("click-collapsible-2-nodelay", expand_and_click),
    ("click-collapsible-nodelay", expand_and_submit),
    ("click-color", click_color),
    ("click-dialog", close_dialog),
    ("click-dialog-2", click_in_dialog),
    ("click-link", click_link),
    ("click-menu", click_menu),
    ("click-menu-2", click_menu_2),
    ("click-option", check_names),
    ("click-scroll-list", choose_in_list),
    ("click-shades", click_shades),
    ("click-tab", click_tab),
    ("click-tab-2", click_in_tabs),
    ("click-tab-2-easy", click_in_tabs),
    ("click-tab-2-hard", click_in_tabs),
    ("click-tab-2-medium", click_in_tabs),
    ("click-test", click_any_button),
    ("click-test-2", click_named_button),
    ("click-test-transfer", click_named_button),
    ("click-widget", click_widget),
    ("copy-paste", copy_text),
    ("copy-paste-2", copy_text),
    ("enter-date", enter_date),
    ("enter-password", enter_password),
    ("enter-text", enter_quoted),
    ("enter-text-2", enter_cased),
    ("enter-text-dynamic", enter_quoted),
    ("enter-time", enter_time),
    ("find-greatest", find_greatest),
    ("find-word", find_word),
    ("focus-text", focus_field),
    ("focus-text-2", focus_field),
    ("form-sequence-2", form_sequence_2),
    ("form-sequence-3", form_sequence_3),
    ("generate-number", generate_number),
    ("guess-number", guess_number),
    ("identify-shape", identify_shape),
    ("login-user", log_in),
    ("login-user-popup", log_in),
    ("multi-layouts", search_movies),
    ("multi-orderings", search_movies),
    ("navigate-tree", navigate_tree),
    ("odd-or-even", odd_or_even),
    ("read-table", read_table),
    ("read-table-2", read_table_2),
    ("scroll-text", last_word),
    ("scroll-text-2", scroll_text),
    ("search-engine", search_engine),
    ("simple-algebra", solve_for_x),
    ("simple-arithmetic", calculate),
    ("text-transform", read_letters),
    ("unicode-test", click_quoted_button),
    ("use-autocomplete", autocomplete),
    ("use-autocomplete-nodelay", autocomplete),
    ("use-spinner", use_spinner),
    ("visual-addition", add_blocks),
];

/// Whether a task has a player by rules.
pub fn has_oracle(task: &str) -> bool {
    PLAYERS.iter().any(|(name, _)| *name == task)
}

/// The tasks that have a player by rules, in the order of their names.
pub fn tasks_with_oracle() -> Vec<&'static str> {
    PLAYERS.iter().map(|(name, _)| *name).collect()
}

/// What the player of a task does next, in one of BrowserGym's actions; `None` where it has none, or is at a loss.
pub fn next_action(task: &str, goal: &str, view: &View, input: Input) -> Option<String> {
    let (_, player) = PLAYERS.iter().find(|(name, _)| *name == task)?;
    let action = player(&Scene { goal, view })?;
    match input {
        Input::Devices => Some(past_covers(view, &action).unwrap_or(action)),
        // A script clicks whatever is in front.
        Input::Script => Some(action),
    }
}

/// Tasks of which the player clicks and fills, and nothing else, where that is done by script.
const CLICKS_AND_FILLS: [&str; 12] = [
    "click-button",
    "click-checkboxes",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-tab",
    "click-test",
    "click-test-2",
    "enter-password",
    "enter-text",
    "login-user",
];

/// Whether the player of a task only clicks and fills; else it may take any action of BrowserGym's set `bid`.
pub fn only_clicks_and_fills(task: &str, input: Input) -> bool {
    input == Input::Script && CLICKS_AND_FILLS.contains(&task)
}

/// The key that presses a button, where a click on it would meet another element that lies over it.
fn past_covers(view: &View, action: &str) -> Option<String> {
    let bid = action.strip_prefix("click('")?.strip_suffix("')")?;
    let elements = view.elements();
    let is_it = |element: &Element| element.bid == bid && element.tag == "button";
    let button = elements.iter().position(is_it)?;
    let Element { x, y, w, h, .. } = &elements[button];
    let (x, y) = (x + w / 2.0, y + h / 2.0);
    let is_in = |mut inner: usize, outer: usize| {
        while inner != outer {
            match usize::try_from(elements[inner].parent) {
                Ok(above) if above < inner => inner = above,
                _ => return false,
            }
        }
        true
    };
    let is_over = |place: usize| {
        let over = &elements[place];
        let has_middle =
            (over.x..over.x + over.w).contains(&x) && (over.y..over.y + over.h).contains(&y);
        has_middle
            && !over.hidden
            && over.tag != "#text"
            && !is_in(button, place)
            && !is_in(place, button)
    };
    let is_covered = (0..elements.len()).any(is_over);
    is_covered.then(|| format!("press({}, 'Enter')", repr_str(bid)))
}

/// What a player sees.
struct Scene<'a> {
    goal: &'a str,
    view: &'a View,
}

impl<'a> Scene<'a> {
    fn element(&self, place: usize) -> &'a Element {
        &self.view.elements()[place]
    }

    /// The places of elements for which something holds.
    fn all(&self, holds: impl Fn(&Element) -> bool) -> Vec<usize> {
        let elements = self.view.elements().iter().enumerate();
        elements.filter(|(_, element)| holds(element)).map(|(place, _)| place).collect()
    }

    fn first(&self, holds: impl Fn(&Element) -> bool) -> Option<usize> {
        self.view.elements().iter().position(holds)
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        self.first(|element| element.id == id)
    }

    fn tagged(&self, tag: &str) -> Vec<usize> {
        self.all(|element| element.tag == tag)
    }

    fn classed(&self, class: &str) -> Vec<usize> {
        self.all(|element| has_class(element, class))
    }

    fn text(&self, place: usize) -> String {
        self.view.text_of(place)
    }

    fn parent(&self, place: usize) -> Option<usize> {
        usize::try_from(self.element(place).parent).ok()
    }

    /// What is below an element.
    fn below(&self, place: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut todo: Vec<usize> = self.view.children(place).iter().rev().copied().collect();
        while let Some(place) = todo.pop() {
            found.push(place);
            todo.extend(self.view.children(place).iter().rev());
        }
        found
    }

    /// Whether an element and all that it is in can be seen.
    fn is_shown(&self, place: usize) -> bool {
        self.view.is_shown(place)
    }

    fn click(&self, place: usize) -> Option<String> {
        self.act("click", place)
    }

    fn act(&self, action: &str, place: usize) -> Option<String> {
        let bid = &self.element(place).bid;
        (!bid.is_empty()).then(|| format!("{action}({})", repr_str(bid)))
    }

    fn fill(&self, place: usize, value: &str) -> Option<String> {
        let bid = &self.element(place).bid;
        (!bid.is_empty()).then(|| format!("fill({}, {})", repr_str(bid), repr_str(value)))
    }

    /// Writes values into fields, one after the other, and then presses the button.
    fn fill_in(&self, fields: &[(usize, &str)], button: Option<usize>) -> Option<String> {
        let wrong = fields
            .iter()
            .find(|(place, value)| self.element(*place).value.as_deref() != Some(value));
        match wrong {
            Some((place, value)) => self.fill(*place, value),
            None => self.click(button?),
        }
    }

    /// Buttons that can be seen, by their text.
    fn button(&self, text: &str) -> Option<usize> {
        let buttons = self.tagged("button");
        buttons.into_iter().find(|place| self.is_shown(*place) && self.text(*place) == text)
    }

    fn submit(&self) -> Option<usize> {
        self.by_id("subbtn")
            .or_else(|| self.by_id("submit"))
            .or_else(|| self.button("Submit"))
            .or_else(|| self.tagged("button").into_iter().next_back())
    }

    /// What stands in quotes in the goal.
    fn quoted(&self) -> Vec<&'a str> {
        self.goal.split('"').skip(1).step_by(2).collect()
    }

    /// What stands between two texts in the goal.
    fn between(&self, before: &str, behind: &str) -> Option<&'a str> {
        let (_, rest) = self.goal.split_once(before)?;
        Some(rest.rsplit_once(behind)?.0)
    }

    /// Fields to write in.
    fn fields(&self) -> Vec<usize> {
        let kinds = ["text", "password", "number", "search", "email"];
        self.all(|element| element.tag == "input" && kinds.contains(&&*element.kind))
    }

    /// The numbers of an ordinal such as `2nd` in the goal, in order, from 0.
    fn ordinals(&self) -> Vec<usize> {
        let ordinal = |word: &str| {
            let digits = word.trim_end_matches(|character: char| !character.is_ascii_digit());
            let is_ordinal = ["st", "nd", "rd", "th"].contains(&&word[digits.len()..]);
            digits.parse::<usize>().ok().filter(|_| is_ordinal)?.checked_sub(1)
        };
        self.goal.split([' ', '.', ',']).filter_map(ordinal).collect()
    }
}

fn has_class(element: &Element, class: &str) -> bool {
    element.class.split_whitespace().any(|one| one == class)
}

fn click_any_button(scene: &Scene<'_>) -> Option<String> {
    scene.click(*scene.tagged("button").first()?)
}

fn click_named_button(scene: &Scene<'_>) -> Option<String> {
    let name = scene.between("button ", ".")?;
    scene.click(scene.button(name)?)
}

fn click_quoted_button(scene: &Scene<'_>) -> Option<String> {
    scene.click(scene.button(scene.quoted().first()?)?)
}

fn click_sequence(scene: &Scene<'_>) -> Option<String> {
    let (one, two) = (scene.button("ONE")?, scene.button("TWO")?);
    scene.click(if scene.element(one).focused { two } else { one })
}

fn focus_field(scene: &Scene<'_>) -> Option<String> {
    let place = scene.ordinals().first().copied().unwrap_or(0);
    scene.act("focus", *scene.fields().get(place)?)
}

fn enter_quoted(scene: &Scene<'_>) -> Option<String> {
    scene.fill_in(&[(*scene.fields().first()?, scene.quoted().first()?)], scene.submit())
}

fn enter_cased(scene: &Scene<'_>) -> Option<String> {
    let word = scene.quoted().first()?.to_string();
    let word =
        if scene.goal.contains("lower case") { word.to_lowercase() } else { word.to_uppercase() };
    scene.fill_in(&[(*scene.fields().first()?, &word)], scene.submit())
}

fn enter_password(scene: &Scene<'_>) -> Option<String> {
    let word = *scene.quoted().first()?;
    let fields: Vec<(usize, &str)> =
        scene.fields().into_iter().map(|field| (field, word)).collect();
    scene.fill_in(&fields, scene.submit())
}

fn log_in(scene: &Scene<'_>) -> Option<String> {
    if let Some(cancel) = scene.by_id("popup-cancel") {
        return scene.click(cancel);
    }
    let quoted = scene.quoted();
    let (user, password) = (scene.by_id("username")?, scene.by_id("password")?);
    scene.fill_in(&[(user, quoted.first()?), (password, quoted.get(1)?)], scene.submit())
}

/// `Select a, b and click Submit.`, by boxes with labels.
fn check_names(scene: &Scene<'_>) -> Option<String> {
    let names: Vec<&str> = scene.between("Select ", " and click")?.split(", ").collect();
    for label in scene.tagged("label") {
        let Some(field) =
            scene.below(label).into_iter().find(|place| scene.element(*place).tag == "input")
        else {
            continue;
        };
        let wanted = names.contains(&&*scene.text(label));
        let element = scene.element(field);
        if wanted != element.checked && (wanted || element.kind == "checkbox") {
            return scene.click(field);
        }
    }
    scene.click(scene.submit()?)
}

fn choose_list(scene: &Scene<'_>) -> Option<String> {
    choose(scene, &[scene.between("Select ", " from the list")?], scene.submit())
}

fn choose_in_list(scene: &Scene<'_>) -> Option<String> {
    let names: Vec<&str> = scene.between("Select ", " from the scroll list")?.split(", ").collect();
    choose(scene, &names, scene.submit())
}

/// Chooses exactly these options of the list, and then presses the button.
fn choose(scene: &Scene<'_>, names: &[&str], button: Option<usize>) -> Option<String> {
    let list = *scene.tagged("select").first()?;
    let options: Vec<usize> = scene
        .below(list)
        .into_iter()
        .filter(|place| scene.element(*place).tag == "option")
        .collect();
    let is_right = options
        .iter()
        .all(|option| scene.element(*option).checked == names.contains(&&*scene.text(*option)));
    if is_right {
        return scene.click(button?);
    }
    let names: Vec<String> = names.iter().map(|name| repr_str(name)).collect();
    Some(format!("select_option({}, [{}])", repr_str(&scene.element(list).bid), names.join(", ")))
}

fn close_dialog(scene: &Scene<'_>) -> Option<String> {
    scene.click(*scene.classed("ui-dialog-titlebar-close").first()?)
}

fn click_in_dialog(scene: &Scene<'_>) -> Option<String> {
    match *scene.quoted().first()? {
        "x" => close_dialog(scene),
        name => scene.click(scene.button(name)?),
    }
}

/// The links of the text in quotes.
fn links(scene: &Scene<'_>) -> Vec<usize> {
    let Some(name) = scene.quoted().first().copied() else { return Vec::new() };
    scene.classed("alink").into_iter().filter(|link| scene.text(*link) == name).collect()
}

fn click_link(scene: &Scene<'_>) -> Option<String> {
    scene.click(*links(scene).first()?)
}

fn click_tab(scene: &Scene<'_>) -> Option<String> {
    let name = scene.between("Click on ", ".")?;
    scene.click(scene.tagged("a").into_iter().find(|place| scene.text(*place) == name)?)
}

fn click_in_tabs(scene: &Scene<'_>) -> Option<String> {
    let links = links(scene);
    if let Some(shown) = links.iter().find(|link| scene.is_shown(**link)) {
        return scene.click(*shown);
    }
    let mut place = *links.first()?;
    while !scene.element(place).id.starts_with("tabs-") {
        place = scene.parent(place)?;
    }
    let to = format!("#{}", scene.element(place).id);
    let is_tab = |element: &Element| element.attributes.get("href").is_some_and(|href| *href == to);
    scene.click(scene.first(is_tab)?)
}

fn expand_and_submit(scene: &Scene<'_>) -> Option<String> {
    let header = *scene.tagged("h3").first()?;
    match has_class(scene.element(header), "ui-accordion-header-active") {
        true => scene.click(scene.submit()?),
        false => scene.click(header),
    }
}

fn expand_and_click(scene: &Scene<'_>) -> Option<String> {
    let links = links(scene);
    if let Some(shown) = links.iter().find(|link| scene.is_shown(**link)) {
        return scene.click(*shown);
    }
    // The header stands before the part that the link is in.
    let area = scene.by_id("area")?;
    let mut part = *links.first()?;
    while scene.parent(part)? != area {
        part = scene.parent(part)?;
    }
    let parts = scene.view.children(area);
    let at = parts.iter().position(|place| *place == part)?;
    let header = parts[..at].iter().rev().find(|place| scene.element(**place).tag == "h3")?;
    scene.click(*header)
}

fn click_color(scene: &Scene<'_>) -> Option<String> {
    let name = scene.between("on the ", " colored")?;
    let style = format!("background-color: {name};");
    let is_it = |element: &Element| {
        has_class(element, "color")
            && element.attributes.get("style").is_some_and(|it| *it == style)
    };
    scene.click(scene.first(is_it)?)
}

fn click_shades(scene: &Scene<'_>) -> Option<String> {
    let wanted = match scene.between("shades of ", " and press")? {
        "red" => 0,
        "green" => 1,
        _ => 2,
    };
    for place in scene.tagged("span") {
        let element = scene.element(place);
        let parts: Vec<u32> = element
            .background
            .split([',', '(', ')', ' '])
            .filter_map(|part| part.parse().ok())
            .collect();
        let Some(most) = (0..parts.len().min(3)).max_by_key(|at| parts[*at]) else { continue };
        if (most == wanted && element.attributes.contains_key("style"))
            != has_class(element, "selected")
        {
            return scene.click(place);
        }
    }
    scene.click(scene.submit()?)
}

fn click_widget(scene: &Scene<'_>) -> Option<String> {
    let kind = *scene.quoted().first()?;
    let is_it = |element: &Element| match kind {
        "button" | "textarea" => element.tag == kind,
        kind => element.tag == "input" && element.kind == kind,
    };
    scene.click(scene.first(is_it)?)
}

fn copy_text(scene: &Scene<'_>) -> Option<String> {
    let place = scene.ordinals().first().copied().unwrap_or(0);
    let text = scene.element(*scene.tagged("textarea").get(place)?).value.clone()?;
    scene.fill_in(&[(*scene.fields().first()?, &text)], scene.submit())
}

fn enter_date(scene: &Scene<'_>) -> Option<String> {
    let mut parts = scene.between("Enter ", " as the date")?.split('/');
    let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
    let date = format!("{year}-{month}-{day}");
    scene.fill_in(&[(scene.by_id("tt")?, &date)], scene.submit())
}

fn enter_time(scene: &Scene<'_>) -> Option<String> {
    let told = scene.between("Enter ", " as the time")?;
    let (time, half) = told.split_once(char::is_whitespace)?;
    let (hours, minutes) = time.split_once(':')?;
    let hours = hours.parse::<u32>().ok()? % 12 + if half == "PM" { 12 } else { 0 };
    let time = format!("{hours:02}:{minutes}");
    scene.fill_in(&[(scene.by_id("tt")?, &time)], scene.submit())
}

fn is_alphanumeric(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

fn find_word(scene: &Scene<'_>) -> Option<String> {
    let text = scene.text(*scene.tagged("p").first()?);
    let word = text.split(' ').nth(*scene.ordinals().first()?)?;
    let word: String = word.chars().filter(|character| is_alphanumeric(*character)).collect();
    scene.fill_in(&[(*scene.fields().first()?, &word)], scene.submit())
}

fn last_word(scene: &Scene<'_>) -> Option<String> {
    let text = scene.element(*scene.tagged("textarea").first()?).value.clone()?;
    let word = text.split_whitespace().next_back()?;
    let word: String = word.chars().filter(|character| is_alphanumeric(*character)).collect();
    scene.fill_in(&[(*scene.fields().first()?, &word)], scene.submit())
}

fn scroll_text(scene: &Scene<'_>) -> Option<String> {
    let area = *scene.tagged("textarea").first()?;
    if scene.element(area).focused {
        return scene.click(scene.submit()?);
    }
    let key = if scene.goal.contains("bottom") { "Control+End" } else { "Control+Home" };
    Some(format!("press({}, '{key}')", repr_str(&scene.element(area).bid)))
}

fn form_sequence_2(scene: &Scene<'_>) -> Option<String> {
    let ordinals = scene.ordinals();
    let radios = scene.all(|element| element.kind == "radio");
    let radio = *radios.get(*ordinals.first()?)?;
    if !scene.element(radio).checked {
        return scene.click(radio);
    }
    let field = *scene.fields().get(*ordinals.get(1)?)?;
    scene.fill_in(&[(field, scene.quoted().first()?)], scene.submit())
}

fn form_sequence_3(scene: &Scene<'_>) -> Option<String> {
    let option = scene.between("Choose ", " from the dropdown")?;
    choose(scene, &[option], scene.button(scene.quoted().first()?))
}

fn generate_number(scene: &Scene<'_>) -> Option<String> {
    let shown = scene.text(scene.by_id("display-number")?).parse::<i64>().ok();
    let bound = || scene.goal.split([' ', ',']).find_map(|word| word.parse::<i64>().ok());
    let is_right = match shown {
        None => false,
        Some(number) if scene.goal.contains("odd") => number % 2 != 0,
        Some(number) if scene.goal.contains("even") => number % 2 == 0,
        Some(number) if scene.goal.contains("less") => number < bound()?,
        Some(number) => number > bound()?,
    };
    scene.click(if is_right { scene.submit()? } else { scene.by_id("generate")? })
}

fn guess_number(scene: &Scene<'_>) -> Option<String> {
    let field = *scene.fields().first()?;
    let told = |id: &str| {
        let place = scene.by_id(id).filter(|place| scene.is_shown(*place))?;
        scene.text(place).split([' ', '.']).find_map(|word| word.parse::<i64>().ok())
    };
    let guess = match (told("lower"), told("higher")) {
        (Some(than), _) => than - 1,
        (None, Some(than)) => than + 1,
        (None, None) => 5,
    };
    scene.fill_in(&[(field, &guess.to_string())], scene.submit())
}

fn identify_shape(scene: &Scene<'_>) -> Option<String> {
    let svg = *scene.tagged("svg").first()?;
    let below = scene.below(svg);
    let tags: Vec<&str> = below.iter().map(|place| &*scene.element(*place).tag).collect();
    let name = if tags.contains(&"circle") {
        "Circle"
    } else if tags.contains(&"rect") {
        "Rectangle"
    } else if tags.contains(&"polygon") {
        "Triangle"
    } else if scene.text(svg).chars().all(|character| character.is_ascii_digit()) {
        "Number"
    } else {
        "Letter"
    };
    scene.click(scene.button(name)?)
}

fn search_movies(scene: &Scene<'_>) -> Option<String> {
    let genre = scene.between("Search for ", " movies")?;
    let director = scene.between("directed by ", " from year")?;
    let year = scene.between("from year ", ".")?;
    let mut entries = Vec::new();
    for field in scene.fields() {
        // The nearest text around a field says what it is for.
        let mut around = scene.parent(field)?;
        let value = loop {
            let text = scene.text(around);
            let placeholder =
                scene.element(field).attributes.get("placeholder").cloned().unwrap_or_default();
            let text = format!("{text} {placeholder}").to_lowercase();
            let found = [("genre", genre), ("director", director), ("year", year), ("date", year)]
                .into_iter()
                .find(|(word, _)| text.contains(word));
            match found {
                Some((_, value)) => break value,
                None => around = scene.parent(around)?,
            }
        };
        entries.push((field, value));
    }
    let button = scene
        .tagged("button")
        .into_iter()
        .next()
        .or_else(|| scene.classed("final").into_iter().next());
    let button = button.or_else(|| {
        let is_one = |element: &Element| {
            element.tag == "input" && ["button", "submit"].contains(&&*element.kind)
        };
        scene.first(is_one)
    });
    scene.fill_in(&entries, button)
}

fn navigate_tree(scene: &Scene<'_>) -> Option<String> {
    let name = *scene.quoted().first()?;
    let spans: Vec<usize> =
        scene.tagged("span").into_iter().filter(|place| scene.text(*place) == name).collect();
    if let Some(shown) = spans.iter().find(|place| scene.is_shown(**place)) {
        return scene.click(*shown);
    }
    // The outermost folder around it that is closed.
    let mut place = *spans.first()?;
    loop {
        place = scene.parent(place)?;
        let element = scene.element(place);
        if element.tag == "li" && scene.is_shown(place) && scene.text(place) != name {
            let children = scene.view.children(place);
            let folder =
                children.iter().find(|child| has_class(scene.element(**child), "folder"))?;
            return scene.click(*folder);
        }
    }
}

fn odd_or_even(scene: &Scene<'_>) -> Option<String> {
    for row in scene.classed("row") {
        let below = scene.below(row);
        let number =
            below.iter().find(|place| has_class(scene.element(**place), "display-number"))?;
        let number: i64 = scene.text(*number).parse().ok()?;
        let class = if number % 2 == 0 { "even" } else { "odd" };
        let button = *below.iter().find(|place| has_class(scene.element(**place), class))?;
        if !has_class(scene.element(button), "selected") {
            return scene.click(button);
        }
    }
    scene.click(scene.submit()?)
}

/// What stands behind a name in a table.
fn in_table(scene: &Scene<'_>, name: &str) -> Option<String> {
    let cells = scene.tagged("td");
    let at = cells.iter().position(|cell| scene.text(*cell) == name)?;
    Some(scene.text(*cells.get(at + 1)?))
}

fn read_table(scene: &Scene<'_>) -> Option<String> {
    let value = in_table(scene, scene.between("value of ", " into")?)?;
    scene.fill_in(&[(scene.by_id("tt")?, &value)], scene.submit())
}

fn read_table_2(scene: &Scene<'_>) -> Option<String> {
    let mut values = Vec::new();
    for (label, field) in [("ll1", "tt1"), ("ll2", "tt2")] {
        let name = scene.text(scene.by_id(label)?);
        values.push((scene.by_id(field)?, in_table(scene, name.trim_end_matches([':', ' ']))?));
    }
    let values: Vec<(usize, &str)> =
        values.iter().map(|(field, value)| (*field, value.as_str())).collect();
    scene.fill_in(&values, scene.submit())
}

fn search_engine(scene: &Scene<'_>) -> Option<String> {
    let (field, wanted) = (scene.by_id("search-text")?, *scene.quoted().first()?);
    if scene.element(field).value.as_deref() != Some(wanted) {
        return scene.fill(field, wanted);
    }
    let links = |id: &str| -> Option<Vec<usize>> {
        let below = scene.below(scene.by_id(id)?);
        Some(below.into_iter().filter(|place| scene.element(*place).tag == "a").collect())
    };
    let (results, pages) = (links("page-content")?, links("pagination")?);
    if results.is_empty() {
        return scene.click(scene.by_id("search")?);
    }
    let rank = *scene.ordinals().first()?;
    let page = (rank / 3 + 1).to_string();
    let page = pages.into_iter().find(|place| scene.text(*place) == page)?;
    let is_there = scene.parent(page).is_some_and(|item| has_class(scene.element(item), "active"));
    scene.click(if is_there { *results.get(rank % 3)? } else { page })
}

fn solve_for_x(scene: &Scene<'_>) -> Option<String> {
    let text = scene.text(scene.by_id("math-problem")?);
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [left, operator, right, "=", result] = *parts.as_slice() else { return None };
    let number = |text: &str| text.parse::<i64>().ok();
    let result = number(result)?;
    let answer = match (left, operator, right) {
        ("x", "+", known) | (known, "+", "x") => result - number(known)?,
        ("x", "-", known) => result + number(known)?,
        (known, "-", "x") => number(known)? - result,
        _ => return None,
    };
    scene.fill_in(&[(scene.by_id("math-answer")?, &answer.to_string())], scene.submit())
}

fn calculate(scene: &Scene<'_>) -> Option<String> {
    let text = scene.text(scene.by_id("math-problem")?);
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [left, operator, right, "="] = *parts.as_slice() else { return None };
    let (left, right): (i64, i64) = (left.parse().ok()?, right.parse().ok()?);
    let answer = match operator {
        "+" => left + right,
        "-" => left - right,
        "x" => left * right,
        _ => return None,
    };
    scene.fill_in(&[(scene.by_id("math-answer")?, &answer.to_string())], scene.submit())
}

fn read_letters(scene: &Scene<'_>) -> Option<String> {
    let text = scene.text(scene.by_id("captcha")?).replace(' ', "");
    scene.fill_in(&[(scene.by_id("tt")?, &text)], scene.submit())
}

/// What begins and ends as asked for is right, whether or not it is in the list.
fn autocomplete(scene: &Scene<'_>) -> Option<String> {
    let text = scene.quoted().concat();
    scene.fill_in(&[(scene.by_id("tags")?, &text)], scene.submit())
}

fn use_spinner(scene: &Scene<'_>) -> Option<String> {
    let wanted: i64 = scene.between("Select ", " with")?.parse().ok()?;
    let shown: i64 = scene.element(scene.by_id("spinner")?).value.as_deref()?.parse().ok()?;
    let class = match wanted - shown {
        0 => return scene.click(scene.submit()?),
        difference if difference > 0 => "ui-spinner-up",
        _ => "ui-spinner-down",
    };
    scene.click(*scene.classed(class).first()?)
}

fn add_blocks(scene: &Scene<'_>) -> Option<String> {
    let count = |id: &str| -> Option<usize> {
        let below = scene.below(scene.by_id(id)?);
        Some(
            below
                .iter()
                .filter(|place| has_class(scene.element(**place), "addition-block"))
                .count(),
        )
    };
    let sum = (count("visual-1")? + count("visual-2")?).to_string();
    scene.fill_in(&[(scene.by_id("math-answer")?, &sum)], scene.submit())
}

fn find_greatest(scene: &Scene<'_>) -> Option<String> {
    let cards = scene.classed("card");
    let number = |place: &usize| scene.text(*place).parse::<i64>().unwrap_or(i64::MIN);
    let greatest = *cards.iter().max_by_key(|place| number(place))?;
    match has_class(scene.element(greatest), "hidden") {
        true => scene.click(greatest),
        false => scene.click(scene.submit()?),
    }
}

fn buy_ticket(scene: &Scene<'_>) -> Option<String> {
    let mut tickets = Vec::new();
    for flight in scene.classed("flight") {
        let below = scene.below(flight);
        let time = below.iter().find(|place| has_class(scene.element(**place), "time-duration"))?;
        let button = *below.iter().find(|place| scene.element(**place).tag == "button")?;
        let minutes: i64 = scene
            .text(*time)
            .split(' ')
            .filter_map(|part| match part.strip_suffix('h') {
                Some(hours) => Some(60 * hours.parse::<i64>().ok()?),
                None => part.strip_suffix('m')?.parse().ok(),
            })
            .sum();
        let price: i64 = scene.text(button).split('$').nth(1)?.parse().ok()?;
        tickets.push((button, minutes, price));
    }
    let (button, ..) = if scene.goal.contains("cheapest") {
        tickets.iter().min_by_key(|(.., price)| *price)?
    } else if scene.goal.contains("expensive") {
        tickets.iter().max_by_key(|(.., price)| *price)?
    } else if scene.goal.contains("shortest") {
        tickets.iter().min_by_key(|(_, minutes, _)| *minutes)?
    } else {
        tickets.iter().max_by_key(|(_, minutes, _)| *minutes)?
    };
    scene.click(*button)
}

fn choose_date(scene: &Scene<'_>) -> Option<String> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let date = scene.between("Select ", " as the date")?;
    let mut parts = date.split('/').map(|part| part.parse::<usize>().ok());
    let (month, day, year) = (parts.next()??, parts.next()??, parts.next()??);
    let field = scene.by_id("datepicker")?;
    if scene.element(field).value.as_deref() == Some(date) {
        return scene.click(scene.submit()?);
    }
    let picker = scene.by_id("ui-datepicker-div").filter(|place| scene.is_shown(*place));
    let Some(picker) = picker else { return scene.click(field) };
    let below = scene.below(picker);
    let classed =
        |class: &str| below.iter().find(|place| has_class(scene.element(**place), class)).copied();
    let shown_month = scene.text(classed("ui-datepicker-month")?);
    let shown_month = MONTHS.iter().position(|name| *name == shown_month)? + 1;
    let shown_year: usize = scene.text(classed("ui-datepicker-year")?).parse().ok()?;
    match (shown_year * 12 + shown_month).cmp(&(year * 12 + month)) {
        std::cmp::Ordering::Greater => scene.click(classed("ui-datepicker-prev")?),
        std::cmp::Ordering::Less => scene.click(classed("ui-datepicker-next")?),
        std::cmp::Ordering::Equal => {
            let day = day.to_string();
            let is_day = |place: &&usize| {
                scene.element(**place).tag == "a"
                    && has_class(scene.element(**place), "ui-state-default")
                    && scene.text(**place) == day
            };
            scene.click(*below.iter().find(is_day)?)
        }
    }
}

/// The item of a menu with this text: what is in its line, without its own menu.
fn menu_item(scene: &Scene<'_>, name: &str) -> Option<usize> {
    let is_item = |place: &usize| {
        let parent = scene.parent(*place).map(|parent| scene.element(parent).tag.as_str());
        parent == Some("li") && scene.element(*place).tag == "div" && scene.text(*place) == name
    };
    scene.tagged("div").into_iter().find(is_item)
}

fn click_menu(scene: &Scene<'_>) -> Option<String> {
    let path: Vec<usize> = scene
        .goal
        .strip_prefix("Select ")?
        .split('>')
        .map(|name| menu_item(scene, name))
        .collect::<Option<_>>()?;
    let (leaf, above) = path.split_last()?;
    if scene.is_shown(*leaf) {
        return scene.click(*leaf);
    }
    let next = above.iter().rev().find(|place| scene.is_shown(**place))?;
    scene.act("hover", *next)
}

fn click_menu_2(scene: &Scene<'_>) -> Option<String> {
    let menu = scene.by_id("menu")?;
    if !scene.is_shown(menu) {
        return scene.click(scene.by_id("open-menu")?);
    }
    let wanted = *scene.quoted().last()?;
    let item = match wanted.starts_with("ui-icon") {
        false => menu_item(scene, wanted)?,
        true => {
            let icons = scene.classed(wanted);
            let icon = icons.into_iter().find(|place| scene.below(menu).contains(place))?;
            scene.parent(icon)?
        }
    };
    match scene.is_shown(item) {
        true => scene.click(item),
        false => scene.act("hover", menu_item(scene, "Playback")?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: &str, bid: &str, parent: i64) -> Element {
        Element {
            tag: tag.to_owned(),
            bid: bid.to_owned(),
            parent,
            w: 9.0,
            h: 9.0,
            ..Element::default()
        }
    }

    #[test]
    fn players_are_sorted_and_are_of_tasks() {
        let names = tasks_with_oracle();
        assert!(names.is_sorted() && names.len() >= 60);
        assert!(names.iter().all(|name| super::super::task_rows().any(|row| row.name == *name)));
    }

    #[test]
    fn a_form_is_filled_in_and_then_submitted() {
        let mut field = Element {
            kind: "text".to_owned(),
            value: Some(String::new()),
            ..element("input", "7", 0)
        };
        let view = |field: &Element| {
            let mut button = Element { id: "subbtn".to_owned(), ..element("button", "8", 0) };
            button.y = 20.0;
            View::new(vec![element("div", "1", -1), field.clone(), button], String::new(), false)
        };
        let goal = "Enter \"it's\" into the text field and press Submit.";
        assert_eq!(
            next_action("enter-text", goal, &view(&field), Input::Devices).unwrap(),
            "fill('7', \"it's\")"
        );
        field.value = Some("it's".to_owned());
        assert_eq!(
            next_action("enter-text", goal, &view(&field), Input::Devices).unwrap(),
            "click('8')"
        );
        // What lies under another element is pressed by a key.
        field.h = 40.0;
        assert_eq!(
            next_action("enter-text", goal, &view(&field), Input::Devices).unwrap(),
            "press('8', 'Enter')"
        );
        let by_script = next_action("enter-text", goal, &view(&field), Input::Script);
        assert_eq!(by_script.unwrap(), "click('8')");
        assert_eq!(next_action("terminal", goal, &view(&field), Input::Devices), None);
        // Whatever a page shows, a player only is at a loss.
        for task in tasks_with_oracle() {
            let _ = next_action(task, "Select \"", &view(&field), Input::Devices);
            let _ = next_action(task, "", &View::default(), Input::Devices);
        }
    }
}
