/** The state of the form for a private CA, and the request bodies that it produces. */
import type { Issuer } from '../data/administration-shapes.ts';

export const blankPrivateCa = {
  name: '',
  commonName: '',
  /** One domain or network per line. */
  domains: '',
  networks: '',
  lifetime: '',
  keyType: '',
  pathLength: '',
  isForced: false,
};

export type PrivateCaDraft = typeof blankPrivateCa;

/** The form for changes; what a CA has once and for all is left empty. */
export function privateCaDraft({ name, private_ca }: Issuer): PrivateCaDraft {
  return {
    ...blankPrivateCa,
    name,
    domains: (private_ca?.permit_domains ?? []).join('\n'),
    networks: (private_ca?.permit_ips ?? []).join('\n'),
    lifetime: private_ca?.lifetime ?? '',
    keyType: private_ca?.key_type ?? '',
  };
}

/** The body of POST. Empty fields are left out. */
export function newPrivateCa(draft: PrivateCaDraft): Record<string, unknown> {
  const [domains, networks] = [entriesIn(draft.domains), entriesIn(draft.networks)];
  const [commonName, lifetime] = [draft.commonName.trim(), draft.lifetime.trim()];
  return {
    type: 'local-ca',
    name: draft.name.trim(),
    ...(commonName !== '' && { common_name: commonName }),
    ...(domains.length > 0 && { permit_domains: domains }),
    ...(networks.length > 0 && { permit_ips: networks }),
    ...(lifetime !== '' && { lifetime }),
    ...(draft.keyType !== '' && { key_type: draft.keyType }),
    ...(draft.pathLength !== '' && { path_length: Number(draft.pathLength) }),
  };
}

/** The body of PATCH: only what changed, with null for a lifetime that was emptied. */
export function privateCaChanges(before: PrivateCaDraft, draft: PrivateCaDraft): Record<string, unknown> {
  const [domains, networks] = [entriesIn(draft.domains), entriesIn(draft.networks)];
  const lifetime = draft.lifetime.trim();
  const isOther = (list: readonly string[], text: string) => list.join() !== entriesIn(text).join();
  return {
    ...(isOther(domains, before.domains) && { permit_domains: domains }),
    ...(isOther(networks, before.networks) && { permit_ips: networks }),
    ...(lifetime !== before.lifetime && { lifetime: lifetime === '' ? null : lifetime }),
    ...(draft.keyType !== before.keyType && { key_type: draft.keyType }),
    ...(draft.isForced && { force: true }),
  };
}

function entriesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((entry) => entry !== '');
}
