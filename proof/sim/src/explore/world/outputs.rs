//! Outputs of nodes, and the comparison at the end.

use engine::{Event, Kept, Output};
use wire::client::{Frame, Outcome, Refusal};
use wire::ordered::Poison;
use wire::{Caller, Duration, GroupId, Member};

use super::super::ideal::Wish;
use super::super::plan::Plan;
use super::{View, World};
use crate::check::{Verdict, bounded, demand};
use crate::draw::Draw;
use crate::panics::guarded;
use crate::service::{Entry, REPLY};
use crate::trace::digest;

impl World {
    /// Takes all that a node puts out.
    pub(super) fn drain(&mut self, node: usize) -> Verdict {
        let me = self.nodes[node].me;
        let mut count = 0;
        while let Some(output) = self.node(node).stack.as_mut().and_then(engine::Stack::poll_output)
        {
            count += 1;
            bounded::outputs(me, count, super::NODES)?;
            self.output(node, me, output)?;
        }
        self.node(node).stale = true;
        Ok(())
    }

    fn output(&mut self, node: usize, me: Member, output: Output) -> Verdict {
        match output {
            Output::Send { datagram, .. } => match Wish::decode(&datagram) {
                Wish::Order(level, payload) => self.order().hand_in(node, level, payload),
                Wish::TellStored(ring, upto) => self.order().stored(node, ring, upto),
                Wish::Leave => {}
            },
            Output::Frame { caller, frame } => return self.frame(me, caller, &frame),
            Output::Close { caller } => self.lost(caller),
            Output::Run { .. } if self.nodes[node].executor.is_none() => {}
            Output::Run { group, command } => {
                self.watch().given(me, group, &command)?;
                let component = self.watch.history_of(me, group);
                let executor = self.node(node).executor.as_mut().expect("it has one");
                executor.push(command, component);
                self.begin(node);
            }
            Output::Persist(kept) => self.node(node).disk.append(kept),
            Output::Snapshot { strand, covers, place, state } => {
                let kept = Kept { strand, kind: None, place, bytes: state.whole() };
                self.node(node).disk.snapshot(covers, kept);
            }
            Output::Forget(group) => self.node(node).disk.forget(group),
            Output::Revive(group) => return self.revive(node, group),
            Output::Replace(group) => {
                return demand(false, "hung services", || format!("{me} replaces {group}"));
            }
            Output::Event(event) => return self.told(me, &event),
            // Nobody asks for these here, and no datagram can be unreachable.
            _ => {}
        }
        Ok(())
    }

    /// A program begins its next command, if one waits.
    pub(super) fn begin(&mut self, node: usize) {
        if let Some(executor) = self.node(node).executor.as_mut() {
            executor.begin(Duration::from_micros(1), &mut Draw::new(1));
        }
    }

    /// The program of the only replica with the state has died: the next one goes on from what its
    /// node has kept.
    fn revive(&mut self, node: usize, group: GroupId) -> Verdict {
        let (me, plan) = (self.nodes[node].me, self.plan.clone());
        let watch = self.watch();
        watch.promise.revived(group, me);
        watch.cold.revived(me, group);
        watch.replaced(me, group, &[])?;
        let it = self.node(node);
        it.employ(&plan);
        it.executor.as_mut().expect("it has one").awaited = true;
        Ok(())
    }

    /// A node tells what has happened.
    fn told(&mut self, me: Member, event: &Event) -> Verdict {
        let now = self.time();
        match event {
            Event::View { group, view, replicas, .. } if *group == Plan::group() => {
                self.say(|| format!("{me} installs {view} with {replicas:?}"));
                self.wake_clients();
                self.watch().event(now, me, event)?;
                let at = (self.watch.component(me), *view);
                if at >= self.view.at {
                    let synced = replicas.iter().filter(|(_, synced)| *synced);
                    let rest = replicas.iter().filter(|(_, synced)| !*synced);
                    let place = |(member, _): &(Member, bool)| member.node.0 as usize - 1;
                    self.view = View { at, targets: synced.chain(rest).map(place).collect() };
                }
                self.fact([6, u64::from(me.node.0), at.0.sequence, view.0]);
                Ok(())
            }
            Event::Poisoned { poison, .. } => {
                let Poison { client, nodes, .. } = &**poison;
                self.say(|| format!("{me} condemns the call of {client}, for deaths at {nodes:?}"));
                self.fact([7, u64::from(me.node.0), client.0, nodes.len() as u64]);
                self.watch().event(now, me, event)
            }
            Event::Quorum { ring, quorate, .. } => {
                self.say(|| format!("{me} in {ring}: quorum {quorate}"));
                self.wake_clients();
                self.fact([8, u64::from(me.node.0), ring.sequence, u64::from(*quorate)]);
                self.watch().event(now, me, event)
            }
            Event::Configuration { ring, .. } => {
                self.fact([9, u64::from(me.node.0), ring.sequence, 0]);
                self.watch().event(now, me, event)
            }
            Event::Executed { client, position, .. } => {
                self.fact([10, u64::from(me.node.0), client.0, *position]);
                self.watch().event(now, me, event)
            }
            Event::WentBack { member, .. } => {
                self.say(|| format!("{me} says that the group goes back to the state of {member}"));
                self.watch().event(now, me, event)
            }
            _ => self.watch().event(now, me, event),
        }
    }

    /// A node writes to a client.
    fn frame(&mut self, me: Member, caller: Caller, frame: &Frame) -> Verdict {
        let Frame::Reply(reply) = frame else { return Ok(()) };
        let holds = |call: &super::Call| call.asked.iter().any(|it| it.caller == caller);
        let Some(at) = self.calls.iter().position(holds) else { return Ok(()) };
        let (client, now) = (self.calls[at].client, self.time());
        self.say(|| format!("{me} answers {client}: {}", brief(&reply.outcome)));
        self.watch().answered(now, me, client, reply)?;
        let word = match &reply.outcome {
            Outcome::Ok(bytes) => digest(bytes),
            other => digest(format!("{other:?}").as_bytes()),
        };
        self.fact([11, client.0, word, 0]);
        let call = &mut self.calls[at];
        call.asked.retain(|it| it.caller != caller);
        match &reply.outcome {
            Outcome::Ok(_) | Outcome::Service(_) | Outcome::Refused(Refusal::Poisoned, _) => {
                call.answer = Some(reply.outcome.clone());
                call.asked.clear();
                call.waits = false;
            }
            _ => call.waits = true,
        }
        Ok(())
    }

    /// A client's connection ends.
    fn lost(&mut self, caller: Caller) {
        self.calls.iter_mut().for_each(|call| call.asked.retain(|it| it.caller != caller));
    }

    /// Nothing is left to do: all must be well, and the replicas, answers and verdicts are compared.
    ///
    /// # Errors
    /// A promise is broken.
    pub fn end(&mut self) -> Verdict {
        guarded(|| self.finish())
    }

    pub(super) fn finish(&mut self) -> Verdict {
        let missing = self.missing();
        demand(missing.is_none(), "progress", || {
            format!("all has happened, and {}", missing.unwrap_or_default())
        })?;
        let group = Plan::group();
        let nodes = self.nodes.clone();
        let members: Vec<Member> = nodes.iter().map(|node| node.me).collect();
        self.watch().cold.finish(group, &members)?;
        let watch = self.watch.clone();
        let runs = |node: &&std::rc::Rc<super::Node>| watch.cold.runs(node.me, group);
        let end = |node: &std::rc::Rc<super::Node>| {
            let log = &node.executor.as_ref()?.log;
            Some((node.me, log.entries.clone(), log.digest))
        };
        let ends: Vec<_> = nodes.iter().filter(runs).filter_map(end).collect();
        let ends: Vec<(Member, &[Entry], u64)> =
            ends.iter().map(|(me, entries, digest)| (*me, &entries[..], *digest)).collect();
        self.watch().finish(group, &ends)?;
        let list = |node: &std::rc::Rc<super::Node>| {
            let listed = node.stack.as_ref()?.poisoned(group)?;
            Some((node.me, listed.to_vec()))
        };
        let lists: Vec<_> = nodes.iter().filter(runs).filter_map(list).collect();
        let lists: Vec<(Member, &[Poison])> =
            lists.iter().map(|(me, list)| (*me, &list[..])).collect();
        self.watch.poisons.finish(group, &lists)?;
        self.refused_is_executed_nowhere(&ends)
    }

    /// A call that was refused is in no history, and one that was answered is.
    fn refused_is_executed_nowhere(&self, ends: &[(Member, &[Entry], u64)]) -> Verdict {
        for call in &self.calls {
            let refused = matches!(call.answer, Some(Outcome::Refused(..)));
            for (me, entries, _) in ends {
                let is_in = entries.iter().any(|entry| entry.client == call.client);
                demand(is_in != refused, "answers are true", || {
                    let (client, said) = (call.client, if refused { "no" } else { "yes" });
                    format!("{client} was told {said}, and {me} has {} calls", entries.len())
                })?;
            }
        }
        Ok(())
    }
}

/// An outcome in a few words.
fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(bytes) if bytes.len() >= REPLY => {
            format!("done, as #{}", bytes[0])
        }
        other => format!("{other:?}"),
    }
}
