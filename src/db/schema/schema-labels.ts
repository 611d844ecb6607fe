/** The table that finds objects by their labels. */

/** `allowlist`: the API keys that may access certificates with the label. */
export type LabelledKind = 'certificate' | 'api-key' | 'acme-client' | 'allowlist' | 'enrollment';

/** Follows the labels in the rows of the objects, and grants nothing. */
export type ObjectLabelsTable = {
  kind: LabelledKind;
  /** `key=value`. */
  label: string;
  object_id: number;
};
