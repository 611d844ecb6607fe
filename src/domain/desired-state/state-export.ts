/** What a vault holds as the document that makes another vault hold it; secrets are not in it. */
import { localCaName } from '../private-ca/local-ca.ts';
import type { Definition, FieldValue } from './definition.ts';
import { documentVersion, type Section, sections, usual } from './desired-sections.ts';
import { typeByHand } from './state-issues.ts';
import type { Held, VaultState } from './vault-state.ts';

export type ExportedDocument = { readonly version: number } & Partial<
  Record<Section, Record<string, Record<string, FieldValue>>>
>;

/**
 * The document, with names and fields in an order that does not change. API keys that are revoked or have expired are
 * not in it.
 */
export function exportedDocument(state: VaultState): ExportedDocument {
  const filled = sections.map((section) => [section, exportedSection(state, section)] as const);
  return {
    version: documentVersion,
    ...Object.fromEntries(filled.filter(([, objects]) => Object.keys(objects).length > 0)),
  };
}

function exportedSection(state: VaultState, section: Section): Record<string, Record<string, FieldValue>> {
  return Object.fromEntries(
    [...state[section]]
      .filter(([, { isOver }]) => isOver !== true)
      .filter(([name, held]) => section !== 'issuers' || name !== localCaName || isChanged(held))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, held]) => [name, { ...told(held.definition), ...secretOf(section, held) }]),
  );
}

/** Whether the built-in CA has settings of its own; without, it is there anyway. */
function isChanged({ definition: { type: _, ...settings } }: Held): boolean {
  return Object.values(settings).some((value) => value !== undefined);
}

function told(definition: Definition): Record<string, FieldValue> {
  const fields = Object.entries(definition);
  return Object.fromEntries(fields.filter(([key, value]) => value !== undefined && value !== usual[key]));
}

function secretOf(section: Section, { definition, secret }: Held): Record<string, string> {
  if (section === 'issuers') return secret?.() === undefined ? {} : { eab_hmac_key: 'keep' };
  if (section === 'deploy_targets') return { secret: 'keep' };
  return section === 'dns_providers' && definition.type !== typeByHand ? { secret: 'keep' } : {};
}
