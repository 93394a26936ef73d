//! How calls are rewritten before they are evaluated.

/// Puts the name of its object before every method, as the program's regular expression does: an identifier, blanks, and
/// a bracket that opens. What stands inside of texts is rewritten too, and blanks between an identifier and a bracket vanish.
pub(crate) fn rewritten<'n>(call: &str, object_of: impl Fn(&str) -> Option<&'n str>) -> String {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let mut out = String::with_capacity(call.len() + 64);
    let mut rest = call;
    while let Some(start) = rest.find(is_word) {
        out.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let blanks =
            after.len() - after.trim_start_matches(spar_python::characters::is_space).len();
        // A match begins at the edge of a word with a letter of ASCII or an underscore.
        let is_name = word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
        if is_name && after[blanks..].starts_with('(') {
            if let Some(object) = object_of(word) {
                out.push_str(object);
                out.push('.');
            }
            out.push_str(word);
            rest = &after[blanks..];
        } else {
            out.push_str(word);
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_get_their_object_also_inside_of_texts() {
        let object = |name: &str| matches!(name, "cd" | "pwd").then_some("fs");
        for (call, text) in [
            ("cd (folder='x')", "fs.cd(folder='x')"),
            ("echo(content='cd (x) pwd(y)')", "echo(content='fs.cd(x) fs.pwd(y)')"),
            ("f(cd(g (1)))", "f(fs.cd(g(1)))"),
            ("1cd(2)", "1cd(2)"),
            ("écd(2)", "écd(2)"),
            ("x.cd(1)", "x.fs.cd(1)"),
            ("cd", "cd"),
        ] {
            assert_eq!(rewritten(call, object), text);
        }
    }
}
