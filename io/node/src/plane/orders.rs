//! Carries out the orders of the program's other threads and of administrators.

use admin::{KeyAsk, PoisonedCall};
use manager::Proposal;
use wire::{GroupId, Time};

use super::Plane;
use super::waiting::answer;
use crate::error::{DiscardError, HostError};
use crate::key_file_writer;
use crate::order::Order;
use crate::renewal::Renewed;

impl Plane {
    pub(super) fn handle_order(&mut self, now: Time, order: Order) {
        match order {
            Order::Host { name, options, executor, reply } => {
                answer(&reply, self.hosting().host(now, &name, options, executor));
            }
            Order::Attach { name, options, executor } => {
                self.hosting().attach(now, name, options, executor);
            }
            Order::Part { group, run, lost } => self.hosting().part(now, group, run, lost),
            Order::Unhost { name, reply } => answer(&reply, self.hosting().unhost(now, name)),
            Order::State { name, reply } => self.replicas.state(name, reply),
            Order::Poisoned { name, reply } => {
                let poisons = self.stack.poisoned(GroupId::of(&name));
                let calls = poisons.map(|poisons| poisons.iter().map(PoisonedCall::from).collect());
                answer(&reply, calls.ok_or(HostError::NotHosted(name)));
            }
            Order::Bench { request, reply } => match self.stack.bench(now, request) {
                Ok(()) => self.waiting.bench = Some(reply),
                Err(error) => answer(&reply, Err(error)),
            },
            Order::BenchProgress { reply } => answer(&reply, self.stack.bench_progress()),
            Order::StopBench => self.stack.stop_bench(now),
            Order::Move { name, to, reply } => {
                let group = GroupId::of(&name);
                let begun = self.stack.move_primary(now, group, to);
                self.waiting.moves.begun(group, begun, reply);
            }
            Order::Restyle { name, style, reply } => {
                let group = GroupId::of(&name);
                let begun = self.stack.restyle(now, group, style);
                self.waiting.restyles.begun(group, begun, reply);
            }
            Order::Save { name, reply } => {
                let group = GroupId::of(&name);
                self.waiting.saves.begun(group, self.stack.save(now, group), reply);
            }
            Order::Restore { restore, reply } => {
                let group = GroupId::of(&restore.name);
                self.waiting.restores.begun(group, self.stack.restore(now, restore), reply);
            }
            Order::Discard { name, reply } => {
                let done = self.stack.discard(now, GroupId::of(&name));
                answer(&reply, done.map_err(DiscardError::from));
            }
            Order::StateWanted { transfer, reply } => answer(&reply, self.stack.offered(transfer)),
            Order::Fetched { transfer, state } => {
                self.streams.ended(transfer);
                let came = state.is_some();
                if self.stack.handle_fetched(now, transfer, state) {
                    self.counters.states_fetched += u64::from(came);
                    self.counters.fetches_failed += u64::from(!came);
                }
            }
            Order::Tell(event) => self.handle_event(event),
            Order::Subscribe { interest, reply } => {
                let past = self.events.history();
                answer(&reply, (past, self.events.subscribe(interest)));
            }
            Order::Status { reply } => answer(&reply, self.status()),
            Order::Usage { usage, reply } => answer(&reply, self.stack.tell_usage(now, usage)),
            Order::View { reply } => answer(&reply, self.view()),
            Order::Command { command, reply } => self.command(now, &command, reply),
            Order::Sight { reply } => answer(&reply, self.sight()),
            Order::Register { command, reply } => self.register(now, &command, reply),
            Order::JobsView { reply } => answer(&reply, self.jobs_view()),
            Order::Jobs { command, reply } => self.tell_jobs(now, &command, reply),
            Order::CellRanks { reply } => answer(&reply, self.cell_ranks()),
            Order::Cell { command, reply } => self.tell_cell(now, &command, reply),
            Order::AwayEnded(wait, end) => self.stack.handle_away(now, wait, end),
            Order::Proposal(proposal) => self.grant(now, proposal),
            Order::Criticalities(of) => self.stack.set_criticalities(of),
            Order::Key { ask, reply } => answer(&reply, self.change_key(now, ask)),
            Order::Renew { renewed, reply } => {
                self.renew(now, *renewed);
                answer(&reply, ());
            }
            Order::FinishUpgrade { reply } => answer(&reply, self.stack.finish_upgrade(now)),
            Order::KeyKept(kept) => {
                let kept = self.sockets.transport.seal().and_then(|seal| kept.apply(seal));
                if let Some((key, sealing)) = kept {
                    self.stack.handle_key_kept(now, key, sealing);
                }
            }
            Order::RosterKept(stamp) => self.stack.handle_roster_kept(now, stamp),
            Order::Addresses(nodes) => self.are_at(now, nodes),
            Order::Nodes { reply } => answer(&reply, self.counted_nodes()),
            Order::Moving { reply } => answer(&reply, self.stack.moving()),
            Order::MoveNode { motion, reply } => {
                let addresses = &self.nodes.addresses;
                let at = |node| addresses.get(&node).cloned().unwrap_or_default();
                answer(&reply, self.stack.move_node(now, motion, at));
            }
            Order::WithdrawMove { reply } => answer(&reply, self.stack.withdraw_move(now)),
            Order::Stop => self.ending.begin(now, &mut self.stack),
        }
    }

    /// Changes since the manager looked make a proposal void: its next look shows that.
    fn grant(&mut self, now: Time, proposal: Proposal) {
        match proposal {
            Proposal::Rank { group, view, order } => {
                self.stack.rank(now, group, view, order);
            }
            Proposal::Shed(shedding) => {
                self.stack.shed(now, shedding);
            }
            Proposal::Move { group, to, .. } => {
                if let Err(error) = self.stack.move_primary(now, group, to) {
                    tracing::debug!(%group, %to, %error, "the primary stays for now");
                }
            }
        }
    }

    /// Rights are those of the new configuration, and whose certificate is denied is out.
    fn renew(&mut self, now: Time, renewed: Renewed) {
        let Renewed { rights, denied, tls, nodes } = renewed;
        self.are_at(now, nodes);
        self.profile.tls = tls;
        if let Some(callers) = &mut self.sockets.callers {
            for caller in callers.renew(rights, denied) {
                self.stack.handle_disconnect(now, caller);
            }
        }
        tracing::info!("the configuration was read again");
    }

    fn change_key(&mut self, now: Time, ask: KeyAsk) -> Result<u8, String> {
        let sealing = self.stack.status().keys.ok_or(engine::KeyError::NotSealed);
        let sealing = sealing.map_err(|error| error.to_string())?;
        let under_way = sealing.change.map(|change| change.key.number);
        let (number, done) = match ask {
            KeyAsk::Rotate => {
                let key = key_file_writer::next_key(sealing.sealing);
                let key = key.map_err(|error| format!("no random bytes: {error}"))?;
                (Some(key.name.number), self.stack.change_key(now, key))
            }
            KeyAsk::Force => (under_way, self.stack.force_key_change(now)),
            KeyAsk::Abort => (under_way, self.stack.abort_key_change(now)),
        };
        done.map(|()| number.unwrap_or_default()).map_err(|error| error.to_string())
    }
}
