import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { readTar } from "@forage/archive";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { packOciArchive } from "../../hack/lib/oci-archive.ts";
import { aNode, aRollout } from "./builders.ts";
import { type Answers, FakeCoordinator } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

const IMAGE = "registry.example/shop/web:1";
const MANIFEST = `namespace: shop
labels: {app: web}
resources:
  - {name: web, container_service: {container: {name: main, image: "${IMAGE}"}}}
`;

let fake: FakeCoordinator;
let dir: string;
/** The pushed images: node, namespace, name and bytes. */
let pushed: [string, string, string, number][];

const forage = (...argv: readonly string[]): Promise<Result> =>
  runCommand(argv, { env: { ...fake.env, PATH: join(dir, "no-programs") } });
const at = (name: string): string => join(dir, name);

before(async () => {
  fake = await FakeCoordinator.start();
  dir = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  writeFileSync(at("web.yaml"), MANIFEST);
  for (const architecture of ["amd64", "arm64"]) anArchive(`${architecture}.tar`, IMAGE, architecture);
});
after(() => {
  fake.close();
  rmSync(dir, { recursive: true });
});
beforeEach(() => {
  pushed = [];
  fake.calls.length = 0;
  fake.answers = { pushImage: takeImage, listNodes: () => ({ nodes: [nodeOf("amd64")] }) };
});

describe("bundle create", () => {
  test("packs manifests, images of several archives and packages, and lists them with verify", async () => {
    const packages = join(dir, "packages");
    mkdirSync(packages);
    writeFileSync(join(packages, "forage_1_amd64.deb"), "a package");
    for (const name of ["site.tar", "site.tar.gz", "site.tar.zst"]) {
      const created = await forage(
        ...["bundle", "create", at(name), "-f", at("web.yaml"), "--packages", packages],
        ...["--archive", at("amd64.tar"), "--archive", at("arm64.tar")],
      );
      assert.deepEqual([created.exitCode, created.stderr], [0, `${IMAGE}: linux/amd64, linux/arm64\n`]);
      assert.match(created.stdout, /: 1 images, 1 packages, /);
      assert.equal(statSync(at(name)).mode & 0o777, 0o600);
      const { exitCode, stdout, stderr } = await forage("bundle", "verify", at(name), "-o", "json");
      assert.equal(exitCode, 0, stderr);
      const [image] = JSON.parse(stdout);
      assert.deepEqual(
        [image.name, image.architectures, image.sizeBytes],
        [IMAGE, ["amd64", "arm64"], 2 * LAYER_BYTES],
      );
      assert.deepEqual(
        stderr.split("\n").filter(Boolean),
        ["manifests.yaml", "packages/forage_1_amd64.deb"].map((path) => `also in the bundle: ${path}`),
      );
    }
  });

  test("writes a layer shared by images once, and equal bytes for equal input", async () => {
    anArchive("other.tar", "localhost/other:2", "amd64");
    const argv = ["--image", IMAGE, "--image", "localhost/other:2"];
    const archives = ["--archive", at("amd64.tar"), "--archive", at("other.tar")];
    for (const name of ["once.tar", "twice.tar"])
      assert.equal((await forage("bundle", "create", at(name), ...argv, ...archives)).exitCode, 0);
    const paths = (await entriesOf("once.tar")).map(({ path }) => path);
    assert.equal(new Set(paths).size, paths.length);
    assert.ok(statSync(at("once.tar")).size < 2 * LAYER_BYTES);
    assert.ok(readFileSync(at("once.tar")).equals(readFileSync(at("twice.tar"))));
  });

  test("refuses missing or invalid input, and leaves no file", async () => {
    const damaged = readFileSync(at("amd64.tar"));
    damaged.fill(1, LAYER_BYTES / 2, LAYER_BYTES / 2 + 1);
    writeFileSync(at("damaged.tar"), damaged);
    const digest = `sha256:${"0".repeat(64)}`;
    anArchive("digest.tar", `localhost/web@${digest}`, "amd64");
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[], /nothing to pack/],
      [["--image", "A b"], /"A b" is not the name of an image/],
      [
        ["--image", "localhost/none:1"],
        /neither a file nor an image of this machine .*docker: not installed/,
      ],
      [["--image", IMAGE, "--archive", at("none.tar")], /none\.tar can't be read: ENOENT/],
      [["--image", IMAGE, "--archive", at("web.yaml")], /web\.yaml is not a tar archive/],
      [["--image", IMAGE, "--archive", at("damaged.tar")], /layer sha256:\w{64} is damaged/],
      [
        ["--image", IMAGE, "--archive", at("amd64.tar"), "--platform", "linux/arm64"],
        /not complete for linux\/arm64/,
      ],
      [["--image", IMAGE, "--platform", "windows"], /"windows" is not a platform such as linux\/amd64/],
      [["--image", `localhost/web@${digest}`, "--archive", at("digest.tar")], /has the digest sha256:/],
      [["--image", IMAGE, "--packages", at("empty")], /empty has no packages/],
      [
        ["--image", IMAGE, "--packages", at("many"), "--packages", at("further")],
        /further: a bundle holds up to 1000 packages/,
      ],
      // The directory has the largest number of packages that a bundle holds.
      [["--image", "localhost/none:1", "--packages", at("many")], /neither a file nor an image/],
    ];
    mkdirSync(at("empty"));
    for (const [name, count] of [
      ["many", 1_000],
      ["further", 1],
    ] as const) {
      mkdirSync(at(name));
      for (let i = 0; i < count; i++) writeFileSync(join(at(name), `${name}-${i}.deb`), "");
    }
    for (const [argv, message] of cases) {
      const { exitCode, stderr } = await forage("bundle", "create", at("refused.tar"), ...argv);
      assert.deepEqual([exitCode, message.test(stderr)], [1, true], `${argv.join(" ")}: ${stderr}`);
      assert.ok(!existsSync(at("refused.tar")) && !existsSync(at("refused.tar.partial")), argv.join(" "));
    }
    const existing = await forage("bundle", "create", at("amd64.tar"), "--image", IMAGE);
    assert.match(existing.stderr, /amd64\.tar exists: name another file/);
  });

  test("warns of images for which nodes query a registry, and names omitted objects", async () => {
    anArchive("moving.tar", "docker.io/library/web:latest", "amd64");
    const kubernetes = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: hidden}}
`;
    writeFileSync(at("kubernetes.yaml"), kubernetes);
    const argv = ["-f", at("kubernetes.yaml"), "--archive", at("moving.tar")];
    const { exitCode, stderr } = await forage("bundle", "create", at("moving-site.tar"), ...argv);
    assert.equal(exitCode, 0, stderr);
    assert.match(stderr, /not in the bundle: default secret\/db; create it at the site/);
    assert.match(stderr, /warning: nodes query a registry for docker\.io\/library\/web:latest each time/);
    assert.ok(!readFileSync(at("moving-site.tar")).includes("hidden"));
    const { digest } = JSON.parse(
      (await forage("bundle", "verify", at("moving-site.tar"), "-o", "json")).stdout,
    )[0];
    writeFileSync(at("digest.yaml"), MANIFEST.replace(IMAGE, `web@${digest}`));
    const named = ["-f", at("digest.yaml"), "--archive", at("moving.tar")];
    const pinned = await forage("bundle", "create", at("digest-site.tar"), ...named);
    assert.equal(pinned.exitCode, 0, pinned.stderr);
    assert.match(
      pinned.stderr,
      /warning: nodes query a registry for docker\.io\/library\/web@sha256:\w{64} each/,
    );
  });
});

describe("bundle load", () => {
  before(async () => {
    const archives = ["--archive", at("amd64.tar")];
    const { exitCode, stderr } = await forage(
      "bundle",
      "create",
      at("load.tar"),
      "-f",
      at("web.yaml"),
      ...archives,
    );
    assert.equal(exitCode, 0, stderr);
  });

  test("sends the images for the namespace of the manifests, and then applies the manifests", async () => {
    fake.answers = { ...fake.answers, ...rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}])) };
    const { exitCode, stdout, stderr } = await forage(
      "bundle",
      "load",
      at("load.tar"),
      "--node",
      "n1",
      "--apply",
    );
    assert.equal(exitCode, 0, stderr);
    assert.deepEqual(pushed, [["n1", "shop", IMAGE, LAYER_BYTES]]);
    assert.match(stdout, /^rollout r-1 done/);
    const [request] = fake.requests("applyResources") as { namespace: string; resources: unknown[] }[];
    assert.deepEqual([request?.namespace, request?.resources.length], ["shop", 1]);
  });

  test("sends the images for all namespaces with -A to all ready nodes, and applies nothing without --apply", async () => {
    const { exitCode, stdout, stderr } = await forage(
      "bundle",
      "load",
      at("load.tar"),
      "--all",
      "-A",
      "-o",
      "name",
    );
    assert.deepEqual([exitCode, stdout], [0, `${IMAGE}\n`], stderr);
    assert.deepEqual(pushed, [["n1", "", IMAGE, LAYER_BYTES]]);
    assert.deepEqual(fake.requests("applyResources"), []);
  });

  test("sends nothing to a node of another platform", async () => {
    const argv = ["--image", IMAGE, "--archive", at("amd64.tar"), "--archive", at("arm64.tar")];
    assert.equal((await forage("bundle", "create", at("two.tar"), ...argv)).exitCode, 0);
    fake.answers = { ...fake.answers, listNodes: () => ({ nodes: [nodeOf("riscv64")] }) };
    const { exitCode, stderr } = await forage("bundle", "load", at("two.tar"), "--node", "n1", "-n", "shop");
    assert.equal(exitCode, 1);
    assert.match(stderr, /node n1 is linux\/riscv64; .* for linux\/amd64, linux\/arm64 only/);
    assert.deepEqual(pushed, []);
  });

  test("sends nothing if any part of a bundle is damaged", async () => {
    const whole = readFileSync(at("load.tar"));
    for (const { path, offsetBytes, sizeBytes } of await entriesOf("load.tar")) {
      // No other part depends on this file.
      if (path === "oci-layout") continue;
      const bytes = Buffer.from(whole);
      const middle = offsetBytes + (sizeBytes >> 1);
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
      writeFileSync(at("bad.tar"), bytes);
      const { exitCode, stderr } = await forage("bundle", "load", at("bad.tar"), "--node", "n1", "--apply");
      assert.equal(exitCode, 1, path);
      assert.match(stderr, /bad\.tar: .*(damaged|incomplete|is no|is not)/, path);
    }
    for (const bytes of [0, 100, 512, 5_000, whole.length - 1_024]) {
      writeFileSync(at("short.tar"), whole);
      truncateSync(at("short.tar"), bytes);
      const { exitCode, stderr } = await forage("bundle", "load", at("short.tar"), "--node", "n1", "--apply");
      assert.deepEqual(
        [exitCode, /short\.tar is not a tar archive, or it is incomplete/.test(stderr)],
        [1, true],
        stderr,
      );
    }
    assert.deepEqual([pushed, fake.calls], [[], []]);
  });

  test("refuses a truncated compressed bundle", async () => {
    for (const ending of ["gz", "zst"]) {
      const argv = ["--image", IMAGE, "--archive", at("amd64.tar")];
      assert.equal((await forage("bundle", "create", at(`cut.tar.${ending}`), ...argv)).exitCode, 0);
      truncateSync(at(`cut.tar.${ending}`), 200);
      const { exitCode, stderr } = await forage("bundle", "verify", at(`cut.tar.${ending}`));
      assert.equal(exitCode, 1);
      assert.match(stderr, /can't be unpacked, it is damaged or incomplete/);
    }
  });

  test("refuses other archives, and command lines without an action or with unknown objects", async () => {
    const argv = ["--image", IMAGE, "--archive", at("amd64.tar")];
    assert.equal((await forage("bundle", "create", at("images-only.tar"), ...argv)).exitCode, 0);
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[at("amd64.tar"), "--node", "n1"], /is not a site bundle/],
      [[at("load.tar")], /choose nodes for the images with --node or --all, or --apply/],
      [[at("images-only.tar"), "--apply"], /holds no manifests: leave --apply out/],
      [[at("load.tar"), "--apply", "-n", "other"], /"shop" contradicts -n other/],
    ];
    for (const [line, message] of cases) {
      const { exitCode, stderr } = await forage("bundle", "load", ...line);
      assert.deepEqual([exitCode, message.test(stderr)], [1, true], stderr);
    }
    assert.deepEqual(fake.calls, []);
  });
});

/** Smaller than the layers, but larger than all other parts of an archive. */
const LAYER_BYTES = 64 * 1024;

function anArchive(file: string, reference: string, architecture: string): void {
  const layer = Buffer.alloc(LAYER_BYTES, `layer of ${architecture}`);
  const image = { layer, entrypoint: [], cmd: [], env: [], architecture };
  writeFileSync(at(file), packOciArchive({ ...image, reference }));
}

function nodeOf(architecture: string) {
  const node = aNode({ name: "n1" });
  return { ...node, report: { ...node.report, architecture } } as typeof node;
}

/** Accepts an image like a node without any layer. */
const takeImage: NonNullable<Answers["pushImage"]> = (call) => {
  let bytes = 0;
  let start: readonly [string, string, string] = ["", "", ""];
  call.on("data", ({ frame }) => {
    if (frame?.$case === "data") bytes += frame.value.length;
    if (frame?.$case !== "start") return;
    const { image = "", namespace = "", manifest = Buffer.alloc(0) } = frame.value.options ?? {};
    start = [frame.value.node, namespace, image];
    const { layers } = JSON.parse(Buffer.from(manifest).toString()) as { layers: { digest: string }[] };
    call.write({ missingDigests: layers.map(({ digest }) => digest) });
  });
  call.on("end", () => {
    pushed.push([...start, bytes]);
    call.end();
  });
};

async function entriesOf(file: string) {
  const found: { path: string; offsetBytes: number; sizeBytes: number }[] = [];
  async function* chunks() {
    yield readFileSync(at(file));
  }
  for await (const { header, offsetBytes } of readTar(chunks()))
    found.push({ path: header.path, offsetBytes, sizeBytes: header.sizeBytes });
  return found;
}
