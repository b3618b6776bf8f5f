import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testNetworkFiles } from "../../test/network-files-contract.ts";
import {
  FakeNetworkFiles,
  HostNetworkFiles,
  type NetworkFiles,
  type NetworkFilesPod,
} from "./network-files.ts";

testNetworkFiles("host", async (t) => (await aHost(t, {})).files);
testNetworkFiles("fake", async () => new FakeNetworkFiles());

const CLUSTER = { domain: "cluster.local", servers: [] };
const POD: NetworkFilesPod = { uid: "u1", namespace: "shop", hostname: "web-1" };
const MAIN = { name: "main" };

test("a container resolves its pod's name and the services' domains", async (t) => {
  const { files } = await aHost(t, { "resolv.conf": "nameserver 192.0.2.1\n" });
  const [hosts = "", resolvConf = ""] = await contentsOf(files, POD);
  assert.match(hosts, /^127\.0\.0\.1\tlocalhost$/m);
  assert.match(hosts, /^10\.64\.0\.2\tweb-1$/m);
  assert.match(resolvConf, /^nameserver 192\.0\.2\.1\nsearch shop\.svc\.cluster\.local svc\.cluster\.local /);
});

test("the files are readable for everyone, whatever the umask", async (t) => {
  const umask = process.umask(0o077);
  t.after(() => process.umask(umask));
  const { files } = await aHost(t, {});
  for (const { source } of await files.binds(POD, MAIN, ["10.64.0.2"])) {
    assert.equal((await stat(source)).mode & 0o777, 0o644);
  }
});

test("pods on the host's network get the host's files", async (t) => {
  const { files } = await aHost(t, {
    hosts: "127.0.0.1 localhost\n192.0.2.9 printer\n",
    "resolv.conf": "nameserver 127.0.0.53\nsearch lan.example\n",
  });
  const network = {
    hostNetwork: true,
    dnsPolicy: "ClusterFirst",
    nameservers: [],
    searches: [],
    options: [],
  } as const;
  const [hosts = "", resolvConf = ""] = await contentsOf(files, { ...POD, network });
  assert.match(hosts, /192\.0\.2\.9 printer/);
  assert.equal(resolvConf, "nameserver 127.0.0.53\nsearch lan.example\n");
});

test("behind a resolver on the host's loopback interface, pods use the servers behind it", async (t) => {
  const { files } = await aHost(t, {
    "resolv.conf": "nameserver 127.0.0.53\n",
    "resolved.conf": "nameserver 192.0.2.7\n",
  });
  assert.match((await contentsOf(files, POD))[1] ?? "", /^nameserver 192\.0\.2\.7$/m);
});

test("a host without these files gives pods defaults", async (t) => {
  const { files } = await aHost(t, {});
  const [hosts, resolvConf] = await contentsOf(files, POD);
  assert.match(hosts ?? "", /localhost/);
  assert.match(resolvConf ?? "", /no name server/);
});

test("a start leaves the files of an earlier run unchanged", async (t) => {
  const { files } = await aHost(t, {});
  const [first] = await files.binds(POD, MAIN, ["10.64.0.2"]);
  const before = await stat(first?.source ?? "");
  await files.binds(POD, MAIN, ["10.64.0.3"]);
  assert.notEqual((await stat(first?.source ?? "")).ino, before.ino);
});

test("rejects a uid that is a path", async (t) => {
  const { files } = await aHost(t, {});
  await assert.rejects(files.binds({ ...POD, uid: "../u2" }, MAIN, ["10.64.0.2"]), /can't be a directory/);
});

for (const [name, make] of [
  ["host", async (t: TestContext) => (await aHost(t, {})).files],
  ["fake", async () => new FakeNetworkFiles()],
] as const) {
  test(`${name}: provides both files, except where the pod mounts its own`, async (t) => {
    const files: NetworkFiles = await make(t);
    const targets = (await files.binds(POD, MAIN, ["10.64.0.2"])).map((it) => it.target);
    assert.deepEqual(targets, ["/etc/hosts", "/etc/resolv.conf"]);
    const mounts = [{ volume: "v", mountPath: "/etc/hosts", subPath: "hosts", readOnly: true }];
    const others = await files.binds(POD, { ...MAIN, mounts }, ["10.64.0.2"]);
    assert.deepEqual(
      others.map((it) => it.target),
      ["/etc/resolv.conf"],
    );
  });
}

test("a container with a read-only or limited disk can't write to its network files", async (t) => {
  const { files } = await aHost(t, {});
  const isReadOnly = async (change: Parameters<NetworkFiles["binds"]>[1]) =>
    (await files.binds(POD, change, ["10.64.0.2"])).map((it) => it.readOnly);
  assert.deepEqual(await isReadOnly(MAIN), [false, false]);
  assert.deepEqual(await isReadOnly({ ...MAIN, rootLimitBytes: 1 }), [true, true]);
});

async function aHost(t: TestContext, host: Readonly<Record<string, string>>) {
  const dir = await mkdtemp(join(tmpdir(), "forage-netfiles-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const etc = join(dir, "etc");
  await mkdir(etc);
  for (const [name, text] of Object.entries(host)) await writeFile(join(etc, name), text);
  const podsDir = join(dir, "pods");
  const resolvedConf = join(etc, "resolved.conf");
  return { files: new HostNetworkFiles({ podsDir, cluster: CLUSTER, etc, resolvedConf }) };
}

async function contentsOf(files: NetworkFiles, pod: NetworkFilesPod): Promise<readonly string[]> {
  const binds = await files.binds(pod, MAIN, ["10.64.0.2"]);
  return Promise.all(binds.map(({ source }) => readFile(source, "utf8")));
}
