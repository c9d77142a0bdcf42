// Makes the calls that its input names, and tells how each ended: see ask.py.
"use strict";

const readline = require("readline");
const grpc = require("@grpc/grpc-js");

const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure());
const asIs = (bytes) => bytes;

function ask([path, message, headers]) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const options = { deadline: Date.now() + 20_000 };
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, Buffer.from(message), metadata, options, (error) => {
      if (!error) return resolve({ code: 0, text: "" });
      const [executed] = error.metadata.get("steadfast-executed");
      const [cut] = error.metadata.get("steadfast-cut");
      const [own] = error.metadata.get("steadfast-error-bin");
      const text = error.details;
      resolve({ code: error.code, text, executed, cut, error: own && own.toString("base64") });
    });
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await ask(JSON.parse(line))));
  }
  client.close();
}

main();
