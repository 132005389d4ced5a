//! Whether the answers can be believed: a thing compared with itself differs in no more than 5 of 100 trials, a real
//! difference is found in at least 90, a planted trend is seen and a shuffled one is not. Noise as real runs have it,
//! with fixed seeds.

use inodyne_analyse::statistics::bootstrap::{Pair, median_ratio};
use inodyne_analyse::statistics::modes::groups;
use inodyne_analyse::statistics::paired::p_value;
use inodyne_analyse::statistics::trend::trend;
use inodyne_analyse::statistics::verdict::judge;
use inodyne_model::comparison::{DEFAULT_MARGIN, Verdict};
use inodyne_model::random::Random;
use inodyne_model::run::CacheState;
use inodyne_model::sample;
use inodyne_model::statistics::RunStatistics;

const TRIALS: usize = 100;
const PAIRS: usize = 30;

/// What disturbs a run besides log-normal noise.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    Nothing,
    /// One run of 20 takes half as long again, or more.
    Outliers,
    /// Every block is slower than the one before.
    Drift,
    /// Every third run or so meets an empty cache.
    TwoModes,
    All,
}

const DISTURBANCES: [Disturbance; 5] =
    [Disturbance::Nothing, Disturbance::Outliers, Disturbance::Drift, Disturbance::TwoModes, Disturbance::All];

fn run(random: &mut Random, block: usize, sd: f64, disturbance: Disturbance) -> f64 {
    use Disturbance::{All, Drift, Outliers, TwoModes};
    let mut time = (random.normal() * sd).exp();
    if matches!(disturbance, Outliers | All) && random.unit() < 0.05 {
        time *= 1.5 + random.unit();
    }
    if matches!(disturbance, Drift | All) {
        time *= 1.0 + 0.3 * block as f64 / PAIRS as f64;
    }
    if matches!(disturbance, TwoModes | All) && random.unit() < 0.3 {
        time *= 1.25;
    }
    time
}

fn pairs(random: &mut Random, count: usize, sd: f64, slower: f64, disturbance: Disturbance) -> Vec<Pair> {
    let mut pair = |block| (run(random, block, sd, disturbance), slower * run(random, block, sd, disturbance));
    (0..count).map(&mut pair).collect()
}

fn verdicts(seed: u64, count: usize, sd: f64, slower: f64, disturbance: Disturbance) -> Vec<Verdict> {
    let mut random = Random::seeded(seed);
    (0..TRIALS)
        .map(|_| {
            let pairs = pairs(&mut random, count, sd, slower, disturbance);
            let p = p_value(&pairs);
            judge(count, median_ratio(&pairs, &mut random), p, DEFAULT_MARGIN)
        })
        .collect()
}

fn how_many(verdicts: &[Verdict], which: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| which.contains(verdict)).count()
}

#[test]
fn a_thing_does_not_differ_from_itself() {
    for (seed, disturbance) in (100..).zip(DISTURBANCES) {
        for count in [6, 10, 30, 50] {
            let verdicts = verdicts(seed + count as u64, count, 0.04, 1.0, disturbance);
            let wrong = how_many(&verdicts, &[Verdict::Faster, Verdict::Slower]);
            assert!(wrong <= 5, "{disturbance:?}, {count} pairs: {wrong} of {TRIALS} were called different");
        }
    }
}

/// `--until 2%`: stopping where the interval happens to be narrow must not make differences out of nothing.
#[test]
fn going_on_until_the_interval_is_narrow_makes_no_difference() {
    for (seed, disturbance) in [(300, Disturbance::Nothing), (400, Disturbance::Outliers)] {
        for least in [6, 10] {
            let mut random = Random::seeded(seed + least as u64);
            let mut wrong = 0;
            for _ in 0..TRIALS {
                let mut all = pairs(&mut random, least, 0.04, 1.0, disturbance);
                let ratio = loop {
                    let ratio = median_ratio(&all, &mut Random::seeded(1));
                    if ratio.is_some_and(|ratio| (ratio.high / ratio.value).max(ratio.value / ratio.low) - 1.0 <= 0.02)
                        || all.len() >= 60
                    {
                        break ratio;
                    }
                    all.extend(pairs(&mut random, 1, 0.04, 1.0, disturbance));
                };
                let verdict = judge(all.len(), ratio, p_value(&all), DEFAULT_MARGIN);
                wrong += usize::from(matches!(verdict, Verdict::Faster | Verdict::Slower));
            }
            println!("{disturbance:?}, from {least} pairs on: {wrong}");
            assert!(wrong <= 5, "{disturbance:?}, from {least} pairs on: {wrong} of {TRIALS} were called different");
        }
    }
}

#[test]
fn a_slow_down_of_five_percent_is_found() {
    for (seed, disturbance) in [(1, Disturbance::Nothing), (2, Disturbance::Outliers), (3, Disturbance::Drift)] {
        let verdicts = verdicts(seed, PAIRS, 0.04, 1.05, disturbance);
        let found = how_many(&verdicts, &[Verdict::Slower]);
        assert!(found >= 90, "{disturbance:?}: found in {found} of {TRIALS}");
        assert_eq!(how_many(&verdicts, &[Verdict::Faster]), 0);
    }
}

#[test]
fn no_difference_is_a_verdict_with_enough_runs() {
    let verdicts = verdicts(5, 50, 0.015, 1.0, Disturbance::Outliers);
    let found = how_many(&verdicts, &[Verdict::NoDifference]);
    assert!(found >= 90, "found in {found} of {TRIALS}");
}

#[test]
fn a_planted_trend_is_seen_and_a_shuffled_one_is_not() {
    let mut random = Random::seeded(11);
    let (mut seen, mut seen_shuffled) = (0, 0);
    for _ in 0..TRIALS {
        // 20 unpackings, the last a fifth slower than the first, with one or another far out.
        let mut times: Vec<f64> = (0..20)
            .map(|at| (1.0 + 0.2 * f64::from(at) / 19.0) * run(&mut random, 0, 0.04, Disturbance::Outliers))
            .collect();
        seen += usize::from(trend(&times).unwrap().p < 0.01);
        random.shuffle(&mut times);
        seen_shuffled += usize::from(trend(&times).unwrap().p < 0.01);
    }
    assert!(seen >= 90 && seen_shuffled <= 5, "{seen} planted and {seen_shuffled} shuffled ones were seen");
}

#[test]
fn two_modes_are_seen_and_one_is_not_two() {
    let mut random = Random::seeded(12);
    for count in [15, 20, 30, 50, 100] {
        let mut seen = |disturbance| {
            let of = |random: &mut Random| (0..count).map(|_| run(random, 0, 0.02, disturbance)).collect::<Vec<_>>();
            (0..1000).filter(|_| groups(&of(&mut random)).is_some()).count()
        };
        let (one, far, two) = (seen(Disturbance::Nothing), seen(Disturbance::Outliers), seen(Disturbance::TwoModes));
        // Where a fifth of the runs happens to be slow, that is a group.
        assert!(one <= 10 && far <= 20, "{count} runs with one mode: {one} and {far} of 1000 looked like two");
        assert!(count < 30 || two >= 900, "{count} runs with two modes: {two} of 1000 were seen");
    }
}

/// The time of a run, around 1; the order of the runs means nothing.
type Noise = fn(&mut Random) -> f64;

/// Shapes that times have, with one mode each.
const SHAPES: [(&str, Noise); 6] = [
    ("normal", |random| 1.0 + 0.05 * random.normal()),
    ("log-normal", |random| (0.2 * random.normal()).exp()),
    ("uniform", |random| 0.8 + 0.4 * random.unit()),
    // Something that is waited for, on top of what always takes equally long.
    ("exponential", |random| 1.0 - 0.2 * (1.0 - random.unit()).ln()),
    // Student's t with three degrees of freedom: far out now and then.
    ("heavy", |random| {
        let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
        (1.0 + 0.03 * random.normal() / (squares / 3.0).sqrt()).max(0.1)
    }),
    // A coarse clock: many runs take the same time.
    ("ties", |random| ((1.0 + 0.05 * random.normal()) * 40.0).round() / 40.0),
];

fn flagged(random: &mut Random, count: usize, noise: Noise) -> RunStatistics {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("find .")];
    for _ in 0..count {
        recording.push_run(sample::run(0, CacheState::Warm, false, sample::ms(100.0 * noise(random))));
    }
    inodyne_analyse::explain(&mut recording);
    recording.statistics.remove(0)
}

#[test]
fn noise_alone_raises_no_flag() {
    const TRIALS: usize = 500;
    let mut told = String::new();
    let mut most = 0;
    for (seed, (name, noise)) in (50..).zip(SHAPES) {
        for count in [6, 10, 20, 50] {
            let mut random = Random::seeded(seed * 1000 + count as u64);
            let all: Vec<RunStatistics> = (0..TRIALS).map(|_| flagged(&mut random, count, noise)).collect();
            let of = |flag: fn(&RunStatistics) -> bool| all.iter().filter(|found| flag(found)).count();
            let flags = [of(|f| f.trend.is_some()), of(|f| f.change_point.is_some()), of(|f| f.modes.is_some())];
            let outliers = of(|f| !f.outliers.is_empty());
            told.push_str(&format!("{name}, {count} runs: trend, step, modes {flags:?}, outliers {outliers}\n"));
            most = most.max(flags.into_iter().max().unwrap_or(0));
            // Skewed or heavy-tailed noise has values that lie far out: that is then said of them.
            let is_plain = ["normal", "log-normal", "uniform"].contains(&name);
            assert!(!is_plain || outliers <= TRIALS * 7 / 100, "{told}");
        }
    }
    println!("{told}");
    assert!(most <= TRIALS / 20, "of {TRIALS} each:\n{told}");
}
