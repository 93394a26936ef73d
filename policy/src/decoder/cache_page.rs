//! Keys and values of adjacent tokens, where the decoder is.

use std::ops::{Deref, DerefMut};

use spar_ops::page::{Page, PageShape};

use crate::cuda::{DeviceError, DevicePage};

/// A page of a cache: its tokens, and their keys and values in the host's memory or on a device.
#[derive(Debug)]
pub(crate) struct CachePage {
    page: Page,
    /// Where the keys and values are, if not in `page`.
    pub(crate) device: Option<DevicePage>,
}

impl CachePage {
    /// A page in the host's memory.
    pub(crate) fn new(shape: PageShape) -> Self {
        Self { page: Page::new(shape), device: None }
    }

    /// A page whose keys and values are on a device.
    pub(crate) fn on_device(shape: PageShape, device: DevicePage) -> Self {
        Self { page: Page::of_tokens(shape), device: Some(device) }
    }

    /// Its tokens, and what of it is in the host's memory.
    pub(crate) fn host(&self) -> &Page {
        &self.page
    }

    /// A page of its own with the same content.
    pub(crate) fn copied(&self) -> Result<Self, DeviceError> {
        let device = self.device.as_ref().map(DevicePage::copied).transpose()?;
        Ok(Self { page: self.page.clone(), device })
    }
}

impl Deref for CachePage {
    type Target = Page;

    fn deref(&self) -> &Page {
        self.host()
    }
}

impl DerefMut for CachePage {
    fn deref_mut(&mut self) -> &mut Page {
        &mut self.page
    }
}
