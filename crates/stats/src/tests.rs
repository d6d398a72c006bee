//! Compares formulas with SciPy and NumPy. `tests/fixtures/make.py` generates the reference and records the versions.

use crate::{comparison, intervals, sample, series};
use serde_json::Value;

fn reference(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../tests/fixtures/reference.json")).unwrap();
    let rows = all[name].as_array().unwrap().clone();
    assert!(!rows.is_empty());
    rows
}

fn numbers(array: &Value) -> Vec<f64> {
    array.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn times(array: &Value) -> Vec<u64> {
    array.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

fn near(got: f64, expected: &Value) -> bool {
    let expected = expected.as_f64().unwrap();
    (got - expected).abs() <= 1e-8 * expected.abs().max(1e-3)
}

#[test]
fn critical_values_match_scipy() {
    for row in reference("student") {
        let got = sample::critical_value(row["degrees"].as_f64().unwrap()).unwrap();
        assert!(near(got, &row["factor"]), "{got} {row}");
    }
}

#[test]
fn geometric_means_match_scipy() {
    for row in reference("geometric") {
        let got = intervals::mean(&numbers(&row["values"])).unwrap();
        let [low, high] = got.interval.unwrap();
        let (l, h) = (&row["interval"][0], &row["interval"][1]);
        assert!(near(got.value, &row["mean"]) && near(low, l) && near(high, h), "{got:?} {row}");
    }
}

#[test]
fn ratios_and_rank_tests_match_scipy() {
    for row in reference("ranks") {
        let got = comparison::compare_times(&times(&row["a"]), &times(&row["b"])).unwrap();
        assert!(near(got.ratio, &row["ratio"]) && near(got.p, &row["p_asymptotic"]), "{got:?} {row}");
    }
}

#[test]
fn ranks_of_the_median_match_scipy() {
    for row in reference("order") {
        let values: Vec<f64> = (1..=row["runs"].as_u64().unwrap()).map(|v| v as f64).collect();
        let got = intervals::median_of_runs(&values).map(|e| e.interval[0]);
        assert_eq!(got, row["rank"].as_f64(), "{row}");
    }
}

#[test]
fn fitted_lines_match_scipy() {
    for row in reference("lines") {
        let got = series::find_drift_over_runs(&numbers(&row["values"])).unwrap();
        assert!(near(got.share, &row["share"]) && near(got.half_width, &row["half"]), "{got:?} {row}");
    }
}

#[test]
fn correlation_times_warm_ups_and_intervals_match_numpy() {
    let (mut withheld, mut never) = (0, 0);
    for row in reference("courses") {
        let values = numbers(&row["values"]);
        let time = series::correlation_time(&values);
        assert!(near(time, &row["tau"]), "{time} against {}", row["tau"]);
        let half = intervals::half_width(&values);
        assert!(
            half.map_or(row["half"].is_null(), |h| near(h, &row["half"])),
            "{half:?} against {}",
            row["half"]
        );
        let cut = series::find_warm_up(&values);
        assert_eq!(cut.map(|c| c as u64), row["cut"].as_u64());
        (withheld, never) = (withheld + usize::from(half.is_none()), never + usize::from(cut.is_none()));
    }
    assert!(withheld > 0 && never > 0, "both refusals must be among them");
}
