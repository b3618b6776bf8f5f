import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { loadImage } from "../lib/load-image.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { waitFor } from "../lib/wait-for.ts";
import type { ForageCommand } from "./forage-command.ts";
import { containerdNamespace, type Instance } from "./instance.ts";
import { lookUp } from "./look-up.ts";

export interface ExampleAnswer {
  /** The `host:port` of one of its pods. */
  readonly address: string;
  /** The expected answer. */
  readonly answer: string;
}

export interface ExampleOptions {
  readonly root: string;
  readonly instance: Instance;
  readonly forage: ForageCommand;
  readonly report: (detail: string) => void;
  readonly signal: AbortSignal;
}

export const EXAMPLE_IMAGE = "localhost/forage/hello:1";
const SERVICE_NAME = "hello.hello.svc.cluster.local:80";
// The command times out by itself with the reason. The second limit is only for a command that hangs.
const APPLY_LIMIT = "2m";
const APPLY_LIMIT_MS = 150_000;
const ANSWER_LIMIT_MS = 15_000;
// When everything runs, an answer takes milliseconds.
const STILL_THERE_LIMIT_MS = 1_500;

// As the first process, a shell handles the stop signal, which a web server would ignore.
const SERVE = `#!/bin/sh
echo "$GREETING: this is pod $(hostname)" > /www/index.html
httpd -f -p 8080 -h /www &
trap 'kill $!' TERM INT
wait
`;

/** Returns the path of the OCI archive with the example's image. */
export function exampleArchive(): Promise<string> {
  return buildBusyboxImage({
    name: EXAMPLE_IMAGE,
    files: { "/serve": { text: SERVE, mode: 0o755 }, "/www/index.html": "" },
    cmd: ["/serve"],
    env: ["GREETING=Hello"],
  });
}

/** Deploys examples/hello.yaml and requests its page. Skips the deployment if the example already answers. */
export async function deployExample(
  options: ExampleOptions,
): Promise<{ example: ExampleAnswer; digest: string }> {
  const { root, instance, forage, report, signal } = options;
  const manifest = join(root, "examples", "hello.yaml");
  const archivePath = await exampleArchive();
  const digest = createHash("sha256")
    .update(archivePath)
    .update(readFileSync(manifest))
    .digest("hex")
    .slice(0, 16);
  if (instance.example === digest) {
    const example = await askExample(instance, STILL_THERE_LIMIT_MS, signal).catch(() => undefined);
    if (example) return { example, digest };
  }
  await ensureImage(instance, archivePath, signal);
  const { exitCode, stderr } = await forage(["apply", "--file", manifest, "--timeout", APPLY_LIMIT], {
    timeoutMs: APPLY_LIMIT_MS,
    onOutput: (text) => {
      for (const line of text.split("\n").filter(Boolean)) report(line);
    },
  });
  if (exitCode !== 0) {
    throw new SetupError(
      "NOT_READY",
      `the example could not be deployed (exit code ${exitCode})\n${stderr}`,
      "hack/forage get pods --namespace hello; hack/forage node ls",
    );
  }
  return { example: await askExample(instance, ANSWER_LIMIT_MS, signal), digest };
}

async function ensureImage(instance: Instance, archivePath: string, signal: AbortSignal): Promise<void> {
  const { address } = instance.containerd;
  const namespace = containerdNamespace(instance.id);
  await loadImage({ address, namespace, archivePath, signal });
  const { stdout } = await run(
    "ctr",
    ["--address", address, "--namespace", namespace, "images", "list", "--quiet"],
    { signal },
  );
  if (stdout.split("\n").includes(EXAMPLE_IMAGE)) return;
  throw new SetupError("COMMAND_FAILED", `containerd did not take the image ${EXAMPLE_IMAGE}`, "see its log");
}

/** Looks the service up by its name, as any client would, and requests its page. */
async function askExample(instance: Instance, limitMs: number, signal: AbortSignal): Promise<ExampleAnswer> {
  let last = "no address yet";
  return waitFor(
    async () => {
      try {
        const [address] = await lookUp(instance.destination, SERVICE_NAME, signal);
        if (address === undefined) return undefined;
        const response = await fetch(`http://${address}/`, {
          signal: AbortSignal.any([signal, AbortSignal.timeout(3_000)]),
        });
        return { address, answer: (await response.text()).trim() };
      } catch (error) {
        signal.throwIfAborted();
        last = error instanceof Error ? `${error.message} ${error.cause ?? ""}` : String(error);
        return undefined;
      }
    },
    { what: `${SERVICE_NAME} answers`, limitMs, everyMs: 50, signal, explain: () => last },
  );
}
