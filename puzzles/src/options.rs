//! Options of datasets: how their structs are written, and how they are checked.

/// A struct of options with its defaults and checks.
///
/// Every field has its default beside it; `check` gets the options and the [`Problems`](crate::options::Problems) to add to.
macro_rules! options {
    (
        $(#[$about:meta])*
        $name:ident {
            $( $(#[$doc:meta])+ $field:ident: $type:ty = $default:expr, )*
        }
        $( |$given:ident, $problems:ident| $check:block )?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $( $(#[$doc])+ pub(crate) $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl spar_core::registry::NamedOptions for $name {
            $(
                fn problems(&self) -> Vec<String> {
                    let $given = self;
                    #[allow(unused_mut, reason = "some datasets have nothing to check")]
                    let mut $problems = $crate::options::Problems::default();
                    $check
                    $problems.into_told()
                }
            )?
        }
    };
}

pub(crate) use options;

/// All that is wrong with options.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    told: Vec<String>,
}

impl Problems {
    /// What was found.
    pub(crate) fn into_told(self) -> Vec<String> {
        self.told
    }

    /// Says something, unless a condition holds.
    pub(crate) fn require(&mut self, holds: bool, told: impl FnOnce() -> String) {
        if !holds {
            self.told.push(told());
        }
    }

    /// A number has to lie between two bounds, both allowed.
    pub(crate) fn between<T: PartialOrd + std::fmt::Display>(
        &mut self,
        name: &str,
        value: T,
        least: T,
        most: T,
    ) {
        self.require(least <= value && value <= most, || {
            format!("{name} is {value}, must be {least} to {most}")
        });
    }

    /// The least and the most of something: both between two bounds, the least not above the most.
    pub(crate) fn span<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        names: (&str, &str),
        values: (T, T),
        bounds: (T, T),
    ) {
        self.between(names.0, values.0, bounds.0, bounds.1);
        self.between(names.1, values.1, bounds.0, bounds.1);
        self.require(values.0 <= values.1, || {
            format!("{} is {}, must be at least {}, {}", names.1, values.1, names.0, values.0)
        });
    }

    /// Weights: as many as there are choices, none negative, which add up to 1 but for a twentieth.
    pub(crate) fn weights(&mut self, name: &str, weights: &[f64], choices: usize) {
        self.require(weights.len() == choices, || {
            format!("{name} has {} weights, must have {choices}", weights.len())
        });
        let sum: f64 = weights.iter().sum();
        self.require(
            crate::text::rounded(sum, 1) == 1.0 && weights.iter().all(|one| *one >= 0.0),
            || format!("{name} adds up to {sum}, must be weights of 0 to 1 that add up to 1"),
        );
    }

    /// A list has at least one entry and only those that are allowed.
    pub(crate) fn subset(&mut self, name: &str, values: &[String], allowed: &[&str]) {
        let known = || allowed.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        self.require(!values.is_empty(), || format!("{name} is empty, allowed are {}", known()));
        for value in values {
            self.require(allowed.contains(&value.as_str()), || {
                format!("{name} has `{value}`, allowed are {}", known())
            });
        }
    }
}

/// A list of texts, for defaults.
pub(crate) fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}
