import { noEffect, type Rules, textMap } from "./rules.ts";

const SERVER = noEffect("the server of a cluster sets it");

/** The rules for the metadata of all objects. Name and namespace are read elsewhere. */
export const METADATA_FIELDS: Rules = {
  annotations: noEffect("tools read it; those that a kind gives a meaning are read there"),
  creationTimestamp: SERVER,
  deletionGracePeriodSeconds: SERVER,
  deletionTimestamp: SERVER,
  finalizers: SERVER,
  generateName: (field) => void field.fail("is not read: give the object a name"),
  generation: SERVER,
  labels: noEffect("resources have the labels of their bundle"),
  managedFields: SERVER,
  name: noEffect("read on its own"),
  namespace: noEffect("read on its own"),
  ownerReferences: SERVER,
  resourceVersion: SERVER,
  selfLink: SERVER,
  uid: SERVER,
};

/**
 * The rules for the metadata of a pod template. Its labels and annotations become those of the
 * pods.
 */
export const TEMPLATE_METADATA_FIELDS: Rules = {
  ...METADATA_FIELDS,
  annotations: textMap,
  generateName: noEffect("pods get names of their own"),
  labels: textMap,
};

/** Annotations that tools write for their own use, and that do not change how a resource works. */
export const OF_TOOLS = /^(kubectl\.kubernetes\.io|meta\.helm\.sh|argocd\.argoproj\.io)\//;
