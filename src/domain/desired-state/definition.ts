/** The settings of one object as the document of `vault apply` writes them. */

import { formatLifetime } from '../../base/duration.ts';
import { settingsOfInput } from '../issuers/private-issuers.ts';
import { type CaSettings, defaultSettings } from '../private-ca/ca-settings.ts';
import type { CreatePrivateCaInput } from '../private-ca/private-ca-inputs.ts';

export type FieldValue = string | number | boolean | readonly string[] | undefined;

/** What is not set is undefined. */
export type Definition = Readonly<Record<string, FieldValue>>;

/** A private CA: only those settings that are not the usual ones. */
export function privateCaDefinition(settings: CaSettings): Definition {
  const { commonName, permitDomains, permitIps, pathLength, lifetime, keyType } = settings;
  return {
    type: 'local-ca',
    common_name: commonName,
    permit_domains: permitDomains.length === 0 ? undefined : permitDomains,
    permit_ips: permitIps.length === 0 ? undefined : permitIps,
    path_length: pathLength === defaultSettings.pathLength ? undefined : pathLength,
    lifetime: lifetime === defaultSettings.lifetime ? undefined : formatLifetime(lifetime),
    key_type: keyType === defaultSettings.keyType ? undefined : keyType,
  };
}

/**
 * The definition of a private CA in the document. What is set when a CA is created stays as it is without a word about
 * it.
 */
export function wantedPrivateCa(input: CreatePrivateCaInput, held: Definition = {}): Definition {
  const { common_name, path_length } = held;
  return {
    ...privateCaDefinition(settingsOfInput(input)),
    ...(input.common_name === undefined && { common_name }),
    ...(input.path_length === undefined && { path_length }),
  };
}
