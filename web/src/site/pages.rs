//! What the sites have in common: pages, forms, and numbers from seeds.

use spar_core::Seed;

use crate::Response;

/// A page with a title, and links to the parts of its site.
pub(crate) fn page(site: &str, title: &str, links: &[(&str, &str)], body: &str) -> Response {
    let links: String =
        links.iter().map(|(to, name)| format!("<a href=\"{to}\">{name}</a> ")).collect();
    Response::html(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} - {site}</title>\
         <style>body{{font:14px sans-serif;margin:8px}}table{{border-collapse:collapse}}td,th{{border:1px solid #ccc;padding:2px 6px;\
         text-align:left}}</style></head><body><nav>{links}</nav><h1>{title}</h1>{body}</body></html>",
        title = escape(title),
    ))
}

/// A text within HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The parameters of a query or of a form.
pub(crate) fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// One of the parameters of a query or of a form, decoded.
pub fn parameter(query: &str, name: &str) -> Option<String> {
    parameters(query).into_iter().find(|(of, _)| of == name).map(|(_, value)| value)
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hexadecimal = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16)
                .ok()
                .filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        match (bytes[at], bytes.get(at + 1..at + 3).and_then(hexadecimal)) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A text within a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(byte))
            }
            b' ' => encoded.push('+'),
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// Numbers from a seed, by name and place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers(pub(crate) Seed);

impl Numbers {
    /// A number below a bound.
    pub(crate) fn below(self, name: &str, place: u64, bound: usize) -> usize {
        (self.0.derive(name, place).as_u64() % bound.max(1) as u64) as usize
    }

    /// One of several things.
    pub(crate) fn choose<'t, T>(self, name: &str, place: u64, items: &'t [T]) -> &'t T {
        &items[self.below(name, place, items.len())]
    }

    /// The same things in another order.
    pub(crate) fn shuffled<T: Clone>(self, name: &str, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(name, place as u64, place + 1));
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_as_they_were_encoded() {
        let text = "a b&c=d/é%";
        assert_eq!(parameter(&format!("x=1&q={}", encode(text)), "q").unwrap(), text);
        assert_eq!(
            parameters("a&b=%zz&c=%4"),
            [("a".into(), "".into()), ("b".into(), "%zz".into()), ("c".into(), "%4".into())]
        );
    }
}
