//! `steadfast context`: where the cluster is, and as whom commands call it, so that command lines
//! need not repeat it.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast init --cluster trial --out trial --local 3
  steadfast context use trial            from now on `steadfast status` and `call` find the cluster
  steadfast context                      what is in force, and where it comes from
  steadfast context clear

What counts, the first that says anything:
  1. the command line: --config, --admin, --connect, --at, --tls
  2. STEADFAST_CLIENTS, STEADFAST_CLIENT_TLS, STEADFAST_ADMINS, STEADFAST_ADMIN_TLS
  3. the context's file: STEADFAST_CONTEXT, or steadfast/context.toml in XDG_CONFIG_HOME (~/.config)
  4. /run/steadfast/node.sock, the socket of this host's node";

/// The file in the folder that `steadfast init` makes.
pub const FILE: &str = "context.toml";

/// Shows or chooses the cluster that commands talk to.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Takes the context that `steadfast init` made in this folder.
    #[command(after_help = "Example:\n  steadfast context use trial")]
    Use {
        /// The folder, or a file like its context.toml.
        #[arg(value_name = "DIR")]
        from: PathBuf,
    },
    /// Forgets it: commands talk to this host's node.
    #[command(after_help = "Example:\n  steadfast context clear")]
    Clear,
}

/// Addresses, and folders with certificates. Without any, commands talk to this host's node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// Where clients connect, of one node or more: HOST:PORT.
    pub clients: Vec<String>,
    /// The folder of a client's certificate.
    pub client_tls: Option<PathBuf>,
    /// Where administrators connect, HOST:PORT, or the admin sockets of nodes on this host: what
    /// has a slash is a path. They are tried in turn.
    pub admins: Vec<String>,
    /// The folder of an administrator's certificate.
    pub admin_tls: Option<PathBuf>,
}

impl Context {
    /// Reads the context: the file, and the variables that replace its parts.
    pub fn load() -> Result<Context, Failure> {
        let mut context = match file() {
            Some(path) if path.exists() => Context::read(&path)?,
            _ => Context::default(),
        };
        let list = |text: String| text.split(',').map(|part| part.trim().to_owned()).collect();
        context.clients = variable("STEADFAST_CLIENTS").map_or(context.clients, list);
        context.admins = variable("STEADFAST_ADMINS").map_or(context.admins, list);
        let folder = |name| variable(name).map(PathBuf::from);
        context.client_tls = folder("STEADFAST_CLIENT_TLS").or(context.client_tls);
        context.admin_tls = folder("STEADFAST_ADMIN_TLS").or(context.admin_tls);
        Ok(context)
    }

    /// A context's file; its relative paths lie in its folder.
    fn read(path: &Path) -> Result<Context, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::Usage(format!(
                "{}: {error}; `steadfast context use DIR` writes it anew from a folder that \
                 `steadfast init` made",
                path.display()
            ))
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut context: Context = toml::from_str(&text).map_err(|error| wrong(&error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for tls in [&mut context.client_tls, &mut context.admin_tls].into_iter().flatten() {
            *tls = std::path::absolute(folder.join(&*tls)).map_err(|error| wrong(&error))?;
        }
        for socket in context.admins.iter_mut().filter(|at| at.contains('/')) {
            let path = std::path::absolute(folder.join(&*socket)).map_err(|error| wrong(&error))?;
            *socket = path.to_string_lossy().into_owned();
        }
        Ok(context)
    }

    /// The file's text.
    pub fn to_toml(&self) -> Result<String, Failure> {
        let text = toml::to_string(self).map_err(Failure::failed)?;
        Ok(format!("# Where the cluster is: `steadfast context`.\n{text}"))
    }
}

/// An empty variable says nothing.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

/// Where the context lies; nobody's home has none.
fn file() -> Option<PathBuf> {
    if let Some(path) = variable("STEADFAST_CONTEXT") {
        return Some(path.into());
    }
    let home = || Some(PathBuf::from(variable("HOME")?).join(".config"));
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(config.join("steadfast").join(FILE))
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.action {
        None => show(args.json),
        Some(Action::Use { from }) => choose(from).and_then(|()| show(args.json)),
        Some(Action::Clear) => clear(),
    })
}

fn show(json: bool) -> Result<(), Failure> {
    let context = Context::load()?;
    if json {
        let json = serde_json::to_string_pretty(&context).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let mut text = String::new();
    let folder = |tls: &Option<PathBuf>| match tls {
        Some(folder) => format!(", with the certificate in {}", folder.display()),
        None => ", without TLS".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = match context.admins.is_empty() {
        true => writeln!(text, "administrators  the socket of this host's node"),
        false => {
            let (at, tls) = (context.admins.join(", "), folder(&context.admin_tls));
            writeln!(text, "administrators  {at}{tls}")
        }
    };
    let _ = match context.clients.is_empty() {
        true => writeln!(text, "clients         nowhere: `steadfast call` needs --at"),
        false => {
            let (at, tls) = (context.clients.join(", "), folder(&context.client_tls));
            writeln!(text, "clients         {at}{tls}")
        }
    };
    if let Some(path) = file().filter(|path| path.exists()) {
        let _ = writeln!(text, "from            {}", path.display());
    }
    print(&text)
}

fn choose(from: &Path) -> Result<(), Failure> {
    let from = if from.is_dir() { from.join(FILE) } else { from.to_owned() };
    let context = Context::read(&from)?;
    let path = target()?;
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(&path, context.to_toml()?).map_err(failed)
}

fn clear() -> Result<(), Failure> {
    let path = target()?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Failed(format!("{}: {error}", path.display())))
        }
        _ => print("no context: commands talk to this host's node\n"),
    }
}

fn target() -> Result<PathBuf, Failure> {
    file().ok_or_else(|| Failure::Usage("set HOME, or STEADFAST_CONTEXT to a file's path".into()))
}
