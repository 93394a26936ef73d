//! Operators on Rust's syntax tree.

use tree_sitter::Node;

use super::Edit;
use super::operators::{counterpart, neighbours, replace, swap};
use super::scan::{Kind, Source};

type Drafts = Vec<Vec<Edit>>;

/// What a node is to the walk.
pub(super) fn kind(node: Node<'_>, source: &Source<'_>) -> Kind {
    let field = |name| node.child_by_field_name(name).map(|found| source.text(found).to_owned());
    match node.kind() {
        "function_item" | "mod_item" | "impl_item" | "trait_item" if is_of_tests(node, source) => {
            Kind::Passed
        }
        // What is evaluated while compiling mostly breaks there.
        "function_item" if is_const(node, source) => Kind::Passed,
        "function_item" => field("name").map_or(Kind::Plain, Kind::Function),
        "mod_item" | "trait_item" => field("name").map_or(Kind::Plain, Kind::Scope),
        "impl_item" => field("type").map_or(Kind::Plain, Kind::Scope),
        "attribute_item"
        | "inner_attribute_item"
        | "use_declaration"
        | "line_comment"
        | "block_comment"
        | "macro_definition"
        | "macro_invocation"
        | "const_item"
        | "static_item"
        | "struct_item"
        | "enum_item"
        | "type_item"
        | "generic_type"
        | "reference_type"
        | "array_type"
        | "type_arguments"
        | "type_parameters"
        | "where_clause" => Kind::Passed,
        _ => Kind::Plain,
    }
}

/// Whether an attribute before the item makes it part of the tests.
fn is_of_tests(node: Node<'_>, source: &Source<'_>) -> bool {
    let mut before = node.prev_sibling();
    while let Some(sibling) = before {
        match sibling.kind() {
            "attribute_item" => {
                let text = source.text(sibling);
                if text.contains("test") || text.contains("proptest") {
                    return true;
                }
            }
            "line_comment" | "block_comment" => {}
            _ => return false,
        }
        before = sibling.prev_sibling();
    }
    false
}

fn is_const(node: Node<'_>, source: &Source<'_>) -> bool {
    let mut cursor = node.walk();
    let mut children = node.named_children(&mut cursor);
    children
        .any(|child| child.kind() == "function_modifiers" && source.text(child).contains("const"))
}

/// The operator of an expression with two sides.
fn operator<'a>(node: Node<'a>) -> Option<Node<'a>> {
    node.child_by_field_name("operator").filter(|_| node.kind() == "binary_expression")
}

const COMPARISONS: [(&str, &str); 3] = [("<", "<="), (">", ">="), ("==", "!=")];

pub(super) fn compare_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let Some(operator) = operator(node) else { return };
    let other = counterpart(&COMPARISONS, source.text(operator));
    drafts.extend(other.map(|other| vec![replace(operator, other)]));
}

const ARITHMETIC: [(&str, &str); 5] =
    [("+", "-"), ("*", "/"), ("%", "/"), ("&", "|"), ("<<", ">>")];

pub(super) fn operator_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let (found, assigns) = match node.kind() {
        "compound_assignment_expr" => (node.child_by_field_name("operator"), true),
        _ => (operator(node), false),
    };
    let Some(found) = found else { return };
    let word = source.text(found);
    let word = if assigns { word.trim_end_matches('=') } else { word };
    let other = match word {
        "^" => Some("|"),
        _ => counterpart(&ARITHMETIC, word),
    };
    let equals = if assigns { "=" } else { "" };
    drafts.extend(other.map(|other| vec![replace(found, format!("{other}{equals}"))]));
}

pub(super) fn operands_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let Some(operator) = operator(node) else { return };
    let field = |name| node.child_by_field_name(name);
    let (Some(left), Some(right)) = (field("left"), field("right")) else { return };
    let is_plain = |side: Node<'_>| {
        matches!(
            side.kind(),
            "identifier"
                | "field_expression"
                | "call_expression"
                | "index_expression"
                | "integer_literal"
                | "float_literal"
                | "parenthesized_expression"
        )
    };
    if matches!(source.text(operator), "-" | "/" | "%" | "<<" | ">>")
        && is_plain(left)
        && is_plain(right)
    {
        drafts.push(swap(left, right, source));
    }
}

pub(super) fn logic_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let Some(operator) = operator(node) else { return };
    let other = counterpart(&[("&&", "||")], source.text(operator));
    drafts.extend(other.map(|other| vec![replace(operator, other)]));
}

pub(super) fn negation_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() == "unary_expression"
        && source.text(node).starts_with('!')
        && let Some(inner) = node.named_child(0)
    {
        drafts.push(vec![replace(node, source.text(inner))]);
    }
}

pub(super) fn condition_negated(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if !matches!(node.kind(), "if_expression" | "while_expression") {
        return;
    }
    let Some(condition) = node.child_by_field_name("condition") else { return };
    // A `let` binds names, which only holds where it matched.
    if matches!(condition.kind(), "let_condition" | "let_chain")
        || source.text(condition).starts_with('!')
    {
        return;
    }
    drafts.push(vec![replace(condition, format!("!({})", source.text(condition)))]);
}

pub(super) fn number_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() == "integer_literal" {
        let others = neighbours(source.text(node));
        drafts.extend(others.into_iter().map(|other| vec![replace(node, other)]));
    }
}

pub(super) fn boolean_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() == "boolean_literal" {
        let other = counterpart(&[("true", "false")], source.text(node));
        drafts.extend(other.map(|other| vec![replace(node, other)]));
    }
}

pub(super) fn string_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "string_literal" || node.named_child_count() != 1 {
        return;
    }
    let Some(content) = node.named_child(0).filter(|part| part.kind() == "string_content") else {
        return;
    };
    let text = source.text(content);
    if let Some((last, _)) = text.char_indices().next_back().filter(|_| !text.contains('\n')) {
        drafts.push(vec![replace(content, &text[..last])]);
    }
}

pub(super) fn arguments_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "call_expression" {
        return;
    }
    let Some(list) = node.child_by_field_name("arguments") else { return };
    let mut cursor = list.walk();
    let arguments: Vec<_> = list
        .named_children(&mut cursor)
        .filter(|child| {
            !matches!(child.kind(), "line_comment" | "block_comment" | "attribute_item")
        })
        .collect();
    for pair in arguments.windows(2) {
        if source.text(pair[0]) != source.text(pair[1]) {
            drafts.push(swap(pair[0], pair[1], source));
        }
    }
}

const CALLS: [(&str, &str); 14] = [
    ("min", "max"),
    ("any", "all"),
    ("starts_with", "ends_with"),
    ("is_some", "is_none"),
    ("is_ok", "is_err"),
    ("to_lowercase", "to_uppercase"),
    ("to_ascii_lowercase", "to_ascii_uppercase"),
    ("trim_start", "trim_end"),
    ("find", "rfind"),
    ("first", "last"),
    ("push_front", "push_back"),
    ("pop_front", "pop_back"),
    ("floor", "ceil"),
    ("and_then", "or_else"),
];

pub(super) fn call_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "call_expression" {
        return;
    }
    let Some(function) = node.child_by_field_name("function") else { return };
    let name = match function.kind() {
        "identifier" => Some(function),
        "field_expression" => function.child_by_field_name("field"),
        "scoped_identifier" => function.child_by_field_name("name"),
        _ => None,
    };
    let Some(name) = name else { return };
    let other = match source.text(name) {
        "trim" => Some("trim_start"),
        word => counterpart(&CALLS, word),
    };
    drafts.extend(other.map(|other| vec![replace(name, other)]));
}

pub(super) fn statement_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "expression_statement" || !source.text(node).ends_with(';') {
        return;
    }
    let Some(inner) = node.named_child(0) else { return };
    if matches!(
        inner.kind(),
        "call_expression" | "assignment_expression" | "compound_assignment_expr"
    ) {
        // A lone semicolon would be linted; nothing at all is what a person forgets.
        drafts.push(vec![replace(node, "")]);
    }
}

pub(super) fn branch_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "if_expression" || node.child_by_field_name("alternative").is_some() {
        return;
    }
    if let Some(above) = node.parent().filter(|above| above.kind() == "expression_statement") {
        drafts.push(vec![replace(above, "")]);
    } else if let Some(clause) = node.parent().filter(|above| above.kind() == "else_clause")
        && let Some(before) = clause.prev_sibling()
        && source
            .between(before.end_byte(), clause.start_byte())
            .bytes()
            .all(|byte| byte.is_ascii_whitespace())
    {
        let span = before.end_byte()..clause.end_byte();
        drafts.push(vec![Edit { span, replacement: String::new() }]);
    }
}

pub(super) fn branches_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "if_expression" {
        return;
    }
    let one = node.child_by_field_name("consequence");
    let other = node
        .child_by_field_name("alternative")
        .and_then(|clause| clause.named_child(0))
        .filter(|body| body.kind() == "block");
    if let (Some(one), Some(other)) = (one, other) {
        drafts.push(swap(one, other, source));
    }
}

pub(super) fn loop_removed(node: Node<'_>, _: &Source<'_>, drafts: &mut Drafts) {
    if matches!(node.kind(), "for_expression" | "while_expression")
        && let Some(above) = node.parent().filter(|above| above.kind() == "expression_statement")
    {
        drafts.push(vec![replace(above, "")]);
    }
}

pub(super) fn jump_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if matches!(node.kind(), "break_expression" | "continue_expression") {
        let other = counterpart(&[("break", "continue")], source.text(node));
        drafts.extend(other.map(|other| vec![replace(node, other)]));
    }
}

pub(super) fn body_removed(node: Node<'_>, _: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "function_item" {
        return;
    }
    let Some(body) = node.child_by_field_name("body") else { return };
    if body.named_child_count() > 1 {
        drafts.push(vec![replace(body, "{\n        todo!()\n    }")]);
    }
}
