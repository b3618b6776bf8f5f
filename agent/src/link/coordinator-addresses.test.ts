import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ADDRESSES_MAX, textOf } from "./coordinator-address.ts";
import { CoordinatorAddresses } from "./coordinator-addresses.ts";
import { KnownCoordinators } from "./known-coordinators.ts";

const [a, b, c] = [anAddress("a"), anAddress("b"), anAddress("c")];

test("starts with a random coordinator, and moves on to a random other one", () => {
  const configured = [a, b, c];
  const begun = [0, 0.34, 0.99].map((drawn) => new CoordinatorAddresses({ configured, random: () => drawn }));
  assert.deepEqual(
    begun.map(({ current }) => current.host),
    ["a", "b", "c"],
  );
  const [, , last] = begun;
  const options = last?.with({ nodeName: "n1" });
  assert.deepEqual([options?.nodeName, options?.address], ["n1", c]);
  last?.moveOn();
  assert.deepEqual([last?.current, options?.address], [b, b]);
});

test("keeps using a single coordinator", () => {
  const addresses = new CoordinatorAddresses({ configured: [a], random: () => 0.99 });
  addresses.moveOn();
  assert.equal(addresses.current, a);
  assert.equal(addresses.redraw(), undefined);
});

test("reported coordinators replace earlier reported ones, but never the configured ones", () => {
  const addresses = new CoordinatorAddresses({ configured: [a], random: () => 0 });
  assert.equal(addresses.learn(["a:7600", "b:7600", "[2001:db8::1]:7600"]), true);
  assert.deepEqual(all(addresses), ["a:7600", "b:7600", "[2001:db8::1]:7600"]);
  assert.equal(addresses.learn(["[2001:db8::1]:7600", "b:7600"]), false, "the order is no change");
  assert.equal(addresses.learn(["b:7600"]), false, "there is no new one");
  assert.deepEqual(all(addresses), ["a:7600", "b:7600"]);
  assert.equal(addresses.learn([]), false);
  for (const text of ["b", "b:0", "b:65536", "b:7600/x", "-", ":1", "[b]:1", "b:7600\n"])
    addresses.learn([text]);
  assert.deepEqual(all(addresses), ["a:7600", "b:7600"], "what is no address is left out");
  addresses.learn(Array.from({ length: 40 }, (_, at) => `c${at}:7600`));
  assert.equal(addresses.all.length, ADDRESSES_MAX);
  assert.equal(all(addresses)[0], "a:7600");
});

test("a new coordinator is chosen at random from all, and the choice can be undone", () => {
  let drawn = 0;
  const addresses = new CoordinatorAddresses({ configured: [a, b, c], random: () => drawn });
  assert.equal(addresses.redraw(), undefined);
  drawn = 0.99;
  const goBack = addresses.redraw();
  assert.equal(addresses.current, c);
  goBack?.();
  assert.equal(addresses.current, a);
});

test("learned addresses survive a restart, and a damaged file is ignored", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-coordinators-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "coordinators");
  const open = async () => {
    const known = await KnownCoordinators.open({ path, onProblem: (error) => assert.fail(String(error)) });
    return { known, addresses: new CoordinatorAddresses({ configured: [a], known, random: () => 0 }) };
  };
  const first = await open();
  first.addresses.learn(["b:7600", "c:7600"]);
  await first.known.saved();
  assert.equal(await readFile(path, "utf8"), "b:7600\nc:7600\n");
  assert.deepEqual(all((await open()).addresses), ["a:7600", "b:7600", "c:7600"]);
  await writeFile(path, "\0\0\nb:7600\n".repeat(1_000));
  assert.deepEqual(all((await open()).addresses), ["a:7600", "b:7600"]);
});

function all(addresses: CoordinatorAddresses): string[] {
  return addresses.all.map(textOf);
}

function anAddress(host: string) {
  return { host, port: 7600 };
}
