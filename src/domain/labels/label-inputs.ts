/** Input schemas of labels, shared by the API and the command line. */
import { z } from 'zod';
import { labelKey, maxLabels, objectLabelPattern, readObjectLabel } from '../../base/object-label.ts';
import { quoted } from '../input-strings.ts';

/** Labels that an allowlist, the reach of a person or a filter of notifications may name. */
const maxGranted = 100;

/** `key=value`. */
export const objectLabel = z
  .string()
  .meta({ pattern: objectLabelPattern })
  .transform((text, context) => {
    const read = readObjectLabel(text);
    if ('label' in read) return read.label;
    context.addIssue({ code: 'custom', message: `${quoted(text)} is not a label: ${read.fault}` });
    return z.NEVER;
  });

const sorted = (list: readonly string[]) => [...new Set(list)].sort();

/** The labels of an object, sorted. */
export const objectLabels = z
  .array(objectLabel)
  .transform(sorted)
  .refine((list) => list.length <= maxLabels, `an object has at most ${maxLabels} labels; remove some`)
  .refine(
    (list) => new Set(list.map(labelKey)).size === list.length,
    'labels have each key once; write one value for each key',
  );

/** Labels of which any grants or chooses something, sorted; a key may have several values. */
export const anyLabels = z
  .array(objectLabel)
  .transform(sorted)
  .refine((list) => list.length <= maxGranted, `at most ${maxGranted} labels`);

/** The query parameter `label`, as its text: labels that objects must have all. `labelsInFilter` reads it. */
export const labelFilter = z
  .string()
  .max(2048)
  .meta({ pattern: '^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$' })
  .superRefine((text, context) => {
    const { error } = objectLabels.safeParse(text.split(','));
    for (const { message } of error?.issues ?? []) context.addIssue({ code: 'custom', message });
  })
  .describe('labels such as team=web, separated by commas: only objects with all of them');

/** The labels of a valid filter; undefined without one. */
export function labelsInFilter(text: string | undefined): readonly string[] | undefined {
  return text === undefined ? undefined : objectLabels.parse(text.split(','));
}
