//! A task made interactive.

use async_trait::async_trait;
use spar_core::{Observation, Seed, Step};

use crate::EnvironmentError;

/// The tag of tasks whose outcome depends on luck even for a perfect player.
pub const CHANCE_TAG: &str = "chance";

/// A task made interactive.
///
/// Equal seeds and equal actions give equal observations; a fork goes on exactly as its origin
/// would have.
#[async_trait]
pub trait Environment: Send {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// Labels of the task that only the environment knows, such as its family.
    fn tags(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts an episode.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the environment could not be brought up.
    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError>;

    /// Carries out an action.
    ///
    /// An action that cannot be executed is an observation, no error.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the environment broke, or was not reset.
    async fn step(&mut self, action: &str) -> Result<Step, EnvironmentError>;

    /// A second environment in the same state, independent of this one.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the state could not be copied.
    async fn fork(&self) -> Result<Box<dyn Environment>, EnvironmentError>;

    /// The next action of a solution, by a player who sees the whole state.
    ///
    /// `None` where the environment has no such player, or the task cannot be solved from here.
    fn oracle_action(&self) -> Option<String> {
        None
    }

    /// The next action of a good player who knows only what this episode has shown.
    ///
    /// `None` where the environment has no such player.
    fn expert_action(&mut self) -> Option<String> {
        None
    }

    /// Gives back what the environment holds.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when something could not be given back.
    async fn close(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }
}
