//! Conjunctive queries: `openable(r:receptacle) & opened(r:receptacle)`.

use crate::household::error::Fault;

/// One fact of a query with its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryAtom<'a> {
    /// Predicate; starts with `not_` for facts that were explicitly made false.
    pub(crate) predicate: &'a str,
    /// Placeholders: name and type. The name is the type where none is written.
    pub(crate) placeholders: Vec<(&'a str, &'a str)>,
}

/// Parses `predicate(name: type, ...) & ...`.
pub(crate) fn parse_query(text: &str) -> Result<Vec<QueryAtom<'_>>, Fault> {
    let wrong = |reason: &str| {
        Err(Fault::unsupported(
            format!("query `{}`", text.trim()),
            format!("{reason}; expected `predicate(name:type, ...) & ...`"),
        ))
    };
    let mut atoms = Vec::new();
    for conjunct in text.split('&') {
        let conjunct = conjunct.trim();
        let Some((predicate, rest)) = conjunct.split_once('(') else {
            return wrong("an opening parenthesis is missing");
        };
        let Some(inside) = rest.strip_suffix(')') else {
            return wrong("a closing parenthesis is missing");
        };
        let predicate = predicate.trim();
        if !is_name(predicate) {
            return wrong("the name of a predicate is malformed");
        }
        let mut placeholders = Vec::new();
        if !inside.trim().is_empty() {
            for placeholder in inside.split(',') {
                let (name, kind) =
                    placeholder.split_once(':').unwrap_or((placeholder, placeholder));
                let (name, kind) = (name.trim(), kind.trim());
                if !is_name(name) || !is_name(kind) {
                    return wrong("a placeholder is malformed");
                }
                placeholders.push((name, kind));
            }
        }
        atoms.push(QueryAtom { predicate, placeholders });
    }
    Ok(atoms)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '\''))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn atoms_and_types_are_read() {
        let atoms = parse_query("not_in(o:object, r) & holdsany(a : agent)").unwrap();
        assert_eq!(atoms[0].predicate, "not_in");
        assert_eq!(atoms[0].placeholders, [("o", "object"), ("r", "r")]);
        assert_eq!(atoms[1].placeholders, [("a", "agent")]);
    }

    #[test]
    fn malformed_queries_are_refused_by_text() {
        for text in ["", "a", "a(", "a(b:c", "a(b:c) &", "a(b:c:d)", "!a(b)", "a(b) | c(d)"] {
            assert!(parse_query(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|[a-z(),:& ]*") {
            let _ = parse_query(&text);
        }
    }
}
