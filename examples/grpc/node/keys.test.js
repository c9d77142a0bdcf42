// Tests of the numbering: node --test
"use strict";

const assert = require("node:assert");
const test = require("node:test");
const grpc = require("@grpc/grpc-js");
const { keys } = require("./steadfast-keys");

// Begins a call; `end` ends it.
function begin(interceptor) {
  let sent, listener;
  const inner = {
    start(metadata, heard) {
      [sent, listener] = [metadata, heard];
    },
  };
  interceptor({}, () => inner).start(new grpc.Metadata(), { onReceiveStatus() {} });
  const one = (part) => sent.get(`steadfast-${part}`)[0];
  return {
    key: [one("session"), one("call"), one("unanswered")],
    end: () => listener.onReceiveStatus({ code: grpc.status.OK, details: "" }),
  };
}

test("calls are numbered from 1", () => {
  const interceptor = keys();
  const [first, second] = [begin(interceptor), begin(interceptor)];
  const [session] = first.key;
  assert.match(session, /^[0-9a-f]{16}$/);
  assert.deepEqual([first.key, second.key], [[session, "1", "1"], [session, "2", "1"]]);
  first.end();
  assert.deepEqual(begin(interceptor).key, [session, "3", "2"]);
});

test("there is a further session from 64 calls on", () => {
  const interceptor = keys();
  const all = Array.from({ length: 66 }, () => begin(interceptor).key);
  assert.deepEqual(all[63], [all[0][0], "64", "1"]);
  assert.notEqual(all[64][0], all[0][0]);
  assert.deepEqual(all[65], [all[64][0], "2", "1"]);
});
