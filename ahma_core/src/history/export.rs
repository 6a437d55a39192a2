//! Documents about one operation for other programs.

use super::{document, rows::OperationRow};
use crate::{observe::FindingBudget, operation::Operation};

pub(crate) fn sarif(operation: &Operation) -> String {
    let page = operation.findings(0, FindingBudget::ALL);
    serde_json::to_string_pretty(&operation.sarif(&page)).unwrap_or_default() + "\n"
}

pub(crate) fn junit(operation: &Operation) -> String {
    operation.junit(&operation.findings(0, FindingBudget::ALL))
}

pub(crate) fn json(row: &OperationRow, operation: &Operation) -> String {
    let mut document = document::operation(row);
    document["findings"] = serde_json::json!(operation.findings(0, FindingBudget::ALL).findings);
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
