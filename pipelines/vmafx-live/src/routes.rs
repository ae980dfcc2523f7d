// SPDX-License-Identifier: MPL-2.0

//! What is served: the page and its parts, its data, metrics. Nothing of it comes from a file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::hub::Hub;
use crate::metrics;

const INDEX: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/live.css");
const SCRIPTS: [(&str, &str); 3] = [
    ("/chart.js", include_str!("page/chart.js")),
    ("/feed.js", include_str!("page/feed.js")),
    ("/live.js", include_str!("page/live.js")),
];

/// Pages run nothing and load nothing but what is served here, and stand in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Tells versions of the page apart, so that one that outlived an update loads itself anew.
pub(crate) fn page_version() -> String {
    let mut hasher = DefaultHasher::new();
    (INDEX, STYLE, SCRIPTS).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[derive(Debug)]
struct Site {
    hub: Arc<Hub>,
    max_clients: usize,
    hosts: Vec<String>,
}

/// Everything that is served. `hosts` are names that the page may be reached by.
pub(crate) fn routes(hub: Arc<Hub>, max_clients: usize, hosts: Vec<String>) -> Router {
    let site = Arc::new(Site {
        hub,
        max_clients,
        hosts,
    });
    let mut routes = Router::new()
        .route(
            "/",
            get(|| async { typed("text/html; charset=utf-8", INDEX) }),
        )
        .route(
            "/live.css",
            get(|| async { typed("text/css; charset=utf-8", STYLE) }),
        )
        .route("/events", get(events))
        .route("/state", get(state))
        .route("/metrics", get(scrape));
    for (path, script) in SCRIPTS {
        routes = routes.route(
            path,
            get(move || async move { typed("text/javascript; charset=utf-8", script) }),
        );
    }
    routes
        .layer(middleware::from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// Refuses requests under foreign names, and says what browsers may do with the answers.
///
/// A page from elsewhere whose name is made to point to this machine could read the scores otherwise; under
/// an address, which no one can point elsewhere, or localhost it cannot come.
async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    if !is_own_name(request.headers(), &site.hosts) {
        return (
            StatusCode::MISDIRECTED_REQUEST,
            "not served under this name; start vmafx-live with --host NAME to allow it\n",
        )
            .into_response();
    }
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        // A page that was updated should not be mixed from old and new parts.
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn is_own_name(headers: &HeaderMap, hosts: &[String]) -> bool {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
    else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
}

/// Counts a client as long as it watches.
#[derive(Debug)]
struct Seat(Arc<Hub>);

impl Seat {
    fn take(site: &Site) -> Option<Self> {
        let audience = &site.hub.audience;
        let seat = Self(site.hub.clone());
        if audience.clients.fetch_add(1, Ordering::Relaxed) < site.max_clients {
            Some(seat)
        } else {
            audience.refused.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.audience.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `everything`, then `news` without a gap; `everything` again where the client was too slow.
async fn events(State(site): State<Arc<Site>>) -> Response {
    let Some(seat) = Seat::take(&site) else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "5")],
            "too many clients watch already; --max-clients allows more\n",
        )
            .into_response();
    };
    let texts: Option<Receiver<Arc<str>>> = None;
    let events = stream::unfold((seat, texts), |(seat, mut texts)| async move {
        if let Some(receiver) = &mut texts {
            match receiver.recv().await {
                Ok(text) => {
                    let event = Event::default().event("news").data(&*text);
                    return Some((Ok::<_, std::convert::Infallible>(event), (seat, texts)));
                }
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(_)) => {
                    seat.0.audience.behind.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let (everything, texts) = seat.0.join()?;
        let event = Event::default().event("everything").data(everything);
        Some((Ok(event), (seat, Some(texts))))
    });
    Sse::new(events).into_response()
}

async fn state(State(site): State<Arc<Site>>) -> Response {
    let known = site.hub.known();
    typed("application/json", site.hub.everything(&known))
}

async fn scrape(State(site): State<Arc<Site>>) -> Response {
    match metrics::encode(&site.hub) {
        Ok(text) => typed(metrics::CONTENT_TYPE, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(host: &'static str, hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        is_own_name(&headers, &hosts)
    }

    #[test]
    fn only_own_names_are_answered() {
        for good in [
            "localhost",
            "LocalHost:8086",
            "127.0.0.1:8086",
            "192.168.1.9",
            "[::1]:8086",
        ] {
            assert!(own(good, &[]), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8086",
            "127.0.0.1.evil.example",
            "",
            ":8086",
        ] {
            assert!(!own(bad, &[]), "{bad}");
        }
        assert!(own("obs.lan:8086", &["obs.lan"]));
        assert!(!is_own_name(&HeaderMap::new(), &[]));
    }
}
