import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { type ContainerSecurity, type ContainerSpec, RuntimeError } from "../runtime.ts";
import { type RunPlace, runArguments } from "./run-arguments.ts";

const PIECES = [
  ..."-- --privileged --privileged=true -v --volume=/:/host --network=host --rm -it --pid=host --cap-add=ALL".split(
    " ",
  ),
  ...[
    "=",
    ",",
    ":",
    "\n",
    "\0",
    " ",
    "'",
    '"',
    "\\",
    "$(id)",
    "`id`",
    "%00",
    "../",
    "/",
    "host",
    "a",
    "é",
    "\u202e",
    "",
    "\t",
  ],
];

/**
 * The allowed options of nerdctl, and how often each may appear. Any other option before the first `--` would come from
 * a user.
 */
const OPTIONS =
  /^--(detach|no-healthcheck|tty|read-only|privileged|selinux-enabled|(restart|pull|name|cidfile|network|hostname|log-driver|label|env-file|env|workdir|mount|cpus|memory|memory-swap|cpu-shares|user|group-add|security-opt|cap-add|cap-drop|device|runtime|entrypoint)=.*)$/s;

const PLACE: RunPlace = {
  idFile: "/d/id",
  envFile: "/proc/1/fd/3",
  inheritedNames: [],
  labels: { "forage.dev/instance": "main" },
  knowsHealthcheck: true,
  selinux: true,
  appArmor: true,
  imageUser: "",
  terminalLogger: "/p/logger",
  streamLogger: undefined,
  ownRuntime: undefined,
};

test("no text from a user becomes an option, whatever its field", () => {
  let built = 0;
  for (let seed = 1; seed <= 3_000; seed += 1) {
    const spec = aHostileSpec(randomOf(seed).next);
    let args: readonly string[];
    try {
      args = runArguments(spec, { ...PLACE, imageUser: text(randomOf(seed + 1).next) });
    } catch (error) {
      assert.ok(error instanceof RuntimeError && !error.retryable, `seed ${seed}: ${error}`);
      continue;
    }
    built += 1;
    check(spec, args, `seed ${seed}`);
  }
  // Most fields accept only text that nerdctl accepts. The test is meaningful only if enough specs pass.
  assert.ok(built > 200, `${built} came through`);
});

function check(spec: ContainerSpec, args: readonly string[], seed: string): void {
  const [verb, ...rest] = args;
  const end = rest.indexOf("--");
  const options = rest.slice(0, end);
  assert.equal(verb, "run", seed);
  for (const option of options) assert.match(option, OPTIONS, seed);
  const count = (start: string) => options.filter((it) => it.startsWith(start)).length;
  for (const once of ["--name=", "--cidfile=", "--network=", "--log-driver=", "--restart="])
    assert.equal(count(once), 1, `${seed} ${once}`);
  assert.equal(count("--privileged"), spec.security?.privileged ? 1 : 0, seed);
  assert.equal(count("--mount="), spec.binds.length, seed);
  assert.equal(count("--device="), spec.devices?.length ?? 0, seed);
  assert.equal(count("--cap-add="), spec.security?.capabilities.add.length ?? 0, seed);
  assert.ok(options.includes("--label=forage.dev/instance=main"), seed);
  for (const mount of options.filter((it) => it.startsWith("--mount="))) {
    const fields = mount.slice("--mount=".length).split(",");
    assert.match(mount, /^--mount=type=bind,source=\/[^,]*,target=\/[^,]*(,readonly)?$/, seed);
    assert.equal(fields.length, fields.includes("readonly") ? 4 : 3, seed);
  }
  const [image = "", dashes, ...words] = rest.slice(end + 1);
  assert.equal(dashes, "--", seed);
  assert.match(image, /^[a-z0-9]/, seed);
  const [entrypoint, ...more] = spec.command;
  assert.deepEqual(words, [...more, ...spec.args], seed);
  assert.equal(count("--entrypoint="), entrypoint === undefined ? 0 : 1, seed);
}

function aHostileSpec(random: () => number): ContainerSpec {
  const maybe = <Value>(value: () => Value, otherwise: Value): Value =>
    random() < 0.15 ? value() : otherwise;
  const some = (): readonly string[] => Array.from({ length: Math.floor(random() * 4) }, () => text(random));
  return {
    name: maybe(() => text(random), "main-uid-web-1"),
    labels: { [text(random)]: text(random), "forage.dev/instance": text(random) },
    image: maybe(() => text(random), "localhost/app:1"),
    command: some(),
    args: some(),
    env: [{ name: text(random), value: text(random) }],
    workingDir: text(random),
    networkNamespace: maybe(() => text(random), "/run/netns/p1"),
    hostname: text(random),
    binds: maybe(
      () => [{ source: `/${text(random)}`, target: `/${text(random)}`, readOnly: random() < 0.5 }],
      [],
    ),
    logFile: `/logs/${text(random)}`,
    user: maybe<ContainerSpec["user"]>(() => ({ gid: 5, supplementalGroups: [6] }), undefined),
    tty: random() < 0.3,
    stdin: random() < 0.3,
    devices: maybe(
      () => [{ hostPath: `/${text(random)}`, containerPath: "/dev/x", permissions: text(random) }],
      [],
    ),
    ociRuntime: maybe<string | undefined>(() => text(random), undefined),
    security: {
      runAsNonRoot: false,
      readOnlyRootFilesystem: random() < 0.5,
      privileged: random() < 0.3,
      allowPrivilegeEscalation: true,
      capabilities: { add: maybe(() => [text(random)], ["KILL"]), drop: maybe(() => [text(random)], []) },
      seccomp: maybe<ContainerSecurity["seccomp"]>(() => ({ type: "Localhost", path: `/${text(random)}` }), {
        type: "RuntimeDefault",
      }),
      ...maybe<{ readonly seLinuxType?: string }>(() => ({ seLinuxType: text(random) }), {}),
    },
  } as ContainerSpec;
}

function text(random: () => number): string {
  return Array.from(
    { length: 1 + Math.floor(random() * 3) },
    () => PIECES[Math.floor(random() * PIECES.length)],
  ).join("");
}
