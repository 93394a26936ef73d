//! The demand of a task, read from its words.

/// What has to be done to the object before it is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    Clean,
    Heat,
    Cool,
}

/// What a task demands, as far as its words say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Demand {
    /// Bring objects of a type to one receptacle of a type.
    Place { object: String, destination: String, count: usize, treatment: Option<Treatment> },
    /// Hold an object of a type where a lamp of a type has been switched on.
    Light { object: String, lamp: String },
}

impl Treatment {
    /// The word the command begins with.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Heat => "heat",
            Self::Cool => "cool",
        }
    }

    /// The receptacle type it is done with.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Clean => "sinkbasin",
            Self::Heat => "microwave",
            Self::Cool => "fridge",
        }
    }
}

impl Demand {
    /// Reads a task such as `heat some apple and put it in fridge`.
    ///
    /// `None` where the words are not those of one of the six families.
    pub(super) fn parse(task: &str) -> Option<Self> {
        let task = task.trim().trim_end_matches('.');
        let words: Vec<&str> = task.split_whitespace().collect();
        let place = |object: &str, destination: &str, count, treatment| Self::Place {
            object: object.to_owned(),
            destination: destination.to_owned(),
            count,
            treatment,
        };
        let light = |object: &str, lamp: &str| Self::Light {
            object: object.to_owned(),
            lamp: lamp.to_owned(),
        };
        Some(match words[..] {
            ["put", "two", object, "in" | "on", to]
            | ["find", "two", object, "and", "put", "them", "in" | "on", to] => {
                place(object, to, 2, None)
            }
            ["put", "a" | "some", state, object, "in" | "on", to] => {
                place(object, to, 1, Some(treatment(state)?))
            }
            [verb, "some", object, "and", "put", "it", "in" | "on", to] => {
                place(object, to, 1, Some(treatment(verb)?))
            }
            ["put", "a" | "some", object, "in" | "on", to] => place(object, to, 1, None),
            ["look", "at", object, "under", "the", lamp]
            | ["examine", "the", object, "with", "the", lamp] => light(object, lamp),
            _ => return None,
        })
    }

    /// The type of the object that is handled.
    pub(super) fn object(&self) -> &str {
        match self {
            Self::Place { object, .. } | Self::Light { object, .. } => object,
        }
    }
}

fn treatment(word: &str) -> Option<Treatment> {
    match word {
        "clean" => Some(Treatment::Clean),
        "heat" | "hot" => Some(Treatment::Heat),
        "cool" => Some(Treatment::Cool),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(count: usize, treatment: Option<Treatment>) -> Option<Demand> {
        let (object, destination) = ("mug".to_owned(), "shelf".to_owned());
        Some(Demand::Place { object, destination, count, treatment })
    }

    #[test]
    fn every_wording_is_understood() {
        for task in ["put a mug in shelf", "put some mug on shelf"] {
            assert_eq!(Demand::parse(task), place(1, None));
        }
        for task in ["put two mug in shelf", "find two mug and put them in shelf."] {
            assert_eq!(Demand::parse(task), place(2, None));
        }
        for task in ["put a hot mug in shelf", "heat some mug and put it in shelf"] {
            assert_eq!(Demand::parse(task), place(1, Some(Treatment::Heat)));
        }
        for task in ["look at mug under the desklamp", "examine the mug with the desklamp"] {
            let (object, lamp) = ("mug".to_owned(), "desklamp".to_owned());
            assert_eq!(Demand::parse(task), Some(Demand::Light { object, lamp }));
        }
        assert_eq!(Demand::parse("slice the bread"), None);
    }
}
