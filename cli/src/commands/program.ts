import { type Command, groupCommands } from "../command/definition.ts";
import { apply } from "./apply.ts";
import { certificate } from "./certificate.ts";
import { claim } from "./claim.ts";
import { completionCommand } from "./completion.ts";
import { config } from "./config-map.ts";
import { cp } from "./cp.ts";
import { deleteCommand } from "./delete.ts";
import { describe } from "./describe.ts";
import { events } from "./events.ts";
import { exec } from "./exec.ts";
import { get } from "./get.ts";
import { helpCommand } from "./help.ts";
import { jobLs } from "./job-ls.ts";
import { jobRun } from "./job-run.ts";
import { logs } from "./logs.ts";
import { metric } from "./metric.ts";
import { nodeDrain } from "./node-drain.ts";
import { nodeForget } from "./node-forget.ts";
import { nodeLs } from "./node-ls.ts";
import { nodeCordon, nodeLabel, nodeTaint, nodeUncordon, nodeUntaint } from "./node-taints.ts";
import { plan } from "./plan.ts";
import { portForward } from "./port-forward.ts";
import { priorityClass } from "./priority-class.ts";
import { rebalance } from "./rebalance.ts";
import { registry } from "./registry.ts";
import { rolloutHistory } from "./rollout-history.ts";
import { rolloutStatus } from "./rollout-status.ts";
import {
  rolloutPause,
  rolloutPromote,
  rolloutRestart,
  rolloutResume,
  rolloutUndo,
} from "./rollout-update.ts";
import { routeLs } from "./route-ls.ts";
import { secret } from "./secret.ts";
import { tokenCreate } from "./token-create.ts";
import { validate } from "./validate.ts";
import { versionCommand } from "./version.ts";
import { why } from "./why.ts";

export const program: Command = groupCommands("forage", "Run containers on a fleet of hosts", [
  apply,
  validate,
  plan,
  get,
  describe,
  events,
  why,
  groupCommands("job", "Look at jobs, and run those of cron jobs", [jobLs, jobRun]),
  groupCommands("route", "Look at routes", [routeLs]),
  groupCommands("rollout", "Look at rollouts, hold them and go back", [
    rolloutStatus,
    rolloutHistory,
    rolloutUndo,
    rolloutRestart,
    rolloutPause,
    rolloutResume,
    rolloutPromote,
  ]),
  logs,
  exec,
  portForward,
  cp,
  deleteCommand,
  secret,
  config,
  registry,
  claim,
  priorityClass,
  groupCommands("node", "Look at nodes, and say what they may run", [
    nodeLs,
    nodeCordon,
    nodeUncordon,
    nodeDrain,
    nodeTaint,
    nodeUntaint,
    nodeLabel,
    nodeForget,
  ]),
  rebalance,
  metric,
  certificate,
  groupCommands("token", "Make tokens", [tokenCreate]),
  versionCommand,
  completionCommand(() => program),
  helpCommand(() => program),
]);
