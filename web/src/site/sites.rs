//! The sites behind one window.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spar_core::Seed;

use super::forum::Forum;
use super::map::Map;
use super::pages::Numbers;
use super::shop::Shop;
use crate::server::split_url;
use crate::{Request, Response, Server};

/// The origins of the sites.
pub(crate) const FORUM: &str = "http://forum.test";
pub(crate) const SHOP: &str = "http://shop.test";
pub(crate) const MAP: &str = "http://map.test";

/// The three sites of an episode, made from a seed. What is done in them stays until the next episode, and is its own.
#[derive(Debug)]
pub struct Sites {
    state: Mutex<State>,
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) forum: Forum,
    pub(crate) shop: Shop,
    pub(crate) map: Map,
}

impl State {
    pub(crate) fn new(seed: Seed) -> Self {
        let numbers = |name: &str| Numbers(seed.derive(name, 0));
        Self {
            forum: Forum::new(numbers("forum")),
            shop: Shop::new(numbers("shop")),
            map: Map::new(numbers("map")),
        }
    }
}

impl Sites {
    /// The sites of a seed.
    pub fn new(seed: Seed) -> Self {
        Self { state: Mutex::new(State::new(seed)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server for Sites {
    fn answer(&self, request: &Request) -> Option<Response> {
        let (_, _, path) = split_url(&request.url)?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let origin = request.url.split('/').take(3).collect::<Vec<_>>().join("/");
        let is_post = request.method == "POST";
        if !is_post && request.method != "GET" {
            return Some(Response { status: 405, ..Response::not_found() });
        }
        let mut state = self.state();
        let answer = match origin.split('?').next().unwrap_or_default() {
            FORUM if is_post => state.forum.post(&parts, &request.body),
            FORUM => state.forum.get(&parts),
            SHOP if is_post => state.shop.post(&parts, &request.body),
            SHOP => state.shop.get(&parts, query),
            MAP if !is_post => state.map.get(&parts, query),
            MAP => None,
            _ => return None,
        };
        Some(answer.unwrap_or_else(Response::not_found))
    }

    fn is_allowed(&self, url: &str) -> bool {
        let known = ["forum.test", "shop.test", "map.test"];
        url == "about:blank"
            || split_url(url)
                .is_some_and(|(scheme, host, _)| scheme == "http" && known.contains(&host))
    }
}
