//! Texts with places in them, in Jinja's syntax.

use minijinja::{Environment, UndefinedBehavior, Value};

/// Templates of a toolset, each of which could be written with what it will be given.
#[derive(Debug)]
pub(super) struct Templates(Environment<'static>);

impl Templates {
    /// No templates.
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // One that a user has written ends, whatever it says.
        environment.set_fuel(Some(50_000_000));
        Self(environment)
    }

    /// Adds a template, and tries it on `values`; what is wrong with it is added to `problems`.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        source: String,
        values: Value,
        problems: &mut Vec<String>,
    ) {
        if let Err(error) = self.0.add_template_owned(name, source) {
            problems.push(format!("its `{name}` is no template: {error}"));
        } else if let Err(error) = self.render(name, values) {
            problems.push(format!("its `{name}` cannot be written: {error}"));
        }
    }

    /// Writes a template.
    ///
    /// # Errors
    ///
    /// Where it asks for what it is not given, or does without end.
    pub(super) fn render(&self, name: &str, values: Value) -> Result<String, minijinja::Error> {
        self.0.get_template(name)?.render(values)
    }

    /// Writes a template; where it cannot be, why.
    pub(super) fn written(&self, name: &str, values: Value) -> String {
        self.render(name, values)
            .unwrap_or_else(|error| format!("[the template `{name}` cannot be written: {error}]"))
    }
}
