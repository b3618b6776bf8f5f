import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SetupError } from "../../lib/setup-error.ts";
import { vagrantIn } from "./vagrant-program.ts";

/** Replaces Vagrant with a program that prints the lines and exits with the code. */
function fakeVagrant(t: TestContext, lines: readonly string[], exitCode: number): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-vagrant-"));
  const { PATH = "" } = process.env;
  process.env.PATH = `${dir}:${PATH}`;
  t.after(() => {
    process.env.PATH = PATH;
    rmSync(dir, { recursive: true, force: true });
  });
  const program = join(dir, "vagrant");
  writeFileSync(join(dir, "lines"), lines.join("\n"));
  writeFileSync(program, `#!/bin/sh\ncat '${dir}/lines'\nexit ${exitCode}\n`);
  chmodSync(program, 0o755);
  return dir;
}

test("a machine without a provider is rejected with advice on what to install", async (t) => {
  const dir = fakeVagrant(t, ["1,,error-exit,Vagrant::Errors::NoDefaultProvider,No usable provider"], 1);
  await assert.rejects(vagrantIn(dir, undefined)(["status", "--machine-readable"]), (error) => {
    assert.ok(error instanceof SetupError);
    assert.equal(error.code, "MISSING_TOOL");
    assert.match(error.message, /Vagrant finds no provider of virtual machines/);
    assert.match(error.advice, /vagrant-libvirt.*--kind nspawn or uml/);
    return true;
  });
});

test("the error contains Vagrant's own message", async (t) => {
  const dir = fakeVagrant(
    t,
    ["1,h1,error-exit,Vagrant::Errors::VMNotCreatedError,h1%!(VAGRANT_COMMA) is missing"],
    1,
  );
  await assert.rejects(vagrantIn(dir, undefined)(["halt", "h1"]), {
    code: "COMMAND_FAILED",
    message: "vagrant halt h1: exit code 1\nh1, is missing",
  });
});
