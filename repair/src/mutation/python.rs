//! Operators on Python's syntax tree.

use tree_sitter::Node;

use super::Edit;
use super::operators::{counterpart, neighbours, replace, swap};
use super::scan::{Kind, Source};

type Drafts = Vec<Vec<Edit>>;

/// What a node is to the walk.
pub(super) fn kind(node: Node<'_>, source: &Source<'_>) -> Kind {
    let name = || node.child_by_field_name("name").map(|name| source.text(name).to_owned());
    match node.kind() {
        "function_definition" => name().map_or(Kind::Plain, Kind::Function),
        "class_definition" => name().map_or(Kind::Plain, Kind::Scope),
        // Types tell people and checkers something, and imports and decorators break more than they change.
        "type"
        | "decorator"
        | "import_statement"
        | "import_from_statement"
        | "future_import_statement"
        | "comment"
        | "global_statement"
        | "nonlocal_statement" => Kind::Passed,
        "expression_statement" if is_text(node) => Kind::Passed,
        "if_statement" if is_of_checkers(node, source) => Kind::Passed,
        _ => Kind::Plain,
    }
}

/// Whether a statement is a text alone, as those that document.
fn is_text(statement: Node<'_>) -> bool {
    let mut cursor = statement.walk();
    let mut children = statement.named_children(&mut cursor);
    statement.named_child_count() == 1
        && children.all(|child| matches!(child.kind(), "string" | "concatenated_string"))
}

fn is_of_checkers(node: Node<'_>, source: &Source<'_>) -> bool {
    node.child_by_field_name("condition").is_some_and(|condition| {
        ["TYPE_CHECKING", "__name__"].iter().any(|word| source.text(condition).contains(word))
    })
}

const COMPARISONS: [(&str, &str); 5] =
    [("<", "<="), (">", ">="), ("==", "!="), ("in", "not in"), ("is", "is not")];

pub(super) fn compare_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "comparison_operator" {
        return;
    }
    let mut cursor = node.walk();
    for operator in node.children_by_field_name("operators", &mut cursor) {
        // `not in` may be written with any blanks, and is one node with them.
        let words = source.text(operator).split_whitespace().collect::<Vec<_>>().join(" ");
        drafts
            .extend(counterpart(&COMPARISONS, &words).map(|other| vec![replace(operator, other)]));
    }
}

const ARITHMETIC: [(&str, &str); 6] =
    [("+", "-"), ("*", "//"), ("/", "*"), ("%", "//"), ("&", "|"), ("<<", ">>")];

pub(super) fn operator_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let (operator, assigns) = match node.kind() {
        "binary_operator" => (node.child_by_field_name("operator"), false),
        "augmented_assignment" => (node.child_by_field_name("operator"), true),
        _ => return,
    };
    let Some(operator) = operator else { return };
    // Texts are joined and formatted by operators that have no other meaning for them.
    let is_text = |field| {
        node.child_by_field_name(field)
            .is_some_and(|side| matches!(side.kind(), "string" | "concatenated_string"))
    };
    if is_text("left") || is_text("right") {
        return;
    }
    let word = source.text(operator);
    let word = if assigns { word.trim_end_matches('=') } else { word };
    let other = match word {
        "**" => Some("*"),
        "//" => Some("/"),
        "^" => Some("|"),
        _ => counterpart(&ARITHMETIC, word),
    };
    let equals = if assigns { "=" } else { "" };
    drafts.extend(other.map(|other| vec![replace(operator, format!("{other}{equals}"))]));
}

pub(super) fn operands_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "binary_operator" {
        return;
    }
    let field = |name| node.child_by_field_name(name);
    let (Some(left), Some(right), Some(operator)) =
        (field("left"), field("right"), field("operator"))
    else {
        return;
    };
    let is_plain = |side: Node<'_>| {
        matches!(
            side.kind(),
            "identifier"
                | "attribute"
                | "call"
                | "subscript"
                | "integer"
                | "float"
                | "parenthesized_expression"
                | "list"
                | "tuple"
        )
    };
    let matters =
        matches!(source.text(operator), "-" | "/" | "//" | "%" | "**" | "<<" | ">>" | "+");
    if matters && is_plain(left) && is_plain(right) {
        drafts.push(swap(left, right, source));
    }
}

pub(super) fn logic_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "boolean_operator" {
        return;
    }
    let Some(operator) = node.child_by_field_name("operator") else { return };
    let other = counterpart(&[("and", "or")], source.text(operator));
    drafts.extend(other.map(|other| vec![replace(operator, other)]));
}

pub(super) fn negation_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "not_operator" {
        return;
    }
    if let Some(argument) = node.child_by_field_name("argument") {
        drafts.push(vec![replace(node, source.text(argument))]);
    }
}

pub(super) fn condition_negated(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let condition = match node.kind() {
        "if_statement" | "elif_clause" | "while_statement" => node.child_by_field_name("condition"),
        // `a if condition else b`, whose parts have no names in the grammar.
        "conditional_expression" => node.named_child(1),
        "if_clause" => node.named_child(0),
        _ => None,
    };
    let Some(condition) = condition else { return };
    // A name that is bound in the condition would be bound to something else.
    if condition.kind() == "not_operator" || condition.kind() == "named_expression" {
        return;
    }
    drafts.push(vec![replace(condition, format!("not ({})", source.text(condition)))]);
}

pub(super) fn number_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() == "integer" {
        let others = neighbours(source.text(node));
        drafts.extend(others.into_iter().map(|other| vec![replace(node, other)]));
    }
}

pub(super) fn boolean_changed(node: Node<'_>, _: &Source<'_>, drafts: &mut Drafts) {
    match node.kind() {
        "true" => drafts.push(vec![replace(node, "False")]),
        "false" => drafts.push(vec![replace(node, "True")]),
        _ => {}
    }
}

pub(super) fn string_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "string" || node.named_child_count() != 3 {
        return;
    }
    let Some(content) = node.named_child(1).filter(|part| part.kind() == "string_content") else {
        return;
    };
    // Escapes are nodes of their own, of which no half may be left.
    let text = source.text(content);
    if content.named_child_count() > 0 || text.contains(['\\', '\n']) {
        return;
    }
    if let Some((last, _)) = text.char_indices().next_back() {
        drafts.push(vec![replace(content, &text[..last])]);
    }
}

/// The arguments of a call, where all of them are plain ones in a list.
fn arguments(node: Node<'_>) -> Vec<Node<'_>> {
    let list = node
        .child_by_field_name("arguments")
        .filter(|list| node.kind() == "call" && list.kind() == "argument_list");
    let Some(list) = list else { return Vec::new() };
    let mut cursor = list.walk();
    list.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

pub(super) fn arguments_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let is_placed = |node: &Node<'_>| {
        !matches!(node.kind(), "keyword_argument" | "list_splat" | "dictionary_splat")
    };
    for pair in arguments(node).windows(2) {
        if pair.iter().all(is_placed) && source.text(pair[0]) != source.text(pair[1]) {
            drafts.push(swap(pair[0], pair[1], source));
        }
    }
}

pub(super) fn argument_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let arguments = arguments(node);
    for (index, argument) in arguments.iter().enumerate() {
        if argument.kind() != "keyword_argument" {
            continue;
        }
        let span = match (
            index.checked_sub(1).map(|before| arguments[before]),
            arguments.get(index + 1),
        ) {
            (Some(before), _) => before.end_byte()..argument.end_byte(),
            (None, Some(next)) => argument.start_byte()..next.start_byte(),
            (None, None) => argument.byte_range(),
        };
        // A comment between them would go as well.
        if !source.between(span.start, span.end).contains('#') {
            drafts.push(vec![Edit { span, replacement: String::new() }]);
        }
    }
}

const CALLS: [(&str, &str); 14] = [
    ("min", "max"),
    ("any", "all"),
    ("startswith", "endswith"),
    ("lower", "upper"),
    ("lstrip", "rstrip"),
    ("ljust", "rjust"),
    ("split", "rsplit"),
    ("partition", "rpartition"),
    ("find", "rfind"),
    ("append", "extend"),
    ("keys", "values"),
    ("union", "intersection"),
    ("floor", "ceil"),
    ("issubset", "issuperset"),
];

pub(super) fn call_changed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "call" {
        return;
    }
    let Some(function) = node.child_by_field_name("function") else { return };
    let name = match function.kind() {
        "identifier" => Some(function),
        "attribute" => function.child_by_field_name("attribute"),
        _ => None,
    };
    let Some(name) = name else { return };
    let other = match source.text(name) {
        "sorted" => Some("list"),
        "strip" => Some("lstrip"),
        word => counterpart(&CALLS, word),
    };
    drafts.extend(other.map(|other| vec![replace(name, other)]));
}

pub(super) fn statement_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    let removable = match node.kind() {
        "raise_statement" | "delete_statement" => true,
        "expression_statement" => node.named_child(0).is_some_and(|inner| match inner.kind() {
            "call" | "augmented_assignment" | "await" => true,
            // A name that is not bound any more mostly breaks at once.
            "assignment" => inner
                .child_by_field_name("left")
                .is_some_and(|left| matches!(left.kind(), "attribute" | "subscript")),
            _ => false,
        }),
        _ => false,
    };
    if removable && source.begins_line(node) {
        drafts.push(vec![replace(node, "pass")]);
    }
}

pub(super) fn branch_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    match node.kind() {
        "if_statement" if node.child_by_field_name("alternative").is_none() => {
            drafts.push(vec![replace(node, "pass")]);
        }
        "elif_clause" | "else_clause"
            if node.parent().is_some_and(|above| above.kind() == "if_statement") =>
        {
            // With the line end and blanks before it, so that no empty line stays.
            let Some(before) = node.prev_sibling() else { return };
            let start = before.end_byte();
            if source
                .between(start, node.start_byte())
                .bytes()
                .all(|byte| byte.is_ascii_whitespace())
            {
                drafts
                    .push(vec![Edit { span: start..node.end_byte(), replacement: String::new() }]);
            }
        }
        _ => {}
    }
}

pub(super) fn branches_swapped(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    match node.kind() {
        "if_statement" => {
            let mut cursor = node.walk();
            let alternatives: Vec<_> =
                node.children_by_field_name("alternative", &mut cursor).collect();
            let &[alternative] = &alternatives[..] else { return };
            if alternative.kind() != "else_clause" {
                return;
            }
            let bodies =
                (node.child_by_field_name("consequence"), alternative.child_by_field_name("body"));
            if let (Some(one), Some(other)) = bodies {
                drafts.push(swap(one, other, source));
            }
        }
        "conditional_expression" => {
            if let (Some(one), Some(other)) = (node.named_child(0), node.named_child(2)) {
                drafts.push(swap(one, other, source));
            }
        }
        _ => {}
    }
}

pub(super) fn loop_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if matches!(node.kind(), "for_statement" | "while_statement") && source.begins_line(node) {
        drafts.push(vec![replace(node, "pass")]);
    }
}

pub(super) fn jump_changed(node: Node<'_>, _: &Source<'_>, drafts: &mut Drafts) {
    match node.kind() {
        "break_statement" => drafts.push(vec![replace(node, "continue")]),
        "continue_statement" => drafts.push(vec![replace(node, "break")]),
        _ => {}
    }
}

pub(super) fn result_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() == "return_statement"
        && let Some(value) = node.named_child(0)
        && source.text(value) != "None"
    {
        drafts.push(vec![replace(node, "return None")]);
    }
}

pub(super) fn handler_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "except_clause" {
        return;
    }
    let (Some(above), Some(before)) = (node.parent(), node.prev_sibling()) else { return };
    let mut cursor = above.walk();
    let handlers = above
        .named_children(&mut cursor)
        .filter(|child| matches!(child.kind(), "except_clause" | "finally_clause"));
    let start = before.end_byte();
    if handlers.count() > 1
        && source.between(start, node.start_byte()).bytes().all(|byte| byte.is_ascii_whitespace())
    {
        drafts.push(vec![Edit { span: start..node.end_byte(), replacement: String::new() }]);
    }
}

pub(super) fn body_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "function_definition" {
        return;
    }
    let Some(body) = node.child_by_field_name("body") else { return };
    let mut cursor = body.walk();
    let statements: Vec<_> =
        body.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect();
    let documented = usize::from(
        statements
            .first()
            .is_some_and(|first| first.kind() == "expression_statement" && is_text(*first)),
    );
    // A body of one statement is what other operators change.
    let [first, .., last] = &statements[documented..] else { return };
    if source.begins_line(*first) {
        let span = first.start_byte()..last.end_byte();
        drafts.push(vec![Edit { span, replacement: "raise NotImplementedError".to_owned() }]);
    }
}

pub(super) fn method_removed(node: Node<'_>, source: &Source<'_>, drafts: &mut Drafts) {
    if node.kind() != "function_definition" {
        return;
    }
    let whole = match node.parent() {
        Some(above) if above.kind() == "decorated_definition" => above,
        _ => node,
    };
    let in_class = whole.parent().filter(|block| {
        block.kind() == "block"
            && block.parent().is_some_and(|above| above.kind() == "class_definition")
    });
    let Some(block) = in_class else { return };
    let Some(before) = whole.prev_sibling() else {
        return;
    };
    // Its comments stay: they are siblings, and belong to whatever comes next as well.
    if block.named_child_count() < 2
        || before.kind() == "comment"
        || source.indentation(whole).is_none()
    {
        return;
    }
    let span = before.end_byte()..whole.end_byte();
    if source.between(span.start, whole.start_byte()).bytes().all(|byte| byte.is_ascii_whitespace())
    {
        drafts.push(vec![Edit { span, replacement: String::new() }]);
    }
}
