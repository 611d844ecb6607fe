/** The identifiers of an order (RFC 8555 §7.1.3, RFC 8738), as clients write them and as the vault stores them. */
import { z } from 'zod';
import { type Identifier, isAddress, parseIdentifier } from '../../../base/identifier.ts';
import { AcmeProblem, type AcmeSubproblem } from '../protocol/acme-problem.ts';

const maxIdentifiers = 100;

/** As clients write one. */
export const identifierInput = z.object({ type: z.string().max(50), value: z.string().max(1000) });

export type WrittenIdentifier = z.infer<typeof identifierInput>;

/**
 * Each name and address once, in the order of the request. Throws `unsupportedIdentifier` and `malformed`, with a
 * subproblem for each that is wrong.
 */
export function readIdentifiers(written: readonly WrittenIdentifier[]): Identifier[] {
  const read = written.map((one) => ({ one, identifier: readIdentifier(one) }));
  const wrong = read.flatMap(({ one, identifier }) => (identifier === undefined ? [refusal(one)] : []));
  const [first, ...others] = wrong;
  if (first !== undefined) {
    const type = wrong.every((one) => one.type === first.type) ? first.type : 'malformed';
    const detail = others.length === 0 ? first.detail : `${wrong.length} identifiers are not accepted.`;
    throw new AcmeProblem(type, detail, { subproblems: wrong.slice(0, maxIdentifiers) });
  }
  const names = [...new Set(read.flatMap(({ identifier }) => identifier ?? []))];
  if (names.length === 0) throw new AcmeProblem('malformed', 'An order needs at least one identifier.');
  if (names.length > maxIdentifiers) {
    throw new AcmeProblem(
      'malformed',
      `An order has at most ${maxIdentifiers} identifiers, not ${names.length}.`,
    );
  }
  return names;
}

function readIdentifier({ type, value }: WrittenIdentifier): Identifier | undefined {
  // Names in other scripts are written in A-labels (RFC 8555 §7.1.4).
  const identifier = /^[\x21-\x7e]+$/.test(value) ? parseIdentifier(value) : undefined;
  if (identifier === undefined) return undefined;
  return type === (isAddress(identifier) ? 'ip' : 'dns') ? identifier : undefined;
}

function refusal({ type, value }: WrittenIdentifier): AcmeSubproblem {
  if (type !== 'dns' && type !== 'ip') {
    const detail = `Identifiers of type ${JSON.stringify(type)} are not supported, only dns and ip.`;
    return { type: 'unsupportedIdentifier', detail, identifier: value };
  }
  const kind = type === 'dns' ? 'DNS name' : 'IP address';
  return {
    type: 'malformed',
    detail: `${JSON.stringify(value.slice(0, 300))} is not a valid ${kind}.`,
    identifier: value,
  };
}

/** As ACME writes an identifier. */
export function writtenIdentifier(identifier: Identifier | string): WrittenIdentifier {
  return { type: isAddress(identifier as Identifier) ? 'ip' : 'dns', value: identifier };
}
