import { readPlan } from "./program.ts";
import { supervise } from "./supervisor.ts";

// Started by hack/up, detached. `supervise DIR` keeps the programs in DIR/plan.json running.
const [, , dir = ""] = process.argv;
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
process.on("SIGHUP", () => {});
supervise({ dir, plan: readPlan(dir), signal: stop.signal });
stop.signal.addEventListener("abort", () => process.exit(0));
