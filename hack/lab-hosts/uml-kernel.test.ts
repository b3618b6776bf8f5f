import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { droppedOptions, newestSource } from "./uml-kernel.ts";

test("names the options that a configuration lacks or has with another value", () => {
  const requested = '# A comment.\n\nCONFIG_NET=y\nCONFIG_NAME="-lab"\nCONFIG_CPUS=4\nCONFIG_GONE=y\n';
  const configuration = '# CONFIG_GONE is not set\nCONFIG_NET=y\nCONFIG_NAME="-lab"\nCONFIG_CPUS=2\n';
  assert.deepEqual(droppedOptions(requested, configuration), ["CONFIG_CPUS=4", "CONFIG_GONE=y"]);
});

test("the options of a lab's kernel are each named once", () => {
  const options = readFileSync(join(import.meta.dirname, "uml.config"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("CONFIG_"))
    .map((line) => line.split("=")[0]);
  assert.deepEqual(options, [...new Set(options)]);
});

test("the newest source of a kernel is the one on which linux-source depends", () => {
  assert.equal(newestSource("linux-source\n  Depends: linux-source-7.3\n"), "linux-source-7.3");
  assert.throws(() => newestSource("linux-source\n"), { code: "NOT_READY", message: /names no source/ });
});
