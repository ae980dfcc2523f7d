// SPDX-License-Identifier: MPL-2.0

//! A virtual clock with real threads, of which one runs at a time. Which one is drawn from a seed; time goes
//! on only when nobody can run. Where nobody can run and nobody waits for a time, that is a deadlock, and
//! the test fails.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use nvdecring_core::Clock;
use nvdecring_core::clock::{Bell, Body, Join};

enum Thread {
    Ready,
    Parked {
        bell: Bell,
        seen: u64,
        deadline: Option<Duration>,
    },
    Done,
}

struct State {
    now: Duration,
    threads: Vec<(String, Thread, Arc<Condvar>)>,
    current: usize,
    random: u64,
    deadlock: Option<String>,
}

#[derive(Clone)]
pub struct Sim(Arc<Mutex<State>>);

thread_local! {
    static ME: Cell<usize> = const { Cell::new(0) };
}

impl Sim {
    /// The calling thread is the first of the simulation.
    pub fn new(seed: u64) -> Self {
        ME.set(0);
        Self(Arc::new(Mutex::new(State {
            now: Duration::ZERO,
            threads: vec![("test".into(), Thread::Ready, Arc::default())],
            current: 0,
            random: seed.wrapping_mul(2) | 1,
            deadlock: None,
        })))
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Lets another thread run, or the same.
    pub fn yield_now(&self) {
        self.switch(Thread::Ready);
    }

    pub fn sleep_until(&self, time: Duration) {
        let bell = Bell::default();
        while self.now() < time {
            self.wait(&bell, 0, Some(time));
        }
    }

    pub fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time);
    }

    /// Runs all other threads to their end.
    pub fn finish(&self) {
        let mut turns = 0;
        while !self.others_done() {
            turns += 1;
            assert!(turns < 100_000, "threads do not end: {}", self.describe());
            // Time goes on too: what is left may wait for it.
            self.sleep(Duration::from_millis(1));
        }
    }

    fn others_done(&self) -> bool {
        let state = self.lock();
        state.threads[1..]
            .iter()
            .all(|(_, thread, _)| matches!(thread, Thread::Done))
    }

    fn describe(&self) -> String {
        self.lock().describe()
    }

    fn switch(&self, mine: Thread) {
        let me = ME.get();
        let mut state = self.lock();
        if state.deadlock.is_some() {
            return self.after_deadlock(state, me, mine);
        }
        state.threads[me].1 = mine;
        state.choose();
        let turn = state.threads[me].2.clone();
        while state.current != me {
            state = turn.wait(state).unwrap_or_else(|p| p.into_inner());
        }
        state.threads[me].1 = Thread::Ready;
        if let Some(text) = state.deadlock.clone() {
            drop(state);
            panic!("deadlock: {text}");
        }
    }

    /// The test has failed: its thread unwinds and must not be held up, the others stay where they are.
    fn after_deadlock(&self, mut state: MutexGuard<'_, State>, me: usize, mine: Thread) {
        if me != 0 {
            let never = Condvar::new();
            loop {
                state = never.wait(state).unwrap_or_else(|p| p.into_inner());
            }
        }
        if let Thread::Parked {
            deadline: Some(deadline),
            ..
        } = mine
        {
            state.now = state.now.max(deadline);
        }
    }
}

impl State {
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn choose(&mut self) {
        loop {
            let ready: Vec<usize> = (0..self.threads.len())
                .filter(|n| match &self.threads[*n].1 {
                    Thread::Ready => true,
                    Thread::Done => false,
                    Thread::Parked {
                        bell,
                        seen,
                        deadline,
                    } => bell.count() != *seen || deadline.is_some_and(|at| at <= self.now),
                })
                .collect();
            if !ready.is_empty() {
                self.current = ready[(self.random() % ready.len() as u64) as usize];
                break;
            }
            let next = self
                .threads
                .iter()
                .filter_map(|(_, thread, _)| match thread {
                    Thread::Parked { deadline, .. } => *deadline,
                    _ => None,
                });
            match next.min() {
                Some(time) => self.now = time,
                None => {
                    self.deadlock = Some(self.describe());
                    self.current = 0;
                    break;
                }
            }
        }
        self.threads[self.current].2.notify_one();
    }

    fn describe(&self) -> String {
        self.threads
            .iter()
            .map(|(name, thread, _)| match thread {
                Thread::Ready => format!("{name} runs"),
                Thread::Done => format!("{name} has ended"),
                Thread::Parked { deadline, .. } => format!("{name} waits until {deadline:?}"),
            })
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A thread's end, also by a panic.
struct End(Sim, usize);

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.threads[self.1].1 = Thread::Done;
        state.choose();
    }
}

impl Clock for Sim {
    fn now(&self) -> Duration {
        self.lock().now
    }

    fn wait(&self, bell: &Bell, seen: u64, deadline: Option<Duration>) {
        self.switch(Thread::Parked {
            bell: bell.clone(),
            seen,
            deadline,
        });
    }

    fn spawn(&self, name: &str, body: Body) -> std::io::Result<Join> {
        let turn = Arc::new(Condvar::new());
        let me = {
            let mut state = self.lock();
            state
                .threads
                .push((name.to_owned(), Thread::Ready, turn.clone()));
            state.threads.len() - 1
        };
        let sim = self.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                ME.set(me);
                let end = End(sim, me);
                {
                    let mut state = end.0.lock();
                    while state.current != me {
                        state = turn.wait(state).unwrap_or_else(|p| p.into_inner());
                    }
                }
                body();
            })?;
        let sim = self.clone();
        // A panic of the session's own threads is the session's to report.
        let of_the_test = !name.starts_with("nvdecring-");
        Ok(Box::new(move || {
            let mut pause = Duration::from_micros(1);
            while !matches!(sim.lock().threads[me].1, Thread::Done) {
                // Time goes on, in case the thread waits for it.
                sim.sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            match thread.join() {
                Err(panic) if of_the_test => std::panic::resume_unwind(panic),
                _ => {}
            }
        }))
    }
}
