import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { BundleFile } from "@forage/archive";
import { messageOf } from "@forage/common/message-of";
import { scrubText } from "@forage/common/scrub-text";
import manifest from "../../package.json" with { type: "json" };
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { examineAll } from "./doctor.ts";

/** The size limit of a bundle, above the coordinator's own limit. */
const MAX_BYTES = 256 * 1024 * 1024;
const ENDING = new Set(["INTERRUPTED", "TIMED_OUT"]);

export const supportBundle = defineCommand({
  name: "support-bundle",
  summary: "Write an archive with what an engineer needs to find a fault, without secrets",
  details: `FILE is forage-support-TIME.tar.gz in the current directory by default, is readable by its owner only, and must not exist.
The archive holds versions, configuration, resources, pods, nodes, events, the end of the audit log, metrics, newest log lines of coordinator
and agents, findings of forage-agent check, and explanations of what is unhealthy. Values of secrets, environment variables and config maps,
arguments, annotations and tokens are left out. contents.json in it names what is missing and why. The exit code is 1 if the coordinator does
not answer; forage-agent support-bundle then collects what is on a host.`,
  operands: [{ name: "FILE", required: false, help: "where to write it" }],
  flags: {
    node: {
      type: "list",
      hint: "NODE",
      help: "ask the agent of this node, up to 50; default: 20 nodes, those with problems first",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { world } = context;
    const name = `forage-support-${new Date(world.nowMs()).toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
    const path = resolve(invocation.operands[0] ?? `${name}.tar.gz`);
    const bundle = await create(path, name, world.nowMs());
    try {
      const failure = await collect(bundle, context, invocation.flags.node);
      const bytes = await bundle.finish();
      world.stdout.write(`${path}: ${bytes} bytes\n`);
      for (const { path: missing, problem } of bundle.problems)
        world.stderr.write(`not complete: ${missing}: ${problem}\n`);
      return failure ? EXIT.failed : EXIT.ok;
    } catch (error) {
      await bundle.discard();
      throw error;
    }
  },
});

async function create(path: string, name: string, nowMs: number): Promise<BundleFile> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new CliError("USAGE", `${path} exists: name another file`);
  try {
    return await BundleFile.create(path, { name, nowMs });
  } catch (cause) {
    throw new CliError("USAGE", `${path}.partial can't be created: ${messageOf(cause)}`, { cause });
  }
}

/** Collects all parts. Reports whether the coordinator's part is missing. */
async function collect(bundle: BundleFile, context: Context, nodes: readonly string[]): Promise<boolean> {
  const { world } = context;
  await add(bundle, "client/about.json", async () => ({
    version: manifest.version,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    madeAt: new Date(world.nowMs()).toISOString(),
  }));
  await add(bundle, "client/doctor.json", () => examineAll(context, { hosts: true }));
  try {
    await collectFromCoordinator(bundle, context, nodes);
    return false;
  } catch (error) {
    // A wrong node name is an error of the command line, not a fault of the cluster.
    if (!(error instanceof CliError) || ENDING.has(error.code) || error.code === "NOT_FOUND") throw error;
    await bundle.add("coordinator", Buffer.alloc(0), scrubText(error.message));
    return true;
  }
}

async function add(bundle: BundleFile, path: string, read: () => Promise<unknown>): Promise<void> {
  try {
    const text = `${JSON.stringify(await read(), undefined, 2)}\n`;
    await bundle.add(path, Buffer.from(scrubText(text)));
  } catch (error) {
    if (error instanceof CliError && ENDING.has(error.code)) throw error;
    await bundle.add(path, Buffer.alloc(0), scrubText(messageOf(error)));
  }
}

/** Writes the coordinator's files. Consecutive messages with the same path form one file. */
async function collectFromCoordinator(
  bundle: BundleFile,
  context: Context,
  nodes: readonly string[],
): Promise<void> {
  let open: { readonly path: string; readonly chunks: Uint8Array[]; problem: string } | undefined;
  let bytes = 0;
  const end = async (): Promise<void> => {
    if (open !== undefined) await bundle.add(open.path, Buffer.concat(open.chunks), open.problem);
    open = undefined;
  };
  try {
    await withCoordinator(context, async (coordinator) => {
      for await (const part of coordinator.stream(operator.getSupportBundle, { nodes: [...nodes] })) {
        bytes += part.content.length;
        if (bytes > MAX_BYTES)
          throw new CliError("REFUSED", `the coordinator sends more than ${MAX_BYTES} bytes`);
        if (open?.path !== part.path) await end();
        open ??= { path: part.path, chunks: [], problem: "" };
        open.chunks.push(part.content);
        open.problem ||= part.problem;
      }
    });
  } finally {
    // Files that were complete before a failure are kept.
    await end();
  }
}
