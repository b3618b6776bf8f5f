import assert from "node:assert/strict";
import { test } from "node:test";
import { isImageFailure, onNodes } from "./image-failure.ts";

test("names each node once, only some of many, and none of an empty list", () => {
  assert.equal(onNodes(["b", "a", "b", ""]), " (on nodes a, b)");
  assert.equal(onNodes(["a"]), " (on node a)");
  assert.equal(onNodes(["e", "d", "c", "b", "a"]), " (on nodes a, b, c and 2 more)");
  assert.equal(onNodes([""]), "");
});

test("distinguishes failures of images from other failures", () => {
  for (const reason of ["ErrImageDenied", "ImagePullBackOff", "ImagePull"]) assert.ok(isImageFailure(reason));
  for (const reason of ["CrashLoopBackOff", "", "FailedMount"]) assert.ok(!isImageFailure(reason));
});
