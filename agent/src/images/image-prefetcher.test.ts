import assert from "node:assert/strict";
import { test } from "node:test";
import { ImagePrefetches, type ImagePull } from "@forage/proto/forage/agent/v1/agent";
import type { ImageUser } from "../pods/image-store.ts";
import type { ImageState, PullPolicy } from "../pods/pod.ts";
import { ImagePrefetcher, type PullSink } from "./image-prefetcher.ts";

test("pulls a requested image like a pod, and reports progress until it is present", async () => {
  const { prefetcher, fetched, become, reports, sink } = some();
  const login = { name: "r", server: "r.test", username: "u", password: "p" };
  const asked = { id: "a", namespace: "shop", image: "app:2", registryCredentials: [login] };
  prefetcher.ask(ImagePrefetches.fromPartial({ images: [asked] }), sink);
  assert.deepEqual(fetched, ["app:2 IfNotPresent shop u"]);
  assert.deepEqual(prefetcher.desired(), ["app:2"]);
  await become("app:2", { type: "fetching", pulling: true, progress: "1 of 3 layers" });
  await become("app:2", { type: "present" });
  await become("app:2", { type: "present" });
  assert.deepEqual(reports, ["a: pulling", "a: pulling 1 of 3 layers", "a: present"]);
});

test("reports a failed pull with its reason, and retries it when it is due", async () => {
  const { prefetcher, fetched, become, reports, sink, clock } = some();
  prefetcher.ask(ImagePrefetches.fromPartial({ images: [{ id: "a", image: "app:2" }] }), sink);
  const failed = { type: "failed", reason: "ImagePullBackOff", message: "refused" } as const;
  await become("app:2", { ...failed, retryAtMs: 5_000, notBeforeMs: 5_000 });
  assert.equal(fetched.length, 1);
  clock.ms = 5_000;
  clock.fire();
  assert.equal(fetched.length, 2);
  assert.deepEqual(reports, ["a: pulling", "a: ImagePullBackOff refused"]);
});

test("a repeated request repeats the report, and queries a moving tag's registry only once", async () => {
  const { prefetcher, become, reports, sink, sinceMs, clock } = some();
  const asked = ImagePrefetches.fromPartial({ images: [{ id: "a", image: "app" }] });
  prefetcher.ask(asked, sink);
  await become("app", { type: "present" });
  clock.ms = 60_000;
  prefetcher.ask(asked, sink);
  assert.deepEqual(reports, ["a: pulling", "a: present", "a: present"]);
  assert.deepEqual(new Set(sinceMs), new Set([0]));
});

test("drops requests and retries when the connection ends", async () => {
  const { prefetcher, fetched, become, reports, sink, clock } = some();
  prefetcher.ask(ImagePrefetches.fromPartial({ images: [{ id: "a", image: "app:2" }] }), sink);
  const failed = {
    type: "failed",
    reason: "ImagePullBackOff",
    message: "",
    retryAtMs: 5_000,
    notBeforeMs: 5_000,
  } as const;
  await become("app:2", failed);
  prefetcher.ended({ send: async () => undefined });
  assert.deepEqual(prefetcher.desired(), ["app:2"]);
  prefetcher.ended(sink);
  assert.deepEqual(prefetcher.desired(), []);
  assert.equal(clock.pending(), 0);
  await become("app:2", { type: "present" });
  assert.equal(fetched.length, 1);
  assert.equal(reports.length, 2);
});

function some() {
  const states = new Map<string, ImageState>();
  const fetched: string[] = [];
  const sinceMs: number[] = [];
  const reports: string[] = [];
  const clock = aClock();
  const prefetcher = new ImagePrefetcher({
    clock,
    images: {
      state: (image, _policy, since) => {
        sinceMs.push(since);
        return states.get(image) ?? { type: "unknown" };
      },
      fetch: (image: string, policy: PullPolicy, user?: ImageUser) => {
        const [login] = user?.objects?.registryCredentials ?? [];
        fetched.push([image, policy, user?.namespace, login?.username].join(" ").trim());
      },
    },
  });
  const sink: PullSink = {
    send: async ({ value }) => void reports.push(...value.images.map(describe)),
  };
  const become = async (image: string, state: ImageState): Promise<void> => {
    states.set(image, state);
    prefetcher.changed(image);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { prefetcher, fetched, sinceMs, reports, clock, sink, become };
}

function describe({ id, present, failure, message }: ImagePull): string {
  return `${id}: ${present ? "present" : `${failure === "" ? "pulling" : failure} ${message}`}`.trim();
}

function aClock() {
  const timers = new Set<() => void>();
  const clock = {
    ms: 0,
    nowMs: () => clock.ms,
    monotonicMs: () => clock.ms,
    schedule: (_ms: number, run: () => void) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
    fire: () => {
      for (const run of [...timers]) {
        timers.delete(run);
        run();
      }
    },
    pending: () => timers.size,
  };
  return clock;
}
