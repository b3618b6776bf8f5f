import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import { goArchitecture } from "../lib/architecture.ts";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { commandsOf, readFences } from "../lib/doc-fences.ts";
import { buildDeb } from "../packaging/build-deb.ts";
import { buildTarball } from "../packaging/build-tarball.ts";
import { type ContentInputs, contentsOf, PACKAGES } from "../packaging/contents.ts";
import { collectDocuments, type Documents, documentEntries } from "../packaging/documents.ts";

const checkout = join(import.meta.dirname, "..", "..");
const architecture = goArchitecture();
const COMMAND_LIMIT_MS = 120_000;

test("packages install from a bundle, run, upgrade, downgrade and handle configuration and state as specified", async (t) => {
  const host = aHost(t);
  const dir = host.scratch;
  await bundlePrograms({ root: checkout, outDir: join(checkout, "dist"), programs: PROGRAMS });
  const documents = await collectDocuments(checkout);
  const first = await buildVersion(join(dir, "first"), "0.0.1", process.execPath, documents);
  // A later version for dpkg only: its programs do not run.
  const second = await buildVersion(join(dir, "second"), "0.0.2", "/bin/true", documents);
  const install = (paths: readonly string[]): void => {
    host.run("dpkg", "--install", "--refuse-downgrade", ...paths);
  };

  await installFromBundle(host, join(dir, "site"), first);
  assert.match(host.run("forage", "version").stdout, /^forage /);
  assert.match(host.run("forage-coordinator", "--help").stdout, /^usage: forage-coordinator/);
  assert.match(host.run("getent", "passwd", "forage").stdout, /^forage:/);
  assert.match(host.run("man", "--where", "forage-node-ls").stdout, /forage-node-ls\.1/);
  for (const completion of ["bash-completion/completions/forage", "zsh/vendor-completions/_forage"])
    assert.ok(existsSync(host.path(join("usr/share", completion))), completion);
  assert.ok(existsSync(host.path("usr/share/fish/vendor_completions.d/forage.fish")));
  const links = "etc/systemd/system/multi-user.target.wants";
  assert.ok(host.has(join(links, "forage-coordinator.service")));
  // The agent must not start before the host has joined a fleet.
  assert.ok(!host.has(join(links, "forage-agent.service")));

  const agentConfig = host.path("etc/forage/agent.yaml");
  writeFileSync(agentConfig, `${readFileSync(agentConfig, "utf8")}# mine\n`);
  const claim = host.path("var/lib/forage/agent/volumes/claim");
  mkdirSync(claim, { recursive: true });

  install(second);
  assert.match(readFileSync(agentConfig, "utf8"), /# mine/);
  host.run("dpkg", "--install", ...first);
  assert.match(readFileSync(agentConfig, "utf8"), /# mine/);
  assert.match(host.run("forage", "version").stdout, /^forage /);

  host.run("dpkg", "--remove", "forage-agent");
  assert.match(readFileSync(agentConfig, "utf8"), /# mine/);
  assert.ok(!existsSync(host.path("usr/lib/forage/agent.mjs")));
  host.run("dpkg", "--purge", "forage-agent");
  assert.ok(!existsSync(agentConfig));
  assert.ok(existsSync(claim), "claims' data is deleted only by an operator's order");

  install(first.filter((path) => path.includes("forage-agent_")));
  const answer = "forage-agent forage-agent/remove-state boolean true\n";
  host.run("sh", "-c", `printf '${answer.trim()}\\n' | debconf-set-selections`);
  host.run("dpkg", "--purge", "forage-agent");
  assert.ok(!existsSync(claim), "the answer true deletes the state");
});

test("the archive installs with its script, keeps configuration and removes what it has installed", async (t) => {
  const host = aHost(t);
  // The other test runs the programs. Without node the archive is packed in a fraction of the time.
  const inputs = inputsOf("/bin/true");
  const archive = await buildTarball({
    ...{ version: "0.0.1", architecture, epochSeconds: 1 },
    contents: PACKAGES.map((name) => ({ name, entries: contentsOf(name, inputs) })),
    workDir: made(join(host.scratch, "work")),
    ...{ outDir: host.scratch, compressionLevel: 1 },
  });
  host.run("tar", "--extract", "--file", archive, "--directory", "/opt");
  const script = `/opt/forage-0.0.1-linux-${architecture}/install.sh`;
  assert.equal(host.attempt(script, "nonsense").status, 2);

  host.run(script, "all");
  assert.match(host.run("cat", "/usr/bin/forage").stdout, /forage\.mjs/);
  const config = host.path("etc/forage/coordinator.yaml");
  writeFileSync(config, "mine: true\n");
  host.run(script, "all");
  host.run(script, "remove");
  assert.equal(readFileSync(config, "utf8"), "mine: true\n");
  for (const path of ["usr/lib/forage", "usr/bin/forage", "usr/lib/systemd/system/forage-agent.service"])
    assert.ok(!existsSync(host.path(path)), path);
});

/**
 * Follows the how-to of an offline site with these packages, from the packing to the check of the archive on the
 * installed host. Skips programs that need a network, and uses a stand-in for the image that docker would pull.
 */
async function installFromBundle(host: HostCopy, site: string, packages: readonly string[]): Promise<void> {
  const image = await buildBusyboxImage({ name: "registry.example/web:1.4" });
  const docker = join(made(join(site, "programs")), "docker");
  writeFileSync(docker, `#!/bin/sh\nexec cat '${image}'\n`, { mode: 0o755 });
  for (const path of packages) copyFileSync(path, join(made(join(site, "packages")), basename(path)));
  buildStandIn(join(made(join(site, "debian")), `site-tools_1_${architecture}.deb`));
  writeFileSync(join(site, "web.yaml"), WEB);
  // As on a host without any package server.
  host.run("find", "/var/lib/apt/lists", "-type", "f", "-delete");
  const fences = readFences(checkout).filter(({ page }) => page === "docs/how-to/run-an-offline-site.md");
  for (const fence of fences) {
    const commands = commandsOf(fence).filter((command) => !NOT_OFFLINE.test(command));
    const script = ["set -e", `cd ${site}`, ...commands].join("\n").replaceAll("sudo ", "");
    if (commands.some((command) => command.startsWith("forage bundle create ")))
      must("sh", ["-c", script], {
        PATH: `${dirname(docker)}:${join(checkout, "hack")}:${process.env.PATH}`,
        FORAGE_CONFIG: "/dev/null",
      });
    else host.run("sh", "-c", script);
  }
}

/** Commands that need a network, or a running coordinator. */
const NOT_OFFLINE =
  /^hack\/package |^mkdir -p debian\/|^sudo apt-get .*--download-only|^docker |^forage (?:bundle load|get) /;

/** Builds a Debian package that replaces the how-to's downloads. */
function buildStandIn(path: string): void {
  const tree = `${path}.tree`;
  const fields = [
    ["Package", "site-tools"],
    ["Version", "1"],
    ["Architecture", architecture],
    ["Maintainer", "Forage contributors <forage@localhost>"],
    ["Description", "a package of Debian"],
  ];
  const control = fields.map(([name, value]) => `${name}: ${value}\n`).join("");
  writeFileSync(join(made(join(tree, "DEBIAN")), "control"), control);
  must("dpkg-deb", ["--root-owner-group", "--build", tree, path]);
  rmSync(tree, { recursive: true });
}

const WEB = `namespace: shop
resources:
  - name: web
    container_service: { container: { name: web, image: "registry.example/web:1.4" } }
`;

interface HostCopy {
  /** A directory with the same path on the host and in the copy. */
  readonly scratch: string;
  readonly path: (path: string) => string;
  readonly has: (path: string) => boolean;
  readonly attempt: (
    file: string,
    ...args: readonly string[]
  ) => { stdout: string; stderr: string; status: number };
  readonly run: (file: string, ...args: readonly string[]) => { stdout: string };
}

/** Returns a writable copy of this host's file system, in which nothing runs and systemd is not active. */
function aHost(t: TestContext): HostCopy {
  const scratch = mkdtempSync(join(tmpdir(), "forage-host-"));
  const mounts: string[] = [];
  const mount = (target: string, ...args: readonly string[]): void => {
    must("mount", [...args, made(target)]);
    mounts.unshift(target);
  };
  t.after(() => {
    for (const target of mounts) spawnSync("umount", ["--lazy", target]);
    rmSync(scratch, { recursive: true, force: true });
  });
  const base = join(scratch, "base");
  mount(base, "-t", "tmpfs", "-o", "size=2g", "tmpfs");
  const root = join(base, "root");
  const layers = `lowerdir=/,upperdir=${made(join(base, "upper"))},workdir=${made(join(base, "work"))}`;
  mount(root, "-t", "overlay", "-o", layers, "overlay");
  // Otherwise dpkg indexes all manual pages of this machine, which takes seconds.
  rmSync(join(root, "var/lib/man-db/auto-update"), { force: true });
  mount(join(root, "proc"), "-t", "proc", "proc");
  mount(join(root, "dev"), "--bind", "/dev");
  mount(join(root, "run"), "-t", "tmpfs", "tmpfs");
  const shared = made(join(scratch, "shared"));
  mount(join(root, shared), "--bind", shared);
  const attempt: HostCopy["attempt"] = (file, ...args) => {
    const { stdout, stderr, status, error } = spawnSync("chroot", [root, file, ...args], {
      encoding: "utf8",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" },
      timeout: COMMAND_LIMIT_MS,
    });
    if (error !== undefined) throw error;
    return { stdout, stderr, status: status ?? -1 };
  };
  return {
    scratch: shared,
    path: (path) => join(root, path),
    // Links lead to paths of the copy.
    has: (path) => attempt("test", "-e", `/${path}`).status === 0,
    attempt,
    run: (file, ...args) => {
      const result = attempt(file, ...args);
      assert.equal(result.status, 0, `${file} ${args.join(" ")}\n${result.stdout}\n${result.stderr}`);
      return result;
    },
  };
}

async function buildVersion(
  dir: string,
  version: string,
  node: string,
  documents: Documents,
): Promise<string[]> {
  const inputs = inputsOf(node);
  const built: string[] = [];
  for (const name of PACKAGES) {
    const entries = [...contentsOf(name, inputs), ...documentEntries(name, checkout, documents)];
    const workDir = made(join(dir, name));
    const options = { name, version, architecture, entries, workDir, outDir: dir, epochSeconds: 1 };
    built.push(await buildDeb({ ...options, compressionLevel: 0 }));
    rmSync(workDir, { recursive: true });
  }
  return built;
}

function inputsOf(node: string): ContentInputs {
  const nodeModules = [join(checkout, "node_modules")];
  return {
    checkout,
    architecture,
    node,
    nerdctl: "/bin/true",
    envoy: undefined,
    nodeModules,
    codeCache: true,
  };
}

function made(dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  return dir;
}

function must(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): void {
  const options = { encoding: "utf8", env: { ...process.env, ...env }, timeout: COMMAND_LIMIT_MS } as const;
  const { status, stderr } = spawnSync(file, args, options);
  assert.equal(status, 0, `${file} ${args.join(" ")}: ${stderr}`);
}
