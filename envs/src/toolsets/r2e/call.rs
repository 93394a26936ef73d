//! Calls as R2E-Gym's agent reads them: the first of an answer, in tags.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use spar_swe::python_text::strip;

use super::quoted;

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) function: String,
    /// By name, in the order in which a name first stood.
    parameters: Vec<(String, String)>,
}

impl Call {
    pub(super) fn new(function: &str, parameters: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { function: function.to_owned(), parameters: parameters.iter().map(owned).collect() }
    }

    /// The first call of an answer; absent where there is none, or it names no function.
    pub(super) fn read(answer: &str) -> Option<Self> {
        static BLOCK: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?s)<function=.*?</function>").expect("the pattern is valid")
        });
        static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"<function\s*=\s*([^>]+)>").expect("the pattern is valid")
        });
        static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?s)<parameter\s*=\s*([^>]+)>(.*?)</parameter>")
                .expect("the pattern is valid")
        });
        let block = BLOCK.find(answer)?.as_str();
        let function = strip(&FUNCTION.captures(block)?[1]).to_owned();
        if function.is_empty() {
            return None;
        }
        let mut parameters: Vec<(String, String)> = Vec::new();
        for found in PARAMETER.captures_iter(block) {
            let (name, value) = (strip(&found[1]).to_owned(), strip(&found[2]).to_owned());
            // The last one counts, as in Python's dictionaries.
            match parameters.iter_mut().find(|(other, _)| *other == name) {
                Some((_, other)) => *other = value,
                None => parameters.push((name, value)),
            }
        }
        Some(Self { function, parameters })
    }

    /// The command of a shell that carries it out: what is called `command` comes first, without its name.
    pub(super) fn command(&self) -> String {
        let mut words = vec![quoted(&self.function)];
        let is_command = |parameter: &&(String, String)| parameter.0 == "command";
        words.extend(self.parameters.iter().find(is_command).map(|(_, value)| quoted(value)));
        for (name, value) in self.parameters.iter().filter(|it| !is_command(it)) {
            words.extend([quoted(&format!("--{name}")), quoted(value)]);
        }
        words.join(" ")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "<function={}>", self.function)?;
        for (name, value) in &self.parameters {
            writeln!(f, "<parameter={name}>{value}</parameter>")?;
        }
        f.write_str("</function>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_is_read_and_becomes_a_command() {
        let answer = "I look.\n<function = x\n<function=file_editor>\n  <parameter=path> /a b </parameter>\n<parameter=command>view</parameter>\
                      <parameter = old_str>\nit's\n  two\n</parameter></function><function=finish></function>";
        let call = Call::read(answer).unwrap();
        assert_eq!(call.function, "file_editor");
        assert_eq!(call.command(), "file_editor view --path '/a b' --old_str 'it'\"'\"'s\n  two'");
        assert_eq!(Call::read(&call.to_string()), Some(call));
        for none in
            ["", "words", "<function=a>", "<function=></function>", "<function= ></function>"]
        {
            assert_eq!(Call::read(none), None, "{none}");
        }
        // Names are words of a shell as well.
        let odd =
            Call::read("<function=a><parameter=x; rm -rf />1</parameter></function>").unwrap();
        assert_eq!(odd.command(), "a '--x; rm -rf /' 1");
        let twice = Call::read(
            "<function=a><parameter=x>1</parameter><parameter=x>2</parameter></function>",
        );
        assert_eq!(twice.unwrap().command(), "a --x 2");
    }
}
