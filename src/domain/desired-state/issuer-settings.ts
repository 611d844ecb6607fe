/** What the issuers of a document, and those of the vault that it does not name, mean for certificates. */

import { defaultKeyType, isKeyType, type KeyType } from '../../base/key-type.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import type { PermittedLists } from '../private-ca/permitted-names.ts';
import type { CreatePrivateCaInput } from '../private-ca/private-ca-inputs.ts';
import type { Definition } from './definition.ts';

type Issuers = {
  readonly state: {
    readonly issuers: ReadonlyMap<
      string,
      {
        readonly definition: Definition;
        readonly profiles?: ReadonlyMap<string, KeyType | undefined>;
      }
    >;
  };
  readonly wanted: {
    readonly issuers: ReadonlyMap<
      string,
      { readonly privateCa: CreatePrivateCaInput } | { readonly secrets: object }
    >;
  };
};

/** Whether an issuer is a private CA; an unknown one is none. */
export function isPrivateCa({ state, wanted }: Issuers, name: string): boolean {
  const issuer = wanted.issuers.get(name);
  if (issuer !== undefined) return 'privateCa' in issuer;
  return name === localCaName || state.issuers.get(name)?.definition.type === 'local-ca';
}

/** What a private CA permits once the document is applied. */
export function permittedBy({ state, wanted }: Issuers, name: string): PermittedLists {
  const issuer = wanted.issuers.get(name);
  if (issuer !== undefined && 'privateCa' in issuer) {
    const { permit_domains: permitDomains = [], permit_ips: permitIps = [] } = issuer.privateCa;
    return { permitDomains, permitIps };
  }
  const { permit_domains: domains, permit_ips: ips } = state.issuers.get(name)?.definition ?? {};
  return { permitDomains: listIn(domains), permitIps: listIn(ips) };
}

/** The profiles of a private CA. */
export function profilesOf({ state }: Issuers, name: string): readonly string[] {
  return [...(state.issuers.get(name)?.profiles?.keys() ?? [])];
}

/** The type of new keys for certificates of an issuer, with a profile of it, whose definition has none. */
export function defaultKeyTypeOf({ state, wanted }: Issuers, name: string, profile?: string): KeyType {
  const ofProfile = profile === undefined ? undefined : state.issuers.get(name)?.profiles?.get(profile);
  if (ofProfile !== undefined) return ofProfile;
  const issuer = wanted.issuers.get(name);
  if (issuer !== undefined) return ('privateCa' in issuer && issuer.privateCa.key_type) || defaultKeyType;
  const stored = state.issuers.get(name)?.definition.key_type;
  return typeof stored === 'string' && isKeyType(stored) ? stored : defaultKeyType;
}

function listIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as string[]) : [];
}
