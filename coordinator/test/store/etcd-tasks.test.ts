import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { bundledProgram } from "../../../hack/bundling/bundled-program.ts";
import { type EtcdServer, startEtcd } from "../../../hack/lib/etcd-server.ts";
import { freePort } from "../../../hack/lib/free-ports.ts";
import { runMaintenance } from "../../src/maintenance.ts";
import { type OpenOptions, openClusterStore, type StorePlace } from "../../src/open-cluster-store.ts";
import { contents, put, rejectsWith } from "../../src/store/conformance/fixture.ts";
import { restoreEtcdStore } from "../../src/store/etcd/etcd-store.ts";
import { ETCD_SCHEMA } from "../../src/store/index.ts";
import { systemClock } from "../../src/time/clock.ts";
import { until } from "../support/until.ts";
import { connectEtcd, crashing, openStore, storeOptions } from "./etcd-bench.ts";
import { tempDir } from "./sample-store.ts";

const COORDINATOR = await bundledProgram("coordinator");

/** The duration of the lease, plus that of a start on a busy machine. */
const TAKEOVER_MAX_MS = 60_000;
let server: EtcdServer;
let prefixes = 0;

before(async () => {
  server = await startEtcd();
});

after(() => server.close());

test("moves a store from the disk to etcd and back, each time into a new epoch", async (t) => {
  const place = placeIn(tempDir(t));
  const onDisk = { ...place, store: {} };
  const first = await open(t, onDisk, false, { clock: systemClock });
  const lease = await first.lease(60_000);
  await first.txn([], [put("a", "1"), { type: "put", key: "l", value: Buffer.from("2"), lease: lease.id }]);
  const before = await first.range("");
  await first.close();

  const toEtcd = await runMaintenance({ name: "migrate", to: "etcd" }, place, systemClock);
  assert.deepEqual(pick(toEtcd), { epoch: 2, records: 2, movedTo: "etcd" });
  assert.deepEqual(readdirSync(place.dataDir).sort(), ["store-etcd", "store.moved-from-epoch-1"]);
  const inEtcd = await open(t, place, false, { clock: systemClock });
  assert.equal(inEtcd.id, first.id);
  assert.deepEqual(plain((await inEtcd.range("")).records), plain(before.records));
  await inEtcd.txn([], [put("b", "1")]);
  await rejectsWith("LOCKED", runMaintenance({ name: "migrate", to: "disk" }, place, systemClock));
  await inEtcd.close();

  const toDisk = await runMaintenance({ name: "migrate", to: "disk" }, place, systemClock);
  assert.deepEqual(pick(toDisk), { epoch: 3, records: 3, movedTo: "disk" });
  const again = await open(t, onDisk, false, { clock: systemClock });
  assert.deepEqual(await contents(again), { a: "1", b: "1", l: "2" });
  await again.close();
  await assert.rejects(open(t, place, false, { clock: systemClock }), /was moved to the coordinator's disk/);
  // A store that was moved away leaves the location free for the next move.
  assert.deepEqual(pick(await runMaintenance({ name: "migrate", to: "etcd" }, place, systemClock)), {
    ...{ epoch: 4, records: 3, movedTo: "etcd" },
  });
});

test("restores a backup of a store in etcd under another prefix, even after an interrupted restore", async (t) => {
  const place = placeIn(tempDir(t));
  const store = await open(t, place, false, { clock: systemClock });
  const large = { type: "put", key: "large", value: Buffer.alloc(1_500_000, "x") } as const;
  await store.txn([], [large]);
  await store.txn([], [put("a", "1")]);
  await store.close();
  const file = join(place.dataDir, "backup");
  await runMaintenance({ name: "backup", file }, place, systemClock);
  await rejectsWith("NOT_EMPTY", runMaintenance({ name: "restore", file }, place, systemClock));

  const other = placeIn(tempDir(t));
  const { prefix } = other.store.etcd;
  for (const at of [2, 3, 4]) {
    const cut = crashing(connectEtcd(server.endpoint, prefix), at, at === 2 ? "after" : "before");
    await assert.rejects(restoreEtcdStore(storeOptions(cut), { file }), /the process has ended/);
    if (at === 2) continue;
    const opened = openStore(connectEtcd(server.endpoint, prefix));
    assert.match((await rejectsWith("CORRUPT", opened)).message, /the restore of the store was interrupted/);
  }
  await runMaintenance({ name: "restore", file, epoch: 7 }, other, systemClock).catch(
    async (error: unknown) => {
      // The last interrupted process counts as another coordinator until its lease ends.
      assert.match(String(error), /the coordinator on host-a works with the store/);
      const direct = connectEtcd(server.endpoint, prefix);
      await direct.txn({ compares: [], ops: [{ type: "delete", from: "m/leader" }] });
      direct.close();
      await runMaintenance({ name: "restore", file, epoch: 7 }, other, systemClock);
    },
  );
  const verified: object = await runMaintenance({ name: "verify" }, other, systemClock);
  assert.deepEqual({ ...verified, revision: 0 }, { id: store.id, epoch: 7, revision: 0, verified: true });
  const restored = await open(t, other, false, { clock: systemClock });
  assert.equal((await restored.get("large"))?.value.byteLength, 1_500_000);
  await restored.close();
});

test("names a damaged record, and changes nothing", async (t) => {
  const place = placeIn(tempDir(t));
  const store = await open(t, place, false, { clock: systemClock });
  await store.txn([], [put("pods/a", "1"), put("pods/b", "1")]);
  await store.compact(store.revision);
  const etcd = connectEtcd(server.endpoint, place.store.etcd.prefix);
  const { records } = await etcd.range({ from: "k/pods/a" });
  const value = Buffer.from(records[0]?.value ?? []);
  value[10] = (value[10] ?? 0) ^ 1;
  await etcd.txn({ compares: [], ops: [{ type: "put", key: "k/pods/a", value }] });
  assert.match((await rejectsWith("CORRUPT", store.verify())).message, /record "pods\/a": its checksum/);
  await store.close();
  await rejectsWith("CORRUPT", runMaintenance({ name: "verify" }, place, systemClock));
  await etcd.txn({ compares: [], ops: [{ type: "delete", from: "k/pods/a" }] });
  const missing = await rejectsWith("CORRUPT", runMaintenance({ name: "verify" }, place, systemClock));
  assert.match(missing.message, /of 2 records as of revision 1, 1 are there/);
  etcd.close();
});

test("accepts only clients with a certificate of etcd's authority, and reports refusals", async (t) => {
  const files = certificates(tempDir(t));
  const secured = await startEtcd({ tls: { cert: files.cert, key: files.key, clientCa: files.ca } });
  t.after(() => secured.close());
  const openWith = (tls: object) => {
    const etcd = ETCD_SCHEMA.parse({ endpoints: [secured.endpoint], ...tls });
    const place = { dataDir: tempDir(t), store: { etcd } };
    const signal = AbortSignal.timeout(1);
    return open(t, place, false, { clock: systemClock, ...(!("cert" in tls) && { signal }) });
  };
  const store = await openWith({ ca: files.ca, cert: files.cert, key: files.key });
  await store.txn([], [put("a", "1")]);
  assert.deepEqual(await contents(store), { a: "1" });
  await store.close();
  await rejectsWith("UNAVAILABLE", openWith({ ca: files.ca }));
  assert.match(
    (await rejectsWith("UNAVAILABLE", openWith({}))).message,
    /^etcd: https:\/\/127\.0\.0\.1:\d+: .*certificate/,
  );
});

test("follows with a second coordinator, which serves when the first one is killed", async (t) => {
  const first = placeIn(tempDir(t));
  const leader = await startProgram(t, first);
  await until("the first one is ready", leader.isReady);
  const second = { ...first, dataDir: tempDir(t) };
  for (const name of ["authority", "keys"]) {
    const from = join(first.dataDir, name);
    if (existsSync(from)) cpSync(from, join(second.dataDir, name), { recursive: true });
  }
  const follower = await startProgram(t, second);
  await until("the second one follows", async () => follower.log().includes('"event":"coordinator-follows"'));
  assert.equal(await follower.leads(), false);
  await leader.end("SIGKILL");
  const killedMs = performance.now();
  await until("the second one leads", async () => (await follower.leads()) === true, TAKEOVER_MAX_MS);
  t.diagnostic(`leads after ${Math.round(performance.now() - killedMs)} ms`);
  assert.deepEqual(await follower.end("SIGTERM"), [0, null]);
});

interface Readiness {
  readonly role?: { readonly leads: boolean };
}

async function open(t: TestContext, place: StorePlace, newStore: boolean, options: OpenOptions) {
  const store = await openClusterStore(place, newStore, options);
  // A store that a failed test left open would keep the process alive.
  t.after(() => store.close());
  return store;
}

function placeIn(dataDir: string) {
  const etcd = ETCD_SCHEMA.parse({ endpoints: [server.endpoint], prefix: `/task-${++prefixes}/` });
  return { dataDir, store: { etcd } } satisfies StorePlace;
}

async function startProgram(t: TestContext, { dataDir, store }: StorePlace) {
  const dir = tempDir(t);
  const port = await freePort();
  const file = join(dir, "coordinator.yaml");
  const http = { listen: `127.0.0.1:${port}` };
  writeFileSync(file, JSON.stringify({ dataDir, store, grpc: { listen: "127.0.0.1:0" }, http }));
  let text = "";
  let ended: ChildProcess | undefined;
  let isOver = false;
  // Restarts a coordinator that ends by itself, like a service manager, for example after it lost
  // its lease on a busy machine.
  const launch = (): ChildProcess => {
    const program = spawn(process.execPath, [COORDINATOR, "--config", file], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    program.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    program.once("exit", (code) => {
      if (isOver || ended === program) return;
      t.diagnostic(`the coordinator exited with ${code}: ${text.slice(-2_000)}`);
      running = launch();
    });
    return program;
  };
  let running = launch();
  t.after(() => {
    isOver = true;
    running.kill("SIGKILL");
  });
  return {
    /** Sends the signal. Returns the exit code and the signal that ended the process. */
    end: async (signal: NodeJS.Signals): Promise<readonly unknown[]> => {
      ended = running;
      const exit = once(running, "exit");
      running.kill(signal);
      return exit;
    },
    log: () => text,
    isReady: () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    /** Returns whether it leads; undefined if it does not answer. */
    leads: (): Promise<boolean | undefined> =>
      fetch(`http://127.0.0.1:${port}/readyz`)
        .then(async (response) => ((await response.json()) as Readiness).role?.leads)
        .catch(() => undefined),
  };
}

/** Creates an authority and one certificate for etcd and its clients. */
function certificates(dir: string) {
  const [ca, caKey, cert, key] = ["ca.pem", "ca.key", "cert.pem", "key.pem"].map((name) => join(dir, name));
  mkdirSync(dir, { recursive: true });
  const openssl = (...args: readonly string[]) => execFileSync("openssl", args, { stdio: "ignore" });
  const request = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
  ];
  openssl(...request, "-subj", "/CN=etcd authority", "-keyout", caKey ?? "", "-out", ca ?? "");
  openssl(
    ...[...request, "-subj", "/CN=etcd", "-addext", "subjectAltName=IP:127.0.0.1"],
    ...["-addext", "basicConstraints=critical,CA:false", "-CA", ca ?? "", "-CAkey", caKey ?? ""],
    ...["-keyout", key ?? "", "-out", cert ?? ""],
  );
  return { ca: ca ?? "", cert: cert ?? "", key: key ?? "" };
}

function pick(result: object): object {
  const { epoch, records, movedTo }: Record<string, unknown> = { ...result };
  return { epoch, records, movedTo };
}

function plain(records: readonly { readonly value: Uint8Array }[]): object[] {
  return records.map((record) => ({ ...record, value: Buffer.from(record.value) }));
}
