//! Follows an operation that another server of this user runs, for as long as it is of interest here.

use std::time::Duration;

use super::{handle::History, rows::OperationRow};
use crate::operation::Operation;

/// Time between two looks. The other server writes at this pace.
const INTERVAL: Duration = Duration::from_millis(300);

/// Looks until the operation has ended or its last handle is dropped. A cancellation is passed on.
pub(super) async fn follow(history: History, row: OperationRow, operation: Operation) {
    let mut stop_is_asked = false;
    while operation.ended().is_none() && !operation.is_let_go() {
        if let Some(reason) = operation.stop_reason()
            && !stop_is_asked
        {
            stop_is_asked = true;
            let row = row.clone();
            let asked = history.read(move |reader| reader.request_stop(&row, Some(&reason)));
            if let Err(error) = asked.await {
                tracing::warn!(%error, operation = %operation.id(), "its server cannot be asked to stop it");
            }
        }
        tokio::time::sleep(INTERVAL).await;
        let (id, followed) = (row.id.clone(), operation.clone());
        let looked = history.read(move |reader| {
            if let Some(row) = reader.operation(None, id.as_str())? {
                reader.refresh(&row, &followed)?;
            }
            Ok(())
        });
        if let Err(error) = looked.await {
            tracing::debug!(%error, operation = %operation.id(), "cannot be followed");
        }
    }
}
