// Exactly once over stock gRPC: an interceptor that gives each call a key.
//
//     new grpc.Client("xds:///counter", credentials, { interceptors: [keys()] })
//
// A retry has the key of its first attempt, whichever gateway it comes to. docs/gateway.md has the
// rules of a key.
"use strict";

const crypto = require("crypto");
const grpc = require("@grpc/grpc-js");

const WINDOW = 64; // calls under way in a session

class Session {
  constructor() {
    do {
      this.name = crypto.randomBytes(8).toString("hex");
    } while (/^0*$/.test(this.name));
    this.next = 1;
    this.open = new Set();
  }

  oldest() {
    return this.open.size === 0 ? this.next : Math.min(...this.open);
  }
}

// For one channel: one session, and a further one where more than 64 calls are under way.
function keys() {
  let current = new Session();
  return (options, nextCall) => {
    let session, number;
    return new grpc.InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        if (current.next - current.oldest() >= WINDOW) current = new Session();
        session = current;
        number = session.next++;
        session.open.add(number);
        metadata.set("steadfast-session", session.name);
        metadata.set("steadfast-call", String(number));
        metadata.set("steadfast-unanswered", String(session.oldest()));
        next(metadata, {
          onReceiveStatus(status, told) {
            session.open.delete(number);
            told(status);
          },
        });
      },
    });
  };
}

module.exports = { keys };
