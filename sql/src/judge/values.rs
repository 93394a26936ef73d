//! Queries with the values of another one in place of their own.

use crate::reader::{TokenKind, first_statement, tokens};

/// Queries that are made at the most.
const MOST: usize = 1_000;
/// Stands for a value.
const SLOT: &str = "valuerare";

/// The queries that come about where values of `gold` are put in place of those of `predicted`, in all ways, but at most a thousand;
/// all in small letters but for the values.
///
/// What counts as a value is as Spider's evaluation finds it: text in quotes; words that are numbers with a point; and words
/// that end in digits and have one character more, which is not `t`, or that are whole numbers.
pub(super) fn with_values_of(gold: &str, predicted: &str) -> impl Iterator<Item = String> {
    let (_, mut values) = words_and_values(gold);
    values.sort();
    values.dedup();
    let (words, _) = words_and_values(predicted);
    let slots = words.iter().filter(|word| *word == SLOT).count();
    let ways = values.len().checked_pow(u32::try_from(slots).unwrap_or(u32::MAX));
    let count = ways.unwrap_or(usize::MAX).min(MOST);
    (0..count).map(move |way| {
        let mut digits = way;
        let filled: Vec<&str> = words
            .iter()
            .map(|word| {
                if word != SLOT {
                    return word.as_str();
                }
                let value = &values[digits % values.len()];
                digits /= values.len();
                value
            })
            .collect();
        filled.join(" ")
    })
}

/// The words of a query in small letters, values replaced by slots; and the values.
fn words_and_values(sql: &str) -> (Vec<String>, Vec<String>) {
    let (sql, _) = first_statement(sql);
    let mut pieces: Vec<String> = Vec::new();
    let mut texts = Vec::new();
    let mut can_end_operand = false;
    let mut sign = false;
    for token in tokens(sql).into_iter().filter(|token| token.kind != TokenKind::Space) {
        if token.text == ";" {
            continue;
        }
        if token.kind == TokenKind::Text && !token.text.starts_with('\'') {
            // The library that is used there knows no bytes: a name, and text behind it.
            let (mark, text) = token.text.split_at(1);
            pieces.extend([mark.to_owned(), text.to_owned()]);
            texts.push(text.to_owned());
            (sign, can_end_operand) = (false, true);
            continue;
        }
        let is_symbol = token.kind == TokenKind::Quoted && token.text.starts_with('"');
        let is_text = token.kind == TokenKind::Text && token.text.starts_with('\'');
        if is_text || is_symbol {
            texts.push(token.text.to_owned());
        }
        match pieces.last_mut() {
            // A sign belongs to its number, unless it stands between two operands.
            Some(last) if sign && token.kind == TokenKind::Number => last.push_str(token.text),
            _ => pieces.push(token.text.replace('\t', "")),
        }
        sign = token.text == "-" && !can_end_operand;
        can_end_operand =
            matches!(token.kind, TokenKind::Word | TokenKind::Number | TokenKind::Quoted)
                || token.text == ")"
                || token.text == "]";
    }
    let mut query = pieces.join(" ");
    for text in &texts {
        query = query.replace(text.trim(), SLOT);
    }
    let mut values = texts;
    let mut words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
    let mut slot_out = |numbers: &[String], words: &mut Vec<String>| {
        for word in words {
            if numbers.contains(word) {
                values.push(std::mem::replace(word, SLOT.to_owned()));
            }
        }
    };
    slot_out(&numbers_with_point(&query), &mut words);
    let query = words.join(" ");
    slot_out(&whole_numbers(&query), &mut words);
    (words.into_iter().map(|word| word.to_lowercase()).collect(), values)
}

/// The matches of `[-+]?\d*\.\d+`.
fn numbers_with_point(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut place = 0;
    while place < bytes.len() {
        let digits =
            |from: usize| bytes[from..].iter().take_while(|it| it.is_ascii_digit()).count();
        let start = place;
        let mut end = place + usize::from(b"+-".contains(&bytes[place]));
        end += digits(end);
        let behind = if bytes.get(end) == Some(&b'.') { digits(end + 1) } else { 0 };
        if behind > 0 {
            end += 1 + behind;
            found.push(text[start..end].to_owned());
            place = end;
        } else {
            place += 1;
        }
    }
    found
}

/// The matches of `[^tT]\d+`, without the space around them.
fn whole_numbers(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut place = 0;
    while place + 1 < chars.len() {
        let digits = chars[place + 1..].iter().take_while(|it| it.is_ascii_digit()).count();
        if digits == 0 || chars[place] == 't' || chars[place] == 'T' {
            place += 1;
            continue;
        }
        let end = place + 1 + digits;
        let matched: String = chars[place..end].iter().collect();
        found.push(matched.trim().to_owned());
        place = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_put_in_place_of_others() {
        let (words, values) =
            words_and_values("SELECT T1.a FROM t AS T1 WHERE b = \"x y\" AND c > -2.5 AND d=10 ;");
        assert_eq!(
            words.join(" "),
            format!("select t1 . a from t as t1 where b = {SLOT} and c > {SLOT} and d = {SLOT}")
        );
        assert_eq!(values, ["\"x y\"", "-2.5", "10"]);
        let all: Vec<String> = with_values_of("a = 'X' or b = 7", "SELECT 1 + q").collect();
        assert_eq!(all, ["select 'X' + q", "select 7 + q"]);
        let many = with_values_of("1 and 20 and 'a' and 'b'", &"x = 10 and ".repeat(40)).count();
        assert_eq!(many, MOST);
        assert_eq!(with_values_of("no values", "x = 10").count(), 0);
        assert_eq!(with_values_of("a = 10", "No Slots").collect::<Vec<_>>(), ["no slots"]);
    }
}
