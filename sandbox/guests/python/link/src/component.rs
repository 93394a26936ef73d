//! What a component consists of.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentTypeRef, ExternalKind,
    Instance, Parser, Payload,
};

/// A function, table, memory or global at the level of the component.
#[derive(Debug, Clone)]
pub enum Core<'a> {
    /// What the host provides: interface and name.
    Host(&'a str, String),
    /// An export of a core instance.
    Export(usize, &'a str),
}

/// A core instance.
#[derive(Debug)]
pub enum CoreInstance<'a> {
    /// An instance of the module of that number, its imports taken from the named instances.
    Module(usize, HashMap<&'a str, usize>),
    /// Nothing but names.
    Names(HashMap<&'a str, (ExternalKind, u32)>),
}

/// The parts of a component that linking needs.
#[derive(Debug, Default)]
pub struct Component<'a> {
    pub modules: Vec<&'a [u8]>,
    pub instances: Vec<CoreInstance<'a>>,
    functions: Vec<Core<'a>>,
    tables: Vec<Core<'a>>,
    memories: Vec<Core<'a>>,
    globals: Vec<Core<'a>>,
    /// Core functions behind the component's exports.
    pub exports: HashMap<&'a str, Core<'a>>,
    // Index spaces of the component itself; absent is what linking does not look at.
    imported_instances: Vec<Option<&'a str>>,
    imported_functions: Vec<Option<(&'a str, &'a str)>>,
    imported_types: Vec<Option<(&'a str, &'a str)>>,
    lifted: HashMap<usize, u32>,
}

impl<'a> Component<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut this = Self::default();
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            match &payload {
                Payload::ModuleSection { unchecked_range, .. } => {
                    if depth == 0 {
                        this.modules.push(&bytes[unchecked_range.clone()]);
                    }
                    depth += 1;
                }
                Payload::ComponentSection { .. } => depth += 1,
                // The outermost end is followed by nothing.
                Payload::End(_) if depth > 0 => depth -= 1,
                _ if depth == 0 => this.section(payload)?,
                _ => {}
            }
        }
        Ok(this)
    }

    /// The item of a core index space.
    pub fn core(&self, kind: ExternalKind, index: u32) -> Result<&Core<'a>> {
        let space = match kind {
            ExternalKind::Func => &self.functions,
            ExternalKind::Table => &self.tables,
            ExternalKind::Memory => &self.memories,
            ExternalKind::Global => &self.globals,
            other => bail!("exports of kind {other:?} are not supported"),
        };
        space.get(index as usize).context("an index is out of range")
    }

    fn section(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::InstanceSection(reader) => {
                for instance in reader {
                    self.instances.push(match instance? {
                        Instance::Instantiate { module_index, args } => {
                            let args = args.iter().map(|arg| (arg.name, arg.index as usize));
                            CoreInstance::Module(module_index as usize, args.collect())
                        }
                        Instance::FromExports(exports) => CoreInstance::Names(
                            exports.iter().map(|e| (e.name, (e.kind, e.index))).collect(),
                        ),
                    });
                }
            }
            Payload::ComponentTypeSection(reader) => {
                for ty in reader {
                    ty?;
                    self.imported_types.push(None);
                }
            }
            Payload::ComponentImportSection(reader) => {
                for import in reader {
                    let import = import?;
                    match import.ty {
                        ComponentTypeRef::Instance(_) => {
                            self.imported_instances.push(Some(import.name.name));
                        }
                        ComponentTypeRef::Type(_) => self.imported_types.push(None),
                        other => bail!("an import {} of kind {other:?}", import.name.name),
                    }
                }
            }
            Payload::ComponentAliasSection(reader) => {
                for alias in reader {
                    self.alias(alias?)?;
                }
            }
            Payload::ComponentCanonicalSection(reader) => {
                for function in reader {
                    self.canonical(function?)?;
                }
            }
            Payload::ComponentInstanceSection(reader) => {
                for instance in reader {
                    instance?;
                    self.imported_instances.push(None);
                }
            }
            Payload::ComponentExportSection(reader) => {
                for export in reader {
                    let export = export?;
                    match export.kind {
                        ComponentExternalKind::Func => {
                            if let Some(core) = self.lifted.get(&(export.index as usize)) {
                                let core = self.core(ExternalKind::Func, *core)?.clone();
                                self.exports.insert(export.name.name, core);
                            }
                            self.imported_functions.push(None);
                        }
                        ComponentExternalKind::Instance => self.imported_instances.push(None),
                        ComponentExternalKind::Type => self.imported_types.push(None),
                        other => bail!("an export {} of kind {other:?}", export.name.name),
                    }
                }
            }
            Payload::CoreTypeSection(_)
            | Payload::CustomSection(_)
            | Payload::Version { .. }
            | Payload::End(_) => {}
            other => bail!("a section of another kind: {other:?}"),
        }
        Ok(())
    }

    fn alias(&mut self, alias: ComponentAlias<'a>) -> Result<()> {
        match alias {
            ComponentAlias::InstanceExport { kind, instance_index, name } => {
                let of = self.imported_instances.get(instance_index as usize).copied().flatten();
                let item = of.map(|of| (of, name));
                match kind {
                    ComponentExternalKind::Func => self.imported_functions.push(item),
                    ComponentExternalKind::Type => self.imported_types.push(item),
                    other => bail!("an alias of kind {other:?}"),
                }
            }
            ComponentAlias::CoreInstanceExport { kind, instance_index, name } => {
                let item = Core::Export(instance_index as usize, name);
                match kind {
                    ExternalKind::Func => self.functions.push(item),
                    ExternalKind::Table => self.tables.push(item),
                    ExternalKind::Memory => self.memories.push(item),
                    ExternalKind::Global => self.globals.push(item),
                    other => bail!("an alias of kind {other:?}"),
                }
            }
            ComponentAlias::Outer { .. } => bail!("an alias out of the component"),
        }
        Ok(())
    }

    fn canonical(&mut self, function: CanonicalFunction) -> Result<()> {
        let host = |item: Option<&Option<(&'a str, &'a str)>>, prefix: &str| {
            let (interface, name) =
                item.copied().flatten().context("a lowered function is not the host's")?;
            Ok::<_, anyhow::Error>(Core::Host(interface, format!("{prefix}{name}")))
        };
        match function {
            CanonicalFunction::Lower { func_index, .. } => {
                let item = self.imported_functions.get(func_index as usize);
                self.functions.push(host(item, "")?);
            }
            CanonicalFunction::ResourceDrop { resource } => {
                let item = self.imported_types.get(resource as usize);
                self.functions.push(host(item, "[resource-drop]")?);
            }
            CanonicalFunction::Lift { core_func_index, .. } => {
                self.lifted.insert(self.imported_functions.len(), core_func_index);
                self.imported_functions.push(None);
            }
            other => bail!("a function of the component model: {other:?}"),
        }
        Ok(())
    }
}
