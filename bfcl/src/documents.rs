//! Own descriptions of the functions, for suites that ship.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::Class;

const TEXT: &str = include_str!("documents.txt");

/// The functions of a class, in the form of the release.
pub(crate) fn of_class(class: Class) -> Vec<Json> {
    static DOCUMENTS: LazyLock<HashMap<&str, Vec<Json>>> = LazyLock::new(read);
    DOCUMENTS.get(class.name()).cloned().unwrap_or_default()
}

fn read() -> HashMap<&'static str, Vec<Json>> {
    let mut documents: HashMap<&str, Vec<Json>> = HashMap::new();
    let mut class: Option<Class> = None;
    for line in TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut parts = line.split('|');
        let name = parts.next().unwrap_or_default();
        let Some(about) = parts.next() else {
            class = name.parse().ok();
            continue;
        };
        let Some(class) = class else { continue };
        let signature = class.methods().find(|(method, _)| *method == name).map(|(_, known)| known);
        let required: Vec<&str> = signature
            .into_iter()
            .flat_map(|signature| signature.parameters)
            .filter(|parameter| parameter.default.is_none())
            .map(|parameter| parameter.name)
            .collect();
        let mut properties = serde_json::Map::new();
        for parameter in parts {
            let mut fields = parameter.splitn(3, ':');
            let mut field = || fields.next().unwrap_or_default();
            let (name, kind, about) = (field(), field(), field());
            let described = match kind.split_once(' ') {
                Some((kind, inner)) => {
                    json!({"type": kind, "items": {"type": inner}, "description": about})
                }
                None => json!({"type": kind, "description": about}),
            };
            properties.insert(name.to_owned(), described);
        }
        documents.entry(class.name()).or_default().push(json!({
            "name": name,
            "description": about,
            "parameters": {"type": "dict", "properties": properties, "required": required},
        }));
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_every_method_is_described() {
        for class in Class::ALL {
            let documents = of_class(class);
            assert_eq!(documents.len(), class.methods().count(), "{class}");
            for ((method, signature), document) in class.methods().zip(&documents) {
                assert_eq!(document["name"], method, "{class}");
                let properties = document["parameters"]["properties"].as_object().unwrap();
                let described: Vec<&str> = properties.keys().map(String::as_str).collect();
                let known: Vec<&str> =
                    signature.parameters.iter().map(|parameter| parameter.name).collect();
                assert_eq!(described, known, "{method}");
                assert!(properties.values().all(|value| value["description"] != ""), "{method}");
            }
        }
    }
}
