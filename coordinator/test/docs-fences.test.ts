import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commandsOf, type Fence, readFences } from "../../hack/lib/doc-fences.ts";
import { settingsInDocs } from "../../hack/lib/doc-settings.ts";
import { DocsSystem } from "./support/docs/docs-system.ts";
import { COMMANDS_ELSEWHERE, type Elsewhere, FENCES_ELSEWHERE } from "./support/docs/elsewhere.ts";

const root = join(import.meta.dirname, "../..");
/** The page that deploys the app on which other pages build. */
const FIRST = "docs/how-to/deploy-an-app.md";
/** Commands that print their findings and exit with 1 for them. */
const FINDS = /^forage (?:plan|diff|whatif|doctor|why)\b/;
/** The languages of fences that this test runs or checks. */
const RUN: ReadonlySet<string> = new Set(["sh", "console", "yaml"]);
const COMMAND_LIMIT_MS = 60_000;

const fences = readFences(root).toSorted((a, b) => Number(b.page === FIRST) - Number(a.page === FIRST));
const settings = new Set(
  (["agent.yaml", "coordinator.yaml"] as const).flatMap((file) => settingsInDocs(file).map(placeOf)),
);

const LIMIT = { timeout: 600_000 };
const TITLE = "every fence of the documentation runs, is valid, or is listed with the test that runs it";

test(TITLE, LIMIT, async (t) => {
  const system = await DocsSystem.start(t);
  const used = new Set<Elsewhere>();
  const failures: string[] = [];
  for (const fence of fences) {
    const report = (problem: string): void => void failures.push(`${placeOf(fence)}: ${problem}`);
    const isListed = (list: readonly Elsewhere[], text: string): boolean => {
      const entry = list.find(({ matches }) => matches.test(text));
      if (entry !== undefined) used.add(entry);
      return entry !== undefined;
    };
    const commands = commandsOf(fence).filter((command) => !isListed(COMMANDS_ELSEWHERE, command));
    for (const command of commands) await runCommand(system, command, report);
    if (fence.language === "yaml" && !settings.has(placeOf(fence))) await checkYaml(system, fence, report);
    if (!RUN.has(fence.language) && !isListed(FENCES_ELSEWHERE, `${fence.language} ${placeOf(fence)}`))
      report(`a fence of the language "${fence.language}" is neither run nor listed`);
  }
  assert.deepEqual(failures, []);
  const unused = [...COMMANDS_ELSEWHERE, ...FENCES_ELSEWHERE].filter((entry) => !used.has(entry));
  assert.deepEqual(
    unused.map(({ matches }) => String(matches)),
    [],
    "no page has what these entries list",
  );
});

test("names only existing tests for the listed commands", () => {
  for (const { test: path } of [...COMMANDS_ELSEWHERE, ...FENCES_ELSEWHERE])
    if (path !== undefined) assert.ok(existsSync(join(root, path)), path);
});

async function runCommand(
  system: DocsSystem,
  command: string,
  report: (problem: string) => void,
): Promise<void> {
  const stopped = /^ssh (\S+) sudo systemctl stop forage-agent$/.exec(command)?.[1];
  if (stopped !== undefined) return system.stopNode(stopped);
  const line = command.replace(/^sudo /, "").replace(/^hack\//, "");
  if (!line.startsWith("forage ")) return report(`${command}: is neither run nor listed`);
  const { exitCode, stderr } = await within(
    system.filled(line).then((filled) => system.forage(filled)),
    command,
  );
  if (exitCode === 0 || (exitCode === 1 && FINDS.test(line) && stderr === "")) return;
  report(`${command}: exit code ${exitCode}: ${stderr}`);
}

/** Checks a manifest of any kind, or a configuration of the command. */
async function checkYaml(system: DocsSystem, fence: Fence, report: (problem: string) => void): Promise<void> {
  const { text, file } = fence;
  if (/^(?:server|contexts):/m.test(text)) {
    system.write(
      "config.yaml",
      text.replaceAll(/[\w.]+:7600/g, system.address).replaceAll("~/.config/forage/", ""),
    );
    const env = { FORAGE_CONFIG: "config.yaml", FORAGE_SERVER: "", FORAGE_NAMESPACE: "" };
    const { exitCode, stderr } = await system.forage("forage get pods", env);
    if (exitCode !== 0) report(stderr);
    return;
  }
  const name = file ?? "front.yaml";
  system.write(name, completed(text));
  for (const command of ["validate", "plan"]) {
    const { exitCode, stderr } = await system.forage(`forage ${command} -f ${name}`);
    if (exitCode !== 0 && !(command === "plan" && exitCode === 1 && stderr === ""))
      report(`${command}: ${stderr}`);
  }
}

/** Returns the whole manifest for a part of one in a page. */
function completed(text: string): string {
  if (!/^pod_config:/m.test(text)) return text;
  const container = 'container: { name: web, image: "registry.example/web:1" }';
  const others = `name: db\ncontainer_service: { ${container} }\n---\nname: migrate\njob: { ${container} }\n---\n`;
  return `${others}name: web\ncontainer_service:\n  ${container}\n${text.replaceAll(/^(?=.)/gm, "  ")}`;
}

async function within<T>(work: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`${what}: took more than ${COMMAND_LIMIT_MS} ms`)),
    COMMAND_LIMIT_MS,
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function placeOf({ page, line }: Fence): string {
  return `${page}:${line}`;
}
