//! The draws for callers that count their calls, and for their gateways.

use engine::Quorum;
use wire::Duration;
use wire::limits::{MAX_SESSION_WINDOW, MAX_WAITING};
use wire::ordered::Style;

use super::conditions::Pipe;
use super::{GroupPlan, Load, Options};
use crate::cluster::GatewayPlan;
use crate::draw::Draw;

impl GatewayPlan {
    /// Draws the gateways. Each is one of the load's clients, and its callers make the calls.
    pub(super) fn draw(draw: &mut Draw, load: &mut Load) -> GatewayPlan {
        let (callers, each) = (draw.count(1, 3), draw.count(2, 3));
        load.clients = callers * each;
        load.parallel = draw.pick(&[1, 4, 16, MAX_SESSION_WINDOW as usize]);
        load.think = draw.pick(&[1, 1, 5, 20]).pipe(Duration::from_millis);
        load.timeout = draw.pick(&[100, 400, 2_000]).pipe(Duration::from_millis);
        GatewayPlan {
            each,
            beside: draw.pick(&[0, 4, 4, 2]),
            patience: draw.pick(&[5, 20, 100, 400]).pipe(Duration::from_millis),
            cancels: draw.pick(&[0, 2, 1]),
            leaves: draw.pick(&[0, 6, 20]),
            delays: draw.pick(&[0, 4, 20]),
            strays: 0,
            leaps: false,
        }
    }
}

impl GroupPlan {
    /// It keeps what it has executed: no call is executed twice.
    pub(super) fn keep(&mut self) {
        if self.options.style == Style::Stateless {
            self.options.style = Style::SemiActive;
        }
    }
}

impl Options {
    /// Callers make the calls, by gateways. What the manager does is for other worlds.
    pub(super) fn with_gateways(mut self, plan: GatewayPlan, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0x57a7);
        let (strays, leaps) = (draw.pick(&[0, 0, 1, 4]), draw.one_in(3));
        let plan = GatewayPlan { strays, leaps, ..plan };
        if self.waiting < MAX_WAITING {
            // All that the callers want when all is well has room.
            self.waiting = self.load.clients * MAX_SESSION_WINDOW as usize;
        }
        // Where there are disks, all lives may end at once, and all gateways with them.
        if self.quorum == Quorum::Majority {
            self = self.on_some_disks(&mut Draw::new(seed ^ 0x6a7e));
        }
        let hangs = self.quorum == Quorum::Majority && self.disks.is_none();
        let hangs = hangs && Draw::new(seed ^ 0x4a46).one_in(8);
        let options = if hangs { self.hanging(seed) } else { self };
        Options { gateways: Some(plan), ..options }
    }
}
