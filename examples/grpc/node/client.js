// Adds 1 to the group `counter` in a loop, over stock gRPC.
//
//     node client.js TARGET [--calls N | --seconds S] [--no-keys] [--tls DIR --authority NAME]
//
// TARGET is xds:///counter, HOST:PORT or unix:PATH. It calls until N calls, S seconds or SIGTERM,
// and prints one line of JSON. Failures, and calls of more than 5 ms, are told on the error stream.
"use strict";

const fs = require("fs");
const path = require("path");
const { parseArgs } = require("util");
const grpc = require("@grpc/grpc-js");
const { keys } = require("./steadfast-keys");

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    calls: { type: "string", default: "Infinity" },
    seconds: { type: "string", default: "Infinity" },
    "deadline-ms": { type: "string", default: "5000" },
    "no-keys": { type: "boolean", default: false },
    tls: { type: "string" },
    authority: { type: "string" },
  },
});
const [target] = positionals;
if (target.startsWith("xds:")) require("@grpc/grpc-js-xds").register();

function credentials(folder) {
  if (folder === undefined) return grpc.credentials.createInsecure();
  const read = (pattern) => {
    const name = fs.readdirSync(folder).find((name) => pattern.test(name));
    return fs.readFileSync(path.join(folder, name));
  };
  return grpc.credentials.createSsl(
    read(/^authority\.pem$/),
    read(/^client-.*\.key$/),
    read(/^client-.*\.pem$/),
  );
}

const channel = { interceptors: options["no-keys"] ? [] : [keys()] };
if (options.authority) channel["grpc.ssl_target_name_override"] = options.authority;
const client = new grpc.Client(target, credentials(options.tls), channel);
const metadata = new grpc.Metadata({ waitForReady: true });
metadata.set("steadfast-encoding", "json");

let gateway;

function add() {
  return new Promise((resolve) => {
    const deadline = Date.now() + Number(options["deadline-ms"]);
    const call = client.makeUnaryRequest(
      "/counter/add",
      (args) => Buffer.from(JSON.stringify(args)),
      (bytes) => JSON.parse(bytes),
      [1],
      metadata,
      { deadline },
      (error) => {
        const peer = call.getPeer();
        if (!error && peer !== gateway) {
          gateway = peer;
          console.error(`peer ${Date.now()} ${gateway}`);
        }
        resolve(error);
      },
    );
  });
}

async function main() {
  let stopped = false;
  process.on("SIGTERM", () => (stopped = true));
  const waits = [];
  const codes = {};
  let failed = 0;
  const until = Date.now() + Number(options.seconds) * 1000;
  while (waits.length < Number(options.calls) && Date.now() < until && !stopped) {
    const [began, at] = [Date.now(), performance.now()];
    const error = await add();
    const wait = performance.now() - at;
    if (error) {
      failed++;
      const code = grpc.status[error.code];
      console.error(`failed ${error.message}`);
      codes[code] = (codes[code] ?? 0) + 1;
    }
    waits.push(wait);
    if (wait > 5) console.error(`slow ${began} ${wait.toFixed(1)}`);
  }
  waits.sort((a, b) => a - b);
  const p50_us = Math.round(1000 * waits[waits.length >> 1]);
  const longest_ms = Number(waits.at(-1)?.toFixed(1));
  console.log(JSON.stringify({ calls: waits.length, failed, codes, p50_us, longest_ms }));
  client.close();
  process.exit(0);
}

main();
