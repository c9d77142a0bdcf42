//! A generated adapter, called without a node.

use serde::{Deserialize, Serialize};
use steadfast::{Call, ClientId, Context, MethodId, Refusal, Service, ServiceOutcome, State, Time};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum BookingError {
    Full { seats: u32 },
}

/// Has one of everything that a service's trait may have.
#[steadfast::service]
trait Booking {
    /// Books a seat.
    fn book(&mut self, context: &Context, name: String, r#type: u8) -> Result<u32, BookingError>;
    fn passengers(&self) -> Vec<String>;
    fn cancel(&mut self, mut seat: u32) {
        seat -= 1;
        self.free(seat);
    }
    fn free(&mut self, index: u32);
    fn when(&self, context: &steadfast::Context) -> (u64, u64);
}

#[derive(Default, Serialize, Deserialize)]
struct Coach(Vec<String>);

impl Booking for Coach {
    fn book(&mut self, _: &Context, name: String, _: u8) -> Result<u32, BookingError> {
        if self.0.len() == 2 {
            return Err(BookingError::Full { seats: 2 });
        }
        self.0.push(name);
        Ok(self.0.len() as u32)
    }

    fn passengers(&self) -> Vec<String> {
        self.0.clone()
    }

    fn free(&mut self, index: u32) {
        self.0.remove(index as usize);
    }

    fn when(&self, context: &Context) -> (u64, u64) {
        (context.now().0, context.random().next_u64())
    }
}

fn call(coach: &mut impl Service, method: &str, body: &str) -> ServiceOutcome {
    let context = Context::new(Time(1_700), 9, ClientId(1), 1);
    let call = Call { method: MethodId::of(method), json: true, body: body.as_bytes() };
    coach.call(&context, call)
}

fn ok(json: &str) -> ServiceOutcome {
    ServiceOutcome::Ok(json.to_owned().into())
}

#[test]
fn arguments_come_in_order_or_by_name() {
    let mut coach = BookingService::new(Coach::default());
    assert_eq!(call(&mut coach, "book", r#"["Ada", 1]"#), ok("1"));
    assert_eq!(call(&mut coach, "book", r#"{"type": 2, "name": "Grace"}"#), ok("2"));
    assert_eq!(call(&mut coach, "passengers", "[]"), ok(r#"["Ada","Grace"]"#));
    assert_eq!(call(&mut coach, "cancel", r#"{"seat": 1}"#), ok("null"));
    assert_eq!(call(&mut coach, "passengers", "{}"), ok(r#"["Grace"]"#));
}

#[test]
fn the_services_own_error_comes_typed() {
    let mut coach = BookingService::new(Coach(vec!["Ada".to_owned(), "Grace".to_owned()]));
    let full = ServiceOutcome::Error(r#"{"Full":{"seats":2}}"#.into());
    assert_eq!(call(&mut coach, "book", r#"["Alan", 1]"#), full);
}

#[test]
fn the_context_is_the_calls() {
    let mut coach = BookingService::new(Coach::default());
    let first = call(&mut coach, "when", "[]");
    assert_eq!(call(&mut coach, "when", "[]"), first, "time and seed decide");
    let ServiceOutcome::Ok(body) = first else { panic!("refused: {first:?}") };
    assert!(body.starts_with(b"[1700,"), "{body:?}");
}

#[test]
fn refusals_teach() {
    let mut coach = BookingService::new(Coach::default());
    let refused = |outcome, kind| match outcome {
        ServiceOutcome::Refused(refusal, reason) if refusal == kind => reason,
        other => panic!("not refused as {kind:?}: {other:?}"),
    };
    let reason = refused(call(&mut coach, "bok", "[]"), Refusal::NoSuchMethod);
    assert!(
        reason.contains("book(name: String, type: u8) -> Result<u32, BookingError>"),
        "{reason}"
    );
    for body in ["", "7", "[\"Ada\"]", "[\"Ada\",1,2]", r#"{"name":"Ada","class":1}"#, "[1,1]"] {
        let reason = refused(call(&mut coach, "book", body), Refusal::BadArguments);
        assert!(reason.starts_with("book(name: String, type: u8)"), "{reason}");
        assert!(reason.contains("by their names"), "{reason}");
    }
    assert_eq!(call(&mut coach, "passengers", "[]"), ok("[]"), "nothing was executed");
}

#[test]
fn the_adapter_takes_and_restores_the_implementations_state() {
    let mut coach = BookingService::new(Coach(vec!["Ada".to_owned()]));
    let state = Service::snapshot(&coach).expect("serde's state");
    assert_eq!(state, State::snapshot(&Coach(vec!["Ada".to_owned()])).expect("serde's state"));
    call(&mut coach, "cancel", "[1]");
    Service::restore(&mut coach, &state).expect("its own state");
    assert_eq!(call(&mut coach, "passengers", "[]"), ok(r#"["Ada"]"#));
}

/// As many crates have it, under a name that no macro knows.
type Outcome<T> = Result<T, BookingError>;
type Booked = Outcome<u32>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seat(u32);

#[steadfast::service]
trait Aliased {
    fn generic(&mut self, fails: bool) -> Outcome<Seat>;
    fn plain(&self, fails: bool) -> Booked;
    fn seat(&self) -> Seat;
}

impl Aliased for () {
    fn generic(&mut self, fails: bool) -> Outcome<Seat> {
        if fails { Err(BookingError::Full { seats: 1 }) } else { Ok(Seat(7)) }
    }

    fn plain(&self, fails: bool) -> Booked {
        if fails { Err(BookingError::Full { seats: 2 }) } else { Ok(7) }
    }

    fn seat(&self) -> Seat {
        Seat(8)
    }
}

#[test]
fn a_result_behind_an_alias_is_a_result() {
    let mut service = AliasedService::new(());
    let full =
        |seats: u32| ServiceOutcome::Error(format!(r#"{{"Full":{{"seats":{seats}}}}}"#).into());
    assert_eq!(call(&mut service, "generic", "[true]"), full(1));
    assert_eq!(call(&mut service, "generic", "[false]"), ok("7"));
    assert_eq!(call(&mut service, "plain", "[true]"), full(2));
    assert_eq!(call(&mut service, "plain", "[false]"), ok("7"));
    assert_eq!(call(&mut service, "seat", "[]"), ok("8"));
    let told: Vec<_> = AliasedService::<()>::contract()
        .methods
        .into_iter()
        .map(|method| (method.result, method.error))
        .collect();
    let error = Some("BookingError".to_owned());
    let results = [("Seat", error.clone()), ("u32", error), ("Seat", None)];
    assert_eq!(told, results.map(|(result, error)| (result.to_owned(), error)));
    // A Rust client is given the same.
    fn typed(client: &AliasedClient) -> [Option<steadfast::CallError<BookingError>>; 2] {
        [client.generic(true).err(), client.plain(true).err()]
    }
    fn seat(client: &AliasedClient) -> Result<Seat, steadfast::CallError> {
        client.seat()
    }
    let _ = (typed, seat);
}
