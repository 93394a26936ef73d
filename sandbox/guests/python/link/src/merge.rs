//! Many modules into one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result, anyhow, bail};
use wasm_encoder::reencode::{Error as ReencodeError, Reencode};
use wasm_encoder::{
    CodeSection, DataSection, ElementSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, ImportSection, MemorySection, MemoryType, Module, NameMap,
    NameSection, TableSection, TypeSection,
};
use wasmparser::{DataKind, ElementKind, ExternalKind, FuncType, Operator, TypeRef};

use crate::component::{Component, Core, CoreInstance};
use crate::renumber::Renumber;
use crate::unit::{Unit, kind_of, read};

/// The module that the output's imports come from.
const PREVIEW1: &str = "wasi_snapshot_preview1";

/// An item that a unit defines: its unit, and its number among those of its kind that the unit defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Item {
    Defined(usize, u32),
    /// A function of preview 1: its number among the output's imports.
    Preview1(u32),
    /// A function that only ends the guest: its number among these.
    Absent(u32),
}

pub struct Linking<'a, 'b> {
    component: &'b Component<'a>,
    /// The unit of each core instance that has one.
    units_of: HashMap<usize, usize>,
    units: Vec<Unit<'a>>,
    instance_of: Vec<usize>,
    preview1: Vec<(&'a str, FuncType)>,
    absent: Vec<FuncType>,
}

/// The numbers of a unit's items in the output.
#[derive(Default)]
pub struct Numbers {
    pub types: Vec<u32>,
    pub functions: Vec<u32>,
    pub tables: Vec<u32>,
    pub globals: Vec<u32>,
    pub first_data: u32,
    pub first_element: u32,
}

pub fn merge<'a>(component: &Component<'a>, adapter: &'a [u8]) -> Result<Vec<u8>> {
    let mut linking = Linking {
        component,
        units_of: HashMap::new(),
        units: Vec::new(),
        instance_of: Vec::new(),
        preview1: Vec::new(),
        absent: Vec::new(),
    };
    for (number, instance) in component.instances.iter().enumerate() {
        if let CoreInstance::Module(module, _) = instance {
            let unit = read(component.modules[*module])
                .with_context(|| format!("module {module} of the component"))?;
            linking.units_of.insert(number, linking.units.len());
            linking.units.push(unit);
            linking.instance_of.push(number);
        }
    }
    linking.units.push(read(adapter).context("the adapter")?);
    let items = linking.resolve_all()?;
    linking.write(&items)
}

/// The size of a component's memory when it begins.
pub fn memory_bytes(component: &Component<'_>) -> Result<u64> {
    let mut pages = Vec::new();
    for module in &component.modules {
        pages.extend(read(module)?.memories.iter().map(|memory| memory.initial));
    }
    match pages[..] {
        [pages] => Ok(pages << 16),
        _ => bail!("there is not exactly one memory"),
    }
}

/// For each unit, the kinds of its imports and what they are.
pub type Items = Vec<Vec<(ExternalKind, Item)>>;

fn of_kind(items: &[(ExternalKind, Item)], kind: ExternalKind) -> impl Iterator<Item = Item> {
    items.iter().filter(move |(found, _)| *found == kind).map(|(_, item)| *item)
}

impl<'a> Linking<'a, '_> {
    fn adapter(&self) -> usize {
        self.units.len() - 1
    }

    fn resolve_all(&mut self) -> Result<Items> {
        let mut items = Items::new();
        for unit in 0..self.units.len() {
            let mut of_unit = Vec::new();
            for import in self.units[unit].imports.clone() {
                let item = self.import(unit, &import).with_context(|| {
                    format!("import `{}` `{}` of unit {unit}", import.module, import.name)
                })?;
                of_unit.push((kind_of(&import.ty), item));
            }
            items.push(of_unit);
        }
        Ok(items)
    }

    /// What an import of a unit is.
    fn import(&mut self, unit: usize, import: &wasmparser::Import<'a>) -> Result<Item> {
        let kind = kind_of(&import.ty);
        if unit == self.adapter() {
            return self.import_of_adapter(import);
        }
        if kind == ExternalKind::Func
            && import.module == "env"
            && let Some(item) = self.of_adapter(&format!("env#{}", import.name))?
        {
            return Ok(item);
        }
        let CoreInstance::Module(_, arguments) = &self.component.instances[self.instance_of[unit]]
        else {
            bail!("it is no module");
        };
        let instance = *arguments.get(import.module).context("nothing is given for it")?;
        let ty = match import.ty {
            TypeRef::Func(ty) => Some(self.units[unit].types[ty as usize].clone()),
            _ => None,
        };
        self.export(instance, kind, import.name, ty)
    }

    fn import_of_adapter(&mut self, import: &wasmparser::Import<'a>) -> Result<Item> {
        match (import.module, &import.ty) {
            (PREVIEW1, TypeRef::Func(ty)) => {
                let ty = self.units[self.adapter()].types[*ty as usize].clone();
                self.preview1.push((import.name, ty));
                Ok(Item::Preview1(self.preview1.len() as u32 - 1))
            }
            ("component", TypeRef::Func(ty)) => {
                let ty = self.units[self.adapter()].types[*ty as usize].clone();
                if let Some(core) = self.component.exports.get(import.name).cloned() {
                    return self.core(&core, ExternalKind::Func, Some(ty));
                }
                for unit in 0..self.adapter() {
                    if let Some((ExternalKind::Func, _)) = self.units[unit].exports.get(import.name)
                    {
                        return self.unit_export(unit, ExternalKind::Func, import.name);
                    }
                }
                bail!("no module of the component has it")
            }
            _ => bail!("an adapter cannot import it"),
        }
    }

    fn core(&mut self, core: &Core<'a>, kind: ExternalKind, ty: Option<FuncType>) -> Result<Item> {
        match core {
            Core::Export(instance, name) => self.export(*instance, kind, name, ty),
            Core::Host(interface, name) => {
                let interface = interface.split('@').next().unwrap_or(interface);
                if let Some(item) = self.of_adapter(&format!("{interface}#{name}"))? {
                    return Ok(item);
                }
                // There are no sockets, so nothing that takes one is ever called.
                if !interface.starts_with("wasi:sockets/") {
                    bail!("the adapter does not export `{interface}#{name}`");
                }
                self.absent.push(ty.context("a function has no type")?);
                Ok(Item::Absent(self.absent.len() as u32 - 1))
            }
        }
    }

    fn of_adapter(&mut self, name: &str) -> Result<Option<Item>> {
        match self.units[self.adapter()].exports.get(name) {
            Some((ExternalKind::Func, _)) => {
                self.unit_export(self.adapter(), ExternalKind::Func, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// What an instance exports under a name.
    fn export(
        &mut self,
        instance: usize,
        kind: ExternalKind,
        name: &str,
        ty: Option<FuncType>,
    ) -> Result<Item> {
        match &self.component.instances[instance] {
            CoreInstance::Names(names) => {
                let (found, index) = names.get(name).context("no such export")?;
                if *found != kind {
                    bail!("it is of kind {found:?}");
                }
                let core = self.component.core(kind, *index)?.clone();
                self.core(&core, kind, ty)
            }
            CoreInstance::Module(..) => self.unit_export(self.units_of[&instance], kind, name),
        }
    }

    fn unit_export(&mut self, unit: usize, kind: ExternalKind, name: &str) -> Result<Item> {
        let (found, index) = *self.units[unit].exports.get(name).context("no such export")?;
        if found != kind {
            bail!("it is of kind {found:?}");
        }
        let imported = self.units[unit].imports_of(kind).count() as u32;
        if index >= imported {
            return Ok(Item::Defined(unit, index - imported));
        }
        let import = *self.units[unit].imports_of(kind).nth(index as usize).expect("counted above");
        self.import(unit, &import)
    }

    fn write(&self, items: &Items) -> Result<Vec<u8>> {
        let mut types: Vec<FuncType> = Vec::new();
        let mut known: HashMap<FuncType, u32> = HashMap::new();
        let mut type_of = |ty: &FuncType| {
            *known.entry(ty.clone()).or_insert_with(|| {
                types.push(ty.clone());
                types.len() as u32 - 1
            })
        };

        // 1. Numbers in the output: functions of preview 1, then those of each unit, then absent ones.
        let mut imports = ImportSection::new();
        for (name, ty) in &self.preview1 {
            imports.import(PREVIEW1, name, EntityType::Function(type_of(ty)));
        }
        let firsts = Firsts::new(self);
        let mut numbers: Vec<Numbers> = Vec::new();
        for (unit, of_unit) in self.units.iter().zip(items) {
            let index = numbers.len();
            let space = |kind: ExternalKind, defined: usize| -> Vec<u32> {
                let imported = of_kind(of_unit, kind);
                let defined = (0..defined as u32).map(|number| Item::Defined(index, number));
                imported.chain(defined).map(|item| firsts.number(kind, item)).collect()
            };
            let (data, elements) = numbers.last().map_or((0, 0), |last: &Numbers| {
                let last_unit = &self.units[index - 1];
                (
                    last.first_data + last_unit.data.len() as u32,
                    last.first_element + last_unit.elements.len() as u32,
                )
            });
            numbers.push(Numbers {
                types: unit.types.iter().map(&mut type_of).collect(),
                functions: space(ExternalKind::Func, unit.functions.len()),
                tables: space(ExternalKind::Table, unit.tables.len()),
                globals: match self.shared_stack(items, index)? {
                    Some(stack) => vec![firsts.number(ExternalKind::Global, stack)],
                    None => space(ExternalKind::Global, unit.globals.len()),
                },
                first_data: data,
                first_element: elements,
            });
        }

        // 2. Definitions.
        let mut functions = FunctionSection::new();
        let mut code = CodeSection::new();
        let mut tables = TableSection::new();
        let mut globals = GlobalSection::new();
        let mut elements = ElementSection::new();
        let mut data = DataSection::new();
        let mut num_data = 0;
        for (index, unit) in self.units.iter().enumerate() {
            let mut renumber =
                Renumber { linking: self, items, numbers: &numbers[index], unit: index };
            for ty in &unit.functions {
                functions.function(numbers[index].types[*ty as usize]);
            }
            for body in &unit.bodies {
                renumber.parse_function_body(&mut code, body.clone()).map_err(failed)?;
            }
            for table in &unit.tables {
                renumber.parse_table(&mut tables, table.clone()).map_err(failed)?;
            }
            for global in &unit.globals {
                renumber.parse_global(&mut globals, global.clone()).map_err(failed)?;
            }
            for element in &unit.elements {
                if !matches!(element.kind, ElementKind::Active { .. } | ElementKind::Declared) {
                    bail!("a passive element segment");
                }
                renumber.parse_element(&mut elements, element.clone()).map_err(failed)?;
            }
            for datum in &unit.data {
                if matches!(datum.kind, DataKind::Passive) {
                    bail!("a passive data segment");
                }
                num_data += 1;
                renumber.parse_data(&mut data, datum.clone()).map_err(failed)?;
            }
        }
        for ty in &self.absent {
            functions.function(type_of(ty));
            let mut body = Function::new([]);
            body.instructions().unreachable().end();
            code.function(&body);
        }

        // 3. The component's memory, with room for the adapter's data, which lies behind.
        let (adapter, units) = self.units.split_last().context("there is no adapter")?;
        let mut own = units.iter().flat_map(|unit| &unit.memories);
        let (Some(own), None) = (own.next(), own.next()) else {
            bail!("there is not exactly one memory");
        };
        let with_adapter = adapter.memories.iter().map(|memory| memory.initial);
        let minimum = with_adapter.fold(own.initial, u64::max);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum,
            maximum: own.maximum,
            memory64: own.memory64,
            shared: own.shared,
            page_size_log2: None,
        });

        // 4. Exports of the adapter, and the state.
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        let adapter = &self.units[self.adapter()];
        let mut names: Vec<_> = adapter.exports.iter().collect();
        names.sort_unstable_by_key(|(name, _)| **name);
        for (name, (kind, index)) in names {
            if *kind == ExternalKind::Func && !name.contains('#') {
                let number = numbers[self.adapter()].functions[*index as usize];
                exports.export(name, ExportKind::Func, number);
            }
        }
        for global in self.written_globals(&numbers)? {
            exports.export(&format!("global:{global}"), ExportKind::Global, global);
        }

        let mut type_section = TypeSection::new();
        let mut plain = wasm_encoder::reencode::RoundtripReencoder;
        for ty in &types {
            let ty = plain.func_type(ty.clone()).map_err(|error| anyhow!("{error}"))?;
            type_section.ty().func_type(&ty);
        }
        let mut module = Module::new();
        module.section(&type_section);
        module.section(&imports);
        module.section(&functions);
        module.section(&tables);
        module.section(&memories);
        module.section(&globals);
        module.section(&exports);
        module.section(&elements);
        module.section(&wasm_encoder::DataCountSection { count: num_data });
        module.section(&code);
        module.section(&data);
        let mut names = BTreeMap::new();
        for (unit, numbers) in self.units.iter().zip(&numbers) {
            let imported = unit.imports_of(ExternalKind::Func).count() as u32;
            let defined = unit.names.iter().filter(|(index, _)| *index >= imported);
            names.extend(defined.map(|(index, name)| (numbers.functions[*index as usize], *name)));
        }
        let mut name_map = NameMap::new();
        names.iter().for_each(|(index, name)| name_map.append(*index, name));
        let mut name_section = NameSection::new();
        name_section.functions(&name_map);
        module.section(&name_section);
        Ok(module.finish())
    }

    /// The globals that code writes to: they are state.
    fn written_globals(&self, numbers: &[Numbers]) -> Result<BTreeSet<u32>> {
        let mut written = BTreeSet::new();
        for (unit, numbers) in self.units.iter().zip(numbers) {
            for body in &unit.bodies {
                for operator in body.get_operators_reader()? {
                    if let Operator::GlobalSet { global_index } = operator? {
                        written.insert(numbers.globals[global_index as usize]);
                    }
                }
            }
        }
        Ok(written)
    }

    /// What takes the place of the adapter's one global, its stack pointer: that of the component.
    fn shared_stack(&self, items: &Items, unit: usize) -> Result<Option<Item>> {
        const NAME: &str = "__stack_pointer";
        if unit != self.adapter() {
            return Ok(None);
        }
        let globals = self.units[unit].globals.len();
        if globals != 1 || self.units[unit].exports.get(NAME) != Some(&(ExternalKind::Global, 0)) {
            bail!("the adapter has globals beside an exported `{NAME}`");
        }
        for (unit, of_unit) in self.units.iter().zip(items) {
            let imports = unit.imports.iter().zip(of_unit);
            let mut found = imports
                .filter(|(import, (kind, _))| *kind == ExternalKind::Global && import.name == NAME);
            if let Some((_, (_, item))) = found.next() {
                return Ok(Some(*item));
            }
        }
        bail!("the component has no `{NAME}`")
    }

    /// The value that a global begins with.
    fn global(&self, items: &Items, unit: usize, global: u32) -> Result<i32> {
        let (unit, number) = match of_kind(&items[unit], ExternalKind::Global).nth(global as usize)
        {
            Some(Item::Defined(unit, number)) => (unit, number),
            Some(other) => bail!("a global that is {other:?}"),
            None => {
                let imported = of_kind(&items[unit], ExternalKind::Global).count();
                (unit, global - imported as u32)
            }
        };
        self.value(items, unit, &self.units[unit].globals[number as usize].init_expr)
    }

    /// The value of an expression over addresses, all of which are known when linking.
    pub fn value(
        &self,
        items: &Items,
        unit: usize,
        expr: &wasmparser::ConstExpr<'_>,
    ) -> Result<i32> {
        let mut stack: Vec<i32> = Vec::new();
        for operator in expr.get_operators_reader() {
            let mut pop = || stack.pop().context("an expression lacks an operand");
            let value = match operator? {
                Operator::I32Const { value } => value,
                Operator::GlobalGet { global_index } => self.global(items, unit, global_index)?,
                Operator::I32Add => pop()?.wrapping_add(pop()?),
                Operator::End => break,
                other => bail!("an expression with {other:?}"),
            };
            stack.push(value);
        }
        match stack[..] {
            [value] => Ok(value),
            _ => bail!("an expression without one value"),
        }
    }
}

/// Where the items of each unit begin in the output.
struct Firsts {
    functions: Vec<u32>,
    tables: Vec<u32>,
    globals: Vec<u32>,
    absent: u32,
}

impl Firsts {
    fn new(linking: &Linking<'_, '_>) -> Self {
        let starts = |first: usize, count: &dyn Fn(&Unit<'_>) -> usize| {
            let mut next = first;
            let mut starts = Vec::new();
            for unit in &linking.units {
                starts.push(next as u32);
                next += count(unit);
            }
            (starts, next as u32)
        };
        let (functions, absent) = starts(linking.preview1.len(), &|unit| unit.functions.len());
        let (tables, _) = starts(0, &|unit| unit.tables.len());
        let (globals, _) = starts(0, &|unit| unit.globals.len());
        Self { functions, tables, globals, absent }
    }

    fn number(&self, kind: ExternalKind, item: Item) -> u32 {
        match (kind, item) {
            (_, Item::Preview1(number)) => number,
            (_, Item::Absent(number)) => self.absent + number,
            (ExternalKind::Func, Item::Defined(unit, number)) => self.functions[unit] + number,
            (ExternalKind::Table, Item::Defined(unit, number)) => self.tables[unit] + number,
            (ExternalKind::Global, Item::Defined(unit, number)) => self.globals[unit] + number,
            // There is one.
            (_, Item::Defined(..)) => 0,
        }
    }
}

fn failed(error: ReencodeError<anyhow::Error>) -> anyhow::Error {
    anyhow!("{error}")
}
