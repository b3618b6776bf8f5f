import assert from "node:assert/strict";
import { test } from "node:test";
import { Metadata, status } from "@grpc/grpc-js";
import { CliError } from "../errors.ts";
import { CallError, explain } from "./explain.ts";

const ENDPOINT = {
  server: "host:7600",
  otherServers: [],
  caFile: "/ca.crt",
  caPem: "",
  token: "secret",
  tokenSource: "/token",
};

function explained(code: status, details: string): CallError {
  const error = explain(
    Object.assign(new Error(details), { code, details, metadata: new Metadata() }),
    ENDPOINT,
  );
  assert.ok(error instanceof CallError);
  return error;
}

test("explains what to do after each failure", () => {
  const cases: [status, string, string, RegExp][] = [
    [
      status.UNAVAILABLE,
      "No connection established. Last error: connect ECONNREFUSED 127.0.0.1:1",
      "UNREACHABLE",
      /^nothing listens at host:7600: is it running/,
    ],
    [
      status.UNAVAILABLE,
      "Name resolution failed for target dns:nowhere",
      "UNREACHABLE",
      /^the name in host:7600 is unknown/,
    ],
    [
      status.UNAVAILABLE,
      "No connection established. Last error: connect EHOSTUNREACH 10.0.0.1",
      "UNREACHABLE",
      /^no route to host:7600/,
    ],
    [
      status.UNAVAILABLE,
      "No connection established. Last error: self-signed certificate in certificate chain",
      "UNTRUSTED",
      /^host:7600 has no certificate from the CA in \/ca\.crt/,
    ],
    [
      status.UNAVAILABLE,
      "No connection established. Last error: unable to verify the first certificate",
      "UNTRUSTED",
      /has no certificate from the CA/,
    ],
    [
      status.UNAVAILABLE,
      "No connection established. Last error: Hostname/IP does not match certificate's altnames: Host: h. is not in the cert's altnames: DNS:a",
      "UNTRUSTED",
      /^the certificate at host:7600 is for other names: DNS:a$/,
    ],
    [
      status.UNAVAILABLE,
      "No connection established. Last error: 0A00010B:SSL routines:ssl3_get_record:wrong version number",
      "UNREACHABLE",
      /does not speak gRPC over TLS/,
    ],
    [
      status.UNAVAILABLE,
      "Connection dropped",
      "UNREACHABLE",
      /^no answer from host:7600: Connection dropped$/,
    ],
    [
      status.UNAUTHENTICATED,
      "the token has expired",
      "UNAUTHENTICATED",
      /^host:7600 does not accept the token from \/token: the token has expired$/,
    ],
    [status.PERMISSION_DENIED, "needs the role editor", "DENIED", /^not allowed: needs the role editor$/],
    [status.DEADLINE_EXCEEDED, "Deadline exceeded", "TIMED_OUT", /did not answer in time; --timeout/],
    [status.NOT_FOUND, "there is no pod", "NOT_FOUND", /^there is no pod$/],
    [status.UNIMPLEMENTED, "route is not supported", "REFUSED", /can't do this: route is not supported/],
  ];
  for (const [code, details, cliCode, message] of cases) {
    const error = explained(code, details);
    assert.equal(error.code, cliCode, details);
    assert.match(error.message, message);
    assert.ok(!error.message.includes("secret"));
  }
});

test("reports whether a retry may help, and whether the request may have arrived", () => {
  const refused = explained(
    status.UNAVAILABLE,
    "No connection established. Last error: connect ECONNREFUSED",
  );
  assert.deepEqual([refused.passing, refused.connected], [true, false]);
  const dropped = explained(status.UNAVAILABLE, "Connection dropped");
  assert.deepEqual([dropped.passing, dropped.connected], [true, true]);
  const untrusted = explained(
    status.UNAVAILABLE,
    "No connection established. Last error: self-signed certificate",
  );
  assert.equal(untrusted.passing, false);
  assert.equal(explained(status.ABORTED, "conflict").passing, true);
  assert.equal(explained(status.INVALID_ARGUMENT, "bad").passing, false);
});

test("reports why the command cancelled a call", () => {
  const reason = new CliError("TIMED_OUT", "over");
  const cancelled = Object.assign(new Error("x"), {
    code: status.CANCELLED,
    details: "Cancelled",
    metadata: new Metadata(),
  });
  assert.equal(explain(cancelled, ENDPOINT, AbortSignal.abort(reason)), reason);
  assert.ok(explain(cancelled, ENDPOINT, new AbortController().signal) instanceof CallError);
});

test("returns an error unchanged if it is not from a call", () => {
  const error = new TypeError("x");
  assert.equal(explain(error, ENDPOINT), error);
});
