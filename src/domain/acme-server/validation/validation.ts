/**
 * Validates one challenge of an ACME client: the vault connects to the client's server or asks the DNS, as a CA does.
 */
import { withDeadline } from '../../../base/deadline.ts';
import { second } from '../../../base/duration.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { checkCaa } from './caa.ts';
import { validateDns } from './dns-validation.ts';
import { validateHttp } from './http-validation.ts';
import { Unfinished } from './reach.ts';
import { validateTls } from './tls-validation.ts';
import type { ChallengeToValidate, ValidationContext } from './validation-context.ts';

type Validate = (
  context: ValidationContext,
  challenge: ChallengeToValidate,
  signal: AbortSignal,
) => Promise<void>;

const methods: Readonly<Record<string, Validate>> = {
  'http-01': validateHttp,
  'tls-alpn-01': validateTls,
  'dns-01': validateDns,
};

/** For the challenge, and again for CAA. */
const limit = 10 * second;

/**
 * Resolves if the client controls the identifier and CAA permits this CA. Throws AcmeProblem (connection, dns, tls,
 * incorrectResponse, unauthorized, caa) if not, and the reason of `signal` if that was aborted.
 */
export async function validateChallenge(
  context: ValidationContext,
  challenge: ChallengeToValidate,
  signal: AbortSignal,
): Promise<void> {
  const { type, identifier, accountUri } = challenge;
  const validate = Object.hasOwn(methods, type) ? methods[type] : undefined;
  if (validate === undefined) throw new Error(`no validation for ${type}`);
  await limited(context, `${type} validation of ${identifier}`, signal, (until) =>
    validate(context, challenge, until),
  );
  await limited(context, `looking up the CAA records of ${identifier}`, signal, (until) =>
    checkCaa(context, { identifier, method: type, accountUri }, until),
  );
}

async function limited(
  { world }: ValidationContext,
  what: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await withDeadline(world, limit, signal, async (deadline) => {
    try {
      await work(deadline.signal);
    } catch (error) {
      const how = deadline.ended();
      if (how === 'aborted') throw signal.reason;
      if (how !== 'timeout') throw error;
      const during = error instanceof Unfinished ? error.message : what;
      throw new AcmeProblem('connection', `${during} did not finish within ${limit / second} s`, {
        cause: error,
      });
    }
  });
}
