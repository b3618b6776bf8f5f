import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ContainerRuntime,
  type ContainerSecurity,
  type ContainerSpec,
  type PullState,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeEvent,
  type RuntimeExec,
} from "../src/runtime/runtime.ts";
import { until } from "./until.ts";

/** An implementation of the contract. All tests share it, and each uses its own containers. */
export interface RuntimeUnderTest {
  readonly runtime: ContainerRuntime;
  /** The full name of an image in the local store. */
  readonly image: string;
  /** The full name of an image that is not in the local store and can be pulled. */
  readonly pullable: string;
  /** An image that the registry doesn't have. */
  readonly unknownImage: string;
  /** Returns a spec that can be run, with a name never used before. */
  spec(command: readonly string[]): ContainerSpec;
  /** Commands for containers. */
  readonly programs: {
    readonly sleep: readonly string[];
    /** Ignores the stop signal. */
    readonly stubborn: readonly string[];
    /** Exits at once with 7. */
    readonly fail: readonly string[];
    readonly missing: readonly string[];
  };
  /** Commands for exec. */
  readonly execs: {
    /** Writes `out` and `err`, and exits with 3. */
    readonly say: readonly string[];
    /** Copies its input to its output. */
    readonly echo: readonly string[];
    readonly sleep: readonly string[];
    readonly missing: readonly string[];
  };
}

export const PLAIN_SECURITY: ContainerSecurity = {
  runAsNonRoot: false,
  readOnlyRootFilesystem: false,
  privileged: false,
  allowPrivilegeEscalation: true,
  capabilities: { add: [], drop: [] },
  seccomp: { type: "RuntimeDefault" },
};
const UNKNOWN_ID = "f".repeat(64);
// A failing test waits this long. The limit allows for busy machines.
const LIMIT_MS = 60_000;

/** Tests the behaviour on which the agent relies, for any runtime. */
export function testRuntime(name: string, open: () => RuntimeUnderTest): void {
  const check = (what: string, run: (it: RuntimeUnderTest, signal: AbortSignal) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: LIMIT_MS }, (t) => run(open(), t.signal));

  check("returns its versions", async ({ runtime }, signal) => {
    const { containerd, nerdctl } = await runtime.version(signal);
    assert.ok(containerd.length > 0 && nerdctl.length > 0);
  });

  check("a running container has a process, and an ended one has none", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    assert.ok(((await it.runtime.inspect(id, signal))?.pid ?? 0) > 0);
    await it.runtime.stop(id, 0, signal);
    assert.equal((await it.runtime.inspect(id, signal))?.pid, undefined);
    await it.runtime.remove([id], signal);
  });

  check(
    "stop resolves once the container has ended, if necessary by force, and may be repeated",
    async (it, signal) => {
      const { id } = await it.runtime.run(it.spec(it.programs.stubborn), signal);
      await it.runtime.stop(id, 50, signal);
      assert.deepEqual(await stateOf(it, id, signal), ["exited", 137]);
      await it.runtime.stop(id, 50, signal);
      await it.runtime.stop(UNKNOWN_ID, 50, signal);
      await it.runtime.stop("--help", 50, signal);
      await it.runtime.remove([id], signal);
    },
  );

  check("kill sends a signal, and rejects for a container that is not running", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.stubborn), signal);
    await rejectsWith("START_FAILED", it.runtime.kill(id, "--all", signal));
    await rejectsWith("START_FAILED", it.runtime.kill(id, "SIGNOPE", signal));
    await it.runtime.kill(id, "SIGTERM", signal);
    assert.equal((await stateOf(it, id, signal))[0], "running");
    await it.runtime.kill(id, "SIGKILL", signal);
    await until("the container has ended", async () => (await stateOf(it, id, signal))[0] === "exited");
    assert.deepEqual(await stateOf(it, id, signal), ["exited", 137]);
    for (const gone of [id, UNKNOWN_ID, "--all"])
      await rejectsWith("NOT_FOUND", it.runtime.kill(gone, "SIGTERM", signal));
    await it.runtime.remove([id], signal);
  });

  check("detailed usage agrees with usage and ends with the container", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    const usage = await it.runtime.detailedUsage(id);
    assert.ok(usage && usage.cpuNanos > 0 && usage.memoryBytes > 0);
    assert.ok(usage.userNanos + usage.systemNanos > 0 && usage.rssBytes > 0);
    assert.ok(usage.rssBytes + usage.cacheBytes <= usage.memoryBytes + (usage.kernelBytes ?? 0) + 1_000_000);
    const { pid } = (await it.runtime.inspect(id, signal)) ?? {};
    const first = usage.processes.find((process) => process.pid === pid);
    assert.ok(first && first.startTicks > 0 && first.rssBytes > 0);
    await it.runtime.stop(id, 0, signal);
    assert.equal(await it.runtime.detailedUsage(id), undefined);
    assert.equal(await it.runtime.detailedUsage(UNKNOWN_ID), undefined);
    await it.runtime.remove([id], signal);
  });

  check("remove accepts only ids", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    await it.runtime.remove(["--all"], signal);
    assert.equal((await it.runtime.inspect(id, signal))?.state, "running");
    await it.runtime.remove([id], signal);
  });

  check("a failed start gives the reason and leaves nothing behind", async (it, signal) => {
    const spec = it.spec(it.programs.missing);
    await rejectsWith("START_FAILED", it.runtime.run(spec, signal));
    assert.equal(
      (await it.runtime.list(signal)).some((found) => found.name === spec.name),
      false,
    );
    const { id } = await it.runtime.run({ ...spec, command: it.programs.sleep }, signal);
    await it.runtime.remove([id], signal);
  });

  check("run does not pull a missing image", async (it, signal) => {
    const spec = it.spec(it.programs.sleep);
    await rejectsWith(
      "IMAGE_NOT_FOUND",
      it.runtime.run({ ...spec, image: it.pullable.replace(/:[^:]*$/, ":other") }, signal),
    );
    for (const image of ["--privileged", "Not An Image", "oci-archive:///etc/passwd"]) {
      await rejectsWith("IMAGE_INVALID", it.runtime.run({ ...spec, image }, signal));
    }
  });

  check("images: here, pulled, unknown", async (it, signal) => {
    assert.equal(await it.runtime.hasImage(it.image, signal), true);
    assert.equal(await it.runtime.hasImage(it.pullable, signal), false);
    await Promise.all([it.runtime.pull(it.pullable, signal), it.runtime.pull(it.pullable, signal)]);
    assert.equal(await it.runtime.hasImage(it.pullable, signal), true);
    const images = await it.runtime.listImages(signal);
    assert.ok(images.includes(it.image) && images.includes(it.pullable));
    await rejectsWith("IMAGE_NOT_FOUND", it.runtime.pull(it.unknownImage, signal));
    await rejectsWith("IMAGE_INVALID", it.runtime.pull("-x", signal));
    await rejectsWith("IMAGE_INVALID", it.runtime.hasImage("-x", signal));
  });

  check("images: removes an image unless a container was created from it", async (it, signal) => {
    const progress: PullState[] = [];
    await it.runtime.pull(it.pullable, signal, { onProgress: (state) => progress.push(state) });
    assert.ok(progress.every(({ layersDone, layers, bytesDone }) => layersDone <= layers && bytesDone >= 0));
    const { id } = await it.runtime.run({ ...it.spec(it.programs.sleep), image: it.pullable }, signal);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "in-use");
    await it.runtime.stop(id, 0, signal);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "in-use");
    await it.runtime.remove([id], signal);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "removed");
    assert.equal(await it.runtime.hasImage(it.pullable, signal), false);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "absent");
    await rejectsWith("IMAGE_INVALID", it.runtime.removeImage("--all", signal));
    assert.equal(await it.runtime.hasImage(it.image, signal), true);
    assert.match((await it.runtime.imageStorage(signal)) ?? "/", /^\//);
  });

  check(
    "rejects an image that runs as root if that is forbidden, and a missing image",
    async (it, signal) => {
      const refuses = async (change: Partial<ContainerSpec>, message: RegExp) => {
        const run = it.runtime.run({ ...it.spec(it.programs.sleep), ...change }, signal);
        await rejectsWith("START_FAILED", run);
        await assert.rejects(run, message);
      };
      const user = (uid: number) => ({ uid, supplementalGroups: [] });
      const nonRoot = { ...PLAIN_SECURITY, runAsNonRoot: true };
      await refuses({ security: nonRoot }, /runs as root/);
      await refuses({ security: nonRoot, user: user(0) }, /run_as_user is 0/);
      await refuses({ user: user(-1) }, /whole number/);
      await refuses({ security: { ...PLAIN_SECURITY, capabilities: { add: ["NOPE"], drop: [] } } }, /NOPE/);
      const spec = { ...it.spec(it.programs.sleep), security: nonRoot, user: user(1000) };
      const { id } = await it.runtime.run(spec, signal);
      await it.runtime.remove([id], signal);
    },
  );

  check("events report a container's life cycle in order, beginning with `listening`", async (it, signal) => {
    const stop = new AbortController();
    const events = it.runtime.events(AbortSignal.any([signal, stop.signal]))[Symbol.asyncIterator]();
    assert.deepEqual((await events.next()).value, { type: "listening" });
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    assert.equal(
      await codeOf(it.runtime.exec(id, { command: it.execs.say, stdin: false, tty: false }, signal)),
      3,
    );
    await it.runtime.stop(id, 0, signal);
    await it.runtime.remove([id], signal);
    const seen: RuntimeEvent["type"][] = [];
    while (!seen.includes("removed")) {
      const { value } = await events.next();
      if (value && "containerId" in value && value.containerId === id) seen.push(value.type);
    }
    assert.deepEqual(seen, ["started", "exited", "removed"]);
    stop.abort();
    for (let next = await events.next(); !next.done; next = await events.next());
  });

  check("exec passes output, input and exit code", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    const say = it.runtime.exec(id, { command: it.execs.say, stdin: false, tty: false }, signal);
    assert.deepEqual(await outputOf(say), { stdout: "out", stderr: "err" });
    assert.equal(await say.exitCode, 3);
    await assert.rejects(say.write(Buffer.from("x")), RuntimeError);

    const echo = it.runtime.exec(id, { command: it.execs.echo, stdin: true, tty: false }, signal);
    await echo.write(Buffer.from("hello "));
    await echo.write(Buffer.from("there"));
    echo.endInput();
    assert.deepEqual(await outputOf(echo), { stdout: "hello there", stderr: "" });
    assert.equal(await echo.exitCode, 0);

    const missing = it.runtime.exec(id, { command: it.execs.missing, stdin: false, tty: false }, signal);
    assert.match((await outputOf(missing)).stderr, /not found/);
    assert.equal(await missing.exitCode, 127);
    await it.runtime.remove([id], signal);
  });

  check("an exec ends when it is cancelled or its container ends", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    const giveUp = new AbortController();
    const given = it.runtime.exec(id, { command: it.execs.sleep, stdin: false, tty: false }, giveUp.signal);
    const lost = it.runtime.exec(id, { command: it.execs.sleep, stdin: false, tty: false }, signal);
    giveUp.abort();
    await rejectsWith("ABORTED", given.exitCode);
    assert.deepEqual(await outputOf(given), { stdout: "", stderr: "" });
    await it.runtime.remove([id], signal);
    assert.notEqual(await lost.exitCode.catch(() => -1), 0);
    const late = it.runtime.exec(id, { command: it.execs.say, stdin: false, tty: false }, signal);
    await rejectsWith("NOT_FOUND", late.exitCode);
  });

  check("usage is available while the container runs", async (it, signal) => {
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    const usage = await it.runtime.usage(id);
    assert.ok(
      usage && usage.cpuNanos > 0 && usage.memoryBytes > 0 && usage.workingSetBytes <= usage.memoryBytes,
    );
    assert.equal(usage.oomKills, 0);
    assert.equal(await it.runtime.oomKills(id), 0);
    assert.equal(await it.runtime.oomKills(UNKNOWN_ID), 0);
    await it.runtime.stop(id, 0, signal);
    assert.equal(await it.runtime.usage(id), undefined);
    await it.runtime.remove([id], signal);
    assert.equal(await it.runtime.usage(id), undefined);
    assert.equal(await it.runtime.usage(UNKNOWN_ID), undefined);
  });

  check("an aborted call rejects with ABORTED", async (it) => {
    const aborted = AbortSignal.abort();
    await rejectsWith("ABORTED", it.runtime.run(it.spec(it.programs.sleep), aborted));
    await rejectsWith("ABORTED", it.runtime.list(aborted));
    await rejectsWith("ABORTED", it.runtime.pull(it.unknownImage, aborted));
    for await (const event of it.runtime.events(aborted)) assert.fail(event.type);
  });
}

/** Runs a container and waits for the event of its end. */
export async function runToEnd(
  { runtime, spec }: Pick<RuntimeUnderTest, "runtime" | "spec">,
  command: readonly string[] | ContainerSpec,
  signal: AbortSignal,
): Promise<{
  readonly id: string;
  readonly ended: Extract<RuntimeEvent, { type: "exited" }>;
  readonly oom: boolean;
}> {
  const stop = new AbortController();
  let id: string | undefined;
  let oom = false;
  try {
    for await (const event of runtime.events(AbortSignal.any([signal, stop.signal]))) {
      if (event.type === "listening")
        id = (await runtime.run("name" in command ? command : spec(command), signal)).id;
      else if (event.containerId !== id) continue;
      if (event.type === "oom") oom = true;
      if (event.type === "exited") return { id: event.containerId, ended: event, oom };
    }
  } finally {
    stop.abort();
  }
  throw new Error("the events ended before the container did");
}

export async function outputOf(exec: RuntimeExec): Promise<{ stdout: string; stderr: string }> {
  const text = { stdout: "", stderr: "" };
  for await (const { stream, data } of exec.output) text[stream] += Buffer.from(data).toString();
  return text;
}

/** Reads all output and returns the exit code. */
export async function codeOf(exec: RuntimeExec): Promise<number> {
  await outputOf(exec);
  return exec.exitCode;
}

export async function rejectsWith(code: RuntimeErrorCode, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof RuntimeError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  });
}

async function stateOf({ runtime }: RuntimeUnderTest, id: string, signal: AbortSignal) {
  const found = await runtime.inspect(id, signal);
  return [found?.state, found?.exitCode];
}
