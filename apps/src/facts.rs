//! What texts say, in whatever form they say it: dates, times, amounts, words.

use crate::moment::{Date, MONTHS, parse_time};

/// Characters of a text that are looked at; records and answers are shorter.
const MOST_READ: usize = 4_000;

/// Something that a text has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A day: `2031-03-14`, `14 March 2031`, `14 March`, `March 14, 2031`.
    Date(Date),
    /// A time of day in minutes: `09:30`, `9:30`.
    Time(i64),
    /// Cents: `12.50`, `12.5`, `$12.50`.
    Amount(i64),
    /// Words, whatever their case.
    Words(String),
}

/// Dates, times and amounts in a text, each once, and its words in small letters.
#[derive(Debug, Default)]
struct Said {
    dates: Vec<Date>,
    times: Vec<i64>,
    amounts: Vec<i64>,
    words: String,
}

/// Whether a text says all of these facts, and no date, time or amount beside them where it is one of those that are asked for:
/// whoever lists what it could be says nothing. Dates without a year are of the year that is demanded.
pub(crate) fn says(text: &str, facts: &[Fact]) -> bool {
    let year = facts.iter().find_map(|fact| match fact {
        Fact::Date(date) => Some(date.civil().0),
        _ => None,
    });
    let said = Said::read(text, year.unwrap_or(1970));
    let (mut dates, mut times, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for fact in facts {
        match fact {
            Fact::Date(date) => dates.push(*date),
            Fact::Time(time) => times.push(*time),
            Fact::Amount(cents) => amounts.push(*cents),
            Fact::Words(words) if said.has_words(words) => {}
            Fact::Words(_) => return false,
        }
    }
    same(&said.dates, &dates) && same(&said.times, &times) && same(&said.amounts, &amounts)
}

/// Whether the same values are in both; where none is demanded, any may be said.
fn same<T: Ord + Copy>(said: &[T], demanded: &[T]) -> bool {
    let set = |values: &[T]| values.iter().copied().collect::<std::collections::BTreeSet<T>>();
    demanded.is_empty() || set(said) == set(demanded)
}

impl Said {
    fn read(text: &str, year: i64) -> Self {
        let text: String = text.chars().take(MOST_READ).collect();
        let tokens: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || ",;()[]\"'!?<>=".contains(c))
            .map(|token| token.trim_matches(|c: char| ".:$€£".contains(c)))
            .filter(|token| !token.is_empty())
            .collect();
        let mut said = Self { words: normal(&text), ..Self::default() };
        let mut place = 0;
        while place < tokens.len() {
            let token = tokens[place];
            // `2031-03-14T09:30` says both.
            let (day, time) = token.split_once('T').unwrap_or((token, ""));
            if let Some(date) = Date::parse(day) {
                said.dates.push(date);
                said.times.extend(parse_time(time));
            } else if let Some((date, taken)) = spelt_date(&tokens[place..], year) {
                said.dates.push(date);
                place += taken - 1;
            } else if let Some(time) = parse_time(token) {
                said.times.push(time);
            } else if let Some(cents) = amount(token) {
                said.amounts.push(cents);
            }
            place += 1;
        }
        said
    }

    fn has_words(&self, words: &str) -> bool {
        let words = normal(words);
        // Whole words, so that `Ann` is not said by `Annabel`.
        format!(" {} ", self.words).contains(&format!(" {words} "))
    }
}

/// `14 March 2031`, `14 March`, `March 14 2031`, `March 14`, and how many tokens that is.
fn spelt_date(tokens: &[&str], year: i64) -> Option<(Date, usize)> {
    let month_of = |token: &str| {
        let token = token.to_lowercase();
        let is_it = |month: &str| {
            let month = month.to_lowercase();
            month == token || (token.len() == 3 && month.starts_with(&token))
        };
        MONTHS.iter().position(|month| is_it(month)).map(|place| place as i64 + 1)
    };
    let day_of = |token: &str| {
        let digits = token.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = &token[digits.len()..];
        let is_plain = ["", "st", "nd", "rd", "th"].contains(&suffix) && digits.len() <= 2;
        if is_plain { digits.parse::<i64>().ok() } else { None }
    };
    let (first, second) = (tokens.first()?, tokens.get(1)?);
    let (day, month) = match (day_of(first), month_of(second)) {
        (Some(day), Some(month)) => (day, month),
        _ => (day_of(second)?, month_of(first)?),
    };
    let given = tokens.get(2).filter(|token| token.len() == 4).and_then(|token| token.parse().ok());
    let taken = if given.is_some() { 3 } else { 2 };
    Some((Date::new(given.unwrap_or(year), month, day)?, taken))
}

/// Cents of `12.50`, `12.5`, `$12` and the like; a whole number counts too.
fn amount(token: &str) -> Option<i64> {
    let token = token.trim_start_matches(['$', '€', '£']);
    let (whole, part) = token.split_once('.').unwrap_or((token, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 9
        || part.len() > 2
        || !is_number(whole)
        || !is_number(part)
    {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = format!("{part:0<2}").parse().ok()?;
    Some(whole * 100 + part)
}

/// Small letters and digits with single spaces between words; `.`, `-`, `/`, `@` and `_` within words stay.
pub(crate) fn normal(text: &str) -> String {
    let lower = text.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || "./-@_+".contains(c);
    let words = lower.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', '-']));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What a question is answered by. The whole answer has to be that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One fact.
    One(Fact),
    /// A whole number.
    Count(i64),
    /// Names in any order, each once.
    Names(Vec<String>),
}

impl Answer {
    /// Whether an answer is the right one, and nothing beside it.
    pub(crate) fn is(&self, given: &str) -> bool {
        let given = given.trim().trim_end_matches('.');
        if given.chars().count() > 400 {
            return false;
        }
        match self {
            Self::One(Fact::Words(words)) => normal(words) == normal(given),
            Self::One(Fact::Amount(cents)) => amount(given) == Some(*cents),
            Self::One(Fact::Time(time)) => parse_time(given) == Some(*time),
            Self::One(Fact::Date(date)) => {
                let tokens: Vec<&str> =
                    given.split([' ', ',']).filter(|token| !token.is_empty()).collect();
                let spelt = spelt_date(&tokens, date.civil().0);
                let spelt = spelt.filter(|(_, taken)| *taken == tokens.len()).map(|(date, _)| date);
                Date::parse(given).or(spelt) == Some(*date)
            }
            Self::Count(count) => given.parse() == Ok(*count),
            Self::Names(names) => {
                let given = given.replace(" and ", ",").replace(['\n', ';'], ",");
                let mut given: Vec<String> =
                    given.split(',').map(normal).filter(|name| !name.is_empty()).collect();
                let mut names: Vec<String> = names.iter().map(|name| normal(name)).collect();
                given.sort();
                names.sort();
                given == names
            }
        }
    }

    /// The answer as the demonstration writes it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::One(fact) => fact.words(),
            Self::Count(count) => count.to_string(),
            Self::Names(names) => names.join(", "),
        }
    }
}

impl Fact {
    /// The fact as the demonstration writes it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Date(date) => date.to_string(),
            Self::Time(minutes) => crate::moment::time_words(*minutes),
            Self::Amount(cents) => crate::arguments::money(*cents),
            Self::Words(words) => words.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_found_in_every_form_and_lists_of_dates_say_nothing() {
        let date = [Fact::Date(Date::parse("2031-03-14").unwrap())];
        for text in [
            "2031-03-14",
            "It is on 2031-03-14.",
            "On 14 March 2031, at noon",
            "March 14, 2031",
            "the 14th March",
            "at 2031-03-14T09:30",
        ] {
            assert!(says(text, &date), "{text}");
        }
        for text in [
            "",
            "14",
            "2031-03-15",
            "2031-03-14 or 2031-03-15",
            "14 March 2031 or 15 March",
            "14 March 2030",
        ] {
            assert!(!says(text, &date), "{text}");
        }
    }

    #[test]
    fn times_amounts_and_words_are_told_apart() {
        let all = [Fact::Time(9 * 60 + 30), Fact::Amount(1_250), Fact::Words("Ann Lee".to_owned())];
        assert!(says("Ann Lee pays $12.50 at 9:30.", &all));
        assert!(!says("Annabel Ann Leeds pays 12.50 at 09:30", &all));
        assert!(!says("Ann Lee pays 12.50 or 13.50 at 09:30", &all));
        assert!(says("whatever 1 2 3, Ann lee", &all[2..]), "other things may be said freely");
    }

    #[test]
    fn an_answer_is_the_whole_answer() {
        let amount = Answer::One(Fact::Amount(1_250));
        assert!(amount.is("12.50") && amount.is(" $12.5. ") && !amount.is("12.50 13.50"));
        let names = Answer::Names(vec!["Ann Lee".to_owned(), "Bo Day".to_owned()]);
        assert!(names.is("bo day, Ann Lee") && names.is("Ann Lee and Bo Day"));
        assert!(
            !names.is("Ann Lee")
                && !names.is("Ann Lee, Bo Day, Cy Fox")
                && !names.is("Ann Lee, Ann Lee, Bo Day")
        );
        let date = Answer::One(Fact::Date(Date::parse("2031-03-14").unwrap()));
        assert!(
            date.is("14 March 2031") && date.is("2031-03-14") && !date.is("2031-03-14 2031-03-15")
        );
        assert!(Answer::Count(3).is("3") && !Answer::Count(3).is("3, 4"));
        let words = Answer::One(Fact::Words("+1 555".to_owned()));
        assert!(words.is("+1 555") && !words.is(&"+1 555 ".repeat(200)));
    }
}
