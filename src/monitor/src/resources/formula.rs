//! Aggregates of the user's own: arithmetic over built-in ones, loaded while a job runs.
//!
//! A formula knows numbers, operators, functions of one number and names like `load1_max`, `data_queue_sum` or `nodes`. It has no loops, no calls of anything
//! else, no memory, and its length is bounded: so its time is, and nothing can be smuggled in.

use super::{Aggregate, Quantity, Reading};
use exmex::{Express, FlatEx};

/// Longest formula, in bytes.
pub const MAX_FORMULA: usize = 400;

/// A parsed formula.
#[derive(Debug, Clone)]
pub struct Formula {
    text: String,
    expression: FlatEx<f64>,
    /// What the variables stand for, in the expression's order.
    variables: Vec<Variable>,
}

/// What a name in a formula stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// `nodes`: their number.
    Nodes,
    /// `load1_max`: an aggregate of what the sensors of the nodes read.
    Of(Quantity, Aggregate),
    /// `data_queue_max`: an aggregate of the numbers that the user's programs have given under that key (`queue`).
    Data(String, Aggregate),
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFormula {
    /// Longer than [`MAX_FORMULA`].
    #[error("a formula has at most {MAX_FORMULA} characters")]
    TooLong,
    /// Neither number, operator, function nor name; or they do not fit together.
    #[error("not a formula: {0}")]
    Syntax(String),
    /// A name that is not `nodes` or quantity, underscore, aggregate.
    #[error(
        "unknown name {0}; valid names are \"nodes\", a quantity with an aggregate, such as load1_mean, and data with an aggregate, such as \
         data_queue_sum for the values put under the key queue"
    )]
    Unknown(String),
}

impl Formula {
    /// Reads a formula such as `memory_sum / memory_total_sum` or `load1_max - load1_mean`.
    pub fn parse(text: &str) -> Result<Self, NoFormula> {
        if text.len() > MAX_FORMULA {
            return Err(NoFormula::TooLong);
        }
        let expression = exmex::parse::<f64>(text).map_err(|error| NoFormula::Syntax(error.to_string()))?;
        let variable = |name: &String| variable(name).ok_or_else(|| NoFormula::Unknown(name.clone()));
        let variables = expression.var_names().iter().map(variable).collect::<Result<_, _>>()?;
        Ok(Formula { text: text.to_owned(), expression, variables })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its names stand for.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Its value, with `value` of what its names stand for; none if one of those is none, or if there is no finite value.
    pub fn value(&self, value: impl Fn(&Variable) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.variables.iter().map(value).collect::<Option<_>>()?;
        self.expression.eval(&values).ok().filter(|value| value.is_finite())
    }

    /// Its value over the readings of a group; none if something that it needs was not read, or if there is no finite value.
    pub fn of(&self, readings: &[Reading]) -> Option<f64> {
        self.value(|variable| match variable {
            Variable::Nodes => Some(readings.len() as f64),
            Variable::Of(quantity, how) => how.of_readings(readings, *quantity),
            Variable::Data(..) => None,
        })
    }
}

/// What names of the user's data begin with.
const DATA: &str = "data_";

fn variable(name: &str) -> Option<Variable> {
    if name == "nodes" {
        return Some(Variable::Nodes);
    }
    let (quantity, how) = name.rsplit_once('_')?;
    let how = Aggregate::ALL.into_iter().find(|aggregate| aggregate.name() == how)?;
    match quantity.strip_prefix(DATA).filter(|key| !key.is_empty()) {
        Some(key) => Some(Variable::Data(key.to_owned(), how)),
        None => Some(Variable::Of(Quantity::named(quantity)?, how)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readings() -> Vec<Reading> {
        let reading = |load: f64, memory: f64| {
            let mut reading = Reading::default();
            reading.set(Quantity::Load1, load);
            reading.set(Quantity::MemoryAvailable, memory);
            reading
        };
        vec![reading(1.0, 100.0), reading(4.0, 50.0)]
    }

    fn value(text: &str) -> Option<f64> {
        Formula::parse(text).expect(text).of(&readings())
    }

    #[test]
    fn formulas_are_arithmetic_over_aggregates() {
        assert_eq!(value("load1_max - load1_mean"), Some(1.5));
        assert_eq!(value("memory_sum / nodes"), Some(75.0));
        assert_eq!(value("2 * (load1_min + load1_max) ^ 2"), Some(50.0));
        assert_eq!(value("7"), Some(7.0));
        assert_eq!(value("temperature_max"), None, "nobody read it");
        assert_eq!(value("1 / (load1_min - 1)"), None, "no finite value");
    }

    #[test]
    fn data_of_the_users_have_names_of_their_own() {
        let formula = Formula::parse("data_queue_max / data_queue_mean + load1_min").unwrap();
        let value = |variable: &Variable| match variable {
            Variable::Data(key, Aggregate::Maximum) if key == "queue" => Some(6.0),
            Variable::Data(key, Aggregate::Mean) if key == "queue" => Some(4.0),
            Variable::Of(Quantity::Load1, Aggregate::Minimum) => Some(1.0),
            _ => None,
        };
        assert_eq!(formula.value(value), Some(2.5));
        assert_eq!(formula.of(&readings()), None, "readings have no data");
        assert!(Formula::parse("data_max").is_err() && Formula::parse("queue_max").is_err());
    }

    #[test]
    fn nothing_but_arithmetic_gets_in() {
        for text in [
            "",
            "load1",
            "disk_max",
            "{rm -rf}",
            "nodes nodes",
            "system('id')",
            "while(1)",
            "a = 1",
            "\"x\"",
            "1;2",
            "load1_max(",
        ] {
            assert!(Formula::parse(text).is_err(), "{text}");
        }
        let long = "1+".repeat(MAX_FORMULA) + "1";
        assert_eq!(Formula::parse(&long).err(), Some(NoFormula::TooLong));
    }

    #[test]
    fn the_worst_formulas_take_no_time() {
        let brackets = "(".repeat(199) + "1" + &")".repeat(199);
        let powers = "9^".repeat(199) + "9";
        let names = "load1_median+".repeat(30) + "1";
        let minus = "-".repeat(399) + "1";
        let started = std::time::Instant::now();
        for text in [brackets, powers, names, minus] {
            if let Ok(formula) = Formula::parse(&text) {
                formula.of(&readings());
            }
        }
        assert!(started.elapsed().as_millis() < 500);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[-+*/^() .0-9a-z_{}πE,;%]{0,60}") {
            if let Ok(formula) = Formula::parse(&text) {
                let _ = formula.of(&readings());
            }
        }

        #[test]
        fn any_unicode_is_read_without_a_panic(text: String) {
            let _ = Formula::parse(&text);
        }
    }
}
