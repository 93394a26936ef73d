//! What is measured on samples before credit is estimated.

use anyhow::bail;
use spar_core::{Sample, Signal};
use spar_trainer::{DecoderGradient, fill_reference};

use super::Training;

impl Training {
    /// Fills the signals that an estimator needs in the streams of all samples that were cut.
    ///
    /// What [`Recipe::missing_signal`](crate::recipe::Recipe::missing_signal) does not miss has its stage here.
    pub(super) fn fill_signals(
        &self,
        needs: &[Signal],
        samples: &mut [Sample],
    ) -> anyhow::Result<()> {
        for &signal in needs {
            match signal {
                Signal::Reference => self.fill_reference(samples)?,
                Signal::Old
                | Signal::Teacher
                | Signal::Values
                | Signal::Entropies
                | Signal::SumSquares => bail!("fill signal `{signal}`: nothing gives it"),
            }
        }
        Ok(())
    }

    /// Fills the log-probabilities under the reference model, where the recipe has one.
    pub(super) fn fill_reference(&self, samples: &mut [Sample]) -> anyhow::Result<()> {
        let Some(reference) = self.reference()? else { return Ok(()) };
        let temperature = self.recipe.episode.sampling.temperature;
        let model = DecoderGradient::new(reference, temperature).at_base();
        let budget = self.recipe.reinforce.trainer.micro_batch_tokens;
        Ok(fill_reference(samples, model.as_ref(), budget)?)
    }
}
