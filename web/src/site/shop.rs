//! The administration of a shop: orders, products, customers.

use super::pages::{Numbers, escape, page, parameter};
use crate::Response;

const SITE: &str = "Shop admin";
const LINKS: &[(&str, &str)] = &[
    ("/", "Dashboard"),
    ("/orders", "Orders"),
    ("/products", "Products"),
    ("/customers", "Customers"),
];
pub(crate) const STATUSES: [&str; 4] = ["pending", "paid", "shipped", "cancelled"];
const GIVEN: [&str; 8] = ["Ada", "Bruno", "Carla", "Denis", "Edith", "Fadi", "Gita", "Henry"];
const FAMILY: [&str; 6] = ["Winter", "Novak", "Silva", "Okafor", "Lindgren", "Moreau"];
const PRODUCTS: [&str; 12] = [
    "Blue kettle",
    "Garden chair",
    "Wool blanket",
    "Desk lamp",
    "Steel bottle",
    "Paper globe",
    "Oak shelf",
    "Rain jacket",
    "Tea tray",
    "Wall clock",
    "Folding table",
    "Copper pan",
];

#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) orders: Vec<Order>,
    pub(crate) products: Vec<Product>,
    pub(crate) customers: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) customer: usize,
    product: usize,
    count: u32,
    pub(crate) cents: u32,
    pub(crate) status: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct Product {
    pub(crate) name: &'static str,
    pub(crate) cents: u32,
    stock: u32,
}

/// The number of the first order.
pub(crate) const FIRST_ORDER: usize = 1001;

pub(crate) fn money(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

impl Shop {
    pub(crate) fn new(numbers: Numbers) -> Self {
        let names: Vec<String> = GIVEN
            .iter()
            .flat_map(|given| FAMILY.iter().map(move |family| format!("{given} {family}")))
            .collect();
        let customers: Vec<String> =
            numbers.shuffled("customers", &names).into_iter().take(12).collect();
        let products: Vec<Product> = PRODUCTS
            .iter()
            .enumerate()
            .map(|(at, name)| Product {
                name,
                cents: numbers.below("price", at as u64, 9000) as u32 + 500,
                stock: numbers.below("stock", at as u64, 60) as u32,
            })
            .collect();
        let orders = (0..30_u64).map(|at| {
            let product = numbers.below("product", at, products.len());
            let count = numbers.below("count", at, 5) as u32 + 1;
            Order {
                customer: numbers.below("customer", at, customers.len()),
                product,
                count,
                cents: products[product].cents * count,
                status: STATUSES[numbers.below("status", at, STATUSES.len())],
            }
        });
        Self { orders: orders.collect(), products, customers }
    }

    pub(crate) fn get(&self, parts: &[&str], query: &str) -> Option<Response> {
        match parts {
            [] => {
                let body = format!(
                    "<p>{} orders, {} products, {} customers.</p>",
                    self.orders.len(),
                    self.products.len(),
                    self.customers.len()
                );
                Some(page(SITE, "Dashboard", LINKS, &body))
            }
            ["orders"] => {
                let status = parameter(query, "status").filter(|status| !status.is_empty());
                let options: String = STATUSES
                    .iter()
                    .map(|one| {
                        let selected =
                            if status.as_deref() == Some(*one) { " selected" } else { "" };
                        format!("<option{selected}>{one}</option>")
                    })
                    .collect();
                let rows: String = self
                    .orders
                    .iter()
                    .enumerate()
                    .filter(|(_, order)| status.as_deref().is_none_or(|status| status == order.status))
                    .map(|(at, order)| {
                        let number = at + FIRST_ORDER;
                        format!(
                            "<tr><td><a href=\"/orders/{number}\">{number}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                            escape(&self.customers[order.customer]),
                            money(order.cents),
                            order.status
                        )
                    })
                    .collect();
                let body = format!(
                    "<form><label>Status <select name=\"status\"><option value=\"\">all</option>{options}</select></label> \
                     <button>Filter</button></form><table><tr><th>Order</th><th>Customer</th><th>Total</th><th>Status</th></tr>\
                     {rows}</table>"
                );
                Some(page(SITE, "Orders", LINKS, &body))
            }
            ["orders", number] => {
                let order =
                    self.orders.get(number.parse::<usize>().ok()?.checked_sub(FIRST_ORDER)?)?;
                let options: String = STATUSES
                    .iter()
                    .map(|one| {
                        let selected = if *one == order.status { " selected" } else { "" };
                        format!("<option{selected}>{one}</option>")
                    })
                    .collect();
                let body = format!(
                    "<p>Customer: {}</p><p>{} x {}</p><p>Total: <span id=\"total\">{}</span></p><p>Status: <span id=\"status\">{}</span></p>\
                     <form method=\"post\" action=\"/orders/{number}\"><label>New status <select name=\"status\">{options}</select></label> \
                     <button>Save</button></form>",
                    escape(&self.customers[order.customer]),
                    order.count,
                    self.products[order.product].name,
                    money(order.cents),
                    order.status
                );
                Some(page(SITE, &format!("Order {number}"), LINKS, &body))
            }
            ["products"] => {
                let rows: String = self
                    .products
                    .iter()
                    .enumerate()
                    .map(|(id, product)| {
                        format!(
                            "<tr><td><a href=\"/products/{id}\">{}</a></td><td>{}</td><td>{}</td></tr>",
                            product.name,
                            money(product.cents),
                            product.stock
                        )
                    })
                    .collect();
                let body = format!(
                    "<table><tr><th>Product</th><th>Price</th><th>Stock</th></tr>{rows}</table>"
                );
                Some(page(SITE, "Products", LINKS, &body))
            }
            ["products", id] => {
                let product = self.products.get(id.parse::<usize>().ok()?)?;
                let body = format!(
                    "<p>Price: <span id=\"price\">{price}</span></p><p>Stock: {}</p><form method=\"post\" action=\"/products/{id}\">\
                     <label>New price <input name=\"price\" value=\"{price}\"></label> <button>Save</button></form>",
                    product.stock,
                    price = money(product.cents),
                );
                Some(page(SITE, product.name, LINKS, &body))
            }
            ["customers"] => {
                let rows: String = self
                    .customers
                    .iter()
                    .enumerate()
                    .map(|(id, name)| {
                        let orders =
                            self.orders.iter().filter(|order| order.customer == id).count();
                        format!("<tr><td>{}</td><td>{orders}</td></tr>", escape(name))
                    })
                    .collect();
                let body =
                    format!("<table><tr><th>Customer</th><th>Orders</th></tr>{rows}</table>");
                Some(page(SITE, "Customers", LINKS, &body))
            }
            _ => None,
        }
    }

    pub(crate) fn post(&mut self, parts: &[&str], form: &str) -> Option<Response> {
        match parts {
            ["orders", number] => {
                let order =
                    self.orders.get_mut(number.parse::<usize>().ok()?.checked_sub(FIRST_ORDER)?)?;
                let wanted = parameter(form, "status")?;
                order.status =
                    STATUSES.into_iter().find(|status| *status == wanted).unwrap_or(order.status);
                Some(Response::redirect(format!("/orders/{number}")))
            }
            ["products", id] => {
                let product = self.products.get_mut(id.parse::<usize>().ok()?)?;
                let price: Option<f64> =
                    parameter(form, "price").and_then(|text| text.trim().parse().ok());
                if let Some(price) = price.filter(|price| (0.0..100_000.0).contains(price)) {
                    product.cents = (price * 100.0).round() as u32;
                }
                Some(Response::redirect(format!("/products/{id}")))
            }
            _ => None,
        }
    }
}
