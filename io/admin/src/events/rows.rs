//! The macro that turns the [table](super::table) of events into code.

/// The `tracing` target of the log lines. Operators filter by it, so it never changes.
pub(super) const TARGET: &str = "steadfast_node::events::log";

/// Generates [`EventKind`](super::EventKind) from a table of events, with the conversion from the
/// engine's event, the log lines and the sentences. A row has:
///
/// 1. The name and the fields of the JSON form. A field's value is the binding of that name in the
///    source pattern, or the expression after `=`.
/// 2. `from`: the pattern of the engine's event. The default is the same name and fields.
/// 3. `log`: the level and the arguments of the [`tracing`] macro. Without arguments it logs the
///    whole event. The first `log` whose condition is true is written. If there is none, the event
///    is logged at level `debug`.
/// 4. `says`: the sentence for `steadfast events`. The default is the JSON form.
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
        /// The event and its fields, which [`engine::Event`] and [`ring::Event`] document.
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
        #[allow(unused_variables, reason = "rows log only some of their fields")]
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
        #[allow(unused_variables, reason = "sentences use only some of the fields")]
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
