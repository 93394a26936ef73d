//! What is sold.

/// A product with all that its pages show.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// Its number, ten letters and digits in capitals.
    pub asin: String,
    /// Its name.
    pub title: String,
    /// What is said of it.
    pub description: String,
    /// The same in points.
    pub bullet_points: Vec<String>,
    /// Its price as it is shown: `$12.5`, or `$12.5 to $20.0`.
    pub price_tag: String,
    /// What a purchase costs, in dollars.
    pub price: f64,
    /// Names and values of options, in lower case.
    pub options: Vec<(String, Vec<String>)>,
    /// What it is, such as `machine wash`.
    pub attributes: Vec<String>,
    /// The department, such as `fashion`.
    pub category: String,
    /// The search that it was listed under, in lower case.
    pub query: String,
    /// Its path of categories, joined by `›`.
    pub product_category: String,
    /// Its mean rating as it is shown; `N.A.` where there is none.
    pub rating: String,
    /// What buyers said.
    pub reviews: Vec<Review>,
}

/// What a buyer said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Its heading.
    pub title: String,
    /// Stars, 0 to 5.
    pub score: u8,
    /// Its text.
    pub body: String,
}

/// A price as WebShop shows it: as Python writes a float.
pub(crate) fn price_tag(pricing: &[f64]) -> String {
    match pricing {
        [] => "$100.0".to_owned(),
        [price] => format!("${}", spar_python::repr_float(*price)),
        [low, high, ..] => {
            let (low, high) = (spar_python::repr_float(*low), spar_python::repr_float(*high));
            format!("${low} to ${high}")
        }
    }
}
