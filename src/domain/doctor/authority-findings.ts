/**
 * Whether the private CAs can go on issuing: a root must be replaced before it expires, and a root whose key was
 * exported is needed again before its intermediate expires.
 */
import { day } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { longestLifetime } from '../../db/tables/certificates/certificates.ts';
import { findRoot } from '../../db/tables/issuance/ca-certificates.ts';
import type { TimedContext } from '../contexts.ts';
import { holdsKey, issuingIntermediate } from '../private-ca/authorities.ts';
import { importRootKey } from '../private-ca/authority-refusals.ts';
import { caExpiries, intermediateAdvice, listPrivateCas } from '../private-ca/ca-expiry.ts';
import { settingsOfCa } from '../private-ca/ca-settings.ts';
import type { PrivateCa } from '../private-ca/rotation.ts';
import { companyFinding } from './company-findings.ts';
import type { Finding } from './finding.ts';

/** The person with the key may be hard to reach. */
const warnedBefore = 365 * day;
const urgentBefore = 30 * day;

/**
 * One finding for each private CA whose root key is not in the vault, and one for each root that expires within a year.
 */
export async function authorityFindings(vault: TimedContext): Promise<Finding[]> {
  const findings = [];
  for (const ca of await listPrivateCas(vault.db.reader)) {
    findings.push(await rootFinding(vault, ca), await offlineFinding(vault, ca));
  }
  return findings.flatMap((finding) => finding ?? []);
}

async function rootFinding(vault: TimedContext, ca: PrivateCa): Promise<Finding | undefined> {
  const root = (await caExpiries(vault, ca)).find(({ role }) => role === 'root');
  if (root === undefined || root.level === 0) return undefined;
  const { name, urgency, notAfter, advice, fix } = root;
  return {
    check: 'private-ca',
    status: urgency === 'near' ? 'warning' : 'failed',
    about: name,
    message: `${name}: its root ${urgency === 'over' ? 'expired' : 'expires'} at ${formatTimestamp(notAfter)}`,
    hint: `${advice}\nFix: ${fix}`,
  };
}

async function offlineFinding(vault: TimedContext, ca: PrivateCa): Promise<Finding | undefined> {
  const { id, name } = ca;
  const { world } = vault;
  const { reader } = vault.db;
  const root = await findRoot(reader, id);
  if (root === undefined || holdsKey(root)) return undefined;
  if (root.is_external === 1) return companyFinding(vault, ca, root);
  const settings = await settingsOfCa(reader, id);
  const intermediate = await issuingIntermediate(reader, root, settings);
  const finding = (status: Finding['status'], problem: string): Finding => ({
    check: 'private-ca',
    status,
    about: name,
    message: `${name}: ${problem}`,
    ...(status !== 'ok' && {
      hint: `${intermediateAdvice}\nFix: ${importRootKey(name)}`,
    }),
  });
  if (intermediate === undefined) {
    return finding(
      'failed',
      'no intermediate has the constraints of the CA, and the key of its root was exported',
    );
  }
  const { not_after: end } = intermediate;
  const until = formatTimestamp(end);
  const left = end - world.now();
  if (left <= 0)
    return finding('failed', `its intermediate expired at ${until}, and the key of its root was exported`);
  const isLast = end >= root.not_after;
  const longest = Math.max(settings.lifetime, await longestLifetime(reader, id));
  if (!isLast && left < warnedBefore) {
    return finding(
      left < urgentBefore ? 'failed' : 'warning',
      `its intermediate expires at ${until}, and the key of its root was exported`,
    );
  }
  if (!isLast && left < longest) {
    return finding(
      'warning',
      `certificates for ${Math.ceil(longest / day)} days expire with its intermediate at ${until}, and the key of its root was exported`,
    );
  }
  return finding('ok', `the key of its root was exported; its intermediate issues until ${until}`);
}
