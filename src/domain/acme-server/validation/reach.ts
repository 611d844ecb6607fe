/**
 * Connects to a host for validation. A name is resolved once; of its permitted addresses the first IPv6 address is
 * tried, and after it, if nothing accepts the connection there, the first IPv4 address.
 */
import { isIP } from 'node:net';
import { type ValidationAddress, ValidationFailure } from '../../../net/validation-connection.ts';
import { ValidationRefusal } from '../../../net/validation-guard.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { lookedUp } from './dns-lookup.ts';
import type { ValidationContext } from './validation-context.ts';

/** The time was up, or the validation was aborted; the message says during what. */
export class Unfinished extends Error {
  constructor(during: string, cause: unknown) {
    super(during, { cause });
    this.name = 'Unfinished';
  }
}

const problemTypes = { connect: 'connection', tls: 'tls', answer: 'connection' } as const;

/**
 * Runs `exchange` with an address of the host. `what` names what is asked for, such as a URL. Throws AcmeProblem that
 * says what was tried and what came.
 */
export async function reach<T>(
  { validation }: ValidationContext,
  { host, port, what }: { readonly host: string; readonly port: number; readonly what: string },
  signal: AbortSignal,
  exchange: (at: ValidationAddress) => Promise<T>,
): Promise<{ readonly result: T; readonly at: string }> {
  const addresses = isIP(host) === 0 ? await addressesOf(validation, host, signal) : [host];
  const targets = chosen(validation, addresses, { host, port });
  const failures: string[] = [];
  for (const [index, address] of targets.entries()) {
    const at = placeOf(address, port);
    try {
      return { result: await exchange({ address, port }), at };
    } catch (error) {
      if (signal.aborted) throw new Unfinished(`${what} at ${at}`, error);
      if (!(error instanceof ValidationFailure)) throw error;
      failures.push(`${at}: ${error.message}`);
      const isLast = index === targets.length - 1;
      if (error.stage === 'connect' && !isLast) continue;
      throw new AcmeProblem(problemTypes[error.stage], `${what} failed at ${failures.join('; ')}`, {
        cause: error,
      });
    }
  }
  throw new Error('there is at least one target');
}

async function addressesOf(
  { resolver }: ValidationContext['validation'],
  host: string,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = await lookedUp(resolver.addresses(host), signal);
  if (addresses.length > 0) return addresses;
  throw new AcmeProblem('dns', `${host} has no A or AAAA record`);
}

/** The addresses to try. Throws AcmeProblem if none is permitted. */
function chosen(
  { guard }: ValidationContext['validation'],
  addresses: readonly string[],
  { host, port }: { readonly host: string; readonly port: number },
): string[] {
  let refusal: AcmeProblem | undefined;
  const permitted = addresses.filter((address) => {
    try {
      guard.target(address, port);
      return true;
    } catch (error) {
      if (!(error instanceof ValidationRefusal)) throw error;
      const subject = address === host ? '' : `${host} resolves to ${address}, but `;
      refusal ??= new AcmeProblem('connection', `${subject}${error.message}`, { cause: error });
      return false;
    }
  });
  if (permitted.length === 0 && refusal !== undefined) throw refusal;
  const first = (family: number) => permitted.find((address) => isIP(address) === family);
  return [first(6), first(4)].filter((address) => address !== undefined);
}

function placeOf(address: string, port: number): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}
