//! Servers of tools, by Harbor's rules.

use std::sync::LazyLock;

use regex::Regex;

use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::instance::{Instance, McpServer, McpTransport};

/// A variable of the host in a text, with what holds where it is absent.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}").expect("the pattern is valid")
});

pub(super) fn read(
    fields: &mut Columns,
    instance: &mut Instance,
) -> Result<Vec<McpServer>, LoadError> {
    let mut found = Vec::new();
    for mut server in fields.objects("mcp_servers", None)? {
        let name = server.text("name")?;
        let words = ["stdio", "sse", "streamable-http", "http"];
        let transport = server.choice("transport", &words)?.unwrap_or("sse");
        let (url, command) = (server.optional_text("url")?, server.optional_text("command")?);
        let args = server.optional_list("args")?.unwrap_or_default();
        let headers = server.texts("headers")?;
        for (header, value) in &headers {
            if let Some(problem) = header_problem(header, value) {
                return Err(server.wrong("headers", format!("`{}` {problem}", shortened(header))));
            }
        }
        let need = |value: Option<String>, field| {
            value
                .ok_or_else(|| server.wrong(field, format!("the transport `{transport}` needs it")))
        };
        let transport = match transport {
            "stdio" if !headers.is_empty() => {
                return Err(server.wrong("headers", "they go with transports over HTTP alone"));
            }
            "stdio" => McpTransport::Stdio { command: need(command, "command")?, args },
            "sse" => McpTransport::Sse { url: need(url, "url")?, headers },
            _ => McpTransport::StreamableHttp { url: need(url, "url")?, headers },
        };
        server.finish(instance);
        found.push(McpServer { name, transport });
    }
    Ok(found)
}

/// Why a header cannot stand there, as a part of a sentence. What is secret has to come from the host.
fn header_problem(name: &str, value: &str) -> Option<&'static str> {
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte));
    if !is_name {
        return Some("is no name of a header");
    }
    if value.contains(['\r', '\n']) {
        return Some("has a line end in its value");
    }
    let defaults = || {
        VARIABLE
            .captures_iter(value)
            .map(|found| (found[1].to_owned(), found.get(2).map(|text| text.as_str())))
    };
    if VARIABLE.replace_all(value, " ").contains("${")
        || defaults().any(|(_, default)| default.is_some_and(|text| text.contains("${")))
    {
        return Some("has a variable that is not written as `${NAME}` or `${NAME:-DEFAULT}`");
    }
    let is_secret =
        is_secret(name) || ["cookie", "set-cookie"].contains(&name.to_ascii_lowercase().as_str());
    let has_default = defaults().any(|(variable, default)| {
        default.is_some_and(|text| !text.is_empty()) && (is_secret || self::is_secret(&variable))
    });
    static FROM_HOST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*(?:[A-Za-z]+\s+)?\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}(?:[\s:-]*\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\})*\s*$")
            .expect("the pattern is valid")
    });
    let is_literal = is_secret && !value.trim().is_empty() && !FROM_HOST.is_match(value);
    (has_default || is_literal)
        .then_some("holds a secret: name the variable that has it, as in `Bearer ${TOKEN}`")
}

/// Whether a name is one of a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    let is_token =
        name.match_indices("TOKEN").any(|(at, word)| !name[at + word.len()..].starts_with('S'));
    is_token
        || ["KEY", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"]
            .iter()
            .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_from_the_host() {
        for (name, value) in [
            ("Authorization", "Bearer ${TOKEN}"),
            ("X-Api-Key", "${ID}:${SECRET:-}"),
            ("Accept", "text/plain"),
            ("Accept", "${KIND:-text}"),
            ("Max-Tokens", "100"),
        ] {
            assert_eq!(header_problem(name, value), None, "{name}: {value}");
        }
        for (name, value) in [
            ("Authorization", "Bearer abc"),
            ("Authorization", "Bearer ${TOKEN:-abc}"),
            ("Accept", "${MY_TOKEN:-abc}"),
            ("Cookie", "a=b"),
            ("a b", "c"),
            ("A", "b\nc"),
            ("A", "${1}"),
        ] {
            assert!(header_problem(name, value).is_some(), "{name}: {value}");
        }
    }
}
