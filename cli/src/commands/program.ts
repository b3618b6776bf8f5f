import { type Command, groupCommands } from "../command/definition.ts";
import { firstWord } from "../command/parse.ts";

type Load = () => Promise<Command>;

/**
 * Loads the commands that the words could mean: the one named by the first word, or all if it names
 * none.
 */
export async function loadProgram(argv: readonly string[] = []): Promise<Command> {
  const word = firstWord(argv) ?? "";
  const loads = Object.hasOwn(commands, word) ? [commands[word]] : Object.values(commands);
  const loaded = await Promise.all(loads.map((load) => load?.()));
  const found = loaded.filter((command) => command !== undefined);
  return groupCommands("forage", "Run containers on a fleet of hosts", found);
}

/**
 * The commands. Each is loaded only when it is used, because loading all takes longer than most of
 * them run.
 */
const commands: Readonly<Record<string, Load>> = {
  run: async () => (await import("./run.ts")).run,
  apply: async () => (await import("./apply.ts")).apply,
  validate: async () => (await import("./validate.ts")).validate,
  convert: async () => (await import("./convert.ts")).convert,
  diff: async () => (await import("./diff.ts")).diff,
  plan: async () => (await import("./plan.ts")).plan,
  get: async () => (await import("./get.ts")).get,
  top: async () => (await import("./top.ts")).top,
  describe: async () => (await import("./describe.ts")).describe,
  events: async () => (await import("./events.ts")).events,
  audit: async () => (await import("./audit.ts")).audit,
  why: async () => (await import("./why.ts")).why,
  job: group("job", "Show jobs, and run cron jobs now", async () => [
    (await import("./job-ls.ts")).jobLs,
    (await import("./job-run.ts")).jobRun,
  ]),
  route: group("route", "Show routes", async () => [(await import("./route-ls.ts")).routeLs]),
  rollout: group("rollout", "Show, pause, resume and undo rollouts", async () => {
    const updates = await import("./rollout-update.ts");
    return [
      (await import("./rollout-status.ts")).rolloutStatus,
      (await import("./rollout-history.ts")).rolloutHistory,
      updates.rolloutUndo,
      updates.rolloutRestart,
      updates.rolloutPause,
      updates.rolloutResume,
      updates.rolloutPromote,
    ];
  }),
  logs: async () => (await import("./logs.ts")).logs,
  attach: async () => (await import("./attach.ts")).attach,
  exec: async () => (await import("./exec.ts")).exec,
  "port-forward": async () => (await import("./port-forward.ts")).portForward,
  cp: async () => (await import("./cp.ts")).cp,
  scale: async () => (await import("./scale.ts")).scale,
  edit: async () => (await import("./edit.ts")).edit,
  delete: async () => (await import("./delete.ts")).deleteCommand,
  secret: async () => (await import("./secret.ts")).secret,
  config: async () => (await import("./config-map.ts")).config,
  registry: async () => (await import("./registry.ts")).registry,
  claim: async () => (await import("./claim.ts")).claim,
  "priority-class": async () => (await import("./priority-class.ts")).priorityClass,
  node: group("node", "Show nodes, and manage their labels, taints and pods", async () => {
    const taints = await import("./node-taints.ts");
    return [
      (await import("./node-ls.ts")).nodeLs,
      (await import("./node-add.ts")).nodeAdd,
      taints.nodeCordon,
      taints.nodeUncordon,
      (await import("./node-drain.ts")).nodeDrain,
      taints.nodeTaint,
      taints.nodeUntaint,
      taints.nodeLabel,
      (await import("./node-remove.ts")).nodeRemove,
    ];
  }),
  image: async () => (await import("./image.ts")).image,
  bundle: group("bundle", "Pack and load archives for sites without the internet", async () => {
    const { bundleLoad, bundleVerify } = await import("./bundle-load.ts");
    return [(await import("./bundle-create.ts")).bundleCreate, bundleVerify, bundleLoad];
  }),
  whatif: async () => (await import("./what-if.ts")).whatIf,
  capacity: async () => (await import("./capacity.ts")).capacity,
  rebalance: async () => (await import("./rebalance.ts")).rebalance,
  metric: async () => (await import("./metric.ts")).metric,
  certificate: async () => (await import("./certificate.ts")).certificate,
  ca: async () => (await import("./ca.ts")).ca,
  backup: async () => (await import("./backup.ts")).backup,
  coordinator: group("coordinator", "Manage the coordinators of the cluster", async () => [
    (await import("./coordinator-ls.ts")).coordinatorLs,
    (await import("./coordinator-add.ts")).coordinatorAdd,
  ]),
  token: group("token", "Manage tokens", async () => {
    const { tokenLs, tokenRevoke } = await import("./token-ls.ts");
    return [(await import("./token-create.ts")).tokenCreate, tokenLs, tokenRevoke];
  }),
  namespace: async () => (await import("./namespace.ts")).namespace,
  workspace: group("workspace", "List, start, stop and open workspaces", async () => [
    (await import("./workspace-ls.ts")).ls,
    (await import("./workspace-start.ts")).start,
    (await import("./workspace-stop.ts")).stop,
    (await import("./workspace-logs.ts")).logs,
    (await import("./workspace-snapshot.ts")).snapshot,
    (await import("./workspace-open.ts")).open,
    (await import("./workspace-ssh.ts")).ssh,
    (await import("./workspace-content.ts")).content,
  ]),
  notification: async () => (await import("./notification.ts")).notification,
  doctor: async () => (await import("./doctor.ts")).doctor,
  "support-bundle": async () => (await import("./support-bundle.ts")).supportBundle,
  context: async () => (await import("./context.ts")).context,
  version: async () => (await import("./version.ts")).versionCommand,
  completion: async () => (await import("./completion.ts")).completionCommand(loadProgram),
  help: async () => (await import("./help.ts")).helpCommand(loadProgram),
};

function group(name: string, summary: string, load: () => Promise<readonly Command[]>): Load {
  return async () => groupCommands(name, summary, await load());
}
