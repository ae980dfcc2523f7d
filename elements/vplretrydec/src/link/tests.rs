// SPDX-License-Identifier: MPL-2.0

//! Who hears which reply, and when.

use std::sync::{Arc, mpsc};

use super::*;

/// What [`Link::wait_unheard`] answers to a thread, again and again until it is false.
fn task(link: &Arc<Link>) -> mpsc::Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    let link = Arc::clone(link);
    std::thread::spawn(move || {
        loop {
            let more = link.wait_unheard();
            // A listener that polls, as the task of the pad is.
            let listening = link.listen();
            while more && link.next(Until::Done(0), false).is_some() {}
            drop(listening);
            if sender.send(more).is_err() || !more {
                break;
            }
        }
    });
    receiver
}

fn link() -> Arc<Link> {
    let link = Arc::new(Link::default());
    link.set_limits(Duration::MAX, Duration::MAX);
    link
}

#[test]
fn what_nobody_listens_to_wakes_the_task() {
    let link = link();
    let task = task(&link);
    for _ in 0..1000 {
        link.tell(Reply::NeedKeyFrame);
        assert_eq!(task.recv(), Ok(true));
    }
    link.stop();
    assert_eq!(task.recv(), Ok(false));
}

#[test]
fn who_listens_is_woken_and_the_task_has_the_rest() {
    let link = link();
    let task = task(&link);
    for number in 1..=1000 {
        let listening = link.listen();
        let teller = Arc::clone(&link);
        let session = std::thread::spawn(move || {
            teller.tell(Reply::Done(number, Ok(())));
            teller.tell(Reply::NeedKeyFrame);
        });
        let heard = link.next(Until::Done(number), true);
        assert!(
            matches!(heard, Some(News::Reply(Reply::Done(..)))),
            "{heard:?}"
        );
        session.join().expect("it tells");
        // Left behind: one reply, of which the task has not been told yet.
        assert_eq!(task.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(listening);
        assert_eq!(task.recv(), Ok(true));
    }
    link.end();
    assert_eq!(task.recv(), Ok(false));
}

#[test]
fn a_wait_ends_with_the_command_and_with_all_that_was_told_before() {
    let link = link();
    let listening = link.listen();
    assert!(link.next(Until::Done(0), true).is_none());
    link.tell(Reply::NeedKeyFrame);
    link.tell(Reply::Done(2, Ok(())));
    for _ in 0..2 {
        assert!(matches!(
            link.next(Until::Done(1), true),
            Some(News::Reply(_))
        ));
    }
    assert!(link.next(Until::Done(1), true).is_none());
    assert!(link.next(Until::Done(2), true).is_none());
    let moment = Instant::now();
    assert!(link.next(Until::Moment(moment), true).is_none());
    drop(listening);
    assert!(link.settle(2, Duration::MAX, Duration::MAX));
}

#[test]
fn nothing_is_heard_during_a_flush_and_a_stop_outlasts_it() {
    let link = link();
    let interrupted = || matches!(link.next(Until::Done(9), true), Some(News::Interrupted));
    link.tell(Reply::NeedKeyFrame);
    link.interrupt();
    assert!(interrupted());
    let task = task(&link);
    link.resume();
    assert_eq!(task.recv(), Ok(true));

    link.stop();
    assert_eq!(task.recv(), Ok(false));
    link.interrupt();
    link.resume();
    assert!(interrupted());
    assert!(!link.wait_unheard());
    assert!(link.cancelled(1, link.epoch()));
    link.start();
    assert!(!link.cancelled(1, link.epoch()));
}

#[test]
fn a_call_that_hangs_is_heard_by_who_listens_and_by_the_task() {
    let link = link();
    link.set_limits(Duration::ZERO, Duration::ZERO);
    let (held, hold) = mpsc::channel::<()>();
    let caller = Arc::clone(&link);
    let session = std::thread::spawn(move || {
        caller.call("Hang", CallKind::Work, || hold.recv().is_err());
    });
    let hung = loop {
        // Before the call has begun there is nothing to hear.
        if link.lock().call.is_some() {
            break link.next(Until::Done(1), true);
        }
    };
    assert!(
        matches!(hung, Some(News::Hung { call: "Hang", elapsed }) if elapsed >= SHORTEST_LIMIT)
    );
    assert!(link.wait_unheard());
    drop(held);
    session.join().expect("it returns");
}
