//! Seeds as BrowserGym draws them.

/// Numbers of MT19937's state.
const N: usize = 624;

/// The seed of a page: `numpy.random.RandomState(seed).randint(0, 1000000)`, which BrowserGym gives to `Math.seedrandom`.
///
/// The generator is seeded with the lower 32 bits of `seed`, as numpy's legacy seeding does; draws of 20 bits are made anew
/// until one is below a million.
pub fn page_seed(seed: u64) -> u32 {
    let mut state = [0_u32; N];
    state[0] = seed as u32;
    for at in 1..N {
        let before = state[at - 1];
        state[at] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(at as u32);
    }
    let mut at = N;
    loop {
        if at == N {
            twist(&mut state);
            at = 0;
        }
        let mut drawn = state[at];
        at += 1;
        drawn ^= drawn >> 11;
        drawn ^= (drawn << 7) & 0x9d2c_5680;
        drawn ^= (drawn << 15) & 0xefc6_0000;
        drawn ^= drawn >> 18;
        let masked = drawn & 0xf_ffff;
        if masked < 1_000_000 {
            return masked;
        }
    }
}

fn twist(state: &mut [u32; N]) {
    for at in 0..N {
        let both = (state[at] & 0x8000_0000) | (state[(at + 1) % N] & 0x7fff_ffff);
        let mut next = state[(at + 397) % N] ^ (both >> 1);
        if both & 1 == 1 {
            next ^= 0x9908_b0df;
        }
        state[at] = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_those_of_numpy() {
        // numpy.random.RandomState(seed).randint(0, 1000000), numpy 2.
        for (seed, drawn) in SEEDS {
            assert_eq!(page_seed(seed), drawn, "{seed}");
        }
    }

    const SEEDS: [(u64, u32); 10] = [
        (0, 985772),
        (1, 128037),
        (2, 875688),
        (3, 71530),
        (42, 121958),
        (1234, 486191),
        (99999, 150859),
        (1000000, 396722),
        (3000000, 38761),
        (4294967295, 944547),
    ];
}
