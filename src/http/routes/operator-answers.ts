/**
 * Shows operator errors (a CA rejected a request, the token of a DNS provider is invalid) to administrators. Only their
 * routes do this; to all others they stay `internal`.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { sentence } from '../../base/sentence.ts';
import { StorageError } from '../../base/storage-error.ts';

/** A line of a hint that is only a command to paste. */
const commandLine = /^ *(?:Try|Fix): vault .*$/gm;

/**
 * Runs `work`; an OperatorError becomes `invalid_request` with the same sentence. `hintOf` returns the hint that the
 * command prints on the host, which is by default that of the error.
 */
export async function answeringOperators<T>(
  work: () => Promise<T>,
  hintOf: (error: OperatorError) => string | undefined = ({ hint }) => hint,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof StorageError) throw error;
    throw operatorProblem(error, hintOf(error));
  }
}

/**
 * The problem with the sentence of the error, and its hint without what is about the command line. It carries the words
 * of the error for a command that works on this vault from elsewhere, with the hint of that command.
 */
export function operatorProblem(error: OperatorError, commandHint = error.hint): Problem {
  const { message, errors } = error;
  const hint = error.hint?.replaceAll(commandLine, '').trim();
  const terms = /terms of service: (\S+)$/.exec(message)?.[1];
  return new Problem('invalid_request', {
    detail: sentence(message),
    ...(hint !== undefined && hint !== '' && !hint.includes('"vault ') && { hint: inMembers(hint) }),
    commandLine: { message, ...(commandHint !== undefined && { hint: commandHint }) },
    ...(errors.length > 0 && { errors }),
    ...(terms !== undefined && { errors: [{ path: 'accept_terms', message: terms }] }),
    cause: error,
  });
}

/** Options are named like body members: `--eab-hmac-key-file` becomes `"eab_hmac_key"`. */
function inMembers(hint: string): string {
  return hint.replaceAll(/--([a-z]+(?:-[a-z]+)*)/g, (_, option: string) => {
    return `"${option.replace(/-file$/, '').replaceAll('-', '_')}"`;
  });
}
