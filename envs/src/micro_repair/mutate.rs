//! Bugs, as changes of one place of a program.

use super::program::{
    Binary, Compare, Expression, Function, Name, Program, Statement, Type, add, binary, int,
};

/// What a bug is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Bug {
    /// Another operator of arithmetic, or `min` for `max`.
    Operator,
    /// A constant that is off by one.
    Constant,
    /// Another comparison.
    Comparison,
    /// A condition that is the other way around.
    Condition,
    /// `and` for `or`.
    Logic,
    /// Operands or arguments that changed places.
    Swapped,
    /// A statement that is missing.
    Removed,
    /// Another variable of the same type.
    Variable,
    /// Something else that is returned.
    Return,
    /// The end of a range that is off by one.
    Bound,
    /// An assignment in place of a change, or a change in place of an assignment.
    Assignment,
}

impl Bug {
    /// All of them.
    pub(super) const ALL: [Self; 11] = [
        Self::Operator,
        Self::Constant,
        Self::Comparison,
        Self::Condition,
        Self::Logic,
        Self::Swapped,
        Self::Removed,
        Self::Variable,
        Self::Return,
        Self::Bound,
        Self::Assignment,
    ];

    /// Its name, a tag of tasks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Constant => "constant",
            Self::Comparison => "comparison",
            Self::Condition => "condition",
            Self::Logic => "logic",
            Self::Swapped => "swapped",
            Self::Removed => "removed",
            Self::Variable => "variable",
            Self::Return => "return",
            Self::Bound => "bound",
            Self::Assignment => "assignment",
        }
    }
}

/// All programs that are one bug away from a program.
pub(super) fn mutants(program: &Program) -> Vec<(Bug, Program)> {
    let mut found = Vec::new();
    for (place, function) in program.functions.iter().enumerate() {
        let scope = Scope { program, function, names: function.parameters.clone() };
        for (bug, body) in scope.block(&function.body) {
            let mut mutant = program.clone();
            mutant.functions[place].body = body;
            found.push((bug, mutant));
        }
    }
    found
}

/// The variables that are known at a place.
#[derive(Clone)]
struct Scope<'a> {
    program: &'a Program,
    function: &'a Function,
    names: Vec<(Name, Type)>,
}

impl Scope<'_> {
    fn with(&self, name: Name, kind: Option<Type>) -> Self {
        let mut scope = self.clone();
        if let Some(kind) = kind
            && scope.names.iter().all(|(known, _)| *known != name)
        {
            scope.names.push((name, kind));
        }
        scope
    }

    fn others(&self, name: Name) -> Vec<Name> {
        let kind = self.names.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let same = |known: &&(Name, Type)| Some(known.1) == kind && known.0 != name;
        self.names.iter().filter(same).map(|(known, _)| *known).collect()
    }

    fn type_of(&self, expression: &Expression) -> Option<Type> {
        match expression {
            Expression::Int(_)
            | Expression::Length(_)
            | Expression::Min(..)
            | Expression::Max(..)
            | Expression::Abs(_)
            | Expression::Count(..) => Some(Type::Int),
            Expression::Text(_) => Some(Type::Text),
            Expression::Bool(_)
            | Expression::Compare(..)
            | Expression::And(..)
            | Expression::Or(..)
            | Expression::Not(_) => Some(Type::Bool),
            Expression::Empty(kind) => Some(*kind),
            Expression::Name(name) => {
                self.names.iter().find(|(known, _)| known == name).map(|(_, kind)| *kind)
            }
            Expression::Binary(_, left, _) => self.type_of(left),
            Expression::Item(of, _) => self.type_of(of).and_then(item_type),
            Expression::Call(name, _) => self.program.function(name).map(|it| it.returns),
        }
    }

    fn block(&self, body: &[Statement]) -> Vec<(Bug, Vec<Statement>)> {
        let mut found = Vec::new();
        let mut scope = self.clone();
        for (place, statement) in body.iter().enumerate() {
            for (bug, changed) in scope.statement(statement) {
                let mut mutant = body.to_vec();
                mutant[place] = changed;
                found.push((bug, mutant));
            }
            // One line that can be missing without leaving a block with nothing in it.
            let is_line = matches!(
                statement,
                Statement::Set(..)
                    | Statement::Change(..)
                    | Statement::Append(..)
                    | Statement::Put(..)
                    | Statement::Break
                    | Statement::Continue
            );
            if is_line && body.len() > 1 {
                let mut mutant = body.to_vec();
                mutant.remove(place);
                found.push((Bug::Removed, mutant));
            }
            if let Statement::Let(name, value) = statement {
                scope = scope.with(name, scope.type_of(value));
            }
        }
        found
    }

    fn statement(&self, statement: &Statement) -> Vec<(Bug, Statement)> {
        let mut found = Vec::new();
        match statement {
            Statement::Let(name, value) => {
                found.extend(lifted(self.expression(value), |it| Statement::Let(name, it)));
            }
            Statement::Set(name, value) => {
                found.extend(lifted(self.expression(value), |it| Statement::Set(name, it)));
                if self.type_of(value) == Some(Type::Int) {
                    let changed = Statement::Change(name, Binary::Add, value.clone());
                    found.push((Bug::Assignment, changed));
                }
            }
            Statement::Change(name, operator, value) => {
                let values = self.expression(value);
                found.extend(lifted(values, |it| Statement::Change(name, *operator, it)));
                if self.type_of(value) == Some(Type::Int) {
                    for other in others_of(*operator) {
                        found.push((Bug::Operator, Statement::Change(name, *other, value.clone())));
                    }
                }
                found.push((Bug::Assignment, Statement::Set(name, value.clone())));
            }
            Statement::Append(name, value) => {
                found.extend(lifted(self.expression(value), |it| Statement::Append(name, it)));
            }
            Statement::Put(name, key, value) => {
                let keys = self.expression(key);
                found.extend(lifted(keys, |it| Statement::Put(name, it, value.clone())));
                let values = self.expression(value);
                found.extend(lifted(values, |it| Statement::Put(name, key.clone(), it)));
            }
            Statement::If(condition, then, otherwise) => {
                let whole = |it| Statement::If(it, then.clone(), otherwise.clone());
                found.extend(lifted(self.expression(condition), whole));
                let negated = match condition {
                    Expression::Compare(operator, left, right) => {
                        Expression::Compare(operator.negated(), left.clone(), right.clone())
                    }
                    other => Expression::Not(Box::new(other.clone())),
                };
                found.push((Bug::Condition, whole(negated)));
                let part = |it| Statement::If(condition.clone(), it, otherwise.clone());
                found.extend(lifted(self.block(then), part));
                let part = |it| Statement::If(condition.clone(), then.clone(), it);
                found.extend(lifted(self.block(otherwise), part));
            }
            Statement::Each(name, of, body) => {
                let ways = self.expression(of);
                found.extend(lifted(ways, |it| Statement::Each(name, it, body.clone())));
                let inside = self.with(name, self.type_of(of).and_then(item_type));
                let bodies = inside.block(body);
                found.extend(lifted(bodies, |it| Statement::Each(name, of.clone(), it)));
            }
            Statement::Range(name, from, to, body) => {
                let whole =
                    |from: &Expression, to| Statement::Range(name, from.clone(), to, body.clone());
                let froms = self.expression(from);
                found.extend(lifted(froms, |it| whole(&it, to.clone())));
                found.extend(lifted(self.expression(to), |it| whole(from, it)));
                let shorter = match to {
                    Expression::Binary(Binary::Add, left, right) if **right == int(1) => {
                        (**left).clone()
                    }
                    to => binary(Binary::Subtract, to.clone(), int(1)),
                };
                found.push((Bug::Bound, whole(from, shorter)));
                let longer = match to {
                    Expression::Binary(Binary::Subtract, left, right) if **right == int(1) => {
                        (**left).clone()
                    }
                    to => add(to.clone(), int(1)),
                };
                found.push((Bug::Bound, whole(from, longer)));
                let inside = self.with(name, Some(Type::Int));
                let bodies = inside.block(body);
                found.extend(lifted(bodies, |it| {
                    Statement::Range(name, from.clone(), to.clone(), it)
                }));
            }
            Statement::While(condition, body) => {
                let conditions = self.expression(condition);
                found.extend(lifted(conditions, |it| Statement::While(it, body.clone())));
                let bodies = self.block(body);
                found.extend(lifted(bodies, |it| Statement::While(condition.clone(), it)));
            }
            Statement::Return(value) => {
                let values = self.expression(value);
                // What is returned instead of a variable is a wrong return.
                let as_return = |(bug, it)| match (value, bug) {
                    (Expression::Name(_), Bug::Variable) => (Bug::Return, it),
                    _ => (bug, it),
                };
                let values = values.into_iter().map(as_return).collect();
                found.extend(lifted(values, Statement::Return));
                match value {
                    Expression::Bool(truth) => {
                        found.push((Bug::Return, Statement::Return(Expression::Bool(!truth))));
                    }
                    _ if self.function.returns == Type::Int => {
                        let more = add(value.clone(), int(1));
                        found.push((Bug::Return, Statement::Return(more)));
                    }
                    _ => {}
                }
            }
            Statement::Break | Statement::Continue => {}
        }
        found
    }

    fn expression(&self, expression: &Expression) -> Vec<(Bug, Expression)> {
        let mut found = Vec::new();
        match expression {
            Expression::Int(number) => {
                found.push((Bug::Constant, int(number + 1)));
                found.push((Bug::Constant, int(number - 1)));
            }
            Expression::Name(name) => {
                found.extend(
                    self.others(name)
                        .into_iter()
                        .map(|other| (Bug::Variable, Expression::Name(other))),
                );
            }
            Expression::Binary(operator, left, right) => {
                let is_int = self.type_of(left) == Some(Type::Int);
                if is_int {
                    for other in others_of(*operator) {
                        let changed = Expression::Binary(*other, left.clone(), right.clone());
                        found.push((Bug::Operator, changed));
                    }
                }
                if left != right && (!is_int || !matches!(operator, Binary::Add | Binary::Multiply))
                {
                    let swapped = Expression::Binary(*operator, right.clone(), left.clone());
                    found.push((Bug::Swapped, swapped));
                }
                self.pair(
                    left,
                    right,
                    |left, right| Expression::Binary(*operator, left, right),
                    &mut found,
                );
            }
            Expression::Compare(operator, left, right) => {
                let is_order = self.type_of(left) == Some(Type::Int);
                for other in Compare::ALL {
                    let is_equality = matches!(other, Compare::Equal | Compare::Other);
                    let is_new = other != *operator && other != operator.negated();
                    if is_new && (is_order || is_equality) {
                        let changed = Expression::Compare(other, left.clone(), right.clone());
                        found.push((Bug::Comparison, changed));
                    }
                }
                self.pair(
                    left,
                    right,
                    |left, right| Expression::Compare(*operator, left, right),
                    &mut found,
                );
            }
            Expression::And(left, right) => {
                found.push((Bug::Logic, Expression::Or(left.clone(), right.clone())));
                self.pair(left, right, Expression::And, &mut found);
            }
            Expression::Or(left, right) => {
                found.push((Bug::Logic, Expression::And(left.clone(), right.clone())));
                self.pair(left, right, Expression::Or, &mut found);
            }
            Expression::Min(left, right) => {
                found.push((Bug::Operator, Expression::Max(left.clone(), right.clone())));
                self.pair(left, right, Expression::Min, &mut found);
            }
            Expression::Max(left, right) => {
                found.push((Bug::Operator, Expression::Min(left.clone(), right.clone())));
                self.pair(left, right, Expression::Max, &mut found);
            }
            Expression::Item(of, place) => {
                self.pair(of, place, Expression::Item, &mut found);
            }
            Expression::Count(of, key) => {
                self.pair(of, key, Expression::Count, &mut found);
            }
            Expression::Not(of) => {
                found.push((Bug::Condition, (**of).clone()));
                found.extend(lifted(self.expression(of), |it| Expression::Not(Box::new(it))));
            }
            Expression::Length(of) => {
                found.extend(lifted(self.expression(of), |it| Expression::Length(Box::new(it))));
            }
            Expression::Abs(of) => {
                found.extend(lifted(self.expression(of), |it| Expression::Abs(Box::new(it))));
            }
            Expression::Call(name, arguments) => {
                if let [left, right] = &arguments[..]
                    && left != right
                    && self.type_of(left) == self.type_of(right)
                {
                    let swapped = vec![right.clone(), left.clone()];
                    found.push((Bug::Swapped, Expression::Call(name, swapped)));
                }
                for (place, argument) in arguments.iter().enumerate() {
                    found.extend(lifted(self.expression(argument), |it| {
                        let mut changed = arguments.clone();
                        changed[place] = it;
                        Expression::Call(name, changed)
                    }));
                }
            }
            Expression::Text(_) | Expression::Bool(_) | Expression::Empty(_) => {}
        }
        found
    }

    fn pair(
        &self,
        left: &Expression,
        right: &Expression,
        whole: impl Fn(Box<Expression>, Box<Expression>) -> Expression,
        found: &mut Vec<(Bug, Expression)>,
    ) {
        let lefts = self.expression(left);
        found.extend(lifted(lefts, |it| whole(Box::new(it), Box::new(right.clone()))));
        let rights = self.expression(right);
        found.extend(lifted(rights, |it| whole(Box::new(left.clone()), Box::new(it))));
    }
}

/// Changes of a part as changes of the whole.
fn lifted<T, U>(parts: Vec<(Bug, T)>, whole: impl Fn(T) -> U) -> Vec<(Bug, U)> {
    parts.into_iter().map(|(bug, part)| (bug, whole(part))).collect()
}

fn item_type(of: Type) -> Option<Type> {
    match of {
        Type::Ints => Some(Type::Int),
        Type::Text | Type::Texts => Some(Type::Text),
        Type::Int | Type::Bool | Type::Counts => None,
    }
}

/// What is written for an operator by mistake.
fn others_of(operator: Binary) -> &'static [Binary] {
    match operator {
        Binary::Add => &[Binary::Subtract, Binary::Multiply],
        Binary::Subtract => &[Binary::Add],
        Binary::Multiply => &[Binary::Add],
        Binary::Divide => &[Binary::Modulo, Binary::Multiply],
        Binary::Modulo => &[Binary::Divide],
    }
}
