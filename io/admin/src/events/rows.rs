//! How the [table](super::table) of events is read.

/// The target of what is logged of events: people filter by it.
pub(super) const TARGET: &str = "steadfast_node::events::log";

/// Makes [`EventKind`](super::EventKind) of a table of events, with its conversion, its lines of
/// the log and its sentences. A row has:
///
/// 1. the name and the fields of the JSON form. A field is what the source binds under its name,
///    or what stands after `=`;
/// 2. `from`, the pattern of the engine's event; without it, that event has the same name and
///    fields;
/// 3. `log`, the level and what [`tracing`] is given; without arguments, the event in full. The
///    first line whose condition holds is written; without any, the event is for debugging;
/// 4. `says`, the sentence for people who follow the events; without it they get JSON.
macro_rules! events {
    (
        ($event:ident, $known:ident)
        $(
            event $name:ident $({ $($field:ident: $type:ty $(= $value:expr)?),* $(,)? })?
            $(from $source:pat)?,
            $(log $level:ident $(if $condition:block)? ($($line:tt)*),)*
            $(says($($words:tt)*),)?
        )*
    ) => {
        /// What happened; the fields are those of [`engine::Event`] and [`ring::Event`].
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "event", rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the engine's and the ring's events document the fields")]
        pub enum EventKind {
            $(
                $(#[doc = concat!("From `", stringify!($source), "`.")])?
                $name $({ $($field: $type),* })?,
            )*
        }

        impl From<&Event> for EventKind {
            #[allow(unused_variables, clippy::clone_on_copy, reason = "rows differ")]
            fn from($event: &Event) -> Self {
                match $event {
                    $(events!(@source $name [$($($field)*)?] $($source)?) => EventKind::$name $({
                        $($field: events!(@value $field $($value)?)),*
                    })?,)*
                }
            }
        }

        /// Writes the event into the log.
        #[allow(unused_variables, reason = "no row logs all that it has")]
        pub(super) fn log($event: &Event, $known: &Known) {
            match $event {
                $(events!(@source $name [$($($field)*)?] $($source)?) => {
                    $(if events!(@condition $($condition)?) {
                        events!(@log $event $level $($line)*);
                        return;
                    })*
                })*
            }
            tracing::debug!(target: TARGET, ?$event);
        }

        /// The event's sentence, if it has one.
        #[allow(unused_variables, reason = "no row says all that it has")]
        pub(super) fn sentence(kind: &EventKind, $known: &Names) -> Option<String> {
            match kind {
                $(EventKind::$name $({ $($field),* })? => events!(@sentence $($($words)*)?),)*
            }
        }
    };
    (@source $name:ident [$($field:ident)*]) => { Event::$name { $($field),* } };
    (@source $name:ident [$($field:ident)*] $source:pat) => { $source };
    (@value $field:ident) => { $field.clone() };
    (@value $field:ident $value:expr) => { $value };
    (@condition) => { true };
    (@condition $condition:block) => { $condition };
    (@log $event:ident $level:ident) => { tracing::$level!(target: TARGET, ?$event) };
    (@log $event:ident $level:ident $($line:tt)+) => {
        tracing::$level!(target: TARGET, $($line)+)
    };
    (@sentence) => { None };
    (@sentence $($words:tt)+) => { Some(format!($($words)+)) };
}

pub(super) use events;
