export type Labels = Readonly<Record<string, string>>;

/** Reports whether `labels` contain all labels of the selector. An empty selector matches everything. */
export function hasLabels(labels: Labels, selector: Labels): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

export function sameLabels(a: Labels, b: Labels): boolean {
  return a === b || (Object.keys(a).length === Object.keys(b).length && hasLabels(a, b));
}
