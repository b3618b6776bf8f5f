import assert from "node:assert/strict";
import type { DashboardTour } from "./dashboard-tour.ts";
import type { System } from "./system.ts";

/** Plans manifests of other notations on the page, which converts them as `forage convert` does. */
export async function planOtherNotations(tour: DashboardTour, system: System, image: string): Promise<void> {
  const { page } = tour;
  const kubernetes = kubernetesManifest(image);
  await tour.visit("plan", "Plan");
  await page.locator("#manifest").fill(kubernetes);
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("alert").getByText("line 8, column 16: spec.template.spec.hostIPC").waitFor();
  await page.getByRole("checkbox", { name: "Leave out what cannot be carried over" }).check();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("region", { name: "Left out" }).getByText("spec.template.spec.hostIPC").waitFor();
  const plan = page.getByRole("region", { name: "Plan for namespace e2e" });
  for (const resource of ["container_service/pasted", "service/pasted"])
    await plan.getByRole("heading", { name: `create ${resource}`, exact: true }).waitFor();
  await plan.getByText("create-pods").waitFor();
  await page.getByRole("heading", { name: "create config_map/pasted", exact: true }).waitFor();
  const { stdout, stderr, exitCode } = await system.forageInProcess(
    ["convert", "--lossy", "-f", "-", "-o", "json"],
    kubernetes,
  );
  assert.equal(exitCode, 0, stderr);
  const converted = (await page.locator("pre.converted").textContent()) ?? "";
  const again = await system.forageInProcess(["convert", "-f", "-", "-o", "json"], converted);
  assert.deepEqual(JSON.parse(again.stdout), JSON.parse(stdout), again.stderr);
  await tour.checked("plan-kubernetes");
  await page.locator("#manifest").fill(composeFile(image));
  await page.getByRole("button", { name: "Show the plan" }).click();
  const change = page.getByRole("region", { name: "container_service web", exact: true });
  await change.getByRole("listitem").filter({ hasText: "scaling.replicas" }).getByText("7").waitFor();
  await tour.checked("plan-compose");
}

function kubernetesManifest(image: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: pasted, namespace: e2e }
spec:
  replicas: 2
  template:
    spec:
      hostIPC: true
      containers:
        - name: web
          image: ${image}
          ports: [{ containerPort: 8080 }]
          envFrom: [{ configMapRef: { name: pasted } }]
    metadata: { labels: { app: pasted } }
---
apiVersion: v1
kind: Service
metadata: { name: pasted, namespace: e2e }
spec: { selector: { app: pasted }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: pasted, namespace: e2e }
data: { GREETING: hello }
`;
}

/** Returns a Compose file that changes the workload `web`. */
function composeFile(image: string): string {
  return `services:
  web:
    image: ${image}
    deploy: { replicas: 7 }
x-forage:
  namespace: e2e
  labels: { app: web }
`;
}
