//! The place of a program that is started when its replica's service is to run, and not before.

use engine::Command;

use supervisor::Tether;

/// Commands for a program that does not run yet, and the request to start it.
pub(crate) struct Standby {
    commands: Vec<Command>,
    wanted: bool,
    tether: Tether,
}

impl Standby {
    pub fn new(tether: Tether) -> Standby {
        Standby { commands: Vec::new(), wanted: false, tether }
    }

    /// Keeps a command for the program. With the first one, which says so, it is wanted.
    pub fn give(&mut self, command: Command) {
        if matches!(command, Command::Start(_)) && !std::mem::replace(&mut self.wanted, true) {
            self.tether.wanted();
        }
        // A state that nobody has yet is not compared.
        if !matches!(command, Command::Digest { .. }) {
            self.commands.push(command);
        }
    }

    /// It is not wanted any more, whether it has come meanwhile or not.
    pub fn reset(&mut self) {
        self.commands.clear();
        if std::mem::take(&mut self.wanted) {
            self.tether.released();
        }
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Takes the commands for the program that has attached.
    pub fn take(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    pub fn tether(&mut self) -> &mut Tether {
        &mut self.tether
    }
}
