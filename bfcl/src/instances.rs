//! The objects of an episode, and how calls are carried out on them.

use std::sync::Arc;

use spar_python::{
    Arguments, Dict, Exception, ExceptionKind, LiteralCall, MAX_EXPRESSION_BYTES, Outcome, Scope,
    Signature, Value, eval, from_json, is_keyword, json_dumps, to_str,
};

use crate::call_text::rewritten;
use crate::instance::Instance;
use crate::{BfclError, Class, Process};

/// Functions that are refused whatever they are.
const REFUSED: [&str; 8] = ["kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"];

/// The objects of the classes of an entry. A clone costs a count for what each holds, and is independent from then on.
#[derive(Debug, Clone)]
pub struct Instances {
    objects: Arc<[Instance]>,
    names: Arc<Names>,
    /// Bytes of all arguments and results so far.
    moved: usize,
}

/// Arguments that nest more deeply are refused, so that what is stored can be gone over.
const MAX_NESTING: usize = 100;

/// The module of the program's classes.
const MODULE: &str = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code";

/// Arguments and results of all calls have so many bytes together, so that neither what is stored nor what is told grows
/// without bounds: a short expression makes megabytes.
const MAX_MOVED: usize = 64 << 20;

/// Names of objects have fewer bytes, or calls are not read the short way.
const MAX_NAME: usize = 1000;

/// What the objects are called.
#[derive(Debug)]
struct Names {
    /// In the order of the objects.
    objects: Vec<String>,
    /// Whether each is a name of Python's, and another one than the others. Else a call may mean something else once
    /// the name of an object stands before it.
    are_names: bool,
}

impl Names {
    fn new(objects: Vec<String>) -> Self {
        let is_name = |name: &String| {
            let is_word = name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            let starts_well = name.starts_with(|first: char| !first.is_ascii_digit());
            is_word && starts_well && name.len() <= MAX_NAME && !is_keyword(name)
        };
        let is_new = |(at, name)| !objects[..at].contains(name);
        let are_names = objects.iter().all(is_name) && objects.iter().enumerate().all(is_new);
        Self { objects, are_names }
    }
}

impl Instances {
    /// The objects of some classes, of which a scenario has a part for each.
    ///
    /// The owner is what their names begin with; they show where a call is rewritten inside of a text.
    ///
    /// # Errors
    ///
    /// [`BfclError`] when a scenario cannot be loaded.
    pub fn load(
        classes: &[Class],
        scenario: &serde_json::Value,
        owner: &str,
        process: &Process,
        is_long: bool,
    ) -> Result<Self, BfclError> {
        let mut objects = Vec::new();
        let mut names = Vec::new();
        for &class in classes {
            let part = from_json(&scenario[class.name()]);
            let empty = Dict::default();
            let part = part.as_dict().unwrap_or(&empty);
            objects.push(Instance::load(class, part, process, is_long)?);
            let name = format!("{owner}_{class}_instance");
            names.push(name.replace(['-', '.', '/', ':'], "_"));
        }
        Ok(Self { objects: objects.into(), names: Arc::new(Names::new(names)), moved: 0 })
    }

    /// The classes in their order.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        self.objects.iter().map(Instance::class)
    }

    /// Carries out a call and gives the text of its result, or of what it raises.
    pub fn execute(&mut self, call: &str, process: &mut Process) -> String {
        let error = |raised: Exception| format!("Error during execution: {raised}");
        let told = self.evaluate(call, process).unwrap_or_else(error);
        // An exception can name a value in full.
        self.moves(told.len()).map_or_else(error, |()| told)
    }

    fn moves(&mut self, bytes: usize) -> Outcome<()> {
        self.moved = self.moved.saturating_add(bytes);
        if self.moved > MAX_MOVED {
            return Err(too_much_moved());
        }
        Ok(())
    }

    fn evaluate(&mut self, call: &str, process: &mut Process) -> Outcome<String> {
        let value = match self.evaluate_literal(call, process) {
            Some(value) => value?,
            None => self.evaluate_any(call, process)?,
        };
        // What is stored may stand in a result more than once, which shows only when it is written.
        if value.size_within(MAX_MOVED).is_none() {
            return Err(too_much_moved());
        }
        match &value {
            Value::Dict(_) => match json_dumps(&value) {
                Ok(text) => Ok(text),
                Err(_) => to_str(&value),
            },
            other => to_str(other),
        }
    }

    /// Carries out a call of the usual form without rewriting it; None where it is of another form.
    fn evaluate_literal(&mut self, call: &str, process: &mut Process) -> Option<Outcome<Value>> {
        if !self.names.are_names {
            return None;
        }
        let call = LiteralCall::new(call)?;
        let (place, method, signature) = self.method(call.name())?;
        let bound = call.bind(signature)?;
        let bytes = size(bound.given());
        if let Err(raised) = self.moves(bytes) {
            return Some(Err(raised));
        }
        Some(self.call(place, method, bound.values(), process))
    }

    fn call(
        &mut self,
        place: usize,
        method: usize,
        given: &[Value],
        process: &mut Process,
    ) -> Outcome<Value> {
        Arc::make_mut(&mut self.objects)[place].call(method, given, process)
    }

    /// The last object with a method, the place of the method in its class, and its parameters.
    fn method(&self, name: &str) -> Option<(usize, usize, &'static Signature)> {
        self.objects.iter().enumerate().rev().find_map(|(place, object)| {
            object.class().method(name).map(|(method, signature)| (place, method, signature))
        })
    }

    /// Carries out a call of any form.
    fn evaluate_any(&mut self, call: &str, process: &mut Process) -> Outcome<Value> {
        if call.len() > MAX_EXPRESSION_BYTES {
            // It is refused in any form, so that nobody need rewrite it.
            return eval(call, &mut Objects { instances: self, process });
        }
        let names = Arc::clone(&self.names);
        let call =
            rewritten(call, |method| self.method(method).map(|(place, ..)| &*names.objects[place]));
        let function = call.split('(').next().unwrap_or_default();
        // The second part of a dotted name, whatever else there is.
        let function = if call.contains('(') { function } else { &call };
        let function = function.split('.').nth(1).unwrap_or(function);
        if REFUSED.contains(&function) {
            return Err(Exception::refused(format_args!(
                "Function call {function} is not allowed."
            )));
        }
        eval(&call, &mut Objects { instances: self, process })
    }

    /// The public attributes of every object, as JSON: keys that are no texts are `@int:5` and the like, sets
    /// `{"@set": [...]}`, other objects `{"@repr": ...}`.
    ///
    /// # Errors
    ///
    /// What is raised on looking at them.
    pub fn state(&self, process: &Process) -> Outcome<serde_json::Value> {
        let mut state = serde_json::Map::new();
        for object in &*self.objects {
            let attributes = object.attributes(process)?;
            let attributes = attributes
                .into_iter()
                .map(|(name, value)| (name.to_owned(), crate::state::encoded(&value)))
                .collect();
            state.insert(object.class().name().to_owned(), serde_json::Value::Object(attributes));
        }
        Ok(serde_json::Value::Object(state))
    }

    /// The first class whose state differs from that of other instances in the same process, with the attributes that do.
    pub fn first_difference(
        &self,
        other: &Self,
        process: &Process,
    ) -> Option<(Class, Vec<&'static str>)> {
        self.objects.iter().zip(&*other.objects).find_map(|(one, other)| {
            let differing = one.differing(other, process);
            (!differing.is_empty()).then(|| (one.class(), differing))
        })
    }
}

/// The names that calls can use.
struct Objects<'i> {
    instances: &'i mut Instances,
    process: &'i mut Process,
}

impl Objects<'_> {
    fn place(&self, name: &str) -> Option<usize> {
        self.instances.names.objects.iter().position(|object| object == name)
    }
}

impl Scope for Objects<'_> {
    fn has_object(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    fn described(&self, object: &str, method: &str) -> String {
        let class = self.place(object).map(|place| self.instances.objects[place].class());
        class.map_or_else(
            || format!("{method}()"),
            |class| format!("{MODULE}.{}.{class}.{method}()", class.document()),
        )
    }

    fn call_method(&mut self, object: &str, method: &str, arguments: Arguments) -> Outcome<Value> {
        let place = self.place(object).ok_or_else(|| spar_python::name_error(object))?;
        let class = self.instances.objects[place].class();
        let Some((method, signature)) = class.method(method) else {
            return Err(Exception::no_attribute(class.name(), method));
        };
        let mut given =
            arguments.positional.iter().chain(arguments.keyword.iter().map(|(_, value)| value));
        if given.any(|value| !nests_within(value, MAX_NESTING)) {
            return Err(Exception::new(
                ExceptionKind::Recursion,
                "maximum recursion depth exceeded",
            ));
        }
        let given =
            arguments.positional.iter().chain(arguments.keyword.iter().map(|(_, value)| value));
        self.instances.moves(size(given))?;
        let bound = signature.bind(arguments)?;
        self.instances.call(place, method, &bound, self.process)
    }
}

fn too_much_moved() -> Exception {
    Exception::refused(format_args!(
        "arguments and results of all calls have at most {MAX_MOVED} bytes here"
    ))
}

/// How many bytes values have together; more than may be moved where one has.
fn size<'v>(values: impl Iterator<Item = &'v Value>) -> usize {
    let sizes = values.map(|value| value.size_within(MAX_MOVED).unwrap_or(MAX_MOVED + 1));
    sizes.fold(0, usize::saturating_add)
}

/// Whether a value nests no more than so deeply.
fn nests_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            depth > 0 && items.iter().all(|item| nests_within(item, depth - 1))
        }
        Value::Dict(entries) => {
            depth > 0 && entries.values().all(|item| nests_within(item, depth - 1))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (Instances, Process) {
        let process = Process::new(None);
        let scenario = serde_json::json!({});
        let classes = [Class::GorillaFileSystem, Class::MathApi];
        (Instances::load(&classes, &scenario, "m", &process, false).unwrap(), process)
    }

    #[test]
    fn what_cannot_be_unpacked_names_the_method_with_its_module() {
        let (mut instances, mut process) = files();
        assert_eq!(
            instances.execute("rm(*5)", &mut process),
            "Error during execution: bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gorilla_file_system.GorillaFileSystem.rm() argument after * must be an iterable, not int"
        );
    }

    #[test]
    fn a_call_that_is_too_long_is_refused_before_it_is_rewritten() {
        let (mut instances, mut process) = files();
        let told = instances.execute(&"f(".repeat(MAX_EXPRESSION_BYTES), &mut process);
        let bytes = 2 * MAX_EXPRESSION_BYTES;
        assert_eq!(
            told,
            format!(
                "Error during execution: the call has {bytes} bytes, {MAX_EXPRESSION_BYTES} are read"
            )
        );
    }

    #[test]
    fn what_is_stored_and_told_has_a_bound() {
        let (mut instances, mut process) = files();
        let told: Vec<String> = (0..10)
            .map(|_| instances.execute("echo(content='a' * 4000000)", &mut process))
            .collect();
        assert!(told.iter().map(String::len).sum::<usize>() < MAX_MOVED + (1 << 20));
        assert!(told[9].ends_with("bytes here"), "{}", told[9]);
        assert!(instances.moved > MAX_MOVED);
    }

    #[test]
    fn values_that_are_large_once_written_are_refused() {
        let (mut instances, mut process) = files();
        for call in [
            "echo(content=['a'*4000000]*1000000)",
            "echo(content=str([['a'*4000000]*1000000]))",
            "echo(content=[[[['a']*1000]*1000]*1000]*1000)",
            "echo(content=[echo(content='a'*3000000)]*3)",
            "[echo(content='a'*3000000), echo(content='a'*3000000), echo(content='a'*3000000)]",
        ] {
            let told = instances.execute(call, &mut process);
            assert!(told.starts_with("Error during execution: "), "{call}: {}", told.len());
            assert!(told.len() < 200, "{call}: {}", told.len());
        }
        assert!(instances.moved < MAX_MOVED);
        let named = "{}['a' * 4000000]";
        let mut often = instances.clone();
        let told: usize = (0..40).map(|_| often.execute(named, &mut process).len()).sum();
        assert!(told < MAX_MOVED + (1 << 20), "{told}");
        let told = instances.execute("echo(content='ab' * 3)", &mut process);
        assert_eq!(told, r#"{"terminal_output": "ababab"}"#);
    }

    #[test]
    fn what_is_stored_once_and_shown_often_has_a_bound() {
        let mut process = Process::new(None);
        let scenario = serde_json::json!({"TwitterAPI": {"authenticated": true}});
        let classes = [Class::TwitterApi];
        let mut account = Instances::load(&classes, &scenario, "m", &process, false).unwrap();
        let posts = vec!["post_tweet('a')"; 1000].join(", ");
        account.execute(&format!("[{posts}]"), &mut process);
        account.execute("mention(0, ['a' * 1000] * 1000)", &mut process);
        let told = account.execute("search_tweets('a')", &mut process);
        assert!(told.ends_with("bytes here"), "{}", told.len());
        // Inside of an expression it is refused before anything is made of it.
        let told = account.execute("len(str(search_tweets('a')))", &mut process);
        assert!(told.ends_with("are not made here"), "{told}");
    }

    /// The same objects, on which every call is rewritten and evaluated.
    fn without_short_way(instances: &Instances) -> Instances {
        let names = Names { objects: instances.names.objects.clone(), are_names: false };
        Instances { names: Arc::new(names), ..instances.clone() }
    }

    #[test]
    fn calls_do_the_same_on_both_ways() {
        // What changes gold calls: quotes, brackets, blanks, names of methods and objects, and what else may matter.
        const PARTS: [&str; 30] = [
            "'",
            "\"",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            "=",
            ".",
            " ",
            "\\",
            "\n",
            "-",
            "1",
            "0.5",
            "é",
            "cd (x)",
            "pwd()",
            "a=1",
            "None",
            "True",
            "*",
            "#",
            "'x'",
            "m_1_MathAPI_instance",
            "e3",
            "echo",
            "'a' ",
        ];
        let mut random = spar_python::Random::from_u64(27_112_026);
        let (mut num_calls, mut num_gold, mut num_short) = (0, 0, 0);
        for seed in 0..400 {
            let entry = crate::generated_entry(seed, crate::MAX_TURNS);
            let mut process = Process::new(None);
            let classes = entry.classes().unwrap();
            let load =
                |owner| Instances::load(&classes, &entry.initial_config, owner, &process, false);
            let mut instances = load("m_1").unwrap();
            let mut other = without_short_way(&instances);
            let mut other_process = process.clone();
            for gold in entry.ground_truth.concat() {
                let mut probe = instances.clone();
                num_gold += 1;
                num_short +=
                    usize::from(probe.evaluate_literal(&gold, &mut process.clone()).is_some());
                let mut changed = vec![gold.clone()];
                for _ in 0..6 {
                    let mut call = gold.clone();
                    for _ in 0..1 + random.below(3) {
                        let places: Vec<usize> =
                            (0..=call.len()).filter(|at| call.is_char_boundary(*at)).collect();
                        let start = places[random.below(places.len() as u64) as usize];
                        let next = places.iter().copied().find(|at| *at > start).unwrap_or(start);
                        let end = if random.below(2) == 0 { start } else { next };
                        let part = PARTS[random.below(PARTS.len() as u64) as usize];
                        call.replace_range(
                            start..end,
                            if random.below(4) == 0 { "" } else { part },
                        );
                    }
                    changed.push(call);
                }
                for call in changed {
                    let told = instances.execute(&call, &mut process);
                    assert_eq!(told, other.execute(&call, &mut other_process), "{call}");
                    assert_eq!(instances.moved, other.moved, "{call}");
                    num_calls += 1;
                }
            }
            assert_eq!(instances.state(&process).unwrap(), other.state(&other_process).unwrap());
        }
        assert!(num_calls > 5000, "{num_calls}");
        assert_eq!(num_short, num_gold, "gold calls are of the usual form");
    }

    #[test]
    fn objects_whose_names_are_none_of_pythons_are_never_reached() {
        let scenario = serde_json::json!({});
        for (owner, told) in [
            ("m", r#"{"current_working_directory": "/"}"#),
            ("a b", "Error during execution: invalid syntax (<string>, line 1)"),
            ("1", "Error during execution: invalid decimal literal (<string>, line 1)"),
        ] {
            let mut process = Process::new(None);
            let classes = [Class::GorillaFileSystem];
            let mut files = Instances::load(&classes, &scenario, owner, &process, false).unwrap();
            assert_eq!(files.execute("cd('/')", &mut process), told);
            assert_eq!(without_short_way(&files).execute("cd('/')", &mut process), told);
        }
    }

    #[test]
    fn directories_that_hold_themselves_end() {
        let (mut instances, mut process) = files();
        // Names that are long would make paths of many megabytes.
        for name in ["'d'", "'d' * 200000"] {
            let calls = [
                format!("mkdir({name})"),
                format!("cp({name}, {name})"),
                format!("cp({name}, 'e')"),
                format!("mv('e', {name})"),
            ];
            for call in calls {
                instances.execute(&call, &mut process);
            }
            for call in ["find()", "find(name='zz')", "du()"] {
                let told = instances.execute(call, &mut process);
                assert!(told.starts_with("Error during execution: "), "{}", &told[..40]);
            }
            assert!(instances.state(&process).is_ok());
            assert_eq!(instances.first_difference(&instances.clone(), &process), None);
        }
    }
}
