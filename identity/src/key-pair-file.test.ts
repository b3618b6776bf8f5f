import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  chmod,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CertificateAuthority } from "./ca.ts";
import { loadAuthority, loadOrCreateAuthority, storeAuthority } from "./ca-file.ts";
import { createKeyAndCsr } from "./csr.ts";
import { checkKeyPair, readKeyPair, writeKeyPair } from "./key-pair-file.ts";
import { nodeId } from "./node-id.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";

const options = { nowMs: Date.now, randomBytes };

describe("key pair files", () => {
  let root: string;
  let ca: CertificateAuthority;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), "forage-identity-"));
    ca = await CertificateAuthority.create("home", options);
  });

  after(() => rm(root, { recursive: true, force: true }));

  async function aPair() {
    const { keyPem, csrPem } = await createKeyAndCsr();
    const { chainPem, serial } = await ca.issueNode(nodeId("n1"), csrPem);
    return { keyPem, chainPem, serial };
  }

  it("are read back unchanged, with the fields of the certificate", async () => {
    const path = join(root, "a", "b", "node.pem");
    const { serial, ...pair } = await aPair();
    await writeKeyPair(path, pair);
    const read = await readKeyPair(path);
    assert.equal(read.keyPem, pair.keyPem);
    assert.equal(read.chainPem, pair.chainPem);
    assert.equal(read.serial, serial);
    assert.ok(read.identity?.type === "node" && read.identity.nodeId === "n1");
    assert.equal(read.notAfterMs - read.notBeforeMs, 30 * 24 * 3_600_000 + 2 * 3_600_000);
  });

  it("are readable only for their owner, and leave no other file behind", async () => {
    const path = join(root, "modes", "node.pem");
    await writeKeyPair(path, await aPair());
    await writeFile(`${path}.new`, "left by a crash");
    await writeKeyPair(path, await aPair());
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal((await stat(join(root, "modes"))).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(join(root, "modes")), ["node.pem"]);
  });

  it("leave no descriptor open", async () => {
    const path = join(root, "descriptors", "node.pem");
    const pair = await aPair();
    await writeKeyPair(path, pair);
    for (let times = 0; times < 5; times += 1) await writeKeyPair(path, pair);
    // The process may open other files at the same time.
    const links = (await readdir("/proc/self/fd")).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ""),
    );
    const opened = (await Promise.all(links)).filter((link) => link.startsWith(dirname(path)));
    assert.deepEqual(opened, []);
  });

  it("are rejected if others can read or replace them", async () => {
    const path = join(root, "open", "node.pem");
    await writeKeyPair(path, await aPair());
    await chmod(path, 0o640);
    await assert.rejects(readKeyPair(path), { code: "FILE_UNSAFE", message: /mode 640/ });
    await chmod(path, 0o600);
    for (const mode of [0o777, 0o775, 0o757]) {
      await chmod(join(root, "open"), mode);
      await assert.rejects(readKeyPair(path), { code: "FILE_UNSAFE", message: /written by others/ });
    }
    await chmod(join(root, "open"), 0o755);
    await readKeyPair(path);
  });

  it("are rejected if they are links, directories or missing", async () => {
    const path = join(root, "node.pem");
    await writeKeyPair(path, await aPair());
    await symlink(path, join(root, "link.pem"));
    await assert.rejects(readKeyPair(join(root, "link.pem")), { code: "FILE_UNSAFE" });
    await assert.rejects(readKeyPair(root), { code: "FILE_UNSAFE" });
    await assert.rejects(readKeyPair(join(root, "none.pem")), { code: "FILE_MISSING" });
  });

  it("are rejected if key and certificate don't match, and errors contain no key", async () => {
    const path = join(root, "mixed.pem");
    const [one, two] = [await aPair(), await aPair()];
    await assert.rejects(writeKeyPair(path, { keyPem: one.keyPem, chainPem: two.chainPem }), {
      code: "PAIR_MISMATCH",
    });
    await writePrivateFile(path, one.keyPem + two.chainPem);
    await assert.rejects(readKeyPair(path), { code: "PAIR_MISMATCH" });
    const secret = one.keyPem.split("\n")[1] ?? "";
    const torn = one.keyPem.replace("A", "B").slice(0, 80);
    assert.throws(
      () => checkKeyPair({ keyPem: torn, chainPem: one.chainPem }),
      (error: Error) =>
        !JSON.stringify(error, Object.getOwnPropertyNames(error)).includes(secret.slice(0, 20)),
    );
    await writePrivateFile(path, one.keyPem);
    await assert.rejects(readKeyPair(path), { code: "CERTIFICATE_INVALID" });
  });

  it("can be checked against trusted authorities", async () => {
    const pair = await aPair();
    const other = await CertificateAuthority.create("home", options);
    checkKeyPair(pair, other.certPem + ca.certPem);
    assert.throws(() => checkKeyPair(pair, other.certPem), { code: "CERTIFICATE_INVALID" });
  });

  it("are rejected if the authority that they name has not signed them", async () => {
    const pair = await aPair();
    const [leaf = ""] = pair.chainPem.split(/(?<=-----END CERTIFICATE-----\n)/);
    const der = Buffer.from(leaf.replace(/-----[^-]+-----/g, ""), "base64");
    // The last byte belongs to the signature: issuer and key identifier are still right.
    der.writeUInt8(der.readUInt8(der.length - 1) ^ 1, der.length - 1);
    const forged = `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
    checkKeyPair(pair, ca.certPem);
    assert.throws(() => checkKeyPair({ ...pair, chainPem: forged }, ca.certPem), {
      code: "CERTIFICATE_INVALID",
    });
  });

  it("are rejected if they are far longer than keys are", async () => {
    const path = join(root, "long.pem");
    await writePrivateFile(path, "x".repeat(256 * 1024 + 1));
    await assert.rejects(readPrivateFile(path), { code: "FILE_UNSAFE" });
  });

  it("are synced to disk before they are renamed, and the directory after that", async (t) => {
    const path = join(root, "synced", "node.pem");
    await writePrivateFile(path, "old");
    const handle = await open(path);
    const prototype = Object.getPrototypeOf(handle) as { sync: () => Promise<void> };
    await handle.close();
    const contents: string[] = [];
    t.mock.method(prototype, "sync", async () => void contents.push(await readFile(path, "utf8")));
    await writePrivateFile(path, "new");
    assert.deepEqual(
      contents,
      ["old", "new"],
      "the file is synced before the rename, its directory after it",
    );
  });

  it("of an authority are made once and never overwritten", async () => {
    const path = join(root, "ca", "ca.pem");
    await assert.rejects(loadAuthority(path, options), { code: "FILE_MISSING" });
    const made = await loadOrCreateAuthority(path, "home", options);
    const again = await loadOrCreateAuthority(path, "home", options);
    assert.equal(again.pin, made.pin);
    const before = await readFile(path, "utf8");
    await assert.rejects(storeAuthority(path, ca), { code: "EEXIST" });
    assert.equal(await readFile(path, "utf8"), before);
    assert.deepEqual(await readdir(join(root, "ca")), ["ca.pem"]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });
});
