use serde_json::json;

use super::*;
use crate::mtdf::Range;

fn text() -> Scalar {
    Scalar::String { choices: Vec::new() }
}

fn integer() -> Scalar {
    Scalar::Integer(Range::default())
}

#[test]
fn what_can_only_mean_one_thing_is_taken() {
    let number = Scalar::Number(Range::default());
    for (value_type, given, taken) in [
        (ValueType::Boolean, json!("true"), json!(true)),
        (ValueType::Boolean, json!("False"), json!(false)),
        (ValueType::Boolean, json!([true]), json!(true)),
        (ValueType::Scalar(integer()), json!("3"), json!(3)),
        (ValueType::Scalar(integer()), json!(" -3 "), json!(-3)),
        (ValueType::Scalar(integer()), json!(["3"]), json!(3)),
        (ValueType::Scalar(number), json!("0.5"), json!(0.5)),
        (ValueType::Scalar(text()), json!(3), json!("3")),
        (ValueType::Scalar(text()), json!(0.5), json!("0.5")),
        (ValueType::Scalar(text()), json!(true), json!("true")),
        (ValueType::Scalar(text()), json!(["x"]), json!("x")),
        (ValueType::Scalar(Scalar::Path), json!(3), json!("3")),
        (ValueType::Array(text()), json!("x y"), json!(["x y"])),
        (ValueType::Array(text()), json!(3), json!(["3"])),
        (ValueType::Array(text()), json!(["a", 1]), json!(["a", "1"])),
        (ValueType::Array(integer()), json!("3"), json!([3])),
        (ValueType::Array(integer()), json!([1, "2"]), json!([1, 2])),
    ] {
        let coerced = value_type.coerce(&given);
        assert_eq!(*coerced, taken, "{given} for {value_type:?}");
        assert_eq!(value_type.objections(&coerced), [""; 0], "{given}");
    }
}

#[test]
fn what_may_mean_something_else_is_refused() {
    for (value_type, given) in [
        (ValueType::Boolean, json!("yes")),
        (ValueType::Boolean, json!(1)),
        (ValueType::Boolean, json!("")),
        (ValueType::Scalar(integer()), json!("three")),
        (ValueType::Scalar(integer()), json!("")),
        (ValueType::Scalar(integer()), json!("3.5")),
        (ValueType::Scalar(integer()), json!(true)),
        (ValueType::Scalar(text()), json!(["a", "b"])),
        (ValueType::Scalar(text()), json!([])),
        (ValueType::Scalar(text()), json!({ "a": 1 })),
        (ValueType::Scalar(Scalar::Path), json!(true)),
        (ValueType::Array(text()), json!(true)),
        (ValueType::Array(text()), json!([true])),
        (ValueType::Array(text()), json!({ "a": 1 })),
    ] {
        let coerced = value_type.coerce(&given);
        assert!(
            !value_type.objections(&coerced).is_empty(),
            "{given} for {value_type:?}"
        );
    }
}
