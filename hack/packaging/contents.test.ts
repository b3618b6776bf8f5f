import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { buildDeb } from "./build-deb.ts";
import { CONFIGURATION_OF, type ContentInputs, contentsOf, PACKAGES } from "./contents.ts";
import { controlText } from "./control.ts";
import { assertArchitecture, elfMachine } from "./elf.ts";
import { compressedEntry, fileEntry, textEntry } from "./entry.ts";
import { nativePackages } from "./native-packages.ts";
import { parsePackageFlags } from "./package-flags.ts";

const checkout = join(import.meta.dirname, "..", "..");
const nodeModules = [join(checkout, "node_modules")];
const inputs: ContentInputs = {
  ...{ checkout, nodeModules, architecture: "amd64", codeCache: true },
  ...{ node: "/bin/true", nerdctl: "/bin/true", envoy: undefined },
};
const pathsOf = (name: (typeof PACKAGES)[number], given = inputs): string[] =>
  contentsOf(name, given).map(({ path }) => path);

test("no two packages have a file of the same path, which dpkg would refuse", () => {
  const all = PACKAGES.flatMap((name) => pathsOf(name));
  assert.deepEqual(
    all.filter((path, index) => all.indexOf(path) !== index),
    [],
  );
});

test("the package of each daemon contains its unit, its command, its directories and its configuration", () => {
  for (const part of ["coordinator", "agent"] as const) {
    const paths = pathsOf(`forage-${part}`);
    for (const path of [
      `usr/lib/forage/${part}.mjs`,
      `usr/sbin/forage-${part}`,
      `usr/lib/systemd/system/forage-${part}.service`,
      `usr/lib/tmpfiles.d/forage-${part}.conf`,
      ...CONFIGURATION_OF[`forage-${part}`],
    ])
      assert.ok(paths.includes(path), path);
    assert.deepEqual(
      paths.filter((path) => path.startsWith("etc/")),
      CONFIGURATION_OF[`forage-${part}`],
    );
  }
});

test("native code is for the package's architecture only", () => {
  const native = (architecture: "amd64" | "arm64"): string[] =>
    pathsOf("forage-coordinator", { ...inputs, architecture }).filter((path) => path.endsWith(".node"));
  assert.ok(native("amd64").length > 0 && native("arm64").length > 0);
  assert.ok(native("amd64").every((path) => path.includes("/linux-x64/")));
  assert.ok(native("arm64").every((path) => path.includes("/linux-arm64/")));
  assert.deepEqual(nativePackages("@lydell/node-pty", { nodeModules, architecture: "arm64" }), [
    "@lydell/node-pty",
  ]);
});

test("compiled code of this machine's node is not in another machine's package", () => {
  assert.ok(pathsOf("forage").includes("usr/lib/forage/forage.cache"));
  assert.ok(!pathsOf("forage", { ...inputs, codeCache: false }).includes("usr/lib/forage/forage.cache"));
});

test("the agent's package depends on the programs that the agent runs", () => {
  const options = { version: "1.2", architecture: "arm64", installedBytes: 2_049 } as const;
  const text = controlText("forage-agent", options);
  for (const needed of ["containerd", "runc", "containernetworking-plugins", "nftables", "conntrack"])
    assert.match(text, new RegExp(`^Depends: .*\\b${needed}\\b`, "m"));
  assert.match(text, /^Depends: forage-runtime \(= 1\.2\),/m);
  assert.match(text, /^Installed-Size: 3$/m);
  assert.match(text, /^Architecture: arm64$/m);
});

test("packages of both architectures have the same files, and compiled ones of their own only", async (t) => {
  const [amd64, arm64] = [await unpacked(t, "amd64"), await unpacked(t, "arm64")];
  for (const [index, name] of PACKAGES.entries()) {
    assert.deepEqual(arm64[index]?.architecture, "arm64", name);
    assert.deepEqual(amd64[index]?.architecture, "amd64", name);
    assert.deepEqual(arm64[index]?.files, amd64[index]?.files, name);
  }
  // ELF's numbers of x86-64 and AArch64.
  assert.deepEqual(new Set(amd64.flatMap(({ machines }) => machines)), new Set([62]));
  assert.deepEqual(new Set(arm64.flatMap(({ machines }) => machines)), new Set([183]));
  // node, nerdctl, the store's engine and the terminal's library.
  assert.ok(arm64.flatMap(({ machines }) => machines).length >= 4);
});

test("equal content gives equal packages, whenever and in whichever directory they are built", async (t) => {
  const source = join(scratch(t), "file");
  writeFileSync(source, "content");
  const entries = [
    textEntry("usr/share/b", "b"),
    fileEntry("usr/bin/a", source, 0o755),
    compressedEntry("usr/share/doc/c", "c"),
  ];
  const build = async (time: number): Promise<string> => {
    utimesSync(source, time, time);
    const path = await buildDeb({
      ...{ name: "forage", version: "1.0", architecture: "amd64", entries, epochSeconds: 1_000_000 },
      ...{ workDir: scratch(t), outDir: scratch(t) },
    });
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  };
  assert.equal(await build(2_000_000), await build(3_000_000));
});

test("unknown flags of hack/package are refused with the valid ones", () => {
  assert.deepEqual(parsePackageFlags(["--arch", "all", "--out", "x"], "/start", "amd64"), {
    ...{ architectures: ["amd64", "arm64"], formats: ["deb", "tar"], outDir: "/start/x", version: undefined },
  });
  assert.throws(() => parsePackageFlags(["--arch", "mips"], "/", "amd64"), {
    advice: "give amd64, arm64 or all",
  });
  assert.throws(() => parsePackageFlags(["--version", "1-2; rm"], "/", "amd64"), { code: "BAD_USAGE" });
  assert.throws(() => parsePackageFlags(["--nonsense"], "/", "amd64"), { code: "BAD_USAGE" });
});

/**
 * Builds the packages from empty programs, and returns their contents. Names differ where npm's packages contain an
 * architecture.
 */
async function unpacked(t: TestContext, architecture: "amd64" | "arm64") {
  const dir = scratch(t);
  const elf = Buffer.alloc(64);
  elf.write("7f454c46020101", "hex");
  elf.writeUInt16LE(architecture === "amd64" ? 62 : 183, 18);
  writeFileSync(join(dir, "program"), elf);
  mkdirSync(join(dir, "dist"));
  symlinkSync(join(checkout, "systemd"), join(dir, "systemd"));
  const cpu = architecture === "amd64" ? "x64" : "arm64";
  const pty = join(dir, "node_modules", `@lydell/node-pty-linux-${cpu}`);
  mkdirSync(pty, { recursive: true });
  writeFileSync(join(pty, "package.json"), JSON.stringify({ cpu: [cpu] }));
  writeFileSync(join(pty, "pty.node"), elf);
  const program = join(dir, "program");
  const given: ContentInputs = {
    ...{ checkout: dir, architecture, node: program, nerdctl: program, envoy: program, codeCache: false },
    nodeModules: [join(dir, "node_modules"), ...nodeModules],
  };
  return Promise.all(
    PACKAGES.map(async (name) => {
      const entries = contentsOf(name, given);
      for (const { source } of entries)
        if (source.type === "file" && source.path.startsWith(join(dir, "dist")))
          writeFileSync(source.path, "");
      assertArchitecture(entries, architecture);
      const options = { name, version: "1.0", architecture, entries, epochSeconds: 1 };
      const path = await buildDeb({
        ...{ ...options, workDir: scratch(t), outDir: scratch(t), compressionLevel: 0 },
      });
      const root = scratch(t);
      execFileSync("dpkg-deb", ["--extract", path, root]);
      const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter((it) => it.isFile());
      const paths = found.map((it) => join(it.parentPath, it.name));
      return {
        architecture: execFileSync("dpkg-deb", ["--field", path, "Architecture"]).toString().trim(),
        machines: paths.flatMap((it) => elfMachine(readFileSync(it).subarray(0, 20)) ?? []),
        files: [...new Set(paths.map((it) => withoutArchitecture(relative(root, it))))].sort(),
      };
    }),
  );
}

function withoutArchitecture(path: string): string {
  return path.replaceAll(/linux-(x64|arm64)/g, "linux").replace(/\.(musl|armv8)\.node$/, ".node");
}

function scratch(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-packages-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}
