import assert from "node:assert/strict";
import { test } from "node:test";
import { ETCD_SCHEMA } from "./settings.ts";

const problemsOf = (settings: object): string[] =>
  (ETCD_SCHEMA.safeParse(settings).error?.issues ?? []).map(
    ({ path, message }) => `${path.join(".")}: ${message}`,
  );

test("accepts members over TLS, and plain text on loopback only", () => {
  for (const url of [
    "https://10.0.0.1:2379",
    "https://etcd-1.example",
    "http://127.0.0.1:2379",
    "http://[::1]:2379",
  ])
    assert.deepEqual(problemsOf({ endpoints: [url] }), [], url);
  assert.deepEqual(problemsOf({ endpoints: ["https://10.0.0.1:2379", "http://10.0.0.2:2379"] }), [
    "endpoints.1: must be https: the store's records would travel in plain text",
  ]);
});

test("reports each invalid setting by its path", () => {
  for (const url of ["10.0.0.1:2379", "https://a/path", "https://user@a", "ftp://a", "https://a?x=1"])
    assert.deepEqual(problemsOf({ endpoints: [url] }), [
      "endpoints.0: must be a URL such as https://10.0.0.1:2379",
    ]);
  const endpoints = ["https://10.0.0.1:2379"];
  assert.deepEqual(problemsOf({ endpoints, cert: "/cert.pem" }), [
    "key: must be set too: cert and key belong together",
  ]);
  assert.deepEqual(problemsOf({ endpoints: ["http://localhost:2379"], ca: "/ca.pem" }), [
    "endpoints: must all be https, as ca or cert is set",
  ]);
  for (const prefix of ["forage/", "/forage", "/", "/a b/", "/a\u0000/"])
    assert.equal(problemsOf({ endpoints, prefix }).length, 1, prefix);
});
