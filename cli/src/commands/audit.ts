import { type AuditEntry, ChainCheck } from "@forage/common/audit-chain";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { formatAge } from "../duration.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Column } from "../output/table.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const PAGE = 1_000;

/** An entry that was recorded elsewhere, and that the log must still contain. */
interface NotedEntry {
  readonly sequence: number;
  readonly hash: string;
}

export const audit = defineCommand({
  name: "audit",
  summary: "Show who made which call with which result",
  details: `The coordinator records calls that change or reveal something, and refused calls; the oldest entry comes first. Each entry holds
the hash of the one before, so that a changed or missing entry shows. --verify checks all entries and prints the last one's number
and hash as SEQUENCE:HASH: keep it elsewhere, and give it to --contains later, to show that nothing before it was replaced.
--export prints the entries as they are stored, one JSON object a line, and checks them. Both exit with 1 if the chain is broken.`,
  flags: {
    limit: {
      type: "text",
      hint: "COUNT",
      help: `the newest so many, up to ${MAX_LIMIT}; ${DEFAULT_LIMIT} by default`,
    },
    verify: { type: "switch", help: "check all entries" },
    export: { type: "switch", help: "print all entries as they are stored" },
    contains: {
      type: "text",
      hint: "SEQUENCE:HASH",
      help: "with --verify or --export: fail unless this entry is there",
    },
  },
  run: async (invocation) => {
    const { flags } = invocation;
    const context = contextOf(invocation);
    const isWhole = flags.verify || flags.export;
    if (isWhole && flags.limit !== undefined)
      throw new CliError("USAGE", "--limit is for the list: --verify and --export take all entries");
    if (!isWhole && flags.contains !== undefined)
      throw new CliError("USAGE", "--contains needs --verify or --export");
    const noted = flags.contains === undefined ? undefined : parseNoted(flags.contains);
    const limit = flags.limit === undefined ? DEFAULT_LIMIT : parseLimit(flags.limit);
    return withCoordinator(context, (coordinator) =>
      isWhole
        ? checkAll(context, coordinator, { isPrinted: flags.export === true, noted })
        : list(context, coordinator, limit),
    );
  },
});

async function list(context: Context, coordinator: Coordinator, limit: number): Promise<ExitCode> {
  const { lines } = await coordinator.call(operator.listAudit, { after: 0n, limit, newest: true });
  const check = new ChainCheck();
  const rows: AuditEntry[] = [];
  for (const line of lines) {
    const entry = check.check(line);
    if ("problem" in entry) throw broken(entry.problem);
    rows.push(entry);
  }
  printListing(context, {
    columns: columns(context.world.nowMs()),
    rows,
    json: (entry) => entry,
    name: ({ sequence }) => `audit/${sequence}`,
    none: "no calls are recorded",
  });
  return EXIT.ok;
}

async function checkAll(
  { world }: Context,
  coordinator: Coordinator,
  { isPrinted, noted }: { readonly isPrinted: boolean; readonly noted: NotedEntry | undefined },
): Promise<ExitCode> {
  const check = new ChainCheck();
  let isFound = noted === undefined;
  for (let after = 0; ; ) {
    const { lines, newestSequence } = await coordinator.call(operator.listAudit, {
      after: BigInt(after),
      limit: PAGE,
      newest: false,
    });
    for (const line of lines) {
      if (isPrinted) world.stdout.write(`${line}\n`);
      const entry = check.check(line);
      if ("problem" in entry) throw broken(entry.problem);
      if (entry.sequence === noted?.sequence && entry.hash === noted.hash) isFound = true;
      after = entry.sequence;
    }
    if (lines.length > 0 && after < Number(newestSequence)) continue;
    if (after < Number(newestSequence))
      throw broken(`entries are missing after entry ${after}: the newest one is ${newestSequence}`);
    break;
  }
  const { head, first, count } = check;
  if (!isFound && noted !== undefined) throw missing(noted, first);
  // The report must not be mixed with the exported entries.
  const out = isPrinted ? world.stderr : world.stdout;
  if (head === undefined) out.write("no calls are recorded\n");
  else
    out.write(
      `${count} entries from ${first} to ${head.sequence} form one chain; the last is ${head.sequence}:${head.hash}\n`,
    );
  return EXIT.ok;
}

function broken(problem: string): CliError {
  return new CliError("AUDIT_BROKEN", `the audit log is broken: ${problem}`);
}

function missing({ sequence, hash }: NotedEntry, first: number | undefined): CliError {
  const isOld = first !== undefined && sequence < first;
  return new CliError(
    "AUDIT_BROKEN",
    isOld
      ? `entry ${sequence} is no longer kept: the oldest one is ${first}`
      : `the audit log has no entry ${sequence} with the hash ${hash}: it was replaced`,
  );
}

function columns(nowMs: number): Column<AuditEntry>[] {
  return [
    { title: "AGE", value: ({ time }) => formatAge(nowMs - Date.parse(time)), alignRight: true },
    { title: "CALLER", value: ({ caller }) => caller || "-" },
    { title: "CALL", value: callOf },
    { title: "OBJECT", value: objectOf },
    { title: "RESULT", value: ({ event, result }) => result ?? (event === "stream-opened" ? "begun" : "-") },
    { title: "FROM", value: ({ peer }) => peer || "-" },
    { title: "MESSAGE", value: ({ message }) => message ?? "", wide: true },
  ];
}

function callOf({ event, method, count }: AuditEntry): string {
  if (method !== undefined) return method.slice(method.lastIndexOf("/") + 1);
  return count === undefined ? event : `${event} (${count})`;
}

function objectOf({ target = {} }: AuditEntry): string {
  const { namespace, kind, name, pod, resources, ...rest } = target;
  const subject = name ?? pod ?? resources ?? Object.values(rest)[0];
  const named = kind === undefined || subject === undefined ? subject : `${kind}/${subject}`;
  return [namespace, named].filter((it) => it !== undefined).join(" ") || "-";
}

function parseNoted(text: string): NotedEntry {
  const [, sequence, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (sequence === undefined || hash === undefined)
    throw new CliError("USAGE", `--contains: "${text}" is not SEQUENCE:HASH, as --verify prints it`);
  return { sequence: Number(sequence), hash };
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT)
    throw new CliError("USAGE", `--limit: "${text}" is not a number from 1 to ${MAX_LIMIT}`);
  return limit;
}
