export type Labels = Readonly<Record<string, string>>;

/** Reports whether all of `selector` stand in `labels`. An empty selector matches everything. */
export function hasLabels(labels: Labels, selector: Labels): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}
