import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { PodStatus, type ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import { packOciArchive } from "../../../../hack/lib/oci-archive.ts";
import type { RunResult } from "../../../../hack/lib/run.ts";
import { forageInProcess } from "../../../../hack/system/forage-in-process.ts";
import { CoordinatorProcess } from "../coordinator-process.ts";
import { HollowAgent } from "../hollow-agent.ts";
import { until } from "../until.ts";

/** The nodes in the pages, with their zones. */
const NODES: Readonly<Record<string, string>> = { "edge-1": "a", "edge-2": "a", n1: "b", n2: "a" };
/** The files that pages expect in the reader's directory. */
const FILES: Readonly<Record<string, string>> = { "password.txt": "hunter2" };

/** Matches names of pods as pages write them. */
const MADE_UP_POD = /\bweb-(?:5f2c|5f2c11|77d1c0)-\w{5}\b/;

/** The revision of the workload `web` before that of the pages. */
const OLD = `namespace: shop
labels: { app: web }
resources:
  - name: web
    container_service: { container: { name: web, image: "registry.example/web:1.3" } }
`;
const ROOT = join(import.meta.dirname, "../../../..");

interface ListedPod {
  readonly name: string;
  readonly workloadName: string;
  readonly createdAt: string;
  readonly stopping?: boolean;
  readonly status?: { readonly ready?: boolean };
}

/**
 * A coordinator in its own process with agents without hosts, and the directory of a reader who
 * follows the pages.
 */
export class DocsSystem {
  readonly dir: string;
  readonly #coordinator: CoordinatorProcess;
  readonly #agents = new Map<string, HollowAgent>();

  private constructor(dir: string, coordinator: CoordinatorProcess) {
    this.dir = dir;
    this.#coordinator = coordinator;
  }

  static async start(t: TestContext): Promise<DocsSystem> {
    const root = mkdtempSync(join(tmpdir(), "forage-docs-"));
    const before = process.cwd();
    t.after(() => {
      process.chdir(before);
      rmSync(root, { recursive: true, force: true });
    });
    const settings = {
      rollout: { placementDeadlineSeconds: 2, stableSeconds: 0 },
      certificates: { issuer: "self-signed" },
      services: { loadBalancerIps: ["192.0.2.200-192.0.2.219"] },
      workspaces: { enabled: true },
    };
    const coordinator = await CoordinatorProcess.start(t, root, settings);
    const dir = join(root, "reader");
    mkdirSync(dir);
    // Commands name files relative to the reader's directory.
    process.chdir(dir);
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, name), text, { mode: 0o600 });
    for (const name of ["prod", "lab", "ca"]) writeFileSync(join(dir, `${name}.crt`), coordinator.caPem);
    writeDocker(join(root, "programs"));
    writeFileSync(
      join(dir, "images.tar.gz"),
      gzipSync(packOciArchive({ reference: "shop/packed:1", ...CONTENT })),
    );
    for (const name of ["packages", "debian"]) mkdirSync(join(dir, name));
    writeFileSync(join(dir, "packages/forage_1_amd64.deb"), "a package");
    writeFileSync(join(dir, "debian/runc_1_amd64.deb"), "another one");
    const token = readFileSync(join(root, "admin-token"), "utf8");
    for (const name of ["prod.token", "lab.token", "token"])
      writeFileSync(join(dir, name), token, { mode: 0o600 });
    const system = new DocsSystem(dir, coordinator);
    for (const name of Object.keys(NODES)) await system.addNode(name);
    await system.#deploy();
    return system;
  }

  get address(): string {
    return this.#coordinator.address;
  }

  /** Runs a command line of the documentation, without the part for another shell. */
  async forage(line: string, env: Readonly<Record<string, string>> = {}, input = ""): Promise<RunResult> {
    const [command = "", output] = line.split(/ > (?=[\w.-]+$)/);
    const contexts = /\bcontext\b/.test(line) ? { FORAGE_CONFIG: join(this.dir, "contexts.yaml") } : {};
    const words = wordsOf(command).slice(1);
    const result = await forageInProcess(words, { ...this.#env(), ...contexts, ...env }, input);
    if (output !== undefined) writeFileSync(join(this.dir, output), result.stdout, { mode: 0o600 });
    return result;
  }

  async ask<T>(line: string): Promise<T> {
    const { stdout, stderr, exitCode } = await this.forage(`${line} -o json`);
    if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
    return JSON.parse(stdout);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.dir, name), text);
  }

  async addNode(name: string): Promise<void> {
    const labels = { "topology.kubernetes.io/zone": NODES[name] ?? "a" };
    const agent = await HollowAgent.start(this.#coordinator, {
      name,
      labels,
      cpu: "64",
      networks: ["192.0.2.0/24"],
    });
    agent.behaviour = (pod) => {
      const status = agent.running(pod);
      const sidecars = (pod.template?.sidecars ?? []).map((sidecar) => ({
        ...status.containers[0],
        name: sidecar.name,
      }));
      return PodStatus.fromPartial({ ...status, containers: [...status.containers, ...sidecars] });
    };
    agent.onSession = ({ sessionId, kind }) => serve(agent, sessionId, kind?.$case ?? "");
    this.#agents.set(name, agent);
  }

  /** Ends the agent of a node. */
  stopNode(name: string): void {
    this.#agents.get(name)?.close();
    this.#agents.delete(name);
  }

  /** Returns the command with existing names in place of the names that a page invents. */
  async filled(line: string): Promise<string> {
    let text = line.replace(/\bHOST:7600|\b(?:coordinator|lab)\.example\b/, this.address);
    text = text.replace(/\bIMAGE\b/, "registry.example/tried:1");
    if (/^forage node remove /.test(line)) await this.#awaitLoss(line.split(" ").at(-1) ?? "");
    else
      for (const name of Object.keys(NODES))
        if (!this.#agents.has(name) && new RegExp(`\\b${name}\\b`).test(text)) await this.addNode(name);
    if (MADE_UP_POD.test(text)) text = text.replace(MADE_UP_POD, await this.#podOf("shop", "web"));
    if (/\bhello\b.* POD\b/.test(text)) text = text.replace("POD", await this.#podOf("hello", "hello"));
    if (/\bbackup get NAME\b/.test(text)) {
      const backups = await this.ask<{ name: string }[]>("forage backup ls");
      text = text.replace("NAME", backups.at(-1)?.name ?? "none").replace("FILE", "copy.backup");
    }
    if (/\btoken revoke ID\b/.test(text)) {
      const tokens = await this.ask<{ id: string; description: string }[]>("forage token ls");
      text = text.replace("ID", tokens.find(({ description }) => /laptop/.test(description))?.id ?? "none");
    }
    return text;
  }

  /**
   * Deploys what pages assume: the example, and a credential and two revisions of a workload in the
   * namespace `shop`.
   */
  async #deploy(): Promise<void> {
    this.write("my.yaml", readFileSync(join(ROOT, "examples/hello.yaml"), "utf8"));
    this.write("old.yaml", OLD);
    const registry = "forage registry set shop-registry registry.example --username shop --password-stdin";
    for (const [line, input] of [
      ["forage apply -f my.yaml", ""],
      ["forage apply -f old.yaml", ""],
      [registry, "hunter2"],
    ] as const) {
      const { exitCode, stderr } = await this.forage(line, {}, input);
      if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
    }
  }

  async #podOf(namespace: string, workload: string): Promise<string> {
    const pods = await this.ask<ListedPod[]>(`forage get pods -n ${namespace}`);
    const serving = pods.filter((pod) => pod.workloadName === workload && !pod.stopping && pod.status?.ready);
    return serving.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt)).at(-1)?.name ?? "none";
  }

  /** Stops the agent of a node, and waits until the coordinator has detected it. */
  async #awaitLoss(name: string): Promise<void> {
    const before = await this.ask<{ name: string }[]>("forage node ls");
    if (!before.some((node) => node.name === name)) await this.addNode(name);
    this.stopNode(name);
    await until(`node ${name} is not ready`, async () => {
      const nodes = await this.ask<{ name: string; ready?: boolean }[]>("forage node ls");
      return nodes.every((node) => node.name !== name || node.ready !== true);
    });
  }

  #env(): Record<string, string> {
    return {
      FORAGE_CONFIG: "/dev/null",
      FORAGE_SERVER: this.address,
      FORAGE_CA_FILE: join(this.dir, "ca.crt"),
      FORAGE_TOKEN_FILE: join(this.dir, "../admin-token"),
      FORAGE_NAMESPACE: "shop",
      EDITOR: "true",
      PATH: `${join(this.dir, "../programs")}:${process.env.PATH}`,
    };
  }
}

/**
 * Serves a session: answers logs with a line, sends and accepts images without layers, and ends
 * commands with 0.
 */
function serve(agent: HollowAgent, sessionId: string, kind: string): void {
  const stream = agent.client.serve();
  const end = (): void => {
    stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "" } } });
    stream.end();
  };
  stream.on("error", () => {});
  stream.on("data", ({ frame }: ServeResponse) => {
    if (frame?.$case === LAST_FRAME[kind]) end();
  });
  stream.write({ frame: { $case: "sessionId", value: sessionId } });
  if (kind === "logs") stream.write({ frame: { $case: "stdout", value: Buffer.from("a line\n") } });
  if (kind === "imagePush") stream.write({ frame: { $case: "imageMissing", value: { digests: [] } } });
  if (kind === "imageRead") stream.write({ frame: { $case: "imageDescription", value: DESCRIPTION } });
  if (LAST_FRAME[kind] === undefined) end();
}

/** The frames after which image sessions end. Others end immediately. */
const LAST_FRAME: Readonly<Record<string, string>> = { imagePush: "stdinClosed", imageRead: "imageMissing" };
/** An image without files. */
const CONTENT = { layer: Buffer.alloc(1024), entrypoint: [], cmd: ["true"], env: [] };
const DESCRIPTION = { manifest: Buffer.from("{}"), config: Buffer.from("{}"), indexes: [] };

/** Writes a fake docker that saves an image without files under any name. */
function writeDocker(dir: string): void {
  const packing = JSON.stringify(join(ROOT, "hack/lib/oci-archive.ts"));
  const text = `#!${process.execPath}
import { packOciArchive } from ${packing};
const content = { ...${JSON.stringify(CONTENT)}, layer: Buffer.alloc(${CONTENT.layer.length}) };
process.stdout.write(packOciArchive({ reference: process.argv.at(-1), ...content }));
`;
  mkdirSync(dir);
  writeFileSync(join(dir, "docker"), text, { mode: 0o755 });
}

/** Splits a line like a shell, with single and double quotes. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replaceAll(/['"]/g, ""));
}
