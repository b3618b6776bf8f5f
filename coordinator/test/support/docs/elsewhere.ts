/** Commands or fences of the documentation that the documentation's test does not run. */
export interface Elsewhere {
  readonly matches: RegExp;
  /** The reason why the test does not run them. */
  readonly reason: string;
  /** The test that runs them, or similar ones. Absent if none does, for the reason. */
  readonly test?: string;
}

const LAB = "hack/e2e/lab.e2e.test.ts";
const PACKAGES = "hack/e2e/packages.e2e.test.ts";
const SESSIONS = "hack/e2e/sessions.e2e.test.ts";
const PROGRAM = "coordinator/test/program.test.ts";

const HOST = "it needs a host with systemd";
const CONTRIBUTOR = "it is a tool of contributors, and its folder has its tests";

export const COMMANDS_ELSEWHERE: readonly Elsewhere[] = [
  { matches: /^(?:npm |(?:sudo )?hack\/test|node (?:sim|coordinator|agent)\/)/, reason: CONTRIBUTOR },
  { matches: /^sudo hack\/(?:up|down)\b/, reason: "it installs packages", test: "hack/e2e/up.e2e.test.ts" },
  { matches: /^sudo hack\/lab /, reason: "it boots hosts", test: LAB },
  { matches: /vagrant /, reason: "it needs a hypervisor" },
  { matches: /^sudo hack\/install /, reason: HOST, test: LAB },
  { matches: /^hack\/package /, reason: "it takes a minute", test: PACKAGES },
  { matches: /apt install |apt purge |debconf-set-selections$/, reason: HOST, test: PACKAGES },
  { matches: /^(?:tar xf|sudo) forage-\*/, reason: HOST, test: PACKAGES },
  { matches: /^mkdir -p debian|apt-get install --download-only /, reason: "it needs a network" },
  { matches: /apt-get install |^mkdir |^tar -xf site\.tar /, reason: HOST, test: PACKAGES },
  { matches: /systemctl (?:start|stop|restart) forage-coordinator$/, reason: HOST, test: LAB },
  {
    matches: /forage-coordinator restore \S+ --replace /,
    reason: HOST,
    test: "coordinator/test/replace-store.test.ts",
  },
  {
    matches: /forage-coordinator (?:backup|restore|verify) /,
    reason: "it runs while the coordinator doesn't",
    test: PROGRAM,
  },
  {
    matches: /forage-coordinator migrate /,
    reason: "it needs etcd",
    test: "coordinator/test/store/etcd-tasks.test.ts",
  },
  {
    matches: /forage-coordinator join /,
    reason: "it needs etcd",
    test: "coordinator/test/join-coordinator.test.ts",
  },
  { matches: /^forage node add .* \| sh$/, reason: HOST, test: LAB },
  {
    matches: /^openssl |^sudo ch(?:own|mod) .*notifications\.key$/,
    reason: "it needs the user of the packages, and openssl",
  },
  {
    matches: /forage notification test /,
    reason: "it needs a receiver",
    test: "coordinator/test/notifications.test.ts",
  },
  { matches: /forage-agent join /, reason: HOST, test: LAB },
  { matches: /forage-agent support-bundle$/, reason: HOST, test: LAB },
  { matches: /^sudo (?:tar|find|chown|cp) .*\/var\/lib\/forage\//, reason: HOST, test: LAB },
  { matches: /^(?:scp|rm|ls|ln|curl|grpcurl|docker) /, reason: "it is a program of others" },
  { matches: /^ssh \S+ sudo (?:reboot|ctr )/, reason: HOST, test: LAB },
  { matches: /^ssh -L /, reason: "it runs until it is interrupted, and needs a host with sshd" },
  { matches: /^sudo kill -9 /, reason: "it kills programs of hack/up", test: "hack/e2e/service.e2e.test.ts" },
  {
    matches: /^prometheus |^promtool /,
    reason: "it needs Prometheus",
    test: "coordinator/test/monitoring-prometheus.test.ts",
  },
  { matches: /forage port-forward /, reason: "it runs until it is interrupted", test: SESSIONS },
  {
    matches: /forage (?:workspace )?logs .*(?:--follow| -f)\b/,
    reason: "it runs until it is interrupted",
    test: SESSIONS,
  },
  { matches: /forage exec .*-it /, reason: "it needs a terminal", test: SESSIONS },
  {
    matches: /forage ca retire$/,
    reason: "it waits until all nodes have new certificates",
    test: "coordinator/test/authority-roll.test.ts",
  },
  {
    matches: /forage workspace (?:ssh|snapshot|content (?!ls)\w+) /,
    reason: "it needs a workspace that runs",
    test: "hack/e2e/workspaces.e2e.test.ts",
  },
];

/** Fences that contain neither commands nor YAML. */
export const FENCES_ELSEWHERE: readonly Elsewhere[] = [
  { matches: /^mermaid /, reason: "a picture" },
  {
    matches: /^ docs\/reference\/cli\.md:/,
    reason: "written from the commands",
    test: "cli/test/reference.test.ts",
  },
  { matches: /^ts docs\/how-to\/add-a-/, reason: "quotes the sources", test: "hack/checks/docs.test.ts" },
  {
    matches: /^ts docs\/reference\/scheduler\.md:/,
    reason: "the API in short",
    test: "scheduler/src/fleet.test.ts",
  },
  { matches: /^text docs\/reference\/scheduler\.md:/, reason: "usage of a program" },
  {
    matches: /^text README\.md:/,
    reason: "the end of the output of hack/up",
    test: "hack/e2e/up.e2e.test.ts",
  },
  {
    matches: /^text docs\/reference\/(?:manifest|namespaces)\.md:/,
    reason: "a message",
    test: "cli/test/apply.test.ts",
  },
  {
    matches: /^http docs\/reference\/events\.md:/,
    reason: "paths of HTTP",
    test: "coordinator/test/events.test.ts",
  },
  {
    matches: /^hcl docs\/nomad\.md:/,
    reason: "a configuration and a job of Nomad",
    test: "agent/test/driver/nomad.e2e.test.ts",
  },
  {
    matches: /^ini docs\/reference\/agent\.md:/,
    reason: "a setting of systemd",
    test: "hack/installing/units.test.ts",
  },
];
