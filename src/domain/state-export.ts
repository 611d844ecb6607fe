/** What a vault holds as the document that makes another vault hold it; secrets are not in it. */
import { OperatorError } from '../base/operator-error.ts';
import { documentVersion, type Section, sections, usual } from './desired-sections.ts';
import { typeByHand } from './state-complaints.ts';
import type { Definition, FieldValue, Held, VaultState } from './vault-state.ts';

export type ExportedDocument = { readonly version: number } & Partial<
  Record<Section, Record<string, Record<string, FieldValue>>>
>;

/**
 * The document, with names and fields in an order that does not change. API keys that are revoked or have expired are not
 * in it. Throws OperatorError where several keys have one name.
 */
export function exportedDocument(state: VaultState): ExportedDocument {
  const filled = sections.map((section) => [section, exportedSection(state, section)] as const);
  return {
    version: documentVersion,
    ...Object.fromEntries(filled.filter(([, objects]) => Object.keys(objects).length > 0)),
  };
}

function exportedSection(state: VaultState, section: Section): Record<string, Record<string, FieldValue>> {
  const names = [...state[section].keys()].sort();
  return Object.fromEntries(
    names.flatMap((name) => {
      const held = (state[section].get(name) ?? []).filter(({ isOver }) => isOver !== true);
      const [one] = held;
      if (held.length > 1) throw doubled(name, held);
      return one === undefined ? [] : [[name, { ...told(one.definition), ...secretOf(section, one) }]];
    }),
  );
}

function told(definition: Definition): Record<string, FieldValue> {
  const fields = Object.entries(definition);
  return Object.fromEntries(fields.filter(([key, value]) => value !== undefined && value !== usual[key]));
}

function secretOf(section: Section, { definition, secret }: Held): Record<string, string> {
  if (section === 'issuers') return secret?.() === undefined ? {} : { eab_hmac_key: 'keep' };
  return section === 'dns_providers' && definition.type !== typeByHand ? { secret: 'keep' } : {};
}

function doubled(name: string, held: readonly Held[]): OperatorError {
  const ids = held.map(({ id }) => id).join(' and ');
  return new OperatorError(`${held.length} API keys are called "${name}": ids ${ids}`, {
    hint: 'Names tell keys apart in the file. Revoke all but one of them, with "vault api-key revoke --id N".',
  });
}
