//! Weights on a device.

use std::ops::Range;
use std::sync::Arc;

use spar_policy::cuda::{DeviceError, DeviceGroup, DeviceLearner};
use spar_policy::ops::elementwise::AdamWStep;
use spar_policy::{ParameterSpec, Parameters, Weights};

use super::{HeadWork, Home, Work};
use crate::optimisers::Moments;
use crate::{
    AdamWOptions, FixedModel, Measured, SampleGradient, StateReader, StateTensor, TrainerError,
};

/// Weights on a device, with AdamW computing there; or the same weights on every device of a group,
/// which share out the shards of an update and make equal steps.
pub(crate) struct DeviceHome {
    /// By rank; the first one's weights are played by.
    learners: Vec<Arc<DeviceLearner>>,
    /// Where there are several.
    group: Option<Arc<DeviceGroup>>,
    options: AdamWOptions,
    updates: u64,
}

fn failed(source: DeviceError) -> TrainerError {
    TrainerError::Model { source: Box::new(source) }
}

impl DeviceHome {
    /// One learner, or one for every device of the group.
    pub(crate) fn new(
        learners: Vec<DeviceLearner>,
        group: Option<Arc<DeviceGroup>>,
        options: AdamWOptions,
    ) -> Self {
        let learners = learners.into_iter().map(Arc::new).collect();
        Self { learners, group, options, updates: 0 }
    }

    fn learner(&self) -> &DeviceLearner {
        &self.learners[0]
    }

    /// The decoder at the weights as they are now, whatever comes after.
    pub(crate) fn weights(&self) -> Arc<Weights> {
        self.learner().weights()
    }
}

/// What ended a member of a group.
#[derive(Debug)]
struct Failed(TrainerError);

impl From<TrainerError> for Failed {
    fn from(error: TrainerError) -> Self {
        Self(error)
    }
}

impl From<DeviceError> for Failed {
    fn from(error: DeviceError) -> Self {
        Self(failed(error))
    }
}

impl Home for DeviceHome {
    fn specs(&self) -> &Arc<[ParameterSpec]> {
        self.learner().specs()
    }

    fn parameters(&self) -> Result<Parameters, TrainerError> {
        self.learner().parameters().map_err(failed)
    }

    /// Shards go to the devices in turn; a device computes its own one after the other.
    fn accumulate(
        &mut self,
        model: &dyn SampleGradient,
        work: &Work<'_>,
    ) -> Result<(), TrainerError> {
        let learners = &self.learners;
        let accumulate = |rank: usize| -> Result<(), TrainerError> {
            let model =
                model.prepare_on_device(&learners[rank]).ok_or(TrainerError::NotOnDevice)?;
            learners[rank].clear_gradient().map_err(failed)?;
            let shards = work.shards.iter().enumerate().skip(rank).step_by(learners.len());
            let parts = shards.flat_map(|(shard, parts)| parts.iter().map(move |it| (shard, it)));
            for (shard, samples) in parts {
                let loss =
                    |index: usize, found: Measured<'_>| (work.loss)(samples.start + index, found);
                let given = &work.samples[samples.clone()];
                HeadWork::with_shard(work.head, shard, |head| model.accumulate(given, &loss, head))
                    .map_err(|source| TrainerError::Model { source })?;
            }
            Ok(())
        };
        match &self.group {
            None => accumulate(0),
            Some(group) => group
                .run(|member| {
                    accumulate(member.rank())?;
                    member.add_up_gradients(&learners[member.rank()]).map_err(Failed::from)
                })
                .map_err(|Failed(error)| error),
        }
    }

    fn fixed(&self, model: &dyn SampleGradient) -> Result<Box<dyn FixedModel>, TrainerError> {
        Ok(model.prepare_on_device(&self.learners[0]).ok_or(TrainerError::NotOnDevice)?)
    }

    fn gradient_norm(&self) -> Result<f64, TrainerError> {
        self.learner().gradient_norm().map_err(failed)
    }

    fn step(&mut self, factor: Option<f32>, learning_rate_scale: f32) -> Result<(), TrainerError> {
        self.updates += 1;
        let mut parts: Vec<(Range<usize>, AdamWStep)> = Vec::new();
        for spec in self.learner().specs().iter() {
            let rate = self.options.learning_rate_of(spec.kind) * learning_rate_scale;
            let step = self.options.step(spec.kind, rate, self.updates);
            match parts.last_mut() {
                // Neighbours are updated by one call.
                Some((range, last)) if *last == step && range.end == spec.offset => {
                    range.end = spec.range().end;
                }
                _ => parts.push((spec.range(), step)),
            }
        }
        let factor = factor.unwrap_or(1.0);
        self.learners.iter().try_for_each(|learner| learner.step(&parts, factor)).map_err(failed)
    }

    fn optimizer(&self) -> &'static str {
        "adamw"
    }

    fn state(&self) -> Result<Vec<StateTensor<'_>>, TrainerError> {
        let means = self.learner().means().map_err(failed)?;
        Ok(Moments::read_back(self.learner().specs(), means, self.updates))
    }

    fn load(&mut self, parameters: Parameters, state: StateReader<'_>) -> Result<(), TrainerError> {
        let mut moments = Moments::new(&parameters, None)?;
        moments.load_state(state, |_| true)?;
        let means = [moments.first.in_memory(), moments.second.in_memory()];
        let load = |learner: &Arc<DeviceLearner>| learner.load(&parameters.data, means);
        self.learners.iter().try_for_each(load).map_err(failed)?;
        self.updates = moments.updates;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{PolicyVersion, Sample, Seed};
    use spar_policy::cuda::{Device, Number};
    use spar_policy::state_heads::{HeadWeights, StateHeadConfig};
    use spar_policy::{LoraConfig, LoraModel, ModelConfig, initial_parameters};

    use crate::testing::{load, saved};
    use crate::{
        DecoderGradient, LossAggregation, ObjectiveConfig, OptimizerConfig, OptimizerPlace,
        Supervised, Trained, Trainer, TrainerConfig, ValueLossOptions,
    };

    use super::*;

    fn config() -> ModelConfig {
        ModelConfig {
            vocab_size: 11,
            hidden_size: 16,
            intermediate_size: 24,
            num_hidden_layers: 1,
            head_dim: 16,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        }
    }

    fn parameters() -> Parameters {
        initial_parameters(&config(), Seed::from_u64(5))
    }

    fn trained(number: Option<Number>) -> Trained {
        let weights = Weights::new(&config(), parameters());
        Trained::Weights(Arc::new(match number {
            Some(number) => weights.on_device(&Device::emulated(), number).unwrap(),
            None => weights,
        }))
    }

    fn trainer_config(place: Option<OptimizerPlace>) -> TrainerConfig {
        let options = "learning_rate = 0.01\nembedding_learning_rate = 0.02\nweight_decay = 0.1";
        let options = toml::from_str(options).unwrap();
        let optimizer = OptimizerConfig { name: "adamw".to_owned(), options };
        TrainerConfig { optimizer, optimizer_on: place, shards: 2, ..TrainerConfig::default() }
    }

    fn samples() -> Vec<Sample> {
        let sample = |start: u32| {
            let mut sample = Sample::default();
            sample.push_observed(start % 11, 0.0);
            for t in 1..7 + start % 3 {
                let token = (start + 3 * t) % 11;
                sample.push(token, 1.0, 1.0, 1.0, 0.0, PolicyVersion(0), &[]);
            }
            sample
        };
        (0..5).map(sample).collect()
    }

    /// The losses of some updates from the `first` on.
    fn train(trainer: &mut Trainer, model: &DecoderGradient, updates: Range<u64>) -> Vec<f64> {
        let mut losses = Vec::new();
        for update in updates {
            let (mode, seed) = (LossAggregation::TokenMean, Seed::from_u64(update));
            let told = trainer.iterate(&samples(), &Supervised, mode, model, seed, 0.2).unwrap();
            losses.push(told[0].loss);
        }
        losses
    }

    fn largest_difference(a: &Parameters, b: &Parameters) -> f32 {
        let pairs = a.data.iter().zip(&b.data);
        pairs.fold(0.0, |largest, (a, b)| largest.max((a - b).abs()))
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_optimizer_on_the_device_learns_what_the_one_on_the_host_does() {
        // AdamW's first steps have the size of the rate, whatever the gradient's: where that is small
        // against its rounding, the weights of one number after another are apart by some of it.
        for (number, tolerance) in [(Number::F32, 1e-4), (Number::Bf16, 2e-2)] {
            let trained = trained(Some(number));
            let model = DecoderGradient::of(trained.clone(), 1.0);
            let mut ends = Vec::new();
            for place in [OptimizerPlace::Host, OptimizerPlace::Device] {
                let config = trainer_config(Some(place));
                let mut trainer = Trainer::beside(config, parameters(), &trained, None).unwrap();
                let losses = train(&mut trainer, &model, 0..5);
                assert!(losses[4] < losses[0], "{losses:?}");
                ends.push((trainer.parameters().unwrap(), losses));
            }
            let [(host, of_host), (device, of_device)] = &ends[..] else { unreachable!() };
            let apart = largest_difference(host, device);
            assert!(apart <= tolerance, "{number:?}: {apart}");
            assert!((of_host[4] - of_device[4]).abs() < f64::from(tolerance));
        }
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_optimizer_on_the_device_goes_on_to_the_bit_from_its_state() {
        let trained = trained(Some(Number::Bf16));
        let model = DecoderGradient::of(trained.clone(), 1.0);
        // Where the decoder is on a device, AdamW is as well.
        let fresh = || Trainer::beside(trainer_config(None), parameters(), &trained, None).unwrap();
        let mut whole = fresh();
        train(&mut whole, &model, 0..2);
        let (weights, state) = (whole.parameters().unwrap(), saved(&whole));
        train(&mut whole, &model, 2..4);
        let mut resumed = fresh();
        load(&mut resumed, weights.clone(), &state).unwrap();
        assert_eq!(resumed.version(), PolicyVersion(2));
        train(&mut resumed, &model, 2..4);
        assert_eq!(resumed.parameters().unwrap(), whole.parameters().unwrap());
        assert_eq!(saved(&resumed), saved(&whole));
        // What was saved goes on on the host as well.
        let host = trainer_config(Some(OptimizerPlace::Host));
        let mut host = Trainer::beside(host, parameters(), &trained, None).unwrap();
        load(&mut host, weights, &state).unwrap();
        assert_eq!(host.version(), PolicyVersion(2));
        assert_eq!(saved(&host), state);
        assert!(load(&mut fresh(), parameters(), b"junk").is_err());
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_weights_that_were_published_stay_while_updates_go_on() {
        let trained = trained(Some(Number::F32));
        let model = DecoderGradient::of(trained.clone(), 1.0);
        let config = trainer_config(Some(OptimizerPlace::Device));
        let mut trainer = Trainer::beside(config, parameters(), &trained, None).unwrap();
        let logprobs = |weights: &Arc<Weights>| {
            let sample = samples().remove(0);
            DecoderGradient::new(weights.clone(), 1.0)
                .at_base()
                .logprobs(&[&sample])
                .unwrap()
                .remove(0)
        };
        let mut published = trainer.weights(&trained).unwrap();
        // Nobody copies them, ...
        assert!(Arc::ptr_eq(&published, &trainer.weights(&trained).unwrap()));
        for updates in [0..1, 1..3, 3..4] {
            // ... and updates leave them as they were.
            let before = logprobs(&published);
            train(&mut trainer, &model, updates);
            assert_eq!(logprobs(&published), before);
            let next = trainer.weights(&trained).unwrap();
            let after = logprobs(&next);
            assert!(after.iter().sum::<f32>() > before.iter().sum());
            let host = Arc::new(published.with_parameters(trainer.parameters().unwrap()));
            assert_eq!(logprobs(&host), after);
            published = next;
        }
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_adapters_learn_what_those_on_the_cpu_do() {
        let base = Arc::new(Weights::new(&config(), parameters()));
        let lora = LoraConfig { rank: 3, alpha: 5.0, ..LoraConfig::default() };
        let model = Arc::new(LoraModel::new(base, &lora));
        let factors = model.initial(Seed::from_u64(3));
        let on_cpu = Trained::Adapter(model);
        let on_device = |number| {
            let place = |weights: Weights| weights.on_device(&Device::emulated(), number);
            on_cpu.clone().placed_by(place).unwrap()
        };
        let run = |trained: &Trained, place: OptimizerPlace| {
            let config = trainer_config(Some(place));
            let mut trainer = Trainer::beside(config, factors.clone(), trained, None).unwrap();
            let model = DecoderGradient::of(trained.clone(), 1.0);
            let losses = train(&mut trainer, &model, 0..4);
            (trainer.parameters().unwrap(), losses)
        };
        let (expected, losses) = run(&on_cpu, OptimizerPlace::Host);
        assert!(losses[3] < losses[0], "{losses:?}");
        for place in [OptimizerPlace::Host, OptimizerPlace::Device] {
            let (found, of_device) = run(&on_device(Number::F32), place);
            let apart = largest_difference(&expected, &found);
            assert!(apart < 1e-3, "{place:?}: {apart}");
            assert!((losses[3] - of_device[3]).abs() < 1e-3, "{of_device:?} for {losses:?}");
        }
        let (_, of_device) = run(&on_device(Number::Bf16), OptimizerPlace::Device);
        assert!((losses[3] - of_device[3]).abs() < 3e-2, "{of_device:?} for {losses:?}");
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_devices_of_a_group_learn_what_one_does() {
        for number in [Number::F32, Number::Bf16] {
            let trained = trained(Some(number));
            let model = DecoderGradient::of(trained.clone(), 1.0);
            let run = |devices: usize| {
                let first = trained.decoder().device().unwrap();
                let group =
                    (devices > 1).then(|| Arc::new(DeviceGroup::around(first, devices).unwrap()));
                let config = TrainerConfig { shards: 3, ..trainer_config(None) };
                let mut trainer =
                    Trainer::beside(config, parameters(), &trained, group.as_ref()).unwrap();
                let losses = train(&mut trainer, &model, 0..4);
                (trainer.parameters().unwrap(), losses)
            };
            let ((one, losses), (two, of_two)) = (run(1), run(2));
            assert!(losses[3] < losses[0]);
            // What is added up in another order.
            let tolerance = if number == Number::F32 { 1e-4 } else { 2e-2 };
            let apart = largest_difference(&one, &two);
            assert!(apart <= tolerance, "{number:?}: {apart}");
            assert!((losses[3] - of_two[3]).abs() < f64::from(tolerance));
            // The same devices do the same again, to the bit.
            assert_eq!(run(2).0, two);
        }
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_devices_train_a_head_as_the_cpu_does() {
        let mut samples = samples();
        for sample in &mut samples {
            sample.returns = sample.tokens.iter().map(|token| (token % 3) as f32 / 2.0).collect();
        }
        let value_loss = Some(ValueLossOptions::default());
        let objective = ObjectiveConfig { value_loss, ..ObjectiveConfig::default() };
        let objective = objective.build().unwrap();
        let run = |number: Option<Number>, devices: usize| {
            let trained = trained(number);
            let group = (devices > 1).then(|| {
                let first = trained.decoder().device().unwrap();
                Arc::new(DeviceGroup::around(first, devices).unwrap())
            });
            let config = TrainerConfig { shards: 3, ..trainer_config(None) };
            let trainer = Trainer::beside(config, parameters(), &trained, group.as_ref()).unwrap();
            let head = HeadWeights::fresh(&StateHeadConfig::default(), 16, Seed::from_u64(1));
            let mut trainer = trainer.with_head(head.unwrap()).unwrap();
            let model = DecoderGradient::of(trained, 1.0);
            let mut losses = Vec::new();
            for update in 0..6 {
                let (mode, seed) = (LossAggregation::TokenMean, Seed::from_u64(update));
                let told = trainer.iterate(&samples, &*objective, mode, &model, seed, 0.2).unwrap();
                losses.push(told[0].objective["value_loss"]);
            }
            let head = trainer.head().unwrap().parameters().clone();
            (trainer.parameters().unwrap(), head, losses)
        };
        let (weights, head, losses) = run(None, 1);
        assert!(losses[5] < losses[0], "{losses:?}");
        for devices in [1, 2] {
            let (found, of_device, told) = run(Some(Number::F32), devices);
            let apart = largest_difference(&head, &of_device);
            assert!(apart < 1e-3, "{devices}: {apart}");
            let apart = largest_difference(&weights, &found);
            assert!(apart < 1e-3, "{devices}: {apart}");
            assert!((told[5] - losses[5]).abs() < 1e-3, "{told:?} for {losses:?}");
        }
        let (_, _, told) = run(Some(Number::Bf16), 1);
        assert!((told[5] - losses[5]).abs() < 3e-2, "{told:?} for {losses:?}");
    }

    /// A model that fails on samples of a length.
    struct Failing(DecoderGradient);

    impl SampleGradient for Failing {
        fn prepare(&self, parameters: &Parameters) -> Box<dyn crate::PreparedModel> {
            self.0.prepare(parameters)
        }

        fn prepare_on_device(
            &self,
            learner: &Arc<DeviceLearner>,
        ) -> Option<Box<dyn crate::DeviceModel>> {
            Some(Box::new(FailingThere(self.0.prepare_on_device(learner)?)))
        }
    }

    struct FailingThere(Box<dyn crate::DeviceModel>);

    impl FixedModel for FailingThere {
        fn measure(
            &self,
            samples: &[&Sample],
            request: &crate::MeasureRequest<'_>,
        ) -> Result<Vec<crate::Measures>, Box<dyn std::error::Error + Send + Sync>> {
            self.0.measure(samples, request)
        }
    }

    impl crate::DeviceModel for FailingThere {
        fn accumulate(
            &self,
            samples: &[&Sample],
            loss: &crate::SampleLossFn<'_>,
            head: Option<crate::HeadGradient<'_>>,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            if samples.iter().any(|sample| sample.tokens[0] == 3) {
                return Err("sample 3 cannot be read".into());
            }
            self.0.accumulate(samples, loss, head)
        }
    }

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_device_that_fails_ends_the_update_and_the_weights_stay() {
        let trained = trained(Some(Number::F32));
        let first = trained.decoder().device().unwrap();
        let group = Arc::new(DeviceGroup::around(first, 2).unwrap());
        let config = TrainerConfig { micro_batch_tokens: 1, ..trainer_config(None) };
        let mut trainer = Trainer::beside(config, parameters(), &trained, Some(&group)).unwrap();
        let model = DecoderGradient::of(trained.clone(), 1.0);
        let (all, mode) = (samples(), LossAggregation::TokenMean);
        let all: Vec<&Sample> = all.iter().collect();
        let failing = Failing(DecoderGradient::of(trained.clone(), 1.0));
        let error = trainer.update(&all, &Supervised, mode, &failing, 0.0).unwrap_err();
        let TrainerError::Model { source } = error else { panic!("{error}") };
        assert_eq!(source.to_string(), "sample 3 cannot be read");
        assert_eq!(trainer.parameters().unwrap(), parameters());
        // The group goes on.
        trainer.update(&all, &Supervised, mode, &model, 0.0).unwrap();
        assert_ne!(trainer.parameters().unwrap(), parameters());
    }

    #[test]
    fn a_place_that_cannot_be_is_refused() {
        let place = trainer_config(Some(OptimizerPlace::Device));
        let on_cpu = Trainer::beside(place.clone(), parameters(), &trained(None), None);
        assert!(matches!(on_cpu, Err(TrainerError::Config { .. })));
        let optimizer = OptimizerConfig { name: "muon".to_owned(), ..OptimizerConfig::default() };
        assert_eq!(TrainerConfig { optimizer, ..place }.problems().len(), 1);
    }
}
