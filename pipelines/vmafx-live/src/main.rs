// SPDX-License-Identifier: MPL-2.0

//! `vmafx-live`: runs a pipeline (or reads score records) and serves what it scores, live.
//!
//! | module | idea |
//! |---|---|
//! | `feed` | where the scores come from: a pipeline, standard input |
//! | `news` | what pages are told, as it goes over the wire |
//! | `state` | what is known of the stream, in bounded memory |
//! | `hub` | between the one that feeds and the many that watch |
//! | `routes`, `server`, `metrics` | what is served, how, and in which form for Prometheus |
//! | `page/` | the page, which a browser runs |

mod cli;
mod failure;
mod feed;
mod hub;
mod metrics;
mod news;
mod routes;
mod server;
mod state;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use crate::cli::{Cli, Linger};
use crate::failure::Failure;
use crate::feed::{Outcome, Source, Stop, run_pipeline, run_stdin};
use crate::hub::{Hub, INTERVAL};
use crate::news::Phase;
use crate::server::Server;

/// How long a pipeline may take to go down after its last word, before the program ends without it.
const GOING_DOWN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime
        .map_err(|error| Failure::Setup(format!("no runtime for the server: {error}")))
        .and_then(|runtime| runtime.block_on(run(cli)));
    match ended {
        Ok(status) => status,
        Err(failure) => {
            eprintln!("vmafx-live: {failure}");
            ExitCode::from(1)
        }
    }
}

async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let mut signals = Signals::new()?;
    let max_clients = cli.max_clients as usize;
    let server = Server::bind(cli.listen, max_clients, cli.client_timeout)?;
    let address = server.address()?;
    let input = Input::of(&cli);
    let hub = Arc::new(Hub::new(
        run_name(),
        routes::page_version(),
        input.title(),
        cli.history as usize,
    ));
    let routes = routes::routes(hub.clone(), max_clients, cli.host.clone());
    let (close, closed) = watch::channel(false);
    let serving = tokio::spawn(server.serve(routes, closed));
    let telling = tokio::spawn(tell(hub.clone()));
    eprintln!("vmafx-live: http://{address}/");

    let stop = Stop::default();
    // A read cannot be interrupted, but what writes may still end by itself, with the last windows.
    let may_hang = matches!(input, Input::Stdin);
    let feed = start(input, hub.clone(), stop.clone(), cli.stop_timeout)?;
    let outcome = match watch_over(feed, &stop, &mut signals, cli.stop_timeout).await {
        Err(Failure::Stuck(_)) if may_hang => Ok(Phase::Stopped),
        Ok(_) if stop.is_asked() => Ok(Phase::Stopped),
        outcome => outcome,
    };
    let status = match outcome {
        Ok(phase) => {
            hub.update(|state| state.end(phase, None));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("vmafx-live: {failure}");
            hub.update(|state| state.end(Phase::Failed, Some(failure.to_string())));
            ExitCode::from(1)
        }
    };
    if !stop.is_asked() {
        linger(cli.linger, &mut signals).await;
    }
    hub.close();
    telling.abort();
    // Nobody listens where the server ended already.
    let _ = close.send(true);
    let _ = serving.await;
    Ok(status)
}

/// What feeds the page.
enum Input {
    Pipeline(Source),
    Stdin,
}

impl Input {
    fn of(cli: &Cli) -> Self {
        match (&cli.uri, &cli.launch) {
            (Some(uri), _) => Self::Pipeline(Source::Uri {
                uri: uri.clone(),
                window: cli.window,
                scores: cli.scores.clone(),
                sync: !cli.no_sync,
            }),
            (None, Some(text)) => Self::Pipeline(Source::Launch(text.clone())),
            // One of the three is required.
            (None, None) => Self::Stdin,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Pipeline(source) => source.title(),
            Self::Stdin => "standard input".to_owned(),
        }
    }
}

/// Starts the feed's thread; it says how it ended.
fn start(
    input: Input,
    hub: Arc<Hub>,
    stop: Stop,
    stop_timeout: Duration,
) -> Result<oneshot::Receiver<Outcome>, Failure> {
    let (say, ended) = oneshot::channel();
    let run = move || {
        let outcome = match &input {
            Input::Pipeline(source) => run_pipeline(source, &hub, &stop, stop_timeout),
            Input::Stdin => run_stdin(&hub),
        };
        // Nobody listens where the program ends without it.
        let _ = say.send(outcome);
    };
    std::thread::Builder::new()
        .name("feed".to_owned())
        .spawn(run)
        .map_err(|error| Failure::Setup(format!("no thread for the stream: {error}")))?;
    Ok(ended)
}

/// Waits for the feed's end; a signal asks for it.
async fn watch_over(
    mut feed: oneshot::Receiver<Outcome>,
    stop: &Stop,
    signals: &mut Signals,
    stop_timeout: Duration,
) -> Outcome {
    let died =
        || Failure::Setup("the stream's thread died; this is a defect of vmafx-live".to_owned());
    tokio::select! {
        ended = &mut feed => return ended.map_err(|_| died())?,
        () = signals.next() => stop.ask(),
    }
    let patience = stop_timeout + GOING_DOWN;
    tokio::select! {
        ended = &mut feed => ended.map_err(|_| died())?,
        () = signals.next() => Err(Failure::Setup("stopped by a second signal: the last windows may be missing".to_owned())),
        () = tokio::time::sleep(patience) => Err(Failure::Stuck(stop_timeout)),
    }
}

async fn tell(hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        hub.tell();
    }
}

async fn linger(linger: Linger, signals: &mut Signals) {
    match linger {
        Linger::Forever => signals.next().await,
        Linger::For(time) => tokio::select! {
            () = tokio::time::sleep(time) => (),
            () = signals.next() => (),
        },
    }
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| Failure::Setup(format!("cannot catch signals: {error}")))
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

/// A name that no other run on this machine has.
fn run_name() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}-{}", since.as_millis(), std::process::id())
}
