import assert from "node:assert/strict";
import { test } from "node:test";
import { suggest } from "./suggest.ts";

const NAMES = ["container_service", "replicas", "image", "nodes", "pods"];

test("suggests the most similar candidate", () => {
  const cases: Record<string, string | undefined> = {
    replcas: "replicas",
    replicsa: "replicas",
    containerService: "container_service",
    "container-service": "container_service",
    imgae: "image",
    node: "nodes",
    podz: "pods",
    x: undefined,
    strategy: undefined,
    "": undefined,
  };
  for (const [written, meant] of Object.entries(cases)) assert.equal(suggest(written, NAMES), meant, written);
});
