use super::StackText;

#[test]
fn a_text_holds_what_fits() {
    let number = 4711;
    assert_eq!(
        StackText::<16>::of(format_args!("{number}/task")).as_str(),
        "4711/task"
    );
    assert_eq!(StackText::<4>::of(format_args!("{number}/task")).as_str(), "4711");
}
