/**
 * Shows operator errors (a CA rejected a request, the token of a DNS provider is invalid) to administrators. Only their
 * routes do this; to all others they stay `internal`.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { StorageError } from '../../db/storage-error.ts';

/** Runs `work`; an OperatorError becomes `invalid_request` with the same sentence. */
export async function answeringOperators<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof StorageError) throw error;
    throw operatorProblem(error);
  }
}

/** The problem with the sentence of the error, and its hint unless that is about the command line. */
export function operatorProblem(error: OperatorError): Problem {
  const { message, hint } = error;
  const terms = /terms of service: (\S+)$/.exec(message)?.[1];
  return new Problem('invalid_request', {
    detail: sentence(message),
    ...(hint !== undefined && !hint.includes('"vault ') && { hint: inMembers(hint) }),
    ...(terms !== undefined && { errors: [{ path: 'accept_terms', message: terms }] }),
    cause: error,
  });
}

/**
 * Starts with a capital, unless it begins with a name or quoted text, and ends with a period, which must not become
 * part of a URL.
 */
function sentence(text: string): string {
  const isOurs = /^(a|an|cannot|certificates|failed|invalid|it|query|the|there|unexpected|waiting) /.test(
    text,
  );
  const capital = isOurs ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
  if (/[.!?]$/.test(capital)) return capital;
  const last = capital.split(/\s/).at(-1) ?? '';
  return /:\/\/./.test(last) ? `${capital} .` : `${capital}.`;
}

/** Options are named like body members: `--eab-hmac-key-file` becomes `"eab_hmac_key"`. */
function inMembers(hint: string): string {
  return hint.replaceAll(/--([a-z]+(?:-[a-z]+)*)/g, (_, option: string) => {
    return `"${option.replace(/-file$/, '').replaceAll('-', '_')}"`;
  });
}
