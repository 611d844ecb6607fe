/**
 * The reach of people and of API keys with a role: labels that confine what they may see and change. It grants nothing,
 * and takes away what has none of its labels.
 */
import { type Json, parseJsonOr } from '../../base/json.ts';
import { hasAnyLabel } from '../../base/object-label.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';

/** `any` for everything. */
export type Reach = 'any' | readonly string[];

/** Who has a reach. */
export type Confined = { readonly reach: Reach };

/** The reach in a column. */
export function reachIn(text: Json<string[]> | null): Reach {
  return text === null ? 'any' : parseJsonOr(text, []);
}

/** The labels that confine a caller; undefined for everything. */
export function reachOf(who: Confined | undefined): readonly string[] | undefined {
  return who === undefined || who.reach === 'any' ? undefined : who.reach;
}

/** Whether an object with these labels is within the reach. */
export function isWithinReach({ reach }: Confined, labels: readonly string[]): boolean {
  return reach === 'any' || hasAnyLabel(labels, reach);
}

/** Throws `forbidden` unless an object with these labels is within the reach; the same if there is no such object. */
export function requireReach(who: Confined, labels: readonly string[]): void {
  if (isWithinReach(who, labels)) return;
  throw outOfReach(who, 'This is outside your reach');
}

/** Throws `forbidden` unless all of the labels are those of the reach, and there is one. */
export function requireLabelsOfReach({ reach }: Confined, labels: readonly string[], subject: string): void {
  if (reach === 'any') return;
  const other = labels.find((label) => !reach.includes(label));
  if (labels.length > 0 && other === undefined) return;
  throw outOfReach(
    { reach },
    other === undefined ? `${subject} is missing` : `${subject} ${other} is outside yours`,
  );
}

/** Throws `forbidden` if a new object with these labels would be outside the reach of who creates it. */
export function requireOwnLabel(who: Confined, labels: readonly string[]): void {
  if (isWithinReach(who, labels)) return;
  throw outOfReach(who, 'What you create needs a label of your reach');
}

/** Throws `forbidden` for a request about the whole vault. */
export function requireNoReach(who: Confined): void {
  if (who.reach !== 'any') throw outOfReach(who, 'This request is about the whole vault');
}

function outOfReach({ reach }: Confined, what: string): Problem {
  return new Problem('forbidden', {
    detail: `${what}: ${reach === 'any' ? '' : reach.slice(0, 5).join(', ')}.`,
    hint: 'The reach of an administrator is set with "vault admin update --reach", that of a key with "vault api-key update --reach".',
  });
}

/** Throws `invalid_request` for a reach that would confine nothing or too much. */
export function refuseUnfitReach(role: Role | null, reach: readonly string[]): void {
  if (reach.length === 0 || (role !== null && role !== 'admin')) return;
  const message =
    role === null
      ? 'only keys with the role viewer or operator have a reach; use certificate_labels for a key without a role'
      : 'the role admin reaches everything; use the role viewer or operator';
  throw new Problem('invalid_request', {
    detail: `reach: ${message}.`,
    errors: [{ path: 'reach', message }],
    ...(role === 'admin' && {
      hint: 'To remove the reach, add "--reach none", or "reach": [] to the request.',
    }),
  });
}
