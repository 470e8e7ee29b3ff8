//! Stored inputs, and many changed ones, the same in every run. No panic, no
//! abort, and memory in proportion to the input.

#[path = "common/mutate.rs"]
mod mutate;
mod reference;
#[path = "fuzz/targets/mod.rs"]
mod targets;

use reference::generate::rng::Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)]
// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Changed inputs per target, unless `CLC_REPLAY_FUZZ_CASES` says how many.
const CASES: usize = 1500;
/// Memory that an input may take, whatever its length: twice the most that was seen (4 MB), which is the histograms of `evaluate`, whose size
/// is fixed. The target `files` took 1.1 MB at most.
const MEMORY: usize = 8 << 20;
/// And for each of its bytes.
const MEMORY_PER_BYTE: usize = 64;

/// The input with some changes. Its first byte stays: of some inputs it says what the others are.
fn changed(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let (first, rest) = input.split_at(input.len().min(1));
    let mut rest = rest.to_vec();
    let count = 1 + rng.below(4);
    let one = |_| (rng.bits() as u16, rng.below(usize::from(mutate::KINDS)) as u8, rng.bits() as u8);
    let mutations: Vec<_> = (0..count).map(one).collect();
    mutate::mutate(&mut rest, other, &mutations);
    [first, &rest].concat()
}

/// The stored inputs of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs: Vec<(String, Vec<u8>)> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn no_input_makes_it_fail() {
    for (name, target, seeds) in targets::TARGETS {
        let mut inputs = corpus(name);
        assert!(!inputs.is_empty(), "no inputs are stored for {name}");
        inputs.extend((0..).map(|i| format!("recorded input {i}")).zip(seeds()));
        let attempt = |what: &str, input: &[u8]| {
            MOST.store(NOW.load(Relaxed), Relaxed);
            let before = NOW.load(Relaxed);
            if let Err(complaint) = target(input) {
                let path = std::env::temp_dir().join(format!("fuzz-{name}-failure"));
                std::fs::write(&path, input).unwrap();
                panic!("{name}, {what} (in {}): {complaint}", path.display());
            }
            let used = MOST.load(Relaxed).saturating_sub(before);
            let most = MEMORY + MEMORY_PER_BYTE * input.len();
            assert!(used < most, "{name}, {what}: {used} bytes of memory for an input of {}", input.len());
        };
        for (what, input) in &inputs {
            attempt(what, input);
        }
        let mut rng = Rng(20_070_930);
        let cases = std::env::var("CLC_REPLAY_FUZZ_CASES").map_or(CASES, |cases| cases.parse().expect("a number"));
        for case in 0..cases {
            let (what, input) = &inputs[rng.below(inputs.len())];
            let other = &inputs[rng.below(inputs.len())].1;
            attempt(&format!("case {case}, from {what}"), &changed(input, other, &mut rng));
        }
    }
}
