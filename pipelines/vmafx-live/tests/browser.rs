// x
#[test]
fn t() {}
