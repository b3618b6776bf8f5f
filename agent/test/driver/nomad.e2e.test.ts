import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { findNomad, NomadUnderTest } from "../../../hack/lib/nomad.ts";
import { run } from "../../../hack/lib/run.ts";
import { startTestHost, type TestHost } from "../../../hack/lib/test-host.ts";
import { until } from "../until.ts";

const LIMIT = { timeout: 300_000 };
const MAIN = join(import.meta.dirname, "..", "..", "src", "driver", "main.ts");

interface Allocation {
  readonly ID: string;
  readonly ClientStatus: string;
  readonly TaskStates: Readonly<Record<string, { readonly Restarts: number; readonly State: string }>> | null;
}

interface Usage {
  readonly Tasks: Readonly<
    Record<
      string,
      {
        readonly Pids: Readonly<Record<string, unknown>> | null;
        readonly ResourceUsage: { readonly MemoryStats: { readonly RSS: number } };
      }
    >
  >;
}

test(
  "an unmodified Nomad loads the plugin and runs a job through a restart and a crash of its client",
  LIMIT,
  async (t) => {
    const program = findNomad();
    if (program === undefined) return t.skip("Nomad is not built here: node hack/nomad/build.ts");
    const host = await startTestHost();
    t.after(() => host.close());
    const nomad = await start(t, host, program);
    assert.match((await nomad.run(["node", "status", "-self", "-verbose"])).stdout, /forage +true +true/);
    const { ID: id } = await runJob(nomad, host);
    const containers = async () => (await host.nerdctl(["ps", "-q"])).stdout.trim();
    const container = await containers();

    await nomadAnswers(nomad, id);
    // A stop of the client ends the plugin, but after a crash the next client uses it.
    for (const how of ["SIGINT", "SIGKILL"] as const) {
      await nomad.end(how);
      assert.equal(await containers(), container);
      await nomad.launch();
      await until("the task is running", async () => (await exec(nomad, id, "true")).exitCode === 0);
      assert.equal((await exec(nomad, id, "exit 3")).exitCode, 3);
    }
    const { TaskStates: states } = (await nomad.get(`/v1/allocation/${id}`)) as Allocation;
    assert.deepEqual(states?.server?.Restarts, 0);
    assert.equal(await containers(), container);

    // A task that Nomad restarts gets a new container.
    await nomad.run(["alloc", "restart", id, "server"]);
    await until("there is another container", async () => ![container, ""].includes(await containers()));
    await nomad.run(["job", "stop", "-purge", "-detach", "web"]);
    await until("nothing is left", async () => (await host.nerdctl(["ps", "-aq"])).stdout.trim() === "");
  },
);

async function start(t: TestContext, host: TestHost, program: string): Promise<NomadUnderTest> {
  const nomad = await NomadUnderTest.start({
    ...{ host, program },
    plugins: { "forage-nomad-driver": `#!/bin/sh\nexec '${process.execPath}' '${MAIN}'\n` },
    pluginConfig: `plugin "forage-nomad-driver" {
  config {
    containerd_address = "${host.containerd.address}"
    containerd_namespace = "${host.namespace}"
    nerdctl = "${host.nerdctlPath}"
    data_dir = "${host.dir}/driver"
    run_dir = "${host.dir}/driver-run"
    extra_labels = ["job_id", "namespace"]
  }
}
`,
  });
  t.after(() => nomad.close());
  return nomad;
}

async function runJob(nomad: NomadUnderTest, host: TestHost): Promise<Allocation> {
  const file = join(host.dir, "web.nomad.hcl");
  writeFileSync(
    file,
    `job "web" {
  group "web" {
    network {
      mode = "cni/group"
    }
    task "server" {
      driver = "forage"
      config {
        image = "${host.image}"
        command = "sh"
        args = ["-c", "echo of stdout; echo of stderr >&2; ip -o addr; trap 'echo got USR1' USR1; while :; do sleep 0.2; done"]
        ulimit = { nofile = "512" }
      }
      resources {
        cpu = 50
        memory = 32
      }
    }
  }
}
`,
  );
  await nomad.run(["job", "run", "-detach", file]);
  let found: Allocation | undefined;
  await until("the allocation runs", async () => {
    const allocations = (await nomad.get("/v1/job/web/allocations")) as readonly Allocation[];
    found = allocations.find(({ ClientStatus }) => ClientStatus === "running");
    return found !== undefined;
  });
  assert.ok(found);
  return found;
}

/** Checks logs, signals, exec and statistics of the running task. */
async function nomadAnswers(nomad: NomadUnderTest, id: string): Promise<void> {
  const logs = async (...options: string[]) =>
    (await nomad.run(["alloc", "logs", ...options, id, "server"])).stdout;
  await until("stdout is collected", async () => /^of stdout\n/.test(await logs()));
  await until("stderr is collected", async () => (await logs("-stderr")) === "of stderr\n");
  // The task is in the namespace that Nomad created with CNI.
  assert.match(await logs(), /10\.77\.0\.\d+\/24/);
  await nomad.run(["alloc", "signal", "-s", "SIGUSR1", id, "server"]);
  await until("the signal arrives", async () => /got USR1/.test(await logs()));
  const { stdout, exitCode } = await exec(
    nomad,
    id,
    "cat; ulimit -n; echo $NOMAD_JOB_ID; exit 7",
    "of stdin\n",
  );
  assert.deepEqual([stdout, exitCode], ["of stdin\n512\nweb\n", 7]);
  await execOnTerminal(nomad, id);
  await until("statistics arrive", async () => {
    const { Tasks } = (await nomad.get(`/v1/client/allocation/${id}/stats`)) as Usage;
    const { Pids, ResourceUsage } = Tasks.server ?? {};
    return Object.keys(Pids ?? {}).length > 0 && (ResourceUsage?.MemoryStats.RSS ?? 0) > 0;
  });
}

function exec(nomad: NomadUnderTest, id: string, script: string, input?: string) {
  const args = [
    "alloc",
    "exec",
    "-t=false",
    `-i=${input !== undefined}`,
    "-task",
    "server",
    id,
    "sh",
    "-c",
    script,
  ];
  return nomad.run(args, true, input === undefined ? {} : { input });
}

/** Runs a command by Nomad's CLI on a terminal that `script` provides. */
async function execOnTerminal(nomad: NomadUnderTest, id: string): Promise<void> {
  const words = [
    "alloc",
    "exec",
    "-t",
    "-i",
    "-task",
    "server",
    id,
    "sh",
    "-c",
    "test -t 0 && stty size; exit 5",
  ];
  const line = ["nsenter", ...nomad.commandLine(words)].map((word) => `'${word}'`).join(" ");
  const { stdout, exitCode } = await run("script", ["-qec", `stty rows 33 cols 101; ${line}`, "/dev/null"], {
    allowFailure: true,
    env: { NOMAD_ADDR: "http://127.0.0.1:4646" },
    input: "",
  });
  assert.match(stdout, /33 101\r\n/);
  assert.equal(exitCode, 5);
}
