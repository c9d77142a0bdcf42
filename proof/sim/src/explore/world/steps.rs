//! One thing happens.

use engine::{Begun, HostError, Stack};
use wire::client::{Access, Frame, Hello, Request};
use wire::{Caller, ClientId, Duration, GroupId, Time};

use super::super::choice::Choice;
use super::super::disk::Written;
use super::super::ideal::{Ideal, Input};
use super::super::node::Node;
use super::super::order::NODES;
use super::super::plan::{GROUP, Plan};
use super::{Attempt, World};
use crate::check::{Verdict, demand};
use crate::executor::{Effect, Executor};
use crate::panics::guarded;
use crate::service::{APPEND, arguments, extend};
use crate::watch::Step;

/// A timer that is due within this time may be due before anything else happens.
pub const SOON: Duration = Duration::from_secs(10);

/// How long a client waits for its call.
const TIMEOUT: Duration = Duration::from_secs(5);

impl World {
    /// It happens, and the checkers see it.
    ///
    /// # Errors
    /// A promise is broken.
    pub fn apply(&mut self, choice: &Choice) -> Verdict {
        self.steps += 1;
        guarded(|| self.happen(choice))
    }

    fn happen(&mut self, choice: &Choice) -> Verdict {
        match *choice {
            Choice::Form(ref nodes) => self.order().form(nodes),
            Choice::Ask(call, node) => return self.ask(call, node),
            Choice::Receive(node) => {
                let inputs = self.order().receive(node);
                return self.inputs(node, &inputs);
            }
            Choice::Hear(node, of) => {
                let inputs = self.order().hear(node, of);
                return self.inputs(node, &inputs);
            }
            Choice::Write(node) => return self.write(node),
            Choice::Run(node) => return self.run(node),
            Choice::Attach(node) => {
                self.comes_back();
                return self.attach(node);
            }
            Choice::Boot(node) => {
                self.comes_back();
                return self.boot(node);
            }
            Choice::Heal => {
                self.comes_back();
                self.away = None;
            }
            Choice::Tick(node) => {
                self.ticks += 1;
                self.wake_clients();
                return self.tick(node);
            }
            Choice::Kill(node) => return self.end_life(node, false),
            Choice::Power(node) => return self.end_life(node, true),
            Choice::Fall(node) => return self.fall(node),
            Choice::Leave(node) => return self.leave(node),
            Choice::Cut(node) => {
                self.cuts -= 1;
                self.away = Some(node);
                let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
                self.order().form(&[node]);
                self.order().form(&others);
            }
        }
        Ok(())
    }

    fn with_stack(&mut self, node: usize, act: impl FnOnce(&mut Stack<Ideal>, Time)) -> Verdict {
        let Node { stack, now, .. } = self.node(node);
        if let Some(stack) = stack {
            act(stack, *now);
            stack.check_invariants();
        }
        self.drain(node)
    }

    fn inputs(&mut self, node: usize, inputs: &[Input]) -> Verdict {
        let run: Vec<_> = inputs.iter().map(Input::encode).collect();
        self.with_stack(node, |stack, now| stack.handle_datagrams(now, &run))
    }

    fn tick(&mut self, node: usize) -> Verdict {
        let due = self.nodes[node].next_timeout();
        let it = self.node(node);
        it.now = it.now.max(due.unwrap_or(it.now));
        let now = it.now;
        self.with_stack(node, |stack, now| stack.handle_timeout(now))?;
        // A client that has waited for too long hangs up, and asks anew.
        let all = self
            .calls
            .iter_mut()
            .flat_map(|call| call.asked.extract_if(.., |it| it.node == node && it.until <= now));
        let late: Vec<Attempt> = all.collect();
        late.into_iter().try_for_each(|it| {
            self.with_stack(node, |stack, now| stack.handle_disconnect(now, it.caller))
        })
    }

    fn write(&mut self, node: usize) -> Verdict {
        let written = self.node(node).disk.write();
        self.with_stack(node, |stack, now| match written {
            Written::Records(upto) => stack.handle_persisted(now, upto),
            Written::Snapshot(group, covers) => stack.handle_snapshot_stored(now, group, covers),
            Written::Silent => {}
        })
    }

    /// The client of a call asks a node, by a connection of its own.
    fn ask(&mut self, call: usize, node: usize) -> Verdict {
        self.callers += 1;
        let (caller, now) = (Caller(self.callers), self.time());
        let (view, until) = (self.view.at.1, self.nodes[node].now + TIMEOUT);
        let at = self.view.targets.iter().position(|target| *target == node);
        let viewed = self.view.at;
        let it = &mut self.calls[call];
        (it.turn, it.viewed) = (at.map_or(it.turn + 1, |at| at + 1), viewed);
        let beside = !it.asked.is_empty();
        it.asked.push(Attempt { node, caller, until });
        it.times += 1;
        let client = it.client;
        let request = Request {
            group: Plan::group(),
            client,
            number: 1,
            unanswered: 1,
            view,
            method: APPEND,
            timeout_us: TIMEOUT.as_micros() as u32,
            json: false,
            beside,
            has_key: false,
            access: Access::Change,
            priority: 0,
            body: arguments(0, &[call as u8]),
        };
        self.watch().asked(&request, 1)?;
        self.watch().poisons.asked((request.group, client, 1), now);
        let wall = self.nodes[node].now;
        self.with_stack(node, |stack, now| {
            stack.handle_frame(now, wall, caller, Frame::Hello(Hello::new(client)));
            stack.handle_frame(now, wall, caller, Frame::Request(request));
        })
    }

    /// Something that was lost comes back.
    fn comes_back(&mut self) {
        self.over |= self.calls.iter().all(|call| call.answer.is_some());
    }

    /// The program dies of the command under way.
    fn dies(&mut self, node: usize, client: ClientId) -> Verdict {
        let (me, call) = (self.nodes[node].me, (Plan::group(), client, 1));
        let known = self.watch.poisons.is_quiet(call);
        self.say(|| format!("the call of {client} kills the program of {me}"));
        self.kills += 1;
        self.watch().poisons.kills(call, me, false, (true, known))?;
        self.lose_program(node)
    }

    /// The command under way at a program ends.
    fn run(&mut self, node: usize) -> Verdict {
        let (me, group) = (self.nodes[node].me, Plan::group());
        let executor = self.nodes[node].executor.as_ref();
        let changes = executor.and_then(Executor::changes_by).map(|(client, _)| client);
        let deadly = self.calls.first().map(|call| call.client).filter(|_| self.plan.deadly);
        if let Some(client) = changes.filter(|client| Some(*client) == deadly) {
            if self.may_fall(node) {
                return self.dies(node, client);
            }
            self.watch().poisons.spare((group, client, 1));
        }
        let latest = self.latest();
        let executor = self.node(node).executor.as_mut().expect("a program runs");
        let alone = executor.is_passive();
        let Some(done) = executor.end() else { return Ok(()) };
        let (place, after) = (executor.log.entries.len() as u64, executor.log.digest);
        match done.effect {
            Effect::Executed { entry, component, before, .. } => {
                self.say(|| format!("{me} executes the call of {}, as #{place}", entry.client));
                let step = Step { component, place, before, after, latest };
                self.fact([1, me.incarnation.0 << 8 | u64::from(me.node.0), place, after]);
                self.watch().executed(me, group, &entry, &step, alone)?;
            }
            Effect::Updated(new, component) => {
                let first = place - new.len() as u64 + 1;
                for (place, (entry, before)) in (first..).zip(new) {
                    let after = extend(before, &entry);
                    self.say(|| format!("{me} is told of {}, as #{place}", entry.client));
                    let step = Step { component, place, before, after, latest };
                    self.fact([2, me.incarnation.0 << 8 | u64::from(me.node.0), place, after]);
                    self.watch().executed(me, group, &entry, &step, false)?;
                }
            }
            Effect::Broken(reason) => {
                demand(false, "updates", || format!("{me} in {group}: {reason}"))?;
            }
            Effect::Replaced => self.replaced(node, group)?,
            Effect::Digest(number, state) => {
                self.begin(node);
                return self.with_stack(node, |stack, now| {
                    stack.handle_digest(now, group, number, state);
                });
            }
            Effect::Asks(..) | Effect::None => {}
        }
        self.begin(node);
        self.with_stack(node, |stack, now| {
            if let Some((ticket, executed)) = done.answer {
                stack.handle_executed(now, group, ticket, executed);
            }
        })
    }

    /// The history of a node's service is another one.
    fn replaced(&mut self, node: usize, group: GroupId) -> Verdict {
        let me = self.nodes[node].me;
        let executor = self.nodes[node].executor.as_ref();
        let log = executor.map(|executor| executor.log.clone()).unwrap_or_default();
        self.say(|| format!("{me} has a history of {}", log.entries.len()));
        self.fact([3, u64::from(me.node.0), log.entries.len() as u64, log.digest]);
        self.watch().replaced(me, group, &log.entries)
    }

    fn boot(&mut self, node: usize) -> Verdict {
        let plan = self.plan.clone();
        let it = self.node(node);
        it.start(&plan);
        let me = it.me;
        self.order().join(me);
        self.watch().promise.born(me);
        self.hosted(node)?;
        self.say(|| format!("{me} starts"));
        self.drain(node)
    }

    /// A replica's life begins, with a service in its initial state.
    fn hosted(&mut self, node: usize) -> Verdict {
        let (me, group) = (self.nodes[node].me, Plan::group());
        let watch = self.watch();
        watch.promise.hosted(group, me);
        watch.cold.hosted(me, group);
        watch.poisons.gave_up(me, group);
        watch.replaced(me, group, &[])
    }

    /// A node's life ends. Its clients see that.
    fn end_life(&mut self, node: usize, power: bool) -> Verdict {
        let (me, now) = (self.nodes[node].me, self.time());
        self.deaths -= 1;
        self.fact([4, u64::from(me.node.0), me.incarnation.0, u64::from(power)]);
        let watch = self.watch();
        watch.promise.died(me);
        watch.poisons.died(me, now);
        watch.restyles.died(me);
        watch.votes.replaced(me, Plan::group());
        self.order().end(node);
        self.node(node).end(power);
        self.calls.iter_mut().for_each(|call| call.asked.retain(|it| it.node != node));
        self.away.take_if(|away| *away == node);
        Ok(())
    }

    /// A node's program dies.
    fn fall(&mut self, node: usize) -> Verdict {
        let (me, now) = (self.nodes[node].me, self.time());
        self.deaths -= 1;
        self.watch().poisons.died(me, now);
        self.lose_program(node)
    }

    fn lose_program(&mut self, node: usize) -> Verdict {
        let (me, group) = (self.nodes[node].me, Plan::group());
        self.fact([5, u64::from(me.node.0), me.incarnation.0, self.kills]);
        self.watch().promise.unhosted(group, me);
        let executor = self.node(node).executor.take().filter(|executor| !executor.awaited);
        let begun = executor.as_ref().map_or(Begun::Nothing, Executor::begun);
        self.with_stack(node, |stack, now| stack.service_lost(now, group, begun))
    }

    /// A node gives its replica up.
    fn leave(&mut self, node: usize) -> Verdict {
        let (me, now, group) = (self.nodes[node].me, self.time(), Plan::group());
        self.leaves -= 1;
        self.fact([12, u64::from(me.node.0), me.incarnation.0, 0]);
        let watch = self.watch();
        watch.promise.unhosted(group, me);
        watch.poisons.goes(now);
        self.with_stack(node, |stack, now| stack.unhost(now, group))
    }

    /// A node's next program is there.
    fn attach(&mut self, node: usize) -> Verdict {
        let awaited = |executor: &&mut Executor| executor.awaited;
        if let Some(executor) = self.node(node).executor.as_mut().filter(awaited) {
            executor.awaited = false;
            self.begin(node);
            return self.drain(node);
        }
        let plan = self.plan.clone();
        let (options, checkpoints) = (plan.group_plan().options, plan.group_plan().checkpoints);
        let mut hosts = Ok(Plan::group());
        let Node { stack, now, .. } = self.node(node);
        if let Some(stack) = stack {
            hosts = stack.host_program(*now, GROUP, options);
            stack.set_checkpoints(*now, Plan::group(), checkpoints);
        }
        match hosts {
            Ok(_) => {
                self.node(node).employ(&plan);
                self.hosted(node)?;
            }
            Err(HostError::Twice) => {}
            Err(error) => panic!("{error}"),
        }
        self.drain(node)
    }

    /// Clients that were declined look again.
    pub(super) fn wake_clients(&mut self) {
        self.calls.iter_mut().for_each(|call| call.waits = false);
    }
}
