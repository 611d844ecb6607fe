/** What handlers check about the labels of certificates; refusals are recorded. */
import { requireOwnLabel, requireReach } from '../../domain/labels/reach.ts';
import type { Call, Method } from '../request/route.ts';
import { recordRefused } from './recorded-refusal.ts';

type Checked = Omit<Call, 'query' | 'body'>;

/** Why the audit log says that a change of labels was refused. */
export const labelsReason = 'labels need the role admin';

const outside = 'outside its reach';

/** Throws `forbidden` unless a new certificate with these labels is within the reach of the caller. */
export function requireLabelOfReach(
  method: Method,
  call: Checked,
  labels: readonly string[] = [],
): Promise<void> {
  return recordRefused(method, call, outside, (identity) => requireOwnLabel(identity, labels));
}

/** Throws `forbidden` unless the certificate of this name is within the reach of the caller. */
export async function requireCertificateInReach(method: Method, call: Checked, name: string): Promise<void> {
  if (call.identity === undefined || call.identity.reach === 'any') return;
  const labels = await call.context.labels.of(name);
  await recordRefused(method, call, outside, (identity) => requireReach(identity, labels));
}
