/** Options for labels, the same for all commands. */

import { parseInput } from '../../domain/inputs.ts';
import { objectLabels } from '../../domain/labels/label-inputs.ts';

const label = { type: 'string', valueHint: 'KEY=VALUE', multiple: true } as const;

/** The labels of a new object. */
export const labelOption = {
  label: { ...label, description: 'a label, such as team=web' },
} as const;

/** The labels of an object that exists. */
export const newLabelsOption = {
  label: { ...label, description: 'a label, such as team=web, or none; replaces the current ones' },
} as const;

/** For lists. */
export const labelFilterOption = {
  label: { ...label, description: 'only those with this label, such as team=web; repeat it for several' },
} as const;

/** The labels of certificates that an API key may access, and of what it may administer. */
export const grantOptions = {
  'certificate-label': {
    ...label,
    description:
      'a label, such as team=web; the key may access all certificates with it, including future ones',
  },
  reach: {
    ...label,
    description:
      'a label that confines what the key does with its role, viewer or operator (default: everything)',
  },
} as const;

/** The values of a repeatable option that `none` clears; undefined if it is not given. */
export function labelsFrom(values: readonly string[]): readonly string[] | undefined {
  if (values.length === 0) return undefined;
  return values.length === 1 && values[0] === 'none' ? [] : values;
}

/** The labels of `--label` for a list; undefined if it is not given. Throws `invalid_request`. */
export function labelsToFind(values: readonly string[]): readonly string[] | undefined {
  return values.length === 0 ? undefined : parseInput(objectLabels, values);
}

/** These labels as options of a command line, quoted where a shell needs it. */
export function labelArguments(labels: readonly string[]): string {
  const quoted = (text: string) =>
    /^[A-Za-z0-9._/=@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  return labels.map((text) => `--label ${quoted(text)}`).join(' ');
}

/** The labels as the query parameter `label` of a list. */
export function labelQuery(labels: readonly string[] | undefined): string | undefined {
  return labels?.join(',');
}
