/** Problem documents (RFC 9457) with the subproblems of RFC 8555 §6.7.1, stored and formatted for people. */
import { z } from 'zod';
import { shortened } from '../base/printable-text.ts';
import type { AcmeProblem } from './acme-types.ts';

const maxDetailLength = 1000;
const maxNameLength = 300;
const maxSubproblems = 100;
const maxShown = 10;

const text = (most: number) =>
  z
    .string()
    .transform((value) => shortened(value, most))
    .catch('');
const identifier = z.object({ value: text(maxNameLength) }).transform(({ value }) => value);

const schema = z.object({
  type: text(maxNameLength),
  title: text(maxNameLength),
  detail: text(maxDetailLength),
  status: z.int().min(100).max(599).optional().catch(undefined),
  instance: text(maxDetailLength),
  subproblems: z
    .array(
      z
        .object({
          type: text(maxNameLength),
          detail: text(maxDetailLength),
          identifier: identifier.optional().catch(undefined),
        })
        .catch({ type: '', detail: '', identifier: undefined }),
    )
    .catch([]),
});

/**
 * The problem in parsed JSON, cleaned and with bounded lengths; members of the wrong type count as missing. `status` is
 * that of the HTTP response, for a document without one. Undefined if the JSON is not an object.
 */
export function readProblem(json: unknown, status?: number): AcmeProblem | undefined {
  const { data } = schema.safeParse(json);
  if (data === undefined) return undefined;
  return {
    type: data.type || 'about:blank',
    detail: data.detail || data.title,
    status: data.status ?? status,
    instance: data.instance || undefined,
    subproblems: data.subproblems.slice(0, maxSubproblems).map((one) => ({
      type: one.type || 'about:blank',
      detail: one.detail,
      identifier: one.identifier || undefined,
    })),
  };
}

/**
 * The problem on one line: the detail of the CA, each subproblem with its identifier, and the page to visit
 * (userActionRequired).
 */
export function problemSentence({ type, detail, instance, subproblems }: AcmeProblem): string {
  const parts = subproblems.slice(0, maxShown).map((one) => {
    return [one.identifier, one.detail || nameOf(one.type)].filter(Boolean).join(': ');
  });
  const more = subproblems.length - parts.length;
  if (more > 0) parts.push(`and ${more} more`);
  const main = detail || `the CA rejected the request: ${nameOf(type)}`;
  const inner = parts.length > 0 ? ` (${parts.join('; ')})` : '';
  const visit = instance !== undefined && nameOf(type) === 'userActionRequired' ? ` Visit ${instance}` : '';
  return `${main}${inner}${visit}`;
}

/** A problem for a rejection without a problem document. */
export function problemOf(detail: string): AcmeProblem {
  return { type: 'about:blank', detail, status: undefined, instance: undefined, subproblems: [] };
}

function nameOf(type: string): string {
  return type.startsWith('urn:') ? type.slice(type.lastIndexOf(':') + 1) : type;
}
