import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { ago } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

const DAY = 24 * 3_600;
/** A certificate for app.example.test that was created for this test. Its key was destroyed. */
const PEM = `-----BEGIN CERTIFICATE-----
MIIB7zCCAZWgAwIBAgIQYfhxznRTUTMNF+B3my0R1DAKBggqhkjOPQQDAjBCMQ8w
DQYDVQQKEwZGb3JhZ2UxLzAtBgNVBAMTJkZvcmFnZSBkZXZlbG9wbWVudCBDQSBv
ZiB0ZXN0IDY1YTQyZTJjMB4XDTI2MTEyMjA2MDcwOFoXDTI3MDIyMDA2MTIwOFow
GzEZMBcGA1UEAxMQYXBwLmV4YW1wbGUudGVzdDBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABP+Usxvxhv/ynq3547r9y5wDGgaASgaAVXo5Jk/s8XT1xGge5f5B5bw7
wEpMXWNP5ZkiVpHNPfXWQOnSmWBR6QmjgZMwgZAwDAYDVR0TAQH/BAIwADAOBgNV
HQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwGwYDVR0RBBQwEoIQYXBw
LmV4YW1wbGUudGVzdDAdBgNVHQ4EFgQUvS+zuLaawyFAwFViLa5cAKCFY6IwHwYD
VR0jBBgwFoAUAlLtJ1jy9RmStwduOllENAFJNzYwCgYIKoZIzj0EAwIDSAAwRQIg
ZoUvSm3uvB/zps0aAEcCRKk6pbHiYa8C6OZAnNytBOICIQCg1lo6xkuQ4xCOfciE
4Qj+kkKB47A5AYxM8eKxQd41qA==
-----END CERTIFICATE-----
`;
const ready = Certificate.fromPartial({
  hostname: "app.example.test",
  state: "ready",
  issuer: "https://acme.example/directory",
  chainPem: PEM,
  notBefore: ago(10 * DAY),
  notAfter: ago(-80 * DAY - 60),
  renewAt: ago(-50 * DAY - 60),
});
const failing = Certificate.fromPartial({
  hostname: "bad.example.test",
  state: "failed",
  message: "dns: no such name (tried again at 2026-01-01T00:00:00Z)",
  issuer: "https://acme.example/directory",
  failures: 3,
  failedAt: ago(60),
  retryAt: ago(-8 * 60 - 30),
});

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    listCertificates: () => ({ certificates: [ready, failing], issuer: ready.issuer }),
    renewCertificate: () => ({ certificate: failing }),
    getCertificateAuthority: () => ({ certificatePem: PEM }),
  };
});

test("lists when certificates expire, and why one is missing", async () => {
  const { stdout } = await forage("certificate ls");
  assert.match(stdout, /app\.example\.test +ready +80d +50d +-\n/);
  assert.match(stdout, /^bad\.example\.test +failed +- +- +dns: no such name/m);
  assert.equal(
    (await forage("certificate ls -o name")).stdout,
    "certificate/app.example.test\ncertificate/bad.example.test\n",
  );
});

test("explains where to configure an issuer if there is none", async () => {
  fake.answers.listCertificates = () => ({ certificates: [], issuer: "" });
  const { stdout, stderr } = await forage("certificate ls");
  assert.match(stdout + stderr, /no issuer of certificates: see certificates\.issuer/);
});

test("shows the chain and the failed attempts of a certificate", async () => {
  fake.answers.listCertificates = () => ({ certificates: [ready], issuer: ready.issuer });
  const { stdout } = await forage("certificate describe app.example.test");
  assert.match(stdout, /State: +ready/);
  assert.match(stdout, /Valid until: +\S+Z \(in 80d\)/);
  assert.match(stdout, /Names: +DNS:app\.example\.test/);
  assert.deepEqual(fake.requests("listCertificates"), [{ hostname: "app.example.test" }]);
  fake.answers.listCertificates = () => ({ certificates: [failing], issuer: ready.issuer });
  const failed = (await forage("certificate describe bad.example.test")).stdout;
  assert.match(failed, /Failures: +3/);
  assert.match(failed, /Next attempt: +\S+Z \(in 8m/);
  assert.doesNotMatch(failed, /Chain/);
});

test("reports an unknown hostname", async () => {
  fake.answers.listCertificates = () => ({ certificates: [], issuer: "x" });
  const { stderr, exitCode } = await forage("certificate describe none.test");
  assert.equal(exitCode, 1);
  assert.match(stderr, /there is no certificate for "none\.test"/);
});

test("requests another certificate with renew", async () => {
  const { stdout } = await forage("certificate renew bad.example.test");
  assert.match(stdout, /certificate\/bad\.example\.test is being renewed/);
  assert.deepEqual(fake.requests("renewCertificate"), [{ hostname: "bad.example.test" }]);
});

test("prints the root in the format of trust stores", async () => {
  assert.equal((await forage("certificate ca")).stdout, PEM);
});
