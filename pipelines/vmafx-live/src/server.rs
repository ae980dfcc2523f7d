// SPDX-License-Identifier: MPL-2.0

//! Connections: how many, how long, and how they end.
//!
//! What a client can cost is bounded: connections by a count, a request's head by hyper's own limits and a
//! deadline, the answers under way by a small send buffer, and a client that takes nothing by a timeout.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::failure::Failure;

/// Connections beside those of watching clients: pages being loaded, metrics being read.
const SPARE_CONNECTIONS: usize = 64;
/// Bytes the kernel may hold for a client that does not take them.
const SEND_BUFFER: u32 = 256 * 1024;
/// How long a request's head may take, and a connection may stay unused.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long clients may take to take the last news.
const FAREWELL: Duration = Duration::from_secs(2);
/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 128;

/// A port that is open.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    client_timeout: Duration,
}

impl Server {
    /// Opens the port.
    pub(crate) fn bind(
        address: SocketAddr,
        max_clients: usize,
        client_timeout: Duration,
    ) -> Result<Self, Failure> {
        let listener = listen(address).map_err(|source| Failure::Listen { address, source })?;
        Ok(Self {
            listener,
            connections: Arc::new(Semaphore::new(max_clients + SPARE_CONNECTIONS)),
            client_timeout,
        })
    }

    /// Where it is; the port is chosen by the system where it was asked for 0.
    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        self.listener.local_addr().map_err(|error| {
            Failure::Setup(format!("the listening socket has no address: {error}"))
        })
    }

    /// Serves until `stop` changes, then lets answers that are under way end.
    pub(crate) async fn serve(self, routes: Router, mut stop: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stop.changed() => break,
            };
            let Ok((stream, _)) = accepted else {
                // Out of file descriptors, or the client is gone already.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if let Ok(permit) = self.connections.clone().try_acquire_owned() {
                self.answer(stream, routes.clone(), permit, &graceful);
            }
        }
        drop(self.listener);
        // A client that does not take the end is not waited for.
        let _ = tokio::time::timeout(FAREWELL, graceful.shutdown()).await;
    }

    fn answer(
        &self,
        stream: TcpStream,
        routes: Router,
        permit: OwnedSemaphorePermit,
        graceful: &GracefulShutdown,
    ) {
        // Without it small texts wait for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.client_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(
                TokioIo::new(Box::pin(stream)),
                TowerToHyperService::new(routes),
            );
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks off is the client's affair.
            let _ = connection.await;
            drop(permit);
        });
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A restart need not wait until the last connections are forgotten; a port in use still is refused.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
