import { parseArgs } from "node:util";

export const USAGE = `usage: node sim/main.ts [--seed N [--trace]] [--seeds COUNT] [--from N] [--stop]
       [--cpu-seconds N] [--seconds N]
       [--crash-every N | --clock-back] [--outages | --rollouts | --agents | --serving | --renewals | --coordinators]
       [--mutant NAME]

Plays histories of a fleet: the real coordinator and the real agents on simulated hosts, network, disks and time.

  --seed N       one history; prints its last lines if a rule was broken
  --trace        prints all of its lines
  --seeds N      plays N histories (default 100), from --from on (default 0)
  --cpu-seconds N  begins no history after so many seconds of processor time, except the first
  --seconds N    begins no history after so many seconds, except the first
  --stop         plays none after the first that breaks a rule
  --crash-every N  no other faults, but the coordinator dies at every Nth write: just before or just after it, from
                 the (seed mod N)th write on
  --clock-back   no other faults, but the coordinator's wall clock is set back by a day, again and again
  --outages      plays one outage of a fleet at rest in each history
  --rollouts     plays one outage of the coordinator during a rollout in each history
  --agents       plays one fault of all hosts while agents wait or write in each history
  --serving      plays one fault or two of what serves routes and load balancers in each history
  --renewals     plays renewals of a node's certificate and the port's, which fail in each history
  --coordinators  plays several coordinators over one store in etcd, which are killed, held up and cut off
  --mutant NAME  puts a fault in on purpose`;

export type HistoryFlags = ReturnType<typeof parseFlags>;

/** Parses the flags that USAGE describes. @throws TypeError */
export function parseFlags(args: readonly string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ seed: text, seeds: text, from: text, seconds: text, mutant: text },
      ...{ "cpu-seconds": text, "crash-every": text },
      ...{
        trace: flag,
        stop: flag,
        "clock-back": flag,
        outages: flag,
        rollouts: flag,
        agents: flag,
        serving: flag,
        renewals: flag,
        coordinators: flag,
        help: flag,
      },
    },
  });
  return values;
}
