/**
 * What is wrong around the vault (a CA refused, a DNS provider's token is no good) as administrators are told it. Only
 * their routes answer with this; to all others it stays `internal`.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { StorageError } from '../../base/storage-error.ts';

/** Runs `work`; what it says to operators becomes `invalid_request` with the same sentence. */
export async function answeringOperators<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof StorageError) throw error;
    throw operatorProblem(error);
  }
}

/** The problem with the error's sentence, and its hint where that is not about the command line. */
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
 * Begins with a capital, unless it begins with a name or with the words of others, and ends with a stop, which must not
 * become part of an address.
 */
function sentence(text: string): string {
  const isOurs = /^(a|an|the|there|it|certificates) /.test(text);
  const capital = isOurs ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
  if (/[.!?]$/.test(capital)) return capital;
  const last = capital.split(/\s/).at(-1) ?? '';
  return /:\/\/./.test(last) ? `${capital} .` : `${capital}.`;
}

/** Options are called as the members of a body: `--eab-hmac-key-file` is `"eab_hmac_key"`. */
function inMembers(hint: string): string {
  return hint.replaceAll(/--([a-z]+(?:-[a-z]+)*)/g, (_, option: string) => {
    return `"${option.replace(/-file$/, '').replaceAll('-', '_')}"`;
  });
}
