import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeNetwork, FakeNetworkHost } from "../../network/fake.ts";
import { TaskNetworks } from "./task-networks.ts";

const PORTS = [{ container: "web", containerPort: 8080, protocol: "TCP", hostPort: 28_000 }] as const;
const SIGNAL = new AbortController().signal;
const OWNER = "5f0c1d9e";
/** The distance in bytes between flipped bits, so that some bytes of each field are tested. */
const FLIP_STEP = 4;

test("one damaged record costs a running task neither its network nor its ports", async (t) => {
  const { dir, host, open } = await aHostWithANetwork(t);
  const before = { sandboxes: [...host.sandboxes], published: [...host.published] };
  const copy = join(dir, "sound");
  for (const name of ["networks", "networks-copies"])
    await cp(join(dir, name), join(copy, name), { recursive: true });
  const files = (await readdir(copy, { recursive: true })).filter((name) => name.endsWith(OWNER));
  assert.equal(files.length, 2);
  for (const file of files) {
    const path = join(dir, file);
    const sound = await readFile(path);
    const damages = [
      ...[...sound.keys()]
        .filter((at) => at % FLIP_STEP === 0)
        .map((at) => ({
          what: `flipped at ${at}`,
          damage: () => writeFile(path, Buffer.from(sound).fill((sound[at] ?? 0) ^ 1, at, at + 1)),
        })),
      { what: "emptied", damage: () => truncate(path) },
      { what: "removed", damage: () => rm(path) },
    ];
    for (const { what, damage } of damages) {
      await damage();

      const { networks, noted } = open();
      await networks.adopt();
      await networks.close();

      const message = `${file} ${what}`;
      assert.deepEqual([...host.sandboxes], before.sandboxes, message);
      assert.deepEqual([...host.published], before.published, message);
      assert.ok(networks.has(OWNER), message);
      assert.deepEqual(noted.length, what === "removed" ? 0 : 1, `${message}: ${noted}`);
      assert.deepEqual(await readFile(path), sound, message);
    }
  }
});

test("a task keeps its network if both of its records are damaged", async (t) => {
  const { dir, host, open } = await aHostWithANetwork(t);
  const before = [...host.sandboxes];
  for (const name of ["networks", "networks-copies"]) await writeFile(join(dir, name, OWNER), "{");

  const { networks, noted } = open();
  await networks.adopt();

  assert.deepEqual([...host.sandboxes], before);
  assert.equal(noted.length, 2);
  await networks.detach(OWNER);
  assert.equal(host.sandboxes.size, 0);
  await networks.close();
});

test("adopts records of an earlier version, which have no checksums and copies", async (t) => {
  const { dir, host, open } = await aHostWithANetwork(t);
  const before = [...host.published];
  const path = join(dir, "networks", OWNER);
  const { checksum, ...record } = JSON.parse(await readFile(path, "utf8"));
  assert.ok(checksum);
  await writeFile(path, JSON.stringify(record));
  await rm(join(dir, "networks-copies"), { recursive: true });

  const { networks, noted } = open();
  await networks.adopt();
  await networks.close();

  assert.deepEqual([...host.published], before);
  assert.deepEqual(noted, []);
  assert.deepEqual(await readdir(join(dir, "networks-copies")), [OWNER]);
});

test("the next start completes a removal that a crash interrupted", async (t) => {
  const { dir, host, open } = await aHostWithANetwork(t);
  host.sandboxes.clear();
  await rm(join(dir, "networks", OWNER));

  const { networks } = open();
  await networks.adopt();
  await networks.close();

  assert.equal(networks.has(OWNER), false);
  assert.deepEqual(await readdir(join(dir, "networks-copies")), []);
});

async function aHostWithANetwork(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-networks-"));
  t.after(() => rm(dir, { recursive: true }));
  const host = new FakeNetworkHost();
  const open = () => {
    const noted: string[] = [];
    const networks = new TaskNetworks({
      dir: join(dir, "networks"),
      open: () => new FakeNetwork(host),
      noteDamage: (path) => noted.push(path),
    });
    return { networks, noted };
  };
  const { networks } = open();
  await networks.attach(OWNER, PORTS, SIGNAL);
  await networks.close();
  return { dir, host, open };
}
