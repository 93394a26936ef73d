//! What is known of tasks.

/// A task of MiniWoB++.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRow {
    /// Its name, that of its page.
    pub name: &'static str,
    /// Whether an episode in the page of the one before shows what one in a page that was loaded anew shows. Where it is
    /// not, the page keeps something of the episode before.
    pub is_safe_in_page: bool,
    /// Whether it does where the accessibility tree is not read.
    pub is_safe_without_tree: bool,
}

/// Tasks whose pages keep something of the episode before, found by playing each in both ways
/// (`chromium_miniwob_shows_the_same_in_a_page_that_goes_on`).
const KEEPS_SOMETHING: &[&str] = &[
    "book-flight",
    "book-flight-nodelay",
    "chase-circle",
    "moving-items",
    "search-engine",
    "use-spinner",
];

/// Tasks with widgets of jQuery UI that would keep something of the episode before, were they not made anew.
const RENEWS: &[&str] = &[
    "drag-items",
    "drag-items-grid",
    "drag-sort-numbers",
    "form-sequence",
    "use-autocomplete",
    "use-autocomplete-nodelay",
    "use-slider",
    "use-slider-2",
];

/// Tasks with labels around boxes, of whose texts Chromium does not always tell in the accessibility tree of a page that goes on.
const HAS_LABELS: &[&str] = &[
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-soft",
    "click-checkboxes-transfer",
    "click-option",
];

const NAMES: &[&str] = &[
    "ascending-numbers",
    "bisect-angle",
    "book-flight",
    "book-flight-nodelay",
    "button-delay",
    "buy-ticket",
    "chase-circle",
    "choose-date",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "choose-list",
    "circle-center",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-soft",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-collapsible-nodelay",
    "click-color",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-menu",
    "click-menu-2",
    "click-option",
    "click-pie",
    "click-pie-nodelay",
    "click-scroll-list",
    "click-shades",
    "click-shape",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "click-widget",
    "copy-paste",
    "copy-paste-2",
    "count-shape",
    "count-sides",
    "daily-calendar",
    "drag-box",
    "drag-circle",
    "drag-cube",
    "drag-items",
    "drag-items-grid",
    "drag-shapes",
    "drag-shapes-2",
    "drag-single-shape",
    "drag-sort-numbers",
    "draw-circle",
    "draw-line",
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk",
    "email-inbox-important",
    "email-inbox-nl-turk",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "enter-date",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "enter-time",
    "find-greatest",
    "find-midpoint",
    "find-word",
    "focus-text",
    "focus-text-2",
    "form-sequence",
    "form-sequence-2",
    "form-sequence-3",
    "generate-number",
    "grid-coordinate",
    "guess-number",
    "highlight-text",
    "highlight-text-2",
    "hot-cold",
    "hover-shape",
    "identify-shape",
    "login-user",
    "login-user-popup",
    "moving-items",
    "multi-layouts",
    "multi-orderings",
    "navigate-tree",
    "number-checkboxes",
    "odd-or-even",
    "order-food",
    "phone-book",
    "read-table",
    "read-table-2",
    "resize-textarea",
    "right-angle",
    "scroll-text",
    "scroll-text-2",
    "search-engine",
    "sign-agreement",
    "simon-says",
    "simple-algebra",
    "simple-arithmetic",
    "social-media",
    "social-media-all",
    "social-media-some",
    "stock-market",
    "terminal",
    "text-editor",
    "text-transform",
    "tic-tac-toe",
    "unicode-test",
    "use-autocomplete",
    "use-autocomplete-nodelay",
    "use-colorwheel",
    "use-colorwheel-2",
    "use-slider",
    "use-slider-2",
    "use-spinner",
    "visual-addition",
];

/// All tasks of the package, in the order of their names.
pub fn task_rows() -> impl ExactSizeIterator<Item = TaskRow> {
    NAMES.iter().map(|name| TaskRow {
        name,
        is_safe_in_page: is_safe_in_page(name, true),
        is_safe_without_tree: is_safe_in_page(name, false),
    })
}

/// Whether an episode in the page of the one before shows the same; unknown tasks are not.
pub(super) fn is_safe_in_page(task: &str, reads_tree: bool) -> bool {
    let is_told_of = !reads_tree || !HAS_LABELS.contains(&task);
    NAMES.contains(&task) && !KEEPS_SOMETHING.contains(&task) && is_told_of
}

/// Whether its widgets are made anew with every episode.
pub(super) fn renews(task: &str) -> bool {
    RENEWS.contains(&task)
}

/// Whether its oracle looks at colours.
pub(super) fn needs_colors(task: &str) -> bool {
    ["click-color", "click-shades"].contains(&task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_marks_are_of_tasks() {
        assert_eq!(NAMES.len(), 130);
        assert!(NAMES.is_sorted());
        assert!(
            KEEPS_SOMETHING.iter().chain(HAS_LABELS).chain(RENEWS).all(|name| NAMES.contains(name))
        );
        let of = |is_safe: fn(&TaskRow) -> bool| task_rows().filter(is_safe).count();
        assert_eq!(of(|row| row.is_safe_without_tree), 130 - KEEPS_SOMETHING.len());
        assert_eq!(of(|row| row.is_safe_in_page), 130 - KEEPS_SOMETHING.len() - HAS_LABELS.len());
        assert!(!is_safe_in_page("nothing", false));
    }
}
