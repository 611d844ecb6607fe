/** The changes of `vault apply` as text and as JSON. Secrets are already replaced by placeholders. */
import { styleText } from 'node:util';
import { escapedJson } from '../../../base/printable-text.ts';
import { readSigningRequest } from '../../../crypto/x509/signing-request.ts';
import type { FieldValue } from '../../../domain/desired-state/definition.ts';
import { type Section, usual } from '../../../domain/desired-state/desired-sections.ts';
import type { Change, FieldChange } from '../../../domain/desired-state/state-plan.ts';
import { jsonText } from '../../terminal/output.ts';

const kinds: Readonly<Record<Section, string>> = {
  issuers: 'issuer',
  dns_providers: 'dns-provider',
  certificates: 'certificate',
  imported_certificates: 'imported certificate',
  deploy_targets: 'deploy-target',
  api_keys: 'api-key',
  acme_clients: 'acme-client',
};

const signs = {
  create: ['+', 'green'],
  update: ['~', 'yellow'],
  remove: ['-', 'red'],
} as const;

/** The changes as a diff with a count below, in color if the stream is a terminal that supports it. */
export function changesText(changes: readonly Change[], stream: NodeJS.WriteStream): string {
  const blocks = changes.map((change) => {
    const [sign, color] = signs[change.action];
    const id = change.id === undefined ? '' : ` (id ${change.id})`;
    const head = `${sign} ${kinds[change.section]} ${word(change.name)}${id}${noteOf(change)}\n`;
    const body = change.fields
      .filter(({ field, from, to }) => from !== undefined || to !== usual[field])
      .map((field) => `    ${field.field}: ${fieldText(field)}\n`);
    return `${styleText(color, head, { stream })}${body.join('')}`;
  });
  const count = (action: Change['action']) => changes.filter((change) => change.action === action).length;
  const counts = `${count('create')} to create, ${count('update')} to change, ${count('remove')} to remove`;
  return `${blocks.join('')}\n${counts}\n`;
}

/** The changes as JSON. */
export function changesJson(changes: readonly Change[], applied: 'applied' | 'planned'): string {
  return jsonText({
    applied: applied === 'applied',
    changes: changes.map(({ action, section, name, id, fields }) => ({
      action,
      section,
      name,
      ...(id !== undefined && { id }),
      fields,
    })),
  });
}

/** A side effect of a change, such as revocation. */
function noteOf({ action, section, fields }: Change): string {
  if (action === 'remove') {
    if (section === 'api_keys' || section === 'acme_clients') return ': revokes it';
    if (section === 'issuers' && fields.length > 0) return ': destroys its keys';
    return section.endsWith('certificates') ? ': deletes all its versions and keys' : '';
  }
  const isRenewed = fields.some(({ field }) => ['domains', 'key_type', 'csr'].includes(field));
  return action === 'update' && section === 'certificates' && isRenewed ? ': renews it immediately' : '';
}

function fieldText({ from, to }: FieldChange): string {
  return from === undefined ? valueText(to) : `${valueText(from)} → ${valueText(to)}`;
}

function valueText(value: FieldValue): string {
  if (value === undefined) return 'none';
  if (typeof value === 'boolean' || typeof value === 'number') return String(value);
  if (typeof value === 'string') return word(value);
  return `[${value.map(word).join(', ')}]`;
}

/** Quotes text that needs it, and shortens PEM: certificates to a count, a CSR to the pin of its key. */
function word(text: string): string {
  const blocks = text.split('-----BEGIN CERTIFICATE-----').length - 1;
  if (blocks > 0) return `${blocks} certificate${blocks === 1 ? '' : 's'}`;
  if (text.startsWith('-----BEGIN CERTIFICATE REQUEST-----'))
    return `CSR of the key ${readSigningRequest(text).pin}`;
  return /^[\w@.:/+*()=-][\w@.:/+*()= -]*$/.test(text) ? text : escapedJson(JSON.stringify(text));
}
