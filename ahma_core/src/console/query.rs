//! Parameters of addresses and forms.

use axum::http::Uri;
use url::form_urlencoded;

use super::source::SourceError;

/// Parameters of an address or a form.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        Self::read(uri.query().unwrap_or_default())
    }

    pub(super) fn read(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// A field that was filled in.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let mut fields = self.0.iter();
        let (_, value) = fields.find(|(key, _)| key == name)?;
        Some(value.trim())
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// A field that was filled in, as what it stands for.
    pub(super) fn read_as<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SourceError> {
        let malformed = |text: &str| SourceError::Malformed(format!("`{name}` cannot be `{text}`"));
        let text = self.text(name);
        text.map(|text| read(&text).ok_or_else(|| malformed(&text)))
            .transpose()
    }

    /// The same with another value for one field.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let kept = self
            .0
            .iter()
            .filter(|(key, value)| key != name && !value.is_empty());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept).append_pair(name, value).finish()
    }
}
