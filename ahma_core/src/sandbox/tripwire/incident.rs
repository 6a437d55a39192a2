//! What the tripwire found, and how the result says so.

use std::path::PathBuf;

/// What the tripwire found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub path: PathBuf,
    pub kind: IncidentKind,
    /// Whether everything is as it was before.
    pub undone: bool,
    /// Where the command's version lies now.
    pub quarantined: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentKind {
    Appeared,
    Changed,
    Removed,
    /// It could not be looked at, now or before.
    Unknown,
}

/// More sentences than this nobody reads.
const MOST_SENTENCES: usize = 20;

impl Incident {
    /// What a result says of them. Those that were not undone come first: somebody has to see to them.
    pub fn sentences(incidents: &[Self]) -> Vec<String> {
        let mut ordered: Vec<&Self> = incidents.iter().collect();
        ordered.sort_by_key(|incident| incident.undone);
        let (told, rest) = ordered.split_at(ordered.len().min(MOST_SENTENCES));
        let mut sentences: Vec<String> = told.iter().map(|incident| incident.sentence()).collect();
        if !rest.is_empty() {
            let ending = if rest.iter().all(|incident| incident.undone) {
                "which was undone"
            } else {
                "and not all of that could be undone"
            };
            sentences.push(format!(
                "{} more protected files were changed, {ending}.",
                rest.len()
            ));
        }
        sentences
    }

    /// One sentence.
    pub(super) fn sentence(&self) -> String {
        let path = self.path.display();
        let kept = self.quarantined.as_ref().map_or_else(String::new, |place| {
            format!(" The command's version is kept at {}.", place.display())
        });
        let what = match (self.kind, self.undone) {
            (IncidentKind::Appeared, true) => format!("the command created {path}; it was removed"),
            (IncidentKind::Appeared, false) => {
                format!("the command created {path}, and it could not be moved away; remove it yourself")
            }
            (IncidentKind::Changed, true) => format!("the command changed {path}; it was put back"),
            (IncidentKind::Changed, false) if self.quarantined.is_some() => {
                format!("the command changed {path}; it was moved away, and could not be put back as it was")
            }
            (IncidentKind::Changed, false) => {
                format!("the command changed {path}, and it could not be put back; look at it yourself")
            }
            (IncidentKind::Removed, true) => format!("the command removed {path}; it was put back"),
            (IncidentKind::Removed, false) => {
                format!("the command removed {path}, and it could not be put back as it was")
            }
            (IncidentKind::Unknown, _) => {
                format!("whether the command changed {path} could not be seen; look at it yourself")
            }
        };
        format!(
            "Protected file: {what}. Programs outside the sandbox act on it.{kept} \
             Start the server with --trust-workspace-config to allow this."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_incidents_are_told_in_short_and_the_worst_in_full() {
        let incident = |number: usize| Incident {
            path: format!("/scope/.vscode/{number}").into(),
            kind: IncidentKind::Appeared,
            undone: number != 500,
            quarantined: None,
        };
        let told = Incident::sentences(&(0..600).map(incident).collect::<Vec<_>>());
        assert_eq!(told.len(), MOST_SENTENCES + 1);
        assert!(told[0].contains("/scope/.vscode/500"), "{told:?}");
        assert!(told[MOST_SENTENCES].contains("580 more"), "{told:?}");
        assert_eq!(Incident::sentences(&[]), [""; 0]);
    }
}
