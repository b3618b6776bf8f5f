import { jobColumns } from "../view/jobs.ts";
import { resourceListCommand } from "./resource-list.ts";

export const jobLs = resourceListCommand({
  summary: "List jobs and how they went",
  details: "Runs of cron jobs are listed with their OWNER.",
  many: "jobs",
  isListed: ({ kind }) => kind === "job",
  columns: jobColumns,
});
