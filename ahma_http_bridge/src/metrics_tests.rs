use super::*;

#[test]
fn operations_are_counted_by_tool_status_and_principal() {
    let metrics = OperationMetrics::default();
    metrics.ended("build", "completed", "al\"ice\n", Some(100));
    metrics.ended("build", "completed", "al\"ice\n", Some(101));
    metrics.ended("test", "failed", "bob", Some(7_200_001));
    metrics.ended("test", "cancelled", "bob", None);
    let text = metrics.render().0;
    for line in [
        r#"ahma_operations_total{tool="build",status="completed",principal="al\"ice\n"} 2"#,
        r#"ahma_operations_total{tool="test",status="failed",principal="bob"} 1"#,
        r#"ahma_operation_duration_seconds_bucket{le="0.1"} 1"#,
        r#"ahma_operation_duration_seconds_bucket{le="0.5"} 2"#,
        r#"ahma_operation_duration_seconds_bucket{le="7200"} 2"#,
        r#"ahma_operation_duration_seconds_bucket{le="+Inf"} 3"#,
        "ahma_operation_duration_seconds_sum 7200.202",
        "ahma_operation_duration_seconds_count 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn the_number_of_series_is_bounded() {
    let metrics = OperationMetrics::default();
    for count in 0..2 * MAX_SERIES {
        metrics.ended("build", "completed", &format!("p{count}"), None);
    }
    assert_eq!(metrics.ended.lock().len(), MAX_SERIES + 1);
}
