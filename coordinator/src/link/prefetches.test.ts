import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ImagePull, type RegistryCredential } from "@forage/proto/forage/agent/v1/agent";
import { aWorkloadEntry } from "../../test/support/entries.ts";
import type { Workload } from "../model/workload.ts";
import { Prefetches } from "./prefetches.ts";

const KEY = "shop/container_service/web";
const web = workload("app:v2");
const hash = web.templateHash;

test("requests the images of a node's pods with credentials, and sends a request again only when it changes", () => {
  const { prefetches, logins } = some();
  let woken = 0;
  prefetches.read("n1", () => woken++);
  const outbox = prefetches.sessionOf("n1");
  assert.equal(outbox.due(), undefined);
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1", "n2"] });
  assert.equal(woken, 1);
  const [asked, ...others] = outbox.due()?.images ?? [];
  assert.deepEqual(others, []);
  const { id, ...rest } = asked ?? { id: "" };
  const expected = { namespace: "shop", image: "app:v2", pullPolicy: "", registryCredentials: logins };
  assert.deepEqual(rest, expected);
  prefetches.setRequest(KEY, { workload: web, nodes: ["n2", "n1"] });
  assert.equal(outbox.due(), undefined);
  assert.equal(woken, 1);
  logins.push({ name: "r", server: "r.test", username: "u", password: "new" });
  assert.equal(outbox.due()?.images[0]?.registryCredentials.length, 1);
  prefetches.setRequest(KEY, undefined);
  assert.deepEqual(outbox.due(), { images: [] });
  assert.equal(outbox.due(), undefined);
  assert.notEqual(id, "");
});

test("reports the progress that a node reports", () => {
  const { prefetches, changed } = some();
  const on = () => prefetches.imagesOn(KEY, hash, "n1");
  assert.deepEqual(on(), { type: "unasked" });
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1"] });
  assert.deepEqual(on(), { type: "pulling", message: "" });
  assert.deepEqual(prefetches.imagesOn(KEY, "another", "n1"), { type: "unasked" });
  assert.deepEqual(prefetches.imagesOn(KEY, hash, "n2"), { type: "unasked" });
  prefetches.read("n1", () => {});
  const say = (pull: Parameters<typeof ImagePull.fromPartial>[0]) => {
    const { images } = prefetches.requestsFor("n1");
    prefetches.receive("n1", [ImagePull.fromPartial({ id: images[0]?.id ?? "", ...pull })]);
  };
  say({ message: "1 of 3 layers" });
  assert.deepEqual(on(), { type: "pulling", message: "1 of 3 layers" });
  say({ failure: "ImagePullBackOff", message: "refused" });
  assert.deepEqual(on(), {
    type: "failed",
    reason: "ImagePullBackOff",
    image: "app:v2",
    message: "refused",
  });
  say({ present: true });
  assert.deepEqual(on(), { type: "present" });
  assert.ok(changed.length >= 3 && changed.every((it) => it === KEY));
});

test("sends requests again after a reconnect, and ignores earlier reports", () => {
  const { prefetches } = some();
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1"] });
  const older = prefetches.read("n1", () => {});
  const id = prefetches.requestsFor("n1").images[0]?.id ?? "";
  prefetches.receive("n1", [ImagePull.fromPartial({ id, present: true })]);
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "present");
  // A renewal of the certificate: the next connection begins before the last one ends.
  prefetches.read("n1", () => {});
  older();
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "pulling");
  assert.equal(prefetches.sessionOf("n1").due()?.images.length, 1);
});

test("an agent that doesn't respond delays a rollout only briefly", () => {
  const { prefetches, clock, changed } = some();
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1"] });
  prefetches.read("n1", () => {});
  prefetches.requestsFor("n1");
  clock.advance(9_000);
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "pulling");
  changed.length = 0;
  clock.advance(2_000);
  assert.deepEqual(changed, [KEY]);
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "unanswered");
});

test("counts a response that arrived while the process was blocked", () => {
  const { prefetches, clock, changed } = some();
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1"] });
  prefetches.read("n1", () => {});
  prefetches.requestsFor("n1");
  clock.stall(600_000);
  changed.length = 0;
  clock.advance(0);
  assert.deepEqual(changed, [], "timers run before sockets are read");
  prefetches.receive("n1", []);
  clock.advance(600_000);
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "pulling");
});

test("an agent that reports a pull may take any time", () => {
  const { prefetches, clock } = some();
  prefetches.setRequest(KEY, { workload: web, nodes: ["n1"] });
  prefetches.read("n1", () => {});
  const id = prefetches.requestsFor("n1").images[0]?.id ?? "";
  prefetches.receive("n1", [ImagePull.fromPartial({ id, message: "0 of 3 layers" })]);
  prefetches.requestsFor("n1");
  clock.advance(3_600_000);
  assert.equal(prefetches.imagesOn(KEY, hash, "n1").type, "pulling");
});

function some() {
  const clock = new VirtualClock();
  const logins: RegistryCredential[] = [];
  const prefetches = new Prefetches({ clock, credentialsOf: () => [...logins] });
  const changed: string[] = [];
  prefetches.subscribe((workloadKey) => changed.push(workloadKey));
  return { prefetches, clock, logins, changed };
}

function workload(image: string): Workload {
  const found = aWorkloadEntry({ spec: { container: { name: "main", image } } }).workload;
  assert.ok(found);
  return found;
}
