/** CAA records of all names of an order, looked up before its certificate is issued. */
import { mapBounded } from '../../../base/bounded.ts';
import { withDeadline } from '../../../base/deadline.ts';
import { second } from '../../../base/duration.ts';
import type { AcmeClientOrderRow } from '../../../db/tables/acme-server/acme-client-orders.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { checkCaa } from '../validation/caa.ts';
import type { ValidationContext } from '../validation/validation-context.ts';
import { authorizationsOf, type StoredAuthorization } from './authorizations.ts';

const namesAtOnce = 10;
const limit = 15 * second;

/**
 * Throws AcmeProblem (`caa` or `dns`) with a subproblem for each name that this CA may not issue for. Nothing is looked
 * up unless a setting names this CA.
 */
export async function requireCaa(
  context: ValidationContext,
  order: AcmeClientOrderRow,
  accountUri: string,
): Promise<void> {
  if (context.validation.caaIdentities.length === 0) return;
  const authorizations = authorizationsOf(order);
  const found = await withDeadline(context.world, limit, new AbortController().signal, ({ signal }) =>
    mapBounded(namesAtOnce, authorizations, (one) => problemOf(context, one, accountUri, signal)),
  );
  const problems = found.filter((problem) => problem !== undefined);
  const [first] = problems;
  if (first === undefined) return;
  throw new AcmeProblem(first.type, first.detail, { subproblems: problems });
}

async function problemOf(
  context: ValidationContext,
  { identifier, wildcard, challenges }: StoredAuthorization,
  accountUri: string,
  signal: AbortSignal,
) {
  const name = wildcard ? `*.${identifier}` : identifier;
  // Without a validation the challenge only stands for the binding.
  const method = challenges.find(({ status }) => status === 'valid')?.type;
  try {
    await checkCaa(context, { identifier: name, method, accountUri }, signal);
    return undefined;
  } catch (error) {
    if (error instanceof AcmeProblem) return { type: error.type, detail: error.message, identifier };
    if (!signal.aborted) throw error;
    const detail = `Looking up the CAA records of ${name} took more than ${limit / second} s.`;
    return { type: 'dns' as const, detail, identifier };
  }
}
