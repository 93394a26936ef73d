//! States of predictors: any bytes are a state or an error, and a state that was read is asked and fitted.
//!
//! An input is a state, or says which bytes of a whole one are changed and where it is cut off.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_core::Seed;
use spar_predictors::{OpenFor, PredictorConfig, Segments, open_predictor, predictor_registry};

fuzz_target!(|input: (Option<&[u8]>, Vec<(u16, Option<u8>)>)| {
    let (given, damages) = input;
    let mut segments = Segments::new(4).expect("there are features");
    segments.push(&[0.5; 8]).expect("they are whole rows");
    for row in predictor_registry() {
        let open_for = OpenFor { width: 4, seed: Seed::from_u64(1) };
        let config = PredictorConfig::new(row.name);
        let mut predictor = open_predictor(&config, &open_for).expect("defaults are fine");
        let mut state = match given {
            Some(given) => given.to_vec(),
            None => predictor.state().expect("it can be written"),
        };
        for (at, damage) in &damages {
            let at = usize::from(*at) % state.len().max(1);
            match damage {
                Some(byte) => state.iter_mut().skip(at).take(1).for_each(|old| *old = *byte),
                None => state.truncate(at),
            }
        }
        if predictor.load(&state).is_ok() {
            let _ = predictor.predict(&segments);
            let _ = predictor.fit(&segments, &[1.0, 0.0], Seed::from_u64(2));
        }
    }
});
