//! Actions in a policy's words.

/// What a policy wants: WebShop's `search[words]` or `click[what]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShopAction<'a> {
    /// Searches for words, as written.
    Search(&'a str),
    /// Clicks on what is called so, as written.
    Click(&'a str),
}

impl<'a> ShopAction<'a> {
    /// Reads an action; `None` where it is neither.
    ///
    /// It is what `re.match(r'(.+)\[(.+)\]', text)` finds, as in WebShop: the name is what stands before the last bracket of the
    /// first line that has something behind it, and whatever follows the last closing bracket is ignored.
    ///
    /// ```
    /// use spar_shop::ShopAction;
    ///
    /// assert_eq!(ShopAction::read("search[red shoes]"), Some(ShopAction::Search("red shoes")));
    /// assert_eq!(ShopAction::read("click[Buy Now] please"), Some(ShopAction::Click("Buy Now")));
    /// assert_eq!(ShopAction::read("buy[it]"), None);
    /// ```
    pub fn read(text: &'a str) -> Option<Self> {
        let line = text.split('\n').next().unwrap_or_default();
        let close = line.rfind(']')?;
        // At least one character between the brackets, and one before them.
        let inside = line.get(..close)?;
        let last = inside.char_indices().next_back()?.0;
        let open = inside[..last].rfind('[').filter(|open| *open > 0)?;
        let argument = &inside[open + 1..];
        match &line[..open] {
            "search" => Some(Self::Search(argument)),
            "click" => Some(Self::Click(argument)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_read_as_webshops_expression_reads_them() {
        use ShopAction::{Click, Search};
        for (text, expected) in [
            ("search[a]", Some(Search("a"))),
            ("search[ a b ]", Some(Search(" a b "))),
            ("click[< Prev]", Some(Click("< Prev"))),
            ("click[size [cm]]", None),
            ("search[]", None),
            ("search[]]", Some(Search("]"))),
            ("search[[]", Some(Search("["))),
            ("search[[]]", None),
            ("search[a]b]", Some(Search("a]b"))),
            ("search[a\nb]", None),
            ("[a]", None),
            ("Search[a]", None),
            (" search[a]", None),
            ("search[ä]ö", Some(Search("ä"))),
            ("", None),
            ("]", None),
            ("click[a] then click[b]", None),
        ] {
            assert_eq!(ShopAction::read(text), expected, "{text}");
        }
    }
}
