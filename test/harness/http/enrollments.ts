/** Enrollments of a test, and machines that exchange their tokens. */
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createEnrollmentInput } from '../../../src/domain/enrollments/enrollment-inputs.ts';
import { createEnrollment } from '../../../src/domain/enrollments/enrollments.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { CheckedServer } from './checked.ts';

export const enrollmentsPath = '/api/v1/enrollments';

export type TestEnrollment = { readonly id: number; readonly token: string; readonly actor: string };

/** An enrollment, by default with one use, for every certificate, until the next year. */
export async function makeEnrollment(
  vault: Vault,
  options: Readonly<Record<string, unknown>> & { readonly name?: string } = {},
): Promise<TestEnrollment> {
  const name = options.name ?? 'rack';
  const input = { certificates: ['*'], expires_at: '2027-01-01T00:00:00Z', ...options, name };
  const { id, token } = await createEnrollment(vault, localCli, parseInput(createEnrollmentInput, input));
  return { id, token: token.expose(), actor: `enrollment:${id}:${name}` };
}

/** The response to an exchange: its status, its parsed body, and its headers. */
export type ExchangeReply<Body> = { readonly status: number; readonly headers: Headers; readonly json: Body };

/** Exchanges a token as a machine at this address does; the server must trust 127.0.0.1 as a proxy. */
export async function exchange<Body = Record<string, unknown>>(
  { get }: Pick<CheckedServer, 'get'>,
  token: string | undefined,
  body: unknown = { host: 'www1' },
  from = '192.0.2.1',
): Promise<ExchangeReply<Body>> {
  const response = await get(`${enrollmentsPath}/exchange`, token, {
    method: 'POST',
    headers: { 'X-Forwarded-For': from, 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const { status, headers } = response;
  return { status, headers, json: JSON.parse(await response.text()) as Body };
}
