import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import { ConfigError } from "../config.ts";
import { hostsFile } from "./hosts-file.ts";
import { parseRegistries } from "./parse-registries.ts";
import { writeRegistries } from "./write-registries.ts";

let dir: string;
const at = (name: string): string => join(dir, name);

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "forage-registries-"));
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
  writeFileSync(at("ca.crt"), authority.certPem);
  writeFileSync(at("client.crt"), chainPem);
  writeFileSync(at("client.key"), keyPem, { mode: 0o600 });
});
after(() => rmSync(dir, { recursive: true }));

test("a registry's file lists its mirrors first, with authorities and client certificate", () => {
  const registries = parseRegistries({
    "docker.io": {
      mirrors: ["https://mirror.example:5000/", "https://harbor.example/v2/hub"],
      caFile: "/etc/forage/ca.crt",
      clientCertFile: "/etc/forage/client.crt",
      clientKeyFile: "/etc/forage/client.key",
    },
    "registry.example:5000": { caFile: "/etc/forage/ca.crt" },
  });
  const hub = registries["docker.io"];
  assert.ok(hub);
  assert.equal(
    hostsFile("docker.io", hub),
    `server = "https://registry-1.docker.io"
ca = "/etc/forage/ca.crt"
client = [["/etc/forage/client.crt", "/etc/forage/client.key"]]

[host."https://mirror.example:5000"]
capabilities = ["pull", "resolve"]
ca = "/etc/forage/ca.crt"
client = [["/etc/forage/client.crt", "/etc/forage/client.key"]]

[host."https://harbor.example/v2/hub"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "/etc/forage/ca.crt"
client = [["/etc/forage/client.crt", "/etc/forage/client.key"]]
`,
  );
  const other = registries["registry.example:5000"];
  assert.ok(other);
  assert.equal(
    hostsFile("registry.example:5000", other),
    'server = "https://registry.example:5000"\nca = "/etc/forage/ca.crt"\n',
  );
});

for (const [what, value, message] of [
  ["a list", [], /names of registries/],
  ["text that is no JSON", "docker.io", /JSON/],
  ["a URL as a name", { "https://a.example": {} }, /named like docker\.io .* "https:\/\/a\.example" is not/],
  ["another name of Docker Hub", { "index.docker.io": {} }, /named like docker\.io/],
  ["a path as a name", { "../etc": {} }, /named like docker\.io/],
  ["an unknown key", { "a.example": { mirror: [] } }, /a\.example: without "mirror"/],
  ["a mirror without TLS", { "a.example": { mirrors: ["http://b.example"] } }, /mirrors such as https:/],
  ["a mirror with a password", { "a.example": { mirrors: ["https://u:p@b.example"] } }, /without user/],
  ["a mirror that is no text", { "a.example": { mirrors: [5] } }, /mirrors such as https:/],
  ["too many mirrors", { "a.example": { mirrors: Array(11).fill("https://b.example") } }, /at most 10/],
  ["a relative file", { "a.example": { caFile: "ca.crt" } }, /caFile, an absolute path/],
  ["a certificate without a key", { "a.example": { clientCertFile: "/a" } }, /both clientCertFile and/],
] as const) {
  test(`rejects ${what}`, () => {
    assert.throws(() => parseRegistries(value), message);
  });
}

test("writes a directory for nerdctl that only the agent can read, and replaces the previous one", async () => {
  const target = at("registries");
  const files = { caFile: at("ca.crt"), clientCertFile: at("client.crt"), clientKeyFile: at("client.key") };
  const first = parseRegistries({ "docker.io": { mirrors: ["https://m.example"], ...files } });
  const dirs = await writeRegistries(target, first, noProblem);
  assert.deepEqual(dirs, [target, "/etc/containerd/certs.d", "/etc/docker/certs.d"]);
  const file = join(target, "docker.io", "hosts.toml");
  assert.deepEqual([statSync(target).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600]);
  assert.match(readFileSync(file, "utf8"), /m\.example/);
  await writeRegistries(target, parseRegistries({ "a.example:5000": {} }), noProblem);
  assert.deepEqual(
    [existsSync(file), existsSync(join(target, "a.example:5000", "hosts.toml"))],
    [false, true],
  );
  assert.equal(await writeRegistries(target, {}, noProblem), undefined);
  assert.equal(existsSync(target), false);
});

test("names the setting and the unusable file, quotes no key, and writes the other registries", async () => {
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  writeFileSync(at("other.key"), other.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  writeFileSync(at("open.key"), readFileSync(at("client.key")));
  chmodSync(at("open.key"), 0o644);
  writeFileSync(at("text"), "PRIVATE", { mode: 0o600 });
  const client = (certificate: string, key: string) => ({
    ...{ clientCertFile: at(certificate), clientKeyFile: at(key) },
  });
  for (const [access, message] of [
    [{ caFile: at("none") }, /^registries\.a\.example\.caFile: .*none can't be read: ENOENT/],
    [{ caFile: at("text") }, /^registries\.a\.example\.caFile: .*text is not in PEM format$/],
    [client("client.crt", "open.key"), /clientKeyFile: .* is readable by others: chmod 600/],
    [client("client.crt", "other.key"), /clientKeyFile: .*other\.key is not the key of .*client\.crt$/],
    [client("client.crt", "text"), /clientKeyFile: .*text is not in PEM format$/],
  ] as const) {
    const problems: unknown[] = [];
    const registries = parseRegistries({ "a.example": access, "b.example": {} });
    const note = (registry: string, problem: unknown) => problems.push([registry, problem]);
    await writeRegistries(at("registries"), registries, note);
    const [[registry, error] = []] = problems as [string, unknown][];
    assert.equal(problems.length, 1);
    assert.equal(registry, "a.example");
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /PRIVATE/);
    for (const name of ["a.example", "b.example"])
      assert.ok(existsSync(join(at("registries"), name, "hosts.toml")), name);
  }
});

test("reads bundles of authorities up to a limit", async () => {
  const bundle = (bytes: number) => {
    writeFileSync(at("bundle.crt"), readFileSync(at("ca.crt"), "utf8").padEnd(bytes, "\n"));
    const problems: string[] = [];
    const registries = parseRegistries({ "a.example": { caFile: at("bundle.crt") } });
    const note = (_: string, problem: unknown) => problems.push(`${problem}`);
    return writeRegistries(at("registries"), registries, note).then(() => problems.join());
  };
  assert.equal(await bundle(4 * 1024 * 1024), "");
  assert.match(await bundle(4 * 1024 * 1024 + 1), /is larger than 4194304 bytes/);
});

test("reports a directory that can't be written, and lets the agent start", async () => {
  writeFileSync(at("file"), "");
  const problems: string[] = [];
  const registries = parseRegistries({ "a.example": {} });
  const dirs = await writeRegistries(join(at("file"), "registries"), registries, (name) =>
    problems.push(name),
  );
  assert.ok(problems.includes("a.example"), `${problems}`);
  assert.equal(dirs?.length, 3);
});

function noProblem(registry: string, problem: unknown): never {
  throw new Error(registry, { cause: problem });
}
