import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { freePorts } from "../../hack/lib/free-ports.ts";
import { run } from "../../hack/lib/run.ts";
import { spawnProgram } from "../../hack/lib/spawn-program.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/monitoring");
const LIMIT = { timeout: 120_000 };
const STOP_GRACE_MS = 2_000;

/**
 * Unit tests of alerts in promtool's format: series with one sample a minute, and the alerts that
 * fire afterwards.
 */
const ALERT_TESTS = `
rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'up{job="forage-coordinator",instance="a:7601"}', values: "1 0x5" }
    alert_rule_test:
      - { eval_time: 2m, alertname: ForageCoordinatorDown }
      - eval_time: 4m
        alertname: ForageCoordinatorDown
        exp_alerts:
          - exp_labels: { severity: critical, job: forage-coordinator, instance: "a:7601" }
            exp_annotations:
              summary: The coordinator a:7601 does not answer. Pods keep running; deployments and moves wait.
              action: systemctl status forage-coordinator
  - interval: 1m
    input_series:
      - { series: 'forage_coordinator_leads{instance="a:7601"}', values: "1x3 0x5" }
      - { series: 'forage_coordinator_leads{instance="b:7601"}', values: "0x8" }
    alert_rule_test:
      - { eval_time: 4m, alertname: ForageNoLeader }
      - eval_time: 7m
        alertname: ForageNoLeader
        exp_alerts:
          - exp_labels: { severity: critical }
            exp_annotations:
              summary: No coordinator leads. Nothing is placed, moved or deployed.
              action: forage get coordinators
  - interval: 1m
    input_series:
      - { series: 'forage_nodes{instance="a:7601"}', values: "3x10" }
      - { series: 'forage_nodes_ready{instance="a:7601"}', values: "3x2 1x8" }
    alert_rule_test:
      - { eval_time: 6m, alertname: ForageNodesNotReady }
      - eval_time: 9m
        alertname: ForageNodesNotReady
        exp_alerts:
          - exp_labels: { severity: warning, instance: "a:7601" }
            exp_annotations: { summary: 2 nodes are not ready., action: forage node ls }
`;

test(
  "accepts the configurations and alert rules with promtool, and fires alerts as expected",
  LIMIT,
  async (t) => {
    const dir = examplesIn(t);
    // The password file of the example does not exist on this machine.
    const host = join(dir, "prometheus-host.yml");
    writeFileSync(host, readFileSync(host, "utf8").replace(/password_file: .*/, "password_file: /dev/null"));
    writeFileSync(join(dir, "alerts-test.yml"), ALERT_TESTS);
    await run("promtool", ["check", "config", join(dir, "prometheus.yml")]);
    await run("promtool", ["check", "config", "--agent", host]);
    await run("promtool", ["test", "rules", join(dir, "alerts-test.yml")]);
  },
);

test(
  "lets Prometheus read the coordinator by the example, and evaluate the rules without errors",
  LIMIT,
  async (t) => {
    const dir = examplesIn(t);
    const world = await startWorld(t);
    await HollowAgent.start(world);
    const config = join(dir, "prometheus.yml");
    const example = readFileSync(config, "utf8");
    const target = `127.0.0.1:${world.coordinator.http.port}`;
    writeFileSync(
      config,
      example.replace("127.0.0.1:7601", target).replaceAll(/interval: 15s/g, "interval: 1s"),
    );
    const [port = 0] = await freePorts(1);
    const flags = [
      `--config.file=${config}`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const prometheus = spawnProgram("prometheus", flags, { logPath: join(dir, "log"), env: {} });
    t.after(() => prometheus.end(STOP_GRACE_MS));
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`).catch(() => undefined);
      return response?.ok ? ((await response.json()) as { data: Answer }).data : undefined;
    };
    await until("the node is counted", async () => {
      const [sample] = (await get("query?query=forage_nodes_ready"))?.result ?? [];
      return sample?.value[1] === "1" && sample.metric.job === "forage-coordinator";
    });
    await until("all rules are evaluated", async () => {
      const rules = (await get("rules"))?.groups?.flatMap((group) => group.rules) ?? [];
      return rules.length > 20 && rules.every(({ health }) => health === "ok");
    });
  },
);

interface Answer {
  readonly result?: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [number, string];
  }[];
  readonly groups?: readonly { readonly rules: readonly { readonly health: string }[] }[];
}

/** Returns a directory with copies of the examples. */
function examplesIn(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-monitoring-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  cpSync(EXAMPLES, dir, { recursive: true });
  return dir;
}
