import assert from "node:assert/strict";
import { test } from "node:test";
import { aJobEntry } from "../../../test/support/entries.ts";
import { INDEX_KEY } from "../../model/indexed-template.ts";
import { type Job, jobOf } from "../../model/job.ts";
import type { NewPod } from "../pod-writes.ts";
import { podOfJob } from "./job-pod.ts";

function aJob(name: string): Job {
  const job = jobOf(aJobEntry({ name }).record);
  assert.ok(job !== undefined);
  return job;
}

const podOf = (name: string, index: number | undefined): NewPod =>
  podOfJob(aJob(name), index, { uid: "u", suffix: "abcde" }, undefined, "template");

test("a pod of an Indexed job has its index in its name, host name and labels", () => {
  const { name, hostname, labels, job } = podOf("count", 3);
  assert.deepEqual([name, hostname, labels[INDEX_KEY], job?.index], ["count-3-abcde", "count-3", "3", 3]);
});

test("a pod of a NonIndexed job has no index and no host name of its own", () => {
  const { name, hostname, labels, job } = podOf("count", undefined);
  assert.deepEqual(
    [name, hostname, labels[INDEX_KEY], job?.index],
    ["count-abcde", "", undefined, undefined],
  );
});

test("shortens a long job name so that the pod's name is a valid DNS label", () => {
  const name = `${"x".repeat(53)}-${"y".repeat(9)}`;
  const cut = podOf(name, 10);
  assert.equal(cut.name, `${"x".repeat(53)}-10-abcde`);
  assert.equal(cut.hostname, `${"x".repeat(53)}-${"y".repeat(6)}-10`);
  assert.equal(podOf("z".repeat(63), undefined).name, `${"z".repeat(57)}-abcde`);
});

test("pods of an Indexed job have different template hashes, pods of a NonIndexed job the same", () => {
  const hashes = [0, 1, undefined].map((index) => podOf("count", index).templateHash);
  assert.equal(new Set(hashes).size, 3);
  assert.equal(hashes[2], "template");
  assert.equal(podOf("count", 1).templateHash, hashes[1]);
});
